//! The memory of rig's agents.

use chat_memory::{AsyncChatMemory, Message, OpenCalls, model_ready};
#[cfg(feature = "tokio")]
use chat_memory::{ChatMemory, Offload};
use rig_core::completion::Message as RigMessage;
use rig_core::id::ConversationId;
use rig_core::memory::{ConversationMemory, MemoryError};
use rig_core::wasm_compat::WasmBoxedFuture;

use crate::{from_rig, to_rig};

/// rig's [`ConversationMemory`] on a memory of `chat-memory`.
///
/// rig loads a conversation before it asks the model, sets the new question behind it, and appends the whole turn after it went
/// well: question, calls, results and answer. Here that is one `get` and one `add`, so a turn is stored whole or not at all.
///
/// - A load that fails stops the turn before the model is called: a conversation that cannot be read is never an empty one.
/// - An append that fails does not take the answer away; rig says so in its response's `memory_append`. Look at it.
/// - A turn that fails leaves nothing behind.
///
/// Errors are [`MemoryError::Backend`] around [`chat_memory::Error`].
///
/// ```
/// use chat_memory::{AsyncChatMemory, InMemoryChatMemory, Offload};
/// use chat_memory_rig::RigMemory;
/// use rig_core::completion::Message;
/// use rig_core::memory::ConversationMemory;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let memory = RigMemory::new(Offload::new(InMemoryChatMemory::new()));
/// let turn = vec![Message::user("What is 2 + 2?"), Message::assistant("Four.")];
/// memory.append(&"user-42".into(), turn.clone()).await?;
/// assert_eq!(memory.load(&"user-42".into()).await?, turn);
/// assert_eq!(memory.memory().get("user-42").await?[1].text(), "Four.");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RigMemory<M> {
    memory: M,
    open_calls: OpenCalls,
}

impl<M> RigMemory<M> {
    /// A memory for rig on any async memory; an `Arc<dyn AsyncChatMemory>` is one too.
    pub fn new(memory: M) -> Self {
        Self { memory, open_calls: OpenCalls::default() }
    }

    /// What a call becomes that was never answered, because the program that ran its tool ended. Default:
    /// [`OpenCalls::Interrupt`].
    #[must_use]
    pub fn with_open_calls(mut self, open_calls: OpenCalls) -> Self {
        self.open_calls = open_calls;
        self
    }

    /// The memory that was given.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The view, fit to stand before the question that rig sets behind it.
    fn ready(&self, mut view: Vec<Message>) -> Vec<Message> {
        // What is fit depends on what follows: behind a question no call can be answered any more, and nothing but instructions
        // may stand before the first one. So one stands in for it.
        view.push(Message::user("the question"));
        let mut ready = model_ready(&view, self.open_calls);
        ready.pop();
        ready
    }
}

#[cfg(feature = "tokio")]
impl<S: ChatMemory + 'static> RigMemory<Offload<S>> {
    /// A memory for rig on a store that blocks, such as [`FileChatMemory`](chat_memory::FileChatMemory): each call runs on a thread of
    /// tokio's that may block.
    pub fn offload(store: S) -> Self {
        Self::new(Offload::new(store))
    }
}

impl<M: AsyncChatMemory> ConversationMemory for RigMemory<M> {
    /// The view that the memory shows, fit to be sent before a new question. What rig cannot say of it is left out; see
    /// [`to_rig`].
    fn load<'a>(
        &'a self,
        conversation_id: &'a ConversationId,
    ) -> WasmBoxedFuture<'a, Result<Vec<RigMessage>, MemoryError>> {
        Box::pin(async move {
            let view = self.memory.get(conversation_id.as_str()).await.map_err(MemoryError::backend)?;
            let loaded = to_rig(&self.ready(view));
            if !loaded.warnings.is_empty() {
                tracing::debug!(messages = loaded.warnings.len(), "left out what rig cannot say of a conversation");
            }
            Ok(loaded.messages)
        })
    }

    /// Stores all messages in one `add`.
    fn append<'a>(
        &'a self,
        conversation_id: &'a ConversationId,
        messages: Vec<RigMessage>,
    ) -> WasmBoxedFuture<'a, Result<(), MemoryError>> {
        Box::pin(async move {
            let messages = from_rig(messages).map_err(MemoryError::backend)?;
            self.memory.add(conversation_id.as_str(), messages).await.map_err(MemoryError::backend)
        })
    }

    fn clear<'a>(&'a self, conversation_id: &'a ConversationId) -> WasmBoxedFuture<'a, Result<(), MemoryError>> {
        Box::pin(async move { self.memory.clear(conversation_id.as_str()).await.map_err(MemoryError::backend) })
    }
}
