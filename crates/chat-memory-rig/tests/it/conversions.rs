//! Messages of others in rig's form, and what other readers see of rig's.

use std::time::SystemTime;

use chat_memory::transcript::anthropic;
use chat_memory::{ChatMemory, Content, InMemoryChatMemory, Media, Message, Reasoning, ResultPart, Role, ToolResult};
use chat_memory_rig::{RigMemory, from_rig, to_rig};
use proptest::collection::vec;
use proptest::prelude::*;
use rig_core::completion::Message as RigMessage;
use rig_core::completion::message::{
    AssistantContent, AssistantMessage, AudioMediaType, DocumentMediaType, ImageMediaType, Opaque, ToolCall,
    ToolFunction, ToolName, ToolResultContent, UserContent, VideoMediaType,
};
use rig_core::memory::ConversationMemory;
use rig_core::transcript::validate_canonical;
use serde_json::{Value, json};

use crate::lossless::{block_on, config};

fn unsaid(messages: &[Message]) -> Vec<(usize, String)> {
    to_rig(messages).warnings.into_iter().map(|warning| (warning.position, warning.text)).collect()
}

fn parts() -> impl Strategy<Value = Vec<Content>> {
    let media = prop_oneof![
        any::<Vec<u8>>().prop_map(|bytes| Media::bytes("image/png", bytes)),
        Just(Media::url("https://example.com/a").with_mime_type("application/pdf")),
        Just(Media::url("data:image/bmp;base64,AAEC")),
        Just(Media::bytes("audio/x-own", [1])),
    ];
    let result = (any::<String>(), any::<bool>(), vec(media.clone(), 0..2)).prop_map(|(text, is_error, media)| {
        let mut result = media.into_iter().map(ResultPart::Media).fold(ToolResult::new("x"), ToolResult::with_part);
        result.is_error = is_error;
        result.with_text(text)
    });
    let part = prop_oneof![
        any::<String>().prop_map(Content::Text),
        media.prop_map(Content::Media),
        result.prop_map(Content::ToolResult),
        ("x?", "f?", any::<String>()).prop_map(|(id, name, text)| chat_memory::ToolCall::new(id, name, text).into()),
        any::<String>().prop_map(|text| Reasoning::new(text).with_signature("s").into()),
        Just(chat_memory::Opaque::new("openai", "{}").into()),
        Just(chat_memory::Opaque::new("rig", "no JSON").into()),
    ];
    vec(part, 0..4)
}

fn any_of_ours() -> impl Strategy<Value = Message> {
    let roles = prop::sample::select(vec![Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool]);
    let kept = prop_oneof![
        Just(None),
        Just(Some(json!({"joins": [1, -1, "x"], "begins": true}))),
        Just(Some(
            json!({"joins": true, "fields": {"stop": 7}, "parts": {"0": {"type": "?", "native": 1}, "1": [], "2": "{"}})
        )),
        Just(Some(json!({"calls": {"x": [{"id": 1, "function": 2, "native": 3}]}, "results": {"x": {}}}))),
        Just(Some(
            json!({"calls": {"x": {"0": 1}}, "results": {"x": [{"call": [], "parts": {"0": {"type": "json"}}}]}})
        )),
        Just(Some(json!("no object"))),
    ];
    (roles, parts(), kept).prop_map(|(role, content, kept)| {
        let message = Message::new(role, content);
        match kept {
            Some(kept) => message.with_metadata("rig", kept),
            None => message,
        }
    })
}

/// A conversation that rig can say: whole arguments, images of types that it knows, one message of results for each of calls.
fn sayable() -> impl Strategy<Value = Vec<Message>> {
    let image = any::<Vec<u8>>().prop_map(|bytes| Media::bytes("image/webp", bytes));
    let turn = (any::<String>(), image, vec((any::<u64>(), any::<String>(), any::<bool>()), 1..4)).prop_map(
        |(text, image, calls)| {
            let question = Message::user(&text).with_media(image);
            let mut call = Message::assistant(&text).with_content(Reasoning::new("hm"));
            let mut results = Message::new(Role::Tool, []);
            for (id, answer, is_error) in calls {
                call = call.with_tool_call(id.to_string(), "f", json!({"a": id, "b": [text]}).to_string());
                let mut result = ToolResult::new(id.to_string()).with_name("f").with_text(answer);
                result.is_error = is_error;
                results = results.with_content(result);
            }
            [Message::system("s"), question, call, results, Message::assistant(text)]
        },
    );
    vec(turn, 0..3).prop_map(|turns| turns.concat())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_rig_can_say_of_ours_comes_back(messages in sayable()) {
        let rig = to_rig(&messages);
        prop_assert_eq!(&rig.warnings, &[]);
        prop_assert_eq!(from_rig(rig.messages).unwrap(), messages);
    }

    /// Whatever the metadata says: it may be another program's.
    #[test]
    fn of_any_messages_rig_says_what_it_can_and_the_same_again(messages in vec(any_of_ours(), 0..6)) {
        let rig = to_rig(&messages);
        prop_assert!(rig.warnings.iter().all(|warning| warning.position < messages.len()));
        prop_assert!(rig.messages.len() <= messages.len());
        let again = to_rig(&from_rig(rig.messages.clone()).unwrap());
        prop_assert_eq!(again.messages, rig.messages);

        let store = InMemoryChatMemory::new();
        store.add("c", &messages).unwrap();
        block_on(RigMemory::offload(store).load(&"c".into())).unwrap();
    }
}

#[test]
fn what_rig_cannot_say_is_told() {
    let call = Message::new(Role::Assistant, []).with_tool_call("x", "f", "{}");
    let messages = [
        Message::developer("d"),
        Message::user("u").with_name("ann").with_id("m").with_created_at(SystemTime::UNIX_EPOCH).with_metadata("k", 1),
        call.with_content(Reasoning::new("").with_redacted("sealed")).with_media(Media::bytes("audio/wav", [1])),
        Message::tool_result("x", "", "r").with_content(chat_memory::Opaque::new("openai", "{}")),
        Message::new(Role::Assistant, [chat_memory::Opaque::new("anthropic", "{}").into()]),
        Message::user("").with_media(Media::bytes("image/bmp", [1])),
        Message::system("s").with_media(Media::url("u")),
    ];
    let expected = [
        "the role of a developer",
        "name, id, created_at, metadata",
        "the signature of a thought, a sound, video or document in an answer or a result",
        "a tool without a name, a part of a tool message that is no result",
        "a part in a provider's own form",
        "a MIME type",
        "a part of a system message that is no text",
    ];
    let expected: Vec<_> = expected.iter().map(|text| format!("rig cannot say: {text}")).enumerate().collect();
    assert_eq!(unsaid(&messages), expected);
    // Nothing is left of the fifth.
    assert_eq!(to_rig(&messages).messages.len(), 6);
    assert!(!format!("{:?}", to_rig(&[Message::user("canary")])).contains("canary"));
}

#[test]
fn several_tool_messages_are_one_message_of_results_with_names_of_the_calls() {
    let call = Message::new(Role::Assistant, []).with_tool_call("a", "f", "{}").with_tool_call("", "g", "{}");
    let result = |id: &str| Message::new(Role::Tool, [ToolResult::new(id).with_text("r").into()]);
    let messages = [Message::user("u"), call, result("a"), result(""), Message::user("v")];
    let rig = to_rig(&messages);
    assert_eq!(rig.warnings, []);
    assert_eq!(validate_canonical(&rig.messages), Ok(()));
    let RigMessage::User { content } = &rig.messages[2] else { panic!() };
    let names: Vec<&str> = content
        .iter()
        .map(|part| if let UserContent::ToolResult(result) = part { result.name.as_str() } else { "" })
        .collect();
    assert_eq!((names, rig.messages.len()), (vec!["f", "g"], 4));
}

#[test]
fn media_have_the_kind_that_their_type_says() {
    let media = [
        (Media::bytes("image/png", [0, 1, 2]), UserContent::image_base64("AAEC", Some(ImageMediaType::PNG), None)),
        (Media::url("https://a/b"), UserContent::image_url("https://a/b", None, None)),
        (Media::url("data:image/gif;base64,AAEC"), UserContent::image_base64("AAEC", Some(ImageMediaType::GIF), None)),
        (Media::bytes("audio/wav", [0]), UserContent::audio_base64("AA==", Some(AudioMediaType::WAV))),
        (
            Media::url("https://a/b").with_mime_type("video/mp4"),
            UserContent::video_url("https://a/b", Some(VideoMediaType::MP4)),
        ),
        (Media::bytes("text/csv", [0]), UserContent::document_base64("AA==", Some(DocumentMediaType::CSV))),
        (Media::bytes("application/zip", [0]), UserContent::document_base64("AA==", None)),
    ];
    for (media, expected) in media {
        let rig = to_rig(&[Message::new(Role::User, [media.into()])]);
        assert_eq!(rig.messages, [expected.into()]);
    }
}

#[test]
fn other_readers_see_texts_calls_results_and_signatures() {
    let item = json!({"type": "thinking", "thinking": "hm", "signature": "sig"});
    let call = ToolCall::from_wire("x", ToolFunction::parse(ToolName::new("f").unwrap(), r#"{"a": 1"#));
    let json_result = call.result(vec![ToolResultContent::json(json!({"b": [2]})), ToolResultContent::text("c")]);
    let content = vec![
        AssistantContent::reasoning("hm").with_native(item),
        AssistantContent::text("Let me see."),
        AssistantContent::ToolCall(call),
    ];
    let said = vec![
        RigMessage::user("u"),
        RigMessage::Assistant(AssistantMessage::new(content)),
        RigMessage::User { content: vec![UserContent::text("and"), UserContent::ToolResult(json_result)] },
    ];
    let messages = from_rig(said.clone()).unwrap();
    let roles: Vec<Role> = messages.iter().map(Message::role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
    assert_eq!(messages[1].content()[0], Reasoning::new("hm").with_signature("sig").into());
    assert_eq!(messages[1].text(), "Let me see.");
    // As the model wrote it.
    assert_eq!(messages[1].tool_calls().next().unwrap().arguments, r#"{"a": 1"#);
    assert_eq!(messages[2].text(), "{\"b\":[2]}\nc");
    assert_eq!(to_rig(&messages).messages, said);
    let export = anthropic::write(&messages);
    let written: Value = serde_json::from_str(&export.objects[1]).unwrap();
    assert_eq!(written["content"][0], json!({"type": "thinking", "thinking": "hm", "signature": "sig"}));
}

#[test]
fn a_document_of_text_is_one_of_bytes_here() {
    let said = vec![RigMessage::User {
        content: vec![
            UserContent::document_text("# Title", None),
            UserContent::image_raw(vec![1], None, None),
            UserContent::document_base64("no base64", None),
        ],
    }];
    let messages = from_rig(said.clone()).unwrap();
    let mut document = Media::bytes("", "# Title");
    document.mime_type = None;
    assert_eq!(messages[0].content()[0], document.into());
    let Content::Opaque(opaque) = &messages[0].content()[2] else { panic!() };
    assert_eq!(opaque.provider, "rig");
    assert_eq!(to_rig(&messages).messages, said);
}

/// As a window, or another program, leaves them.
#[test]
fn only_what_follows_results_joins_them() {
    let call = Message::new(Role::Assistant, []).with_tool_call("x", "f", "{}");
    let result = Message::tool_result("x", "f", "r");
    let joining = Message::user("v").with_metadata("rig", json!({"joins": true}));
    let messages = |list: &[&Message]| {
        let list: Vec<Message> = list.iter().map(|message| (*message).clone()).collect();
        to_rig(&list).messages.len()
    };
    assert_eq!(messages(&[&call, &result, &joining]), 2);
    assert_eq!(messages(&[&Message::user("u"), &joining]), 2);
    assert_eq!(messages(&[&Message::user("u"), &result]), 2);
    assert_eq!(messages(&[&call, &result, &result]), 2);
    assert_eq!(messages(&[&call, &result, &joining, &joining]), 3);
    assert_eq!(messages(&[&call, &result, &joining, &result]), 3);
}

#[test]
fn a_call_keeps_its_own_id_whatever_the_metadata_says() {
    let call = Message::new(Role::Assistant, []).with_tool_call("x", "f", "{}");
    let call = call.with_metadata("rig", json!({"calls": {"x": [{"id": {"provider": "y"}}]}}));
    let expected = AssistantContent::tool_call("x", ToolName::new("f").unwrap(), json!({}));
    assert_eq!(to_rig(&[call]).messages, [expected.into()]);
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn items_as_deep_as_a_provider_can_send_them_are_stored_and_deeper_ones_are_refused_whole() {
    let turn = |item| vec![RigMessage::user("u"), AssistantContent::text("t").with_native(item).into()];
    for levels in [1, 90, 110, 120, 124] {
        let memory = RigMemory::offload(InMemoryChatMemory::new());
        block_on(async {
            memory.append(&"c".into(), turn(nested(levels))).await.unwrap();
            assert_eq!(memory.load(&"c".into()).await.unwrap(), turn(nested(levels)), "{levels}");
        });
    }
    let memory = RigMemory::offload(InMemoryChatMemory::new());
    let name = || ToolName::new("f").unwrap();
    let call = AssistantContent::tool_call("x", name(), json!({"a": nested(200)}));
    let result =
        ToolCall::from_wire("x", ToolFunction::parse(name(), "")).result(vec![ToolResultContent::json(nested(200))]);
    for deep in [
        turn(nested(200)),
        vec![RigMessage::user("u"), call.into()],
        vec![RigMessage::tool_results(vec![result])],
        vec![AssistantContent::Opaque(Opaque { item: nested(200), replay: true }).into()],
    ] {
        assert!(block_on(memory.append(&"c".into(), deep)).is_err());
    }
    assert_eq!(memory.memory().inner().get("c").unwrap(), []);
}
