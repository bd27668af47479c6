//! Which messages of a conversation a model is shown.
//!
//! Pure selection: it names no store, and every store uses the same. A [`Window`] is the policy. [`Window::view`] applies
//! it to a list; [`Selection`] does the same for a store that reads its messages from the newest backwards and wants to
//! stop as soon as the view is complete. [`model_ready`] makes any list fit to send.

mod messages;
mod model_ready;
mod tokens;

use std::fmt;
use std::sync::Arc;

pub use messages::Selection;
pub use model_ready::{OpenCalls, model_ready};
pub use tokens::{TokenCounter, TokenEstimate};

use crate::error::{Error, Result};
use crate::message::{Message, Role};

/// How much of a conversation a model is shown: a number of messages, or of tokens.
///
/// # The rules
///
/// The stored conversation never changes because of a window. The view that it picks is one that model providers accept:
///
/// - The newest system message (a developer message counts as one) comes first, and counts. Older ones are not shown.
/// - An assistant message with tool calls and the tool messages after it, up to the next user or assistant message, are
///   one unit, shown whole or not at all. Every other user or assistant message is a unit of its own. System messages
///   never split a unit.
/// - Each result answers the first call of its id in the unit that has no answer yet. A result that answers none is not
///   shown. In every unit but the last, calls without an answer are taken out, and the message too if no text or media
///   is left of it. The last unit keeps its open calls. An assistant message that says nothing and calls nothing is not
///   shown.
/// - From the newest unit back, whole units are taken as long as they fit. Then the view moves forward to start at a user
///   message, where the conversation has one.
/// - Where the newest turn alone (a user message and all that follows) does not fit, the view is the system message, that
///   user message, and the newest units of the turn that fit.
/// - The system message, the newest turn's user message and the newest unit are always shown, even where that is more
///   than the limit: a view is never unusable. Otherwise the limit is a hard upper bound.
///
/// What is not shown does not count.
///
/// ```
/// use chat_memory::{Message, Window};
///
/// let conversation = [
///     Message::user("What is the weather in Oslo?"),
///     Message::assistant("").with_tool_call("c1", "weather", r#"{"city":"Oslo"}"#),
///     Message::tool_result("c1", "weather", "-4 °C"),
///     Message::assistant("Minus four."),
///     Message::user("And in Bergen?"),
/// ];
/// // Four would cut the call from its result, and three would begin with an answer.
/// assert_eq!(Window::messages(4).view(&conversation), &conversation[4..]);
/// assert_eq!(Window::messages(5).view(&conversation), conversation);
/// ```
#[derive(Clone)]
pub struct Window {
    limit: Limit,
    step: u64,
}

#[derive(Clone)]
enum Limit {
    Messages(usize),
    Tokens { budget: usize, counter: Arc<dyn TokenCounter> },
}

const STEP_OF_ZERO: Error = Error::InvalidOption { option: "window_step", reason: "it is 0; the smallest step is 1" };

impl Window {
    /// At most `count` messages. Zero is refused by [`check`](Self::check), and so by every store.
    pub fn messages(count: usize) -> Self {
        Self { limit: Limit::Messages(count), step: 1 }
    }

    /// At most `budget` tokens, as `counter` counts them: a [`TokenEstimate`], or your model's tokenizer behind a
    /// closure. Zero is refused by [`check`](Self::check), and so by every store.
    ///
    /// The counter is called while the conversation is being read, so it must not call the memory itself.
    pub fn tokens(budget: usize, counter: impl TokenCounter + 'static) -> Self {
        Self { limit: Limit::Tokens { budget, counter: Arc::new(counter) }, step: 1 }
    }

    /// Moves the start of the view in steps of `step` messages instead of one. Default: 1.
    ///
    /// Where older units are left out, the view starts at the first user message (inside a turn that does not fit: unit) at
    /// or after the next multiple of `step`, by sequence number, but never past the newest turn (unit). So the head of the
    /// view, and with it the provider's prompt cache, stays the same for several calls, at the price of up to `step`
    /// messages less.
    #[must_use]
    pub fn with_step(mut self, step: usize) -> Self {
        self.step = step as u64;
        self
    }

    /// The view of a whole list, oldest message first; sequence numbers are positions in the list.
    pub fn view(&self, conversation: &[Message]) -> Vec<Message> {
        let newest = |wanted: fn(Role) -> bool| conversation.iter().rfind(|message| wanted(message.role())).cloned();
        let selection = self.select(newest(Role::is_system), newest(|role| role == Role::User));
        let newest_first = conversation.iter().enumerate().rev();
        selection.finish_with(newest_first.map(|(position, message)| (position as u64, message.clone())))
    }

    /// Begins a view for messages that come newest first. `newest_system` is the newest system or developer message of the
    /// whole conversation, `newest_user` its newest user message.
    pub fn select(&self, newest_system: Option<Message>, newest_user: Option<Message>) -> Selection<'_> {
        Selection::new(self, newest_system, newest_user)
    }

    /// Checks the options.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for a limit or a step of 0.
    pub fn check(&self) -> Result<()> {
        let (option, value) = match self.limit {
            Limit::Messages(count) => ("max_messages", count),
            Limit::Tokens { budget, .. } => ("window", budget),
        };
        if value == 0 {
            return Err(Error::InvalidOption { option, reason: "it is 0; leave it out to get everything" });
        }
        if self.step == 0 {
            return Err(STEP_OF_ZERO);
        }
        Ok(())
    }

    /// The window of a store's options: what `window` and `window_step` were given, checked.
    pub(crate) fn from_options(window: Option<Self>, step: Option<usize>) -> Result<Option<Self>> {
        if step == Some(0) {
            return Err(STEP_OF_ZERO);
        }
        let window = match (window, step) {
            (Some(window), Some(step)) => Some(window.with_step(step)),
            (window, _) => window,
        };
        window.map(|window| window.check().map(|()| window)).transpose()
    }

    fn limit(&self) -> usize {
        match self.limit {
            Limit::Messages(count) => count,
            Limit::Tokens { budget, .. } => budget,
        }
    }

    fn cost(&self, message: &Message) -> usize {
        match &self.limit {
            Limit::Messages(_) => 1,
            Limit::Tokens { counter, .. } => counter.count(message),
        }
    }
}

/// Shows the limit and the step.
impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.limit {
            Limit::Messages(_) => "messages",
            Limit::Tokens { .. } => "tokens",
        };
        f.debug_struct("Window").field(unit, &self.limit()).field("step", &self.step).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_names_the_unit_and_the_step() {
        assert_eq!(format!("{:?}", Window::messages(20)), "Window { messages: 20, step: 1 }");
        let window = Window::tokens(4_000, crate::TokenEstimate).with_step(3);
        assert_eq!(format!("{window:?}"), "Window { tokens: 4000, step: 3 }");
    }
}
