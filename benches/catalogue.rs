//! Many conversations: how long the store takes to open, a first page of the catalogue, and the pages behind it. Beside them a
//! bare listing of the directory, without and with a look at each file.
//!
//! `cargo bench --bench catalogue`; with `BENCH_LARGE=1` in the environment 100,000 conversations instead of 2,000.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench says what must hold by panicking")]

use std::fs;

use chat_memory::{ChatHistory, ChatMemory, Durability, FileChatMemory, Message, PageRequest};
use criterion::{Criterion, criterion_group, criterion_main};

fn catalogue(c: &mut Criterion) {
    let count = if std::env::var_os("BENCH_LARGE").is_some() { 100_000 } else { 2_000 };
    let directory = tempfile::tempdir().unwrap();
    let open = || FileChatMemory::builder(directory.path()).durability(Durability::Process).open().unwrap();
    let memory = open();
    for number in 0..count {
        let turn = [Message::user(format!("question {number}")), Message::assistant("x".repeat(400))];
        memory.add(&format!("user-{number}"), &turn).unwrap();
    }
    let mut group = c.benchmark_group(format!("{count} conversations"));
    group.sample_size(10);
    group.bench_function("open", |b| b.iter(open));
    group.bench_function("bare listing", |b| b.iter(|| fs::read_dir(directory.path()).unwrap().count()));
    group.bench_function("bare listing, and a look at each file", |b| {
        b.iter(|| {
            let entries = fs::read_dir(directory.path()).unwrap();
            entries.map(|entry| entry.unwrap().metadata().unwrap().modified().unwrap()).max()
        });
    });
    group.bench_function("first page of 20", |b| b.iter(|| memory.conversations(&PageRequest::first(20)).unwrap()));
    let next = memory.conversations(&PageRequest::first(20)).unwrap().next.unwrap();
    group.bench_function("second page of 20", |b| {
        b.iter(|| memory.conversations(&PageRequest::after(20, next.clone())).unwrap());
    });
    group.finish();
}

criterion_group!(benches, catalogue);
criterion_main!(benches);
