//! Nothing that a file may hold makes a reader panic, hang, or give two conversations one id.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{conversations, refused};
use crate::import::{Format, read};

/// The words that readers look for.
const WORDS: [&str; 72] = [
    "role",
    "content",
    "user",
    "assistant",
    "tool",
    "system",
    "function",
    "developer",
    "messages",
    "message",
    "type",
    "text",
    "tool_calls",
    "tool_call_id",
    "tool_call_ids",
    "function_call",
    "name",
    "arguments",
    "id",
    "created_at",
    "metadata",
    "conversation",
    "seq",
    "recorded_at",
    "0",
    "1.000000000",
    "input",
    "output",
    "request",
    "response",
    "body",
    "choices",
    "history",
    "traj",
    "trajectory",
    "from",
    "value",
    "human",
    "gpt",
    "conversations",
    "chosen",
    "observation",
    "mapping",
    "current_node",
    "parent",
    "children",
    "author",
    "parts",
    "content_type",
    "recipient",
    "thoughts",
    "data",
    "ai",
    "kwargs",
    "lc",
    "constructor",
    "session_id",
    "sessionId",
    "uuid",
    "parentUuid",
    "isSidechain",
    "session",
    "toolResult",
    "toolCall",
    "conversation_id",
    "timestamp",
    "USER",
    "TOOL",
    "prompt",
    "replies",
    "prompter",
    "function_call_output",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![9 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => any::<String>()]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        let object = proptest::collection::vec((word(), inner.clone()), 0..8);
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(Value::from),
            object.prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Reads a text in every form.
fn read_all(text: &str) {
    for format in Format::ALL.map(Some).into_iter().chain([None]) {
        let Ok(archive) = read("file.json", text, format) else { continue };
        let lines = text.lines().count() + 1;
        assert!(
            refused(&archive).iter().all(|refused| refused.line >= 1 && refused.line <= lines && refused.column >= 1)
        );
        let all = conversations(archive);
        let ids: HashSet<&str> = all.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids.len(), all.len(), "{format:?}");
        assert!(ids.iter().all(|id| !id.trim().is_empty()), "{format:?}");
        // The same again.
        let again = conversations(read("file.json", text, format).unwrap());
        assert_eq!(format!("{all:?}"), format!("{again:?}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_json_is_read_or_refused(values in proptest::collection::vec(json(), 1..5)) {
        read_all(&Value::from(values.clone()).to_string());
        read_all(&values.iter().map(|value| format!("{value}\n")).collect::<String>());
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), cut in 0..200_usize, value in json()) {
        read_all(&text);
        let json = value.to_string();
        let cut = json.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(json.len());
        read_all(&json[..cut]);
        read_all(&format!("conversation_id,content,type,timestamp\n{text}"));
    }
}

#[test]
fn values_that_nest_deeply_are_read_in_no_time() {
    let deep = "{\"role\":\"user\",\"content\":[".repeat(5_000) + &"]}".repeat(5_000);
    let list = "[".repeat(50_000) + &"]".repeat(50_000);
    let begin = Instant::now();
    for inner in [deep.as_str(), list.as_str(), &"[".repeat(50_000)] {
        for before in [
            "{\"messages\":",
            "{\"role\":\"user\",\"content\":",
            "{\"role\":\"user\",\"content\":\"x\",\"more\":",
            "{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":",
            "{\"conversations\":",
            "{\"conversations\":[{\"from\":\"human\",\"value\":\"x\",\"more\":",
            "{\"title\":\"t\",\"mapping\":",
            "{\"type\":\"user\",\"sessionId\":\"s\",\"message\":",
            "{\"type\":\"human\",\"data\":",
            "{\"conversation_id\":\"a\",\"type\":\"USER\",\"content\":",
            "{\"type\":\"message\",\"message\":",
            "{\"message_tree_id\":\"t\",\"prompt\":",
            "{\"input\":",
            "{\"request\":",
        ] {
            let end = if before.contains('[') { "}]}" } else { "}" };
            for format in Format::ALL.map(Some).into_iter().chain([None]) {
                _ = read("x.json", &format!("{before}{inner}{end}"), format);
            }
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn leftovers_that_nest_deeply_can_be_stored() {
    let deep = "[".repeat(125) + &"]".repeat(125);
    let text = format!("[{{\"conversations\":[{{\"from\":\"human\",\"value\":\"x\",\"more\":{deep}}}]}}]");
    let all = conversations(read("x.json", &text, Some(Format::ShareGpt)).unwrap());
    let kept = &super::messages(&all[0])[0].metadata().get("sharegpt").unwrap()["fields"]["more"];
    assert_eq!(kept, &Value::from(deep));
}

#[test]
fn many_lines_many_errors_and_many_equal_ids_take_a_time_in_proportion() {
    let begin = Instant::now();
    let good = "{\"id\":\"same\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n";
    let text = (good.to_owned() + "{\"broken\n").repeat(20_000);
    let archive = read("x.jsonl", &text, None).unwrap();
    assert_eq!((archive.conversations.len(), refused(&archive).len()), (40_000, 20_000));
    assert_eq!(archive.conversations[39_998].as_ref().unwrap().id, "same#20000");
    let open = "{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"f\",\"arguments\":{}},".repeat(50_000);
    let call = format!(
        "{{\"type\":\"message\",\"message\":{{\"role\":\"assistant\",\"content\":[{}]}}}}\n",
        open.trim_end_matches(',')
    );
    let result = "{\"type\":\"message\",\"message\":{\"role\":\"toolResult\",\"toolCallId\":\"d\",\"content\":[]}}\n";
    assert_eq!(conversations(read("x.jsonl", &(call + &result.repeat(20_000)), None).unwrap()).len(), 1);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}
