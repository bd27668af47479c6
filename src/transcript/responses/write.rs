//! To the items of the Responses API.

use serde_json::{Map, Value, json};

use super::super::extra::{Kept, add, beside, merge};
use super::super::{Export, json};
use super::{ITEMS, Kind, PART_PROVIDER, PROVIDER, Seen, part, read};
use crate::message::{Content, Media, Message, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult};

/// Writes messages as items for `input`. A message of the assistant becomes an item for each of its calls and thoughts and for
/// the parts between them; a tool message an item for each result.
///
/// ```
/// use chat_memory::{Message, transcript::responses};
///
/// let export = responses::write(&[Message::tool_result("c1", "weather", "-4 °C")]);
/// assert_eq!(export.objects, [r#"{"type":"function_call_output","call_id":"c1","output":"-4 °C"}"#]);
/// assert_eq!(export.warnings[0].text, "the form cannot say: the name of a result's tool");
/// ```
pub fn write(messages: &[Message]) -> Export {
    let mut export = Export::default();
    let mut seen = None;
    for (position, message) in messages.iter().enumerate() {
        let mut writer = Writer {
            role: message.role(),
            kept: Kept::of(message, PROVIDER),
            unsaid: Vec::new(),
            parts: Vec::new(),
            fields: Map::new(),
            has_begun: false,
            seen,
            objects: &mut export.objects,
        };
        match message.role() {
            Role::Tool => writer.results(message),
            _ => writer.said(message),
        }
        if message.name().is_some() {
            writer.unsaid.push("name");
        }
        writer.unsaid.extend(beside(message, PROVIDER));
        seen = writer.seen;
        let unsaid = writer.unsaid;
        export.cannot_say(position, unsaid);
    }
    export
}

/// The summary of a thought of one text.
pub(super) fn summary(text: &str) -> Value {
    if text.is_empty() { json!([]) } else { json!([{"type": "summary_text", "text": text}]) }
}

struct Writer<'a, 'o> {
    role: Role,
    /// Fields that an import found no other place for.
    kept: Kept<'a>,
    unsaid: Vec<&'static str>,
    /// The parts of the message item that is being written, and its further fields.
    parts: Vec<String>,
    fields: Map<String, Value>,
    /// Whether an item of the message was written.
    has_begun: bool,
    /// Of the assistant's message that a reader would go on with.
    seen: Option<Seen>,
    objects: &'o mut Vec<String>,
}

impl<'a> Writer<'a, '_> {
    /// A message that is not the result of a tool.
    fn said(&mut self, message: &'a Message) {
        let is_assistant = self.role == Role::Assistant;
        for content in message.content() {
            let position = self.kept.parts;
            let more = self.kept.next(content);
            let item = match content {
                Content::ToolCall(call) if is_assistant => self.call(call, more).map(|item| (Kind::Call, item)),
                Content::ToolCall(_) => self.cannot_say("a tool call of another role than assistant"),
                Content::ToolResult(_) => self.cannot_say("a tool result of another role than tool"),
                Content::Reasoning(thought) if is_assistant => {
                    self.thought(thought, more).map(|item| (Kind::Other, item))
                }
                Content::Reasoning(_) => self.cannot_say("a thought of another role than assistant"),
                Content::Opaque(opaque) if opaque.provider == PROVIDER => {
                    self.item(opaque).map(|item| (Kind::Other, item))
                }
                part => {
                    let part = self.part(part, more);
                    self.parts_go_on(part, position);
                    None
                }
            };
            if let Some((kind, item)) = item {
                self.end_message_item();
                self.push(kind, item);
            }
        }
        if !is_assistant || message.content().is_empty() {
            self.end_with_a_message_item();
        } else {
            self.end_message_item();
        }
    }

    /// Adds a part to the message item, or begins another one with it where an import found one to begin.
    fn parts_go_on(&mut self, part: Option<String>, position: usize) {
        let fields = self.kept.get(ITEMS).and_then(|items| items.get(position.to_string())?.as_object());
        if fields.is_some() && self.role == Role::Assistant {
            self.end_message_item();
        }
        if self.parts.is_empty() && self.fields.is_empty() {
            self.fields = fields.cloned().unwrap_or_default();
        }
        self.parts.extend(part);
    }

    fn end_message_item(&mut self) {
        if !self.parts.is_empty() {
            let item = self.message_item();
            self.push(Kind::Message, item);
        }
        self.fields.clear();
    }

    /// The same for a message that is to be there even if it is empty.
    fn end_with_a_message_item(&mut self) {
        if self.kept.parts == 0 {
            self.parts_go_on(None, 0);
        }
        if self.role == Role::Assistant && self.seen.is_some_and(|seen| seen.has_call) {
            self.unsaid.push("an empty message behind a call");
        }
        let item = self.message_item();
        self.objects.push(item);
        self.seen = None;
    }

    fn message_item(&mut self) -> String {
        let mut item = Map::new();
        item.insert("type".to_owned(), "message".into());
        item.insert("role".to_owned(), self.role.as_str().into());
        add(&mut item, std::mem::take(&mut self.fields));
        json::with_field(item, "content", &list(&std::mem::take(&mut self.parts)))
    }

    /// Writes an item of the assistant.
    fn push(&mut self, kind: Kind, item: String) {
        let goes_on = self.seen.filter(|seen| seen.goes_on(kind));
        if goes_on.is_some() != self.has_begun {
            self.unsaid.push("where one message of the assistant ends and the next begins");
        }
        self.has_begun = true;
        self.seen = Some(goes_on.unwrap_or_default().with(kind));
        self.objects.push(item);
    }

    fn call(&mut self, call: &ToolCall, more: Option<&Value>) -> Option<String> {
        let ToolCall { id, name, arguments } = call;
        let item = match kept_kind(more) {
            Some(kind @ "custom_tool_call") => json!({"type": kind, "call_id": id, "name": name, "input": arguments}),
            _ => json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments}),
        };
        Some(object(item, more))
    }

    fn thought(&mut self, thought: &Reasoning, more: Option<&Value>) -> Option<String> {
        let Reasoning { text, signature, redacted } = thought;
        if signature.is_some() || kept_kind(more) != Some("reasoning") {
            return self.cannot_say("another provider's thought");
        }
        let kept = more.and_then(|more| more.get("summary"));
        let summary = kept.cloned().unwrap_or_else(|| summary(text));
        let mut item = json!({"type": "reasoning", "summary": summary});
        if let Some(sealed) = redacted {
            merge(&mut item, Some(&json!({"encrypted_content": sealed})));
        }
        Some(object(item, more))
    }

    /// An item for each result.
    fn results(&mut self, message: &'a Message) {
        let results = message.tool_results().count();
        if results != message.content().len() {
            self.unsaid.push("content of a tool message beside its results");
        }
        match results {
            0 => self.unsaid.push("a tool message without results"),
            1 => {}
            _ => self.unsaid.push("that several results are one message"),
        }
        for part in message.content() {
            let more = self.kept.next(part);
            if let Content::ToolResult(result) = part {
                let item = self.result(result, more);
                self.objects.push(item);
                self.seen = None;
            }
        }
    }

    fn result(&mut self, result: &'a ToolResult, more: Option<&Value>) -> String {
        let mut more = more.cloned().unwrap_or_default();
        let inside = more.as_object_mut().and_then(|more| more.shift_remove("output"));
        let kind = kept_kind(Some(&more)).filter(|kind| *kind == "custom_tool_call_output");
        let mut item = json!({"type": kind.unwrap_or("function_call_output"), "call_id": result.call_id});
        merge(&mut item, Some(&more));
        let more = |position: usize| inside.as_ref().and_then(|inside| inside.get(position.to_string()));
        let output = match result.parts.as_slice() {
            [] => {
                self.unsaid.push("a result without parts, which became an empty text");
                Value::from("").to_string()
            }
            [ResultPart::Text(text)] if more(0).is_none() => Value::from(text.as_str()).to_string(),
            parts => {
                let parts = parts.iter().enumerate().filter_map(|(position, part)| match part {
                    ResultPart::Text(text) => self.text(text, more(position)),
                    ResultPart::Media(media) => self.media(media, more(position)),
                    ResultPart::Opaque(opaque) => self.opaque_part(opaque),
                });
                list(&parts.collect::<Vec<_>>())
            }
        };
        let said = [(result.is_error, "is_error"), (result.name.is_some(), "the name of a result's tool")];
        self.unsaid.extend(said.into_iter().filter_map(|(is_there, name)| is_there.then_some(name)));
        match item {
            Value::Object(item) => json::with_field(item, "output", &output),
            _ => String::new(),
        }
    }

    fn part(&mut self, part: &Content, more: Option<&Value>) -> Option<String> {
        match part {
            Content::Text(text) => self.text(text, more),
            Content::Media(_) if self.role == Role::Assistant => self.cannot_say("media of the assistant"),
            Content::Media(media) => self.media(media, more),
            Content::Opaque(opaque) => self.opaque_part(opaque),
            _ => None,
        }
    }

    fn text(&self, text: &str, more: Option<&Value>) -> Option<String> {
        Some(object(part::text(text, self.role, kept_kind(more)), more))
    }

    fn media(&mut self, media: &Media, more: Option<&Value>) -> Option<String> {
        part::media(media, kept_kind(more), &mut self.unsaid).map(|part| object(part, more))
    }

    fn opaque_part(&mut self, opaque: &Opaque) -> Option<String> {
        if opaque.provider != PART_PROVIDER {
            return self.cannot_say("another provider's part");
        }
        let part = self.on_a_line(&opaque.json)?;
        match part::of_text(&part, self.role) {
            Ok(Content::Opaque(_)) => {}
            Ok(_) => self.unsaid.push("that a part is opaque"),
            Err(_) => return self.cannot_say("an opaque part that is none of the form"),
        }
        Some(part)
    }

    /// An opaque item.
    fn item(&mut self, opaque: &Opaque) -> Option<String> {
        if self.role != Role::Assistant {
            return self.cannot_say("an opaque item of another role than assistant");
        }
        let item = self.on_a_line(&opaque.json)?;
        match read::is_opaque(&item) {
            Ok(true) => {}
            Ok(false) => self.unsaid.push("that an item is opaque"),
            Err(_) => return self.cannot_say("an opaque item that is none of the form"),
        }
        Some(item)
    }

    fn on_a_line(&mut self, json: &str) -> Option<String> {
        let Some(line) = json::object_on_a_line(json) else {
            return self.cannot_say("an opaque part that is no JSON object");
        };
        if line != json {
            self.unsaid.push("line breaks of an opaque part, or space around it");
        }
        Some(line)
    }

    fn cannot_say<T>(&mut self, what: &'static str) -> Option<T> {
        self.unsaid.push(what);
        None
    }
}

/// The text of an object with what an import found beside it.
fn object(mut object: Value, more: Option<&Value>) -> String {
    merge(&mut object, more);
    object.to_string()
}

fn list(parts: &[String]) -> String {
    format!("[{}]", parts.join(","))
}

/// The type that an import found, where it was not the usual one.
fn kept_kind(more: Option<&Value>) -> Option<&str> {
    more?.get("type")?.as_str()
}
