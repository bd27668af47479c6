//! The memory without a disk.

use std::fmt;
use std::sync::Arc;

use dashmap::DashMap;

use crate::error::Result;
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
}

#[derive(Clone, Default)]
struct Conversation {
    messages: Vec<Message>,
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
}

impl ChatMemory for InMemoryChatMemory {
    fn add(&self, conversation_id: &str, messages: &[Message]) -> Result<()> {
        check_id(conversation_id)?;
        check_batch(messages)?;
        if messages.is_empty() {
            return Ok(());
        }
        let mut conversation = match self.conversations.get_mut(conversation_id) {
            Some(known) => known,
            None => self.conversations.entry(conversation_id.to_owned()).or_default(),
        };
        Arc::make_mut(&mut conversation).extend(messages);
        Ok(())
    }

    fn get(&self, conversation_id: &str) -> Result<Vec<Message>> {
        check_id(conversation_id)?;
        let Some(conversation) = self.conversations.get(conversation_id).map(|entry| Arc::clone(&entry)) else {
            return Ok(Vec::new());
        };
        Ok(match &self.window {
            Some(window) => conversation.view(window),
            None => conversation.messages.clone(),
        })
    }

    fn clear(&self, conversation_id: &str) -> Result<()> {
        check_id(conversation_id)?;
        self.conversations.remove(conversation_id);
        Ok(())
    }
}

impl Conversation {
    fn extend(&mut self, messages: &[Message]) {
        for message in messages {
            let position = Some(self.messages.len());
            match message.role() {
                Role::System | Role::Developer => self.newest_system = position,
                Role::User => self.newest_user = position,
                _ => {}
            }
            self.messages.push(message.clone());
        }
    }

    fn view(&self, window: &Window) -> Vec<Message> {
        let at = |position: Option<usize>| position.and_then(|position| self.messages.get(position)).cloned();
        let mut selection = window.select(at(self.newest_system), at(self.newest_user));
        for (position, message) in self.messages.iter().enumerate().rev() {
            if selection.push(position as u64, message.clone()).is_break() {
                break;
            }
        }
        selection.finish()
    }
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
        Ok(InMemoryChatMemory { window, conversations: DashMap::new() })
    }
}
