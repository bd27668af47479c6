//! Which result answers which call.

use std::collections::VecDeque;

/// No conversation waits for more answers than this; the oldest calls are given up.
const MOST: usize = 1_024;

/// The calls of a conversation that wait for their results.
///
/// A result that names a call answers that one. One that names none answers the oldest open call of the tool that it names, else
/// the oldest. Ids that a form does not have are made up, the same each time.
#[derive(Default)]
pub(super) struct Pairs {
    open: VecDeque<Call>,
    /// The last call that was answered.
    last: Option<Call>,
    made_up: usize,
}

#[derive(Clone)]
struct Call {
    id: String,
    tool: String,
}

impl Pairs {
    /// A call, with its id if it has one; gives that or a new one.
    pub(super) fn call(&mut self, id: Option<String>, tool: &str) -> String {
        let id = self.or_made_up(id, "call");
        if self.open.len() == MOST {
            self.open.pop_front();
        }
        self.open.push_back(Call { id: id.clone(), tool: tool.to_owned() });
        id
    }

    /// A result, with the id of the call that it answers if it has one; gives that, or the id of the call that it must be of, or
    /// one of no call.
    pub(super) fn result(&mut self, id: Option<String>, tool: Option<&str>) -> String {
        let position = match id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => self.open.iter().position(|call| call.id == id),
            None => {
                let of_tool = self.open.iter().position(|call| Some(call.tool.as_str()) == tool);
                of_tool.or_else(|| (!self.open.is_empty()).then_some(0))
            }
        };
        match position.and_then(|position| self.open.remove(position)) {
            Some(call) => self.last.insert(call).id.clone(),
            None => {
                self.last = None;
                self.or_made_up(id, "unasked")
            }
        }
    }

    /// A further result of the call that was answered last, if it is of the same tool.
    pub(super) fn further_result(&mut self, tool: Option<&str>) -> Option<String> {
        self.last.as_ref().filter(|call| Some(call.tool.as_str()) == tool).map(|call| call.id.clone())
    }

    /// How many calls wait for their results.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// The user speaks: who comes later answers nothing from before.
    pub(super) fn next_turn(&mut self) {
        self.open.clear();
        self.last = None;
    }

    fn or_made_up(&mut self, id: Option<String>, kind: &str) -> String {
        id.filter(|id| !id.is_empty()).unwrap_or_else(|| {
            self.made_up += 1;
            format!("{kind}-{}", self.made_up)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_finds_its_call_by_id_by_tool_and_by_position() {
        let mut pairs = Pairs::default();
        let given = |id: &str| Some(id.to_owned());
        assert_eq!(pairs.call(given("a"), "x"), "a");
        assert_eq!(pairs.call(None, "y"), "call-1");
        assert_eq!(pairs.call(given(""), "z"), "call-2");
        assert_eq!(pairs.result(None, Some("z")), "call-2");
        assert_eq!(pairs.further_result(Some("z")), Some("call-2".to_owned()));
        assert_eq!(pairs.further_result(Some("y")), None);
        assert_eq!(pairs.result(given("a"), None), "a");
        assert_eq!(pairs.result(None, None), "call-1");
        assert_eq!(pairs.result(None, None), "unasked-3");
        assert_eq!(pairs.result(given("b"), None), "b");
        pairs.call(None, "x");
        pairs.next_turn();
        assert_eq!((pairs.open(), pairs.result(None, Some("x"))), (0, "unasked-5".to_owned()));
    }
}
