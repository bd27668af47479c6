//! The store that the commands look at.

use std::path::Path;

use chat_memory::{
    ChatHistory, ConversationSummary, Durability, Entry, FileChatMemory, HistoryRange, PageRequest, Problem,
};

use crate::cli::{Global, Times};
use crate::failure::Failure;

/// Opens a store that is there. Looking must not make one.
pub fn open(global: &Global) -> Result<FileChatMemory, Failure> {
    if !global.store.is_dir() {
        return Err(Failure::Nothing(format!(
            "there is no store at {}: name its directory with --store, or in CHAT_MEMORY_STORE",
            global.store.display()
        )));
    }
    create(&global.store)
}

/// Opens a store, and makes it where it is missing.
pub fn create(directory: &Path) -> Result<FileChatMemory, Failure> {
    Ok(FileChatMemory::builder(directory).durability(Durability::Disk).open()?)
}

/// All conversations, and what is none.
pub struct Catalogue {
    pub conversations: Vec<ConversationSummary>,
    pub problems: Vec<Problem>,
}

/// How many conversations are asked for at once.
const PAGE: usize = 1_000;

/// Everything in the store, the one written last first.
pub fn catalogue(memory: &FileChatMemory) -> Result<Catalogue, Failure> {
    let mut all = Catalogue { conversations: Vec::new(), problems: Vec::new() };
    let mut request = PageRequest::first(PAGE);
    loop {
        let page = memory.conversations(&request)?;
        all.conversations.extend(page.items);
        all.problems.extend(page.problems);
        match page.next {
            Some(cursor) => request = PageRequest::after(PAGE, cursor),
            None => return Ok(all),
        }
    }
}

/// The ids that were given, or all.
pub fn ids(memory: &FileChatMemory, given: &[String]) -> Result<Vec<String>, Failure> {
    match given {
        [] => Ok(catalogue(memory)?.conversations.into_iter().map(|summary| summary.id).collect()),
        given => Ok(given.to_vec()),
    }
}

/// How many messages are held at once.
const CHUNK: usize = 4_096;

/// Goes through a conversation, oldest first, a chunk at a time; `false` ends it. Whether there was a message.
pub fn for_each_chunk(
    memory: &FileChatMemory,
    id: &str,
    mut take: impl FnMut(Vec<Entry>) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let mut next = 0;
    loop {
        let chunk = memory.history(id, HistoryRange::first(CHUNK).from(next))?;
        let Some(last) = chunk.last() else {
            return Ok(next > 0);
        };
        next = last.seq + 1;
        let was_full = chunk.len() == CHUNK;
        if !take(chunk)? || !was_full {
            return Ok(true);
        }
    }
}

/// What to say of a conversation that is not there.
pub fn unknown(id: &str) -> Failure {
    let id = crate::text::on_a_line(id);
    Failure::Nothing(format!("there is no conversation '{id}' in the store; `chat-memory list` shows all"))
}

impl Times {
    pub fn contain(&self, entry: &Entry) -> bool {
        self.since.is_none_or(|since| entry.recorded_at >= since.0)
            && self.until.is_none_or(|until| entry.recorded_at < until.0)
    }
}
