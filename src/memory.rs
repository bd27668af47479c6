//! The contract of a chat memory.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::message::Message;

/// The memory of a chat backend: messages go in by conversation, and what a model should be shown comes out.
///
/// The trait is object-safe, and forwarded for references, [`Arc`] and [`Box`], so an application can hold an
/// `Arc<dyn ChatMemory>` and choose the store at start-up.
///
/// ```
/// use chat_memory::{ChatMemory, InMemoryChatMemory, Message};
///
/// fn turn(memory: &dyn ChatMemory, question: &str) -> chat_memory::Result<String> {
///     let mut messages = memory.get("user-42")?;
///     messages.push(Message::user(question));
///     let answer = format!("I was sent {} messages.", messages.len()); // the model's part
///     memory.add("user-42", &[Message::user(question), Message::assistant(&answer)])?;
///     Ok(answer)
/// }
///
/// let memory = InMemoryChatMemory::new();
/// assert_eq!(turn(&memory, "hello")?, "I was sent 1 messages.");
/// assert_eq!(turn(&memory, "again")?, "I was sent 3 messages.");
/// # Ok::<(), chat_memory::Error>(())
/// ```
///
/// # The contract
///
/// Every implementation promises this.
///
/// **Conversations**
/// - Any id that is not blank works: a megabyte long, `../`, `CON`, line breaks, NUL, emoji. Ids are compared byte for
///   byte, so composed and decomposed spellings of one character are two ids. A blank id (nothing is left after trimming)
///   is [`Error::InvalidConversationId`]. There is no default id.
/// - [`get`](Self::get) of an unknown conversation is an empty list, and creates nothing.
/// - [`add`](Self::add) of no messages does nothing, and creates nothing.
///
/// **Order and wholeness**
/// - Messages come back oldest first, in the order they were added. Times are data: equal or backward-running ones change
///   nothing.
/// - One by one or as a batch gives the same list. A batch is all or nothing, after any error or crash, and stays together
///   among concurrent writers.
/// - Every message comes back equal, field by field, also after a restart.
/// - Lists are copies: what the caller does with them changes nothing stored.
/// - [`get`](Self::get) is never an empty list for a conversation whose acknowledged messages exist but cannot be read;
///   that is an error.
///
/// **Window**
/// - With a [`Window`](crate::Window), `get` returns its view, and the stored conversation stays whole. Without one, `get`
///   returns everything as it was added.
///
/// **Clearing**
/// - [`clear`](Self::clear) removes that conversation alone, and for good. Clearing an unknown one is fine.
///
/// **Concurrency**
/// - Any number of threads may use one memory. n threads that add m messages each to one conversation leave exactly n × m,
///   each thread's own in order. Different conversations do not wait for each other.
/// - What a memory keeps in working memory to do so follows the conversations in use, not all that it has ever seen.
#[doc(alias = "ChatMemoryRepository")]
#[doc(alias = "MessageWindowChatMemory")]
pub trait ChatMemory: Send + Sync {
    /// Appends messages to a conversation, all or none.
    ///
    /// # Errors
    ///
    /// An error means that none of them was stored, but for [`Error::Poisoned`], after which that is not known.
    /// [`Error::InvalidConversationId`] for a blank id,
    /// [`Error::InvalidMessage`] for a message that could not come back equal, and whatever keeps a backend from storing.
    fn add(&self, conversation_id: &str, messages: &[Message]) -> Result<()>;

    /// What a model should be shown of a conversation, oldest message first: its window, or everything.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidConversationId`] for a blank id, and whatever keeps a backend from reading.
    fn get(&self, conversation_id: &str) -> Result<Vec<Message>>;

    /// Forgets a conversation, for good.
    ///
    /// # Errors
    ///
    /// An error means that the conversation may still be there. [`Error::InvalidConversationId`] for a blank id, and
    /// whatever keeps a backend from deleting.
    fn clear(&self, conversation_id: &str) -> Result<()>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<M: ChatMemory + ?Sized> ChatMemory for $pointer {
            fn add(&self, conversation_id: &str, messages: &[Message]) -> Result<()> {
                (**self).add(conversation_id, messages)
            }

            fn get(&self, conversation_id: &str) -> Result<Vec<Message>> {
                (**self).get(conversation_id)
            }

            fn clear(&self, conversation_id: &str) -> Result<()> {
                (**self).clear(conversation_id)
            }
        }
    )*};
}
forward!(&M, Arc<M>, Box<M>);

/// The rules for what is given to `add`, `get` and `clear`, the same in every store of this crate.
pub(crate) fn check_id(conversation_id: &str) -> Result<()> {
    if conversation_id.trim().is_empty() { Err(Error::InvalidConversationId) } else { Ok(()) }
}

pub(crate) fn check_batch(messages: &[Message]) -> Result<()> {
    for (index, message) in messages.iter().enumerate() {
        message.check_storable().map_err(|reason| Error::InvalidMessage { index, reason })?;
    }
    Ok(())
}
