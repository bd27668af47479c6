//! `get`: the last 20 messages of a conversation in use, the first read after the start of a program, and everything. Beside
//! it what each consists of (decoding without a disk, cloning, bare reading) and the whole file read as JSON.
//!
//! `cargo bench --bench recall`

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench says what must hold by panicking"
)]

mod corpus;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use chat_memory::{ChatMemory, Durability, FileChatMemory, FileChatMemoryBuilder};
use corpus::CONVERSATION;
use corpus::memory_disk::MemoryDisk;
use corpus::plain::{Plain, plain};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// The options of a store in which there is no disk, and a conversation of `length` messages.
fn without_disk(length: usize) -> FileChatMemoryBuilder {
    let disk = Arc::new(MemoryDisk::default());
    let builder = corpus::options(Path::new("/"), Durability::Process).disk(disk);
    let memory = builder.clone().open().unwrap();
    corpus::turns(&corpus::corpus(1, length)).for_each(|turn| memory.add(CONVERSATION, turn).unwrap());
    builder
}

/// A file in which the conversation is one JSON array.
fn write_json(directory: &Path, length: usize) -> std::path::PathBuf {
    let path = directory.join(format!("{length}.json"));
    fs::write(&path, serde_json::to_vec(&plain(&corpus::corpus(1, length))).unwrap()).unwrap();
    path
}

fn read_json(path: &Path) -> Vec<Plain> {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn get(memory: &FileChatMemory, at_least: usize) {
    let messages = memory.get(CONVERSATION).unwrap();
    assert!(messages.len() >= at_least, "only {} messages", messages.len());
}

fn warm(c: &mut Criterion) {
    let mut group = c.benchmark_group("last 20, warm");
    for length in [20, 10_000] {
        let directory = tempfile::tempdir().unwrap();
        corpus::fill(directory.path(), length, 2);
        let memory = corpus::store(directory.path(), Durability::Process);
        group.bench_function(BenchmarkId::new("chat-memory", length), |b| b.iter(|| get(&memory, 18)));
        let memory = without_disk(length).max_messages(20).open().unwrap();
        group.bench_function(BenchmarkId::new("decode only, no disk", length), |b| b.iter(|| get(&memory, 18)));
        let path = write_json(directory.path(), length);
        group.bench_function(BenchmarkId::new("whole file read (JSON)", length), |b| {
            b.iter(|| {
                let mut messages = read_json(&path);
                messages.split_off(messages.len() - 20)
            });
        });
    }
    let messages = corpus::corpus(1, 20);
    let plain = plain(&messages);
    group.bench_function("clone only, 20 Messages", |b| b.iter(|| messages.clone()));
    group.bench_function("clone only, 20 plain structs", |b| b.iter(|| plain.clone()));
    group.finish();
}

fn first(c: &mut Criterion) {
    let mut group = c.benchmark_group("open and last 20");
    for length in [1_000, 10_000] {
        let directory = tempfile::tempdir().unwrap();
        corpus::fill(directory.path(), length, 2);
        let open = || corpus::store(directory.path(), Durability::Process);
        group.bench_function(BenchmarkId::new("chat-memory", length), |b| b.iter(|| get(&open(), 18)));
        let builder = without_disk(length).max_messages(20);
        group.bench_function(BenchmarkId::new("the same, no disk", length), |b| {
            b.iter(|| get(&builder.clone().open().unwrap(), 18));
        });
        let path = open().path(CONVERSATION);
        group.bench_function(BenchmarkId::new("bare open + fstat + pread 16 KiB + close", length), |b| {
            let mut buffer = vec![0; 16 << 10];
            b.iter(|| {
                let file = File::open(&path).unwrap();
                let end = file.metadata().unwrap().len();
                file.read_exact_at(&mut buffer, end - (16 << 10)).unwrap();
            });
        });
    }
    group.finish();
}

fn everything(c: &mut Criterion) {
    const LENGTH: usize = 10_000;
    let mut group = c.benchmark_group("everything, 10,000 messages");
    let directory = tempfile::tempdir().unwrap();
    corpus::fill(directory.path(), LENGTH, 2);
    let memory = corpus::options(directory.path(), Durability::Process).open().unwrap();
    group.bench_function("chat-memory", |b| b.iter(|| get(&memory, LENGTH)));
    let memory = without_disk(LENGTH).open().unwrap();
    group.bench_function("decode only, no disk", |b| b.iter(|| get(&memory, LENGTH)));
    let path = write_json(directory.path(), LENGTH);
    group.bench_function("whole file read (JSON)", |b| b.iter(|| read_json(&path)));
    group.finish();
}

criterion_group!(benches, warm, first, everything);
criterion_main!(benches);
