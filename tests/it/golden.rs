//! The format is for ever: golden files, the description's sample, and a second reader in another language.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chat_memory::{
    ChatHistory, ChatMemory, Content, DamageKind, Entry, Error, FileChatMemory, HistoryRange, Media, MediaSource,
    Message, Opaque, ResultPart,
};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::support::{quick, real_data, skip, texts};
use crate::{conversations, jsonl};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

/// A store with the golden files, each under the name that its conversation has, and the conversations' ids.
fn golden_store() -> (TempDir, FileChatMemory, Vec<String>) {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    let files = fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path());
    let mut ids: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| {
            let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
            fs::copy(&path, memory.path(&id)).unwrap();
            id
        })
        .collect();
    ids.sort();
    assert!(ids.len() >= 12, "{ids:?}");
    (directory, memory, ids)
}

fn media(media: &Media) -> Value {
    match &media.source {
        MediaSource::Url(url) => json!({"media_url": url, "mime_type": media.mime_type}),
        MediaSource::Bytes(bytes) => json!({"media_bytes": hex(bytes), "mime_type": media.mime_type}),
        other => panic!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn opaque(opaque: &Opaque) -> Value {
    json!({"opaque": opaque.provider, "json": opaque.json})
}

fn part(part: &Content) -> Value {
    match part {
        Content::Text(text) => json!({"text": text}),
        Content::Media(value) => media(value),
        Content::ToolCall(call) => json!({"tool_call": [call.id, call.name, call.arguments]}),
        Content::ToolResult(result) => {
            let parts = result.parts.iter().map(|part| match part {
                ResultPart::Text(text) => json!({"text": text}),
                ResultPart::Media(value) => media(value),
                ResultPart::Opaque(value) => opaque(value),
                other => panic!("{other:?}"),
            });
            let parts: Vec<Value> = parts.collect();
            json!({"tool_result": result.call_id, "name": result.name, "is_error": result.is_error, "parts": parts})
        }
        Content::Reasoning(thought) => {
            json!({"reasoning": thought.text, "signature": thought.signature, "redacted": thought.redacted})
        }
        Content::Opaque(value) => opaque(value),
        other => panic!("{other:?}"),
    }
}

fn time(time: SystemTime) -> Value {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => json!([false, after.as_secs(), after.subsec_nanos()]),
        Err(before) => json!([true, before.duration().as_secs(), before.duration().subsec_nanos()]),
    }
}

/// An entry as the second reader prints it.
fn entry(Entry { seq, recorded_at, message, .. }: &Entry) -> Value {
    let metadata = message.metadata().iter().map(|(key, value)| match value {
        Value::Array(_) | Value::Object(_) => json!([key, {"json": value.to_string()}]),
        plain => json!([key, plain]),
    });
    json!({
        "seq": seq,
        "recorded_at": recorded_at.duration_since(UNIX_EPOCH).unwrap().as_micros() as u64,
        "role": message.role().as_str(),
        "id": message.id(),
        "name": message.name(),
        "created_at": message.created_at().map(time),
        "content": message.content().iter().map(part).collect::<Vec<_>>(),
        "metadata": metadata.collect::<Vec<_>>(),
    })
}

/// What this crate says of a file, in the words of the second reader; without what its public face does not say.
fn told(memory: &FileChatMemory, id: &str) -> Value {
    let (state, entries) = match memory.history(id, HistoryRange::all()) {
        Ok(entries) if entries.is_empty() => ("empty", entries),
        Ok(entries) => ("conversation", entries),
        Err(Error::Corrupt { .. }) => ("damaged", Vec::new()),
        Err(Error::UnsupportedVersion { .. }) => ("unsupported", Vec::new()),
        Err(other) => panic!("{other:?}"),
    };
    let damage = memory.verify(id).unwrap().damage;
    let is = |kind| damage.iter().any(|damage| damage.kind == kind);
    let tail = match (is(DamageKind::UnfinishedEnd), is(DamageKind::End)) {
        (false, false) => "clean",
        (true, false) => "torn",
        _ => "damaged",
    };
    let in_the_middle = [DamageKind::Header, DamageKind::Middle, DamageKind::Undecodable];
    let corrupt = damage.iter().filter(|damage| in_the_middle.contains(&damage.kind));
    let corrupt: Vec<Value> = corrupt.map(|damage| json!([damage.offset, damage.end])).collect();
    let messages: Vec<Value> = entries.iter().map(entry).collect();
    json!({"state": state, "tail": tail, "corrupt": corrupt, "messages": messages})
}

/// The same fields of what the second reader printed.
fn reduced(printed: &str) -> Value {
    let printed: Value = serde_json::from_str(printed).unwrap();
    let field = |name: &str| printed[name].clone();
    json!({"state": field("state"), "tail": field("tail"), "corrupt": field("corrupt"), "messages": field("messages")})
}

/// What the second reader prints of a file; `None` where there is no python3.
fn second_reader(id: &str, path: &Path) -> Option<String> {
    second_readings(id, &[path.to_owned()])?.pop()
}

/// The same of several files of one conversation.
fn second_readings(id: &str, paths: &[PathBuf]) -> Option<Vec<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format_reader.py");
    let output = Command::new("python3").arg(script).args(["--id", id]).args(paths).output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(printed.lines().count(), paths.len());
            Some(printed.lines().map(str::to_owned).collect())
        }
        Err(error) => {
            skip(&format!("no python3: {error}"));
            None
        }
    }
}

#[test]
fn golden_files_are_read_as_they_always_were() {
    let (_directory, memory, ids) = golden_store();
    let expected = fs::read_to_string(golden().join("expected.jsonl")).unwrap();
    assert_eq!(expected.lines().count(), ids.len());
    for (id, expected) in ids.iter().zip(expected.lines()) {
        assert_eq!(told(&memory, id), reduced(expected), "{id}");
    }
    assert_eq!(texts(&memory.get("user-42").unwrap()), ["hello", "hi"]);
    // They can be added to, but for those in which nothing holds, which begin anew.
    for id in &ids {
        let before = memory.get(id).unwrap_or_default().len();
        memory.add(id, &[Message::user("more")]).unwrap();
        assert_eq!(quick(memory.directory()).get(id).unwrap().len(), before + 1, "{id}");
    }
}

#[test]
fn the_second_reader_agrees_on_the_golden_files() {
    let (_directory, memory, ids) = golden_store();
    let expected = fs::read_to_string(golden().join("expected.jsonl")).unwrap();
    for (id, expected) in ids.iter().zip(expected.lines()) {
        let Some(printed) = second_reader(id, &memory.path(id)) else { return };
        assert_eq!(printed.trim_end(), expected, "{id}");
    }
}

#[test]
fn the_second_reader_agrees_on_fresh_files_of_real_conversations() {
    let Some(data) = real_data() else { return };
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    // All together are more than a minute of Python; these are of every kind.
    let all = conversations::all(&data);
    let some = all.iter().enumerate().filter(|(at, conversation)| at % 40 == 0 || conversation.messages.len() > 100);
    let mut compared = 0;
    for (_, conversation) in some {
        for batch in conversation.messages.chunks(3) {
            memory.add(&conversation.id, batch).unwrap();
        }
        let Some(printed) = second_reader(&conversation.id, &memory.path(&conversation.id)) else { return };
        assert!(told(&memory, &conversation.id) == reduced(&printed), "{}", conversation.id);
        compared += conversation.messages.len();
    }
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn the_second_reader_agrees_on_any_message() {
    use proptest::strategy::{Strategy, ValueTree};
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let messages = proptest::collection::vec(jsonl::any_message(), 200).new_tree(&mut runner).unwrap().current();
    for batch in messages.chunks(7) {
        memory.add("c", batch).unwrap();
    }
    let Some(printed) = second_reader("c", &memory.path("c")) else { return };
    let (told, printed) = (told(&memory, "c"), reduced(&printed));
    for (at, (ours, theirs)) in
        told["messages"].as_array().unwrap().iter().zip(printed["messages"].as_array().unwrap()).enumerate()
    {
        assert_eq!(ours, theirs, "message {at}");
    }
    assert_eq!(told, printed);
}

#[test]
fn the_second_reader_agrees_on_damage_anywhere() {
    // A file of a few frames, harmed in many ways.
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    for number in 0..4 {
        memory.add("c", &[Message::user(format!("{number} {}", "x".repeat(150 * number)))]).unwrap();
    }
    let path = memory.path("c");
    let whole = fs::read(&path).unwrap();
    let mut harmed: Vec<Vec<u8>> = (0..whole.len()).step_by(29).map(|cut| whole[..cut].to_vec()).collect();
    for at in (0..whole.len()).step_by(23) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        harmed.push(flipped);
    }
    for sector in 0..whole.len() / 512 {
        let mut zeroed = whole.clone();
        zeroed[sector * 512..(sector + 1) * 512].fill(0);
        harmed.push(zeroed);
    }
    harmed.push([&whole[..], &whole[..]].concat());
    harmed.push([&whole[..], b"garbage"].concat());
    harmed.push([&whole[..], &[0; 700]].concat());
    let stores = harmed.iter().enumerate().map(|(number, bytes)| {
        let store = quick(&directory.path().join(number.to_string()));
        fs::write(store.path("c"), bytes).unwrap();
        store
    });
    let stores: Vec<FileChatMemory> = stores.collect();
    let paths: Vec<PathBuf> = stores.iter().map(|store| store.path("c")).collect();
    let Some(printed) = second_readings("c", &paths) else { return };
    for (store, printed) in stores.iter().zip(&printed) {
        assert_eq!(told(store, "c"), reduced(printed), "{}", store.directory().display());
    }
}

#[test]
fn the_sample_in_the_description_is_a_file() {
    let description = include_str!("../../docs/format.md");
    let dump = description.split("```hex\n").nth(1).unwrap().split("```").next().unwrap();
    let mut bytes: Vec<u8> = Vec::new();
    for line in dump.lines() {
        let (offset, rest) = line.split_once("  ").unwrap();
        assert_eq!(usize::from_str_radix(offset, 16).unwrap(), bytes.len());
        let digits = rest.split('|').next().unwrap().split_whitespace();
        bytes.extend(digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    assert_eq!(bytes, fs::read(golden().join("user-42.bin")).unwrap());
    // The table beneath it.
    assert_eq!(bytes[..8], *b"\x89CHATMEM");
    assert_eq!((bytes[12], bytes[0x43], bytes[0x47], bytes[0x53], bytes[0x5f]), (0x43, 0xf5, 0x17, 0x43, 2));
    assert_eq!((&bytes[0x93..0x98], &bytes[0xa0..0xa2]), (&b"hello"[..], &b"hi"[..]));
    assert_eq!(bytes[0xaa..], *b"\xf6CMe");

    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    fs::write(memory.path("user-42"), bytes).unwrap();
    let entries = memory.history("user-42", HistoryRange::all()).unwrap();
    assert_eq!(entries[0].message, Message::user("hello"));
    assert_eq!(entries[1].message, Message::assistant("hi"));
    assert!(entries[0].recorded_at > UNIX_EPOCH + Duration::from_secs(1_700_000_000));
}
