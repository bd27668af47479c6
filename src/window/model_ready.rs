//! Making a list of messages fit to send.

use std::collections::{HashMap, HashSet};

use crate::message::turns::{
    Pairing, calls_tools, only_answers, says_nothing, with_call_ids, with_result_ids, without_open_calls,
};
use crate::message::{Content, Message, Role, ToolResult};

/// What a tool call that was never answered becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenCalls {
    /// It is answered by a failed result that says `interrupted`, so that the model knows what happened.
    #[default]
    Interrupt,
    /// It is taken out, and its message too if neither text nor media is left of it.
    Drop,
}

/// The text of the result that stands for a missing one.
const INTERRUPTED: &str = "interrupted: the tool call has no recorded result";

/// The same messages, fit to send to a model.
///
/// A view recalled from a memory is fit to send but for two things that only the newest turn can have: a call whose tool was
/// still running when the process ended, and, before the new user message is appended, no user message at all. So append
/// the new user message to the view, and send what this returns. It takes any other list too, such as a whole conversation
/// recalled without a window:
///
/// - Every tool call is followed by exactly one result: results that answer no call go, calls without an answer become
///   what `open_calls` says. A missing result stands behind the results that are there.
/// - A system message between a call and its results moves before the call.
/// - An assistant message that says nothing and calls nothing goes.
/// - Everything but system messages before the first user message goes.
/// - A call id that was used before is made unique, in call and result alike.
///
/// Nothing stored changes, and running it twice changes nothing more.
///
/// ```
/// use chat_memory::{Message, OpenCalls, model_ready};
///
/// let call = Message::assistant("").with_tool_call("c1", "build", "{}");
/// let recalled = [Message::user("Build it."), call, Message::user("What happened?")];
/// let sent = model_ready(&recalled, OpenCalls::Interrupt);
/// assert_eq!(sent.len(), 4);
/// assert!(sent[2].tool_results().all(|result| result.call_id == "c1" && result.is_error));
/// assert_eq!(model_ready(&recalled, OpenCalls::Drop).len(), 2);
/// ```
pub fn model_ready(messages: &[Message], open_calls: OpenCalls) -> Vec<Message> {
    let mut ready = Ready {
        open_calls,
        sent: Vec::with_capacity(messages.len()),
        ids: UniqueIds::default(),
        started: !messages.iter().any(|message| message.role() == Role::User),
    };
    let mut rest = messages;
    while let Some((message, behind)) = rest.split_first() {
        rest = behind;
        match message.role() {
            Role::System | Role::Developer => ready.sent.push(message.clone()),
            // A tool message that belongs to a unit is taken with its head.
            Role::Tool => {}
            Role::Assistant if says_nothing(message) => {}
            Role::Assistant if calls_tools(message) => {
                let end = behind.iter().position(ends_unit).unwrap_or(behind.len());
                let (unit, behind) = behind.split_at(end);
                ready.send_unit(message, unit);
                rest = behind;
            }
            Role::Assistant | Role::User => {
                ready.started |= message.role() == Role::User;
                if ready.started {
                    ready.sent.push(message.clone());
                }
            }
        }
    }
    ready.sent
}

fn ends_unit(message: &Message) -> bool {
    match message.role() {
        Role::User => true,
        Role::Assistant => !says_nothing(message),
        _ => false,
    }
}

struct Ready {
    open_calls: OpenCalls,
    sent: Vec<Message>,
    ids: UniqueIds,
    /// Whether the first user message was sent, or there is none to wait for.
    started: bool,
}

impl Ready {
    /// Sends a message with calls, and of what follows it the tool messages that answer them, and the system messages.
    fn send_unit(&mut self, head: &Message, behind: &[Message]) {
        let tools: Vec<Message> = behind.iter().filter(|message| message.role() == Role::Tool).cloned().collect();
        let pairing = Pairing::of(head, &tools);
        let mut tools = tools.iter().zip(&pairing.answers);

        // What is sent of the unit, and the system messages, apart: those before the last answer stand inside.
        let (mut inside, mut after) = (Vec::new(), Vec::new());
        let mut results = Vec::new();
        for message in behind {
            if message.role().is_system() {
                after.push(message.clone());
            } else if message.role() == Role::Tool
                && let Some((tool, answers)) = tools.next()
                && let Some(shown) = only_answers(tool, answers)
            {
                inside.append(&mut after);
                results.push((shown, answers.iter().flatten().copied().collect::<Vec<_>>()));
            }
        }

        let head_shown = match self.open_calls {
            OpenCalls::Interrupt => Some(head.clone()),
            OpenCalls::Drop => without_open_calls(head, &pairing.answered),
        };
        self.sent.append(&mut inside);
        if let Some(shown) = head_shown
            && self.started
        {
            self.send_calls(head, shown, &pairing.answered, results);
        }
        self.sent.append(&mut after);
    }

    fn send_calls(&mut self, head: &Message, shown: Message, answered: &[bool], results: Vec<(Message, Vec<usize>)>) {
        let kept = |position: usize| {
            self.open_calls == OpenCalls::Interrupt || answered.get(position).copied().unwrap_or_default()
        };
        // By position in the original head: the id that is sent, where it differs.
        let new_ids: Vec<Option<String>> = head
            .tool_calls()
            .enumerate()
            .map(|(position, call)| if kept(position) { self.ids.assign(&call.id) } else { None })
            .collect();
        let new_id = |position: usize| new_ids.get(position).cloned().flatten();

        if new_ids.iter().all(Option::is_none) {
            self.sent.push(shown);
            self.sent.extend(results.into_iter().map(|(tool, _)| tool));
        } else {
            let kept: Vec<usize> = (0..new_ids.len()).filter(|position| kept(*position)).collect();
            self.sent.push(with_call_ids(&shown, |position| kept.get(position).and_then(|call| new_id(*call))));
            self.sent.extend(results.into_iter().map(|(tool, calls)| {
                with_result_ids(&tool, |position| calls.get(position).and_then(|call| new_id(*call)))
            }));
        }
        if self.open_calls == OpenCalls::Interrupt {
            for (position, call) in head.tool_calls().enumerate() {
                if answered.get(position) == Some(&false) {
                    let id = new_id(position).unwrap_or_else(|| call.id.clone());
                    let result = ToolResult::new(id).with_name(&call.name).with_text(INTERRUPTED).with_error();
                    self.sent.push(Message::new(Role::Tool, [Content::ToolResult(result)]));
                }
            }
        }
    }
}

/// The call ids sent so far.
#[derive(Default)]
struct UniqueIds {
    sent: HashSet<String>,
    /// For each beginning of an id that was given a number: the number to try next.
    next: HashMap<String, usize>,
}

impl UniqueIds {
    /// Registers an id to send; where it was sent before, the one to send in its place.
    fn assign(&mut self, id: &str) -> Option<String> {
        if self.sent.insert(id.to_owned()) {
            return None;
        }
        let next = self.next.entry(numbered_beginning(id)).or_insert(2);
        loop {
            let new = format!("{}_{next}", numbered_beginning(id));
            *next += 1;
            if self.sent.insert(new.clone()) {
                return Some(new);
            }
        }
    }
}

/// What stands before the number in an id that is made unique. All ids that lead to the same beginning share its numbers. With
/// a number of up to six digits it is no longer than OpenAI's limit of 40 characters, where the id itself is not.
fn numbered_beginning(id: &str) -> String {
    const LONGEST: usize = 40;
    const NUMBER: usize = "_999999".len();
    let len = id.chars().count();
    let room = if len <= LONGEST { len.min(LONGEST - NUMBER) } else { len };
    id.chars().take(room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Message {
        Message::new(Role::Assistant, []).with_tool_call(id, "f", "{}")
    }

    fn result(id: &str) -> Message {
        Message::tool_result(id, "f", "r")
    }

    fn ids(messages: &[Message]) -> Vec<String> {
        let id = |message: &Message| {
            let calls = message.tool_calls().map(|call| call.id.clone());
            calls.chain(message.tool_results().map(|result| result.call_id.clone())).collect::<Vec<_>>().join("+")
        };
        messages.iter().map(id).collect()
    }

    #[test]
    fn ids_that_come_twice_are_made_unique_in_call_and_result() {
        let twice = Message::new(Role::Assistant, []).with_tool_call("x", "f", "{}").with_tool_call("x", "f", "{}");
        let list =
            [Message::user("u"), call("x"), result("x"), call("x_2"), result("x_2"), twice, result("x"), call("x")];
        let sent = model_ready(&list, OpenCalls::Interrupt);
        assert_eq!(ids(&sent), ["", "x", "x", "x_2", "x_2", "x_3+x_4", "x_3", "x_4", "x_5", "x_5"]);
        assert_eq!(model_ready(&sent, OpenCalls::Interrupt), sent);
        let sent = model_ready(&list, OpenCalls::Drop);
        assert_eq!(ids(&sent), ["", "x", "x", "x_2", "x_2", "x_3", "x_3"]);
        assert_eq!(model_ready(&sent, OpenCalls::Drop), sent);
    }

    #[test]
    fn a_new_id_is_no_longer_than_providers_take() {
        let id = "c".repeat(39);
        let sent = model_ready(&[Message::user("u"), call(&id), result(&id), call(&id), result(&id)], OpenCalls::Drop);
        let new: Vec<_> = sent.iter().skip(3).flat_map(|message| ids(std::slice::from_ref(message))).collect();
        assert_eq!(new, [format!("{}_2", "c".repeat(33)), format!("{}_2", "c".repeat(33))]);
    }

    #[test]
    fn many_long_ids_with_one_beginning_take_no_longer_than_others() {
        // Trying numbers from 2 on for each of them would take ten thousand times as long.
        let ids: Vec<String> = (0..20_000).map(|number| format!("{}{number:07}", "c".repeat(33))).collect();
        let twice = ids.iter().chain(&ids).flat_map(|id| [call(id), result(id)]);
        let list: Vec<Message> = std::iter::once(Message::user("u")).chain(twice).collect();
        let sent = model_ready(&list, OpenCalls::Drop);
        let unique: HashSet<&str> = sent.iter().flat_map(Message::tool_calls).map(|call| call.id.as_str()).collect();
        assert_eq!(unique.len(), 40_000);
    }

    #[test]
    fn a_list_without_a_user_message_keeps_its_messages() {
        let list = [Message::system("s"), Message::assistant("a"), Message::assistant(""), result("x")];
        assert_eq!(model_ready(&list, OpenCalls::Drop), &list[..2]);
    }
}
