//! A conversation that survives a restart: run it again, and it goes on where it stopped.
//!
//! `cargo run --example quickstart`
//!
//! The first process writes a turn and ends; it starts a second one, which reads the conversation back.

use std::path::PathBuf;
use std::process::Command;

use chat_memory::{ChatMemory, FileChatMemory, Message};

const CONVERSATION: &str = "user-42";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Beside the compiled example, so that it goes when the build does. A backend takes a directory of its own.
    let directory = std::env::current_exe()?.with_file_name("quickstart-memory");
    match std::env::args().nth(1).as_deref() {
        Some("read") => read(directory),
        _ => write(directory),
    }
}

fn write(directory: PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    let memory = FileChatMemory::open(&directory)?;
    let before = memory.get(CONVERSATION)?.len();
    println!("process {}: the conversation has {before} messages so far", std::process::id());

    let turn = before / 2 + 1;
    memory.add(
        CONVERSATION,
        &[
            Message::user(format!("Question {turn}: what is {turn} times {turn}?")),
            Message::assistant(format!("Answer {turn}: {}.", turn * turn)),
        ],
    )?;
    println!("process {}: added a turn to {}", std::process::id(), directory.display());

    // Everything above is on disk; this process could be killed now.
    let status = Command::new(std::env::current_exe()?).arg("read").status()?;
    if status.success() { Ok(()) } else { Err("the second process failed".into()) }
}

fn read(directory: PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    // A model is shown the newest turns only; what is stored stays whole.
    let memory = FileChatMemory::builder(&directory).max_messages(4).open()?;
    let view = memory.get(CONVERSATION)?;
    let stored = FileChatMemory::open(&directory)?.get(CONVERSATION)?.len();
    println!("process {}: of {stored} stored messages, a window of 4 shows {}:", std::process::id(), view.len());
    for message in view {
        println!("  {:>9}: {}", message.role(), message.text());
    }
    println!("Run it again: the conversation goes on.");
    Ok(())
}
