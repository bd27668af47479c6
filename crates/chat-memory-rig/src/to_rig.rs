//! From our messages to rig's.

use std::collections::HashMap;
use std::fmt;

use chat_memory::{Content, Media, Message, Reasoning, ResultPart, Role, ToolCall, ToolResult};
use rig_core::completion::Message as RigMessage;
use rig_core::completion::message::{
    AssistantContent, AssistantMessage, Audio, CallId, Image, LocalCallId, ProviderCallId, Reasoning as RigReasoning,
    Text, ToolCall as RigCall, ToolFunction, ToolName, ToolResult as RigResult, ToolResultContent, UserContent, Video,
};
use serde_json::{Value, json};

use crate::extra::{BEGINS, FIELDS, JOINS, Kept, RIG, Rest, part_rest, read};
use crate::media::{RigMedia, TYPE, kind, to_media, to_whole};

/// Messages in rig's form.
#[derive(Default, Clone, PartialEq)]
#[non_exhaustive]
pub struct RigMessages {
    /// The messages, in order.
    pub messages: Vec<RigMessage>,
    /// What rig has no form for.
    pub warnings: Vec<Warning>,
}

/// Something that rig has no form for, and that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The message's position among those that were given, from 0.
    pub position: usize,
    /// What was left out. It never holds what was said.
    pub text: String,
}

/// Shows how much there is, never what was said.
impl fmt::Debug for RigMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RigMessages").field("messages", &self.messages.len()).field("warnings", &self.warnings).finish()
    }
}

/// Messages of ours as messages of rig's: those that [`from_rig`](crate::from_rig) made as they were, and any others as far as rig can
/// say them.
///
/// - The tool messages behind one assistant message become one user message with all their results, as rig wants it.
/// - A result takes its tool's name from the call that it answers, where it has none of its own.
/// - Bytes become base64. An image, sound, video or document is told by its MIME type; without one it is an image.
/// - A developer message becomes a system message.
///
/// What rig cannot say is left out, and reported: names, ids, times and metadata of messages, parts in a provider's own form, sounds and
/// documents in answers and results, signatures of thoughts that rig did not read itself, MIME types that rig does not know.
///
/// The list is taken as it is. One that a model is to be sent goes through [`model_ready`](chat_memory::model_ready) first, as
/// [`RigMemory`](crate::RigMemory) does it.
///
/// ```
/// use chat_memory::Message;
/// use chat_memory_rig::to_rig;
///
/// let call = Message::assistant("").with_tool_call("c1", "weather", r#"{"city":"Oslo"}"#);
/// let result = Message::tool_result("c1", "weather", "-4 °C").with_name("station");
/// let rig = to_rig(&[Message::user("How cold is Oslo?"), call, result]);
/// assert_eq!(rig.messages.len(), 3);
/// assert_eq!((rig.warnings[0].position, &*rig.warnings[0].text), (2, "rig cannot say: name"));
/// ```
pub fn to_rig(messages: &[Message]) -> RigMessages {
    let mut writer = Writer::default();
    for (position, message) in messages.iter().enumerate() {
        writer.message(message);
        writer.unsaid.dedup();
        if !writer.unsaid.is_empty() {
            let text = format!("rig cannot say: {}", writer.unsaid.join(", "));
            writer.made.warnings.push(Warning { position, text });
            writer.unsaid.clear();
        }
    }
    writer.made
}

/// Stands for the name that a tool does not have.
const UNNAMED: &str = "unnamed";

#[derive(Default)]
struct Writer<'a> {
    made: RigMessages,
    /// Of the message that is being written.
    unsaid: Vec<&'static str>,
    /// Whether the last message made is one of tool results, which more can join.
    open: bool,
    /// The tools' names, by the ids of the calls so far.
    names: HashMap<&'a str, &'a str>,
}

impl<'a> Writer<'a> {
    fn message(&mut self, message: &'a Message) {
        let open = std::mem::take(&mut self.open);
        let mut kept = Kept::of(message);
        let before = self.made.messages.len();
        match message.role() {
            Role::System => self.system(message),
            Role::Developer => {
                self.unsaid.push("the role of a developer");
                self.system(message);
            }
            Role::Assistant => self.assistant(message, &mut kept),
            Role::Tool => {
                let results = self.user_parts(message, &mut kept);
                let begins = kept.get(BEGINS) == Some(&Value::Bool(true));
                match self.made.messages.last_mut() {
                    Some(RigMessage::User { content }) if open && !begins => content.extend(results),
                    _ => self.push_user(message, results),
                }
                self.open = open || self.made.messages.len() > before;
            }
            Role::User => {
                let parts = self.user_parts(message, &mut kept);
                match (kept.get(JOINS), self.made.messages.last_mut()) {
                    (Some(joins), Some(RigMessage::User { content })) if open => join(content, parts, joins),
                    _ => self.push_user(message, parts),
                }
            }
            _ => self.unsaid.push("a role"),
        }
        let has_more = message.metadata().iter().any(|(key, value)| key != RIG || !value.is_object());
        let beside = [
            (message.name().is_some(), "name"),
            (message.id().is_some(), "id"),
            (message.created_at().is_some(), "created_at"),
            (has_more, "metadata"),
        ];
        self.unsaid.extend(beside.into_iter().filter_map(|(is_there, name)| is_there.then_some(name)));
    }

    fn system(&mut self, message: &Message) {
        if message.content().iter().any(|part| !matches!(part, Content::Text(_))) {
            self.unsaid.push("a part of a system message that is no text");
        }
        self.made.messages.push(RigMessage::System { content: message.text().into_owned() });
    }

    /// A message of which nothing could be said is none.
    fn push_user(&mut self, message: &Message, content: Vec<UserContent>) {
        if !content.is_empty() || (message.role() == Role::User && message.content().is_empty()) {
            self.made.messages.push(RigMessage::User { content });
        }
    }

    fn user_parts(&mut self, message: &'a Message, kept: &mut Kept<'a>) -> Vec<UserContent> {
        let mut parts = Vec::new();
        for part in message.content() {
            let rest = kept.next(part);
            match part {
                Content::ToolResult(result) => parts.extend(self.result(result, rest).map(UserContent::ToolResult)),
                _ if message.role() == Role::Tool => self.unsaid.push("a part of a tool message that is no result"),
                Content::Text(text) => parts.push(UserContent::Text(self.text(text, rest))),
                Content::Media(media) => parts.extend(self.user_media(media, rest)),
                Content::Opaque(opaque) => match to_whole(opaque, rest) {
                    Some(part) => parts.push(part),
                    None => self.unsaid.push("a part in a provider's own form"),
                },
                _ => self.unsaid.push("a call or a thought in a user message"),
            }
        }
        parts
    }

    fn text(&mut self, text: &str, rest: Rest) -> Text {
        if rest.is_empty() {
            return Text::new(text);
        }
        read(rest, [("text", text.into())]).unwrap_or_else(|| {
            self.unreadable();
            Text::new(text)
        })
    }

    fn user_media(&mut self, media: &Media, rest: Rest) -> Option<UserContent> {
        match kind(media, &rest) {
            Image::KIND => self.media(media, rest).map(UserContent::Image),
            Audio::KIND => self.media(media, rest).map(UserContent::Audio),
            Video::KIND => self.media(media, rest).map(UserContent::Video),
            _ => self.media(media, rest).map(UserContent::Document),
        }
    }

    /// Where only images can be.
    fn image(&mut self, media: &Media, rest: Rest) -> Option<Image> {
        if kind(media, &rest) != Image::KIND {
            self.unsaid.push("a sound, video or document in an answer or a result");
            return None;
        }
        self.media(media, rest)
    }

    fn media<T: RigMedia>(&mut self, media: &Media, rest: Rest) -> Option<T> {
        let made: Option<T> = to_media(media, rest).or_else(|| {
            self.unreadable();
            to_media(media, Rest::new())
        });
        if media.mime_type.is_some() && made.as_ref().is_some_and(|made| made.mime_type() != media.mime_type.as_deref())
        {
            self.unsaid.push("a MIME type");
        }
        made
    }

    fn result(&mut self, result: &'a ToolResult, mut rest: Rest) -> Option<RigResult> {
        let parts = result.parts.iter().enumerate();
        let content = parts.filter_map(|(position, part)| self.result_part(part, part_rest(&rest, position))).collect();
        let known = self.names.get(result.call_id.as_str()).copied();
        let name = result.name.as_deref().or(known).unwrap_or_default();
        Some(RigResult {
            call: call_id(&result.call_id, rest.shift_remove("call")),
            name: self.tool_name(name)?,
            content,
            is_error: result.is_error,
        })
    }

    fn result_part(&mut self, part: &ResultPart, mut rest: Rest) -> Option<ToolResultContent> {
        match part {
            ResultPart::Text(text) if rest.get(TYPE).and_then(Value::as_str) == Some("json") => {
                match rest.shift_remove("value").map_or_else(|| serde_json::from_str(text), Ok) {
                    Ok(value) => Some(ToolResultContent::Json { value }),
                    Err(_) => Some(ToolResultContent::Text(Text::new(text))),
                }
            }
            ResultPart::Text(text) => Some(ToolResultContent::Text(self.text(text, rest))),
            ResultPart::Media(media) => self.image(media, rest).map(ToolResultContent::Image),
            ResultPart::Opaque(opaque) => {
                let part = to_whole(opaque, rest);
                if part.is_none() {
                    self.unsaid.push("a part in a provider's own form");
                }
                part
            }
            _ => None,
        }
    }

    fn assistant(&mut self, message: &'a Message, kept: &mut Kept<'a>) {
        let mut content = Vec::new();
        for part in message.content() {
            let rest = kept.next(part);
            match part {
                Content::Text(text) => content.push(AssistantContent::Text(self.text(text, rest))),
                Content::ToolCall(call) => content.extend(self.call(call, rest).map(AssistantContent::ToolCall)),
                Content::Reasoning(thought) => content.push(AssistantContent::Reasoning(self.reasoning(thought, rest))),
                Content::Media(media) => content.extend(self.image(media, rest).map(AssistantContent::Image)),
                Content::Opaque(opaque) => match to_whole(opaque, rest) {
                    Some(part) => content.push(part),
                    None => self.unsaid.push("a part in a provider's own form"),
                },
                _ => self.unsaid.push("a result in an assistant message"),
            }
        }
        if content.is_empty() && !message.content().is_empty() {
            return;
        }
        let turn = match kept.get(FIELDS) {
            Some(Value::Object(fields)) => read(fields.clone(), [("content", json!([]))]).unwrap_or_else(|| {
                self.unreadable();
                AssistantMessage::default()
            }),
            _ => AssistantMessage::default(),
        };
        self.made.messages.push(RigMessage::Assistant(turn.with_content(content)));
    }

    fn call(&mut self, call: &'a ToolCall, mut rest: Rest) -> Option<RigCall> {
        self.names.insert(&call.id, &call.name);
        let name = self.tool_name(&call.name)?;
        let function = rest.shift_remove("function").and_then(|function| serde_json::from_value(function).ok());
        let function = function.unwrap_or_else(|| ToolFunction::parse(name, &call.arguments));
        let id = call_id(&call.id, rest.shift_remove("id"));
        if rest.is_empty() {
            return Some(RigCall::new(id, function));
        }
        let blank = [("id", json!({"provider": "-"})), ("function", json!({"name": "-"}))];
        let Some(read) = read::<RigCall>(rest, blank) else {
            self.unreadable();
            return Some(RigCall::new(id, function));
        };
        Some(RigCall { id, function, ..read })
    }

    fn reasoning(&mut self, thought: &Reasoning, rest: Rest) -> RigReasoning {
        if !rest.is_empty() {
            if let Some(read) = read(rest, [("text", thought.text.as_str().into())]) {
                return read;
            }
            self.unreadable();
        }
        // A signature holds for the provider's item alone, and rig sends items only where it knows who made them.
        if thought.signature.is_some() || thought.redacted.is_some() {
            self.unsaid.push("the signature of a thought");
        }
        let mut reasoning = RigReasoning::new(&thought.text);
        reasoning.redacted = thought.text.is_empty() && thought.redacted.is_some();
        reasoning
    }

    fn tool_name(&mut self, name: &str) -> Option<ToolName> {
        // rig knows no tool without a name.
        if name.is_empty() {
            self.unsaid.push("a tool without a name");
        }
        ToolName::new(if name.is_empty() { UNNAMED } else { name }).ok()
    }

    fn unreadable(&mut self) {
        self.unsaid.push("what rig kept beside a part, which it cannot read");
    }
}

/// The one message of rig's that a tool message and the user message behind it were: its results, and the other parts among them.
fn join(content: &mut Vec<UserContent>, parts: Vec<UserContent>, joins: &Value) {
    let Value::Array(before) = joins else {
        content.extend(parts);
        return;
    };
    let before = before.iter().map(|before| before.as_u64().and_then(|before| usize::try_from(before).ok()));
    let before = before.map(|before| before.unwrap_or(usize::MAX)).chain(std::iter::repeat(usize::MAX));
    let mut results = std::mem::take(content).into_iter();
    let mut taken = 0;
    for (part, before) in parts.into_iter().zip(before) {
        content.extend(results.by_ref().take(before.saturating_sub(taken)));
        taken = before.max(taken);
        content.push(part);
    }
    content.extend(results);
}

/// The id of a call: as it was kept, where it is still the same.
fn call_id(id: &str, kept: Option<Value>) -> CallId {
    let kept: Option<CallId> = kept.and_then(|kept| serde_json::from_value(kept).ok());
    match (kept, ProviderCallId::new(id)) {
        (Some(kept), _) if kept.wire() == id => kept,
        (_, Some(id)) => id.into(),
        // rig knows no empty id. One of its own, and the same for call and result.
        (_, None) => serde_json::from_value::<LocalCallId>(json!("00000000-0000-0000-0000-000000000000"))
            .unwrap_or_default()
            .into(),
    }
}
