//! From the Anthropic form.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::Import;
use super::super::extra::Draft;
use super::super::json::{self, Fields, Source};
use super::{INVALID_JSON, JOINED, PROVIDER, RESPONSE, media};
use crate::error::{Error, Result};
use crate::message::{Content, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult};

/// Reads one conversation: a request object with `messages` and `system`, a JSON array of messages, or JSON Lines with a
/// message a line. A response is a message too. Other fields of a request object are not read.
///
/// Escapes that are half of a surrogate pair, which no text can hold, become U+FFFD, with a warning.
///
/// ```
/// use chat_memory::{Role, transcript::anthropic};
///
/// let import = anthropic::read(r#"{"system": "You are brief.", "messages": [
///     {"role": "user", "content": "What is the weather in Oslo?"},
///     {"role": "assistant", "content": [
///         {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}]},
///     {"role": "user", "content": [
///         {"type": "tool_result", "tool_use_id": "c1", "content": "-4 °C"},
///         {"type": "text", "text": "And in Rome?"}]}
/// ]}"#)?;
/// let roles: Vec<Role> = import.messages.iter().map(|message| message.role()).collect();
/// assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::User]);
/// assert!(import.warnings.is_empty());
/// # Ok::<(), chat_memory::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidTranscript`] with line and column where the text is not JSON, or not of this form. Nothing is read then.
pub fn read(text: &str) -> Result<Import> {
    let source = Source::new(text);
    let mut reader = Reader { source: &source, import: Import::default() };
    let values = json::values(&source)?;
    if let [whole] = values.as_slice()
        && whole.get().starts_with('{')
        && let mut fields = json::read::<Fields<'_>>(&source, whole)?
        && let Some(messages) = fields.take("messages")
    {
        if let Some(system) = fields.take("system") {
            reader.system(system)?;
        }
        for message in json::read::<Vec<&RawValue>>(&source, messages)? {
            reader.message(message)?;
        }
    } else {
        for message in values {
            reader.message(message)?;
        }
    }
    Ok(reader.import)
}

/// A part, and what its block says beside it.
type Part = (Content, Map<String, Value>);

struct Reader<'a> {
    source: &'a Source<'a>,
    import: Import,
}

impl<'a> Reader<'a> {
    fn system(&mut self, content: &'a RawValue) -> Result<()> {
        self.import.note_surrogates(self.source, content);
        let mut draft = Draft::new(Role::System);
        for block in self.blocks(Some(content))? {
            let (part, more) = self.block(block, Role::System)?;
            draft.push(part, more);
        }
        self.import.messages.push(draft.finish(PROVIDER));
        Ok(())
    }

    fn message(&mut self, raw: &'a RawValue) -> Result<()> {
        self.import.note_surrogates(self.source, raw);
        let mut fields: Fields<'a> = self.parse(raw)?;
        let role = fields.take("role").ok_or_else(|| self.error(raw, "a message has no `role`"))?;
        let role = match self.string(role)?.as_str() {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return Err(self.error(role, "the role is none of system, user, assistant")),
        };
        let content = fields.take("content");
        let mut fields = json::rest(self.source, fields)?;
        let mut draft = Draft::new(role);
        let is_response = fields.get("type").is_some_and(|kind| kind == "message");
        let mut id = None;
        if is_response {
            fields.shift_remove("type");
            if let Some(Value::String(text)) = fields.get_mut("id") {
                id = Some(std::mem::take(text));
                fields.shift_remove("id");
            }
            if !fields.is_empty() {
                draft.extra.entry.insert(RESPONSE.to_owned(), fields.into());
            }
        } else {
            draft.extra.fields = fields;
        }
        for block in self.blocks(content)? {
            let (part, more) = self.block(block, role)?;
            // The results of a user's message are a message of their own.
            let role = if matches!(part, Content::ToolResult(_)) { Role::Tool } else { role };
            if draft.is_empty() {
                draft.role = role;
            } else if draft.role != role {
                let before = std::mem::replace(&mut draft, Draft::new(role));
                self.import.messages.push(before.finish(PROVIDER));
                draft.extra.entry.insert(JOINED.to_owned(), true.into());
            }
            draft.push(part, more);
        }
        let message = draft.finish(PROVIDER);
        self.import.messages.push(match id {
            Some(id) => message.with_id(id),
            None => message,
        });
        Ok(())
    }

    /// The blocks of a content, each as its text: a string is a block too.
    fn blocks(&self, content: Option<&'a RawValue>) -> Result<Vec<&'a RawValue>> {
        match content {
            None => Ok(Vec::new()),
            Some(content) if content.get().starts_with('"') => Ok(vec![content]),
            Some(content) if content.get().starts_with('[') => self.parse(content),
            Some(content) => Err(self.error(content, "`content` is neither a string nor a list of blocks")),
        }
    }

    fn block(&mut self, raw: &'a RawValue, role: Role) -> Result<Part> {
        if raw.get().starts_with('"') {
            return Ok((Content::Text(self.string(raw)?), Map::new()));
        }
        let mut fields: Fields<'a> = self.parse(raw)?;
        let kind = fields.take("type").ok_or_else(|| self.error(raw, "a block has no `type`"))?;
        let mut inside = Map::new();
        let content = match self.string(kind)?.as_str() {
            "text" => Content::Text(self.required(&mut fields, raw, "text")?),
            // Instructions are texts, and the blocks of a result are no thoughts and no calls.
            _ if role == Role::System => return Ok(opaque(raw)),
            kind @ ("image" | "document") => match self.media(kind, &mut fields, &mut inside)? {
                Some(content) => content,
                None => return Ok(opaque(raw)),
            },
            "thinking" if role != Role::Tool => {
                let mut thought = Reasoning::new(self.required(&mut fields, raw, "thinking")?);
                thought.signature = self.optional(&mut fields, "signature")?;
                if thought.signature.is_none() {
                    // By this an export knows that the form's own are allowed to have none.
                    inside.insert("type".to_owned(), "thinking".into());
                }
                thought.into()
            }
            "redacted_thinking" if role != Role::Tool => {
                Reasoning::new("").with_redacted(self.required(&mut fields, raw, "data")?).into()
            }
            "tool_use" if role == Role::Assistant => self.call(&mut fields, raw)?.into(),
            "tool_result" if role == Role::User => self.result(&mut fields, raw, &mut inside)?.into(),
            _ => return Ok(opaque(raw)),
        };
        inside.extend(json::rest(self.source, fields)?);
        Ok((content, inside))
    }

    /// Media, and in `inside` what its source says beside it; `None` where the source is of another kind.
    fn media(&self, kind: &str, fields: &mut Fields<'a>, inside: &mut Map<String, Value>) -> Result<Option<Content>> {
        let Some(raw) = fields.take("source") else {
            return Ok(None);
        };
        let mut source: Fields<'a> = self.parse(raw)?;
        let source_kind = self.required(&mut source, raw, "type")?;
        // Whose data may be a list of blocks.
        if !matches!(source_kind.as_str(), "base64" | "text" | "url") {
            return Ok(None);
        }
        let said = media::Source {
            kind: source_kind,
            media_type: self.optional(&mut source, "media_type")?,
            data: self.optional(&mut source, "data")?,
            url: self.optional(&mut source, "url")?,
        };
        let more = json::rest(self.source, source)?;
        if !more.is_empty() {
            inside.insert("source".to_owned(), more.into());
        }
        Ok(said.into_media(kind).map(Content::Media))
    }

    fn call(&mut self, fields: &mut Fields<'a>, raw: &'a RawValue) -> Result<ToolCall> {
        let (id, name) = (self.required(fields, raw, "id")?, self.required(fields, raw, "name")?);
        let input = fields.take("input").ok_or_else(|| self.error(raw, "a block has no `input`"))?;
        if !input.get().starts_with('{') {
            self.import.warn("an input that is no object became the text of arguments");
        }
        let arguments = invalid_json(input.get()).unwrap_or_else(|| input.get().to_owned());
        Ok(ToolCall::new(id, name, arguments))
    }

    /// The answer of a tool, and in `inside` what its blocks say beside their content, by position.
    fn result(
        &mut self,
        fields: &mut Fields<'a>,
        raw: &'a RawValue,
        inside: &mut Map<String, Value>,
    ) -> Result<ToolResult> {
        let mut result = ToolResult::new(self.required(fields, raw, "tool_use_id")?);
        if let Some(is_error) = fields.take("is_error") {
            result.is_error = self.parse(is_error)?;
        }
        let mut blocks = Map::new();
        for block in self.blocks(fields.take("content"))? {
            let (part, more) = self.block(block, Role::Tool)?;
            if !more.is_empty() {
                blocks.insert(result.parts.len().to_string(), more.into());
            }
            result.parts.push(match part {
                Content::Text(text) => ResultPart::Text(text),
                Content::Media(media) => ResultPart::Media(media),
                Content::Opaque(opaque) => ResultPart::Opaque(opaque),
                _ => return Err(self.error(block, "a block that no result can have")),
            });
        }
        if !blocks.is_empty() {
            inside.insert("content".to_owned(), blocks.into());
        }
        Ok(result)
    }

    fn required(&self, fields: &mut Fields<'a>, raw: &RawValue, name: &str) -> Result<String> {
        self.optional(fields, name)?.ok_or_else(|| self.error(raw, format!("a block has no `{name}`")))
    }

    fn optional(&self, fields: &mut Fields<'a>, name: &str) -> Result<Option<String>> {
        fields.take(name).map(|value| self.string(value)).transpose()
    }

    fn string(&self, raw: &RawValue) -> Result<String> {
        json::read(self.source, raw)
    }

    fn parse<T: Deserialize<'a>>(&self, raw: &'a RawValue) -> Result<T> {
        json::read(self.source, raw)
    }

    fn error(&self, raw: &RawValue, reason: impl Into<String>) -> Error {
        self.source.error_at(raw.get(), reason)
    }
}

/// The part that is read of a block's text in a message of this role, or inside a result where it is of a tool.
pub(super) fn part(block: &str, role: Role) -> Result<Content> {
    let source = Source::new(block);
    let raw = serde_json::from_str(&source.text).map_err(|error| source.parse_error(&source.text, &error))?;
    Reader { source: &source, import: Import::default() }.block(raw, role).map(|(part, _)| part)
}

fn opaque(raw: &RawValue) -> Part {
    (Opaque::new(PROVIDER, raw.get()).into(), Map::new())
}

/// The arguments for which an input stands that is no more than a text under the agreed key.
fn invalid_json(input: &str) -> Option<String> {
    let fields: Fields<'_> = serde_json::from_str(input).ok()?;
    match fields.0.as_slice() {
        [(key, text)] if key == INVALID_JSON => {
            serde_json::from_str(text.get()).ok().filter(|text: &String| super::write::is_unsayable(text))
        }
        _ => None,
    }
}
