//! Our own JSON Lines: each line says whose message it is, which one, when it was recorded, and everything that was said.
//!
//! ```json
//! {"conversation":"user-42","seq":0,"recorded_at":"1764000000.000000000","message":{"role":"user","content":[…]}}
//! ```
//!
//! `message` is the form of `chat_memory::transcript::jsonl`. Writing, reading and writing again gives the same bytes.

use std::time::{SystemTime, UNIX_EPOCH};

use chat_memory::transcript::jsonl;
use chat_memory::{Entry, Message};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct Line<'a> {
    conversation: &'a str,
    seq: u64,
    recorded_at: String,
    message: Box<RawValue>,
}

/// A line, without its end.
pub fn line(conversation: &str, entry: &Entry) -> String {
    let message = RawValue::from_string(message(&entry.message)).unwrap_or_default();
    let line = Line { conversation, seq: entry.seq, recorded_at: write_time(entry.recorded_at), message };
    serde_json::to_string(&line).unwrap_or_default()
}

/// A message on a line.
pub fn message(message: &Message) -> String {
    jsonl::write(std::slice::from_ref(message)).objects.pop().unwrap_or_default()
}

/// Seconds since 1970 with nine decimals, as the message's own time is written.
fn write_time(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:09}", since.as_secs(), since.subsec_nanos())
}
