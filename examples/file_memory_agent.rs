//! An agent with a notebook: it saves what it finds, writes a report from it, and reads the report back in a later process.
//!
//! `cargo run --example file_memory_agent`
//!
//! The model is scripted, so this runs offline; everything around it is what a real model needs. The program starts itself a
//! second time for the later process.

use std::cell::RefCell;
use std::convert::Infallible;
use std::path::Path;
use std::process::Command;

use chat_memory::{FileChatMemory, FileMemory, LocalFileStore, MemoryAdvisor, Message, ModelRequest, ResultPart};
use serde_json::{Value, json};

const CONVERSATION: &str = "phone-sales";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(root) = std::env::args_os().nth(1) {
        return later(Path::new(&root));
    }
    let root = tempfile::tempdir()?;
    let mut report = String::from("# Phone sales 2022 to 2024\n\nNorth grew each year; West fell behind.\n\n");
    let mut script = Vec::new();
    for (year, [north, east, west]) in [(2022, [10, 20, 30]), (2023, [15, 21, 25]), (2024, [22, 23, 19])] {
        let table = format!(
            "| maker | units (millions) |\n|---|---|\n| North | {north} |\n| East | {east} |\n| West | {west} |\n"
        );
        let description = format!("Phone sales of three makers in {year}, a table");
        let name = format!("sales-{year}.md");
        let save = json!({ "fileName": name, "content": table, "description": description });
        script.push(("FileMemory_SaveFile", save));
        script.push(("FileMemory_ReadFile", json!({ "fileName": name })));
        report += &format!("## {year}\n\nAbout {} million phones in all.\n\n{table}\n", north + east + west);
    }
    assert!(report.split_whitespace().count() < 500);
    let description = "Report on the sales of three years";
    script.push((
        "FileMemory_SaveFile",
        json!({ "fileName": "report.md", "content": report, "description": description }),
    ));
    ask(
        root.path(),
        "Find the sales of three phone makers over three years; write a report of under 500 words.",
        script,
    )?;

    // A later process knows nothing but the conversation's id.
    let status = Command::new(std::env::current_exe()?).arg(root.path()).status()?;
    assert!(status.success());
    Ok(())
}

fn later(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    println!("\n== A later process ==");
    let script = vec![
        ("FileMemory_SearchFiles", json!({ "regexPattern": "north", "filePattern": "sales-*" })),
        ("FileMemory_ReadFile", json!({ "fileName": "report.md" })),
    ];
    let report = ask(root, "What did the report say?", script)?;
    assert!(report.starts_with("# Phone sales 2022 to 2024"));
    println!("\nThe answer:\n{report}");
    Ok(())
}

/// One turn of the agent; its answer.
fn ask(root: &Path, question: &str, script: Vec<(&str, Value)>) -> Result<String, Box<dyn std::error::Error>> {
    let files = FileMemory::new(LocalFileStore::open(root.join("files"))?);
    let advisor = MemoryAdvisor::builder(FileChatMemory::open(root.join("chat"))?).context(files).build()?;
    let script = RefCell::new(script.into_iter().enumerate());
    let model = |request: &ModelRequest| -> Result<Message, Infallible> {
        let last = request.messages.last().and_then(|message| message.tool_results().next()).map(text);
        match (script.borrow_mut().next(), last) {
            (Some((step, (tool, arguments))), last) => {
                match last {
                    None => show_notebook(request),
                    Some(result) => println!("    {:.200}", result.replace('\n', "\n    ")),
                }
                println!("{tool} {:.70}…", arguments.to_string());
                Ok(Message::assistant("").with_tool_call(format!("call-{step}"), tool, arguments.to_string()))
            }
            // At its end it says what it read last.
            (None, last) => Ok(Message::assistant(last.unwrap_or_default())),
        }
    };
    let outcome = advisor.turn(CONVERSATION, [Message::user(question)], &model)?;
    Ok(outcome.answer.ok_or("no answer")?.text().into_owned())
}

/// The message that reminds a model of its files, where there are any.
fn show_notebook(request: &ModelRequest) {
    for message in request.messages.iter().filter(|message| message.text().contains("# Memory Index")) {
        println!("The model is reminded:\n{}\n", message.text());
    }
}

fn text(result: &chat_memory::ToolResult) -> String {
    result
        .parts
        .iter()
        .filter_map(|part| if let ResultPart::Text(text) = part { Some(text.as_str()) } else { None })
        .collect()
}
