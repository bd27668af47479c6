//! One turn of a chat: recall, ask the model, remember.

mod model;
mod options;
mod overlap;
mod turn;

pub use model::{Model, ModelRequest, Outcome, Reply, TurnError};
pub use options::{Interrupted, MemoryAdvisorBuilder, OnFailure, Remember};
pub use turn::{INTERRUPTED, UNANSWERED};

use self::options::Options;
use self::turn::Turn;
use crate::context::{Context, ToolOutput};
use crate::error::{Error, Result};
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
    options: Options,
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

    /// Answers the open calls as far as somebody knows the tools; whether there were any, and all are answered.
    fn answer_calls(&self, conversation_id: &str, turn: &mut Turn) -> Result<bool> {
        let calls = turn.open_calls().to_vec();
        for call in &calls {
            if let Some(output) = self.answer(conversation_id, call)? {
                turn.answered(output.into_message(call));
            }
        }
        Ok(!calls.is_empty() && turn.open_calls().is_empty())
    }

    fn answer(&self, conversation_id: &str, call: &ToolCall) -> Result<Option<ToolOutput>> {
        for provider in &self.options.context {
            if let Some(output) = provider.answer(conversation_id, call)? {
                return Ok(Some(output));
            }
        }
        Ok(self.options.tools.as_ref().and_then(|run| run(conversation_id, call)))
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
        let mut turn =
            self.begin(conversation_id, &input.into_iter().collect::<Vec<_>>()).map_err(TurnError::Recall)?;
        if turn.is_answered {
            return Ok(turn.into_outcome());
        }
        for _ in 0..self.options.max_rounds {
            let reply = match model.call(&turn.request(&self.options)) {
                Ok(reply) => reply,
                Err(error) => {
                    self.keep_question(conversation_id, &mut turn)?;
                    return Err(TurnError::Model(error));
                }
            };
            if reply.is_interrupted && (self.options.interrupted == Interrupted::Forget || reply.is_blank()) {
                self.keep_question(conversation_id, &mut turn)?;
                return Ok(turn.cut_off(reply));
            }
            turn.replied(reply);
            self.remember_step(conversation_id, &mut turn)?;
            let answered = self.answer_calls(conversation_id, &mut turn);
            if answered.as_ref().is_ok_and(|answered| *answered) {
                self.remember_step(conversation_id, &mut turn)?;
                continue;
            }
            self.remember(conversation_id, &mut turn)?;
            return answered.map(|_| turn.into_outcome()).map_err(TurnError::Tool);
        }
        self.remember(conversation_id, &mut turn)?;
        Err(TurnError::TooManyRounds { rounds: self.options.max_rounds })
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

    fn begin(&self, conversation_id: &str, input: &[Message]) -> Result<Turn> {
        let view = self.memory.get(conversation_id)?;
        let mut context = vec![Context { instructions: self.options.instructions.clone(), ..Context::default() }];
        for provider in &self.options.context {
            context.push(provider.context(conversation_id)?);
        }
        Ok(Turn::new(context, view, input))
    }

    fn remember<E>(&self, conversation_id: &str, turn: &mut Turn) -> Result<(), TurnError<E>> {
        let messages = turn.to_remember();
        if !messages.is_empty() {
            let added = self.memory.add(conversation_id, messages);
            added.map_err(|source| TurnError::Remember { messages: messages.to_vec(), source })?;
        }
        turn.remembered();
        Ok(())
    }

    fn remember_step<E>(&self, conversation_id: &str, turn: &mut Turn) -> Result<(), TurnError<E>> {
        match self.options.remember {
            Remember::Turn => Ok(()),
            Remember::Step => self.remember(conversation_id, turn),
        }
    }

    /// After a failure of the model: the question, where that was chosen.
    fn keep_question<E>(&self, conversation_id: &str, turn: &mut Turn) -> Result<(), TurnError<E>> {
        match self.options.on_failure {
            OnFailure::Forget => Ok(()),
            OnFailure::Keep => {
                turn.mark_unanswered();
                self.remember(conversation_id, turn)
            }
        }
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
    /// [`Error::Conflict`] where the transcript is not what was stored, for example because a question was asked anew. Then
    /// nothing is stored.
    pub fn sync(&self, conversation_id: &str, transcript: &[Message]) -> Result<usize> {
        let stored = self.memory.history(conversation_id, HistoryRange::all())?;
        let stored: Vec<Message> = stored.into_iter().map(|entry| entry.message).collect();
        let reason = "the transcript is not a continuation of the conversation that is stored";
        let new = overlap::new_messages(&stored, transcript).ok_or(Error::Conflict { reason })?;
        self.memory.add(conversation_id, &new)?;
        Ok(new.len())
    }
}
