//! What a turn is made of, and what of it is remembered. Pure: who asks the model and who keeps the messages is another matter.

use super::model::{ModelRequest, Outcome, Reply};
use super::options::Options;
use crate::context::Context;
use crate::message::turns::says_nothing;
use crate::message::{Message, Role, ToolCall};
use crate::window::model_ready;

/// The key of the metadata, with the value `true`, of a question that was kept though the model failed.
pub const UNANSWERED: &str = "chat_memory.unanswered";
/// The same of an answer that was cut off.
pub const INTERRUPTED: &str = "chat_memory.interrupted";

/// A turn under way.
#[derive(Debug)]
pub(super) struct Turn {
    context: Vec<Context>,
    /// What was recalled.
    view: Vec<Message>,
    /// What was said since, from the question on.
    said: Vec<Message>,
    /// How much of that is remembered already.
    remembered: usize,
    /// The calls of the last reply that nobody has answered yet.
    open_calls: Vec<ToolCall>,
    is_interrupted: bool,
    /// Whether the model answered this before: then there is nothing to ask.
    pub(super) is_answered: bool,
}

impl Turn {
    /// Begins with what was recalled and what the caller says now. What the newest turn holds already is not said again.
    pub(super) fn new(context: Vec<Context>, view: Vec<Message>, input: &[Message]) -> Self {
        let newest = view.iter().rposition(|message| message.role() == Role::User).unwrap_or_default();
        let newest = view.get(newest..).unwrap_or_default();
        let answered = newest.last().is_some_and(|last| is_answer(last) && last.tool_calls().next().is_none());
        let is_new = |message: &&Message| !newest.iter().any(|known| is_the_same(known, message, answered));
        let is_retry = !input.is_empty() && !input.iter().any(|message| is_new(&message));
        let said = input.iter().filter(is_new).cloned().collect();
        Self {
            context,
            view,
            said,
            remembered: 0,
            open_calls: Vec::new(),
            is_interrupted: false,
            is_answered: is_retry && answered,
        }
    }

    /// What to send to the model now.
    pub(super) fn request(&self, options: &Options) -> ModelRequest {
        let conversation = [&self.view[..], &self.said].concat();
        let mut conversation = model_ready(&conversation, options.open_calls).into_iter().peekable();

        // System messages stay in front, and the providers' messages come before what was said.
        let instructions = self.context.iter().map(|context| context.instructions.as_str());
        let mut messages: Vec<Message> =
            instructions.filter(|text| !text.trim().is_empty()).map(Message::system).collect();
        messages.extend(std::iter::from_fn(|| conversation.next_if(|message| message.role().is_system())));
        messages.extend(self.context.iter().flat_map(|context| context.messages.iter().cloned()));
        messages.extend(conversation);
        let tools = self.context.iter().flat_map(|context| context.tools.iter().cloned()).collect();
        ModelRequest { messages, tools }
    }

    /// Takes what the model said. What says nothing is left out.
    pub(super) fn replied(&mut self, reply: Reply) {
        let Reply { messages, is_interrupted } = reply;
        let mut messages: Vec<Message> = messages.into_iter().filter(|message| !says_nothing(message)).collect();
        if is_interrupted && let Some(last) = messages.pop() {
            messages.push(last.with_metadata(INTERRUPTED, true));
        }
        self.is_interrupted = is_interrupted;
        // Calls that are cut off are not run.
        self.open_calls = if is_interrupted { Vec::new() } else { open_calls(&messages) };
        self.said.extend(messages);
    }

    pub(super) fn open_calls(&self) -> &[ToolCall] {
        &self.open_calls
    }

    /// Takes the answer to an open call.
    pub(super) fn answered(&mut self, answer: Message) {
        self.open_calls.retain(|call| answer.tool_results().all(|result| result.call_id != call.id));
        self.said.push(answer);
    }

    /// What is to be remembered now; to be confirmed by [`remembered`](Self::remembered).
    pub(super) fn to_remember(&self) -> &[Message] {
        self.said.get(self.remembered..).unwrap_or_default()
    }

    pub(super) fn remembered(&mut self) {
        self.remembered = self.said.len();
    }

    /// Marks the question, where it is not remembered yet.
    pub(super) fn mark_unanswered(&mut self) {
        let new = self.said.iter_mut().skip(self.remembered);
        for message in new.filter(|message| message.role() == Role::User) {
            *message = message.clone().with_metadata(UNANSWERED, true);
        }
    }

    /// Ends with a reply that is not remembered.
    pub(super) fn cut_off(mut self, reply: Reply) -> Outcome {
        self.said.truncate(self.remembered);
        let answer = reply.messages.into_iter().rfind(is_answer);
        Outcome { messages: self.said, answer, open_calls: Vec::new(), is_interrupted: true }
    }

    pub(super) fn into_outcome(self) -> Outcome {
        let all = if self.is_answered { &self.view } else { &self.said };
        Outcome {
            answer: all.iter().rfind(|message| is_answer(message)).cloned(),
            open_calls: self.open_calls,
            is_interrupted: self.is_interrupted,
            messages: self.said,
        }
    }
}

/// The calls of the last assistant message that no message behind it answers.
fn open_calls(messages: &[Message]) -> Vec<ToolCall> {
    let last = messages.iter().rposition(is_answer).map_or(0, |last| last + 1);
    let (head, behind) = messages.split_at_checked(last).unwrap_or_default();
    let is_open =
        |call: &&ToolCall| behind.iter().flat_map(Message::tool_results).all(|result| result.call_id != call.id);
    head.last().into_iter().flat_map(Message::tool_calls).filter(is_open).cloned().collect()
}

fn is_answer(message: &Message) -> bool {
    message.role() == Role::Assistant
}

/// Whether a message is the one that is known: by its id; one without, if it was kept and waits for its answer.
fn is_the_same(known: &Message, message: &Message, answered: bool) -> bool {
    match (known.id(), message.id()) {
        (Some(known), Some(id)) => known == id,
        _ => {
            let is_waiting = !answered && known.metadata().get(UNANSWERED).is_some();
            is_waiting && known.role() == message.role() && known.content() == message.content()
        }
    }
}
