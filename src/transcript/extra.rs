//! What a form says that a message has no place for: kept in the message's metadata under the form's name, and put back by
//! an export.
//!
//! A part is found again by its position among the parts that are neither calls nor results, a call or a result by its id and
//! its number among those of that id: so the others are still found after a window took calls or results out.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::message::{Content, Message, Metadata, Role};

/// Inside the metadata entry: further fields of the message.
pub(super) const FIELDS: &str = "fields";
/// Of its parts.
pub(super) const PARTS: &str = "parts";
/// Of its calls, and of its results: for each id a list, a place for each.
pub(super) const CALLS: &str = "calls";
const RESULTS: &str = "results";

/// The further fields, being read.
#[derive(Default)]
pub(super) struct Extra {
    pub(super) fields: Map<String, Value>,
    pub(super) parts: Map<String, Value>,
    pub(super) calls: BTreeMap<String, Vec<Map<String, Value>>>,
    pub(super) results: BTreeMap<String, Vec<Map<String, Value>>>,
    /// What else the form wants to know again.
    pub(super) entry: Map<String, Value>,
}

impl Extra {
    pub(super) fn attach_to(self, provider: &str, message: Message) -> Message {
        let Self { fields, parts, calls, results, mut entry } = self;
        let lists = |by_id: BTreeMap<String, Vec<Map<_, _>>>| {
            let by_id = by_id.into_iter().filter(|(_, more)| more.iter().any(|more| !more.is_empty()));
            by_id.map(|(id, more)| (id, more.into_iter().map(Value::Object).collect())).collect()
        };
        for (name, fields) in [(FIELDS, fields), (PARTS, parts), (CALLS, lists(calls)), (RESULTS, lists(results))] {
            if !fields.is_empty() {
                entry.insert(name.to_owned(), fields.into());
            }
        }
        if entry.is_empty() {
            return message;
        }
        let mut metadata = Metadata::new();
        metadata.insert(provider, entry);
        message.replace_metadata(metadata)
    }
}

/// A message being read.
pub(super) struct Draft {
    pub(super) role: Role,
    content: Vec<Content>,
    /// The number of parts that are neither calls nor results.
    pub(super) parts: usize,
    pub(super) extra: Extra,
}

impl Draft {
    pub(super) fn new(role: Role) -> Self {
        Self { role, content: Vec::new(), parts: 0, extra: Extra::default() }
    }

    /// Adds a part, and what its form says beside it.
    pub(super) fn push(&mut self, part: Content, more: Map<String, Value>) {
        match &part {
            Content::ToolCall(call) => self.extra.calls.entry(call.id.clone()).or_default().push(more),
            Content::ToolResult(result) => self.extra.results.entry(result.call_id.clone()).or_default().push(more),
            _ => {
                if !more.is_empty() {
                    self.extra.parts.insert(self.parts.to_string(), more.into());
                }
                self.parts += 1;
            }
        }
        self.content.push(part);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    pub(super) fn finish(self, provider: &str) -> Message {
        self.extra.attach_to(provider, Message::new(self.role, self.content))
    }
}

/// The further fields of a message, being written.
pub(super) struct Kept<'a> {
    entry: Option<&'a Map<String, Value>>,
    /// The number of parts that were asked for, without calls and results.
    pub(super) parts: usize,
    seen: HashMap<(&'static str, &'a str), usize>,
}

impl<'a> Kept<'a> {
    pub(super) fn of(message: &'a Message, provider: &str) -> Self {
        let entry = message.metadata().get(provider).and_then(Value::as_object);
        Self { entry, parts: 0, seen: HashMap::new() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.entry?.get(name)
    }

    pub(super) fn fields(&self) -> Map<String, Value> {
        self.get(FIELDS).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// Of the next part; every part has to be asked for, in order.
    pub(super) fn next(&mut self, part: &'a Content) -> Option<&'a Value> {
        match part {
            Content::ToolCall(call) => self.next_of_id(CALLS, &call.id),
            Content::ToolResult(result) => self.next_of_id(RESULTS, &result.call_id),
            _ => {
                self.parts += 1;
                self.get(PARTS)?.get((self.parts - 1).to_string())
            }
        }
    }

    fn next_of_id(&mut self, kind: &'static str, id: &'a str) -> Option<&'a Value> {
        let seen = self.seen.entry((kind, id)).or_default();
        *seen += 1;
        self.entry?.get(kind)?.get(id)?.get(*seen - 1)
    }
}

/// The names of what a message has beside role, name and content, and no form but our own can say.
pub(super) fn beside(message: &Message, provider: &str) -> impl Iterator<Item = &'static str> {
    let is_other = |(key, value): (&str, &Value)| key != provider || !value.is_object();
    [
        (message.id().is_some(), "id"),
        (message.created_at().is_some(), "created_at"),
        (message.metadata().iter().any(is_other), "metadata"),
    ]
    .into_iter()
    .filter_map(|(is_there, name)| is_there.then_some(name))
}

/// Adds the fields that an object does not have.
pub(super) fn add(object: &mut Map<String, Value>, fields: Map<String, Value>) {
    for (name, value) in fields {
        object.entry(name).or_insert(value);
    }
}

/// Puts further fields into an object, and into the objects in it; what is there stays as it is.
pub(super) fn merge(into: &mut Value, more: Option<&Value>) {
    let (Value::Object(into), Some(Value::Object(more))) = (into, more) else {
        return;
    };
    for (name, value) in more {
        match into.get_mut(name) {
            Some(known) => merge(known, Some(value)),
            None => _ = into.insert(name.clone(), value.clone()),
        }
    }
}
