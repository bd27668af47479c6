//! Messages go in and come out: order, wholeness, ids, size.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use chat_memory::transcript::openai;
use chat_memory::{
    ChatHistory, ChatMemory, Content, Durability, Error, FileChatMemory, InMemoryChatMemory, Media, Message, Opaque,
    PageRequest, Reasoning, ResultPart, Role, ToolResult,
};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::sim_disk::SimDisk;
use crate::support::{quick, texts};

/// Adds messages one by one and as a batch, and finds them equal at once and after a restart.
fn comes_back(messages: &[Message]) {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    let in_memory = InMemoryChatMemory::new();
    for message in messages {
        memory.add("one by one", std::slice::from_ref(message)).unwrap();
        in_memory.add("one by one", std::slice::from_ref(message)).unwrap();
    }
    memory.add("batch", messages).unwrap();
    for id in ["one by one", "batch"] {
        assert_eq!(memory.get(id).unwrap(), messages, "{id}");
    }
    assert_eq!(in_memory.get("one by one").unwrap(), messages);
    drop(memory);
    let memory = quick(directory.path());
    for id in ["one by one", "batch"] {
        assert_eq!(memory.get(id).unwrap(), messages, "{id} after a restart");
    }
}

#[test]
fn the_order_is_that_of_adding_whatever_the_times_say() {
    let numbered = |time: fn(u64) -> Option<Duration>| -> Vec<Message> {
        let message = |number| {
            let message = Message::user(format!("{number:02}"));
            time(number).map_or(message.clone(), |time| message.with_created_at(UNIX_EPOCH + time))
        };
        (0..50).map(message).collect()
    };
    comes_back(&numbered(|_| None));
    comes_back(&numbered(|_| Some(Duration::from_secs(1_700_000_000))));
    comes_back(&numbered(|number| Some(Duration::from_secs(1_700_000_000 - number))));
}

#[test]
fn text_beside_a_tool_call_is_kept() {
    comes_back(&[Message::assistant("Let me look that up.").with_tool_call("c1", "search", r#"{"q":"tide table"}"#)]);
}

#[test]
fn no_content_empty_text_and_blank_text_stay_three_things() {
    let read = openai::read(
        r#"[{"role":"user","content":"hi"},{"role":"assistant","content":""},{"role":"assistant","content":[]},
            {"role":"assistant","content":[{"type":"text","text":""}]},{"role":"assistant","content":" \n"},
            {"role":"user","content":"still there?"}]"#,
    );
    let messages = read.unwrap().messages;
    let lengths: Vec<usize> = messages.iter().map(|message| message.content().len()).collect();
    assert_eq!(lengths, [1, 1, 0, 1, 1, 1]);
    comes_back(&messages);
}

#[test]
fn a_failed_tool_result_stays_a_failure() {
    let text = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"e1","type":"function","function":{"name":"rm","arguments":"{}"}}]}
        {"role":"tool","tool_call_id":"e1","content":"permission denied","is_error":true}"#;
    let messages = openai::read(text).unwrap().messages;
    assert!(messages[1].tool_results().all(|result| result.is_error));
    comes_back(&messages);
}

#[test]
fn every_combination_of_absent_fields_comes_back() {
    let mut messages = Vec::new();
    for bits in 0_u32..64 {
        let has = |bit: u32| bits & (1 << bit) != 0;
        let mut message = Message::new(Role::Assistant, has(0).then(|| Content::Text("text".into())));
        if has(1) {
            message = message.with_tool_call("c", "f", "{}");
        }
        if has(2) {
            message = message.with_name("name");
        }
        if has(3) {
            message = message.with_metadata("key", json!(null));
        }
        if has(4) {
            message = message.with_created_at(UNIX_EPOCH);
        }
        if has(5) {
            message = message.with_id("id");
        }
        messages.push(message);
    }
    comes_back(&messages);
}

#[test]
fn every_kind_of_content_comes_back() {
    let arguments = ["{}", "{\"a\":1.0}", "{ \"a\" : 1 }", "{broken", "", "\u{0}"];
    let calls = arguments.iter().fold(Message::assistant("calls"), |m, text| m.with_tool_call("same id", "f", *text));
    let results = ToolResult::new("same id")
        .with_text("text")
        .with_part(ResultPart::Media(Media::bytes("image/png", vec![0, 1, 255])))
        .with_part(ResultPart::Opaque(Opaque::new("p", "{}")))
        .with_error();
    comes_back(&[
        Message::system("s"),
        Message::developer("d"),
        Message::user("u").with_media(Media::url("https://example.org/a.png").with_mime_type("image/png")),
        Message::user("").with_media(Media::bytes("application/octet-stream", vec![7; 1 << 20])),
        Message::user("empty").with_media(Media::bytes("image/png", [])),
        calls,
        Message::new(Role::Tool, []).with_content(results).with_content(ToolResult::new("other")),
        Message::new(Role::Assistant, [])
            .with_content(Reasoning::new("thought").with_signature("signature"))
            .with_content(Reasoning::new("").with_redacted("sealed"))
            .with_content(Opaque::new("anthropic", r#"{"type":"server_tool_use",  "n": 1e2}"#)),
        Message::user("\u{0} \u{200f}שלום \u{202e}abc👩‍👩‍👧‍👦 \u{2028}\u{fffd} e\u{301}"),
        Message::user("m")
            .with_metadata("u", u64::MAX)
            .with_metadata("i", i64::MIN)
            .with_metadata("f", 1.0e-7)
            .with_metadata("nested", json!({"b": [null, {"a": []}], "a": "x"}))
            .with_metadata("null", Value::Null),
    ]);
}

#[test]
fn metadata_that_would_not_come_back_is_refused_by_name_and_nothing_is_stored() {
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let batch = [Message::user("fine"), Message::user("deep").with_metadata("deep", deep)];
    let directory = tempdir().unwrap();
    let file = quick(directory.path());
    for memory in [&file as &dyn ChatMemory, &InMemoryChatMemory::new()] {
        match memory.add("c", &batch) {
            Err(Error::InvalidMessage { index: 1, reason }) => assert!(reason.contains("metadata"), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(memory.get("c").unwrap(), []);
    }
}

#[test]
fn ids_that_look_alike_are_conversations_of_their_own() {
    let outside = tempdir().unwrap();
    let store = outside.path().join("store");
    let memory = quick(&store);
    let ids = [
        "a.b",
        "a:b",
        "a/b",
        "a_b",
        "a b",
        "A.B",
        "../../etc/passwd",
        "..",
        ".",
        "/abs",
        "C:\\win",
        "a\\b",
        "CON",
        "a\u{1}b",
        "nul\u{0}byte",
        " lead",
        "trail. ",
        "caf\u{e9}",
        "cafe\u{301}",
        "🎉",
        "line\nbreak",
    ];
    for id in ids {
        memory.add(id, &[Message::user(format!("from {id}"))]).unwrap();
    }
    let long = "x".repeat(1 << 20);
    memory.add(&long, &[Message::user("long")]).unwrap();
    for id in ids {
        assert_eq!(texts(&memory.get(id).unwrap()), [format!("from {id}")]);
    }
    assert_eq!(texts(&quick(&store).get(&long).unwrap()), ["long"]);
    // Nothing but files named by hashes, in the store's own directory.
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    for entry in fs::read_dir(&store).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stem = name.strip_suffix(".bin").unwrap();
        assert!(stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    }
}

#[test]
fn a_blank_id_is_refused() {
    let directory = tempdir().unwrap();
    let file = quick(directory.path());
    for memory in [&file as &dyn ChatMemory, &InMemoryChatMemory::new()] {
        for id in ["", " ", "\t\n", "\u{a0}"] {
            assert!(matches!(memory.add(id, &[Message::user("x")]), Err(Error::InvalidConversationId)));
            assert!(matches!(memory.get(id), Err(Error::InvalidConversationId)));
            assert!(matches!(memory.clear(id), Err(Error::InvalidConversationId)));
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn reading_and_adding_nothing_creates_nothing() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    for number in 0..100_000 {
        assert_eq!(memory.get(&format!("ghost-{number}")).unwrap(), []);
    }
    memory.add("ghost", &[]).unwrap();
    memory.clear("ghost").unwrap();
    assert_eq!(memory.conversations_in_use(), 0);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn open_files_follow_use_and_not_all_that_was_seen() {
    let directory = tempdir().unwrap();
    let memory =
        FileChatMemory::builder(directory.path()).durability(Durability::Process).max_open_files(10).open().unwrap();
    for number in 0..200 {
        memory.add(&format!("{number}"), &[Message::user("x")]).unwrap();
        assert!(memory.conversations_in_use() <= 10);
    }
    for number in 0..200 {
        assert_eq!(memory.get(&format!("{number}")).unwrap().len(), 1);
    }
    assert!(memory.conversations_in_use() <= 10);
}

#[test]
fn a_cleared_conversation_stays_cleared() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("c", &[Message::user("hello 1")]).unwrap();
    memory.add("other", &[Message::user("other")]).unwrap();
    assert_eq!(memory.get("c").unwrap().len(), 1);
    memory.clear("c").unwrap();
    assert_eq!(memory.get("c").unwrap(), []);
    let memory = quick(directory.path());
    assert_eq!(memory.get("c").unwrap(), []);
    memory.add("c", &[Message::user("hello 2")]).unwrap();
    let memory = quick(directory.path());
    assert_eq!(texts(&memory.get("c").unwrap()), ["hello 2"]);
    assert_eq!(texts(&memory.get("other").unwrap()), ["other"]);
    let listed = memory.conversations(&PageRequest::first(10)).unwrap().items;
    assert_eq!(listed.iter().filter(|item| item.id == "c").count(), 1);
}

#[test]
fn a_message_of_24_megabytes_comes_back_and_a_larger_batch_is_refused_by_size() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    let huge = [Message::user("漢".repeat(8_000_000))];
    memory.add("c", &huge).unwrap();
    assert!(quick(directory.path()).get("c").unwrap() == huge);
    let windowed = FileChatMemory::builder(directory.path()).max_messages(1).open().unwrap();
    assert!(windowed.get("c").unwrap() == huge);

    let small = FileChatMemory::builder(directory.path()).max_batch_bytes(1_000).open().unwrap();
    match small.add("c", &[Message::user("x".repeat(1_001))]) {
        Err(Error::TooLarge { size, limit: 1_000, .. }) => assert!(size > 1_000),
        other => panic!("{other:?}"),
    }
    small.add("c", &[Message::user("x".repeat(900))]).unwrap();
    assert_eq!(memory.get("c").unwrap().len(), 2);
}

#[test]
fn an_add_and_a_windowed_get_do_not_depend_on_the_length_of_the_conversation() {
    let disk = SimDisk::default();
    let open = || {
        let builder = FileChatMemory::builder("/store").max_messages(20).durability(Durability::Process);
        builder.disk(Arc::new(disk.clone())).open().unwrap()
    };
    let memory = open();
    let message = |text: String| [Message::user(text)];
    memory.add("c", &[Message::system("You are terse.")]).unwrap();
    for _ in 0..10_000 {
        memory.add("c", &message("x".repeat(500))).unwrap();
    }
    disk.take_counts();
    memory.add("c", &message("y".to_owned())).unwrap();
    let (read, written) = disk.take_counts();
    assert!(read < 100 && written < 200, "an add read {read} bytes and wrote {written}");
    // The end, in steps that double, and the system message at the beginning.
    for (memory, name) in [(memory, "warm"), (open(), "cold")] {
        assert_eq!(memory.get("c").unwrap().len(), 20);
        let (read, written) = disk.take_counts();
        assert!(read < 50_000 && written == 0, "a {name} get read {read} bytes of 6 MB");
    }
}

#[test]
fn a_lone_surrogate_becomes_a_replacement_character_with_a_warning() {
    let text = "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"cut here \\ud83d\"}\n{\"role\":\"user\",\"content\":\"next\"}\n";
    let import = openai::read(text).unwrap();
    assert_eq!(texts(&import.messages), ["cut here \u{fffd}", "next"]);
    assert_eq!(import.warnings.len(), 1);
    assert_eq!(import.warnings[0].position, 0);
    let export = openai::write(&import.messages).to_json_lines();
    for line in export.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    comes_back(&import.messages);
}

#[test]
fn line_separators_inside_a_message_do_not_break_json_lines() {
    let message = Message::user("one\u{2028}two\u{2029}three\r\nfour\u{202e}abc\u{200d}\n");
    let lines = openai::write(std::slice::from_ref(&message)).to_json_lines();
    assert_eq!(lines.split('\n').count(), 2); // the second is empty
    assert_eq!(openai::read(&lines).unwrap().messages, std::slice::from_ref(&message));
    comes_back(&[message]);
}

#[test]
fn no_length_of_text_before_an_emoji_makes_anything_panic() {
    let messages: Vec<Message> =
        (50..=64).map(|length| Message::user(format!("{}🎉🎉🎉👩‍👩‍👧‍👦→→", "t".repeat(length)))).collect();
    comes_back(&messages);
    assert!(!format!("{messages:?}").contains('t'.to_string().repeat(50).as_str()));
}

#[cfg(unix)]
#[test]
fn directory_and_files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let outside = tempdir().unwrap();
    let store = outside.path().join("deep/store");
    let memory = quick(&store);
    memory.add("c", &[Message::user("x")]).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&store), 0o700);
    assert_eq!(mode(&outside.path().join("deep")), 0o700);
    assert_eq!(mode(&memory.path("c")), 0o600);
}

#[test]
fn a_failed_question_that_was_not_added_leaves_no_trace_for_the_retry() {
    // A backend remembers question and answer together, after the model answered.
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    assert_eq!(memory.get("c").unwrap(), []);
    memory.add("c", &[Message::user("book it"), Message::assistant("booked")]).unwrap();
    assert_eq!(texts(&memory.get("c").unwrap()), ["book it", "booked"]);
}
