//! The crate's own JSON form says everything.

use std::time::{Duration, UNIX_EPOCH};

use chat_memory::transcript::jsonl;
use chat_memory::{Content, Error, Media, Message, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversations;
use crate::support::real_data;

fn comes_back(messages: &[Message]) {
    let text = jsonl::write(messages).to_json_lines();
    assert_eq!(text.lines().count(), messages.len());
    let import = jsonl::read(&text).unwrap();
    assert_eq!((import.messages.as_slice(), import.warnings.len()), (messages, 0));
    assert_eq!(jsonl::write(&import.messages).to_json_lines(), text);
    assert_eq!(jsonl::read(&jsonl::write(messages).to_json()).unwrap().messages, messages);
}

#[test]
fn real_conversations_come_back_and_are_written_the_same() {
    let Some(data) = real_data() else { return };
    for conversation in conversations::all(&data) {
        comes_back(&conversation.messages);
    }
}

pub fn text() -> impl Strategy<Value = String> {
    prop_oneof!["", "[a-z]{1,8}", "\\PC{0,12}", Just("\u{0}\u{2028}\"\\ 👩‍👩‍👧‍👦\n".to_owned())]
}

pub fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |float| float.is_finite()).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn media() -> impl Strategy<Value = Media> {
    let of_bytes =
        (text(), prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(mime, bytes)| Media::bytes(mime, bytes));
    prop_oneof![
        text().prop_map(Media::url),
        (text(), text()).prop_map(|(url, mime)| Media::url(url).with_mime_type(mime)),
        of_bytes
    ]
}

fn opaque() -> impl Strategy<Value = Opaque> {
    (text(), text()).prop_map(|(provider, json)| Opaque::new(provider, json))
}

pub fn content() -> impl Strategy<Value = Content> {
    let result_part = prop_oneof![
        text().prop_map(ResultPart::Text),
        media().prop_map(ResultPart::Media),
        opaque().prop_map(ResultPart::Opaque),
    ];
    let result = (text(), prop::option::of(text()), prop::collection::vec(result_part, 0..3), any::<bool>());
    let result = result.prop_map(|(id, name, parts, is_error)| {
        let mut result = ToolResult::new(id);
        (result.name, result.parts, result.is_error) = (name, parts, is_error);
        result
    });
    let reasoning = (text(), prop::option::of(text()), prop::option::of(text()));
    let reasoning = reasoning.prop_map(|(text, signature, redacted)| {
        let mut reasoning = Reasoning::new(text);
        (reasoning.signature, reasoning.redacted) = (signature, redacted);
        reasoning
    });
    prop_oneof![
        text().prop_map(Content::Text),
        media().prop_map(Content::from),
        (text(), text(), text()).prop_map(|(id, name, arguments)| ToolCall::new(id, name, arguments).into()),
        result.prop_map(Content::from),
        reasoning.prop_map(Content::from),
        opaque().prop_map(Content::from),
    ]
}

/// Any message that there can be.
pub fn any_message() -> impl Strategy<Value = Message> {
    let role = prop::sample::select(vec![Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool]);
    let time = prop::option::of((any::<bool>(), 0_u64..1 << 40, 0_u32..1_000_000_000));
    let fields = (prop::option::of(text()), prop::option::of(text()), time);
    let metadata = prop::collection::vec((text(), json_value()), 0..4);
    (role, prop::collection::vec(content(), 0..4), fields, metadata).prop_map(
        |(role, content, (id, name, time), metadata)| {
            let mut message = Message::new(role, content);
            if let Some(id) = id {
                message = message.with_id(id);
            }
            if let Some(name) = name {
                message = message.with_name(name);
            }
            if let Some((before, seconds, nanoseconds)) = time {
                let distance = Duration::new(seconds, nanoseconds);
                message = message.with_created_at(if before { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance });
            }
            metadata.into_iter().fold(message, |message, (key, value)| message.with_metadata(key, value))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_message_comes_back_from_its_line(messages in prop::collection::vec(any_message(), 0..4)) {
        comes_back(&messages);
    }

    #[test]
    fn any_message_comes_back_from_its_file(messages in prop::collection::vec(any_message(), 1..4)) {
        let directory = tempfile::tempdir().unwrap();
        use chat_memory::ChatMemory;
        crate::support::quick(directory.path()).add("c", &messages).unwrap();
        prop_assert_eq!(crate::support::quick(directory.path()).get("c").unwrap(), messages);
    }
}

#[test]
fn what_is_not_of_the_form_is_refused_with_its_place_and_never_quoted() {
    for (line, reason) in [
        (json!({"role": "canary", "content": []}), "the role is none of"),
        (json!({"role": "user"}), "another type"),
        (json!({"role": "user", "content": [], "canary": 1}), "another type"),
        (json!({"role": "user", "content": [{"type": "canary"}]}), "another type"),
        (json!({"role": "user", "content": [{"type": "media"}]}), "either a `url` or `base64`"),
        (json!({"role": "user", "content": [{"type": "media", "base64": "canary"}]}), "not base64"),
        (json!({"role": "user", "content": [], "created_at": "canary"}), "`created_at`"),
        (
            json!({"role": "tool", "content": [{"type": "tool_result", "call_id": "c", "parts": [
            {"type": "reasoning", "text": "canary"}]}]}),
            "only text, media and opaque",
        ),
    ] {
        let text = format!("{{\"role\":\"user\",\"content\":[]}}\n{line}\n");
        let error = jsonl::read(&text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        match error {
            Error::InvalidTranscript { line: 2, reason: found, .. } => assert!(found.contains(reason), "{found}"),
            other => panic!("{other:?}"),
        }
    }
    let import = jsonl::read(r#"{"role":"user","content":[{"type":"text","text":"\ud800"}]}"#).unwrap();
    assert_eq!((import.messages[0].text().as_ref(), import.warnings.len()), ("\u{fffd}", 1));
}

#[test]
fn the_deepest_metadata_that_a_store_takes_comes_back() {
    use chat_memory::{ChatMemory, InMemoryChatMemory};
    let memory = InMemoryChatMemory::new();
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let stored = |levels: usize| {
        let message = [Message::user("x").with_metadata("deep", nested(levels))];
        memory.add("c", &message).is_ok().then_some(message)
    };
    let deepest = (1..200).rev().find_map(stored).unwrap();
    comes_back(&deepest);
    assert!(stored(119).is_some() && stored(120).is_none());
}
