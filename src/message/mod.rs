//! What was said: [`Message`] and its parts.

mod content;
pub(crate) mod json;
mod metadata;
pub(crate) mod turns;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

pub use content::{Content, Media, MediaSource, Opaque, Reasoning, ResultPart, ToolCall, ToolResult};
pub use metadata::Metadata;

/// One thing that was said: a role, a list of content parts, and what is known about them.
///
/// A message is an immutable value behind one `Arc`: a clone costs a reference count, however long the text. It comes
/// back from every store exactly as it was given, field by field; what is missing stays missing.
///
/// ```
/// use chat_memory::Message;
///
/// let question = Message::user("What is the weather in Oslo?").with_id("m-1").with_metadata("channel", "web");
/// assert_eq!(question.text(), "What is the weather in Oslo?");
/// assert_eq!(question.id(), Some("m-1"));
///
/// let call = Message::assistant("Let me look.").with_tool_call("c-1", "weather", r#"{"city":"Oslo"}"#);
/// let result = Message::tool_result("c-1", "weather", "-4 °C");
/// assert_eq!(call.tool_calls().next().map(|call| call.name.as_str()), Some("weather"));
/// assert_eq!(result.text(), "-4 °C");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Message(Arc<Fields>);

#[derive(Clone, PartialEq, Eq)]
struct Fields {
    role: Role,
    content: Vec<Content>,
    id: Option<String>,
    name: Option<String>,
    created_at: Option<SystemTime>,
    metadata: Metadata,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Role {
    /// Instructions that stand above the conversation.
    System,
    /// The same under its newer name; a window treats both alike.
    Developer,
    /// The person, or program, that asks.
    User,
    /// The model that answers.
    Assistant,
    /// The results of tool calls.
    Tool,
}

impl Role {
    /// The role's name as the chat interfaces spell it: `system`, `developer`, `user`, `assistant`, `tool`.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }

    /// Whether this role gives instructions: system, or developer, its newer name.
    pub fn is_system(self) -> bool {
        matches!(self, Role::System | Role::Developer)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Message {
    /// A message of any role with any parts. No parts at all is allowed, and is not the same as an empty text.
    pub fn new(role: Role, content: impl IntoIterator<Item = Content>) -> Self {
        Self(Arc::new(Fields {
            role,
            content: content.into_iter().collect(),
            id: None,
            name: None,
            created_at: None,
            metadata: Metadata::new(),
        }))
    }

    /// A system message of one text.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, [Content::Text(text.into())])
    }

    /// A developer message of one text: what newer interfaces call a system message.
    pub fn developer(text: impl Into<String>) -> Self {
        Self::new(Role::Developer, [Content::Text(text.into())])
    }

    /// A user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, [Content::Text(text.into())])
    }

    /// An assistant message of one text. For a message of tool calls alone, begin with
    /// [`Message::new(Role::Assistant, [])`](Message::new).
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, [Content::Text(text.into())])
    }

    /// A tool message with the one result, a text, of one call.
    pub fn tool_result(call_id: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let result = ToolResult::new(call_id).with_name(name).with_text(text);
        Self::new(Role::Tool, [Content::ToolResult(result)])
    }

    /// Adds a part at the end.
    #[must_use]
    pub fn with_content(self, part: impl Into<Content>) -> Self {
        self.change(|fields| fields.content.push(part.into()))
    }

    /// Adds a tool call at the end. The arguments are kept as the exact text that the model wrote, valid JSON or not.
    #[must_use]
    pub fn with_tool_call(self, id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.with_content(ToolCall::new(id, name, arguments))
    }

    /// Adds an image, a sound or a document at the end.
    #[must_use]
    pub fn with_media(self, media: Media) -> Self {
        self.with_content(media)
    }

    /// Sets one entry of the metadata, replacing the value under the same key.
    #[must_use]
    pub fn with_metadata(self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.change(|fields| fields.metadata.insert(key, value))
    }

    /// Sets the message's own id. It is the caller's: no store makes one up or demands it.
    #[must_use]
    pub fn with_id(self, id: impl Into<String>) -> Self {
        self.change(|fields| fields.id = Some(id.into()))
    }

    /// Sets the speaker's name.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        self.change(|fields| fields.name = Some(name.into()))
    }

    /// Sets when it was said. Stores keep it, and never order by it.
    #[must_use]
    pub fn with_created_at(self, created_at: SystemTime) -> Self {
        self.change(|fields| fields.created_at = Some(created_at))
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.0.role
    }

    /// The parts, in order.
    pub fn content(&self) -> &[Content] {
        &self.0.content
    }

    /// The text: all text parts, those inside tool results included, in order, joined by line breaks. Without any text
    /// it is empty.
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.0.content.iter().flat_map(Content::texts);
        let Some(first) = texts.next() else {
            return Cow::Borrowed("");
        };
        let mut joined = Cow::Borrowed(first);
        for text in texts {
            let joined = joined.to_mut();
            joined.push('\n');
            joined.push_str(text);
        }
        joined
    }

    /// The tool calls among the parts, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.0.content.iter().filter_map(|part| match part {
            Content::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The tool results among the parts, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.0.content.iter().filter_map(|part| match part {
            Content::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// The metadata; empty where none was set.
    pub fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }

    /// The message's own id, if it was given one.
    pub fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// The speaker's name, if one was given.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// When it was said, if that was given.
    pub fn created_at(&self) -> Option<SystemTime> {
        self.0.created_at
    }

    /// A message of all its fields at once.
    pub(crate) fn of_fields(
        role: Role,
        content: Vec<Content>,
        id: Option<String>,
        name: Option<String>,
        created_at: Option<SystemTime>,
        metadata: Metadata,
    ) -> Self {
        Self(Arc::new(Fields { role, content, id, name, created_at, metadata }))
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn footprint(&self) -> usize {
        let Fields { content, id, name, metadata, .. } = &*self.0;
        let texts = [id, name].into_iter().flatten().map(String::len).sum::<usize>();
        size_of::<Fields>() + content.iter().map(Content::footprint).sum::<usize>() + texts + metadata.footprint()
    }

    /// The same message with other parts.
    pub(crate) fn replace_content(&self, content: Vec<Content>) -> Self {
        let Fields { role, content: _, id, name, created_at, metadata } = &*self.0;
        Self(Arc::new(Fields {
            role: *role,
            content,
            id: id.clone(),
            name: name.clone(),
            created_at: *created_at,
            metadata: metadata.clone(),
        }))
    }

    /// Replaces the metadata whole.
    #[must_use]
    pub(crate) fn replace_metadata(self, metadata: Metadata) -> Self {
        self.change(|fields| fields.metadata = metadata)
    }

    /// Whether a store can give this message back equal; the error is the rule that it breaks.
    pub(crate) fn check_storable(&self) -> Result<(), &'static str> {
        self.0.metadata.check_storable()
    }

    /// Setters own the message, so that the only copy is made where it is shared.
    fn change(mut self, set: impl FnOnce(&mut Fields)) -> Self {
        set(Arc::make_mut(&mut self.0));
        self
    }
}

/// Shows the shape: role, kinds of parts, lengths. Never what was said.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fields { role, content, id, name, created_at, metadata } = &*self.0;
        let mut debug = f.debug_struct("Message");
        debug.field("role", role).field("content", content);
        if let Some(id) = id {
            debug.field("id", &Length(id.len()));
        }
        if let Some(name) = name {
            debug.field("name", &Length(name.len()));
        }
        if let Some(created_at) = created_at {
            debug.field("created_at", created_at);
        }
        if !metadata.is_empty() {
            debug.field("metadata", metadata);
        }
        debug.finish()
    }
}

/// Stands for bytes that must not be shown.
pub(crate) struct Length(pub(crate) usize);

impl fmt::Debug for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_shares_and_a_setter_on_a_clone_leaves_the_original_alone() {
        let one = Message::user("hello");
        let two = one.clone();
        assert!(Arc::ptr_eq(&one.0, &two.0));
        let three = two.with_id("x");
        assert_eq!(one.id(), None);
        assert_eq!(three.id(), Some("x"));
    }

    #[test]
    fn text_joins_all_texts_and_borrows_a_single_one() {
        let one = Message::user("hello");
        assert!(matches!(one.text(), Cow::Borrowed("hello")));
        let parts = Message::new(Role::Tool, [])
            .with_content(ToolResult::new("a").with_text("x").with_text("y"))
            .with_content(Content::Text("z".into()));
        assert_eq!(parts.text(), "x\ny\nz");
        assert_eq!(Message::new(Role::Assistant, []).text(), "");
    }

    #[test]
    fn debug_shows_lengths_and_never_content() {
        let secret = "canary";
        let message = Message::assistant(secret)
            .with_tool_call(secret, secret, secret)
            .with_content(ToolResult::new(secret).with_name(secret).with_text(secret))
            .with_content(Reasoning::new(secret).with_signature(secret).with_redacted(secret))
            .with_content(Opaque::new(secret, secret))
            .with_media(Media::bytes(secret, secret.as_bytes()))
            .with_media(Media::url(secret).with_mime_type(secret))
            .with_metadata(secret, secret)
            .with_id(secret)
            .with_name(secret);
        let shown = format!("{message:?} {message:#?}");
        assert!(!shown.contains(secret), "{shown}");
        assert!(shown.contains("<6 bytes>"), "{shown}");
    }
}
