//! The memory of a chat backend: what was said in each conversation, kept on disk, and given back to the model after a
//! restart.
//!
//! ```
//! use chat_memory::{ChatMemory, FileChatMemory, Message};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("chat-memory");
//! let memory = FileChatMemory::builder(&path).max_messages(20).open()?;
//! memory.add("user-42", &[Message::user("hello"), Message::assistant("hi")])?;
//! assert_eq!(memory.get("user-42")?.len(), 2);
//! # Ok::<(), chat_memory::Error>(())
//! ```
//!
//! # A guide
//!
//! | you want | look at |
//! |---|---|
//! | the contract: what `add`, `get` and `clear` promise | [`ChatMemory`] |
//! | conversations that survive restarts, crashes and power cuts | [`FileChatMemory`], [`Durability`], [`Recovery`] |
//! | the same without a disk, for tests | [`InMemoryChatMemory`] |
//! | what was said: roles, text, tool calls, images | [`Message`], [`Content`] |
//! | a limit in messages or tokens | [`Window`] |
//! | a list that a provider accepts | [`model_ready`] |
//! | everything that was said: numbers, times, ranges, a catalogue | [`ChatHistory`] |
//! | conversations as JSON: OpenAI's two forms, Anthropic's, or our own lossless one | [`transcript`] |
//! | an agent's notebook: files of one session, with descriptions | [`FileMemory`], [`LocalFileStore`] |
//! | what goes before the conversation, and answers tool calls | [`ContextProvider`] |
//! | one turn: recall, ask the model, run tools, remember | [`MemoryAdvisor`], [`AsyncMemoryAdvisor`] |
//! | an answer that streams | [`StreamedReply`] |
//!
//! # One turn of a chat backend
//!
//! Recall, append the question, make the list fit to send, ask, and remember question and answer together: so a failed call
//! leaves nothing behind, and a retry stores nothing twice. [`MemoryAdvisor`] does that around any model.
//!
//! ```
//! use chat_memory::{InMemoryChatMemory, MemoryAdvisor, Message, ModelRequest};
//!
//! let advisor = MemoryAdvisor::new(InMemoryChatMemory::new());
//! let model = |request: &ModelRequest| -> Result<Message, std::io::Error> {
//!     Ok(Message::assistant(format!("You sent {} messages.", request.messages.len())))
//! };
//! let outcome = advisor.turn("user-42", [Message::user("hello")], &model)?;
//! assert_eq!(outcome.answer.unwrap().text(), "You sent 1 messages.");
//! # Ok::<(), chat_memory::TurnError<std::io::Error>>(())
//! ```
//!
//! # Async programs
//!
//! The stores block. `Offload` (feature `tokio`) makes an [`AsyncChatMemory`] of any of them, and [`AsyncMemoryAdvisor`] is the same
//! turn over an async model; `BlockOn` goes the other way.

mod advisor;
mod async_memory;
#[cfg(feature = "tokio")]
mod bridge;
#[cfg(feature = "conformance")]
pub mod conformance;
mod context;
#[doc(hidden)]
pub mod disk;
mod error;
mod file;
#[cfg(feature = "file-memory")]
mod file_memory;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod in_memory;
mod log;
mod memory;
mod message;
pub mod transcript;
mod window;

pub use advisor::{
    AsyncMemoryAdvisor, AsyncModel, INTERRUPTED, Interrupted, MemoryAdvisor, MemoryAdvisorBuilder, Model, ModelRequest,
    OnFailure, Outcome, Remember, Reply, StreamedReply, TurnError, UNANSWERED,
};
pub use async_memory::{AsyncChatHistory, AsyncChatMemory, AsyncContextProvider, BoxFuture};
#[cfg(feature = "tokio")]
pub use bridge::{BlockOn, Offload};
pub use context::{Context, ContextProvider, ToolDefinition, ToolOutput};
pub use error::{Error, Result};
pub use file::{Durability, FileChatMemory, FileChatMemoryBuilder, FileLocks, Recovery, Repair, RepairReport};
#[cfg(feature = "file-memory")]
#[doc(hidden)]
pub use file_memory::{Change, Watch};
#[cfg(feature = "file-memory")]
pub use file_memory::{
    Description, FileEntry, FileMemory, FileMemoryBuilder, FileName, FileStore, FolderName, InMemoryFileStore,
    LocalFileStore, Precondition, Quota, Save, StoredFile, ToolNames, Version,
};
pub use history::{
    Appended, ChatHistory, ConversationSummary, Cursor, Damage, DamageKind, Entry, HistoryRange, Page, PageRequest,
    Problem, Verification,
};
pub use in_memory::{InMemoryChatMemory, InMemoryChatMemoryBuilder};
pub use memory::ChatMemory;
pub use message::{
    Content, Media, MediaSource, Message, Metadata, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult,
};
pub use window::{OpenCalls, Selection, TokenCounter, TokenEstimate, Window, model_ready};

/// The README's code is compiled and run as a test.
#[cfg(all(doctest, feature = "file-memory"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/from-spring-ai.md")]
struct FromSpringAi;

#[cfg(all(doctest, feature = "file-memory"))]
#[doc = include_str!("../docs/file-memory.md")]
struct FileMemoryPage;

#[cfg(all(doctest, feature = "file-memory"))]
#[doc = include_str!("../docs/from-agent-framework.md")]
struct FromAgentFramework;
