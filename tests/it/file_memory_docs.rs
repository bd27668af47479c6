//! The transcripts in `docs/file-memory.md` are what happens.

use serde_json::Value;

use crate::file_memory::{call, on_both};

/// A call and what it is answered, from a block of the page.
struct Exchange {
    tool: String,
    arguments: Value,
    answer: String,
}

fn exchanges(page: &str) -> Vec<Exchange> {
    let blocks = page.split("```transcript\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut exchanges: Vec<Exchange> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        let call =
            line.split_once(' ').filter(|(tool, _)| *tool == "memory" || tool.to_lowercase().starts_with("file"));
        match call.and_then(|(tool, rest)| serde_json::from_str(rest).ok().map(|arguments| (tool, arguments))) {
            Some((tool, arguments)) => {
                exchanges.push(Exchange { tool: tool.into(), arguments, answer: String::new() });
            }
            None => exchanges.last_mut().unwrap().answer += &format!("{line}\n"),
        }
    }
    exchanges
}

#[test]
fn every_transcript_is_what_happens() {
    let exchanges = exchanges(include_str!("../../docs/file-memory.md"));
    assert!(exchanges.len() > 35, "{}", exchanges.len());
    on_both(|files| {
        for Exchange { tool, arguments, answer } in &exchanges {
            let output = call(files, tool, arguments.clone());
            let shown = if output.is_error { format!("✗ {}", output.text) } else { output.text };
            // A blank line stands between an answer and the next call.
            assert_eq!(shown.trim_end_matches('\n'), answer.trim_end_matches('\n'), "{tool} {arguments}");
        }
    });
    let offered =
        [chat_memory::ToolNames::Original, chat_memory::ToolNames::Current, chat_memory::ToolNames::Anthropic];
    for tool in offered.iter().flat_map(|set| set.definitions()) {
        assert!(exchanges.iter().any(|exchange| exchange.tool == tool.name), "{} is not shown", tool.name);
    }
    for command in ["view", "create", "str_replace", "insert", "delete", "rename"] {
        assert!(exchanges.iter().any(|exchange| exchange.arguments["command"] == command), "{command} is not shown");
    }
}
