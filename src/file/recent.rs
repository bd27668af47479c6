//! The newest messages of a conversation in use, so that showing them again costs no reading and no decoding.

use std::collections::VecDeque;

use crate::message::{Message, Role};
use crate::window::Window;

/// How many bytes are kept of a conversation: those of the messages as stored, and what each takes in memory beside.
const MOST_BYTES: usize = 256 << 10;
const EACH: usize = 256;

/// The newest messages, without a gap to the last one.
///
/// It is kept beside what is known of the file, and goes with it: it is only as true as that.
#[derive(Clone, Default)]
pub(super) struct Recent {
    messages: VecDeque<Kept>,
    bytes: usize,
    /// Whether messages before these exist.
    is_cut: bool,
    /// The newest of the whole conversation.
    newest_system: Option<Message>,
    newest_user: Option<Message>,
}

#[derive(Clone)]
struct Kept {
    seq: u64,
    bytes: usize,
    message: Message,
}

impl Recent {
    /// For messages that come newest first, of a conversation whose newest system and user messages are known.
    pub(super) fn of_cut(newest_system: Option<Message>, newest_user: Option<Message>) -> Self {
        Self { is_cut: true, newest_system, newest_user, ..Self::default() }
    }

    /// Takes in the next older message; nothing more once it is full.
    pub(super) fn push_older(&mut self, seq: u64, bytes: usize, message: &Message) {
        let follows = self.messages.front().is_none_or(|newer| seq.checked_add(1) == Some(newer.seq));
        let bytes = bytes + EACH;
        if follows && self.bytes + bytes <= MOST_BYTES {
            self.bytes += bytes;
            self.messages.push_front(Kept { seq, bytes, message: message.clone() });
        }
    }

    /// There is no older message than those pushed.
    pub(super) fn end(mut self) -> Self {
        // Sequence numbers begin at 0; where the oldest kept is another, some were left out.
        self.is_cut = self.messages.front().is_none_or(|oldest| oldest.seq != 0);
        self
    }

    /// Takes in new messages, of `bytes` together, and lets the oldest go where they are too many.
    pub(super) fn append(&mut self, first_seq: u64, bytes: usize, messages: &[Message]) {
        let each = bytes / messages.len().max(1) + EACH;
        for (seq, message) in (first_seq..).zip(messages) {
            match message.role() {
                Role::System | Role::Developer => self.newest_system = Some(message.clone()),
                Role::User => self.newest_user = Some(message.clone()),
                _ => {}
            }
            self.bytes += each;
            self.messages.push_back(Kept { seq, bytes: each, message: message.clone() });
        }
        while self.bytes > MOST_BYTES
            && let Some(oldest) = self.messages.pop_front()
        {
            self.bytes -= oldest.bytes;
            self.is_cut = true;
        }
    }

    /// What a window shows, if that does not reach beyond what is kept.
    pub(super) fn view(&self, window: &Window) -> Option<Vec<Message>> {
        let mut selection = window.select(self.newest_system.clone(), self.newest_user.clone());
        for Kept { seq, message, .. } in self.messages.iter().rev() {
            if selection.push(*seq, message.clone()).is_break() {
                return Some(selection.finish());
            }
        }
        (!self.is_cut).then(|| selection.finish())
    }

    /// All messages, if all are kept.
    pub(super) fn everything(&self) -> Option<Vec<Message>> {
        (!self.is_cut).then(|| self.messages.iter().map(|kept| kept.message.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(messages: Option<Vec<Message>>) -> Option<Vec<String>> {
        Some(messages?.iter().map(|message| message.text().into_owned()).collect())
    }

    #[test]
    fn it_answers_only_what_it_reaches() {
        let mut recent = Recent::of_cut(Some(Message::system("s")), Some(Message::user("8")));
        for seq in (4..9).rev() {
            recent.push_older(seq, 10, &Message::user(seq.to_string()));
        }
        recent.push_older(2, 10, &Message::user("not the next older one"));
        assert_eq!(recent.everything(), None);
        assert_eq!(texts(recent.view(&Window::messages(3))), Some(vec!["s".into(), "7".into(), "8".into()]));
        assert_eq!(texts(recent.view(&Window::messages(20))), None);
        recent.append(9, 10, &[Message::user("9")]);
        assert_eq!(texts(recent.view(&Window::messages(2))), Some(vec!["s".into(), "9".into()]));
    }

    #[test]
    fn it_lets_the_oldest_go_and_stays_within_its_bytes() {
        let mut recent = Recent::default();
        recent.append(0, 100, &[Message::system("s"), Message::user("0")]);
        assert_eq!(recent.everything().map(|all| all.len()), Some(2));
        for seq in 2..2_000 {
            recent.append(seq, 1_000, &[Message::user(seq.to_string())]);
            assert!(recent.bytes <= MOST_BYTES);
        }
        assert_eq!(recent.everything(), None);
        assert_eq!(texts(recent.view(&Window::messages(2))), Some(vec!["s".into(), "1999".into()]));
        recent.append(2_000, MOST_BYTES + 1, &[Message::user("too large to keep")]);
        assert!(recent.messages.is_empty() && recent.bytes == 0);
    }
}
