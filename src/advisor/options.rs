//! What can be chosen for an advisor.

use std::fmt;
use std::sync::Arc;

use super::{AsyncMemoryAdvisor, MemoryAdvisor};
use crate::async_memory::{AsyncContextProvider, BoxFuture};
use crate::context::{Context, ContextProvider, ToolOutput};
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

/// What is chosen for every turn.
#[derive(Debug, Clone)]
pub(super) struct Policy {
    pub(super) open_calls: OpenCalls,
    pub(super) on_failure: OnFailure,
    pub(super) interrupted: Interrupted,
    pub(super) remember: Remember,
    pub(super) max_rounds: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            open_calls: OpenCalls::default(),
            on_failure: OnFailure::default(),
            interrupted: Interrupted::default(),
            remember: Remember::default(),
            max_rounds: 32,
        }
    }
}

pub(super) struct Options<P: ?Sized> {
    pub(super) policy: Policy,
    pub(super) instructions: String,
    pub(super) clear_context: bool,
    pub(super) context: Vec<Arc<P>>,
}

impl<P: ?Sized> Default for Options<P> {
    fn default() -> Self {
        Self { policy: Policy::default(), instructions: String::new(), clear_context: false, context: Vec::new() }
    }
}

impl<P: ?Sized> Options<P> {
    /// What goes before everything that providers give.
    pub(super) fn fixed_context(&self) -> Context {
        Context { instructions: self.instructions.clone(), ..Context::default() }
    }
}

impl<P: ?Sized> Clone for Options<P> {
    fn clone(&self) -> Self {
        let Self { policy, instructions, clear_context, context } = self;
        Self {
            policy: policy.clone(),
            instructions: instructions.clone(),
            clear_context: *clear_context,
            context: context.clone(),
        }
    }
}

/// Without the instructions, which are content.
impl<P: ?Sized> fmt::Debug for Options<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("policy", &self.policy)
            .field("clear_context", &self.clear_context)
            .field("context", &self.context.len())
            .finish_non_exhaustive()
    }
}

/// Options of a [`MemoryAdvisor`], or an [`AsyncMemoryAdvisor`].
#[derive(Debug, Clone)]
#[must_use]
pub struct MemoryAdvisorBuilder<M, P: ?Sized = dyn ContextProvider> {
    memory: M,
    options: Options<P>,
}

impl<M> MemoryAdvisorBuilder<M> {
    /// Gives a model more than the conversation: instructions and messages go before what is recalled, and are never stored;
    /// calls of the provider's tools are answered. Several providers come in their order. The conversation's id is the session's.
    /// Default: none.
    pub fn context(mut self, provider: impl ContextProvider + 'static) -> Self {
        self.options.context.push(Arc::new(provider));
        self
    }

    /// Runs the caller's own tools: given the conversation id and a call, the answer, or `None` for a tool that is not known.
    /// Default: calls that no provider knows are handed back, as [`Outcome::open_calls`](super::Outcome::open_calls).
    pub fn tools(self, run: impl Fn(&str, &ToolCall) -> Option<ToolOutput> + Send + Sync + 'static) -> Self {
        self.context(Tools(run))
    }

    /// The advisor.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for 0 rounds.
    pub fn build(self) -> Result<MemoryAdvisor<M>> {
        let (memory, options) = self.checked()?;
        Ok(MemoryAdvisor { memory, options })
    }
}

impl<M> MemoryAdvisorBuilder<M, dyn AsyncContextProvider> {
    /// The same as for a [`MemoryAdvisor`]; `Offload` (feature `tokio`) makes one of a provider that blocks.
    pub fn context(mut self, provider: impl AsyncContextProvider + 'static) -> Self {
        self.options.context.push(Arc::new(provider));
        self
    }

    /// Runs the caller's own tools: given the conversation id and a call, a future of the answer, or `None` for a tool that is
    /// not known. Default: calls that no provider knows are handed back, as [`Outcome::open_calls`](super::Outcome::open_calls).
    pub fn tools<F>(self, run: impl Fn(&str, &ToolCall) -> Option<F> + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ToolOutput> + Send + 'static,
    {
        self.context(Tools(move |id: &str, call: &ToolCall| -> Option<BoxFuture<'static, ToolOutput>> {
            run(id, call).map(|answer| Box::pin(answer) as BoxFuture<'static, ToolOutput>)
        }))
    }

    /// The advisor.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for 0 rounds.
    pub fn build(self) -> Result<AsyncMemoryAdvisor<M>> {
        let (memory, options) = self.checked()?;
        Ok(AsyncMemoryAdvisor::with_options(memory, options))
    }
}

impl<M, P: ?Sized> MemoryAdvisorBuilder<M, P> {
    pub(super) fn new(memory: M) -> Self {
        Self { memory, options: Options::default() }
    }

    /// What the model is told at every call, as a system message that is not stored. Default: nothing.
    #[doc(alias = "defaultSystem")]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.options.instructions = instructions.into();
        self
    }

    /// What a tool call that was never answered becomes when it is sent again. Default: [`OpenCalls::Interrupt`].
    pub fn open_calls(mut self, open_calls: OpenCalls) -> Self {
        self.options.policy.open_calls = open_calls;
        self
    }

    /// What becomes of the question when the model fails. Default: [`OnFailure::Forget`].
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.options.policy.on_failure = on_failure;
        self
    }

    /// What becomes of an answer that was cut off. Default: [`Interrupted::Keep`].
    pub fn interrupted(mut self, interrupted: Interrupted) -> Self {
        self.options.policy.interrupted = interrupted;
        self
    }

    /// When what is said in a turn is remembered. Default: [`Remember::Turn`].
    pub fn remember(mut self, remember: Remember) -> Self {
        self.options.policy.remember = remember;
        self
    }

    /// How often the model is asked in one turn, at the most. Default: 32.
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.options.policy.max_rounds = rounds;
        self
    }

    /// Whether [`MemoryAdvisor::clear`] clears what the providers keep for the conversation too. Default: no.
    pub fn clear_context(mut self, clear: bool) -> Self {
        self.options.clear_context = clear;
        self
    }

    fn checked(self) -> Result<(M, Options<P>)> {
        if self.options.policy.max_rounds == 0 {
            return Err(Error::InvalidOption { option: "max_rounds", reason: "it has to be at least 1" });
        }
        Ok((self.memory, self.options))
    }
}

/// The caller's own tools, which give no context and keep nothing.
struct Tools<F>(F);

impl<F: Fn(&str, &ToolCall) -> Option<ToolOutput> + Send + Sync> ContextProvider for Tools<F> {
    fn context(&self, _: &str) -> Result<Context> {
        Ok(Context::default())
    }

    fn answer(&self, session_id: &str, call: &ToolCall) -> Result<Option<ToolOutput>> {
        Ok(self.0(session_id, call))
    }

    fn clear(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

impl<F> AsyncContextProvider for Tools<F>
where
    F: Fn(&str, &ToolCall) -> Option<BoxFuture<'static, ToolOutput>> + Send + Sync,
{
    fn context<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Context>> {
        Box::pin(std::future::ready(Ok(Context::default())))
    }

    fn answer<'a>(&'a self, session_id: &'a str, call: &'a ToolCall) -> BoxFuture<'a, Result<Option<ToolOutput>>> {
        let answer = self.0(session_id, call);
        Box::pin(async move {
            match answer {
                Some(answer) => Ok(Some(answer.await)),
                None => Ok(None),
            }
        })
    }

    fn clear<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
