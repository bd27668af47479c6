//! Reading what a model gave as arguments: any JSON, most often an object.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Failure, refused};

pub(super) struct Arguments<'a>(Cow<'a, Map<String, Value>>);

impl<'a> Arguments<'a> {
    /// An object, nothing at all, or a text that holds an object.
    pub(super) fn new(value: &'a Value) -> Result<Self, Failure> {
        match value {
            Value::Object(map) => Ok(Self(Cow::Borrowed(map))),
            Value::Null => Ok(Self(Cow::Owned(Map::new()))),
            Value::String(text) if text.trim().is_empty() => Ok(Self(Cow::Owned(Map::new()))),
            Value::String(text) => match serde_json::from_str(text) {
                Ok(Value::Object(map)) => Ok(Self(Cow::Owned(map))),
                Ok(_) => refused("The arguments must be a JSON object."),
                Err(error) => refused(format!("The arguments are not valid JSON: {error}.")),
            },
            _ => refused("The arguments must be a JSON object."),
        }
    }

    /// An argument by its name in either spelling, `fileName` or `file_name`; `null` is as good as missing.
    fn get(&self, name: &str) -> Option<&Value> {
        let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
        let exact = self.0.get(name);
        let found = exact.or_else(|| self.0.iter().find(|(key, _)| plain(key) == plain(name)).map(|(_, value)| value));
        found.filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, Failure> {
        self.optional_text(name)?.map_or_else(|| missing(name), Ok)
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => refused(format!("The argument `{name}` must be a string.")),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<i64, Failure> {
        self.optional_number(name)?.map_or_else(|| missing(name), Ok)
    }

    /// A whole number, also where a model writes it as a text.
    pub(super) fn optional_number(&self, name: &str) -> Result<Option<i64>, Failure> {
        self.get(name).map(|value| whole(value, name)).transpose()
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, Failure> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(_) => refused(format!("The argument `{name}` must be true or false.")),
        }
    }

    /// Two whole numbers.
    pub(super) fn optional_range(&self, name: &str) -> Result<Option<(i64, i64)>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(values)) => match values.as_slice() {
                [start, end] => Ok(Some((whole(start, name)?, whole(end, name)?))),
                _ => refused(format!("The argument `{name}` must be a list of two whole numbers.")),
            },
            Some(_) => refused(format!("The argument `{name}` must be a list of two whole numbers.")),
        }
    }

    pub(super) fn objects(&self, name: &str) -> Result<Vec<Arguments<'_>>, Failure> {
        match self.get(name) {
            None => missing(name),
            Some(Value::Array(values)) => values.iter().map(Arguments::new).collect(),
            Some(_) => refused(format!("The argument `{name}` must be a list of objects.")),
        }
    }
}

fn whole(value: &Value, name: &str) -> Result<i64, Failure> {
    let number = match value {
        Value::Number(number) => {
            number.as_i64().or_else(|| number.as_f64().filter(|f| f.fract() == 0.0).map(|f| f as i64))
        }
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.map_or_else(|| refused(format!("The argument `{name}` must be a whole number.")), Ok)
}

fn missing<T>(name: &str) -> Result<T, Failure> {
    refused(format!("The argument `{name}` is missing."))
}
