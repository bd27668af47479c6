//! The Anthropic form: what it says comes back, and what is not of the form is refused with its place.

use chat_memory::transcript::anthropic;
use chat_memory::{Content, Error, Media, Message, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::jsonl;

pub fn read(json: &Value) -> Vec<Message> {
    let import = anthropic::read(&json.to_string()).unwrap();
    assert_eq!(import.warnings, []);
    import.messages
}

/// What is written for what was read.
pub fn rewritten(json: &Value) -> Value {
    let export = anthropic::write(&read(json));
    assert_eq!(export.warnings, []);
    serde_json::from_str(&export.to_json()).unwrap()
}

fn warnings(messages: &[Message]) -> Vec<(usize, String)> {
    let text = |text: &str| text.strip_prefix("the form cannot say: ").unwrap().to_owned();
    anthropic::write(messages).warnings.iter().map(|warning| (warning.position, text(&warning.text))).collect()
}

#[test]
fn everything_that_the_form_says_is_written_as_it_was_read() {
    let request = json!({
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "t"}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "look", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAH/"}},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                {"type": "image", "source": {"type": "file", "file_id": "file-1"}},
                {"type": "document", "title": "d", "citations": {"enabled": true},
                 "source": {"type": "base64", "media_type": "application/pdf", "data": "AAH/", "more": 1}},
                {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": "AAH/"}},
                {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": "Zm9v"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}},
                {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
                {"type": "something_new", "x": [1, 2.50]}], "beside": null},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "thinking", "thinking": "unsigned"},
                {"type": "redacted_thinking", "data": "sealed"},
                {"type": "text", "text": "a", "citations": null},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": [1.0, 18446744073709551615_u64]}},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}, "caller": {"type": "direct"}},
                {"type": "tool_use", "id": "c2", "name": "g", "input": {"INVALID_JSON": "{\"a"}},
                {"type": "tool_use", "id": "c3", "name": "g", "input": {"INVALID_JSON": "{}"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1"},
                {"type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": [
                    {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAH/"}},
                    {"type": "search_result", "source": "s"}], "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "and now?"},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "late"}]}]},
            {"role": "user", "content": [{"type": "text", "text": "again"}]},
            {"role": "assistant", "content": []},
        ]
    });
    assert_eq!(rewritten(&request), request);
    // Without instructions it is a list; as lines it is the same messages.
    assert_eq!(rewritten(&request["messages"]), request["messages"]);
    let messages = read(&request);
    let lines = anthropic::write(&messages).to_json_lines();
    assert_eq!((lines.lines().count(), anthropic::read(&lines).unwrap().messages), (6, messages));
}

#[test]
fn what_is_read_is_what_the_form_means() {
    let messages = read(&json!({"model": "m", "system": "s", "messages": [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "sealed"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "r", "is_error": true},
            {"type": "tool_result", "tool_use_id": "c2", "is_error": false},
            {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}]}]}));
    let joined = json!({"joined": true});
    let document = Media::url("https://example.org/a.pdf").with_mime_type("application/pdf");
    assert_eq!(
        messages,
        [
            Message::system("s"),
            Message::user("u"),
            Message::new(Role::Assistant, [Reasoning::new("hm").with_signature("sig").into()])
                .with_content(Reasoning::new("").with_redacted("sealed"))
                .with_tool_call("c1", "f", r#"{"a":1}"#),
            Message::new(Role::Tool, [ToolResult::new("c1").with_text("r").with_error().into()])
                .with_content(ToolResult::new("c2")),
            Message::new(Role::User, []).with_media(document).with_metadata("anthropic", joined),
        ]
    );
    // A text is kept to the letter, but that a line of an export has no line breaks.
    let spaced = "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\
        \"input\":{ \"n\":\t1e2 }},{\"type\": \"x\",\n \"n\": 1e2}]}";
    let messages = anthropic::read(spaced).unwrap().messages;
    assert_eq!(messages[0].tool_calls().next().unwrap().arguments, "{ \"n\":\t1e2 }");
    assert_eq!(messages[0].content()[1], Opaque::new("anthropic", "{\"type\": \"x\",\n \"n\": 1e2}").into());
    let export = anthropic::write(&messages);
    assert_eq!(export.objects, [spaced.replace('\n', " ")]);
    assert_eq!(export.warnings[0].text, "the form cannot say: line breaks of an opaque part, or space around it");
}

#[test]
fn a_response_is_a_message_whose_further_fields_stay_out_of_requests() {
    let response = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn", "stop_sequence": null});
    let messages = read(&response);
    let kept = json!({"response": {"model": "m", "stop_reason": "end_turn", "stop_sequence": null}});
    assert_eq!(messages, [Message::assistant("hi").with_id("msg_1").with_metadata("anthropic", kept)]);
    let export = anthropic::write(&messages);
    assert_eq!(export.objects, [r#"{"role":"assistant","content":[{"type":"text","text":"hi"}]}"#]);
    assert_eq!(warnings(&messages), [(0, "fields of a response, id".to_owned())]);
}

#[test]
fn results_that_follow_each_other_are_one_message_for_the_model() {
    let result = |id: &str| Message::new(Role::Tool, [ToolResult::new(id).with_text("r").into()]);
    let messages = [result("a"), result("b").with_content(Content::Text("beside".into())), Message::user("and now?")];
    let export = anthropic::write(&messages);
    let block =
        |id: &str| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":[{{"type":"text","text":"r"}}]}}"#);
    assert_eq!(
        export.objects,
        [
            format!(r#"{{"role":"user","content":[{},{},{{"type":"text","text":"beside"}}]}}"#, block("a"), block("b")),
            r#"{"role":"user","content":[{"type":"text","text":"and now?"}]}"#.to_owned(),
        ]
    );
    let beside = "a tool message of anything but results, which became the user's";
    assert_eq!(warnings(&messages), [(1, format!("{beside}, where the message before it ends"))]);
}

#[test]
fn what_the_form_cannot_say_is_reported_and_the_rest_is_written() {
    let messages = [
        Message::user("first").with_name("ada").with_metadata("k", 1),
        Message::developer("d").with_media(Media::url("https://example.org")),
        Message::system("s"),
        Message::assistant("a")
            .with_content(Reasoning::new("unsigned"))
            .with_content(Reasoning::new("hm").with_redacted("x"))
            .with_tool_call("c", "f", "")
            .with_tool_call("d", "f", " {}\n")
            .with_tool_call("e", "f", "[1"),
        Message::new(Role::User, [ToolCall::new("c", "f", "{}").into(), ToolResult::new("c").into()])
            .with_content(Opaque::new("openai", "{}"))
            .with_content(Opaque::new("anthropic", "{}"))
            .with_content(Opaque::new("anthropic", "nothing"))
            .with_content(Opaque::new("anthropic", r#"{"type":"text","text":"t"}"#))
            .with_media(Media::url("https://example.org/a.png").with_mime_type("image/png")),
        Message::new(Role::Tool, [ToolResult::new("c").with_name("f").into()]),
    ];
    assert_eq!(
        warnings(&messages),
        [
            (0, "name, metadata"),
            (
                1,
                "anything but text in a system message, a system message amid the others, which moved to the beginning, \
                 the role developer, which became system"
            ),
            (
                2,
                "where one system message ends and the next begins, a system message amid the others, which moved to \
                 the beginning"
            ),
            (
                3,
                "a thought without a signature, a thought that is redacted and yet in clear, arguments of no text, \
                 which became an empty object, line breaks of arguments, or space around them"
            ),
            (
                4,
                "a tool call of another role than assistant, a tool result of another role than tool, another \
                 provider's part, an opaque part that is no block of the form, an opaque part that is no JSON object, \
                 that a part is opaque, media at a URL with another MIME type than application/pdf"
            ),
            (5, "the name of a result's tool"),
        ]
        .map(|(position, text)| (position, text.to_owned()))
    );
    let export = anthropic::write(&messages);
    assert_eq!(export.system.as_deref(), Some(r#"[{"type":"text","text":"d"},{"type":"text","text":"s"}]"#));
    let inputs = json!([{}, {}, {"INVALID_JSON": "[1"}]);
    let assistant: Value = serde_json::from_str(&export.objects[1]).unwrap();
    assert_eq!(json!([1, 2, 3].map(|at| &assistant["content"][at]["input"])), inputs);
    let again = anthropic::read(&export.to_json()).unwrap().messages;
    assert_eq!(again[2].tool_calls().last().unwrap().arguments, "[1");
}

#[test]
fn broken_input_is_refused_with_line_and_column_and_never_quoted() {
    for (text, line, column, reason) in [
        ("[{\"role\":\"user\",}]", 1, 17, "key must be a string"),
        ("[\n  {\"content\":\"canary\"}]", 2, 3, "a message has no `role`"),
        ("[{\"role\":\"canary\"}]", 1, 10, "the role is none of system"),
        ("[{\"role\":\"user\",\n\"content\":7}]", 2, 11, "`content` is neither"),
        ("[{\"role\":\"user\",\"content\":[7]}]", 1, 28, "another type than the form says"),
        ("[{\"role\":\"user\",\"content\":[{\"text\":\"canary\"}]}]", 1, 28, "no `type`"),
        ("[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", 1, 28, "no `text`"),
        ("{\"system\":{\"canary\":1},\"messages\":[]}", 1, 11, "`content` is neither"),
        ("{\"messages\": \"canary\"}", 1, 21, "another type than the form says"),
        ("[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"}]}]", 1, 28, "no `tool_use_id`"),
        ("[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"canary\"}]}]", 1, 33, "no `name`"),
        ("canary", 1, 1, "expected value"),
        ("[{\"role\":\"user\"}", 1, 16, "EOF"),
    ] {
        refused(anthropic::read(text).unwrap_err(), line, column, reason);
    }
    assert_eq!(anthropic::read("").unwrap().messages, []);
    let import = anthropic::read(r#"{"role":"user","content":"\ud800"}"#).unwrap();
    assert_eq!((import.messages[0].text().as_ref(), import.warnings.len()), ("\u{fffd}", 1));
}

/// Holds an error to its place and reason, and to what it must not say.
pub fn refused(error: Error, line: usize, column: usize, reason: &str) {
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("canary"), "{shown}");
    match error {
        Error::InvalidTranscript { line: l, column: c, reason: r } => {
            assert_eq!((l, c), (line, column), "{reason}: {r}");
            assert!(r.contains(reason), "{r}");
        }
        other => panic!("{other:?}"),
    }
}

/// Whether everything can be said; then it comes back. What is written can be read in any case.
pub fn comes_back(messages: &[Message]) -> bool {
    let export = anthropic::write(messages);
    let is_said = export.warnings.is_empty();
    for text in [export.to_json(), export.to_json_lines()] {
        let import = anthropic::read(&text).unwrap();
        assert!(!is_said || import.messages == messages, "{messages:?} became {:?}", import.messages);
        if is_said {
            assert_eq!(anthropic::write(&import.messages), export);
        }
    }
    is_said
}

fn media() -> impl Strategy<Value = Media> {
    let bytes = prop::collection::vec(any::<u8>(), 0..9);
    prop_oneof![
        jsonl::text().prop_map(Media::url),
        jsonl::text().prop_map(|url| Media::url(url).with_mime_type("application/pdf")),
        (prop::sample::select(vec!["image/png", "text/plain", "application/pdf", ""]), bytes)
            .prop_map(|(mime_type, bytes)| Media::bytes(mime_type, bytes)),
    ]
}

/// A message that the form can say.
fn sayable() -> impl Strategy<Value = Message> {
    let said = || prop_oneof![jsonl::text().prop_map(Content::Text), media().prop_map(Content::Media)];
    let arguments = prop_oneof![json_object().prop_map(|object| object.to_string()), "[a-z{ ]{1,6}"];
    let call = (jsonl::text(), jsonl::text(), arguments)
        .prop_map(|(id, name, arguments)| ToolCall::new(id, name, arguments.trim()))
        .prop_filter("not empty", |call| !call.arguments.is_empty());
    let thought = (jsonl::text(), jsonl::text(), any::<bool>()).prop_map(|(text, seal, is_sealed)| match is_sealed {
        true => Reasoning::new("").with_redacted(seal),
        false => Reasoning::new(text).with_signature(seal),
    });
    let of_assistant = prop_oneof![
        said(),
        call.prop_map(Content::from),
        thought.prop_map(Content::from),
        unknown().prop_map(Content::from)
    ];
    let parts = prop::collection::vec(
        prop_oneof![
            jsonl::text().prop_map(ResultPart::Text),
            media().prop_map(ResultPart::Media),
            unknown().prop_map(ResultPart::Opaque)
        ],
        0..3,
    );
    let result = (jsonl::text(), parts, any::<bool>()).prop_map(|(id, parts, is_error)| {
        let mut result = ToolResult::new(id);
        (result.parts, result.is_error) = (parts, is_error);
        Content::from(result)
    });
    prop_oneof![
        prop::collection::vec(prop_oneof![said(), unknown().prop_map(Content::from)], 0..4)
            .prop_map(|content| Message::new(Role::User, content)),
        prop::collection::vec(of_assistant, 0..5).prop_map(|content| Message::new(Role::Assistant, content)),
        prop::collection::vec(result, 1..4).prop_map(|content| Message::new(Role::Tool, content)),
    ]
}

pub fn json_object() -> impl Strategy<Value = Value> {
    prop::collection::vec((jsonl::text(), jsonl::json_value()), 0..3)
        .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()))
}

fn unknown() -> impl Strategy<Value = Opaque> {
    json_object().prop_map(|mut object| {
        object["type"] = "unknown".into();
        Opaque::new("anthropic", object.to_string())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_message_that_the_form_can_say_comes_back(
        system in prop::option::of(jsonl::text()), said in prop::collection::vec(sayable(), 0..6),
    ) {
        let mut messages: Vec<Message> = system.into_iter().map(Message::system).collect();
        for message in said {
            // The results of one answer are one message.
            if message.role() != Role::Tool || messages.last().is_none_or(|last| last.role() != Role::Tool) {
                messages.push(message);
            }
        }
        prop_assert!(comes_back(&messages), "{:?}", anthropic::write(&messages).warnings);
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
    fn fields_beside_the_usual_ones_come_back_where_they_were(
        messages in prop::collection::vec(sayable(), 1..4), more in prop::collection::vec(json_object(), 12),
    ) {
        let written = anthropic::write(&messages).to_json();
        let mut written: Value = serde_json::from_str(&written).unwrap();
        let mut more = more.into_iter().cycle();
        for message in written.as_array_mut().unwrap() {
            beside(message, more.next());
            for block in message["content"].as_array_mut().unwrap() {
                beside(block, more.next());
                for inner in block.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
                    beside(inner, more.next());
                }
            }
        }
        // Which are joined, as the next test says.
        prop_assume!(!messages.windows(2).any(|pair| pair.iter().all(|message| message.role() == Role::Tool)));
        prop_assert_eq!(rewritten(&written), written);
    }
}

/// Adds fields of names that no form knows.
pub fn beside(object: &mut Value, more: Option<Value>) {
    for (name, value) in more.as_ref().and_then(Value::as_object).into_iter().flatten() {
        object[format!("x_{name}")] = value.clone();
    }
}
