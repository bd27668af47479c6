//! What rig says that a message has no place for: kept in the message's metadata under rig's name, and put back.
//!
//! A part is found again by its position among the parts that are neither calls nor results, a call or a result by its id and
//! its number among those of that id: so the others are still found after a window took calls or results out, and a call that
//! was given another id finds nothing of its old one.

use std::collections::{BTreeMap, HashMap};

use chat_memory::{Content, Error, Message, Result, Role};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The key in the metadata, and the provider of parts that only rig knows.
pub(crate) const RIG: &str = "rig";

/// Inside the entry: fields of an assistant turn.
pub(crate) const FIELDS: &str = "fields";
/// Of a user message: it is one with the tool message before it. `true`, or for each part how many results stand before it.
pub(crate) const JOINS: &str = "joins";
/// Of a tool message: it is not one with the tool message before it.
pub(crate) const BEGINS: &str = "begins";
/// Of parts; also of the parts of one result.
pub(crate) const PARTS: &str = "parts";
const CALLS: &str = "calls";
const RESULTS: &str = "results";

/// What is kept beside one part: rig's own fields of it, without those that the part itself says.
pub(crate) type Rest = Map<String, Value>;

/// The fields of rig's form of a part, without those that are said elsewhere.
pub(crate) fn rest_of(part: &impl Serialize, said: &[&str]) -> Result<Rest> {
    let Value::Object(mut rest) = value_of(part)? else {
        return Ok(Rest::new());
    };
    for name in said {
        rest.shift_remove(*name);
    }
    Ok(rest)
}

pub(crate) fn value_of(part: &impl Serialize) -> Result<Value> {
    serde_json::to_value(part).map_err(|error| Error::Backend { backend: RIG, source: error.into() })
}

/// Reads what [`rest_of`] left over, with the other fields put back.
pub(crate) fn read<T: DeserializeOwned>(
    mut rest: Rest,
    said: impl IntoIterator<Item = (&'static str, Value)>,
) -> Option<T> {
    for (name, value) in said {
        rest.insert(name.to_owned(), value);
    }
    serde_json::from_value(rest.into()).ok()
}

/// Metadata may nest 120 levels deep, and providers send items that come near to it. What is deeper than this is kept as its text.
const DEEP: usize = 100;

/// The rest as it is kept.
fn pack(rest: Rest) -> Value {
    let rest = Value::Object(rest);
    if nests_deeper(&rest, DEEP) {
        let text = rest.to_string();
        // One that could not be read again stays, and the store refuses it.
        if serde_json::from_str::<Value>(&text).is_ok_and(|read| read == rest) {
            return text.into();
        }
    }
    rest
}

fn unpack(kept: &Value) -> Option<Rest> {
    match kept {
        Value::Object(rest) => Some(rest.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

fn nests_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| nests_deeper(item, levels - 1)),
        Value::Object(entries) => levels == 0 || entries.values().any(|item| nests_deeper(item, levels - 1)),
        _ => false,
    }
}

/// Rests by position, without the empty ones.
#[derive(Default)]
pub(crate) struct Numbered {
    rests: Map<String, Value>,
    count: usize,
}

impl Numbered {
    pub(crate) fn push(&mut self, rest: Rest) {
        if !rest.is_empty() {
            self.rests.insert(self.count.to_string(), pack(rest));
        }
        self.count += 1;
    }

    /// All of them as one entry of a map, if there are any.
    pub(crate) fn insert_into(self, entry: &mut Rest) {
        if !self.rests.is_empty() {
            entry.insert(PARTS.to_owned(), self.rests.into());
        }
    }
}

/// A message being made from one of rig's.
pub(crate) struct Draft {
    role: Role,
    content: Vec<Content>,
    parts: Numbered,
    calls: BTreeMap<String, Vec<Rest>>,
    results: BTreeMap<String, Vec<Rest>>,
    /// What else is kept.
    pub(crate) entry: Rest,
}

impl Draft {
    pub(crate) fn new(role: Role) -> Self {
        let (content, parts, entry) = (Vec::new(), Numbered::default(), Rest::new());
        Self { role, content, parts, calls: BTreeMap::new(), results: BTreeMap::new(), entry }
    }

    pub(crate) fn push(&mut self, part: Content, rest: Rest) {
        match &part {
            Content::ToolCall(call) => self.calls.entry(call.id.clone()).or_default().push(rest),
            Content::ToolResult(result) => self.results.entry(result.call_id.clone()).or_default().push(rest),
            _ => self.parts.push(rest),
        }
        self.content.push(part);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    pub(crate) fn finish(self) -> Message {
        let Self { role, content, parts, calls, results, mut entry } = self;
        parts.insert_into(&mut entry);
        for (name, by_id) in [(CALLS, calls), (RESULTS, results)] {
            let by_id = by_id.into_iter().filter(|(_, rests)| rests.iter().any(|rest| !rest.is_empty()));
            let lists: Map<String, Value> =
                by_id.map(|(id, rests)| (id, rests.into_iter().map(pack).collect())).collect();
            if !lists.is_empty() {
                entry.insert(name.to_owned(), lists.into());
            }
        }
        let message = Message::new(role, content);
        if entry.is_empty() { message } else { message.with_metadata(RIG, entry) }
    }
}

/// What was kept of a message, being put back.
pub(crate) struct Kept<'a> {
    entry: Option<&'a Map<String, Value>>,
    parts: usize,
    seen: HashMap<(&'static str, &'a str), usize>,
}

impl<'a> Kept<'a> {
    pub(crate) fn of(message: &'a Message) -> Self {
        let entry = message.metadata().get(RIG).and_then(Value::as_object);
        Self { entry, parts: 0, seen: HashMap::new() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.entry?.get(name)
    }

    /// What was kept beside the next part; every part has to be asked for, in order.
    pub(crate) fn next(&mut self, part: &'a Content) -> Rest {
        let kept = match part {
            Content::ToolCall(call) => self.next_of_id(CALLS, &call.id),
            Content::ToolResult(result) => self.next_of_id(RESULTS, &result.call_id),
            _ => {
                self.parts += 1;
                self.get(PARTS).and_then(|parts| parts.get((self.parts - 1).to_string()))
            }
        };
        kept.and_then(unpack).unwrap_or_default()
    }

    fn next_of_id(&mut self, kind: &'static str, id: &'a str) -> Option<&'a Value> {
        let seen = self.seen.entry((kind, id)).or_default();
        *seen += 1;
        self.entry?.get(kind)?.get(id)?.get(*seen - 1)
    }
}

/// What was kept beside the part at this position of a result.
pub(crate) fn part_rest(rest: &Rest, position: usize) -> Rest {
    rest.get(PARTS).and_then(|parts| parts.get(position.to_string())).and_then(unpack).unwrap_or_default()
}
