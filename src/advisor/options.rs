//! What can be chosen for an advisor.

use std::fmt;
use std::sync::Arc;

use super::MemoryAdvisor;
use crate::context::{ContextProvider, ToolOutput};
use crate::error::{Error, Result};
use crate::message::ToolCall;
use crate::window::OpenCalls;

/// What becomes of the question when the model fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFailure {
    /// Nothing is remembered, so a retry asks the same conversation again. The default.
    #[default]
    Forget,
    /// The question is remembered, marked with [`UNANSWERED`](super::UNANSWERED). The same question again is not stored twice.
    Keep,
}

/// When what is said in a turn is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Remember {
    /// At its end, question, tool rounds and answer together: a turn is there whole or not at all. The default.
    #[default]
    Turn,
    /// After each reply of the model and after each round of tools, so that a crash in a turn of half an hour costs one step.
    Step,
}

/// What becomes of an answer that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Interrupted {
    /// It is remembered as far as it came, marked with [`INTERRUPTED`](super::INTERRUPTED), if it says anything. The default.
    #[default]
    Keep,
    /// It is not remembered, and what [`OnFailure`] says becomes of the question.
    Forget,
}

pub(super) type Tools = Arc<dyn Fn(&str, &ToolCall) -> Option<ToolOutput> + Send + Sync>;

#[derive(Clone)]
pub(super) struct Options {
    pub(super) open_calls: OpenCalls,
    pub(super) on_failure: OnFailure,
    pub(super) interrupted: Interrupted,
    pub(super) remember: Remember,
    pub(super) max_rounds: usize,
    pub(super) clear_context: bool,
    pub(super) instructions: String,
    pub(super) context: Vec<Arc<dyn ContextProvider>>,
    pub(super) tools: Option<Tools>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            open_calls: OpenCalls::default(),
            on_failure: OnFailure::default(),
            interrupted: Interrupted::default(),
            remember: Remember::default(),
            max_rounds: 32,
            clear_context: false,
            instructions: String::new(),
            context: Vec::new(),
            tools: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { open_calls, on_failure, interrupted, remember, max_rounds, clear_context, context, tools, .. } =
            self;
        f.debug_struct("Options")
            .field("open_calls", open_calls)
            .field("on_failure", on_failure)
            .field("interrupted", interrupted)
            .field("remember", remember)
            .field("max_rounds", max_rounds)
            .field("clear_context", clear_context)
            .field("context", &context.len())
            .field("tools", &tools.is_some())
            .finish()
    }
}

/// Options of a [`MemoryAdvisor`].
#[derive(Debug, Clone)]
#[must_use]
pub struct MemoryAdvisorBuilder<M> {
    memory: M,
    options: Options,
}

impl<M> MemoryAdvisorBuilder<M> {
    pub(super) fn new(memory: M) -> Self {
        Self { memory, options: Options::default() }
    }

    /// What the model is told at every call, as a system message that is not stored. Default: nothing.
    #[doc(alias = "defaultSystem")]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.options.instructions = instructions.into();
        self
    }

    /// Gives a model more than the conversation: instructions and messages go before what is recalled, and are never stored;
    /// calls of the provider's tools are answered. Several providers come in their order. The conversation's id is the session's.
    /// Default: none.
    pub fn context(mut self, provider: impl ContextProvider + 'static) -> Self {
        self.options.context.push(Arc::new(provider));
        self
    }

    /// Runs the caller's own tools: given the conversation id and a call, the answer, or `None` for a tool that is not known.
    /// Default: calls that no provider knows are handed back, as [`Outcome::open_calls`](super::Outcome::open_calls).
    pub fn tools(mut self, run: impl Fn(&str, &ToolCall) -> Option<ToolOutput> + Send + Sync + 'static) -> Self {
        self.options.tools = Some(Arc::new(run));
        self
    }

    /// What a tool call that was never answered becomes when it is sent again. Default: [`OpenCalls::Interrupt`].
    pub fn open_calls(mut self, open_calls: OpenCalls) -> Self {
        self.options.open_calls = open_calls;
        self
    }

    /// What becomes of the question when the model fails. Default: [`OnFailure::Forget`].
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.options.on_failure = on_failure;
        self
    }

    /// What becomes of an answer that was cut off. Default: [`Interrupted::Keep`].
    pub fn interrupted(mut self, interrupted: Interrupted) -> Self {
        self.options.interrupted = interrupted;
        self
    }

    /// When what is said in a turn is remembered. Default: [`Remember::Turn`].
    pub fn remember(mut self, remember: Remember) -> Self {
        self.options.remember = remember;
        self
    }

    /// How often the model is asked in one turn, at the most. Default: 32.
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.options.max_rounds = rounds;
        self
    }

    /// Whether [`MemoryAdvisor::clear`] clears what the providers keep for the conversation too. Default: no.
    pub fn clear_context(mut self, clear: bool) -> Self {
        self.options.clear_context = clear;
        self
    }

    /// The advisor.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for 0 rounds.
    pub fn build(self) -> Result<MemoryAdvisor<M>> {
        if self.options.max_rounds == 0 {
            return Err(Error::InvalidOption { option: "max_rounds", reason: "it has to be at least 1" });
        }
        Ok(MemoryAdvisor { memory: self.memory, options: self.options })
    }
}
