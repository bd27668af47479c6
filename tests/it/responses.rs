//! The items of the Responses API: what they say comes back, and what is not of the form is refused with its place.

use chat_memory::transcript::responses;
use chat_memory::{Content, Media, Message, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::anthropic::{beside, json_object, refused};
use crate::jsonl;

pub fn read(json: &Value) -> Vec<Message> {
    let import = responses::read(&json.to_string()).unwrap();
    assert_eq!(import.warnings, []);
    import.messages
}

/// What is written for what was read.
pub fn rewritten(json: &Value) -> Value {
    let export = responses::write(&read(json));
    assert_eq!(export.warnings, []);
    serde_json::from_str(&export.to_json()).unwrap()
}

#[test]
fn everything_that_the_form_says_is_written_as_it_was_read() {
    let items = json!([
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
        {"type": "message", "role": "user", "status": "completed", "content": [
            {"type": "input_text", "text": "look", "more": 1},
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAH/"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAH_"},
            {"type": "input_image", "file_id": "file-1"},
            {"type": "input_file", "file_data": "data:application/pdf;base64,AAH/", "filename": "a.pdf"},
            {"type": "input_file", "file_data": "data:image/png;base64,AAH/"},
            {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            {"type": "input_file", "file_id": "file-2"},
            {"type": "something_new", "x": [1, 2.50]}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
        {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]},
        {"type": "reasoning", "id": "rs_3", "summary": [], "content": [{"type": "reasoning_text", "text": "c"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "a", "annotations": [], "logprobs": []},
            {"type": "refusal", "refusal": "no"}, {"type": "output_text", "text": "b"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "input_text", "text": "another"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{\"a\": 1"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "while it runs"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "still"}]},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "free text"},
        {"type": "function_call_output", "call_id": "c1", "output": "r", "status": "completed"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [
            {"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:image/png;base64,AAH/", "detail": "low"}]},
        {"type": "message", "role": "assistant", "content": []},
        {"type": "message", "role": "user", "content": []},
    ]);
    assert_eq!(rewritten(&items), items);
    let messages = read(&items);
    let roles: Vec<&str> = messages.iter().map(|message| message.role().as_str()).collect();
    let expected = ["developer", "user", "assistant", "assistant", "tool", "tool", "assistant", "user"];
    assert_eq!(roles, expected);
    let lines = responses::write(&messages).to_json_lines();
    assert_eq!(responses::read(&lines).unwrap().messages, messages);
}

#[test]
fn what_is_read_is_what_the_form_means() {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "sealed"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}]);
    let request = json!({"model": "m", "instructions": "s", "input": [
        {"role": "user", "content": "u"}, output[0], output[1],
        {"type": "function_call_output", "call_id": "c1", "output": "r"}]});
    let kept = json!({"parts": {"0": {"id": "rs_1", "type": "reasoning"}}});
    let asked = Message::new(Role::Assistant, [Reasoning::new("hm").with_redacted("sealed").into()])
        .with_tool_call("c1", "f", "{}")
        .with_metadata("openai-responses", kept);
    let result = Message::new(Role::Tool, [ToolResult::new("c1").with_text("r").into()]);
    assert_eq!(read(&request), [Message::system("s"), Message::user("u"), asked.clone(), result.clone()]);
    // A response repeats the instructions of its request.
    let response = json!({"object": "response", "instructions": "s", "output": output});
    assert_eq!(read(&response), [asked]);
    assert_eq!(read(&json!({"input": "u"})), [Message::user("u")]);
    // An item alone is no response, though it has an output.
    assert_eq!(read(&request["input"][3]), [result]);
    let refusal = json!([{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]);
    let part = Opaque::new("openai-responses-part", r#"{"type":"refusal","refusal":"no"}"#);
    assert_eq!(read(&refusal)[0].content(), [Content::Opaque(part)]);
}

#[test]
fn what_the_form_cannot_say_is_reported_and_the_rest_is_written() {
    let messages = [
        Message::user("u").with_id("id").with_name("ada").with_metadata("k", 1),
        Message::assistant("a").with_content(Reasoning::new("hm").with_signature("s")).with_tool_call("c", "f", "{}"),
        Message::assistant("b").with_media(Media::url("https://example.org")),
        Message::new(
            Role::Tool,
            [ToolResult::new("c").with_name("f").with_error().into(), ToolResult::new("d").into()],
        ),
        Message::new(Role::User, [ToolCall::new("c", "f", "{}").into(), ToolResult::new("c").into()])
            .with_content(Opaque::new("openai-responses", r#"{"type":"item_reference","id":"x"}"#))
            .with_content(Opaque::new("openai-responses-part", "{}"))
            .with_media(Media::url("https://example.org").with_mime_type("image/png")),
        Message::assistant("c").with_content(Opaque::new("openai-responses", r#"{"type":"message"}"#)),
        Message::assistant("c")
            .with_content(Opaque::new("openai-responses", r#"{"type":"x"}"#))
            .with_content(Content::Text("d".into())),
    ];
    let export = responses::write(&messages);
    let warnings: Vec<(usize, &str)> = export.warnings.iter().map(|w| (w.position, w.text.as_str())).collect();
    let warnings: Vec<_> = warnings
        .iter()
        .map(|(position, text)| (*position, text.strip_prefix("the form cannot say: ").unwrap()))
        .collect();
    assert_eq!(
        warnings,
        [
            (0, "name, id, metadata"),
            (1, "another provider's thought"),
            (2, "media of the assistant, where one message of the assistant ends and the next begins"),
            (
                3,
                "that several results are one message, a result without parts, which became an empty text, is_error, the name of a result's tool, a result without parts, \
                 which became an empty text"
            ),
            (
                4,
                "a tool call of another role than assistant, a tool result of another role than tool, an opaque item \
                 of another role than assistant, an opaque part that is none of the form, the MIME type of a URL"
            ),
            (5, "an opaque item that is none of the form"),
            (6, "where one message of the assistant ends and the next begins"),
        ]
    );
    let text = |text: &str| {
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}).to_string()
    };
    assert_eq!(
        export.objects[1..6],
        [
            text("a"),
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#.to_owned(),
            text("b"),
            r#"{"type":"function_call_output","call_id":"c","output":""}"#.to_owned(),
            r#"{"type":"function_call_output","call_id":"d","output":""}"#.to_owned(),
        ]
    );
    responses::read(&export.to_json()).unwrap();
}

#[test]
fn broken_input_is_refused_with_line_and_column_and_never_quoted() {
    for (text, line, column, reason) in [
        ("[{\"role\":\"user\",}]", 1, 17, "key must be a string"),
        ("[\n  {\"type\":\"message\",\"content\":\"canary\"}]", 2, 3, "a message has no `role`"),
        ("[{\"role\":\"canary\"}]", 1, 10, "the role is none of system"),
        ("[{\"role\":\"user\",\n\"content\":7}]", 2, 11, "`content` is neither"),
        ("[{\"role\":\"user\",\"content\":[7]}]", 1, 28, "another type than the form says"),
        ("[{\"role\":\"user\",\"content\":[{\"text\":\"canary\"}]}]", 1, 28, "no `type`"),
        ("[{\"type\":\"function_call\",\"call_id\":\"canary\"}]", 1, 2, "no `name`"),
        ("[{\"type\":\"function_call_output\",\"output\":\"canary\"}]", 1, 2, "no `call_id`"),
        (
            "[{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":{\"canary\":1}}]",
            1,
            56,
            "`output` is neither",
        ),
        ("{\"canary\": 1}", 1, 1, "neither an item"),
        ("{\"input\": 7}", 1, 11, "another type than the form says"),
        ("canary", 1, 1, "expected value"),
        ("[{\"role\":\"user\"}", 1, 16, "EOF"),
    ] {
        refused(responses::read(text).unwrap_err(), line, column, reason);
    }
    assert_eq!(responses::read("").unwrap().messages, []);
    let import = responses::read(r#"{"input":"\ud800"}"#).unwrap();
    assert_eq!((import.messages[0].text().as_ref(), import.warnings.len()), ("\u{fffd}", 1));
}

/// Whether everything can be said; then it comes back. What is written can be read in any case.
pub fn comes_back(messages: &[Message]) -> bool {
    let export = responses::write(messages);
    let is_said = export.warnings.is_empty();
    for text in [export.to_json(), export.to_json_lines()] {
        let import = responses::read(&text).unwrap();
        assert!(!is_said || import.messages == messages, "{messages:?} became {:?}", import.messages);
        if is_said {
            assert_eq!(responses::write(&import.messages), export);
        }
    }
    is_said
}

fn media() -> impl Strategy<Value = Media> {
    let bytes = prop::collection::vec(any::<u8>(), 0..9);
    prop_oneof![
        jsonl::text().prop_map(Media::url),
        (prop::sample::select(vec!["image/png", "text/plain", "application/pdf", ""]), bytes)
            .prop_map(|(mime_type, bytes)| Media::bytes(mime_type, bytes)),
    ]
}

fn unknown(provider: &'static str) -> impl Strategy<Value = Opaque> {
    json_object().prop_map(move |mut object| {
        object["type"] = "unknown".into();
        Opaque::new(provider, object.to_string())
    })
}

/// A message that the form can say.
fn sayable() -> impl Strategy<Value = Message> {
    let part = || unknown("openai-responses-part");
    let given = prop_oneof![
        jsonl::text().prop_map(Content::Text),
        media().prop_map(Content::from),
        part().prop_map(Content::from)
    ];
    let given = prop::collection::vec(given, 0..4);
    let given_role = prop::sample::select(vec![Role::System, Role::Developer, Role::User]);
    let said =
        prop::collection::vec(prop_oneof![jsonl::text().prop_map(Content::Text), part().prop_map(Content::from)], 0..3);
    let call = (jsonl::text(), jsonl::text(), jsonl::text()).prop_map(|(id, name, text)| ToolCall::new(id, name, text));
    let done = prop_oneof![call.prop_map(Content::from), unknown("openai-responses").prop_map(Content::from)];
    let parts = prop::collection::vec(
        prop_oneof![
            jsonl::text().prop_map(ResultPart::Text),
            media().prop_map(ResultPart::Media),
            part().prop_map(ResultPart::Opaque)
        ],
        1..3,
    );
    let result = (jsonl::text(), parts).prop_map(|(id, parts)| {
        let mut result = ToolResult::new(id);
        result.parts = parts;
        Content::from(result)
    });
    prop_oneof![
        (given_role, given).prop_map(|(role, content)| Message::new(role, content)),
        (said, prop::collection::vec(done, 0..3))
            .prop_map(|(said, done)| Message::new(Role::Assistant, said.into_iter().chain(done))),
        result.prop_map(|result| Message::new(Role::Tool, [result])),
    ]
}

fn item() -> impl Strategy<Value = Value> {
    let message = |role: &'static str, kind: &'static str| {
        prop::collection::vec(jsonl::text(), 1..3).prop_map(move |texts| {
            let parts: Vec<Value> = texts.iter().map(|text| json!({"type": kind, "text": text})).collect();
            json!({"type": "message", "role": role, "content": parts})
        })
    };
    let summary = prop::collection::vec(jsonl::text(), 0..3)
        .prop_map(|texts| texts.iter().map(|text| json!({"type": "summary_text", "text": text})).collect::<Vec<_>>());
    prop_oneof![
        message("user", "input_text"),
        message("assistant", "output_text"),
        message("assistant", "input_text"),
        (summary, prop::option::of(jsonl::text())).prop_map(|(summary, sealed)| match sealed {
            Some(sealed) => json!({"type": "reasoning", "summary": summary, "encrypted_content": sealed}),
            None => json!({"type": "reasoning", "summary": summary}),
        }),
        ("[ab]", jsonl::text())
            .prop_map(|(id, text)| json!({"type": "function_call", "call_id": id, "name": text, "arguments": text})),
        ("[ab]", jsonl::text())
            .prop_map(|(id, text)| json!({"type": "custom_tool_call", "call_id": id, "name": text, "input": text})),
        ("[ab]", jsonl::text())
            .prop_map(|(id, text)| json!({"type": "function_call_output", "call_id": id, "output": text})),
        ("[ab]", jsonl::text()).prop_map(|(id, text)| {
            let text = json!({"type": "input_text", "text": text});
            json!({"type": "custom_tool_call_output", "call_id": id, "output": [text, text]})
        }),
        Just(json!({"type": "web_search_call", "id": "ws"})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_message_that_the_form_can_say_comes_back(said in prop::collection::vec(sayable(), 0..6)) {
        let mut messages: Vec<Message> = Vec::new();
        for message in said {
            // Of two messages of the assistant the form does not say where one ends.
            if message.role() != Role::Assistant || messages.last().is_none_or(|last| last.role() != Role::Assistant) {
                messages.push(message);
            }
        }
        prop_assert!(comes_back(&messages), "{:?}", responses::write(&messages).warnings);
    }

    #[test]
    fn of_any_messages_what_does_not_come_back_is_reported(
        contents in prop::collection::vec((jsonl::any_message(), any::<bool>()), 0..5),
    ) {
        let bare = |(message, whole): (Message, bool)| match whole {
            true => message,
            false => Message::new(message.role(), message.content().to_vec()),
        };
        comes_back(&contents.into_iter().map(bare).collect::<Vec<_>>());
    }

    #[test]
    fn any_items_are_written_as_they_were_read(
        items in prop::collection::vec((item(), json_object()), 0..8), more in prop::collection::vec(json_object(), 9),
    ) {
        let mut more = more.into_iter().cycle();
        let items = items.into_iter().map(|(mut item, beside_item)| {
            beside(&mut item, Some(beside_item));
            for list in ["content", "output", "summary"] {
                for part in item.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    beside(part, more.next());
                }
            }
            item
        });
        let items = Value::Array(items.collect());
        prop_assert_eq!(rewritten(&items), items);
    }
}
