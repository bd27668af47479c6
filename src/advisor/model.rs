//! A model, as an advisor needs it.

use std::convert::Infallible;
use std::fmt;

use crate::context::ToolDefinition;
use crate::error::Error;
use crate::message::{Message, ToolCall};

/// What a model is sent.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// Fit to send as they are: every call has its result, and the last message is the newest.
    pub messages: Vec<Message>,
    /// The tools that the context providers answer, to be offered beside the caller's own.
    pub tools: Vec<ToolDefinition>,
}

/// What a model said: usually one assistant message; several where the caller ran tools in between.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Reply {
    /// Oldest first.
    pub messages: Vec<Message>,
    /// The answer was cut off before its end.
    pub is_interrupted: bool,
}

impl Reply {
    /// An answer that was cut off: what came of it. [`StreamedReply`](super::StreamedReply) makes one of pieces.
    pub fn interrupted(so_far: Message) -> Self {
        Self { messages: vec![so_far], is_interrupted: true }
    }
}

impl From<Message> for Reply {
    fn from(message: Message) -> Self {
        Self::from(vec![message])
    }
}

impl From<Vec<Message>> for Reply {
    fn from(messages: Vec<Message>) -> Self {
        Self { messages, is_interrupted: false }
    }
}

/// A model: one method. A closure from a request to a `Result` is one.
pub trait Model {
    /// Why a call failed.
    type Error;

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    ///
    /// Whatever the model's client says. Then nothing is remembered, or the question alone; see
    /// [`OnFailure`](super::OnFailure).
    fn call(&self, request: &ModelRequest) -> Result<Reply, Self::Error>;
}

impl<F, R, E> Model for F
where
    F: Fn(&ModelRequest) -> Result<R, E>,
    R: Into<Reply>,
{
    type Error = E;

    fn call(&self, request: &ModelRequest) -> Result<Reply, E> {
        self(request).map(Into::into)
    }
}

/// [`Model`] for async programs. A closure from a request to a future of a `Result` is one.
pub trait AsyncModel: Sync {
    /// Why a call failed.
    type Error;

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    ///
    /// As [`Model::call`].
    fn call(&self, request: ModelRequest) -> impl Future<Output = Result<Reply, Self::Error>> + Send;
}

impl<F, A, R, E> AsyncModel for F
where
    F: Fn(ModelRequest) -> A + Sync,
    A: Future<Output = Result<R, E>> + Send,
    R: Into<Reply>,
{
    type Error = E;

    async fn call(&self, request: ModelRequest) -> Result<Reply, E> {
        self(request).await.map(Into::into)
    }
}

/// What happened in a turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// What was said in this turn and is remembered now, from the question on. What was remembered before is not repeated.
    pub messages: Vec<Message>,
    /// The answer; `None` where the model said nothing.
    pub answer: Option<Message>,
    /// Calls of tools that nobody here knows. The caller answers them with tool messages in a next turn.
    pub open_calls: Vec<ToolCall>,
    /// The answer was cut off.
    pub is_interrupted: bool,
}

/// Why a turn failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum TurnError<E = Infallible> {
    /// The model failed. Nothing of the step is remembered, or the question alone; see [`OnFailure`](super::OnFailure).
    Model(E),
    /// The memory, or what goes before it, could not be read. The model was not asked.
    Recall(Error),
    /// The model answered, and this could not be remembered.
    Remember {
        /// What was said and is not remembered, oldest first: to be shown to the user all the same, and added again later.
        messages: Vec<Message>,
        /// Why.
        source: Error,
    },
    /// A context provider could not answer a tool call, for a reason that a model can do nothing about. What was said until then is
    /// remembered, and the call is open.
    Tool(Error),
    /// The model called tools again and again. What was said until then is remembered.
    TooManyRounds {
        /// How often the model was asked.
        rounds: usize,
    },
}

impl<E: fmt::Display> fmt::Display for TurnError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TurnError::Model(_) => f.write_str("the model failed"),
            TurnError::Recall(_) => f.write_str("the conversation could not be recalled"),
            TurnError::Tool(_) => f.write_str("a tool call could not be answered"),
            TurnError::Remember { messages, .. } => {
                write!(f, "the model answered, and {} messages could not be remembered", messages.len())
            }
            TurnError::TooManyRounds { rounds } => {
                write!(f, "the model was asked {rounds} times and still calls tools")
            }
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for TurnError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TurnError::Model(error) => Some(error),
            TurnError::Recall(source) | TurnError::Tool(source) | TurnError::Remember { source, .. } => Some(source),
            TurnError::TooManyRounds { .. } => None,
        }
    }
}
