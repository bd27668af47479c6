//! What goes before the conversation at each model call, and which tool calls it answers.

use std::sync::Arc;

use serde_json::Value;

use crate::error::Result;
use crate::message::{Content, Message, Role, ToolCall, ToolResult};

/// Something that gives a model more than the conversation: instructions, messages and tools, for one session.
///
/// What it gives goes before what is recalled of the conversation, and is never stored in it.
#[doc(alias = "AIContextProvider")]
pub trait ContextProvider: Send + Sync {
    /// What to give with the next model call.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSessionId`](crate::Error::InvalidSessionId) for a blank id, and whatever keeps it from reading.
    fn context(&self, session_id: &str) -> Result<Context>;

    /// Answers a tool call, or says with `None` that the tool is not one of its own.
    ///
    /// # Errors
    ///
    /// Only what a model can do nothing about, such as a disk that fails. Everything else is an answer.
    fn answer(&self, session_id: &str, call: &ToolCall) -> Result<Option<ToolOutput>>;

    /// Forgets a session, for good.
    ///
    /// # Errors
    ///
    /// An error means that something of the session may still be there.
    fn clear(&self, session_id: &str) -> Result<()>;
}

/// What goes before the conversation.
#[derive(Debug, Clone, PartialEq, Default)]
#[doc(alias = "AIContext")]
pub struct Context {
    /// For the system message; empty where there are none.
    pub instructions: String,
    /// Before the messages of the conversation.
    pub messages: Vec<Message>,
    /// Offered beside the caller's own.
    pub tools: Vec<ToolDefinition>,
}

/// A tool as model providers want to be told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The name that the model calls.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// The name under which a provider knows the tool itself, such as `memory_20250818`: such a provider wants this type
    /// and the name in place of description and schema.
    pub provider_type: Option<String>,
}

/// What a tool says to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text.
    pub text: String,
    /// Whether the call did not do what it was asked to do. The text says why.
    pub is_error: bool,
}

impl ToolOutput {
    /// The answer to a call that did what it was asked to do.
    pub fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false }
    }

    /// The answer to a call that did not.
    pub fn refused(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }

    /// The tool message that answers a call.
    pub fn into_message(self, call: &ToolCall) -> Message {
        let result = ToolResult::new(&call.id).with_name(&call.name).with_text(self.text);
        Message::new(Role::Tool, [Content::ToolResult(if self.is_error { result.with_error() } else { result })])
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<P: ContextProvider + ?Sized> ContextProvider for $pointer {
            fn context(&self, session_id: &str) -> Result<Context> {
                (**self).context(session_id)
            }

            fn answer(&self, session_id: &str, call: &ToolCall) -> Result<Option<ToolOutput>> {
                (**self).answer(session_id, call)
            }

            fn clear(&self, session_id: &str) -> Result<()> {
                (**self).clear(session_id)
            }
        }
    )*};
}
forward!(&P, Arc<P>, Box<P>);
