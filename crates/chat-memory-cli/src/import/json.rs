//! JSON whose texts are kept as they stand.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// An object's fields in their order, each as its text.
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Takes a field out, the last of its name; `null` is as good as none.
    pub(super) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let value = self.get(name);
        self.0.retain(|(known, _)| known != name);
        value
    }

    /// Takes out fields that say nothing more.
    pub(super) fn remove(&mut self, names: &[&str]) {
        self.0.retain(|(known, _)| !names.contains(&known.as_ref()));
    }

    /// A field, the last of its name; `null` is as good as none.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let field = self.0.iter().rev().find(|(known, _)| known == name);
        field.map(|(_, value)| *value).filter(|value| value.get() != "null")
    }

    /// Takes a field out if it is a text, or a number, which is as good as its digits.
    pub(super) fn take_text(&mut self, name: &str) -> Option<String> {
        let text = self.get(name).and_then(text)?;
        self.take(name);
        Some(text)
    }

    /// A field that is a text, or a number.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(text)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Whether a field is there and is an object.
    pub(super) fn has_object(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get().starts_with('{'))
    }

    /// Whether a field is there and is a list.
    pub(super) fn has_list(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get().starts_with('['))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> + Clone {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// As the text of an object, with some fields given anew.
    pub(super) fn to_json_with(&self, changes: &[(&str, String)]) -> String {
        let kept = self.iter().filter(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
        let kept = kept.map(|(name, value)| format!("{}:{}", Value::from(name), value.get()));
        let changed = changes.iter().map(|(name, value)| format!("{}:{value}", Value::from(*name)));
        format!("{{{}}}", kept.chain(changed).collect::<Vec<_>>().join(","))
    }

    /// The fields as values, without those that are `null`.
    pub(super) fn into_values(self) -> Map<String, Value> {
        let there = self.0.into_iter().filter(|(_, raw)| raw.get() != "null");
        there.map(|(name, raw)| (name.into_owned(), value(raw))).collect()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Key(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The text of a string, or a number's digits.
pub(super) fn text(raw: &RawValue) -> Option<String> {
    match raw.get().as_bytes().first()? {
        b'"' => serde_json::from_str(raw.get()).ok(),
        b'-' | b'0'..=b'9' => Some(raw.get().to_owned()),
        _ => None,
    }
}

/// The arguments of a call: the text of a string, else the very text of the JSON.
pub(super) fn arguments(raw: &RawValue) -> String {
    if raw.get().starts_with('"') { text(raw).unwrap_or_default() } else { raw.get().to_owned() }
}

/// How deep a JSON text nests.
pub(super) fn depth(raw: &RawValue) -> usize {
    let (mut depth, mut deepest, mut is_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in raw.get().bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            b'[' | b'{' if !is_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Deeper values are kept as their texts: metadata has its limit.
const DEEPEST: usize = 100;

/// The value of a JSON text, every key as it stands; one that no value can be made of as its text.
///
/// `serde_json`'s own values would take an object whose first key is a name that it keeps to itself for another value.
pub(super) fn value(raw: &RawValue) -> Value {
    let value = Depth(DEEPEST).deserialize(&mut serde_json::Deserializer::from_str(raw.get()));
    value.unwrap_or_else(|_| raw.get().into())
}

/// How many more levels may follow.
#[derive(Clone, Copy)]
struct Depth(usize);

impl Depth {
    fn inner<E: Error>(self) -> Result<Self, E> {
        self.0.checked_sub(1).map(Self).ok_or_else(|| E::custom("nests too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Depth {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let (inner, mut kept) = (self.inner()?, Vec::new());
        while let Some(item) = items.next_element_seed(inner)? {
            kept.push(item);
        }
        Ok(kept.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let (inner, mut kept) = (self.inner()?, Map::new());
        while let Some(Key(key)) = entries.next_key()? {
            kept.insert(key.into_owned(), entries.next_value_seed(inner)?);
        }
        Ok(kept.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_value_is_what_the_text_says_or_the_text() {
        for text in ["{\"b\":[1,-2,1.5,null,true,\"x\"],\"a\":{}}", "18446744073709551615", "\"\\u00e9\""] {
            assert_eq!(value(raw(text)), serde_json::from_str::<Value>(text).unwrap());
        }
        let own = r#"{"$serde_json::private::RawValue":"[1]"}"#;
        assert_eq!(value(raw(own)).to_string(), own);
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(value(raw(&deep(DEEPEST))).is_array());
        assert_eq!(value(raw(&deep(DEEPEST + 1))), Value::from(deep(DEEPEST + 1)));
        assert_eq!(value(raw("1e999")), Value::from("1e999"));
    }

    #[test]
    fn brackets_in_texts_are_no_levels() {
        for (text, levels) in [("1", 0), ("[[],{}]", 2), (r#"["[[[", "\\", "\"[", {"[": [3]}]"#, 3)] {
            assert_eq!(depth(raw(text)), levels, "{text}");
        }
    }

    #[test]
    fn a_field_is_the_last_of_its_name() {
        let mut fields: Fields<'_> = serde_json::from_str(r#"{"a":1,"b":null,"a":"x","c":[1, 2]}"#).unwrap();
        assert_eq!(fields.text("a").as_deref(), Some("x"));
        assert!(fields.get("b").is_none() && fields.has("b") && fields.has_list("c"));
        assert_eq!(fields.take_text("c"), None);
        assert_eq!(fields.take("a").map(RawValue::get), Some("\"x\""));
        assert_eq!(fields.to_json_with(&[("b", "2".into())]), r#"{"c":[1, 2],"b":2}"#);
        assert_eq!(Value::from(fields.into_values()).to_string(), r#"{"c":[1,2]}"#);
    }
}
