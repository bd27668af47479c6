//! Reading JSON that others wrote, with places for errors and texts kept as they stand.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::message::json::Json;

/// A text to read JSON from.
pub(super) struct Source<'a> {
    /// Without a byte order mark, and with U+FFFD for every lone surrogate.
    pub(super) text: Cow<'a, str>,
    /// The offsets of the surrogates that were replaced.
    replaced: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (text, replaced) = mend_surrogates(text);
        Self { text, replaced }
    }

    /// How many surrogates were replaced in a part of the text.
    pub(super) fn replaced_in(&self, part: &str) -> usize {
        let start = self.offset_of(part);
        let before = |end: usize| self.replaced.partition_point(|at| *at < end);
        before(start + part.len()) - before(start)
    }

    /// An error at the beginning of a part of the text.
    pub(super) fn error_at(&self, part: &str, reason: impl Into<String>) -> Error {
        let before = self.text.get(..self.offset_of(part)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
        Error::InvalidTranscript { line, column, reason: reason.into() }
    }

    /// An error that the parser found in a part of the text.
    pub(super) fn parse_error(&self, part: &str, error: &serde_json::Error) -> Error {
        let start = self.error_at(part, "");
        let (Error::InvalidTranscript { line, column, .. }, inner) = (&start, error.line().max(1)) else {
            return start;
        };
        let column = if inner == 1 { column - 1 + error.column() } else { error.column() };
        let reason = match error.classify() {
            // Would name the value that it found.
            serde_json::error::Category::Data => "a value is of another type than the form says".to_owned(),
            // The parser's text ends in its own line and column, which count from the part.
            _ => error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
        };
        Error::InvalidTranscript { line: line + inner - 1, column, reason }
    }

    fn offset_of(&self, part: &str) -> usize {
        part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }
}

/// The text with U+FFFD for every lone surrogate, and the offsets of those.
pub(super) fn mend_surrogates(text: &str) -> (Cow<'_, str>, Vec<usize>) {
    let replaced = lone_surrogates(text);
    if replaced.is_empty() {
        return (Cow::Borrowed(text), replaced);
    }
    let mut mended = String::with_capacity(text.len());
    let mut rest = 0;
    for at in &replaced {
        mended.push_str(text.get(rest..*at).unwrap_or_default());
        mended.push_str("\\ufffd");
        rest = at + "\\ufffd".len();
    }
    mended.push_str(text.get(rest..).unwrap_or_default());
    (Cow::Owned(mended), replaced)
}

/// Offsets of escapes that are half of a surrogate pair. JSON allows them; a text cannot hold them.
fn lone_surrogates(text: &str) -> Vec<usize> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += next;
        at += match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                found.push(at);
                6
            }
            // Any other escape; a backslash may be the escaped character.
            _ => 1 + text.get(at + 1..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8),
        };
    }
    found
}

/// An object's fields in their order, each as its text.
pub(super) struct Fields<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Takes a field out, the last of its name; `null` is as good as none.
    pub(super) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let mut last = None;
        self.0.retain(|(known, value)| {
            let is_wanted = known == name;
            if is_wanted {
                last = Some(*value);
            }
            !is_wanted
        });
        last.filter(|value| value.get() != "null")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                #[derive(Deserialize)]
                struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
                let mut fields = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// The texts of the values in a source: of the elements of an array, or of values one after the other.
pub(super) fn values<'a>(source: &'a Source<'_>) -> Result<Vec<&'a RawValue>> {
    let text = source.text.as_ref();
    let values = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)
    } else {
        serde_json::Deserializer::from_str(text).into_iter().collect()
    };
    values.map_err(|error| source.parse_error(text, &error))
}

/// Reads a part of the text as a type; the error says where.
pub(super) fn read<'a, T: Deserialize<'a>>(source: &Source<'_>, part: &'a RawValue) -> Result<T> {
    serde_json::from_str(part.get()).map_err(|error| source.parse_error(part.get(), &error))
}

/// Reads a part of the text as a value.
pub(super) fn value(source: &Source<'_>, part: &RawValue) -> Result<Value> {
    read::<Json<true>>(source, part).map(|json| json.0)
}

/// Reads the fields that nobody took.
pub(super) fn rest(source: &Source<'_>, fields: Fields<'_>) -> Result<Map<String, Value>> {
    fields.0.into_iter().map(|(name, raw)| Ok((name.into_owned(), value(source, raw)?))).collect()
}

/// A JSON object's text on one line, if the text is that of a JSON object; it is the same text where that was on one line.
pub(super) fn object_on_a_line(text: &str) -> Option<String> {
    let raw: &RawValue = serde_json::from_str(text).ok().filter(|raw: &&RawValue| raw.get().starts_with('{'))?;
    // In JSON strings there are none.
    Some(raw.get().replace(['\n', '\r'], " "))
}

/// An object's text, with one more field whose value is JSON already.
pub(super) fn with_field(mut object: Map<String, Value>, name: &str, json: &str) -> String {
    object.shift_remove(name);
    let comma = if object.is_empty() { "" } else { "," };
    let mut text = Value::Object(object).to_string();
    text.pop();
    format!("{text}{comma}\"{name}\":{json}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_found_and_pairs_left_alone() {
        let mended = |text: &str| Source::new(text).text.into_owned();
        assert_eq!(mended(r#""\ud83d""#), r#""\ufffd""#);
        assert_eq!(mended(r#""\ud83d\ude00 \udE00\uD83D""#), r#""\ud83d\ude00 \ufffd\ufffd""#);
        assert_eq!(mended(r#""\ud83d\ud83d\ude00""#), r#""\ufffd\ud83d\ude00""#);
        // An escaped backslash before a `u` is no escape.
        assert_eq!(mended(r#""\\ud83d""#), r#""\\ud83d""#);
        assert_eq!(mended(r#""\é\ud8""#), r#""\é\ud8""#);
        assert_eq!(mended("\u{feff}[]"), "[]");
    }
}
