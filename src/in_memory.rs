//! The memory without a disk.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dashmap::DashMap;

use crate::error::Result;
use crate::history::{
    Appended, ChatHistory, ConversationSummary, Cursor, Entry, HistoryRange, Page, PageRequest, Verification,
};
use crate::memory::{ChatMemory, check_batch, check_id};
use crate::message::{Message, Role};
use crate::window::Window;

/// A [`ChatMemory`] that forgets everything when the process ends: for tests, for short-lived sessions, and as the plain
/// model of what every other store does.
///
/// ```
/// use chat_memory::{ChatMemory, InMemoryChatMemory, Message};
///
/// let memory = InMemoryChatMemory::builder().max_messages(1).build()?;
/// memory.add("user-42", &[Message::user("hello"), Message::assistant("hi"), Message::user("bye")])?;
/// assert_eq!(memory.get("user-42")?, [Message::user("bye")]);
/// # Ok::<(), chat_memory::Error>(())
/// ```
#[doc(alias = "InMemoryChatMemoryRepository")]
#[derive(Default)]
pub struct InMemoryChatMemory {
    window: Option<Window>,
    /// A reader takes a conversation's `Arc` out and works on it without holding up the map; a writer that meets such a
    /// reader copies the list, which is a reference count a message.
    conversations: DashMap<String, Arc<Conversation>>,
    /// Counts writes, to tell which conversation was written last.
    clock: AtomicU64,
}

#[derive(Clone, Default)]
struct Conversation {
    messages: Vec<Message>,
    /// When each message was recorded.
    recorded_at: Vec<SystemTime>,
    /// The moment of the last write, on the memory's own clock.
    written: u64,
    /// Where the newest system and user messages are, so that a view costs what it shows.
    newest_system: Option<usize>,
    newest_user: Option<usize>,
}

impl InMemoryChatMemory {
    /// An empty memory whose `get` returns everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty memory with options.
    pub fn builder() -> InMemoryChatMemoryBuilder {
        InMemoryChatMemoryBuilder::default()
    }

    /// What there is of a conversation; an unknown one is empty.
    fn conversation(&self, id: &str) -> Result<Arc<Conversation>> {
        check_id(id)?;
        Ok(self.conversations.get(id).map(|entry| Arc::clone(&entry)).unwrap_or_default())
    }
}

impl ChatMemory for InMemoryChatMemory {
    fn add(&self, conversation_id: &str, messages: &[Message]) -> Result<()> {
        self.append(conversation_id, messages).map(drop)
    }

    fn get(&self, conversation_id: &str) -> Result<Vec<Message>> {
        let conversation = self.conversation(conversation_id)?;
        Ok(match &self.window {
            Some(window) => conversation.view(window, conversation.messages.len()),
            None => conversation.messages.clone(),
        })
    }

    fn clear(&self, conversation_id: &str) -> Result<()> {
        check_id(conversation_id)?;
        self.conversations.remove(conversation_id);
        Ok(())
    }
}

impl ChatHistory for InMemoryChatMemory {
    fn append(&self, conversation_id: &str, messages: &[Message]) -> Result<Appended> {
        check_id(conversation_id)?;
        check_batch(messages)?;
        let recorded_at = now();
        if messages.is_empty() {
            let next = self.conversation(conversation_id)?.messages.len() as u64;
            return Ok(Appended::new(next..next, recorded_at));
        }
        let mut conversation = match self.conversations.get_mut(conversation_id) {
            Some(known) => known,
            None => self.conversations.entry(conversation_id.to_owned()).or_default(),
        };
        let first = conversation.messages.len() as u64;
        let written = self.clock.fetch_add(1, Ordering::Relaxed);
        Arc::make_mut(&mut conversation).extend(messages, recorded_at, written);
        Ok(Appended::new(first..first + messages.len() as u64, recorded_at))
    }

    fn history(&self, conversation_id: &str, range: HistoryRange) -> Result<Vec<Entry>> {
        let conversation = self.conversation(conversation_id)?;
        let len = conversation.messages.len();
        let bound = |seq: u64| usize::try_from(seq).unwrap_or(usize::MAX).min(len);
        let (from, before) = (bound(range.bounds().start), bound(range.bounds().end));
        let wanted = match range.is_last() {
            true => from.max(before.saturating_sub(range.count()))..before,
            false => from..before.min(from.saturating_add(range.count())),
        };
        let entries = wanted.filter_map(|at| {
            let (recorded_at, message) = (conversation.recorded_at.get(at)?, conversation.messages.get(at)?);
            Some(Entry::new(at as u64, *recorded_at, message.clone()))
        });
        Ok(entries.collect())
    }

    fn conversations(&self, page: &PageRequest) -> Result<Page<ConversationSummary>> {
        let limit = page.checked_limit()?;
        let mut all: Vec<(u64, String)> =
            self.conversations.iter().map(|entry| (entry.written, entry.key().clone())).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        if let Some(cursor) = page.cursor() {
            // Each write has a moment of its own, so the moment alone is the place.
            all.retain(|(written, _)| *written < cursor.written());
        }
        let next = all.get(limit.saturating_sub(1)).filter(|_| all.len() > limit);
        let next = next.map(|(written, _)| Cursor::new(*written, ""));
        all.truncate(limit);
        let summaries = all.into_iter().filter_map(|(_, id)| {
            let conversation = self.conversations.get(&id).map(|entry| Arc::clone(&entry))?;
            Some(conversation.summary(id))
        });
        Ok(Page::new(summaries.collect(), next, Vec::new()))
    }

    fn view_at(&self, conversation_id: &str, seq: u64, window: &Window) -> Result<Vec<Message>> {
        window.check()?;
        let conversation = self.conversation(conversation_id)?;
        let len = usize::try_from(seq).unwrap_or(usize::MAX).saturating_add(1).min(conversation.messages.len());
        Ok(conversation.view(window, len))
    }

    fn verify(&self, conversation_id: &str) -> Result<Verification> {
        let conversation = self.conversation(conversation_id)?;
        let (messages, bytes) = (conversation.messages.len() as u64, conversation.bytes());
        Ok(Verification { messages, bytes, ..Verification::default() })
    }
}

impl Conversation {
    fn extend(&mut self, messages: &[Message], recorded_at: SystemTime, written: u64) {
        for message in messages {
            let position = Some(self.messages.len());
            match message.role() {
                Role::System | Role::Developer => self.newest_system = position,
                Role::User => self.newest_user = position,
                _ => {}
            }
            self.messages.push(message.clone());
            self.recorded_at.push(recorded_at);
        }
        self.written = written;
    }

    /// What a window shows of the first `len` messages.
    fn view(&self, window: &Window, len: usize) -> Vec<Message> {
        let Some(messages) = self.messages.get(..len) else {
            return Vec::new();
        };
        if len < self.messages.len() {
            return window.view(messages);
        }
        let at = |position: Option<usize>| position.and_then(|position| messages.get(position)).cloned();
        let selection = window.select(at(self.newest_system), at(self.newest_user));
        selection.finish_with(messages.iter().enumerate().rev().map(|(seq, message)| (seq as u64, message.clone())))
    }

    fn bytes(&self) -> u64 {
        self.messages.iter().map(|message| message.text().len() as u64).sum()
    }

    fn summary(&self, id: String) -> ConversationSummary {
        let mut summary = ConversationSummary::new(id);
        summary.messages = self.messages.len() as u64;
        summary.bytes = self.bytes();
        summary.created = self.recorded_at.first().copied();
        summary.updated = self.recorded_at.last().copied();
        summary
    }
}

/// The time in whole microseconds, as every store keeps it.
fn now() -> SystemTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_micros(u64::try_from(since.as_micros()).unwrap_or_default())
}

impl fmt::Debug for InMemoryChatMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryChatMemory")
            .field("window", &self.window)
            .field("conversations", &self.conversations.len())
            .finish()
    }
}

/// Options of an [`InMemoryChatMemory`].
#[derive(Debug, Clone, Default)]
pub struct InMemoryChatMemoryBuilder {
    window: Option<Window>,
    step: Option<usize>,
}

impl InMemoryChatMemoryBuilder {
    /// `get` returns a view of at most this many messages. Default: everything.
    #[must_use]
    pub fn max_messages(self, count: usize) -> Self {
        self.window(Window::messages(count))
    }

    /// `get` returns the view of this window; the same option as [`max_messages`](Self::max_messages), for budgets in tokens.
    /// Default: everything.
    #[must_use]
    pub fn window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self
    }

    /// [`Window::with_step`] for the window that is set. Default: the window's own, 1.
    #[must_use]
    pub fn window_step(mut self, step: usize) -> Self {
        self.step = Some(step);
        self
    }

    /// Makes the memory.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) for a window of 0, or a step of 0.
    pub fn build(self) -> Result<InMemoryChatMemory> {
        let window = Window::from_options(self.window, self.step)?;
        Ok(InMemoryChatMemory { window, ..InMemoryChatMemory::new() })
    }
}
