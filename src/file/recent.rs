//! The newest messages of a conversation in use, so that showing them again costs no reading and no decoding.

use std::collections::VecDeque;

use crate::message::{Message, Role};
use crate::window::Window;

/// How many bytes of memory the messages of a conversation may take here, about; as much again for each of the newest system
/// and the newest user message, which may be older than those.
const MOST_BYTES: usize = 256 << 10;

/// The newest messages, without a gap to the last one.
///
/// It is kept beside what is known of the file, and goes with it: it is only as true as that.
#[derive(Clone, Default)]
pub(super) struct Recent {
    /// With their sequence numbers and sizes, oldest first.
    messages: VecDeque<(u64, usize, Message)>,
    bytes: usize,
    /// Whether messages before these exist.
    is_cut: bool,
    /// The newest of the whole conversation.
    newest_system: Option<Message>,
    newest_user: Option<Message>,
}

/// Messages that come newest first, as many as may be kept.
#[derive(Default)]
pub(super) struct Newest {
    messages: VecDeque<(u64, usize, Message)>,
    bytes: usize,
    /// Whether one was left out: then those before it are too.
    is_full: bool,
}

impl Newest {
    /// Takes in the next older message.
    pub(super) fn push(&mut self, seq: u64, message: &Message) {
        let has_gap = self.messages.front().is_some_and(|(newer, _, _)| seq.checked_add(1) != Some(*newer));
        let bytes = message.footprint();
        self.is_full |= has_gap || self.bytes + bytes > MOST_BYTES;
        if !self.is_full {
            self.bytes += bytes;
            self.messages.push_front((seq, bytes, message.clone()));
        }
    }
}

impl Recent {
    /// Of the newest messages, and of the newest system and user messages of the whole conversation. `is_whole` says that there
    /// are no older ones than those pushed. `None` where it would be too large.
    pub(super) fn new(
        newest: Newest,
        is_whole: bool,
        newest_system: Option<Message>,
        newest_user: Option<Message>,
    ) -> Option<Self> {
        let Newest { messages, bytes, is_full } = newest;
        Self { messages, bytes, is_cut: is_full || !is_whole, newest_system, newest_user }.within_bounds()
    }

    /// The same with new messages at the end, and without the oldest where they are too many. `None` where it would be too
    /// large.
    pub(super) fn append(mut self, first_seq: u64, messages: Vec<Message>) -> Option<Self> {
        for (position, message) in (0..).zip(messages) {
            let seq = first_seq.saturating_add(position);
            match message.role() {
                Role::System | Role::Developer => self.newest_system = Some(message.clone()),
                Role::User => self.newest_user = Some(message.clone()),
                _ => {}
            }
            let bytes = message.footprint();
            self.bytes += bytes;
            self.messages.push_back((seq, bytes, message));
        }
        while self.bytes > MOST_BYTES
            && let Some((_, bytes, _)) = self.messages.pop_front()
        {
            self.bytes -= bytes;
            self.is_cut = true;
        }
        self.within_bounds()
    }

    fn within_bounds(self) -> Option<Self> {
        let is_small = |message: &Option<Message>| message.as_ref().is_none_or(|m| m.footprint() <= MOST_BYTES);
        (is_small(&self.newest_system) && is_small(&self.newest_user)).then_some(self)
    }

    /// What a window shows, if that does not reach beyond what is kept.
    pub(super) fn view(&self, window: &Window) -> Option<Vec<Message>> {
        let mut selection = window.select(self.newest_system.clone(), self.newest_user.clone());
        for (seq, _, message) in self.messages.iter().rev() {
            if selection.push(*seq, message.clone()).is_break() {
                return Some(selection.finish());
            }
        }
        (!self.is_cut).then(|| selection.finish())
    }

    /// All messages, if all are kept.
    pub(super) fn everything(&self) -> Option<Vec<Message>> {
        (!self.is_cut).then(|| self.messages.iter().map(|(_, _, message)| message.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(messages: Option<Vec<Message>>) -> Option<Vec<String>> {
        Some(messages?.iter().map(|message| message.text().into_owned()).collect())
    }

    fn user(seq: u64) -> (u64, Message) {
        (seq, Message::user(seq.to_string()))
    }

    fn newest(messages: impl IntoIterator<Item = (u64, Message)>) -> Newest {
        let mut newest = Newest::default();
        messages.into_iter().for_each(|(seq, message)| newest.push(seq, &message));
        newest
    }

    fn large() -> Message {
        Message::assistant("x".repeat(MOST_BYTES))
    }

    #[test]
    fn it_answers_only_what_it_reaches() {
        let newest = newest((4..9).rev().map(user).chain([user(2), user(1)]));
        let recent = Recent::new(newest, true, Some(Message::system("s")), Some(Message::user("8"))).unwrap();
        // A number is missing, so what is before it is not kept.
        assert_eq!(recent.everything(), None);
        assert_eq!(texts(recent.view(&Window::messages(3))), Some(vec!["s".into(), "7".into(), "8".into()]));
        assert_eq!(texts(recent.view(&Window::messages(20))), None);
        let recent = recent.append(9, vec![Message::user("9")]).unwrap();
        assert_eq!(texts(recent.view(&Window::messages(2))), Some(vec!["s".into(), "9".into()]));
    }

    #[test]
    fn a_newest_message_that_is_too_large_hides_nothing() {
        let recent = Recent::new(newest([(1, large()), user(0)]), true, None, Some(Message::user("0"))).unwrap();
        assert!(recent.everything().is_none() && recent.view(&Window::messages(1)).is_none());
        let recent = recent.append(2, vec![Message::user("2")]).unwrap();
        assert_eq!(texts(recent.view(&Window::messages(1))), Some(vec!["2".into()]));
        assert_eq!(recent.view(&Window::messages(9)), None);
        // A question that is too large is not kept at all: it would stay for as long as it is the newest.
        let question = Message::user("x".repeat(MOST_BYTES));
        assert!(Recent::new(newest([user(1)]), true, None, Some(question.clone())).is_none());
        assert!(Recent::default().append(0, vec![question]).is_none());
    }

    #[test]
    fn numbers_that_run_out_stay_the_largest() {
        let recent = Recent::default().append(u64::MAX, vec![Message::user("a"), Message::user("b")]).unwrap();
        assert_eq!(texts(recent.everything()), Some(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn it_lets_the_oldest_go_and_stays_within_its_bytes() {
        let mut recent = Recent::default().append(0, vec![Message::system("s"), Message::user("0")]).unwrap();
        assert_eq!(recent.everything().map(|all| all.len()), Some(2));
        for seq in 2..500 {
            recent = recent.append(seq, vec![Message::user(format!("{seq} {}", "x".repeat(1_000)))]).unwrap();
            assert!(recent.bytes <= MOST_BYTES);
        }
        assert_eq!(recent.everything(), None);
        assert!(recent.view(&Window::messages(100)).is_some_and(|view| view.len() == 100));
        let recent = recent.append(500, vec![large()]).unwrap();
        assert!(recent.messages.is_empty() && recent.bytes == 0);
    }
}
