//! Generated conversations in the shape of real ones: the same for the same seed, on every machine.
//!
//! A message has about 405 bytes of text, most have less and a few much more; with its call and metadata it has about 532.
//! In 63 % of the texts there is something that is not ASCII. A fifth of the assistant's messages call a tool.

#![allow(dead_code, reason = "each bench uses a part of this")]

pub mod memory_disk;
pub mod plain;

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use chat_memory::{ChatMemory, Content, Durability, FileChatMemory, FileChatMemoryBuilder, Message, ResultPart};

/// The conversation that the benches add to and read.
pub const CONVERSATION: &str = "user-42";

const ASCII: [&str; 12] =
    ["memory", "is", "what", "lets", "a", "conversation", "go", "on", "where", "it", "stopped,", "mostly"];
const OTHER: [&str; 8] = ["größer", "naïve", "漢字", "память", "señor", "déjà", "😀", "日本語"];

/// `count` messages of one conversation. The last turn may be cut off.
pub fn corpus(seed: u64, count: usize) -> Vec<Message> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut messages = Vec::with_capacity(count + 4);
    while messages.len() < count {
        messages.push(Message::user(text(&mut random)));
        if random.below(4) == 0 {
            let id = format!("call_{:016x}{:08x}", random.next(), random.below(1 << 32));
            let arguments = format!(r#"{{"query":"{}","limit":{}}}"#, words(&mut random, 170, 0), random.below(50));
            messages.push(Message::assistant(text(&mut random)).with_tool_call(&id, "search_documents", arguments));
            messages.push(Message::tool_result(&id, "search_documents", text(&mut random)));
        }
        messages.push(Message::assistant(text(&mut random)));
    }
    messages.truncate(count);
    let known = messages.into_iter().enumerate().map(|(number, message)| {
        let said = UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_000 + number as u64 * 7_654_321);
        message
            .with_id(format!("m-{number:010}"))
            .with_created_at(said)
            .with_metadata("channel", ["web-application", "telephone", "messenger"][random.below(3) as usize])
            .with_metadata("model_version", ["large-2025-01", "small-2025-06"][random.below(2) as usize])
            .with_metadata("prompt_tokens", random.below(4000))
            .with_metadata("latency_seconds", random.unit() * 4.0)
    });
    known.collect()
}

/// The messages by twos: a question and an answer, or a question and a call and then a result and an answer.
pub fn turns(messages: &[Message]) -> impl Iterator<Item = &[Message]> + Clone {
    messages.chunks_exact(2)
}

/// The bytes that nobody can do without: text, the fields of calls and results, the metadata's keys and its values as JSON.
/// Ids and times are not counted.
pub fn raw_bytes(message: &Message) -> usize {
    let parts = message.content().iter().map(|part| match part {
        Content::Text(text) => text.len(),
        Content::ToolCall(call) => call.id.len() + call.name.len() + call.arguments.len(),
        Content::ToolResult(result) => {
            let parts = result.parts.iter().map(|part| if let ResultPart::Text(text) = part { text.len() } else { 0 });
            result.call_id.len() + result.name.as_ref().map_or(0, String::len) + parts.sum::<usize>()
        }
        _ => 0,
    });
    let metadata = message.metadata().iter().map(|(key, value)| key.len() + value.to_string().len());
    parts.sum::<usize>() + metadata.sum::<usize>()
}

/// The raw bytes of several messages.
pub fn raw_bytes_of(messages: &[Message]) -> u64 {
    messages.iter().map(|message| raw_bytes(message) as u64).sum()
}

/// A store on the real disk that shows the last 20 messages.
pub fn store(directory: &Path, durability: Durability) -> FileChatMemory {
    options(directory, durability).max_messages(20).open().unwrap()
}

/// The same without a window.
pub fn options(directory: &Path, durability: Durability) -> FileChatMemoryBuilder {
    FileChatMemory::builder(directory.join("store")).durability(durability)
}

/// Adds a conversation of `length` messages in batches of `batch`, without waiting for the disk.
pub fn fill(directory: &Path, length: usize, batch: usize) {
    let memory = store(directory, Durability::Process);
    let messages = corpus(1, length.min(10_000));
    for _ in 0..length.div_ceil(10_000) {
        messages.chunks(batch).for_each(|batch| memory.add(CONVERSATION, batch).unwrap());
    }
}

/// A text of 405 bytes in the mean, between 35 and about 1,500.
fn text(random: &mut Random) -> String {
    let length = 35.0 + 1460.0 * random.unit().powi(3);
    let other = if random.below(100) < 63 { 5 } else { 0 };
    words(random, length as usize, other)
}

/// Words of at least so many bytes together; every `other`th is not ASCII, the first among them, or none for 0.
fn words(random: &mut Random, length: usize, other: usize) -> String {
    let mut text = String::with_capacity(length + 16);
    for number in 0.. {
        let words: &[&str] = if other > 0 && number % other == 0 { &OTHER } else { &ASCII };
        text.push_str(words[random.below(words.len() as u64) as usize]);
        if text.len() >= length {
            break;
        }
        text.push(' ');
    }
    text
}

/// A xorshift generator: enough to vary a corpus.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
