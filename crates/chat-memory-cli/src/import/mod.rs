//! Conversations that other programs keep, as messages.
//!
//! Nothing here touches a disk or a store: a text comes in, conversations go out. What was said is never part of an error or
//! a note.
//!
//! Ids are the same each time a file is read: the file's own id of the conversation where it has one, else the file's name
//! without its extension, with `/0`, `/1`, … behind it where the file holds several. An id that comes again gets `#2`, `#3`, …

mod anthropic;
mod block;
mod chat;
mod chatgpt;
mod chatgpt_content;
mod claude_code;
mod detect;
mod draft;
mod json;
mod jsonl;
mod langchain;
mod langchain_message;
mod oasst;
mod openai;
mod pairs;
mod pi;
mod recording;
mod rows;
mod sharegpt;
mod source;
mod spring_ai;
#[cfg(test)]
mod tests;
mod time;

use std::collections::{HashMap, HashSet};
use std::fmt;

use chat_memory::{Entry, Message};

use source::Source;

/// What one file holds.
#[derive(Debug)]
pub struct Archive {
    /// The form that it is in: given, or found out.
    pub format: Format,
    /// Its conversations in their order, each with its own fate: one that is refused does not touch the others. Lines that
    /// belong to no conversation come last.
    pub conversations: Vec<Result<Conversation, Refused>>,
}

/// A conversation that was read.
#[derive(Debug)]
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
#[derive(Debug)]
pub enum Said {
    /// From another program.
    Messages(Vec<Message>),
    /// From a store of ours: numbered, and with the times of recording.
    Entries(Vec<Entry>),
}

/// Why a conversation, or all of a file, was not taken.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which one: its id, title or place in the file.
    pub name: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in bytes, from 1; a byte order mark does not count.
    pub column: usize,
    /// What is wrong there, and what would be right.
    pub reason: String,
}

/// A form of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Our own JSON Lines, from `export --format jsonl`.
    Jsonl,
    /// Messages of OpenAI's chat completions or items of its Responses: lists, requests, recordings, datasets.
    #[value(name = "openai")]
    OpenAi,
    /// Messages of Anthropic: lists, requests, responses, recordings.
    Anthropic,
    /// Datasets with `conversations` of `from` and `value`.
    #[value(name = "sharegpt")]
    ShareGpt,
    /// `conversations.json` from ChatGPT's data export.
    #[value(name = "chatgpt")]
    ChatGpt,
    /// Session files of Claude Code.
    ClaudeCode,
    /// LangChain's messages as dicts, as `dumps` writes them, or as rows of its history tables.
    #[value(name = "langchain")]
    LangChain,
    /// Rows of Spring AI's table `SPRING_AI_CHAT_MEMORY`, as CSV or JSON.
    SpringAi,
    /// Session files of the coding agent pi.
    Pi,
    /// Reply trees of Open Assistant.
    Oasst,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 10] = [
        Format::Jsonl,
        Format::OpenAi,
        Format::Anthropic,
        Format::ShareGpt,
        Format::ChatGpt,
        Format::ClaudeCode,
        Format::LangChain,
        Format::SpringAi,
        Format::Pi,
        Format::Oasst,
    ];

    /// By which it is known, on the command line and in the metadata of messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::OpenAi => "openai",
            Format::Anthropic => "anthropic",
            Format::ShareGpt => "sharegpt",
            Format::ChatGpt => "chatgpt",
            Format::ClaudeCode => "claude-code",
            Format::LangChain => "langchain",
            Format::SpringAi => "spring-ai",
            Format::Pi => "pi",
            Format::Oasst => "oasst",
        }
    }
}

/// Reads what a file holds.
///
/// The form is found out from the text if none is given. Halves of surrogate pairs, which no text can hold, become U+FFFD, with
/// a note.
///
/// # Errors
///
/// Where nothing can be made of the file: its form is not known, or its JSON is broken.
pub fn read(file_name: &str, text: &str, format: Option<Format>) -> Result<Archive, Refused> {
    let source = Source::new(file_name, text);
    let whole = |bad: source::Bad| bad.named(file_name);
    let format = match format {
        Some(format) => format,
        None => detect::format(&source).map_err(whole)?,
    };
    let found = match format {
        Format::Jsonl => jsonl::read(&source),
        Format::OpenAi => chat::read(&source, chat::Form::OpenAi),
        Format::Anthropic => chat::read(&source, chat::Form::Anthropic),
        Format::ShareGpt => sharegpt::read(&source),
        Format::ChatGpt => chatgpt::read(&source),
        Format::ClaudeCode => claude_code::read(&source),
        Format::LangChain => langchain::read(&source),
        Format::SpringAi => spring_ai::read(&source),
        Format::Pi => pi::read(&source),
        Format::Oasst => oasst::read(&source),
    };
    Ok(Archive { format, conversations: found.map_err(whole)?.named(source.stem()) })
}

/// What a form's reader found; conversations without an id of their own have an empty one.
#[derive(Default)]
struct Found {
    conversations: Vec<Result<Conversation, Refused>>,
    /// What belongs to no conversation.
    lines: Vec<Refused>,
}

impl Found {
    /// Gives each conversation an id that no other of the file has.
    fn named(self, stem: &str) -> Vec<Result<Conversation, Refused>> {
        let is_single = self.conversations.len() == 1;
        let (mut taken, mut times) = (HashSet::new(), HashMap::<String, usize>::new());
        let mut all = self.conversations;
        for (number, conversation) in all.iter_mut().enumerate() {
            let Ok(conversation) = conversation else { continue };
            if conversation.id.trim().is_empty() {
                conversation.id = if is_single { stem.to_owned() } else { format!("{stem}/{number}") };
            }
            if !taken.insert(conversation.id.clone()) {
                let times = times.entry(conversation.id.clone()).or_insert(1);
                let id = loop {
                    *times += 1;
                    let id = format!("{}#{times}", conversation.id);
                    if taken.insert(id.clone()) {
                        break id;
                    }
                };
                conversation.notes.push(format!("its id is there before in the file: number {times} of that id"));
                conversation.id = id;
            }
        }
        all.extend(self.lines.into_iter().map(Err));
        all
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}, column {}): {}", self.name, self.line, self.column, self.reason)
    }
}
