//! The parts of a message.

use std::fmt;

use super::Length;

/// One part of a message.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Text, as it was said.
    Text(String),
    /// An image, a sound, a document.
    Media(Media),
    /// The model asks for a tool to be run.
    ToolCall(ToolCall),
    /// What a tool answered.
    ToolResult(ToolResult),
    /// What the model thought before it spoke.
    Reasoning(Reasoning),
    /// A part in a provider's own form that this library does not know.
    Opaque(Opaque),
}

impl Content {
    /// About how many bytes of memory it takes.
    pub(super) fn footprint(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        size_of::<Self>()
            + match self {
                Content::Text(text) => text.len(),
                Content::Media(media) => media.footprint(),
                Content::ToolCall(call) => call.id.len() + call.name.len() + call.arguments.len(),
                Content::ToolResult(result) => {
                    let parts = result.parts.iter().map(|part| match part {
                        ResultPart::Text(text) => text.len(),
                        ResultPart::Media(media) => media.footprint(),
                        ResultPart::Opaque(opaque) => opaque.provider.len() + opaque.json.len(),
                    });
                    let parts = parts.map(|bytes| size_of::<ResultPart>() + bytes);
                    result.call_id.len() + optional(&result.name) + parts.sum::<usize>()
                }
                Content::Reasoning(thought) => {
                    thought.text.len() + optional(&thought.signature) + optional(&thought.redacted)
                }
                Content::Opaque(opaque) => opaque.provider.len() + opaque.json.len(),
            }
    }

    /// The texts in this part: its own, or those inside a tool result.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let (own, parts) = match self {
            Content::Text(text) => (Some(text.as_str()), &[][..]),
            Content::ToolResult(result) => (None, result.parts.as_slice()),
            _ => (None, &[][..]),
        };
        own.into_iter().chain(parts.iter().filter_map(|part| match part {
            ResultPart::Text(text) => Some(text.as_str()),
            _ => None,
        }))
    }
}

/// An image, a sound or a document, by address or by value.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Media {
    /// The MIME type, such as `image/png`, where it is known.
    pub mime_type: Option<String>,
    /// Where the bytes are.
    pub source: MediaSource,
}

/// Where the bytes of a [`Media`] are.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaSource {
    /// At this address, which is kept as the exact text; a `data:` URL too.
    Url(String),
    /// Here.
    Bytes(Vec<u8>),
}

impl Media {
    /// Media at an address.
    pub fn url(url: impl Into<String>) -> Self {
        Self { mime_type: None, source: MediaSource::Url(url.into()) }
    }

    /// Media by value.
    pub fn bytes(mime_type: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { mime_type: Some(mime_type.into()), source: MediaSource::Bytes(bytes.into()) }
    }

    fn footprint(&self) -> usize {
        self.mime_type.as_ref().map_or(0, String::len)
            + match &self.source {
                MediaSource::Url(url) => url.len(),
                MediaSource::Bytes(bytes) => bytes.len(),
            }
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }
}

/// A model's request to run a tool.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// What the result refers to. Providers repeat ids; a result answers the first open call of its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The exact text that the model wrote, most often a JSON object, sometimes broken JSON.
    pub arguments: String,
}

impl ToolCall {
    /// A call of the tool `name`.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
    }
}

/// What a tool answered to a call.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call that this answers.
    pub call_id: String,
    /// The tool, where the result names it.
    pub name: Option<String>,
    /// The answer, in parts.
    pub parts: Vec<ResultPart>,
    /// Whether the tool reports a failure.
    pub is_error: bool,
}

impl ToolResult {
    /// A result without any part, and no failure.
    pub fn new(call_id: impl Into<String>) -> Self {
        Self { call_id: call_id.into(), name: None, parts: Vec::new(), is_error: false }
    }

    /// Names the tool.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a text at the end.
    #[must_use]
    pub fn with_text(self, text: impl Into<String>) -> Self {
        self.with_part(ResultPart::Text(text.into()))
    }

    /// Adds a part at the end.
    #[must_use]
    pub fn with_part(mut self, part: ResultPart) -> Self {
        self.parts.push(part);
        self
    }

    /// Marks the result as a failure.
    #[must_use]
    pub fn with_error(mut self) -> Self {
        self.is_error = true;
        self
    }
}

/// One part of a tool's answer. Unlike [`Content`] it never nests.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultPart {
    /// Text.
    Text(String),
    /// An image, a sound, a document.
    Media(Media),
    /// A part in a provider's own form.
    Opaque(Opaque),
}

/// What a model thought before it spoke.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reasoning {
    /// The thought, or its summary; empty where the provider withholds it.
    pub text: String,
    /// The provider's signature over the thought, without which it refuses to take it back.
    pub signature: Option<String>,
    /// The provider's sealed stand-in for a thought that it withholds.
    pub redacted: Option<String>,
}

impl Reasoning {
    /// A thought in clear.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), signature: None, redacted: None }
    }

    /// Sets the provider's signature.
    #[must_use]
    pub fn with_signature(mut self, signature: impl Into<String>) -> Self {
        self.signature = Some(signature.into());
        self
    }

    /// Sets the provider's sealed stand-in for the thought.
    #[must_use]
    pub fn with_redacted(mut self, redacted: impl Into<String>) -> Self {
        self.redacted = Some(redacted.into());
        self
    }
}

/// A part in a provider's own form that this library does not know, kept word for word.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opaque {
    /// Whose form it is, such as `openai` or `anthropic`.
    pub provider: String,
    /// The part's JSON text, byte for byte. It is not parsed here.
    pub json: String,
}

impl Opaque {
    /// A part of a provider's own.
    pub fn new(provider: impl Into<String>, json: impl Into<String>) -> Self {
        Self { provider: provider.into(), json: json.into() }
    }
}

macro_rules! into_content {
    ($($part:ident),*) => {$(
        impl From<$part> for Content {
            fn from(part: $part) -> Self {
                Content::$part(part)
            }
        }
    )*};
}
into_content!(Media, ToolCall, ToolResult, Reasoning, Opaque);

// `Debug` of every part shows shapes and lengths, never content.

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Text(text) => f.debug_tuple("Text").field(&Length(text.len())).finish(),
            Content::Media(media) => media.fmt(f),
            Content::ToolCall(call) => call.fmt(f),
            Content::ToolResult(result) => result.fmt(f),
            Content::Reasoning(reasoning) => reasoning.fmt(f),
            Content::Opaque(opaque) => opaque.fmt(f),
        }
    }
}

impl fmt::Debug for ResultPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResultPart::Text(text) => f.debug_tuple("Text").field(&Length(text.len())).finish(),
            ResultPart::Media(media) => media.fmt(f),
            ResultPart::Opaque(opaque) => opaque.fmt(f),
        }
    }
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Media")
            .field("mime_type", &self.mime_type.as_ref().map(|text| Length(text.len())))
            .field("source", &self.source)
            .finish()
    }
}

impl fmt::Debug for MediaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, length) = match self {
            MediaSource::Url(url) => ("Url", url.len()),
            MediaSource::Bytes(bytes) => ("Bytes", bytes.len()),
        };
        f.debug_tuple(kind).field(&Length(length)).finish()
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("id", &Length(self.id.len()))
            .field("name", &Length(self.name.len()))
            .field("arguments", &Length(self.arguments.len()))
            .finish()
    }
}

impl fmt::Debug for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolResult")
            .field("call_id", &Length(self.call_id.len()))
            .field("name", &self.name.as_ref().map(|name| Length(name.len())))
            .field("parts", &self.parts)
            .field("is_error", &self.is_error)
            .finish()
    }
}

impl fmt::Debug for Reasoning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reasoning")
            .field("text", &Length(self.text.len()))
            .field("signature", &self.signature.as_ref().map(|text| Length(text.len())))
            .field("redacted", &self.redacted.as_ref().map(|text| Length(text.len())))
            .finish()
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opaque")
            .field("provider", &Length(self.provider.len()))
            .field("json", &Length(self.json.len()))
            .finish()
    }
}
