//! The selection: from the newest message back, until nothing more fits.

use std::ops::ControlFlow;

use super::{Limit, Window};
use crate::message::turns::{Open, calls_tools, says_nothing, show_unit};
use crate::message::{Message, Role};

/// A view in the making, for a store that reads its messages newest first.
///
/// ```
/// use chat_memory::{Message, Window};
///
/// let window = Window::messages(2);
/// let newest_first = [Message::user("three"), Message::assistant("two"), Message::user("one")];
/// let mut selection = window.select(None, Some(newest_first[0].clone()));
/// for (sequence_number, message) in [2, 1, 0].into_iter().zip(newest_first.clone()) {
///     if selection.push(sequence_number, message).is_break() {
///         break; // nothing older can be part of the view
///     }
/// }
/// assert_eq!(selection.finish(), [Message::user("three")]);
/// ```
#[derive(Debug)]
pub struct Selection<'w> {
    window: &'w Window,
    system: Option<Message>,
    /// The newest turn's user message; `None` where the conversation has none.
    user: Option<Message>,
    /// What is set or taken so far, in messages or tokens.
    used: usize,
    /// What is shown of the units taken, newest message first.
    shown: Vec<Message>,
    /// The units taken, newest first.
    units: Vec<Unit>,
    /// Tool messages whose head is not reached yet, newest first.
    tools: Vec<Message>,
    /// Whether the newest turn was taken whole.
    whole_turn: bool,
    /// Whether a unit did not fit.
    left_out: bool,
}

#[derive(Debug)]
struct Unit {
    /// The sequence number of its head.
    seq: u64,
    starts_turn: bool,
    /// How many messages of it are shown.
    len: usize,
}

impl<'w> Selection<'w> {
    pub(super) fn new(window: &'w Window, system: Option<Message>, user: Option<Message>) -> Self {
        // Both are always shown, so they count before anything else does.
        let used = system.iter().chain(&user).map(|message| window.cost(message)).fold(0, usize::saturating_add);
        Self {
            window,
            system,
            user,
            used,
            shown: Vec::new(),
            units: Vec::new(),
            tools: Vec::new(),
            whole_turn: false,
            left_out: false,
        }
    }

    /// Offers the next older message. [`ControlFlow::Break`] says that nothing older can be part of the view.
    pub fn push(&mut self, seq: u64, message: Message) -> ControlFlow<()> {
        match message.role() {
            Role::System | Role::Developer => return ControlFlow::Continue(()),
            Role::Tool => {
                // Without a result it is never shown.
                let has_result = message.tool_results().next().is_some();
                self.tools.extend(has_result.then_some(message));
                return ControlFlow::Continue(());
            }
            Role::Assistant if says_nothing(&message) => return ControlFlow::Continue(()),
            Role::Assistant | Role::User => {}
        }
        let mut tools = std::mem::take(&mut self.tools);
        let unit = if calls_tools(&message) {
            tools.reverse();
            let open = if self.units.is_empty() { Open::Keep } else { Open::TakeOut };
            show_unit(&message, &tools, open)
        } else {
            vec![message]
        };
        self.offer(seq, unit)
    }

    /// Takes a unit, oldest message first, if it fits.
    fn offer(&mut self, seq: u64, unit: Vec<Message>) -> ControlFlow<()> {
        let Some(head) = unit.first() else {
            return ControlFlow::Continue(());
        };
        let starts_turn = head.role() == Role::User;
        // The newest turn's user message is set and counted already.
        let is_set = starts_turn && self.user.is_some() && !self.whole_turn;
        if !is_set {
            let cost = unit.iter().map(|message| self.window.cost(message)).fold(0, usize::saturating_add);
            let sum = self.used.saturating_add(cost);
            // The newest unit is always shown.
            if !self.units.is_empty() && sum > self.window.limit() {
                self.left_out = true;
                return ControlFlow::Break(());
            }
            self.used = sum;
        }
        self.whole_turn |= starts_turn;
        self.units.push(Unit { seq, starts_turn, len: unit.len() });
        self.shown.extend(unit.into_iter().rev());
        if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether no older unit can fit, and whether there is one makes no difference.
    fn is_full(&self) -> bool {
        matches!(self.window.limit, Limit::Messages(count) if self.used >= count) && self.window.step == 1
    }

    /// The view, after as many messages as it needs were taken from a list that runs from the newest to the oldest.
    pub fn finish_with(mut self, newest_first: impl IntoIterator<Item = (u64, Message)>) -> Vec<Message> {
        for (seq, message) in newest_first {
            if self.push(seq, message).is_break() {
                break;
            }
        }
        self.finish()
    }

    /// The view, oldest message first.
    pub fn finish(mut self) -> Vec<Message> {
        let starts_anywhere = !self.whole_turn;
        // A larger step lets the start rest where it is for several calls.
        let earliest = match self.units.last() {
            Some(oldest) if self.left_out => {
                oldest.seq.div_ceil(self.window.step.max(1)).saturating_mul(self.window.step)
            }
            _ => 0,
        };
        // Units are dropped from the old end until the view may start, but never past the newest turn (inside a turn, or
        // without any: the newest unit).
        let last_start =
            if starts_anywhere { 0 } else { self.units.iter().position(|unit| unit.starts_turn).unwrap_or(0) };
        while self.units.len() > last_start + 1 {
            let Some(oldest) = self.units.last() else { break };
            if (starts_anywhere || oldest.starts_turn) && oldest.seq >= earliest {
                break;
            }
            self.shown.truncate(self.shown.len() - oldest.len);
            self.units.pop();
        }
        // The user message of a turn that was not taken whole comes before what was taken of it.
        if starts_anywhere {
            self.shown.extend(self.user);
        }
        self.shown.extend(self.system);
        self.shown.reverse();
        self.shown
    }
}
