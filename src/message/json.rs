//! JSON texts as values, every key as it stands.
//!
//! `serde_json` itself, built to hand out raw texts, takes an object whose first key is a name that it keeps to itself for
//! such a text: that object would come back as another value, or not at all.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The value of a JSON text.
pub(crate) fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str::<Json<true>>(text).map(|json| json.0)
}

/// Whether [`parse`] would succeed, without making the value.
pub(crate) fn check(text: &str) -> serde_json::Result<()> {
    serde_json::from_str::<Json<false>>(text).map(drop)
}

/// A value; one that is not to be kept is null.
pub(crate) struct Json<const KEEP: bool>(pub(crate) Value);

impl<'de, const KEEP: bool> Deserialize<'de> for Json<KEEP> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor::<KEEP>).map(Self)
    }
}

struct JsonVisitor<const KEEP: bool>;

impl<'de, const KEEP: bool> Visitor<'de> for JsonVisitor<KEEP> {
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
        Ok(if KEEP { value.into() } else { Value::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(Json::<KEEP>(item)) = items.next_element()? {
            if KEEP {
                kept.push(item);
            }
        }
        Ok(kept.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        #[derive(Deserialize)]
        struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
        let mut kept = Map::new();
        while let Some((Key(key), Json::<KEEP>(value))) = entries.next_entry()? {
            if KEEP {
                kept.insert(key.into_owned(), value);
            }
        }
        Ok(kept.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `serde_json` keeps to itself.
    const OWN_NAME: &str = "$serde_json::private::RawValue";

    #[test]
    fn every_text_has_the_value_that_it_says_and_is_checked_as_it_is_read() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let texts = [
            "null",
            "[true,false,0,-1,18446744073709551615,-9223372036854775808,18446744073709551616,-0.0,1e-7,\"\"]",
            r#" {"b":{"a":[{},[]]},"a":"\u00e9\n","b":1} "#,
            &deep(127),
            &deep(128),
            "1e999",
            "[1,",
            "{\"a\":01}",
            "\"\\ud800\"",
            "",
        ];
        for text in texts {
            let expected = serde_json::from_str::<Value>(text).ok();
            assert_eq!(parse(text).ok(), expected, "{text}");
            assert_eq!(check(text).is_ok(), expected.is_some(), "{text}");
        }
    }

    #[test]
    fn no_key_has_a_meaning_of_its_own() {
        for value in [Value::from("[1]"), "not JSON".into(), 1.into()] {
            let object = Value::from(Map::from_iter([(OWN_NAME.to_owned(), value)]));
            assert_eq!(parse(&object.to_string()).unwrap(), object);
            assert!(check(&object.to_string()).is_ok());
        }
    }
}
