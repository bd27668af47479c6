//! From the OpenAI form.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::extra::Extra;
use super::super::json::{self, Fields, Source};
use super::super::{Import, Warning, base64};
use super::PROVIDER;
use crate::error::{Error, Result};
use crate::message::{Content, Media, Message, Opaque, ResultPart, Role, ToolCall, ToolResult};

/// Reads the messages of one conversation: a JSON array of them, an object with the array under `messages`, or JSON Lines with
/// a message a line.
///
/// Escapes that are half of a surrogate pair, which no text can hold, become U+FFFD, with a warning.
///
/// ```
/// use chat_memory::transcript::openai;
///
/// let import = openai::read(r#"[
///     {"role": "user", "content": "What is the weather in Oslo?"},
///     {"role": "assistant", "content": null, "tool_calls": [
///         {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}}]},
///     {"role": "tool", "tool_call_id": "c1", "content": "-4 °C"}
/// ]"#)?;
/// assert_eq!(import.messages.len(), 3);
/// assert!(import.warnings.is_empty());
/// # Ok::<(), chat_memory::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidTranscript`] with line and column where the text is not JSON, or not of this form. Nothing is read then.
pub fn read(text: &str) -> Result<Import> {
    let source = Source::new(text);
    let mut import = Import::default();
    for raw in raw_messages(&source)? {
        let position = import.messages.len();
        import.note_surrogates(&source, raw);
        let mut reader = Reader { source: &source, place: raw.get(), position, warnings: &mut import.warnings };
        let message = reader.message(raw)?;
        import.messages.push(message);
    }
    Ok(import)
}

/// The text of each message.
fn raw_messages<'a>(source: &'a Source<'_>) -> Result<Vec<&'a RawValue>> {
    let values = json::values(source)?;
    if let [whole] = values.as_slice()
        && whole.get().starts_with('{')
        && let Some(messages) = json::read::<Fields<'_>>(source, whole)?.take("messages")
    {
        return json::read(source, messages);
    }
    Ok(values)
}

struct Reader<'a, 'w> {
    source: &'a Source<'a>,
    /// The text of the message being read.
    place: &'a str,
    position: usize,
    warnings: &'w mut Vec<Warning>,
}

impl<'a> Reader<'a, '_> {
    fn message(&mut self, raw: &'a RawValue) -> Result<Message> {
        let mut fields: Fields<'a> = self.parse(raw)?;
        let role = self.role(&mut fields)?;
        let mut extra = Extra::default();
        let message = match role {
            Role::Tool => self.result(&mut fields, &mut extra)?,
            _ => self.said(role, &mut fields, &mut extra)?,
        };
        extra.fields = json::rest(self.source, fields)?;
        Ok(extra.attach_to(PROVIDER, message))
    }

    fn role(&mut self, fields: &mut Fields<'a>) -> Result<Role> {
        let raw = fields.take("role").ok_or_else(|| self.error("a message has no `role`"))?;
        match self.string(raw)?.as_ref() {
            "system" => Ok(Role::System),
            "developer" => Ok(Role::Developer),
            "user" => Ok(Role::User),
            "assistant" => Ok(Role::Assistant),
            "tool" | "function" => Ok(Role::Tool),
            _ => {
                let reason = "the role is none of system, developer, user, assistant, tool, function";
                Err(self.source.error_at(raw.get(), reason))
            }
        }
    }

    /// A message that is not the result of a tool.
    fn said(&mut self, role: Role, fields: &mut Fields<'a>, extra: &mut Extra) -> Result<Message> {
        let mut message = Message::new(role, self.content(fields, extra)?);
        if let Some(name) = fields.take("name") {
            message = message.with_name(self.string(name)?);
        }
        // What an assistant says instead of, or beside, its content.
        for field in ["refusal", "audio"] {
            if let Some(value) = fields.take(field) {
                message = message.with_content(Opaque::new(PROVIDER, format!("{{\"{field}\":{}}}", value.get())));
            }
        }
        if let Some(calls) = fields.take("tool_calls") {
            for call in self.parse::<Vec<&RawValue>>(calls)? {
                message = message.with_content(self.call(call, extra)?);
            }
        }
        if let Some(call) = fields.take("function_call") {
            let (call, more) = self.function(call, String::new())?;
            if !more.is_empty() {
                self.warn("further fields of `function_call` were left out");
            }
            message = message.with_content(call);
        }
        Ok(message)
    }

    /// The result of a tool.
    fn result(&mut self, fields: &mut Fields<'a>, extra: &mut Extra) -> Result<Message> {
        let mut result = match (fields.take("tool_call_id"), fields.take("name")) {
            (Some(id), None) => ToolResult::new(self.string(id)?),
            (Some(id), Some(name)) => ToolResult::new(self.string(id)?).with_name(self.string(name)?),
            // The form of `function_call`, where a result names its function.
            (None, Some(name)) => ToolResult::new("").with_name(self.string(name)?),
            (None, None) => return Err(self.error("a tool message has no `tool_call_id`")),
        };
        // Not part of the form, but what others write for want of one.
        if let Some(is_error) = fields.take("is_error") {
            result.is_error = self.parse(is_error)?;
        }
        for part in self.content(fields, extra)? {
            result.parts.push(match part {
                Content::Text(text) => ResultPart::Text(text),
                Content::Media(media) => ResultPart::Media(media),
                Content::Opaque(opaque) => ResultPart::Opaque(opaque),
                _ => return Err(self.error("a tool message has content that is no text, media or provider's part")),
            });
        }
        Ok(Message::new(Role::Tool, [Content::ToolResult(result)]))
    }

    fn content(&mut self, fields: &mut Fields<'a>, extra: &mut Extra) -> Result<Vec<Content>> {
        let Some(content) = fields.take("content") else {
            return Ok(Vec::new());
        };
        match content.get().as_bytes().first() {
            Some(b'"') => Ok(vec![Content::Text(self.string(content)?.into_owned())]),
            Some(b'[') => {
                let parts = self.parse::<Vec<&RawValue>>(content)?.into_iter().enumerate();
                parts.map(|(position, part)| self.part(part, position, extra)).collect()
            }
            _ => {
                Err(self.source.error_at(content.get(), "`content` is neither null, nor a string, nor a list of parts"))
            }
        }
    }

    fn part(&mut self, raw: &'a RawValue, position: usize, extra: &mut Extra) -> Result<Content> {
        if raw.get().starts_with('"') {
            return Ok(Content::Text(self.string(raw)?.into_owned()));
        }
        let mut fields: Fields<'a> = self.parse(raw)?;
        let kind = fields.take("type").ok_or_else(|| self.source.error_at(raw.get(), "a part has no `type`"))?;
        let kind = self.string(kind)?;
        let (content, more) = match kind.as_ref() {
            "text" => match fields.take("text") {
                Some(text) => (Content::Text(self.string(text)?.into_owned()), Map::new()),
                None => return Err(self.source.error_at(raw.get(), "a text part has no `text`")),
            },
            "image_url" | "input_audio" | "file" => match self.media(&kind, &mut fields)? {
                Some((media, more)) => (Content::Media(media), more),
                None => return Ok(Content::Opaque(Opaque::new(PROVIDER, raw.get()))),
            },
            _ => return Ok(Content::Opaque(Opaque::new(PROVIDER, raw.get()))),
        };
        let mut rest = more;
        rest.extend(json::rest(self.source, fields)?);
        if !rest.is_empty() {
            extra.parts.insert(position.to_string(), rest.into());
        }
        Ok(content)
    }

    /// Media by bytes, or an image by URL, and what else its object says; `None` where it is neither.
    fn media(&mut self, kind: &str, fields: &mut Fields<'a>) -> Result<Option<(Media, Map<String, Value>)>> {
        let Some(inner) = fields.take(kind) else {
            return Ok(None);
        };
        let mut inner_fields: Fields<'a> = self.parse(inner)?;
        let mut string = |name: &str| inner_fields.take(name).map(|value| self.string(value)).transpose();
        let media = match kind {
            "image_url" => string("url")?.map(|url| match base64::from_data_url(&url) {
                Some(image) if is_of(&image, "image/") => image,
                _ => Media::url(url),
            }),
            // Bytes that would be written as an image or as sound stay in their own form.
            "file" => string("file_data")?
                .and_then(|url| base64::from_data_url(&url))
                .filter(|media| !is_of(media, "image/") && !is_of(media, "audio/wav") && !is_of(media, "audio/mpeg")),
            _ => match (string("data")?, string("format")?) {
                (Some(data), Some(format)) => audio_type(&format)
                    .and_then(|mime_type| base64::decode(&data).map(|bytes| Media::bytes(mime_type, bytes))),
                _ => None,
            },
        };
        let Some(media) = media else {
            return Ok(None);
        };
        let more = json::rest(self.source, inner_fields)?;
        let more = if more.is_empty() { Map::new() } else { Map::from_iter([(kind.to_owned(), more.into())]) };
        Ok(Some((media, more)))
    }

    fn call(&mut self, raw: &'a RawValue, extra: &mut Extra) -> Result<ToolCall> {
        let mut fields: Fields<'a> = self.parse(raw)?;
        let id = fields.take("id").map(|id| self.string(id)).transpose()?.unwrap_or_default().into_owned();
        let mut more = Map::new();
        let kind = fields.take("type").map(|kind| self.string(kind)).transpose()?;
        let call = if kind.as_deref() == Some("custom") {
            more.insert("type".to_owned(), "custom".into());
            let custom =
                fields.take("custom").ok_or_else(|| self.source.error_at(raw.get(), "a call has no `custom`"))?;
            let mut custom: Fields<'a> = self.parse(custom)?;
            let mut string = |name| custom.take(name).map(|value| self.string(value)).transpose();
            let (name, input) = (string("name")?.unwrap_or_default(), string("input")?.unwrap_or_default());
            let rest = json::rest(self.source, custom)?;
            if !rest.is_empty() {
                more.insert("custom".to_owned(), rest.into());
            }
            ToolCall::new(id.clone(), name, input)
        } else {
            let function =
                fields.take("function").ok_or_else(|| self.source.error_at(raw.get(), "a call has no `function`"))?;
            let (call, function) = self.function(function, id.clone())?;
            if !function.is_empty() {
                more.insert("function".to_owned(), function.into());
            }
            call
        };
        more.extend(json::rest(self.source, fields)?);
        extra.calls.entry(id).or_default().push(more);
        Ok(call)
    }

    /// A function's name and arguments as a call, and what else its object says.
    fn function(&mut self, raw: &'a RawValue, id: String) -> Result<(ToolCall, Map<String, Value>)> {
        let mut fields: Fields<'a> = self.parse(raw)?;
        let name = fields.take("name").ok_or_else(|| self.source.error_at(raw.get(), "a function has no `name`"))?;
        let name = self.string(name)?;
        let arguments = match fields.take("arguments") {
            Some(text) if text.get().starts_with('"') => self.string(text)?,
            Some(value) => {
                self.warn("arguments that were JSON became its text");
                Cow::Borrowed(value.get())
            }
            None => Cow::Borrowed(""),
        };
        let more = json::rest(self.source, fields)?;
        Ok((ToolCall::new(id, name, arguments), more))
    }

    fn parse<T: serde::Deserialize<'a>>(&self, raw: &'a RawValue) -> Result<T> {
        json::read(self.source, raw)
    }

    fn string(&self, raw: &'a RawValue) -> Result<Cow<'a, str>> {
        self.parse::<String>(raw).map(Cow::Owned)
    }

    fn error(&self, reason: &str) -> Error {
        self.source.error_at(self.place, reason)
    }

    fn warn(&mut self, text: &str) {
        self.warnings.push(Warning { position: self.position, text: text.to_owned() });
    }
}

fn is_of(media: &Media, kind: &str) -> bool {
    media.mime_type.as_ref().is_some_and(|mime_type| mime_type.starts_with(kind))
}

/// The MIME type of the two formats that the form knows.
fn audio_type(format: &str) -> Option<&'static str> {
    match format {
        "wav" => Some("audio/wav"),
        "mp3" => Some("audio/mpeg"),
        _ => None,
    }
}
