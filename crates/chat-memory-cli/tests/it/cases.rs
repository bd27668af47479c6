//! Cases from public bug reports of other projects.

use chat_memory::{ChatMemory, Message};
use serde_json::Value;

use crate::support::Place;

/// https://github.com/anthropics/claude-code/issues/56064 and others: half of a surrogate pair in a stored text.
#[test]
fn half_of_a_surrogate_pair_is_mended_and_told() {
    let place = Place::new();
    place.write(
        "cut.jsonl",
        "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"cut here \\ud83d\"}\n{\"role\":\"user\",\"content\":\"next\"}\n",
    );
    let report = place.ok(&["import", "cut.jsonl", "--format", "openai"]);
    assert!(report.contains("note:") && report.contains("surrogate"), "{report}");
    let exported = place.ok(&["export", "cut", "-f", "openai"]);
    let messages: Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(messages[0]["content"], "cut here \u{fffd}");
    assert_eq!(messages[1]["content"], "next");
}

/// https://github.com/danny-avila/LibreChat/issues/15229: one bad conversation threw away the whole file.
#[test]
fn one_bad_conversation_does_not_take_the_others_along() {
    let place = Place::new();
    place.write(
        "export.json",
        r#"[{"title":"good","current_node":"1","mapping":{"1":{"id":"1","parent":null,"children":[],"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["x"]}}}}},
        {"title":"bad","mapping":"oops"},
        {"title":"hidden","current_node":"2","mapping":{"1":{"id":"1","parent":null,"children":["2"],"message":{"author":{"role":"system"},"metadata":{"is_visually_hidden_from_conversation":true},"content":{"content_type":"user_editable_context","user_profile":"p"}}},"2":{"id":"2","parent":"1","children":[],"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["y"]}}}}}]"#,
    );
    let said = place.run(&["import", "export.json"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("refused bad (export.json:2:"), "{said:?}");
    let exported = place.ok(&["export", "--all"]);
    let texts: Vec<String> = exported
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["message"]["content"][0]["text"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(texts, ["x", "y"]);
}

/// https://github.com/danny-avila/LibreChat/issues/8157: broken JSON was reported as imported.
#[test]
fn broken_json_is_refused_with_line_and_column() {
    let place = Place::new();
    place.write("t.json", r#"[{"title":"t",}]"#);
    let said = place.run(&["import", "t.json", "--format", "chatgpt"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("t.json:1:15"), "{said:?}");
    assert!(place.ok(&["list"]).contains("No conversations"));
}

/// https://github.com/GeniePod/genie-claw/issues/168: the cut of a preview fell into an emoji.
#[test]
fn no_preview_is_cut_inside_a_character() {
    let place = Place::new();
    let memory = place.store();
    for n in 50..64 {
        memory.add(&format!("u3-{n}"), &[Message::user("t".repeat(n) + "🎉🎉🎉👩‍👩‍👧‍👦→→")]).unwrap();
    }
    let listed = place.ok(&["list", "--preview"]);
    assert_eq!(listed.lines().count(), 15, "{listed}");
    place.ok(&["stats"]);
    place.ok(&["show", "u3-50", "--max-chars", "52"]);
}

/// Line separators and marks of direction inside a text.
#[test]
fn an_exported_message_is_one_line_whatever_it_says() {
    let place = Place::new();
    let text = "one\u{2028}two\u{2029}three\r\nfour\u{202e}abc\u{200d}\n";
    place.store().add("u5", &[Message::user(text)]).unwrap();
    let exported = place.ok(&["export", "u5", "--format", "jsonl"]);
    assert_eq!(exported.split_inclusive('\n').count(), 1);
    let said = place.run_with_input(&["import", "-", "--format", "jsonl", "--into", "u5b"], &exported);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(place.store().get("u5b").unwrap(), [Message::user(text)]);
}

/// https://github.com/openai/codex/issues/28866 and others: a list that reads every file whole.
#[test]
fn a_list_reads_no_conversation_whole() {
    let place = Place::new();
    let memory = place.store();
    for n in 0..50 {
        let id = format!("h2-{n}");
        for _ in 0..10 {
            memory.add(&id, &[Message::user("x".repeat(100_000))]).unwrap();
        }
        // Whoever reads the middle of the file sees damage there.
        let path = memory.path(&id);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[500_000] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let listed = place.run(&["list", "--json"]);
    assert_eq!((listed.code, listed.out.lines().count(), listed.err.as_str()), (0, 50, ""), "{listed:?}");
    for line in listed.out.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["messages"], &line["damage"]), (&Value::from(10), &Value::Array(Vec::new())));
    }
    assert_eq!(place.run(&["verify"]).code, 3);
}

/// One very large message.
#[test]
fn a_very_large_message_comes_back_and_is_cut_at_a_character() {
    let place = Place::new();
    let text = "漢".repeat(8_000_000);
    place.store().add("h4", &[Message::user(&*text)]).unwrap();
    assert!(place.store().get("h4").unwrap() == [Message::user(text)]);
    let shown = place.ok(&["show", "h4", "--max-chars", "30000"]);
    assert_eq!(shown.matches('漢').count(), 30_000);
    assert!(shown.contains("7970000 more characters"));
}
