//! The rules of the window against a table of histories and views: each message is one letter, each view a list of
//! positions. The file explains its letters under `legend`.

use chat_memory::{Content, Message, OpenCalls, Role, ToolResult, Window, model_ready};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Vectors {
    windows: Vec<WindowVector>,
    model_ready: Vec<ReadyVector>,
}

#[derive(Deserialize)]
struct WindowVector {
    history: Vec<char>,
    n: usize,
    view: Vec<usize>,
    #[serde(default)]
    calls_removed: BTreeMap<usize, Vec<usize>>,
    #[serde(default)]
    results_removed: BTreeMap<usize, Vec<usize>>,
}

#[derive(Deserialize)]
struct ReadyVector {
    history: Vec<char>,
    n: usize,
    view: Vec<usize>,
    interrupt: Vec<Sent>,
    drop: Vec<Sent>,
    raw_interrupt: Vec<Sent>,
    raw_drop: Vec<Sent>,
}

#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(untagged)]
enum Sent {
    Position(usize),
    Other(String),
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors/window.json")).expect("the vectors parse")
}

/// Builds messages from letters. Every message carries its position, so that a view can be named by positions.
#[derive(Default)]
struct Builder {
    messages: Vec<Message>,
    /// Calls of call messages, in order: id and whether a `t` answered it already.
    open: Vec<Vec<(String, bool)>>,
    fresh: usize,
    last_result: Option<String>,
}

impl Builder {
    fn build(letters: &[char]) -> Vec<Message> {
        let mut builder = Self::default();
        for letter in letters {
            builder.add(*letter);
        }
        builder.messages
    }

    fn add(&mut self, letter: char) {
        let message = match letter {
            's' => Message::system("s"),
            'd' => Message::developer("d"),
            'u' => Message::user("u"),
            'a' => Message::assistant("a"),
            'e' => Message::new(Role::Assistant, []),
            'A' => self.fresh_calls(None, 1),
            'B' => self.fresh_calls(None, 2),
            'C' => self.fresh_calls(Some("text"), 1),
            'X' => self.calls(None, &["x"]),
            'Y' => self.calls(None, &["x", "x"]),
            'Z' => self.calls(None, &["x", "y"]),
            't' => self.answers(1),
            'T' => self.answers(2),
            'o' => {
                let id = self.fresh_id();
                results(&[id])
            }
            'D' => {
                let id = self.last_result.clone().unwrap_or_else(|| self.fresh_id());
                results(&[id])
            }
            'p' => results(&["x".into()]),
            'q' => results(&["y".into()]),
            'P' => results(&["x".into(), "x".into()]),
            'Q' => results(&["x".into(), "y".into()]),
            other => panic!("unknown letter {other}"),
        };
        let position = self.messages.len();
        self.messages.push(message.with_metadata("position", position));
    }

    fn fresh_calls(&mut self, text: Option<&str>, count: usize) -> Message {
        let ids: Vec<String> = (0..count).map(|_| self.fresh_id()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let message = self.calls(text, &ids);
        self.open.push(ids.iter().map(|id| ((*id).to_owned(), false)).collect());
        message
    }

    fn calls(&self, text: Option<&str>, ids: &[&str]) -> Message {
        let text = text.map(|text| Content::Text(text.to_owned()));
        ids.iter().fold(Message::new(Role::Assistant, text), |message, id| message.with_tool_call(*id, "f", "{}"))
    }

    /// Results for the first unanswered calls of the nearest earlier call message that still has one.
    fn answers(&mut self, count: usize) -> Message {
        let ids: Vec<String> = (0..count)
            .map(|_| {
                let open =
                    self.open.iter_mut().rev().find_map(|calls| calls.iter_mut().find(|(_, answered)| !answered));
                let Some((id, answered)) = open else { return self.fresh_id() };
                *answered = true;
                id.clone()
            })
            .collect();
        self.last_result = ids.last().cloned();
        results(&ids)
    }

    /// An id that no call has had.
    fn fresh_id(&mut self) -> String {
        self.fresh += 1;
        format!("c{}", self.fresh - 1)
    }
}

fn results(ids: &[String]) -> Message {
    let parts = ids.iter().map(|id| Content::ToolResult(ToolResult::new(id).with_text("r")));
    Message::new(Role::Tool, parts)
}

/// The parts of one kind at the positions that are not listed.
fn without(message: &Message, removed: &[usize], of_kind: fn(&Content) -> bool) -> Message {
    let mut position = 0;
    let kept = message.content().iter().filter(|part| {
        let keep = !of_kind(part) || !removed.contains(&position);
        position += usize::from(of_kind(part));
        keep
    });
    let kept: Vec<Content> = kept.cloned().collect();
    let bare = Message::new(message.role(), kept);
    message.metadata().iter().fold(bare, |message, (key, value)| message.with_metadata(key, value.clone()))
}

#[test]
fn every_vector_of_the_window_gives_its_view() {
    let vectors = vectors().windows;
    assert!(vectors.len() >= 900, "{}", vectors.len());
    for WindowVector { history, n, view, calls_removed, results_removed } in vectors {
        let messages = Builder::build(&history);
        let expected: Vec<Message> = view
            .iter()
            .map(|position| {
                let calls = calls_removed.get(position).map_or(&[][..], Vec::as_slice);
                let results = results_removed.get(position).map_or(&[][..], Vec::as_slice);
                let message = without(&messages[*position], calls, |part| matches!(part, Content::ToolCall(_)));
                without(&message, results, |part| matches!(part, Content::ToolResult(_)))
            })
            .collect();
        assert_eq!(Window::messages(n).view(&messages), expected, "{history:?} n={n}");
        // A token budget obeys the same rules: with a token a message it is the same window.
        assert_eq!(Window::tokens(n, |_: &Message| 1).view(&messages), expected, "{history:?} tokens={n}");
    }
}

#[test]
fn every_vector_of_model_ready_gives_its_list() {
    let vectors = vectors().model_ready;
    assert!(vectors.len() >= 130, "{}", vectors.len());
    for ReadyVector { history, n, view, interrupt, drop, raw_interrupt, raw_drop } in vectors {
        let messages = Builder::build(&history);
        let recalled = Window::messages(n).view(&messages);
        assert_eq!(positions(&recalled), view.into_iter().map(Sent::Position).collect::<Vec<_>>(), "{history:?} n={n}");
        for (list, open_calls, expected) in [
            (&recalled, OpenCalls::Interrupt, interrupt),
            (&recalled, OpenCalls::Drop, drop),
            (&messages, OpenCalls::Interrupt, raw_interrupt),
            (&messages, OpenCalls::Drop, raw_drop),
        ] {
            let mut list = list.clone();
            list.push(Message::user("new"));
            let sent = model_ready(&list, open_calls);
            assert_eq!(positions(&sent), expected, "{history:?} n={n} {open_calls:?}");
            assert_eq!(
                model_ready(&sent, open_calls),
                sent,
                "{history:?} n={n} {open_calls:?}: a second run changes it"
            );
        }
    }
}

fn positions(messages: &[Message]) -> Vec<Sent> {
    let position = |message: &Message| match message.metadata().get("position").and_then(|value| value.as_u64()) {
        Some(position) => Sent::Position(position as usize),
        None => match message.tool_results().next() {
            Some(result) => Sent::Other(format!("syn:{}", result.call_id)),
            None => Sent::Other(message.text().into_owned()),
        },
    };
    messages.iter().map(position).collect()
}
