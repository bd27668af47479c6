//! The memory of a chat backend.

mod error;
mod in_memory;
mod memory;
mod message;
mod window;

pub use error::{Error, Result};
pub use in_memory::{InMemoryBuilder, InMemoryChatMemory};
pub use memory::ChatMemory;
pub use message::{
    Content, Media, MediaSource, Message, Metadata, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult,
};
pub use window::{OpenCalls, Selection, TokenCounter, TokenEstimate, Window, model_ready};
