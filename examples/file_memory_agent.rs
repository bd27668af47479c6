//! An agent with a notebook: it saves what it finds, writes a report from it, and reads the report back in a later process.
//!
//! `cargo run --example file_memory_agent`
//!
//! The model is scripted, so this runs offline; the loop around it is the one a real model needs. The program starts itself a
//! second time for the later process.

use std::path::Path;
use std::process::Command;

use chat_memory::{ContextProvider, FileMemory, LocalFileStore, Message, ToolCall};
use serde_json::{Value, json};

const SESSION: &str = "phone-sales";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(root) = std::env::args_os().nth(1) {
        return later(Path::new(&root));
    }
    let root = tempfile::tempdir()?;
    let files = FileMemory::new(LocalFileStore::open(root.path())?);
    let mut report = String::from("# Phone sales 2022 to 2024\n\nNorth grew each year; West fell behind.\n\n");
    let mut script = Vec::new();
    for (year, [north, east, west]) in [(2022, [10, 20, 30]), (2023, [15, 21, 25]), (2024, [22, 23, 19])] {
        let table = format!(
            "| maker | units (millions) |\n|---|---|\n| North | {north} |\n| East | {east} |\n| West | {west} |\n"
        );
        let description = format!("Phone sales of three makers in {year}, a table");
        script.push(call(
            "FileMemory_SaveFile",
            json!({ "fileName": format!("sales-{year}.md"), "content": table, "description": description }),
        ));
        script.push(call("FileMemory_ReadFile", json!({ "fileName": format!("sales-{year}.md") })));
        report += &format!("## {year}\n\nAbout {} million phones in all.\n\n{table}\n", north + east + west);
    }
    assert!(report.split_whitespace().count() < 500);
    script.push(call(
        "FileMemory_SaveFile",
        json!({ "fileName": "report.md", "content": report, "description": "Report on the sales of three years" }),
    ));
    run(
        &files,
        "Find the sales of three phone makers over three years, and write a report of under 500 words.",
        &script,
    )?;

    // A later process knows nothing but the session's id.
    let status = Command::new(std::env::current_exe()?).arg(root.path()).status()?;
    assert!(status.success());
    Ok(())
}

fn later(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    println!("\n== A later process ==");
    let files = FileMemory::new(LocalFileStore::open(root)?);
    let script = [
        call("FileMemory_SearchFiles", json!({ "regexPattern": "north", "filePattern": "sales-*" })),
        call("FileMemory_ReadFile", json!({ "fileName": "report.md" })),
    ];
    let report = run(&files, "What did the report say?", &script)?;
    assert!(report.starts_with("# Phone sales 2022 to 2024"));
    Ok(())
}

/// The loop of an agent: show the model its context and the turn so far, answer its calls until it has none left.
fn run(files: &FileMemory, question: &str, script: &[ToolCall]) -> Result<String, Box<dyn std::error::Error>> {
    let mut turn = vec![Message::user(question)];
    for step in 0.. {
        let context = files.context(SESSION)?;
        if step == 0 {
            for message in &context.messages {
                println!("The model is reminded:\n{}\n", message.text());
            }
        }
        // A real model gets the context in front of the turn, and the context's tools; this one follows its script.
        let Some(call) = script.get(step) else { break };
        turn.push(Message::assistant("").with_tool_call(&call.id, &call.name, &call.arguments));
        let output = files.answer(SESSION, call)?.ok_or("an unknown tool")?;
        println!("{} {:.70}…\n    {:.200}", call.name, call.arguments, output.text.replace('\n', "\n    "));
        turn.push(output.into_message(call));
    }
    let last = turn.last().and_then(|message| message.tool_results().next().cloned());
    match last.and_then(|result| result.parts.into_iter().next()) {
        Some(chat_memory::ResultPart::Text(text)) => Ok(text),
        _ => Err("the script ends without a result".into()),
    }
}

fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new("call-1", tool, arguments.to_string())
}
