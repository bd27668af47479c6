//! How much of a transcript is stored already. Pure.

use crate::error::{Error, Result};
use crate::history::Entry;
use crate::message::Message;

/// The messages of a transcript that are not stored yet, or an error where it is not a continuation of what is.
pub(super) fn new_messages(stored: Vec<Entry>, transcript: &[Message]) -> Result<Vec<Message>> {
    let stored: Vec<Message> = stored.into_iter().map(|entry| entry.message).collect();
    let reason = "the transcript is not a continuation of the conversation that is stored";
    new_of(&stored, transcript).ok_or(Error::Conflict { reason })
}

/// The same; `None` where the two have nothing in common, and should have.
fn new_of(stored: &[Message], transcript: &[Message]) -> Option<Vec<Message>> {
    let known = new_from(&said(stored), &said(transcript))?;

    // System messages are not part of the overlap: a caller may change the one at the head at any time.
    let newest_system = stored.iter().rfind(|message| is_system(message));
    let last_system = transcript.iter().rposition(is_system);
    let mut count = 0;
    let is_new = |(at, message): &(usize, &Message)| {
        let is_in_new_part = count >= known;
        if is_system(message) {
            let may_be_new = is_in_new_part || Some(*at) == last_system;
            return may_be_new && !newest_system.is_some_and(|newest| says_the_same(newest, message));
        }
        count += 1;
        is_in_new_part
    };
    Some(transcript.iter().enumerate().filter(is_new).map(|(_, message)| message.clone()).collect())
}

/// Where the new part of a transcript begins; `None` where there is no overlap with what is stored.
///
/// Of all ways to lay the transcript over what is stored so that they agree wherever both have a message, the one that agrees
/// in most. Either may begin later than the other: a caller may have cut off the head of the transcript, and what is stored
/// may begin in the middle of it.
fn new_from(stored: &[&Message], transcript: &[&Message]) -> Option<usize> {
    if stored.is_empty() {
        return Some(0);
    }
    let agrees = |end: &usize| {
        let known = transcript.get(..*end).unwrap_or_default();
        known.iter().rev().zip(stored.iter().rev()).all(|(a, b)| says_the_same(a, b))
    };
    // The longer, the more they have in common, but not beyond all that is stored: of several that have all of it, the first.
    let most = transcript.len().min(stored.len());
    (most..=transcript.len()).find(agrees).or_else(|| (1..most).rev().find(agrees)).filter(|end| *end > 0)
}

fn said(messages: &[Message]) -> Vec<&Message> {
    messages.iter().filter(|message| !is_system(message)).collect()
}

fn is_system(message: &Message) -> bool {
    message.role().is_system()
}

fn says_the_same(a: &Message, b: &Message) -> bool {
    a.role() == b.role() && a.content() == b.content()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(stored: &str, transcript: &str) -> Option<usize> {
        let messages = |text: &str| text.chars().map(Message::user).collect::<Vec<_>>();
        let (stored, transcript) = (messages(stored), messages(transcript));
        new_from(&stored.iter().collect::<Vec<_>>(), &transcript.iter().collect::<Vec<_>>())
    }

    #[test]
    fn what_is_new_begins_behind_what_is_stored() {
        assert_eq!(find("", "abc"), Some(0));
        assert_eq!(find("abc", "abc"), Some(3));
        assert_eq!(find("abc", "abcde"), Some(3));
        // The head was cut off, and not all that is stored is known.
        assert_eq!(find("abcd", "cdef"), Some(2));
        assert_eq!(find("cd", "abcdef"), Some(4));
        assert_eq!(find("abcdef", "ef"), Some(2));
    }

    #[test]
    fn what_was_said_twice_is_laid_over_as_far_as_it_agrees() {
        assert_eq!(find("aab", "aabab"), Some(3));
        assert_eq!(find("aaa", "aaaa"), Some(3));
        assert_eq!(find("xaa", "aaa"), Some(2));
    }

    #[test]
    fn a_transcript_that_went_another_way_has_no_new_part() {
        assert_eq!(find("abc", "xyz"), None);
        assert_eq!(find("abc", "abxd"), None);
        assert_eq!(find("abc", "ab"), None);
        assert_eq!(find("abc", ""), None);
    }

    #[test]
    fn a_system_message_is_new_where_it_differs_from_the_newest() {
        let (s1, s2) = (Message::system("1"), Message::system("2"));
        let (u1, a1, u2) = (Message::user("u1"), Message::assistant("a1"), Message::user("u2"));
        let stored = [s1.clone(), u1.clone(), a1.clone()];
        let new = |transcript: &[&Message]| {
            let transcript: Vec<Message> = transcript.iter().map(|message| (*message).clone()).collect();
            new_of(&stored, &transcript).unwrap()
        };
        assert_eq!(new(&[&s1, &u1, &a1, &u2]), std::slice::from_ref(&u2));
        assert_eq!(new(&[&u1, &a1, &u2]), std::slice::from_ref(&u2));
        assert_eq!(new(&[&s2, &u1, &a1, &u2]), [s2.clone(), u2.clone()]);
        assert_eq!(new(&[&s1, &u1, &a1, &s2, &u2]), [s2.clone(), u2.clone()]);
        assert_eq!(new(&[&s1, &u1, &a1, &s1, &u2]), std::slice::from_ref(&u2));
        let all = [s1, u1, a1, s2, u2];
        assert_eq!(new_of(&[], &all).unwrap(), all);
        assert_eq!(new_of(&all, &all).unwrap(), []);
    }
}
