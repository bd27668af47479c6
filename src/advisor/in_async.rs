//! The turn in async programs.

use super::model::{AsyncModel, Outcome, TurnError};
use super::options::{MemoryAdvisorBuilder, Options};
use super::overlap;
use super::turn::{Next, Turn};
use crate::async_memory::{AsyncChatHistory, AsyncChatMemory, AsyncContextProvider};
use crate::context::ToolOutput;
use crate::error::Result;
use crate::history::HistoryRange;
use crate::message::{Message, ToolCall};

/// [`MemoryAdvisor`](super::MemoryAdvisor) for async programs: the same turn, over an [`AsyncChatMemory`] and an [`AsyncModel`].
///
/// `Offload` makes such a memory of any other (feature `tokio`).
///
/// ```
/// # #[cfg(feature = "tokio")] {
/// use chat_memory::{AsyncMemoryAdvisor, InMemoryChatMemory, Message, ModelRequest, Offload};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let advisor = AsyncMemoryAdvisor::new(Offload::new(InMemoryChatMemory::new()));
/// let model = |request: ModelRequest| async move {
///     Ok::<_, std::io::Error>(Message::assistant(format!("You sent {} messages.", request.messages.len())))
/// };
/// let outcome = advisor.turn("user-42", [Message::user("hello")], &model).await?;
/// assert_eq!(outcome.answer.unwrap().text(), "You sent 1 messages.");
/// # Ok::<(), chat_memory::TurnError<std::io::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AsyncMemoryAdvisor<M> {
    memory: M,
    options: Options<dyn AsyncContextProvider>,
}

impl<M> AsyncMemoryAdvisor<M> {
    /// An advisor with all defaults.
    pub fn new(memory: M) -> Self {
        Self { memory, options: Options::default() }
    }

    /// Options, each with a default.
    pub fn builder(memory: M) -> MemoryAdvisorBuilder<M, dyn AsyncContextProvider> {
        MemoryAdvisorBuilder::new(memory)
    }

    pub(super) fn with_options(memory: M, options: Options<dyn AsyncContextProvider>) -> Self {
        Self { memory, options }
    }

    /// The memory that was given.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

impl<M: AsyncChatMemory> AsyncMemoryAdvisor<M> {
    /// One turn, as [`MemoryAdvisor::turn`](super::MemoryAdvisor::turn) does it.
    ///
    /// Where its future is dropped, what was remembered until then is there, and what is being remembered at that moment may be.
    ///
    /// # Errors
    ///
    /// As [`MemoryAdvisor::turn`](super::MemoryAdvisor::turn).
    pub async fn turn<L: AsyncModel + ?Sized>(
        &self,
        conversation_id: &str,
        input: impl IntoIterator<Item = Message>,
        model: &L,
    ) -> Result<Outcome, TurnError<L::Error>> {
        let input = input.into_iter().collect();
        let mut turn = self.begin(conversation_id, input).await.map_err(TurnError::Recall)?;
        let mut failure = None;
        loop {
            match turn.next() {
                Next::Ask(request) => match model.call(request).await {
                    Ok(reply) => turn.replied(reply),
                    Err(error) => {
                        failure = Some(TurnError::Model(error));
                        turn.failed();
                    }
                },
                Next::Answer(call) => match self.answer(conversation_id, &call).await {
                    Ok(output) => turn.answered(&call, output),
                    Err(error) => {
                        failure = Some(TurnError::Tool(error));
                        turn.give_up();
                    }
                },
                Next::Remember => match self.memory.add(conversation_id, turn.to_remember().to_vec()).await {
                    Ok(()) => turn.remembered(),
                    Err(source) => return Err(TurnError::Remember { messages: turn.to_remember().to_vec(), source }),
                },
                Next::TooManyRounds => return Err(TurnError::TooManyRounds { rounds: turn.rounds }),
                Next::End => return failure.map_or_else(|| Ok(turn.into_outcome()), Err),
            }
        }
    }

    /// As [`MemoryAdvisor::clear`](super::MemoryAdvisor::clear).
    ///
    /// # Errors
    ///
    /// An error means that some of it may still be there.
    pub async fn clear(&self, conversation_id: &str) -> Result<()> {
        if self.options.clear_context {
            for provider in &self.options.context {
                provider.clear(conversation_id).await?;
            }
        }
        self.memory.clear(conversation_id).await
    }

    async fn begin(&self, conversation_id: &str, input: Vec<Message>) -> Result<Turn> {
        let view = self.memory.get(conversation_id).await?;
        let mut context = vec![self.options.fixed_context()];
        for provider in &self.options.context {
            context.push(provider.context(conversation_id).await?);
        }
        Ok(Turn::new(self.options.policy.clone(), context, view, input))
    }

    async fn answer(&self, conversation_id: &str, call: &ToolCall) -> Result<Option<ToolOutput>> {
        for provider in &self.options.context {
            if let Some(output) = provider.answer(conversation_id, call).await? {
                return Ok(Some(output));
            }
        }
        Ok(None)
    }
}

impl<M: AsyncChatMemory + AsyncChatHistory> AsyncMemoryAdvisor<M> {
    /// As [`MemoryAdvisor::sync`](super::MemoryAdvisor::sync).
    ///
    /// # Errors
    ///
    /// As [`MemoryAdvisor::sync`](super::MemoryAdvisor::sync).
    pub async fn sync(&self, conversation_id: &str, transcript: &[Message]) -> Result<usize> {
        let stored = self.memory.history(conversation_id, HistoryRange::all()).await?;
        let new = overlap::new_messages(stored, transcript)?;
        let count = new.len();
        self.memory.add(conversation_id, new).await?;
        Ok(count)
    }
}
