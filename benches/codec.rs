//! Bytes in and out: what `add` and `get` cost without a disk under them, beside serde_json, postcard and rmp-serde on plain
//! structs of the same fields. Throughput is that of the raw bytes: text, calls and metadata, whatever a codec makes of them.
//!
//! `cargo bench --bench codec`
//!
//! The library's codec is private, so its numbers are those of a whole `add` to a new conversation and of a whole `get` by a
//! store that has seen nothing (and by one that has): checksums, locks, the sha256 of the id and all. First a table of bytes per message.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench says what must hold by panicking"
)]

mod corpus;

use std::path::Path;
use std::sync::Arc;

use chat_memory::disk::Disk;
use chat_memory::{ChatMemory, Durability, FileChatMemory, Message};
use corpus::CONVERSATION;
use corpus::memory_disk::MemoryDisk;
use corpus::plain::{Plain, plain};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// A turn, a window, a conversation.
const SIZES: [usize; 3] = [2, 20, 10_000];

fn open(disk: &Arc<MemoryDisk>) -> FileChatMemory {
    let builder = corpus::options(Path::new("/"), Durability::Process);
    builder.disk(Arc::clone(disk) as Arc<dyn Disk>).open().unwrap()
}

/// A disk on which the messages are one conversation, added in batches.
fn stored(messages: &[Message], batch: usize) -> Arc<MemoryDisk> {
    let disk = Arc::new(MemoryDisk::default());
    let memory = open(&disk);
    messages.chunks(batch).for_each(|batch| memory.add(CONVERSATION, batch).unwrap());
    disk
}

/// Another way to store messages.
struct Codec {
    name: &'static str,
    encode: fn(&[Plain]) -> Vec<u8>,
    decode: fn(&[u8]) -> Vec<Plain>,
}

const CODECS: [Codec; 3] = [
    Codec {
        name: "serde_json",
        encode: |messages| serde_json::to_vec(messages).unwrap(),
        decode: |bytes| serde_json::from_slice(bytes).unwrap(),
    },
    Codec {
        name: "postcard",
        encode: |messages| postcard::to_stdvec(messages).unwrap(),
        decode: |bytes| postcard::from_bytes(bytes).unwrap(),
    },
    Codec {
        name: "rmp-serde",
        encode: |messages| rmp_serde::to_vec(messages).unwrap(),
        decode: |bytes| rmp_serde::from_slice(bytes).unwrap(),
    },
];

fn encode(c: &mut Criterion) {
    print_sizes();
    let mut group = c.benchmark_group("encode");
    for size in SIZES {
        let messages = corpus::corpus(1, size);
        group.throughput(Throughput::Bytes(corpus::raw_bytes_of(&messages)));
        group.bench_function(BenchmarkId::new("chat-memory", size), |b| {
            let add = |memory: &mut FileChatMemory| memory.add(CONVERSATION, &messages).unwrap();
            b.iter_batched_ref(|| open(&Arc::default()), add, BatchSize::LargeInput);
        });
        let plain = plain(&messages);
        for Codec { name, encode, .. } in CODECS {
            group.bench_function(BenchmarkId::new(name, size), |b| b.iter_with_large_drop(|| encode(&plain)));
        }
    }
    group.finish();
}

fn get(memory: &FileChatMemory) {
    drop(memory.get(CONVERSATION).unwrap());
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode and drop");
    for size in SIZES {
        let messages = corpus::corpus(1, size);
        group.throughput(Throughput::Bytes(corpus::raw_bytes_of(&messages)));
        let disk = stored(&messages, size);
        assert_eq!(open(&disk).get(CONVERSATION).unwrap(), messages);
        let memory = open(&disk);
        group.bench_function(BenchmarkId::new("chat-memory, read before", size), |b| b.iter(|| get(&memory)));
        for (name, batch) in [("chat-memory", size), ("chat-memory, turns of 2", 2)] {
            let disk = stored(&messages, batch);
            group.bench_function(BenchmarkId::new(name, size), |b| {
                b.iter_batched_ref(|| open(&disk), |memory| get(memory), BatchSize::LargeInput);
            });
        }
        let plain = plain(&messages);
        for Codec { name, encode, decode } in CODECS {
            let bytes = encode(&plain);
            assert_eq!(decode(&bytes), plain);
            group.bench_function(BenchmarkId::new(name, size), |b| b.iter(|| drop(decode(&bytes))));
        }
    }
    group.finish();
}

/// The table of bytes per message.
fn print_sizes() {
    let messages = corpus::corpus(1, 10_000);
    let count = messages.len() as f64;
    let raw = corpus::raw_bytes_of(&messages) as f64 / count;
    let text = messages.iter().map(|message| message.text().len()).sum::<usize>() as f64 / count;
    let other = messages.iter().filter(|message| !message.text().is_ascii()).count() as f64 / count;
    let calls = messages.iter().filter(|message| message.tool_calls().count() > 0).count() as f64 / count;
    println!(
        "{count} messages: {text:.1} bytes of text, {:.1} % not ASCII, {:.1} % calls",
        other * 100.0,
        calls * 100.0
    );
    println!("{:<40} {:>10} {:>8}", "bytes per message", "", "/ raw");
    let row = |name: &str, bytes: f64| println!("{name:<40} {:>10.1} {:>8.3}", bytes, bytes / raw);
    row("raw: text, calls, metadata", raw);
    let ids = messages.iter().filter_map(Message::id).map(str::len).sum::<usize>() as f64 / count;
    row("raw with ids, and 8 bytes for each time", raw + ids + 8.0);
    for (name, batch) in [("turns of 2", 2), ("batches of 20", 20), ("one batch", messages.len())] {
        let disk = stored(&messages, batch);
        let file = disk.status(&open(&disk).path(CONVERSATION)).unwrap();
        row(&format!("chat-memory, {name}"), file.len as f64 / count);
    }
    let plain = plain(&messages);
    for Codec { name, encode, .. } in CODECS {
        row(name, encode(&plain).len() as f64 / count);
    }
}

criterion_group!(benches, encode, decode);
criterion_main!(benches);
