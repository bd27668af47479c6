//! The store that the commands look at.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use chat_memory::{
    ChatHistory, ConversationSummary, Entry, FileChatMemory, HistoryRange, PageRequest, Problem, Recovery,
};

use crate::cli::{Global, Times};
use crate::failure::{Failure, in_full};
use crate::out::{self, Styled, YELLOW};
use crate::text::{self, harmless};

/// A store that is read. What of a conversation is damaged is told, and what is intact is read all the same.
pub struct Store {
    /// Whatever is intact.
    pub memory: FileChatMemory,
    /// Refuses a conversation as soon as damage is met in it.
    strict: FileChatMemory,
    /// The conversations of which something was missing.
    damaged: RefCell<BTreeSet<String>>,
}

impl Store {
    /// Opens a store that is there. Looking must not make one.
    pub fn open(global: &Global) -> Result<Self, Failure> {
        let memory = open(global)?;
        let strict = FileChatMemory::builder(&global.store).recovery(Recovery::Strict).open()?;
        Ok(Self { memory, strict, damaged: RefCell::default() })
    }

    /// A part of a conversation.
    pub fn history(&self, id: &str, range: HistoryRange) -> Result<Vec<Entry>, Failure> {
        self.read(id, |memory| memory.history(id, range))
    }

    /// Reads strictly, and where there is damage tells of it and reads what is intact.
    pub fn read<T>(&self, id: &str, read: impl Fn(&FileChatMemory) -> chat_memory::Result<T>) -> Result<T, Failure> {
        match read(&self.strict) {
            Err(error) if error.is_corrupt() => {
                let found = read(&self.memory)?;
                if self.damaged.borrow_mut().insert(id.to_owned()) {
                    let damaged = Styled(YELLOW, "not whole:");
                    out::note(format_args!("{damaged} {}: {}", text::on_a_line(id), harmless(&in_full(&error))));
                }
                Ok(found)
            }
            read => Ok(read?),
        }
    }

    /// Goes through a conversation, oldest first, a chunk at a time; `false` ends it. Whether there was a message.
    pub fn for_each_chunk(
        &self,
        id: &str,
        mut take: impl FnMut(Vec<Entry>) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let mut next = 0;
        loop {
            let chunk = self.history(id, HistoryRange::first(CHUNK).from(next))?;
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

    /// Done, unless something was missing.
    pub fn verdict(&self) -> Result<(), Failure> {
        match self.damaged.borrow().len() as u64 {
            0 => Ok(()),
            damaged => Err(Failure::Partly(format!(
                "{} not whole; `chat-memory verify` says what is lost",
                text::count(damaged, "conversation")
            ))),
        }
    }
}

/// How many messages are held at once.
const CHUNK: usize = 4_096;

/// Opens a store that is there, to care for it.
pub fn open(global: &Global) -> Result<FileChatMemory, Failure> {
    if !global.store.is_dir() {
        return Err(Failure::Nothing(format!(
            "there is no store at {}: name its directory with --store, or in CHAT_MEMORY_STORE",
            text::path(&global.store)
        )));
    }
    create(&global.store)
}

/// Opens a store, and makes it where it is missing.
pub fn create(directory: &Path) -> Result<FileChatMemory, Failure> {
    Ok(FileChatMemory::open(directory)?)
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

/// What to say of a conversation that is not there.
pub fn unknown(id: &str) -> Failure {
    let id = text::on_a_line(id);
    Failure::Nothing(format!("there is no conversation '{id}' in the store; `chat-memory list` shows all"))
}

impl Times {
    pub fn contain(&self, entry: &Entry) -> bool {
        self.since.is_none_or(|since| entry.recorded_at >= since.0)
            && self.until.is_none_or(|until| entry.recorded_at < until.0)
    }
}
