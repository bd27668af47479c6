//! What a turn is made of, what comes next in it, and what of it is remembered. Pure: who asks the model, answers its calls and
//! keeps the messages is another matter.

use std::collections::VecDeque;

use super::model::{ModelRequest, Outcome, Reply};
use super::options::{Interrupted, OnFailure, Policy, Remember};
use crate::context::{Context, ToolOutput};
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
    policy: Policy,
    context: Vec<Context>,
    /// What was recalled.
    view: Vec<Message>,
    /// What was said since, from the question on.
    said: Vec<Message>,
    /// How much of that is remembered already.
    remembered: usize,
    /// How often the model was asked.
    pub(super) rounds: usize,
    stage: Stage,
    answer: Option<Message>,
    open_calls: Vec<ToolCall>,
    is_interrupted: bool,
}

#[derive(Debug)]
enum Stage {
    /// The model is asked next.
    Asking,
    /// These calls are to be answered.
    Answering(VecDeque<ToolCall>),
    /// The model may not be asked any more.
    Exhausted,
    Over,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Next {
    /// Ask the model; then [`Turn::replied`] or [`Turn::failed`].
    Ask(ModelRequest),
    /// Answer a call, if somebody knows the tool; then [`Turn::answered`].
    Answer(ToolCall),
    /// Remember [`Turn::to_remember`]; then [`Turn::remembered`].
    Remember,
    /// The model was asked as often as it may be.
    TooManyRounds,
    End,
}

impl Turn {
    /// Begins with what was recalled and what the caller says now. What the newest turn holds already is not said again.
    pub(super) fn new(policy: Policy, context: Vec<Context>, view: Vec<Message>, input: Vec<Message>) -> Self {
        let newest = view.iter().rposition(|message| message.role() == Role::User).unwrap_or_default();
        let newest = view.get(newest..).unwrap_or_default();
        let answer = newest.last().filter(|last| is_answer(last) && last.tool_calls().next().is_none());
        let is_new = |message: &Message| !newest.iter().any(|known| is_the_same(known, message, answer.is_some()));
        let is_retry = !input.is_empty() && !input.iter().any(is_new);
        let answer = answer.filter(|_| is_retry).cloned();
        let said = input.iter().filter(|message| is_new(message)).cloned().collect();
        Self {
            policy,
            context,
            said,
            remembered: 0,
            rounds: 0,
            // What was answered before is not asked again.
            stage: if answer.is_some() { Stage::Over } else { Stage::Asking },
            answer,
            open_calls: Vec::new(),
            is_interrupted: false,
            view,
        }
    }

    pub(super) fn next(&mut self) -> Next {
        if self.is_due() {
            return Next::Remember;
        }
        match &mut self.stage {
            Stage::Answering(calls) => {
                if let Some(call) = calls.pop_front() {
                    return Next::Answer(call);
                }
                self.stage = match self.open_calls.is_empty() {
                    true if self.rounds == self.policy.max_rounds => Stage::Exhausted,
                    true => Stage::Asking,
                    false => Stage::Over,
                };
                self.next()
            }
            Stage::Asking => {
                self.rounds += 1;
                Next::Ask(self.request())
            }
            Stage::Exhausted => Next::TooManyRounds,
            Stage::Over => Next::End,
        }
    }

    /// Whether something is to be remembered before anything else is done.
    fn is_due(&self) -> bool {
        let is_time = match self.policy.remember {
            Remember::Turn => matches!(self.stage, Stage::Over | Stage::Exhausted),
            Remember::Step => self.rounds > 0,
        };
        is_time && !self.to_remember().is_empty()
    }

    /// What to send to the model now.
    fn request(&self) -> ModelRequest {
        let conversation = [&self.view[..], &self.said].concat();
        let mut conversation = model_ready(&conversation, self.policy.open_calls).into_iter().peekable();

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
        self.answer = messages.iter().rfind(|message| is_answer(message)).cloned();
        self.is_interrupted = is_interrupted;
        if is_interrupted {
            if self.policy.interrupted == Interrupted::Forget || messages.is_empty() {
                return self.failed();
            }
            // Calls that are cut off are not run.
            self.stage = Stage::Over;
            let last = messages.pop().map(|last| last.with_metadata(INTERRUPTED, true));
            messages.extend(last);
            // Marked, as it is remembered.
            self.answer = messages.iter().rfind(|message| is_answer(message)).cloned();
        } else {
            self.open_calls = open_calls(&messages);
            self.stage = match self.open_calls.is_empty() {
                true => Stage::Over,
                false => Stage::Answering(self.open_calls.iter().cloned().collect()),
            };
        }
        self.said.extend(messages);
    }

    /// The model failed, or said nothing that is to be remembered: the question is kept or not.
    pub(super) fn failed(&mut self) {
        self.stage = Stage::Over;
        match self.policy.on_failure {
            OnFailure::Forget => self.said.truncate(self.remembered),
            OnFailure::Keep => {
                let new = self.said.iter_mut().skip(self.remembered);
                for message in new.filter(|message| message.role() == Role::User) {
                    *message = message.clone().with_metadata(UNANSWERED, true);
                }
            }
        }
    }

    /// Takes the answer to a call, or that nobody knows the tool.
    pub(super) fn answered(&mut self, call: &ToolCall, output: Option<ToolOutput>) {
        if let Some(output) = output {
            self.open_calls.retain(|open| open.id != call.id);
            self.said.push(output.into_message(call));
        }
    }

    /// A call could not be answered: it stays open, and the turn ends.
    pub(super) fn give_up(&mut self) {
        self.stage = Stage::Over;
    }

    pub(super) fn to_remember(&self) -> &[Message] {
        self.said.get(self.remembered..).unwrap_or_default()
    }

    pub(super) fn remembered(&mut self) {
        self.remembered = self.said.len();
    }

    pub(super) fn into_outcome(self) -> Outcome {
        let Self { said: messages, answer, open_calls, is_interrupted, .. } = self;
        Outcome { messages, answer, open_calls, is_interrupted }
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
fn is_the_same(known: &Message, message: &Message, is_answered: bool) -> bool {
    match (known.id(), message.id()) {
        (Some(known), Some(id)) => known == id,
        _ => {
            let is_waiting = !is_answered && known.metadata().get(UNANSWERED).is_some();
            is_waiting && known.role() == message.role() && known.content() == message.content()
        }
    }
}
