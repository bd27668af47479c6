//! What is known about a message beside what was said.

use std::fmt;

use serde_json::{Map, Value};

use super::Length;

/// How deep JSON may nest, the metadata object itself included. `serde_json` reads 127 levels without a special build; the
/// others are for what a form of a conversation puts around it.
const MAX_DEPTH: usize = 120;

/// An ordered map from keys to JSON values.
///
/// Order, integers up to the limits of `u64` and `i64`, floats to the last bit and nesting come back from every store as
/// they were given. It is made for the handful of entries that a message has: a look-up compares keys one by one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata(Vec<(String, Value)>);

impl Metadata {
    /// No entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Sets a value: in place where the key is known, else at the end.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// About how many bytes of memory it takes.
    pub(super) fn footprint(&self) -> usize {
        self.0.iter().map(|(key, value)| 64 + key.len() + value_footprint(value)).sum()
    }

    /// Entries that were read from a store, where each key was written once.
    pub(crate) fn from_entries(entries: Vec<(String, Value)>) -> Self {
        Self(entries)
    }

    /// Whether the values read back equal; the error is the rule that they break.
    pub(super) fn check_storable(&self) -> Result<(), &'static str> {
        if self.0.iter().all(|(_, value)| nests_at_most(value, MAX_DEPTH - 1)) {
            Ok(())
        } else {
            Err("its metadata nests deeper than 120 levels")
        }
    }
}

fn value_footprint(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 32 + value_footprint(item)).sum(),
        Value::Object(entries) => entries.iter().map(|(key, item)| 96 + key.len() + value_footprint(item)).sum(),
        _ => 0,
    }
}

fn nests_at_most(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| nests_at_most(item, levels - 1)),
        Value::Object(entries) => levels > 0 && entries.values().all(|item| nests_at_most(item, levels - 1)),
        _ => true,
    }
}

impl From<Map<String, Value>> for Metadata {
    fn from(map: Map<String, Value>) -> Self {
        Self(map.into_iter().collect())
    }
}

impl From<Metadata> for Map<String, Value> {
    fn from(metadata: Metadata) -> Self {
        metadata.0.into_iter().collect()
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = |value: &Value| match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        f.debug_map().entries(self.0.iter().map(|(key, value)| (Length(key.len()), kind(value)))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn insert_keeps_the_place_of_a_known_key() {
        let mut metadata = Metadata::new();
        metadata.insert("b", 1);
        metadata.insert("a", 2);
        metadata.insert("b", 3);
        let entries: Vec<_> = metadata.iter().map(|(key, value)| (key, value.clone())).collect();
        assert_eq!(entries, [("b", json!(3)), ("a", json!(2))]);
        assert_eq!(metadata.get("a"), Some(&json!(2)));
        assert_eq!(metadata.get("c"), None);
    }

    #[test]
    fn the_deepest_storable_nesting_is_one_that_json_reads_back() {
        let nested = |levels: usize| (1..levels).fold(json!([]), |inner, _| json!([inner]));
        for (levels, storable) in [(1, true), (119, true), (120, false), (500, false)] {
            let mut metadata = Metadata::new();
            metadata.insert("deep", nested(levels));
            assert_eq!(metadata.check_storable().is_ok(), storable, "{levels}");
            let text = serde_json::to_string(&Map::from(metadata)).unwrap();
            assert!(!storable || serde_json::from_str::<Value>(&format!("[[{text}]]")).is_ok(), "{levels}");
        }
    }
}
