//! Does the cost of `add` and of `get` with a window grow with the conversation? Beside them, in one run: a bare write of
//! 1 KiB, and the whole file written again for each turn, as file memories without a log do it.
//!
//! `cargo bench --bench growth`

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench says what must hold by panicking")]

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use chat_memory::transcript::openai;
use chat_memory::{ChatMemory, Durability, FileChatMemory, Message, Window};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};

const LENGTHS: [usize; 3] = [0, 100, 10_000];

/// A turn of about a kilobyte.
fn turn(number: usize) -> [Message; 2] {
    let text = "Memory is what lets a conversation go on where it stopped. ".repeat(7);
    [
        Message::user(format!("{number}: {text}")).with_metadata("channel", "web").with_metadata("n", number),
        Message::assistant(format!("{number}: größer, 漢字. {text}"))
            .with_metadata("model", "m")
            .with_metadata("ms", 812),
    ]
}

fn filled(directory: &Path, length: usize) -> FileChatMemory {
    let builder = FileChatMemory::builder(directory).durability(Durability::Process).max_messages(20);
    let memory = builder.open().unwrap();
    for number in 0..length / 2 {
        memory.add("c", &turn(number)).unwrap();
    }
    memory
}

fn add(c: &mut Criterion) {
    let mut group = c.benchmark_group("add a turn");
    let directory = tempfile::tempdir().unwrap();
    let file = OpenOptions::new().create_new(true).write(true).open(directory.path().join("bare")).unwrap();
    let kilobyte = [b'x'; 1024];
    let mut offset = 0;
    group.bench_function("bare write of 1 KiB", |b| {
        b.iter(|| {
            file.write_all_at(&kilobyte, offset).unwrap();
            offset += 1024;
        });
    });
    for length in LENGTHS {
        let directory = tempfile::tempdir().unwrap();
        let memory = filled(directory.path(), length);
        let messages = turn(length);
        group.bench_function(BenchmarkId::new("chat-memory", length), |b| {
            b.iter_batched(|| (), |()| memory.add("c", &messages).unwrap(), BatchSize::SmallInput);
        });
    }
    for length in LENGTHS {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rewritten.json");
        let messages: Vec<Message> = (0..length / 2 + 1).flat_map(turn).collect();
        group.bench_function(BenchmarkId::new("whole-file rewrite (JSON)", length), |b| {
            b.iter(|| {
                let mut file = File::create(&path).unwrap();
                std::io::Write::write_all(&mut file, openai::write(&messages).to_json().as_bytes()).unwrap();
            });
        });
    }
    group.finish();
}

fn get(c: &mut Criterion) {
    let mut group = c.benchmark_group("get the last 20");
    for length in LENGTHS {
        let directory = tempfile::tempdir().unwrap();
        let memory = filled(directory.path(), length);
        group.bench_function(BenchmarkId::new("chat-memory", length), |b| b.iter(|| memory.get("c").unwrap()));
    }
    for length in LENGTHS {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rewritten.json");
        let messages: Vec<Message> = (0..length / 2).flat_map(turn).collect();
        fs::write(&path, openai::write(&messages).to_json()).unwrap();
        group.bench_function(BenchmarkId::new("whole file read (JSON)", length), |b| {
            b.iter(|| {
                let text = fs::read_to_string(&path).unwrap();
                Window::messages(20).view(&openai::read(&text).unwrap().messages)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, add, get);
criterion_main!(benches);
