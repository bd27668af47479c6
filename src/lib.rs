//! The memory of a chat backend.

#[doc(hidden)]
pub mod disk;
mod error;
mod file;
mod in_memory;
mod log;
mod memory;
mod message;
pub mod transcript;
mod window;

pub use error::{Error, Result};
pub use file::{
    Damage, DamageKind, Durability, FileChatMemory, FileChatMemoryBuilder, FileLocks, Recovery, Repair, RepairReport,
};
pub use in_memory::{InMemoryChatMemory, InMemoryChatMemoryBuilder};
pub use memory::ChatMemory;
pub use message::{
    Content, Media, MediaSource, Message, Metadata, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult,
};
pub use window::{OpenCalls, Selection, TokenCounter, TokenEstimate, Window, model_ready};
