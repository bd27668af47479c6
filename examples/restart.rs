//! Kill -9 in the middle of a conversation: nothing that was acknowledged is missing.
//!
//! `cargo run --example restart`
//!
//! A child process adds turns as fast as it can and says after each one that it is stored. The parent kills it at some
//! moment, again and again, and reads the conversation back.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use chat_memory::{ChatMemory, FileChatMemory, Message};

const CONVERSATION: &str = "user-42";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return chat(Path::new(&directory));
    }
    let directory = tempfile::tempdir()?;
    let mut acknowledged = 0;
    for round in 1..=5 {
        let mut child = Command::new(std::env::current_exe()?).arg(directory.path()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("the child has no output")?;
        let mut lines = BufReader::new(output).lines();
        // Let it get somewhere, kill it without warning, and read what it still managed to say.
        for line in lines.by_ref().take(20 * round) {
            acknowledged = line?.parse()?;
        }
        child.kill()?;
        child.wait()?;
        for line in lines {
            // A line cut off by the kill says nothing.
            acknowledged = line?.parse().unwrap_or(acknowledged);
        }

        let stored = FileChatMemory::open(directory.path())?.get(CONVERSATION)?;
        println!("killed after {acknowledged} acknowledged turns; {} are stored", stored.len() / 2);
        // The turn in flight may be there too, whole.
        assert!(stored.len() / 2 == acknowledged || stored.len() / 2 == acknowledged + 1);
        for (turn, messages) in stored.chunks(2).enumerate() {
            assert_eq!(messages, [question(turn), answer(turn)]);
        }
        acknowledged = stored.len() / 2;
    }
    println!("Nothing acknowledged is missing.");
    Ok(())
}

/// The child: goes on with the conversation until it is killed.
fn chat(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let memory = FileChatMemory::open(directory)?;
    let first = memory.get(CONVERSATION)?.len() / 2;
    for turn in first.. {
        memory.add(CONVERSATION, &[question(turn), answer(turn)])?;
        println!("{}", turn + 1);
    }
    Ok(())
}

fn question(turn: usize) -> Message {
    Message::user(format!("What is {turn} squared?"))
}

fn answer(turn: usize) -> Message {
    Message::assistant(format!("{}", turn * turn))
}
