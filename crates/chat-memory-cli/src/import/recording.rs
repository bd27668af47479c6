//! Recordings of requests and responses: which of them are one conversation.

use chat_memory::{Content, Message};
use serde_json::Value;

use super::draft::Draft;
use super::source::Bad;

/// A conversation that was read, or what was read of it before something was wrong.
pub(super) struct Piece<'a> {
    pub(super) draft: Draft<'a>,
    pub(super) read: Result<(), Bad>,
    /// In a recording: how many of the messages are the request's.
    pub(super) request: Option<usize>,
}

/// Leaves out each recording whose messages are all in the next one: a program that calls tools sends all that was said before
/// with each request.
pub(super) fn join<'a>(pieces: Vec<Result<Piece<'a>, Bad>>) -> Vec<Result<Piece<'a>, Bad>> {
    let mut joined: Vec<Result<Piece<'a>, Bad>> = Vec::new();
    for mut piece in pieces {
        if let (Some(Ok(before)), Ok(piece)) = (joined.last(), &mut piece)
            && before.read.is_ok()
            && goes_on(before, piece)
        {
            let before = joined.pop();
            piece.draft.notes =
                before.into_iter().flatten().map(|before| before.draft.notes).next().unwrap_or_default();
            piece.draft.notes.add("an earlier request of the same conversation is part of this one", 0);
        }
        joined.push(piece);
    }
    joined
}

fn goes_on(before: &Piece<'_>, next: &Piece<'_>) -> bool {
    let (Some(request), Some(next_request)) = (before.request, next.request) else {
        return false;
    };
    let said = before.draft.messages.get(..request).unwrap_or_default();
    let answer = before.draft.messages.get(request..).unwrap_or_default();
    let next = next.draft.messages.get(..next_request).unwrap_or_default();
    let rest = next.get(request..).unwrap_or_default();
    let are_the_same = |some: &[Message], others: &[Message]| {
        some.len() <= others.len() && some.iter().zip(others).all(|(one, other)| says_the_same(one, other))
    };
    !rest.is_empty() && are_the_same(said, next) && are_the_same(answer, rest)
}

/// Whether two messages say the same, whatever is known about them beside it.
fn says_the_same(one: &Message, other: &Message) -> bool {
    let is_same = |(one, other): (&Content, &Content)| match (one, other) {
        // The text of arguments may be laid out anew.
        (Content::ToolCall(one), Content::ToolCall(other)) => {
            let value = |text: &str| serde_json::from_str::<Value>(text).ok();
            let is_same_text = one.arguments == other.arguments;
            (&one.id, &one.name) == (&other.id, &other.name)
                && (is_same_text || value(&one.arguments).is_some_and(|one| Some(one) == value(&other.arguments)))
        }
        (one, other) => one == other,
    };
    one.role() == other.role()
        && one.content().len() == other.content().len()
        && one.content().iter().zip(other.content()).all(is_same)
}
