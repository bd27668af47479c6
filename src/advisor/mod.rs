//! One turn of a chat: recall, ask the model, remember.

mod in_async;
mod model;
mod options;
mod overlap;
mod streamed;
mod turn;

pub use in_async::AsyncMemoryAdvisor;
pub use model::{AsyncModel, Model, ModelRequest, Outcome, Reply, TurnError};
pub use options::{Interrupted, MemoryAdvisorBuilder, OnFailure, Remember};
pub use streamed::StreamedReply;
pub use turn::{INTERRUPTED, UNANSWERED};

use self::options::Options;
use self::turn::{Next, Turn};
use crate::context::{ContextProvider, ToolOutput};
use crate::error::Result;
use crate::history::{ChatHistory, HistoryRange};
use crate::memory::ChatMemory;
use crate::message::{Message, ToolCall};

/// The hook around a model call: it recalls the conversation before, and remembers what was said after.
///
/// ```
/// use chat_memory::{InMemoryChatMemory, MemoryAdvisor, Message, ModelRequest};
///
/// // The model: anything from a request to messages. Here one that counts.
/// let model = |request: &ModelRequest| -> Result<Message, std::io::Error> {
///     Ok(Message::assistant(format!("You sent {} messages.", request.messages.len())))
/// };
/// let advisor = MemoryAdvisor::new(InMemoryChatMemory::new());
/// let first = advisor.turn("user-42", [Message::user("hello")], &model)?;
/// assert_eq!(first.answer.unwrap().text(), "You sent 1 messages.");
/// let second = advisor.turn("user-42", [Message::user("and now?")], &model)?;
/// assert_eq!(second.answer.unwrap().text(), "You sent 3 messages.");
/// # Ok::<(), chat_memory::TurnError<std::io::Error>>(())
/// ```
///
/// # A turn
///
/// 1. What the memory shows of the conversation is recalled, what the caller says now is appended, and the list is made fit to
///    send ([`model_ready`](crate::model_ready)). Instructions and messages of [context providers](crate::ContextProvider) go
///    before it.
/// 2. The model is asked. Calls of tools that a provider knows, or the caller's own [tools](MemoryAdvisorBuilder::tools), are
///    answered, and the model is asked again.
/// 3. Question, tool rounds and answer are remembered in one piece, or step by step ([`Remember`]). What a provider gave is not. A
///    reply without content is not.
///
/// If the model fails, nothing is remembered, or the question alone, marked ([`OnFailure`]).
///
/// **Retries.** A message whose id is in the newest turn already is not stored again, and if the model has answered that turn, the
/// answer comes back without asking again. So a client that never got the answer may send the same message once more. This
/// needs messages [with ids](Message::with_id).
///
/// Turns of one conversation are not kept apart: a client that asks twice at the same time gets two answers, each whole.
#[doc(alias = "MessageChatMemoryAdvisor")]
#[derive(Debug, Clone)]
pub struct MemoryAdvisor<M> {
    memory: M,
    options: Options<dyn ContextProvider>,
}

impl<M> MemoryAdvisor<M> {
    /// An advisor with all defaults.
    pub fn new(memory: M) -> Self {
        Self { memory, options: Options::default() }
    }

    /// Options, each with a default.
    pub fn builder(memory: M) -> MemoryAdvisorBuilder<M> {
        MemoryAdvisorBuilder::new(memory)
    }

    /// The memory that was given.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

impl<M: ChatMemory> MemoryAdvisor<M> {
    /// One turn: what the caller says, usually one user message, or the results of tools that a turn before left open.
    ///
    /// # Errors
    ///
    /// [`TurnError::Recall`] before the model was asked; [`TurnError::Model`] with the model's own error;
    /// [`TurnError::Remember`] with everything that was said, where the answer could not be stored; [`TurnError::Tool`];
    /// [`TurnError::TooManyRounds`].
    pub fn turn<L: Model + ?Sized>(
        &self,
        conversation_id: &str,
        input: impl IntoIterator<Item = Message>,
        model: &L,
    ) -> Result<Outcome, TurnError<L::Error>> {
        let input = input.into_iter().collect();
        let mut turn = self.begin(conversation_id, input).map_err(TurnError::Recall)?;
        let mut failure = None;
        loop {
            match turn.next() {
                Next::Ask(request) => match model.call(&request) {
                    Ok(reply) => turn.replied(reply),
                    Err(error) => {
                        failure = Some(TurnError::Model(error));
                        turn.failed();
                    }
                },
                Next::Answer(call) => match self.answer(conversation_id, &call) {
                    Ok(output) => turn.answered(&call, output),
                    Err(error) => {
                        failure = Some(TurnError::Tool(error));
                        turn.give_up();
                    }
                },
                Next::Remember => match self.memory.add(conversation_id, turn.to_remember()) {
                    Ok(()) => turn.remembered(),
                    Err(source) => return Err(TurnError::Remember { messages: turn.to_remember().to_vec(), source }),
                },
                Next::TooManyRounds => return Err(TurnError::TooManyRounds { rounds: turn.rounds }),
                Next::End => return failure.map_or_else(|| Ok(turn.into_outcome()), Err),
            }
        }
    }

    /// Forgets a conversation, and if that was [chosen](MemoryAdvisorBuilder::clear_context) what the providers keep for it.
    ///
    /// # Errors
    ///
    /// An error means that some of it may still be there.
    pub fn clear(&self, conversation_id: &str) -> Result<()> {
        if self.options.clear_context {
            self.options.context.iter().try_for_each(|provider| provider.clear(conversation_id))?;
        }
        self.memory.clear(conversation_id)
    }

    fn begin(&self, conversation_id: &str, input: Vec<Message>) -> Result<Turn> {
        let view = self.memory.get(conversation_id)?;
        let mut context = vec![self.options.fixed_context()];
        for provider in &self.options.context {
            context.push(provider.context(conversation_id)?);
        }
        Ok(Turn::new(self.options.policy.clone(), context, view, input))
    }

    fn answer(&self, conversation_id: &str, call: &ToolCall) -> Result<Option<ToolOutput>> {
        for provider in &self.options.context {
            if let Some(output) = provider.answer(conversation_id, call)? {
                return Ok(Some(output));
            }
        }
        Ok(None)
    }
}

impl<M: ChatMemory + ChatHistory> MemoryAdvisor<M> {
    /// Stores what is new in a whole transcript, for callers that hold the conversation themselves and send all of it each time;
    /// how many messages that were.
    ///
    /// The transcript is laid over what is stored, by role and content, so that the two agree wherever both have a message. A
    /// transcript may begin later than the conversation does. System messages are looked at apart: of those before the new part
    /// the last counts, and is new if it is not the newest one that is stored. The whole conversation is read for that.
    ///
    /// ```
    /// use chat_memory::{ChatMemory, InMemoryChatMemory, MemoryAdvisor, Message};
    ///
    /// let advisor = MemoryAdvisor::new(InMemoryChatMemory::new());
    /// let mut transcript = vec![Message::user("hello"), Message::assistant("hi")];
    /// assert_eq!(advisor.sync("user-42", &transcript)?, 2);
    /// transcript.push(Message::user("how are you?"));
    /// assert_eq!(advisor.sync("user-42", &transcript)?, 1);
    /// assert_eq!(advisor.memory().get("user-42")?, transcript);
    /// # Ok::<(), chat_memory::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`](crate::Error::Conflict) where the transcript is not what was stored, for example because a question was asked anew. Then
    /// nothing is stored.
    pub fn sync(&self, conversation_id: &str, transcript: &[Message]) -> Result<usize> {
        let stored = self.memory.history(conversation_id, HistoryRange::all())?;
        let new = overlap::new_messages(stored, transcript)?;
        self.memory.add(conversation_id, &new)?;
        Ok(new.len())
    }
}
