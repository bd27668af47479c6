//! Transcripts of others and our own: an import fails or can be written, and what lost nothing comes back.

#![no_main]

use chat_memory::transcript::{Export, Import, anthropic, jsonl, openai, responses};
use chat_memory::{Content, Message, Opaque, Result, ResultPart};
use chat_memory_fuzz::memory::{bounded, bounded_but_in_vain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(messages) = import(text, openai::read) {
        lossless(&messages);
        let export = openai::write(&messages);
        for written in [export.to_json(), export.to_json_lines()] {
            let again = openai::read(&written).unwrap();
            if export.warnings.is_empty() && again.warnings.is_empty() {
                // Parts that are kept word for word lose their spaces, so of them the JSON values are compared: by the export.
                assert_eq!(openai::write(&again.messages), export, "what the form can say comes back");
                assert!(but_for_opaque(&again.messages).eq(but_for_opaque(&messages)), "and is the same messages");
            }
        }
    }
    if let Some(messages) = import(text, anthropic::read) {
        lossless(&messages);
        comes_back(&messages, anthropic::write, anthropic::read);
    }
    if let Some(messages) = import(text, responses::read) {
        lossless(&messages);
        comes_back(&messages, responses::write, responses::read);
    }
    if let Some(messages) = import(text, jsonl::read) {
        lossless(&messages);
        openai::read(&openai::write(&messages).to_json()).unwrap();
        // Metadata that no import made may say anything of a form's fields.
        let bare: Vec<_> =
            messages.iter().map(|message| Message::new(message.role(), message.content().to_vec())).collect();
        comes_back(&bare, anthropic::write, anthropic::read);
        comes_back(&bare, responses::write, responses::read);
    }
});

/// What is written can be read, and is the same messages where nothing else is reported.
fn comes_back(messages: &[Message], write: impl Fn(&[Message]) -> Export, read: impl Fn(&str) -> Result<Import>) {
    let export = write(messages);
    for written in [export.to_json(), export.to_json_lines()] {
        let again = read(&written).unwrap();
        if export.warnings.is_empty() && again.warnings.is_empty() {
            assert!(again.messages == messages, "what the form can say comes back");
            assert_eq!(write(&again.messages), export, "and is written the same");
        }
    }
}

/// Role, name, metadata and parts of each message, without the texts of opaque ones.
fn but_for_opaque(messages: &[Message]) -> impl Iterator<Item = impl PartialEq> {
    let plain = |part: &Content| match part {
        Content::Opaque(opaque) => Opaque::new(&*opaque.provider, "").into(),
        Content::ToolResult(result) => {
            let mut result = result.clone();
            // The form demands a content of every result.
            result.parts.retain(|part| part != &ResultPart::Text(String::new()));
            for part in &mut result.parts {
                if let ResultPart::Opaque(opaque) = part {
                    opaque.json.clear();
                }
            }
            result.into()
        }
        other => other.clone(),
    };
    messages.iter().map(move |message| {
        let parts: Vec<Content> = message.content().iter().map(plain).collect();
        (message.role(), message.name().map(str::to_owned), message.metadata().clone(), parts)
    })
}

/// What an import gives if it succeeds.
fn import(text: &str, read: impl Fn(&str) -> Result<Import>) -> Option<Vec<Message>> {
    let imported = bounded_but_in_vain(text.len(), || read(text));
    let messages = imported.ok()?.messages;
    // It succeeds, so nothing is built in vain.
    let again = bounded(text.len(), || read(text));
    assert_eq!(again.unwrap().messages, messages);
    Some(messages)
}

/// Our own form says everything.
fn lossless(messages: &[Message]) {
    let export = jsonl::write(messages);
    assert!(export.warnings.is_empty());
    for written in [export.to_json(), export.to_json_lines()] {
        let again = jsonl::read(&written).unwrap();
        assert!(again.warnings.is_empty() && again.messages == messages, "our own form says everything");
        assert_eq!(jsonl::write(&again.messages), export, "writing again gives the same bytes");
    }
}
