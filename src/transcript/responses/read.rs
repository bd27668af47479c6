//! From the items of the Responses API.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::Import;
use super::super::extra::Draft;
use super::super::json::{self, Fields, Source};
use super::{ITEMS, Kind, PROVIDER, Seen, part};
use crate::error::{Error, Result};
use crate::message::{Content, Message, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult};

/// Reads one conversation: a JSON array of items, JSON Lines with an item a line, a request object with `input` and
/// `instructions`, or a response object with `output`, whose `instructions` are the request's and not read again. Other fields
/// of these two are not read.
///
/// Escapes that are half of a surrogate pair, which no text can hold, become U+FFFD, with a warning.
///
/// ```
/// use chat_memory::transcript::responses;
///
/// let import = responses::read(r#"{"instructions": "You are brief.", "input": [
///     {"role": "user", "content": "What is the weather in Oslo?"},
///     {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
///     {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\":\"Oslo\"}"},
///     {"type": "function_call_output", "call_id": "c1", "output": "-4 °C"}
/// ]}"#)?;
/// assert_eq!(import.messages.len(), 4);
/// assert_eq!(import.messages[2].content().len(), 2);
/// assert!(import.warnings.is_empty());
/// # Ok::<(), chat_memory::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidTranscript`] with line and column where the text is not JSON, or not of this form. Nothing is read then.
pub fn read(text: &str) -> Result<Import> {
    let source = Source::new(text);
    let mut reader = Reader { source: &source, import: Import::default(), open: None };
    let values = json::values(&source)?;
    match values.as_slice() {
        [whole] if whole.get().starts_with('{') => reader.whole(whole)?,
        items => reader.items(items)?,
    }
    reader.close();
    Ok(reader.import)
}

/// Whether an item's text is read as an opaque one.
pub(super) fn is_opaque(item: &str) -> Result<bool> {
    let import = read(&format!("[{item}]"))?;
    let is_opaque =
        |message: &Message| matches!(message.content(), [Content::Opaque(part)] if part.provider == PROVIDER);
    Ok(import.messages.iter().all(is_opaque))
}

struct Reader<'a> {
    source: &'a Source<'a>,
    import: Import,
    /// The message of the assistant that the next item may go on with.
    open: Option<(Draft, Seen)>,
}

impl<'a> Reader<'a> {
    /// A request, a response, or a single item.
    fn whole(&mut self, raw: &'a RawValue) -> Result<()> {
        let mut fields: Fields<'a> = self.parse(raw)?;
        if fields.0.iter().any(|(name, _)| name == "type" || name == "role") {
            return self.item(raw);
        }
        if let Some(output) = fields.take("output") {
            return self.items(&self.parse::<Vec<_>>(output)?);
        }
        let (instructions, input) = (fields.take("instructions"), fields.take("input"));
        if instructions.is_none() && input.is_none() {
            return Err(self.error(raw, "neither an item, nor a request with `input`, nor a response with `output`"));
        }
        for (role, said) in [(Role::System, instructions), (Role::User, input)] {
            match said {
                Some(text) if text.get().starts_with('"') => {
                    self.import.note_surrogates(self.source, text);
                    let text = Content::Text(self.parse(text)?);
                    self.import.messages.push(Message::new(role, [text]));
                }
                Some(items) => self.items(&self.parse::<Vec<_>>(items)?)?,
                None => {}
            }
        }
        Ok(())
    }

    fn items(&mut self, items: &[&'a RawValue]) -> Result<()> {
        items.iter().try_for_each(|item| self.item(item))
    }

    fn item(&mut self, raw: &'a RawValue) -> Result<()> {
        let mut fields: Fields<'a> = self.parse(raw)?;
        let kind = match fields.take("type") {
            Some(kind) => self.parse::<String>(kind)?,
            None => "message".to_owned(),
        };
        match kind.as_str() {
            "message" => self.message(fields, raw)?,
            "function_call_output" | "custom_tool_call_output" => self.output(&kind, fields, raw)?,
            "function_call" | "custom_tool_call" => {
                let input = if kind == "function_call" { "arguments" } else { "input" };
                let mut string = |name| self.required(&mut fields, raw, name);
                let call = ToolCall::new(string("call_id")?, string("name")?, string(input)?);
                let more = self.rest(fields, &kind, "function_call")?;
                self.go_on(Kind::Call, raw).push(call.into(), more);
            }
            "reasoning" => {
                let (thought, more) = self.thought(fields)?;
                self.go_on(Kind::Other, raw).push(thought.into(), more);
            }
            _ => self.go_on(Kind::Other, raw).push(Opaque::new(PROVIDER, raw.get()).into(), Map::new()),
        }
        Ok(())
    }

    fn message(&mut self, mut fields: Fields<'a>, raw: &'a RawValue) -> Result<()> {
        let role = fields.take("role").ok_or_else(|| self.error(raw, "a message has no `role`"))?;
        let role = match self.parse::<String>(role)?.as_str() {
            "system" => Role::System,
            "developer" => Role::Developer,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return Err(self.error(role, "the role is none of system, developer, user, assistant")),
        };
        let parts = self.parts(fields.take("content"), "content")?;
        let more = json::rest(self.source, fields)?;
        if role == Role::Assistant && !parts.is_empty() {
            let source = self.source;
            return fill(source, self.go_on(Kind::Message, raw), more, &parts);
        }
        if role == Role::Assistant && self.open.as_ref().is_some_and(|(_, seen)| seen.has_call) {
            self.import.warn("an empty message behind a call was left out");
            return Ok(());
        }
        self.close();
        self.import.note_surrogates(self.source, raw);
        let mut draft = Draft::new(role);
        fill(self.source, &mut draft, more, &parts)?;
        self.import.messages.push(draft.finish(PROVIDER));
        Ok(())
    }

    /// The draft of the assistant's message that an item goes on with, or begins.
    fn go_on(&mut self, kind: Kind, raw: &RawValue) -> &mut Draft {
        if self.open.as_ref().is_some_and(|(_, seen)| !seen.goes_on(kind)) {
            self.close();
        }
        self.import.note_surrogates(self.source, raw);
        let (draft, seen) = self.open.get_or_insert_with(|| (Draft::new(Role::Assistant), Seen::default()));
        if seen.ends_in_message && kind == Kind::Message {
            // Nothing else says that here another item begins.
            note_item(draft, Map::new());
        }
        *seen = seen.with(kind);
        draft
    }

    fn close(&mut self) {
        self.import.messages.extend(self.open.take().map(|(draft, _)| draft.finish(PROVIDER)));
    }

    fn output(&mut self, kind: &str, mut fields: Fields<'a>, raw: &'a RawValue) -> Result<()> {
        self.close();
        self.import.note_surrogates(self.source, raw);
        let mut result = ToolResult::new(self.required(&mut fields, raw, "call_id")?);
        let mut inside = Map::new();
        for raw in self.parts(fields.take("output"), "output")? {
            let (part, more) = part::read(self.source, raw, Role::Tool)?;
            if !more.is_empty() {
                inside.insert(result.parts.len().to_string(), more.into());
            }
            result.parts.push(match part {
                Content::Text(text) => ResultPart::Text(text),
                Content::Media(media) => ResultPart::Media(media),
                Content::Opaque(opaque) => ResultPart::Opaque(opaque),
                _ => return Err(self.error(raw, "a part that no output can have")),
            });
        }
        let mut more = self.rest(fields, kind, "function_call_output")?;
        if !inside.is_empty() {
            more.insert("output".to_owned(), inside.into());
        }
        let mut draft = Draft::new(Role::Tool);
        draft.push(result.into(), more);
        self.import.messages.push(draft.finish(PROVIDER));
        Ok(())
    }

    fn thought(&self, mut fields: Fields<'a>) -> Result<(Reasoning, Map<String, Value>)> {
        let sealed = fields.take("encrypted_content").map(|sealed| self.parse(sealed)).transpose()?;
        let mut more = json::rest(self.source, fields)?;
        let texts = |list: Option<&Value>| {
            let texts = list.and_then(Value::as_array).into_iter().flatten();
            texts.filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n\n")
        };
        let mut thought = Reasoning::new(texts(more.get("summary")));
        if thought.text.is_empty() {
            thought.text = texts(more.get("content"));
        }
        if more.get("summary") == Some(&super::write::summary(&thought.text)) {
            more.shift_remove("summary");
        }
        thought.redacted = sealed;
        // By this an export knows whose thought it is.
        more.insert("type".to_owned(), "reasoning".into());
        Ok((thought, more))
    }

    /// The texts of parts: a string is a part too.
    fn parts(&self, list: Option<&'a RawValue>, name: &str) -> Result<Vec<&'a RawValue>> {
        match list {
            None => Ok(Vec::new()),
            Some(text) if text.get().starts_with('"') => Ok(vec![text]),
            Some(list) if list.get().starts_with('[') => self.parse(list),
            Some(other) => Err(self.error(other, format!("`{name}` is neither a string nor a list of parts"))),
        }
    }

    /// What nobody took, with the type where it is not the usual one.
    fn rest(&self, fields: Fields<'a>, kind: &str, usual: &str) -> Result<Map<String, Value>> {
        let mut more = json::rest(self.source, fields)?;
        if kind != usual {
            more.insert("type".to_owned(), kind.into());
        }
        Ok(more)
    }

    fn required(&self, fields: &mut Fields<'a>, raw: &RawValue, name: &str) -> Result<String> {
        let value = fields.take(name).ok_or_else(|| self.error(raw, format!("an item has no `{name}`")))?;
        self.parse(value)
    }

    fn parse<T: Deserialize<'a>>(&self, raw: &'a RawValue) -> Result<T> {
        json::read(self.source, raw)
    }

    fn error(&self, raw: &RawValue, reason: impl Into<String>) -> Error {
        self.source.error_at(raw.get(), reason)
    }
}

/// Adds the parts of a message item, with its further fields.
fn fill(source: &Source<'_>, draft: &mut Draft, more: Map<String, Value>, parts: &[&RawValue]) -> Result<()> {
    if !more.is_empty() {
        note_item(draft, more);
    }
    for raw in parts {
        let (part, more) = part::read(source, raw, draft.role)?;
        draft.push(part, more);
    }
    Ok(())
}

/// Keeps further fields of a message item, whose first part comes next.
fn note_item(draft: &mut Draft, more: Map<String, Value>) {
    let items = draft.extra.entry.entry(ITEMS).or_insert_with(|| Map::new().into());
    if let Value::Object(items) = items {
        items.insert(draft.parts.to_string(), more.into());
    }
}
