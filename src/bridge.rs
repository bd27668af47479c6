//! From blocking to async and back, on tokio.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::async_memory::{AsyncChatHistory, AsyncChatMemory, AsyncContextProvider, BoxFuture};
use crate::context::{Context, ContextProvider, ToolOutput};
use crate::error::{Error, Result};
use crate::history::{
    Appended, ChatHistory, ConversationSummary, Entry, HistoryRange, Page, PageRequest, Verification,
};
use crate::memory::ChatMemory;
use crate::message::{Message, ToolCall};
use crate::window::Window;

/// A blocking store in an async program: each call runs on a thread of tokio's that may block.
///
/// A call that was begun runs to its end, also if its future is dropped: an `add` that nobody waits for any more is there whole, or,
/// after an error, not at all. To be used on a tokio runtime.
///
/// A call under way holds a thread until it is done; where all that the runtime may have are taken, 512 by tokio's default, the
/// others wait in a queue. With a thousand conversations at work at once on two cores, a bound of 64 (`max_blocking_threads` of
/// tokio's builder, which holds for everything that blocks on that runtime) served 1.1 to 1.4 times as many turns a second as 512,
/// and with two threads the disk idled. A larger
/// [`max_open_files`](crate::FileChatMemoryBuilder::max_open_files), as many as are at work, did more: 1.3 to 2 times, for
/// about 256 KiB of memory each. `cargo bench --bench load --features tokio` measures it.
///
/// ```
/// use chat_memory::{AsyncChatMemory, InMemoryChatMemory, Message, Offload};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let memory = Offload::new(InMemoryChatMemory::new());
/// memory.add("user-42", vec![Message::user("hello")]).await?;
/// assert_eq!(memory.get("user-42").await?.len(), 1);
/// # Ok::<(), chat_memory::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Offload<M>(Arc<M>);

impl<M> Offload<M> {
    /// Wraps a store; an `Arc` of one that is used elsewhere too is a store as well.
    pub fn new(inner: M) -> Self {
        Self(Arc::new(inner))
    }

    /// What was wrapped.
    pub fn inner(&self) -> &M {
        &self.0
    }
}

impl<M> Clone for Offload<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Send + Sync + 'static> Offload<M> {
    /// Begins when it is polled first, and then runs to its end.
    fn run<'a, T: Send + 'static>(
        &self,
        call: impl FnOnce(&M) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'a, Result<T>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || call(&inner)).await {
                Ok(result) => result,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // The runtime shuts down, and had not begun it.
                Err(error) => Err(Error::Backend { backend: "tokio", source: error.into() }),
            }
        })
    }
}

impl<M: ChatMemory + 'static> AsyncChatMemory for Offload<M> {
    fn add<'a>(&'a self, conversation_id: &'a str, messages: Vec<Message>) -> BoxFuture<'a, Result<()>> {
        let id = conversation_id.to_owned();
        self.run(move |memory| memory.add(&id, &messages))
    }

    fn get<'a>(&'a self, conversation_id: &'a str) -> BoxFuture<'a, Result<Vec<Message>>> {
        let id = conversation_id.to_owned();
        self.run(move |memory| memory.get(&id))
    }

    fn clear<'a>(&'a self, conversation_id: &'a str) -> BoxFuture<'a, Result<()>> {
        let id = conversation_id.to_owned();
        self.run(move |memory| memory.clear(&id))
    }
}

impl<M: ChatHistory + 'static> AsyncChatHistory for Offload<M> {
    fn append<'a>(&'a self, conversation_id: &'a str, messages: Vec<Message>) -> BoxFuture<'a, Result<Appended>> {
        let id = conversation_id.to_owned();
        self.run(move |memory| memory.append(&id, &messages))
    }

    fn history<'a>(&'a self, conversation_id: &'a str, range: HistoryRange) -> BoxFuture<'a, Result<Vec<Entry>>> {
        let id = conversation_id.to_owned();
        self.run(move |memory| memory.history(&id, range))
    }

    fn conversations<'a>(&'a self, page: &'a PageRequest) -> BoxFuture<'a, Result<Page<ConversationSummary>>> {
        let page = page.clone();
        self.run(move |memory| memory.conversations(&page))
    }

    fn view_at<'a>(
        &'a self,
        conversation_id: &'a str,
        seq: u64,
        window: &'a Window,
    ) -> BoxFuture<'a, Result<Vec<Message>>> {
        let (id, window) = (conversation_id.to_owned(), window.clone());
        self.run(move |memory| memory.view_at(&id, seq, &window))
    }

    fn verify<'a>(&'a self, conversation_id: &'a str) -> BoxFuture<'a, Result<Verification>> {
        let id = conversation_id.to_owned();
        self.run(move |memory| memory.verify(&id))
    }
}

impl<P: ContextProvider + 'static> AsyncContextProvider for Offload<P> {
    fn context<'a>(&'a self, session_id: &'a str) -> BoxFuture<'a, Result<Context>> {
        let id = session_id.to_owned();
        self.run(move |provider| provider.context(&id))
    }

    fn answer<'a>(&'a self, session_id: &'a str, call: &'a ToolCall) -> BoxFuture<'a, Result<Option<ToolOutput>>> {
        let (id, call) = (session_id.to_owned(), call.clone());
        self.run(move |provider| provider.answer(&id, &call))
    }

    fn clear<'a>(&'a self, session_id: &'a str) -> BoxFuture<'a, Result<()>> {
        let id = session_id.to_owned();
        self.run(move |provider| provider.clear(&id))
    }
}

/// An async store in a program that blocks: each call waits for its future, on the runtime that was given.
///
/// # Panics
///
/// Where a call is made from async code, which must not block: tokio says so.
///
/// ```
/// use chat_memory::{BlockOn, ChatMemory, InMemoryChatMemory, Message, Offload};
///
/// let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
/// let memory = BlockOn::new(Offload::new(InMemoryChatMemory::new()), runtime.handle().clone());
/// memory.add("user-42", &[Message::user("hello")])?;
/// assert_eq!(memory.get("user-42")?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct BlockOn<A> {
    inner: A,
    runtime: Handle,
}

impl<A> BlockOn<A> {
    /// Wraps a store, to be waited for on this runtime.
    pub fn new(inner: A, runtime: Handle) -> Self {
        Self { inner, runtime }
    }

    /// What was wrapped.
    pub fn inner(&self) -> &A {
        &self.inner
    }
}

impl<A: AsyncChatMemory> ChatMemory for BlockOn<A> {
    fn add(&self, conversation_id: &str, messages: &[Message]) -> Result<()> {
        self.runtime.block_on(self.inner.add(conversation_id, messages.to_vec()))
    }

    fn get(&self, conversation_id: &str) -> Result<Vec<Message>> {
        self.runtime.block_on(self.inner.get(conversation_id))
    }

    fn clear(&self, conversation_id: &str) -> Result<()> {
        self.runtime.block_on(self.inner.clear(conversation_id))
    }
}

impl<A: AsyncChatHistory> ChatHistory for BlockOn<A> {
    fn append(&self, conversation_id: &str, messages: &[Message]) -> Result<Appended> {
        self.runtime.block_on(self.inner.append(conversation_id, messages.to_vec()))
    }

    fn history(&self, conversation_id: &str, range: HistoryRange) -> Result<Vec<Entry>> {
        self.runtime.block_on(self.inner.history(conversation_id, range))
    }

    fn conversations(&self, page: &PageRequest) -> Result<Page<ConversationSummary>> {
        self.runtime.block_on(self.inner.conversations(page))
    }

    fn view_at(&self, conversation_id: &str, seq: u64, window: &Window) -> Result<Vec<Message>> {
        self.runtime.block_on(self.inner.view_at(conversation_id, seq, window))
    }

    fn verify(&self, conversation_id: &str) -> Result<Verification> {
        self.runtime.block_on(self.inner.verify(conversation_id))
    }
}
