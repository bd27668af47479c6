//! The OpenAI form: what it says comes back, and what is not of the form is refused with its place.

use chat_memory::transcript::openai;
use chat_memory::{Content, Error, Media, Message, Opaque, Reasoning, Role, ToolResult};
use serde_json::{Value, json};

/// What is written for what was read.
fn rewritten(messages: &Value) -> Value {
    let import = openai::read(&messages.to_string()).unwrap();
    let export = openai::write(&import.messages);
    assert_eq!(export.warnings, []);
    serde_json::from_str(&export.to_json()).unwrap()
}

#[test]
fn everything_that_the_form_says_is_written_as_it_was_read() {
    let messages = json!([
        {"role": "system", "content": "s"},
        {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "user", "content": "u", "name": "ada"},
        {"role": "user", "content": [
            {"type": "text", "text": "look", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAH/"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAH_"}},
            {"type": "input_audio", "input_audio": {"data": "AAH/", "format": "wav"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAH/", "filename": "a.pdf"}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "something_new", "x": [1, 2.50]}]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1"}},
            {"id": "c1", "type": "function", "function": {"name": "g", "arguments": ""}},
            {"id": "c2", "type": "custom", "custom": {"name": "h", "input": "free text"}},
            {"id": "c3", "type": "function", "index": 3, "function": {"name": "f", "arguments": "{}", "strict": true}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": null, "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "function", "name": "old", "content": "answer"},
        {"role": "assistant", "content": null, "refusal": "I can't."},
        {"role": "assistant", "content": null, "audio": {"id": "audio-1"}},
        {"role": "assistant", "content": "", "annotations": [], "weight": 0},
    ]);
    assert_eq!(rewritten(&messages), messages);
    let wrapped = json!({"model": "m", "messages": messages}).to_string();
    assert_eq!(openai::read(&wrapped).unwrap().messages.len(), 12);
}

#[test]
fn what_is_read_is_what_the_form_means() {
    let read = |json: Value| openai::read(&json.to_string()).unwrap().messages.remove(0);
    let image = |url: &str| json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]);
    let png = Message::new(Role::User, []).with_media(Media::bytes("image/png", [0, 1, 255]));
    assert_eq!(read(image("data:image/png;base64,AAH/")), png);
    // Base64 that would not be written the same stays the text that it is.
    let other = "data:image/png;base64,AAH_";
    assert_eq!(read(image(other)), Message::new(Role::User, []).with_media(Media::url(other)));
    let refusal = read(json!([{"role": "assistant", "content": null, "refusal": "No."}]));
    assert_eq!(refusal.content(), [Content::Opaque(Opaque::new("openai", r#"{"refusal":"No."}"#))]);
    // Part texts are kept to the letter, numbers included.
    let text = r#"[{"role":"user","content":[{"type": "x",  "n": 1e2}]}]"#;
    let opaque = openai::read(text).unwrap().messages.remove(0);
    assert_eq!(opaque.content(), [Content::Opaque(Opaque::new("openai", r#"{"type": "x",  "n": 1e2}"#))]);
    let call = read(json!([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}]));
    assert_eq!(call.tool_calls().next().unwrap().arguments, r#"{"a":1}"#);
}

#[test]
fn what_the_form_cannot_say_is_reported_and_the_rest_is_written() {
    let messages = [
        Message::assistant("a").with_content(Reasoning::new("hm")).with_id("id").with_metadata("k", 1),
        Message::new(
            Role::Tool,
            [ToolResult::new("c").with_error().into(), ToolResult::new("d").with_text("x").into()],
        ),
        Message::new(Role::Assistant, []).with_tool_call("c", "f", "{}").with_content(Opaque::new("anthropic", "{}")),
    ];
    let export = openai::write(&messages);
    let warnings: Vec<(usize, &str)> = export.warnings.iter().map(|w| (w.position, w.text.as_str())).collect();
    assert_eq!(
        warnings,
        [
            (0, "the form cannot say: reasoning, id, metadata"),
            (1, "the form cannot say: is_error"),
            (2, "the form cannot say: content behind a call, which moved before it, another provider's part"),
        ]
    );
    assert_eq!(
        export.objects,
        [
            r#"{"role":"assistant","content":"a"}"#,
            r#"{"role":"tool","tool_call_id":"c","content":""}"#,
            r#"{"role":"tool","tool_call_id":"d","content":"x"}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        ]
    );
}

#[test]
fn broken_input_is_refused_with_line_and_column_and_never_quoted() {
    for (text, line, column, reason) in [
        ("[{\"role\":\"user\",}]", 1, 17, "key must be a string"),
        ("{\"role\":\"user\",\"content\":\"canary\"}\n{\"role\":\"user\" canary}", 2, 16, "expected `,` or `}`"),
        ("[\n  {\"content\":\"canary\"}]", 2, 3, "a message has no `role`"),
        ("[{\"role\":\"canary\"}]", 1, 10, "the role is none of system"),
        ("[{\"role\":\"user\",\n\"content\":7}]", 2, 11, "`content` is neither null"),
        ("[{\"role\":\"user\",\"content\":[7]}]", 1, 28, "another type than the form says"),
        ("[\"canary\"]", 1, 9, "another type than the form says"),
        ("{\"messages\": \"canary\"}", 1, 21, "another type than the form says"),
        ("[{\"role\":\"tool\",\"content\":\"canary\"}]", 1, 2, "no `tool_call_id`"),
        ("[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"canary\"}]}]", 1, 36, "no `function`"),
        ("canary", 1, 1, "expected value"),
        ("[{\"role\":\"user\"}", 1, 16, "EOF"),
    ] {
        let error = openai::read(text).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("canary"), "{shown}");
        match error {
            Error::InvalidTranscript { line: l, column: c, reason: r } => {
                assert_eq!((l, c), (line, column), "{text}: {r}");
                assert!(r.contains(reason), "{text}: {r}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(openai::read("").unwrap().messages, []);
    assert_eq!(openai::read("\u{feff}[]").unwrap().messages, []);
}

#[test]
fn fields_beside_the_usual_ones_come_back_where_they_were() {
    for message in [
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "x", "type": "custom", "custom": {"name": "n", "input": "i", "more": 1}},
            {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
        json!({"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,Zm9v"}},
            {"type": "file", "file": {"file_data": "data:image/png;base64,Zm9v", "filename": "a.png"}}]}),
    ] {
        let messages = json!([message]);
        assert_eq!(rewritten(&messages), messages);
    }
}

#[test]
fn debug_output_of_an_export_shows_no_content() {
    let shown = format!("{:?}", openai::write(&[Message::user("canary")]));
    assert!(!shown.contains("canary"), "{shown}");
}

#[test]
fn of_a_key_that_is_there_twice_the_last_counts() {
    let twice = r#"{"role":"user","content":"a","name":"n","x":1,"content":"b","x":2}"#;
    let import = openai::read(twice).unwrap();
    assert_eq!(import.messages[0].text(), "b");
    let export = openai::write(&import.messages);
    assert_eq!(export.objects, [r#"{"role":"user","content":"b","name":"n","x":2}"#]);
    assert_eq!(openai::read(&export.to_json()).unwrap().messages, import.messages);
}
