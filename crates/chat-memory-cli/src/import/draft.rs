//! A conversation and a message that are being read.

use std::borrow::Cow;
use std::time::SystemTime;

use chat_memory::transcript::Import;
use chat_memory::{Content, Message, Role};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::json::{self, Fields};
use super::pairs::Pairs;
use super::source::{Bad, Source};
use super::{Conversation, Format, Refused, Said};

/// Inside the metadata entry of a form: further fields of the message, of its parts by position, and, in the first message, of
/// the conversation.
const FIELDS: &str = "fields";
const PARTS: &str = "parts";
const CONVERSATION: &str = "conversation";

/// Fields beside the messages that take more bytes than this are left out.
const MOST_ABOUT: usize = 64 * 1024;

/// Where an object says which conversation it is.
const IDS: [&str; 11] = [
    "conversation_id",
    "conversationId",
    "session_id",
    "sessionId",
    "thread_id",
    "threadId",
    "chat_id",
    "chatId",
    "custom_id",
    "id",
    "uuid",
];

/// Takes out the id of the conversation that an object is.
pub(super) fn take_own_id(fields: &mut Fields<'_>) -> Option<String> {
    let id = IDS.iter().find_map(|name| fields.text(name).filter(|id| !id.trim().is_empty()))?;
    let same: Vec<&str> = IDS.into_iter().filter(|name| fields.text(name).as_ref() == Some(&id)).collect();
    fields.remove(&same);
    Some(id)
}

/// The id of the conversation that a message belongs to.
pub(super) fn group_id(fields: &Fields<'_>) -> Option<String> {
    let names = IDS.iter().filter(|name| !matches!(**name, "custom_id" | "id" | "uuid"));
    names.copied().find_map(|name| fields.text(name).filter(|id| !id.trim().is_empty()))
}

/// A conversation that is being read.
pub(super) struct Draft<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) format: Format,
    pub(super) id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) messages: Vec<Message>,
    pub(super) notes: Notes,
    pub(super) pairs: Pairs,
    about: Map<String, Value>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(source: &'a Source<'a>, format: Format) -> Self {
        Self {
            source,
            format,
            id: None,
            title: None,
            messages: Vec::new(),
            notes: Notes::default(),
            pairs: Pairs::default(),
            about: Map::new(),
        }
    }

    /// Adds a message.
    pub(super) fn say(&mut self, line: Line) {
        self.messages.push(line.into_message(self.format.name()));
    }

    /// Adds what one of the library's readers read at a place, and its warnings.
    pub(super) fn take(&mut self, import: Import, place: &RawValue) {
        for warning in import.warnings {
            self.note(place, warning.text);
        }
        self.messages.extend(import.messages);
    }

    /// Says what was repaired or left out at a place.
    pub(super) fn note(&mut self, place: &RawValue, text: impl Into<Cow<'static, str>>) {
        self.notes.add(text, self.source.line(place));
    }

    /// Says whether halves of surrogate pairs were replaced in a part of the text; each part is to be given once.
    pub(super) fn note_mended(&mut self, part: &RawValue) {
        for _ in 0..self.source.mended_in(part) {
            self.note(part, "half of a surrogate pair became U+FFFD");
        }
    }

    /// Keeps what is said of the conversation as a whole.
    pub(super) fn about(&mut self, fields: Fields<'a>) {
        for (name, raw) in fields.iter().filter(|(_, raw)| raw.get() != "null") {
            if raw.get().len() > MOST_ABOUT {
                self.note(raw, "a field beside the messages was left out, because it takes more than 64 KiB");
            } else {
                self.about.insert(name.to_owned(), json::value(raw));
            }
        }
    }

    /// What this conversation is called in errors: its title, its id, or its number in the file.
    pub(super) fn name(&self, number: usize) -> String {
        let mut names = [&self.title, &self.id].into_iter().flatten();
        names
            .find(|name| !name.trim().is_empty())
            .cloned()
            .unwrap_or_else(|| format!("{}/{number}", self.source.stem()))
    }

    /// The conversation, or why it is none.
    pub(super) fn finish(self, read: Result<(), Bad>, number: usize) -> Result<Conversation, Refused> {
        match read {
            Ok(()) => Ok(self.into_conversation()),
            Err(bad) => Err(bad.named(self.name(number))),
        }
    }

    pub(super) fn into_conversation(mut self) -> Conversation {
        if self.messages.is_empty() {
            self.notes.add("there is no message in it", 0);
        }
        if !self.about.is_empty()
            && let Some(first) = self.messages.first_mut()
        {
            let key = self.format.name();
            let mut entry = first.metadata().get(key).and_then(Value::as_object).cloned().unwrap_or_default();
            entry.insert(CONVERSATION.to_owned(), self.about.into());
            *first = first.clone().with_metadata(key, entry);
        }
        Conversation {
            id: self.id.unwrap_or_default(),
            title: self.title.filter(|title| !title.trim().is_empty()),
            said: Said::Messages(self.messages),
            notes: self.notes.into_texts(),
        }
    }
}

/// A message that is being read.
pub(super) struct Line {
    pub(super) role: Role,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) at: Option<SystemTime>,
    content: Vec<Content>,
    /// Fields without a place of their own.
    pub(super) fields: Map<String, Value>,
    parts: Map<String, Value>,
}

impl Line {
    pub(super) fn new(role: Role) -> Self {
        Self { role, id: None, name: None, at: None, content: Vec::new(), fields: Map::new(), parts: Map::new() }
    }

    pub(super) fn push(&mut self, part: impl Into<Content>) {
        self.content.push(part.into());
    }

    /// Adds a part, and what its form says beside it.
    pub(super) fn push_with(&mut self, part: impl Into<Content>, more: Map<String, Value>) {
        if !more.is_empty() {
            self.parts.insert(self.content.len().to_string(), more.into());
        }
        self.content.push(part.into());
    }

    pub(super) fn into_message(self, key: &str) -> Message {
        let mut message = Message::new(self.role, self.content);
        if let Some(id) = self.id {
            message = message.with_id(id);
        }
        if let Some(name) = self.name {
            message = message.with_name(name);
        }
        if let Some(at) = self.at {
            message = message.with_created_at(at);
        }
        let named = [(FIELDS, self.fields), (PARTS, self.parts)].into_iter().filter(|(_, more)| !more.is_empty());
        let entry: Map<String, Value> = named.map(|(name, more)| (name.to_owned(), more.into())).collect();
        if entry.is_empty() { message } else { message.with_metadata(key, entry) }
    }
}

/// What was repaired or left out, how often, and where first.
#[derive(Default)]
pub(super) struct Notes(Vec<(Cow<'static, str>, usize, usize)>);

impl Notes {
    /// Adds one of `line`, or of no line in particular where that is 0.
    pub(super) fn add(&mut self, text: impl Into<Cow<'static, str>>, line: usize) {
        let text = text.into();
        match self.0.iter_mut().find(|(known, ..)| *known == text) {
            Some((_, times, _)) => *times += 1,
            None => self.0.push((text, 1, line)),
        }
    }

    /// Adds those of another, of no line in particular.
    pub(super) fn extend(&mut self, others: Notes) {
        for (text, times, _) in others.0 {
            (0..times).for_each(|_| self.add(text.clone(), 0));
        }
    }

    pub(super) fn into_texts(self) -> Vec<String> {
        let text = |(text, times, line): (Cow<'static, str>, usize, usize)| match (times, line) {
            (1, 0) => text.into_owned(),
            (1, line) => format!("{text} (line {line})"),
            (times, 0) => format!("{text} ({times} times)"),
            (times, line) => format!("{text} ({times} times, first in line {line})"),
        };
        self.0.into_iter().map(text).collect()
    }
}
