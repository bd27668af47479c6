//! `add` of one turn to a conversation that is in use: does it cost what the disk costs, and does the cost grow with the
//! conversation? Beside it a bare write of 1 KiB, the whole file written again for each turn, and bare synced writes.
//!
//! `cargo bench --bench append`, with `BENCH_LARGE=1` also at a million messages.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench says what must hold by panicking"
)]

mod corpus;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use chat_memory::{ChatMemory, Durability};
use corpus::CONVERSATION;
use corpus::plain::{Plain, plain};
use criterion::{Bencher, BenchmarkId, Criterion, criterion_group, criterion_main};

const KILOBYTE: [u8; 1024] = [b'x'; 1024];

fn lengths() -> Vec<usize> {
    let large = std::env::var_os("BENCH_LARGE").map(|_| 1_000_000);
    [0, 100, 10_000].into_iter().chain(large).collect()
}

fn create(path: &Path) -> File {
    OpenOptions::new().create_new(true).read(true).write(true).open(path).unwrap()
}

/// Times steps; after every 50 of them what they wrote is taken away again, for else an empty file would be a long one soon.
fn in_rounds(b: &mut Bencher<'_>, mut begin: impl FnMut(), mut step: impl FnMut(usize)) {
    b.iter_custom(|steps| {
        let mut time = Duration::ZERO;
        for first in (0..steps).step_by(50) {
            begin();
            let start = Instant::now();
            (first..steps.min(first + 50)).for_each(|number| step((number - first) as usize));
            time += start.elapsed();
        }
        time
    });
}

fn process(c: &mut Criterion) {
    let mut group = c.benchmark_group("add a turn, Process");
    let messages = corpus::corpus(2, 100);
    let turns: Vec<_> = corpus::turns(&messages).collect();

    let directory = tempfile::tempdir().unwrap();
    let file = create(&directory.path().join("bare"));
    let write = |number| file.write_all_at(&KILOBYTE, number as u64 * 1024).unwrap();
    group.bench_function("bare write of 1 KiB", |b| in_rounds(b, || file.set_len(0).unwrap(), write));

    for length in lengths() {
        let directory = tempfile::tempdir().unwrap();
        corpus::fill(directory.path(), length, 20);
        let memory = corpus::store(directory.path(), Durability::Process);
        let path = memory.path(CONVERSATION);
        let file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let filled = file.metadata().unwrap().len();
        let cut_and_look = || {
            file.set_len(filled).unwrap();
            memory.get(CONVERSATION).unwrap();
        };
        group.bench_function(BenchmarkId::new("chat-memory", length), |b| {
            in_rounds(b, cut_and_look, |number| memory.add(CONVERSATION, turns[number]).unwrap());
        });
    }

    for length in lengths().into_iter().filter(|length| *length <= 10_000) {
        let path = directory.path().join(format!("rewritten-{length}"));
        let (conversation, turn) = (plain(&corpus::corpus(1, length)), plain(turns[0]));
        fs::write(&path, serde_json::to_vec(&conversation).unwrap()).unwrap();
        group.bench_function(BenchmarkId::new("whole file read and written again (JSON)", length), |b| {
            b.iter(|| {
                let mut messages: Vec<Plain> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                messages.truncate(length);
                messages.extend_from_slice(&turn);
                fs::write(&path, serde_json::to_vec(&messages).unwrap()).unwrap();
            });
        });
    }
    group.finish();
}

fn disk(c: &mut Criterion) {
    let mut group = c.benchmark_group("add a turn, Disk");
    let messages = corpus::corpus(2, 100);
    let mut turns = corpus::turns(&messages).cycle();
    let directory = tempfile::tempdir().unwrap();

    let file = create(&directory.path().join("growing"));
    let mut offset = 0;
    group.bench_function("bare append of 1 KiB + fdatasync", |b| {
        b.iter(|| {
            file.write_all_at(&KILOBYTE, offset).unwrap();
            file.sync_data().unwrap();
            offset += 1024;
        });
    });

    corpus::fill(directory.path(), 100, 20);
    let memory = corpus::store(directory.path(), Durability::Disk);
    group.bench_function("chat-memory", |b| b.iter(|| memory.add(CONVERSATION, turns.next().unwrap()).unwrap()));

    let zeros = vec![0; 32 << 20];
    let file = create(&directory.path().join("written ahead"));
    file.write_all_at(&zeros, 0).unwrap();
    file.sync_all().unwrap();
    let mut offset = 0;
    group.bench_function("bare overwrite of 1 KiB written ahead + fdatasync", |b| {
        b.iter(|| {
            file.write_all_at(&KILOBYTE, offset).unwrap();
            file.sync_data().unwrap();
            offset = (offset + 1024) % zeros.len() as u64;
        });
    });
    group.finish();
}

// Synced writes first: what the others leave in the page cache is written to the same disk a little later.
criterion_group!(benches, disk, process);
criterion_main!(benches);
