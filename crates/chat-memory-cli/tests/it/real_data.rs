//! Real conversations of every form: in, out in every form, and in again.

use std::collections::BTreeMap;
use std::path::Path;

use chat_memory::{ChatHistory, FileChatMemory, HistoryRange, Message};
use serde_json::Value;

use crate::support::{Place, real_data};

/// Folder by folder: how many conversations and messages are stored. What is refused, and why some are fewer than the files hold, is in the
/// comments.
const HELD: [(&str, u64, u64); 8] = [
    ("agent-jsonl", 1, 914),
    // One conversation is in two of the files.
    ("chatgpt-export", 3, 12),
    // Five lines are no lines of a session; a session goes on in a second file under the same id.
    ("claude-code", 4, 27),
    // Each way through the 100 trees from root to leaf: 1,167 different messages.
    ("oasst", 626, 2_198),
    ("openai-chat", 200, 5_308),
    ("provider-recordings", 4, 22),
    ("sharegpt", 1_450, 6_732),
    ("swe-agent", 3, 74),
];

fn files(data: &Path, folder: &str) -> Vec<String> {
    let mut files: Vec<String> = std::fs::read_dir(data.join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path().into_os_string().into_string().unwrap())
        .collect();
    files.sort();
    files
}

#[test]
fn everything_comes_in_is_found_goes_out_in_every_form_and_comes_in_again() {
    let Some(data) = real_data() else { return };
    let place = Place::in_memory();
    let (mut conversations, mut messages) = (0, 0);
    for (folder, expected_conversations, expected_messages) in HELD {
        let mut arguments = vec!["import".to_owned(), "--json".to_owned(), "--prefix".to_owned(), format!("{folder}/")];
        arguments.extend(files(&data, folder));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let said = place.run(&arguments);
        let mut by_status: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for line in said.out.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let (count, sum) = by_status.entry(line["status"].as_str().unwrap().to_owned()).or_default();
            *count += 1;
            *sum += line["messages"].as_u64().unwrap_or_default();
        }
        assert_eq!(by_status["imported"], (expected_conversations, expected_messages), "{folder}: {by_status:?}");
        assert_eq!(said.code, if by_status.contains_key("refused") { 3 } else { 0 }, "{folder}");
        // Again: all of it is there.
        let again = place.run(&arguments);
        assert!(!again.out.contains("\"status\":\"imported\"") && !again.out.contains("\"status\":\"added\""));
        conversations += expected_conversations;
        messages += expected_messages;
    }

    let stats: Value = serde_json::from_str(&place.ok(&["stats", "--json"])).unwrap();
    assert_eq!((stats["conversations"].as_u64(), stats["messages"].as_u64()), (Some(conversations), Some(messages)));
    assert_eq!(place.ok(&["list", "--json"]).lines().count() as u64, conversations);
    assert!(place.ok(&["search", "reservation", "--json"]).lines().count() > 1_000);
    assert!(place.ok(&["verify"]).contains(&format!("{} conversations", indicatif_count(conversations))));

    // Our own form, byte for byte.
    place.ok(&["export", "--all", "-o", "all.jsonl"]);
    place.ok(&["--store", "again", "import", "all.jsonl"]);
    place.ok(&["--store", "again", "export", "--all", "-o", "again.jsonl"]);
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    assert!(read("all.jsonl") == read("again.jsonl"));

    // The others: as many files as conversations, each with all texts in it.
    let memory = place.store();
    for format in ["markdown", "html"] {
        place.ok(&["export", "--all", "-f", format, "-o", format]);
        assert_eq!(std::fs::read_dir(place.path(format)).unwrap().count() as u64, conversations, "{format}");
    }
    for format in ["openai", "anthropic"] {
        place.ok(&["export", "--all", "-f", format, "-o", format]);
        let mut arguments = vec!["--store", format, "import", "--format", format];
        let names: Vec<String> = std::fs::read_dir(place.path(format))
            .unwrap()
            .map(|entry| format!("{format}/{}", entry.unwrap().file_name().to_str().unwrap()))
            .collect();
        arguments.extend(names.iter().map(String::as_str));
        place.ok(&arguments);
        let back = FileChatMemory::open(place.path(format)).unwrap();
        let everything = |memory: &FileChatMemory| -> Vec<String> {
            let mut all: Vec<String> = chat_memory_ids(memory)
                .iter()
                .map(|id| {
                    texts(memory.history(id, HistoryRange::all()).unwrap().into_iter().map(|entry| entry.message))
                })
                .collect();
            all.sort();
            all
        };
        let (before, after) = (everything(&memory), everything(&back));
        assert_eq!(before.len(), after.len(), "{format}");
        let lost = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        assert_eq!(lost, 0, "{format}: conversations that say something else");
    }
}

fn chat_memory_ids(memory: &FileChatMemory) -> Vec<String> {
    let page = memory.conversations(&chat_memory::PageRequest::first(10_000)).unwrap();
    page.items.into_iter().map(|summary| summary.id).collect()
}

/// What people and models said, in its order. System messages stand elsewhere in some forms.
fn texts(messages: impl Iterator<Item = Message>) -> String {
    let said = messages.filter(|message| !message.role().is_system());
    said.map(|message| message.text().into_owned()).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// As the command writes it.
fn indicatif_count(number: u64) -> String {
    let digits = number.to_string();
    let (head, tail) = digits.split_at(digits.len().saturating_sub(3));
    if head.is_empty() { tail.to_owned() } else { format!("{head},{tail}") }
}
