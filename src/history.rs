//! Everything that was said, beside what a model is shown.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::message::Message;
use crate::window::Window;

/// The history of a chat backend's conversations: what a [`ChatMemory`](crate::ChatMemory) keeps, whole, with sequence
/// numbers and times, and a catalogue of all conversations.
///
/// Messages are numbered from 0 in the order in which they were added. Where messages in the middle are lost, their numbers stay
/// unused; those of messages lost at the end of a damaged file are given again.
///
/// ```
/// use chat_memory::{ChatHistory, HistoryRange, InMemoryChatMemory, Message, PageRequest, Window};
///
/// let memory = InMemoryChatMemory::new();
/// let receipt = memory.append("user-42", &[Message::user("hello"), Message::assistant("hi")])?;
/// assert_eq!(receipt.seqs, 0..2);
/// memory.append("user-42", &[Message::user("bye")])?;
///
/// let newest = memory.history("user-42", HistoryRange::last(2))?;
/// assert_eq!(newest[0].seq, 1);
/// assert_eq!(newest[1].message.text(), "bye");
///
/// // What a window of 20 showed after message 1, which is what the model saw when it was asked message 2.
/// assert_eq!(memory.view_at("user-42", 1, &Window::messages(20))?.len(), 2);
///
/// let page = memory.conversations(&PageRequest::first(10))?;
/// assert_eq!((page.items[0].id.as_str(), page.items[0].messages), ("user-42", 3));
/// # Ok::<(), chat_memory::Error>(())
/// ```
pub trait ChatHistory: Send + Sync {
    /// Appends messages like [`ChatMemory::add`](crate::ChatMemory::add), and says which numbers and which time they got.
    ///
    /// # Errors
    ///
    /// As [`ChatMemory::add`](crate::ChatMemory::add).
    fn append(&self, conversation_id: &str, messages: &[Message]) -> Result<Appended>;

    /// Messages by sequence number, oldest first.
    ///
    /// # Errors
    ///
    /// As [`ChatMemory::get`](crate::ChatMemory::get).
    fn history(&self, conversation_id: &str, range: HistoryRange) -> Result<Vec<Entry>>;

    /// A page of the catalogue: each conversation once, the one written last first.
    ///
    /// Damaged and foreign files are reported in the page's `problems`, and never keep the others from being listed.
    ///
    /// # Errors
    ///
    /// Whatever keeps a backend from listing at all, and [`Error::InvalidOption`] for a page of 0.
    fn conversations(&self, page: &PageRequest) -> Result<Page<ConversationSummary>>;

    /// What a window showed when message `seq` was the newest, so that what a model saw in a past turn can be looked at
    /// again: [`model_ready`](crate::model_ready) of the view at the message before the question, and the question.
    ///
    /// # Errors
    ///
    /// As [`ChatMemory::get`](crate::ChatMemory::get), and [`Error::InvalidOption`] for a window of 0.
    fn view_at(&self, conversation_id: &str, seq: u64, window: &Window) -> Result<Vec<Message>>;

    /// Reads a conversation whole, and reports what is damaged.
    ///
    /// # Errors
    ///
    /// Whatever keeps a backend from reading. Damage is no error here.
    fn verify(&self, conversation_id: &str) -> Result<Verification>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<M: ChatHistory + ?Sized> ChatHistory for $pointer {
            fn append(&self, conversation_id: &str, messages: &[Message]) -> Result<Appended> {
                (**self).append(conversation_id, messages)
            }

            fn history(&self, conversation_id: &str, range: HistoryRange) -> Result<Vec<Entry>> {
                (**self).history(conversation_id, range)
            }

            fn conversations(&self, page: &PageRequest) -> Result<Page<ConversationSummary>> {
                (**self).conversations(page)
            }

            fn view_at(&self, conversation_id: &str, seq: u64, window: &Window) -> Result<Vec<Message>> {
                (**self).view_at(conversation_id, seq, window)
            }

            fn verify(&self, conversation_id: &str) -> Result<Verification> {
                (**self).verify(conversation_id)
            }
        }
    )*};
}
forward!(&M, Arc<M>, Box<M>);

/// The receipt for appended messages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// Their sequence numbers; empty where no messages were given.
    pub seqs: Range<u64>,
    /// When the store recorded them, in microseconds precision.
    pub recorded_at: SystemTime,
}

impl Appended {
    /// For implementors of [`ChatHistory`].
    pub fn new(seqs: Range<u64>, recorded_at: SystemTime) -> Self {
        Self { seqs, recorded_at }
    }
}

/// A message of a history, and what the store knows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its sequence number.
    pub seq: u64,
    /// When the store recorded it. [`Message::created_at`] is the caller's.
    pub recorded_at: SystemTime,
    /// The message.
    pub message: Message,
}

impl Entry {
    /// For implementors of [`ChatHistory`].
    pub fn new(seq: u64, recorded_at: SystemTime, message: Message) -> Self {
        Self { seq, recorded_at, message }
    }
}

/// Which messages of a history: bounds by sequence number, and how many from one end.
///
/// ```
/// use chat_memory::HistoryRange;
///
/// HistoryRange::all();
/// HistoryRange::last(20); // the newest 20
/// HistoryRange::last(20).before(480); // the page before that
/// HistoryRange::first(50).from(100); // 100 to 149
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryRange {
    from: u64,
    before: u64,
    count: usize,
    end: End,
}

/// Which end of a range a count is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Oldest,
    Newest,
}

impl HistoryRange {
    /// Everything.
    pub fn all() -> Self {
        Self::first(usize::MAX)
    }

    /// The oldest `count` messages.
    pub fn first(count: usize) -> Self {
        Self { from: 0, before: u64::MAX, count, end: End::Oldest }
    }

    /// The newest `count` messages; they too come oldest first.
    pub fn last(count: usize) -> Self {
        Self { from: 0, before: u64::MAX, count, end: End::Newest }
    }

    /// Only messages with this sequence number or a later one.
    #[must_use]
    pub fn from(mut self, seq: u64) -> Self {
        self.from = seq;
        self
    }

    /// Only messages with an earlier sequence number.
    #[must_use]
    pub fn before(mut self, seq: u64) -> Self {
        self.before = seq;
        self
    }

    /// The bounds by sequence number.
    pub fn bounds(&self) -> Range<u64> {
        self.from..self.before
    }

    /// How many messages at the most.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether the count is taken from the newest end.
    pub fn is_last(&self) -> bool {
        self.end == End::Newest
    }
}

/// Which page of a catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    limit: usize,
    after: Option<Cursor>,
}

impl PageRequest {
    /// The first `limit` conversations. It makes a new list.
    pub fn first(limit: usize) -> Self {
        Self { limit, after: None }
    }

    /// The next `limit` conversations after those of the page that gave this cursor. A conversation that is written to while
    /// you go through the pages may have moved to the front, and be on none of the later pages.
    pub fn after(limit: usize, cursor: Cursor) -> Self {
        Self { limit, after: Some(cursor) }
    }

    /// The number of conversations on a page.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The place after which the page begins.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.after.as_ref()
    }

    /// The limit, checked.
    pub(crate) fn checked_limit(&self) -> Result<usize> {
        match self.limit {
            0 => Err(Error::InvalidOption { option: "limit", reason: "a page of 0 conversations shows nothing" }),
            limit => Ok(limit),
        }
    }
}

/// A place in a catalogue: between what was written at some time and what before. It has a text form for links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Nanoseconds since 1970, or whatever else tells a store what was written when.
    pub(crate) written: u64,
    /// Tells apart what was written at the same moment.
    pub(crate) key: String,
}

impl Cursor {
    /// For implementors of [`ChatHistory`]: behind what was written at `written`, and behind `key` among those.
    pub fn new(written: u64, key: impl Into<String>) -> Self {
        Self { written, key: key.into() }
    }

    /// The order of writing, as given to [`new`](Self::new).
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The key, as given to [`new`](Self::new).
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.written, self.key)
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('.').and_then(|(written, key)| Some(Self::new(written.parse().ok()?, key)));
        parts.ok_or(Error::InvalidOption { option: "cursor", reason: "it is not the text of a cursor" })
    }
}

/// A page of a catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T> {
    /// What is on the page.
    pub items: Vec<T>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<Cursor>,
    /// What could not be listed, in the part of the catalogue that this page covers; what belongs to no place in it is on the
    /// first page.
    pub problems: Vec<Problem>,
}

impl<T> Page<T> {
    /// For implementors of [`ChatHistory`].
    pub fn new(items: Vec<T>, next: Option<Cursor>, problems: Vec<Problem>) -> Self {
        Self { items, next, problems }
    }
}

/// A conversation in a catalogue.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationSummary {
    /// Its id, as it was given.
    pub id: String,
    /// How many messages were added to it. Those lost in the middle of a damaged file are counted.
    pub messages: u64,
    /// What it takes in the store, in bytes, without space written ahead; for a store in memory, of text.
    pub bytes: u64,
    /// When its first message was recorded.
    pub created: Option<SystemTime>,
    /// When its newest message was recorded.
    pub updated: Option<SystemTime>,
    /// Damage that is seen without reading the conversation whole; [`ChatHistory::verify`] reads it whole.
    pub damage: Vec<Damage>,
}

impl ConversationSummary {
    /// For implementors of [`ChatHistory`]: a conversation without messages; set what is known.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), messages: 0, bytes: 0, created: None, updated: None, damage: Vec::new() }
    }
}

/// Shows the id's length, never the id.
impl fmt::Debug for ConversationSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationSummary")
            .field("id_bytes", &self.id.len())
            .field("messages", &self.messages)
            .field("bytes", &self.bytes)
            .field("created", &self.created)
            .field("updated", &self.updated)
            .field("damage", &self.damage)
            .finish()
    }
}

/// Something in a store that is no readable conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

impl Problem {
    /// For implementors of [`ChatHistory`].
    pub fn new(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}

/// What [`ChatHistory::verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// The number of messages that are intact.
    pub messages: u64,
    /// What the conversation takes in the store, in bytes, without space written ahead.
    pub bytes: u64,
    /// What is damaged, in the order of the file; empty where nothing is.
    pub damage: Vec<Damage>,
    /// Copies of damaged bytes that were set aside earlier.
    pub set_aside: Vec<PathBuf>,
}

impl Verification {
    /// Whether nothing is damaged, and nothing was set aside.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty() && self.set_aside.is_empty()
    }
}

/// A stretch of a file that does not read as what was once written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// What is wrong.
    pub kind: DamageKind,
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// Where it ends, in bytes from the start of the file.
    pub end: u64,
}

impl Damage {
    pub(crate) fn new(kind: DamageKind, offset: u64, end: u64) -> Self {
        Self { kind, offset, end }
    }
}

/// What is wrong with a stretch of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// What a crash leaves of a write that was never acknowledged. Nothing is lost.
    UnfinishedEnd,
    /// The end of the file was whole once.
    End,
    /// A stretch with intact messages behind it.
    Middle,
    /// The file header, with intact messages behind it.
    Header,
    /// Messages whose checksums hold, and which cannot be decoded.
    Undecodable,
    /// Nothing in the file holds.
    Everything,
    /// Bytes that were whole once were set aside earlier, and are in a file of their own.
    SetAside,
}

impl DamageKind {
    /// The kind in words.
    pub fn reason(self) -> &'static str {
        match self {
            DamageKind::UnfinishedEnd => "an unfinished write at the end is not read",
            DamageKind::End => "the end of the file does not hold",
            DamageKind::Middle => "a stretch with intact messages behind it does not hold",
            DamageKind::Header => "the file header does not hold",
            DamageKind::Undecodable => "messages whose checksums hold cannot be decoded",
            DamageKind::Everything => "nothing in the file holds",
            DamageKind::SetAside => "damaged bytes were set aside",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_from_its_text() {
        let cursor = Cursor::new(17, "a.b");
        assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        assert!("x".parse::<Cursor>().is_err());
        assert!("x.y".parse::<Cursor>().is_err());
    }
}
