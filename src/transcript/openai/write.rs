//! To the OpenAI form.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::super::extra::{CALLS, FIELDS, PARTS, add, beside, merge};
use super::super::{Export, base64};
use super::PROVIDER;
use crate::message::json::parse;
use crate::message::{Content, Media, MediaSource, Message, Opaque, ResultPart, Role, ToolCall, ToolResult};

/// Writes messages in the OpenAI form. A tool message with several results becomes several messages, as the form wants it.
///
/// ```
/// use chat_memory::{Message, transcript::openai};
///
/// let export = openai::write(&[Message::user("hello"), Message::assistant("hi").with_id("m-1")]);
/// assert_eq!(export.objects, [r#"{"role":"user","content":"hello"}"#, r#"{"role":"assistant","content":"hi"}"#]);
/// assert_eq!(export.warnings[0].text, "the form cannot say: id");
/// ```
pub fn write(messages: &[Message]) -> Export {
    let mut export = Export::default();
    for (position, message) in messages.iter().enumerate() {
        let extra = message.metadata().get(PROVIDER).and_then(Value::as_object);
        let mut writer = Writer { extra, unsaid: Vec::new(), objects: &mut export.objects };
        writer.message(message);
        let unsaid = writer.unsaid;
        export.cannot_say(position, unsaid);
    }
    export
}

struct Writer<'a> {
    /// Fields that an import found no other place for.
    extra: Option<&'a Map<String, Value>>,
    unsaid: Vec<&'static str>,
    objects: &'a mut Vec<String>,
}

impl Writer<'_> {
    fn message(&mut self, message: &Message) {
        match message.role() {
            Role::Tool => self.results(message),
            role => self.said(role, message),
        }
        self.unsaid.extend(beside(message, PROVIDER));
    }

    /// A message that is not the result of a tool.
    fn said(&mut self, role: Role, message: &Message) {
        let mut object = Map::new();
        object.insert("role".to_owned(), role.as_str().into());
        object.insert("content".to_owned(), Value::Null);
        if let Some(name) = message.name() {
            object.insert("name".to_owned(), name.into());
        }
        let (mut parts, mut calls) = (Vec::new(), Vec::new());
        for part in message.content() {
            if !calls.is_empty() && !matches!(part, Content::ToolCall(_)) {
                self.unsaid.push("content behind a call, which moved before it");
            }
            match part {
                Content::Text(text) => parts.push(json!({"type": "text", "text": text})),
                Content::Media(media) => parts.extend(self.media(media)),
                Content::ToolCall(call) if role == Role::Assistant => calls.push(call),
                Content::Opaque(opaque) => match self.opaque(opaque) {
                    Some(Value::Object(fields)) if !fields.contains_key("type") => add(&mut object, fields),
                    part => parts.extend(part),
                },
                Content::ToolCall(_) => self.unsaid.push("a tool call of another role than assistant"),
                Content::ToolResult(_) => self.unsaid.push("a tool result of another role than tool"),
                Content::Reasoning(_) => self.unsaid.push("reasoning"),
            }
        }
        object.insert("content".to_owned(), self.content(parts));
        self.calls(&calls, &mut object);
        self.finish(object);
    }

    fn calls(&mut self, calls: &[&ToolCall], object: &mut Map<String, Value>) {
        match calls {
            [] => {}
            [call] if call.id.is_empty() && self.extra_of_call(call, 0).is_none() => {
                let call = json!({"name": call.name, "arguments": call.arguments});
                object.insert("function_call".to_owned(), call);
            }
            calls => {
                let mut seen: HashMap<&str, usize> = HashMap::new();
                let numbered = calls.iter().map(|call| {
                    let number = seen.entry(&call.id).or_default();
                    *number += 1;
                    (call, *number - 1)
                });
                let calls: Vec<Value> = numbered.map(|(call, number)| self.call(call, number)).collect();
                object.insert("tool_calls".to_owned(), calls.into());
            }
        }
    }

    /// A call, the `number`-th of its id in the message.
    fn call(&self, call: &ToolCall, number: usize) -> Value {
        let ToolCall { id, name, arguments } = call;
        let more = self.extra_of_call(call, number);
        let is_custom = more.and_then(|more| more.get("type")).is_some_and(|kind| kind == "custom");
        let mut call = if is_custom {
            json!({"id": id, "type": "custom", "custom": {"name": name, "input": arguments}})
        } else {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        };
        merge(&mut call, more);
        call
    }

    /// A message for each result.
    fn results(&mut self, message: &Message) {
        for part in message.content() {
            match part {
                Content::ToolResult(result) => self.result(result),
                _ => self.unsaid.push("content of a tool message beside its results"),
            }
        }
        if message.name().is_some() {
            self.unsaid.push("the name of a tool message beside its results'");
        }
    }

    fn result(&mut self, result: &ToolResult) {
        let mut object = Map::new();
        let is_function = result.call_id.is_empty() && result.name.is_some();
        object.insert("role".to_owned(), if is_function { "function" } else { "tool" }.into());
        if !is_function {
            object.insert("tool_call_id".to_owned(), result.call_id.as_str().into());
        }
        if let Some(name) = &result.name {
            object.insert("name".to_owned(), name.as_str().into());
        }
        let mut parts = Vec::new();
        for part in &result.parts {
            match part {
                ResultPart::Text(text) => parts.push(json!({"type": "text", "text": text})),
                ResultPart::Media(media) => parts.extend(self.media(media)),
                ResultPart::Opaque(opaque) => parts.extend(self.opaque(opaque)),
            }
        }
        let content = match self.content(parts) {
            // The form demands a content of every result.
            Value::Null => "".into(),
            content => content,
        };
        object.insert("content".to_owned(), content);
        if result.is_error {
            self.unsaid.push("is_error");
        }
        self.finish(object);
    }

    /// Null, a string for a single text, or a list.
    fn content(&self, mut parts: Vec<Value>) -> Value {
        for (position, part) in parts.iter_mut().enumerate() {
            merge(part, self.extra_of(PARTS, &position.to_string()));
        }
        match parts.as_mut_slice() {
            [] => Value::Null,
            [Value::Object(part)] if part.len() == 2 && part.get("type").is_some_and(|kind| kind == "text") => {
                part.get_mut("text").map(Value::take).unwrap_or_default()
            }
            _ => parts.into(),
        }
    }

    fn media(&mut self, media: &Media) -> Option<Value> {
        let mime_type = media.mime_type.as_deref();
        match (&media.source, mime_type) {
            (MediaSource::Url(url), None) => Some(json!({"type": "image_url", "image_url": {"url": url}})),
            (MediaSource::Url(url), Some(mime_type)) if mime_type.starts_with("image/") => {
                self.unsaid.push("the MIME type of a URL");
                Some(json!({"type": "image_url", "image_url": {"url": url}}))
            }
            (MediaSource::Url(_), Some(_)) => {
                self.unsaid.push("media at a URL that is no image");
                None
            }
            (MediaSource::Bytes(bytes), mime_type) => {
                let mime_type = mime_type.unwrap_or("application/octet-stream");
                Some(match mime_type {
                    "audio/wav" => {
                        json!({"type": "input_audio", "input_audio": {"data": base64::encode(bytes), "format": "wav"}})
                    }
                    "audio/mpeg" => {
                        json!({"type": "input_audio", "input_audio": {"data": base64::encode(bytes), "format": "mp3"}})
                    }
                    _ => {
                        let url = base64::data_url(mime_type, bytes);
                        if mime_type.starts_with("image/") {
                            json!({"type": "image_url", "image_url": {"url": url}})
                        } else {
                            json!({"type": "file", "file": {"file_data": url}})
                        }
                    }
                })
            }
        }
    }

    fn opaque(&mut self, opaque: &Opaque) -> Option<Value> {
        let value = if opaque.provider == PROVIDER { parse(&opaque.json).ok() } else { None };
        if value.is_none() {
            self.unsaid.push("another provider's part");
        }
        value
    }

    fn extra_of_call(&self, call: &ToolCall, number: usize) -> Option<&Value> {
        self.extra_of(CALLS, &call.id)?.get(number)
    }

    fn extra_of(&self, kind: &str, of: &str) -> Option<&Value> {
        self.extra?.get(kind)?.get(of)
    }

    fn finish(&mut self, mut object: Map<String, Value>) {
        if let Some(Value::Object(fields)) = self.extra.and_then(|extra| extra.get(FIELDS)) {
            add(&mut object, fields.clone());
        }
        self.objects.push(Value::Object(object).to_string());
    }
}
