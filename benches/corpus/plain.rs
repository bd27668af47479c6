//! Messages as plain structs for serde: what a program without this library would store.

use std::time::{Duration, UNIX_EPOCH};

use chat_memory::{Content, Message, ResultPart};
use serde::{Deserialize, Serialize};

/// The fields of a [`Message`], owned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plain {
    role: String,
    content: Vec<Part>,
    id: Option<String>,
    name: Option<String>,
    created_at: Option<Duration>,
    metadata: Vec<(String, Value)>,
}

/// The parts that the corpus has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Part {
    Text(String),
    ToolCall { id: String, name: String, arguments: String },
    ToolResult { call_id: String, name: Option<String>, texts: Vec<String>, is_error: bool },
}

/// The values that the corpus has; with names, for codecs that do not describe themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Value {
    Text(String),
    Unsigned(u64),
    Float(f64),
}

/// The messages as plain structs.
pub fn plain(messages: &[Message]) -> Vec<Plain> {
    messages.iter().map(Plain::from).collect()
}

impl From<&Message> for Plain {
    fn from(message: &Message) -> Self {
        Self {
            role: message.role().as_str().to_owned(),
            content: message.content().iter().map(Part::from).collect(),
            id: message.id().map(str::to_owned),
            name: message.name().map(str::to_owned),
            created_at: message.created_at().map(|time| time.duration_since(UNIX_EPOCH).unwrap()),
            metadata: message.metadata().iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect(),
        }
    }
}

impl From<&Content> for Part {
    fn from(part: &Content) -> Self {
        match part {
            Content::Text(text) => Part::Text(text.clone()),
            Content::ToolCall(call) => {
                let (id, name, arguments) = (call.id.clone(), call.name.clone(), call.arguments.clone());
                Part::ToolCall { id, name, arguments }
            }
            Content::ToolResult(result) => Part::ToolResult {
                call_id: result.call_id.clone(),
                name: result.name.clone(),
                texts: result.parts.iter().map(text).collect(),
                is_error: result.is_error,
            },
            _ => unreachable!("the corpus has no such part"),
        }
    }
}

fn text(part: &ResultPart) -> String {
    let ResultPart::Text(text) = part else { unreachable!("the corpus has results of text alone") };
    text.clone()
}

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::String(text) => Value::Text(text.clone()),
            serde_json::Value::Number(number) => match number.as_u64() {
                Some(number) => Value::Unsigned(number),
                None => Value::Float(number.as_f64().unwrap()),
            },
            _ => unreachable!("the corpus has no such value"),
        }
    }
}
