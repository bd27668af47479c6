//! Session files of Claude Code.

use chat_memory::{Content, Role};
use serde_json::{Value, json};

use super::{conversations, messages, refused};
use crate::import::{Archive, Format, read};

fn line(kind: &str, uuid: &str, message: Value) -> Value {
    json!({"type": kind, "uuid": uuid, "sessionId": "s", "timestamp": "2025-06-14T11:00:00Z", "message": message})
}

fn imported(lines: &[Value]) -> Archive {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let archive = read("talk.jsonl", &text, None).unwrap();
    assert_eq!(archive.format, Format::ClaudeCode);
    archive
}

#[test]
fn an_answer_in_several_lines_is_one_message_and_results_follow_it() {
    let answer = |block: Value| json!({"id": "m", "type": "message", "role": "assistant", "content": [block]});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {"x": 1}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "r"});
    let all = conversations(imported(&[
        line("user", "1", json!({"role": "user", "content": "a"})),
        line("assistant", "2", answer(json!({"type": "thinking", "thinking": "t", "signature": "s"}))),
        line("assistant", "3", answer(call("a"))),
        line("assistant", "4", answer(call("b"))),
        line("user", "5", json!({"role": "user", "content": [result("a"), {"type": "text", "text": "x"}]})),
        line("user", "6", json!({"role": "user", "content": [result("b")]})),
        json!({"type": "summary", "summary": "A talk", "leafUuid": "3"}),
        json!({"type": "file-history-snapshot"}),
    ]));
    assert_eq!((all.len(), all[0].id.as_str(), all[0].title.as_deref()), (1, "s", Some("A talk")));
    let said = messages(&all[0]);
    assert_eq!(said.iter().map(|said| said.id().unwrap()).collect::<Vec<_>>(), ["1", "2", "5", "5/1", "6"]);
    assert_eq!(said[1].tool_calls().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(matches!(said[1].content()[0], Content::Reasoning(_)));
    assert_eq!((said[2].role(), said[3].role()), (Role::Tool, Role::User));
    assert_eq!(said[1].metadata().get("claude-code").unwrap()["message_id"], "m");
    assert!(said.iter().all(|message| message.created_at().is_some()));
    assert_eq!(all[0].notes.len(), 2, "{:?}", all[0].notes);
}

#[test]
fn helpers_have_conversations_of_their_own() {
    let helper = |uuid: &str, parent: Value| {
        let mut line = line("user", uuid, json!({"role": "user", "content": uuid}));
        line["isSidechain"] = true.into();
        line["parentUuid"] = parent;
        line
    };
    let mut known = helper("f", Value::Null);
    known["agentId"] = "x".into();
    let all = conversations(imported(&[
        line("user", "a", json!({"role": "user", "content": "a"})),
        helper("b", "a".into()),
        helper("c", "b".into()),
        helper("d", Value::Null),
        helper("e", "c".into()),
        known,
    ]));
    let shape: Vec<_> = all.iter().map(|one| (one.id.as_str(), messages(one).len())).collect();
    assert_eq!(shape, [("s", 1), ("s/agent-0", 3), ("s/agent-1", 1), ("s/agent-x", 1)]);
}

#[test]
fn lines_that_are_no_lines_are_refused_by_number_and_the_others_come_in() {
    let archive = imported(&[
        line("user", "1", json!({"role": "user", "content": "a"})),
        json!("secret"),
        json!({"secret": "secret"}),
        json!([3]),
        line("user", "2", json!("secret")),
        line("user", "3", json!({"role": "secret", "content": "secret"})),
        line("user", "4", json!({"role": "user", "contents": "misspelt"})),
        json!({"type": "user", "message": {"role": "user", "content": "of no session"}}),
    ]);
    let lost = refused(&archive);
    assert_eq!(lost.iter().map(|lost| lost.line).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
    assert!(lost.iter().all(|lost| !lost.to_string().contains("secret")));
    let all = conversations(archive);
    assert_eq!((messages(&all[0]).len(), all[0].notes[0].as_str()), (2, "a message has no `content` (line 7)"));
    assert_eq!(all[1].id, "talk");
}
