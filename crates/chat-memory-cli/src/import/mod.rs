//! Conversations that other programs keep, as messages.

use std::fmt;

use chat_memory::{Entry, Message};

/// What one file holds.
pub struct Archive {
    /// The form that it is in: given, or found out.
    pub format: Format,
    /// Its conversations in their order, each with its own fate: one that is refused does not touch the others.
    pub conversations: Vec<Result<Conversation, Refused>>,
}

/// A conversation that was read.
pub struct Conversation {
    /// Under which id it is stored if no other is asked for. The same file gives the same ids each time.
    pub id: String,
    /// What its program calls it.
    pub title: Option<String>,
    /// What was said.
    pub said: Said,
    /// What was repaired or left out, in words that show nothing of what was said.
    pub notes: Vec<String>,
}

/// Messages, with or without the store's own knowledge of them.
pub enum Said {
    /// From another program.
    Messages(Vec<Message>),
    /// From a store of ours: numbered, and with the times of recording.
    Entries(Vec<Entry>),
}

/// Why a conversation, or all of a file, was not taken.
pub struct Refused {
    /// Which one: its id, title or place in the file.
    pub name: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What is wrong there, and what would be right.
    pub reason: String,
}

/// A form of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Our own JSON Lines, from `export --format jsonl`.
    Jsonl,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}, column {}): {}", self.name, self.line, self.column, self.reason)
    }
}

pub fn read(file_name: &str, _: &str, _: Option<Format>) -> Result<Archive, Refused> {
    Err(Refused { name: file_name.to_owned(), line: 1, column: 1, reason: "not yet".to_owned() })
}
