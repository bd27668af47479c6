//! The contract as functions that any backend can run: feature `conformance`.
//!
//! Each function checks one promise of [`ChatMemory`] or [`ChatHistory`] on a store that is empty before, and says what does not
//! hold. [`Suite`] runs all of them and reports.
//!
//! ```
//! use chat_memory::{InMemoryChatMemory, conformance::Suite};
//!
//! let report = Suite::new(InMemoryChatMemory::new)
//!     .windowed(|count| InMemoryChatMemory::builder().max_messages(count).build().unwrap())
//!     .history(InMemoryChatMemory::new)
//!     .run();
//! assert!(report.is_passed(), "{report}");
//! ```
//!
//! `examples/custom_backend.rs` runs it on a store of thirty lines.

#[cfg(feature = "file-memory")]
pub mod file_store;
pub mod history;
pub mod memory;

use std::fmt;

use crate::history::ChatHistory;
use crate::memory::ChatMemory;
use crate::message::{Content, Media, Message, Opaque, Reasoning, ResultPart, Role, ToolResult};

/// What does not hold: `Ok` where the promise is kept.
pub type Outcome = Result<(), Violation>;

/// A promise that is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

impl From<crate::Error> for Violation {
    fn from(error: crate::Error) -> Self {
        Self(format!("an unexpected error: {error} ({error:?})"))
    }
}

/// Fails with a text where a condition does not hold.
pub(crate) fn holds(condition: bool, violation: impl FnOnce() -> String) -> Outcome {
    if condition { Ok(()) } else { Err(Violation(violation())) }
}

/// Fails where two lists of messages differ; the text says where, and not in what.
pub(crate) fn same(found: &[Message], expected: &[Message], what: &str) -> Outcome {
    holds(found.len() == expected.len(), || format!("{what}: {} messages instead of {}", found.len(), expected.len()))?;
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    match differs {
        None => Ok(()),
        Some(at) => Err(Violation(format!("{what}: message {at} is not as it was added"))),
    }
}

type Fresh<'a> = Box<dyn Fn() -> Box<dyn ChatMemory + 'a> + 'a>;
type Windowed<'a> = Box<dyn Fn(usize) -> Box<dyn ChatMemory + 'a> + 'a>;
type Restart<'a> = Box<dyn Fn() -> (Box<dyn ChatMemory + 'a>, Reopen<'a>) + 'a>;
type WithHistory<'a> = Box<dyn Fn() -> Box<dyn Both + 'a> + 'a>;

/// Opens the same store again.
pub type Reopen<'a> = Box<dyn Fn() -> Box<dyn ChatMemory + 'a> + 'a>;

/// Both contracts.
pub trait Both: ChatMemory + ChatHistory {}

impl<M: ChatMemory + ChatHistory> Both for M {}

/// All promises, for one backend.
pub struct Suite<'a> {
    fresh: Fresh<'a>,
    windowed: Option<Windowed<'a>>,
    restart: Option<Restart<'a>>,
    history: Option<WithHistory<'a>>,
}

impl<'a> Suite<'a> {
    /// A suite for a backend of which `fresh` makes a store that is empty, and shares nothing with those made before.
    pub fn new<M: ChatMemory + 'a>(fresh: impl Fn() -> M + 'a) -> Self {
        Self { fresh: Box::new(move || Box::new(fresh())), windowed: None, restart: None, history: None }
    }

    /// Also checks windows: `windowed` makes a fresh store whose `get` returns at most so many messages.
    #[must_use]
    pub fn windowed<M: ChatMemory + 'a>(mut self, windowed: impl Fn(usize) -> M + 'a) -> Self {
        self.windowed = Some(Box::new(move |count| Box::new(windowed(count))));
        self
    }

    /// Also checks restarts: `restart` makes a fresh store, and a function that opens the same one again after it is gone.
    #[must_use]
    pub fn restart(mut self, restart: impl Fn() -> (Box<dyn ChatMemory + 'a>, Reopen<'a>) + 'a) -> Self {
        self.restart = Some(Box::new(restart));
        self
    }

    /// Also checks the history: `history` makes a fresh store.
    #[must_use]
    pub fn history<M: ChatMemory + ChatHistory + 'a>(mut self, history: impl Fn() -> M + 'a) -> Self {
        self.history = Some(Box::new(move || Box::new(history())));
        self
    }

    /// Checks everything.
    pub fn run(&self) -> Report {
        let mut report = Report { results: Vec::new() };
        for (promise, check) in memory::PROMISES {
            report.add(promise, check(&*(self.fresh)()));
        }
        if let Some(windowed) = &self.windowed {
            report.add("a window shows what the rules say", memory::windows_follow_the_rules(&**windowed));
        }
        if let Some(restart) = &self.restart {
            let (memory, reopen) = restart();
            report.add("everything is there after a restart", memory::a_restart_loses_nothing(memory, &*reopen));
        }
        if let Some(history) = &self.history {
            for (promise, check) in history::PROMISES {
                report.add(promise, check(&*history()));
            }
        }
        report
    }
}

impl fmt::Debug for Suite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite")
            .field("windowed", &self.windowed.is_some())
            .field("restart", &self.restart.is_some())
            .field("history", &self.history.is_some())
            .finish()
    }
}

/// Which promises are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Each promise that was checked, and what does not hold.
    pub results: Vec<(&'static str, Outcome)>,
}

impl Report {
    /// Whether all are kept.
    pub fn is_passed(&self) -> bool {
        self.results.iter().all(|(_, outcome)| outcome.is_ok())
    }

    fn add(&mut self, promise: &'static str, outcome: Outcome) {
        self.results.push((promise, outcome));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (promise, outcome) in &self.results {
            match outcome {
                Ok(()) => writeln!(f, "kept    {promise}")?,
                Err(violation) => writeln!(f, "BROKEN  {promise}: {violation}")?,
            }
        }
        Ok(())
    }
}

/// Messages of every kind that a store has to keep whole.
pub fn samples() -> Vec<Message> {
    use std::time::{Duration, UNIX_EPOCH};
    let nested = serde_json::json!({"b": [1, 2.5, {"a": null}], "a": u64::MAX, "z": -1, "e": 1e-7});
    vec![
        Message::system("You are terse."),
        Message::developer("Answer in one word."),
        Message::user("größer 漢字 \u{0} \u{202e}abc👩‍👩‍👧‍👦 \u{2028}").with_name("Ada").with_id("m-1"),
        Message::user(""),
        Message::user(" \n"),
        Message::new(Role::Assistant, []),
        Message::assistant("Let me look.")
            .with_tool_call("c1", "search", "{\"q\":\"tide table\"}")
            .with_tool_call("c1", "search", "{broken"),
        Message::tool_result("c1", "search", "low at 6").with_id(""),
        Message::new(Role::Tool, []).with_content(
            ToolResult::new("c1")
                .with_text("a")
                .with_text("")
                .with_part(ResultPart::Media(Media::bytes("image/png", [0, 1, 255])))
                .with_part(ResultPart::Opaque(Opaque::new("p", "{}")))
                .with_error(),
        ),
        Message::new(Role::Assistant, [])
            .with_content(Reasoning::new("thought").with_signature("signature"))
            .with_content(Reasoning::new("").with_redacted("sealed"))
            .with_content(Opaque::new("anthropic", "{\"type\":\"x\",  \"n\": 1e2}"))
            .with_content(Content::Text("text behind".into())),
        Message::user("look")
            .with_media(Media::url("https://example.org/a.png").with_mime_type("image/png"))
            .with_media(Media::bytes("application/octet-stream", vec![7; 1 << 20]))
            .with_media(Media::bytes("", [])),
        Message::assistant("x")
            .with_metadata("unsigned", u64::MAX)
            .with_metadata("signed", i64::MIN)
            .with_metadata("float", 0.1)
            .with_metadata("null", serde_json::Value::Null)
            .with_metadata("nested", nested),
        Message::user("late").with_created_at(UNIX_EPOCH + Duration::new(1_764_000_000, 999_999_999)),
        Message::user("early").with_created_at(UNIX_EPOCH - Duration::from_micros(5)),
    ]
}
