//! This crate's own form: JSON Lines, a message a line, that says everything a [`Message`] says.
//!
//! Writing, reading and writing again gives the same bytes. Fields that a message does not have are left out.
//!
//! ```json
//! {"role":"user","id":"m-1","created_at":"1764000000.000000000","content":[{"type":"text","text":"hello"}]}
//! {"role":"assistant","content":[{"type":"tool_call","id":"c1","name":"weather","arguments":"{}"}]}
//! {"role":"tool","content":[{"type":"tool_result","call_id":"c1","parts":[{"type":"text","text":"-4 °C"}]}]}
//! ```
//!
//! | field | |
//! |---|---|
//! | `role` | `system`, `developer`, `user`, `assistant` or `tool` |
//! | `id`, `name` | texts |
//! | `created_at` | seconds since 1970 with nine decimals, as a text, with `-` for times before |
//! | `content` | parts, by `type`: `text`, `media` (`mime_type`, and `url` or `base64`), `tool_call` (`id`, `name`, `arguments` as a text), `tool_result` (`call_id`, `name`, `is_error`, `parts`), `reasoning` (`text`, `signature`, `redacted`), `opaque` (`provider`, `json` as a text) |
//! | `metadata` | an object |

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::json::{self, Source};
use super::{Export, Import, base64};
use crate::error::Result;
use crate::message::json::Json;
use crate::message::{
    Content, Media, MediaSource, Message, Metadata, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult,
};

/// Writes messages. There is nothing that this form cannot say, so there are no warnings.
///
/// ```
/// use chat_memory::{Message, transcript::jsonl};
///
/// let messages = [Message::user("hello").with_id("m-1").with_metadata("channel", "web")];
/// let text = jsonl::write(&messages).to_json_lines();
/// assert_eq!(text, "{\"role\":\"user\",\"id\":\"m-1\",\"content\":[{\"type\":\"text\",\"text\":\"hello\"}],\
///     \"metadata\":{\"channel\":\"web\"}}\n");
/// assert_eq!(jsonl::read(&text)?.messages, messages);
/// # Ok::<(), chat_memory::Error>(())
/// ```
pub fn write(messages: &[Message]) -> Export {
    let object = |message: &Message| serde_json::to_string(&Line::from(message)).unwrap_or_default();
    Export { objects: messages.iter().map(object).collect(), ..Export::default() }
}

/// Reads messages: JSON Lines, or a JSON array of the same objects.
///
/// # Errors
///
/// [`Error::InvalidTranscript`](crate::Error::InvalidTranscript) with line and column where the text is not JSON, or not of
/// this form. Nothing is read then.
pub fn read(text: &str) -> Result<Import> {
    let source = Source::new(text);
    let mut import = Import::default();
    for raw in json::values(&source)? {
        import.note_surrogates(&source, raw);
        import.messages.push(message(&source, raw)?);
    }
    Ok(import)
}

fn message(source: &Source<'_>, raw: &RawValue) -> Result<Message> {
    let line: Line<'_> = json::read(source, raw)?;
    line.into_message().map_err(|reason| source.error_at(raw.get(), reason))
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    #[serde(borrow)]
    content: Vec<Part<'a>>,
    #[serde(default, skip_serializing_if = "Map::is_empty", deserialize_with = "object")]
    metadata: Map<String, Value>,
}

fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match Json::<true>::deserialize(deserializer)?.0 {
        Value::Object(map) => Ok(map),
        _ => Err(D::Error::custom("no object")),
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Part<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Media {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
    },
    ToolCall {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    ToolResult {
        call_id: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        parts: Vec<Part<'a>>,
    },
    Reasoning {
        text: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redacted: Option<Cow<'a, str>>,
    },
    Opaque {
        provider: Cow<'a, str>,
        json: Cow<'a, str>,
    },
}

impl<'a> From<&'a Message> for Line<'a> {
    fn from(message: &'a Message) -> Self {
        Self {
            role: message.role().as_str().into(),
            id: message.id().map(Cow::Borrowed),
            name: message.name().map(Cow::Borrowed),
            created_at: message.created_at().map(write_time),
            content: message.content().iter().map(Part::from).collect(),
            metadata: message.metadata().clone().into(),
        }
    }
}

impl Line<'_> {
    fn into_message(self) -> Result<Message, &'static str> {
        let role = match self.role.as_ref() {
            "system" => Role::System,
            "developer" => Role::Developer,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => return Err("the role is none of system, developer, user, assistant, tool"),
        };
        let content = self.content.into_iter().map(Part::into_content).collect::<Result<Vec<_>, _>>()?;
        let mut message = Message::new(role, content).replace_metadata(Metadata::from(self.metadata));
        if let Some(id) = self.id {
            message = message.with_id(id);
        }
        if let Some(name) = self.name {
            message = message.with_name(name);
        }
        if let Some(time) = self.created_at {
            let time = read_time(&time).ok_or("`created_at` is no seconds since 1970 with nine decimals")?;
            message = message.with_created_at(time);
        }
        Ok(message)
    }
}

impl<'a> From<&'a Content> for Part<'a> {
    fn from(content: &'a Content) -> Self {
        let optional = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
        match content {
            Content::Text(text) => Part::Text { text: text.into() },
            Content::Media(media) => Part::from(media),
            Content::ToolCall(ToolCall { id, name, arguments }) => {
                Part::ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
            }
            Content::ToolResult(ToolResult { call_id, name, parts, is_error }) => Part::ToolResult {
                call_id: call_id.into(),
                name: optional(name),
                is_error: *is_error,
                parts: parts.iter().map(Part::from).collect(),
            },
            Content::Reasoning(Reasoning { text, signature, redacted }) => {
                Part::Reasoning { text: text.into(), signature: optional(signature), redacted: optional(redacted) }
            }
            Content::Opaque(opaque) => Part::from(opaque),
        }
    }
}

impl<'a> From<&'a ResultPart> for Part<'a> {
    fn from(part: &'a ResultPart) -> Self {
        match part {
            ResultPart::Text(text) => Part::Text { text: text.into() },
            ResultPart::Media(media) => Part::from(media),
            ResultPart::Opaque(opaque) => Part::from(opaque),
        }
    }
}

impl<'a> From<&'a Media> for Part<'a> {
    fn from(media: &'a Media) -> Self {
        let (url, base64) = match &media.source {
            MediaSource::Url(url) => (Some(url.into()), None),
            MediaSource::Bytes(bytes) => (None, Some(base64::encode(bytes))),
        };
        Part::Media { mime_type: media.mime_type.as_deref().map(Cow::Borrowed), url, base64 }
    }
}

impl<'a> From<&'a Opaque> for Part<'a> {
    fn from(opaque: &'a Opaque) -> Self {
        Part::Opaque { provider: (&opaque.provider).into(), json: (&opaque.json).into() }
    }
}

impl Part<'_> {
    fn into_content(self) -> Result<Content, &'static str> {
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        Ok(match self {
            Part::ToolCall { id, name, arguments } => ToolCall::new(id, name, arguments).into(),
            Part::ToolResult { call_id, name, is_error, parts } => {
                let mut result = ToolResult::new(call_id);
                result.name = owned(name);
                result.is_error = is_error;
                result.parts = parts.into_iter().map(Part::into_result_part).collect::<Result<_, _>>()?;
                result.into()
            }
            Part::Reasoning { text, signature, redacted } => {
                let mut reasoning = Reasoning::new(text);
                (reasoning.signature, reasoning.redacted) = (owned(signature), owned(redacted));
                reasoning.into()
            }
            part => match part.into_result_part()? {
                ResultPart::Text(text) => Content::Text(text),
                ResultPart::Media(media) => media.into(),
                ResultPart::Opaque(opaque) => opaque.into(),
            },
        })
    }

    fn into_result_part(self) -> Result<ResultPart, &'static str> {
        Ok(match self {
            Part::Text { text } => ResultPart::Text(text.into_owned()),
            Part::Media { mime_type, url, base64 } => {
                let mut media = match (url, base64) {
                    (Some(url), None) => Media::url(url),
                    (None, Some(text)) => Media::bytes("", base64::decode(&text).ok_or("`base64` is not base64")?),
                    _ => return Err("media has either a `url` or `base64`"),
                };
                media.mime_type = mime_type.map(Cow::into_owned);
                ResultPart::Media(media)
            }
            Part::Opaque { provider, json } => ResultPart::Opaque(Opaque::new(provider, json)),
            Part::ToolCall { .. } | Part::ToolResult { .. } | Part::Reasoning { .. } => {
                return Err("a tool's result holds only text, media and opaque parts");
            }
        })
    }
}

fn write_time(time: SystemTime) -> String {
    let (sign, distance) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => ("", after),
        Err(before) => ("-", before.duration()),
    };
    format!("{sign}{}.{:09}", distance.as_secs(), distance.subsec_nanos())
}

fn read_time(text: &str) -> Option<SystemTime> {
    let (is_before, distance) = match text.strip_prefix('-') {
        Some(distance) => (true, distance),
        None => (false, text),
    };
    let (seconds, nanoseconds) = distance.split_once('.')?;
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if nanoseconds.len() != 9 || !is_number(nanoseconds) || !is_number(seconds) {
        return None;
    }
    let distance = Duration::new(seconds.parse().ok()?, nanoseconds.parse().ok()?);
    if is_before { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}
