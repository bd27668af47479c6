//! The contracts for async programs.

use std::pin::Pin;
use std::sync::Arc;

use crate::context::{Context, ToolOutput};
use crate::error::Result;
use crate::history::{Appended, ConversationSummary, Entry, HistoryRange, Page, PageRequest, Verification};
use crate::message::{Message, ToolCall};
use crate::window::Window;

/// A future on the heap, as trait objects need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`ChatMemory`](crate::ChatMemory) for async programs: the same contract, and `Arc<dyn AsyncChatMemory>` works.
///
/// A future that is dropped before it was polled has done nothing. One that is dropped later may have done all of it, and never
/// a part: the next reader sees which.
///
/// `Offload` makes one of any [`ChatMemory`](crate::ChatMemory) (feature `tokio`).
pub trait AsyncChatMemory: Send + Sync {
    /// As [`ChatMemory::add`](crate::ChatMemory::add).
    fn add<'a>(&'a self, conversation_id: &'a str, messages: Vec<Message>) -> BoxFuture<'a, Result<()>>;

    /// As [`ChatMemory::get`](crate::ChatMemory::get).
    fn get<'a>(&'a self, conversation_id: &'a str) -> BoxFuture<'a, Result<Vec<Message>>>;

    /// As [`ChatMemory::clear`](crate::ChatMemory::clear).
    fn clear<'a>(&'a self, conversation_id: &'a str) -> BoxFuture<'a, Result<()>>;
}

/// [`ChatHistory`](crate::ChatHistory) for async programs.
pub trait AsyncChatHistory: Send + Sync {
    /// As [`ChatHistory::append`](crate::ChatHistory::append).
    fn append<'a>(&'a self, conversation_id: &'a str, messages: Vec<Message>) -> BoxFuture<'a, Result<Appended>>;

    /// As [`ChatHistory::history`](crate::ChatHistory::history).
    fn history<'a>(&'a self, conversation_id: &'a str, range: HistoryRange) -> BoxFuture<'a, Result<Vec<Entry>>>;

    /// As [`ChatHistory::conversations`](crate::ChatHistory::conversations).
    fn conversations<'a>(&'a self, page: &'a PageRequest) -> BoxFuture<'a, Result<Page<ConversationSummary>>>;

    /// As [`ChatHistory::view_at`](crate::ChatHistory::view_at).
    fn view_at<'a>(
        &'a self,
        conversation_id: &'a str,
        seq: u64,
        window: &'a Window,
    ) -> BoxFuture<'a, Result<Vec<Message>>>;

    /// As [`ChatHistory::verify`](crate::ChatHistory::verify).
    fn verify<'a>(&'a self, conversation_id: &'a str) -> BoxFuture<'a, Result<Verification>>;
}

/// [`ContextProvider`](crate::ContextProvider) for async programs.
pub trait AsyncContextProvider: Send + Sync {
    /// As [`ContextProvider::context`](crate::ContextProvider::context).
    fn context<'a>(&'a self, session_id: &'a str) -> BoxFuture<'a, Result<Context>>;

    /// As [`ContextProvider::answer`](crate::ContextProvider::answer).
    fn answer<'a>(&'a self, session_id: &'a str, call: &'a ToolCall) -> BoxFuture<'a, Result<Option<ToolOutput>>>;

    /// As [`ContextProvider::clear`](crate::ContextProvider::clear).
    fn clear<'a>(&'a self, session_id: &'a str) -> BoxFuture<'a, Result<()>>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<M: AsyncChatMemory + ?Sized> AsyncChatMemory for $pointer {
            fn add<'a>(&'a self, conversation_id: &'a str, messages: Vec<Message>) -> BoxFuture<'a, Result<()>> {
                (**self).add(conversation_id, messages)
            }

            fn get<'a>(&'a self, conversation_id: &'a str) -> BoxFuture<'a, Result<Vec<Message>>> {
                (**self).get(conversation_id)
            }

            fn clear<'a>(&'a self, conversation_id: &'a str) -> BoxFuture<'a, Result<()>> {
                (**self).clear(conversation_id)
            }
        }

        impl<M: AsyncChatHistory + ?Sized> AsyncChatHistory for $pointer {
            fn append<'a>(&'a self, conversation_id: &'a str, messages: Vec<Message>) -> BoxFuture<'a, Result<Appended>> {
                (**self).append(conversation_id, messages)
            }

            fn history<'a>(&'a self, conversation_id: &'a str, range: HistoryRange) -> BoxFuture<'a, Result<Vec<Entry>>> {
                (**self).history(conversation_id, range)
            }

            fn conversations<'a>(&'a self, page: &'a PageRequest) -> BoxFuture<'a, Result<Page<ConversationSummary>>> {
                (**self).conversations(page)
            }

            fn view_at<'a>(
                &'a self,
                conversation_id: &'a str,
                seq: u64,
                window: &'a Window,
            ) -> BoxFuture<'a, Result<Vec<Message>>> {
                (**self).view_at(conversation_id, seq, window)
            }

            fn verify<'a>(&'a self, conversation_id: &'a str) -> BoxFuture<'a, Result<Verification>> {
                (**self).verify(conversation_id)
            }
        }
    )*};
}
forward!(&M, Arc<M>, Box<M>);
