//! What belongs together: a call and its results. Pure.
//!
//! A **unit** is what a window shows or hides as a whole: an assistant message with tool calls and the tool messages
//! after it, up to the next user or assistant message; every other user or assistant message alone. A **turn** runs from
//! a user message to before the next one.

use super::{Content, Message, Role};

/// What becomes of calls that no result answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    /// They stay: the conversation may go on with their results.
    Keep,
    /// They are taken out, and with them a message of which nothing to show is left.
    TakeOut,
}

/// Which of a message's calls the tool messages behind it answer.
#[derive(Debug)]
pub(crate) struct Pairing {
    /// For each call of the head, by position: whether it is answered.
    pub(crate) answered: Vec<bool>,
    /// For each tool message, for each of its results, by position: the call that it answers.
    pub(crate) answers: Vec<Vec<Option<usize>>>,
}

impl Pairing {
    /// Each result answers the first call of its id that is not yet answered, or none.
    pub(crate) fn of(head: &Message, tools: &[Message]) -> Self {
        // Calls by id, each id's in the order of the message; `taken` counts at an id's first entry how many of them are
        // answered. So an id that a model used ten thousand times costs no more than ten thousand ids.
        let mut calls: Vec<(&str, usize)> =
            head.tool_calls().enumerate().map(|(position, call)| (call.id.as_str(), position)).collect();
        calls.sort_unstable();
        let mut taken = vec![0; calls.len()];
        let mut answered = vec![false; calls.len()];

        let mut answer = |call_id: &str| {
            let first = calls.partition_point(|(id, _)| *id < call_id);
            let count = taken.get_mut(first)?;
            let (id, position) = *calls.get(first + *count)?;
            if id != call_id {
                return None;
            }
            *count += 1;
            *answered.get_mut(position)? = true;
            Some(position)
        };
        let answers =
            tools.iter().map(|tool| tool.tool_results().map(|result| answer(&result.call_id)).collect()).collect();
        Self { answered, answers }
    }

    fn is_whole(&self) -> bool {
        self.answered.iter().all(|answered| *answered)
            && self.answers.iter().all(|results| !results.is_empty() && results.iter().all(Option::is_some))
    }
}

/// What is shown of a unit: its head, without unanswered calls if `open` says so, and its tool messages with only the
/// results that answer a call. Nothing where nothing is left of the head.
pub(crate) fn show_unit(head: &Message, tools: &[Message], open: Open) -> Vec<Message> {
    let pairing = Pairing::of(head, tools);
    if pairing.is_whole() {
        return std::iter::once(head).chain(tools).cloned().collect();
    }
    let head = match open {
        Open::Keep => Some(head.clone()),
        Open::TakeOut => without_open_calls(head, &pairing.answered),
    };
    let Some(head) = head else {
        return Vec::new();
    };
    let tools = tools.iter().zip(&pairing.answers).filter_map(|(tool, answers)| only_answers(tool, answers));
    std::iter::once(head).chain(tools).collect()
}

/// The head without its unanswered calls; `None` where neither a call nor text nor media is left.
pub(crate) fn without_open_calls(head: &Message, answered: &[bool]) -> Option<Message> {
    if answered.iter().all(|answered| *answered) {
        return Some(head.clone());
    }
    let mut answered = answered.iter();
    let content: Vec<Content> = head
        .content()
        .iter()
        .filter(|part| !matches!(part, Content::ToolCall(_)) || answered.next() == Some(&true))
        .cloned()
        .collect();
    let worth_showing = content.iter().any(|part| match part {
        Content::Text(text) => !is_blank(text),
        Content::Media(_) | Content::ToolCall(_) => true,
        _ => false,
    });
    worth_showing.then(|| head.replace_content(content))
}

/// The tool message without the results that answer no call; `None` where none is left.
pub(crate) fn only_answers(tool: &Message, answers: &[Option<usize>]) -> Option<Message> {
    if answers.iter().all(Option::is_none) {
        return None;
    }
    if answers.iter().all(Option::is_some) {
        return Some(tool.clone());
    }
    let mut answers = answers.iter();
    let content = tool
        .content()
        .iter()
        .filter(|part| !matches!(part, Content::ToolResult(_)) || matches!(answers.next(), Some(Some(_))))
        .cloned()
        .collect();
    Some(tool.replace_content(content))
}

/// An assistant message that says nothing and calls nothing: no parts, or only blank text. Providers refuse it.
pub(crate) fn says_nothing(message: &Message) -> bool {
    message.role() == Role::Assistant
        && message.content().iter().all(|part| matches!(part, Content::Text(text) if is_blank(text)))
}

/// Whether tool messages after this one can belong to it.
pub(crate) fn calls_tools(message: &Message) -> bool {
    message.role() == Role::Assistant && message.tool_calls().next().is_some()
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The same message with new ids for the calls at the positions that `id_at` names one for.
pub(crate) fn with_call_ids(head: &Message, mut id_at: impl FnMut(usize) -> Option<String>) -> Message {
    let mut content = head.content().to_vec();
    let calls = content.iter_mut().filter_map(|part| match part {
        Content::ToolCall(call) => Some(&mut call.id),
        _ => None,
    });
    calls.enumerate().for_each(|(position, id)| *id = id_at(position).unwrap_or_else(|| std::mem::take(id)));
    head.replace_content(content)
}

/// The same tool message with new ids of the calls that its results answer, for the positions that `id_at` names one for.
pub(crate) fn with_result_ids(tool: &Message, mut id_at: impl FnMut(usize) -> Option<String>) -> Message {
    let mut content = tool.content().to_vec();
    let results = content.iter_mut().filter_map(|part| match part {
        Content::ToolResult(result) => Some(&mut result.call_id),
        _ => None,
    });
    results.enumerate().for_each(|(position, id)| *id = id_at(position).unwrap_or_else(|| std::mem::take(id)));
    tool.replace_content(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Reasoning, ToolCall, ToolResult};

    fn calls(ids: &[&str]) -> Message {
        ids.iter().fold(Message::new(Role::Assistant, []), |message, id| message.with_tool_call(*id, "f", "{}"))
    }

    fn results(ids: &[&str]) -> Message {
        ids.iter()
            .fold(Message::new(Role::Tool, []), |message, id| message.with_content(ToolResult::new(*id).with_text("r")))
    }

    #[test]
    fn a_result_answers_the_first_open_call_of_its_id() {
        let pairing = Pairing::of(&calls(&["x", "y", "x"]), &[results(&["x", "z"]), results(&["x", "x", "y"])]);
        assert_eq!(pairing.answered, [true, true, true]);
        assert_eq!(pairing.answers, [vec![Some(0), None], vec![Some(2), None, Some(1)]]);
    }

    #[test]
    fn a_tool_message_is_shown_with_only_its_answers() {
        let shown = show_unit(&calls(&["x"]), &[results(&["x", "z"]), results(&["x"])], Open::Keep);
        assert_eq!(shown, [calls(&["x"]), results(&["x"])]);
    }

    #[test]
    fn reasoning_alone_does_not_keep_a_message_whose_calls_are_taken_out() {
        let head = calls(&["x"]).with_content(Reasoning::new("hm"));
        assert_eq!(show_unit(&head, &[], Open::TakeOut), []);
        assert_eq!(show_unit(&head, &[], Open::Keep), [head]);
        let blank = Message::assistant(" \n").with_tool_call("x", "f", "{}");
        assert_eq!(show_unit(&blank, &[], Open::TakeOut), []);
    }

    #[test]
    fn many_calls_of_one_id_are_paired_in_linear_time() {
        let ids = vec!["x"; 50_000];
        let pairing = Pairing::of(&calls_fast(&ids), &[results_fast(&ids)]);
        assert!(pairing.answered.iter().all(|answered| *answered));
        assert!(pairing.answers[0].iter().enumerate().all(|(position, call)| *call == Some(position)));
    }

    fn calls_fast(ids: &[&str]) -> Message {
        Message::new(Role::Assistant, ids.iter().map(|id| ToolCall::new(*id, "f", "{}").into()))
    }

    fn results_fast(ids: &[&str]) -> Message {
        Message::new(Role::Tool, ids.iter().map(|id| ToolResult::new(*id).into()))
    }
}
