//! Eight threads that add turns at once, to one conversation and to one each: wall time per add, for both durabilities.
//! Beside it bare writes of 1 KiB at the end of a file, each with an fdatasync of its own where the store syncs.
//!
//! `cargo bench --bench contention`

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench says what must hold by panicking"
)]

mod corpus;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use chat_memory::{ChatMemory, Durability};
use criterion::measurement::WallTime;
use criterion::{Bencher, BenchmarkGroup, Criterion, SamplingMode, criterion_group, criterion_main};

const THREADS: usize = 8;
const KILOBYTE: [u8; 1024] = [b'x'; 1024];

/// Shares the work out to threads, each of which is told its number; the wall time per piece of work. Before each sample
/// what was written is taken away again, for else the system would soon be busy with writing it to the disk.
fn at_once(b: &mut Bencher<'_>, threads: usize, begin: impl Fn(), work: impl Fn(usize) + Sync) {
    b.iter_custom(|count| {
        begin();
        let each = count.div_ceil(threads as u64);
        let barrier = Barrier::new(threads + 1);
        let mut start = Instant::now();
        thread::scope(|scope| {
            for number in 0..threads {
                let (barrier, work) = (&barrier, &work);
                scope.spawn(move || {
                    barrier.wait();
                    (0..each).for_each(|_| work(number));
                });
            }
            // Before they are let go: afterwards, this thread may be the last to run.
            start = Instant::now();
            barrier.wait();
        });
        let per_piece = start.elapsed().as_secs_f64() / (each * threads as u64) as f64;
        Duration::from_secs_f64(per_piece * count as f64)
    });
}

fn append_only(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

fn cut(files: &[File]) {
    files.iter().for_each(|file| file.set_len(0).unwrap());
}

fn bare(group: &mut BenchmarkGroup<'_, WallTime>, directory: &Path, durability: Durability) {
    let name = if durability == Durability::Disk { "bare append + fdatasync" } else { "bare append" };
    let files: Vec<File> = (0..THREADS).map(|n| append_only(&directory.join(format!("bare-{n}")))).collect();
    let write = |mut file: &File| {
        file.write_all(&KILOBYTE).unwrap();
        if durability == Durability::Disk {
            file.sync_data().unwrap();
        }
    };
    let cut = || cut(&files);
    group.bench_function(format!("{name}, 1 thread"), |b| at_once(b, 1, cut, |_| write(&files[0])));
    group.bench_function(format!("{name}, 8 threads, 1 file"), |b| at_once(b, THREADS, cut, |_| write(&files[0])));
    group.bench_function(format!("{name}, 8 threads, 8 files"), |b| at_once(b, THREADS, cut, |n| write(&files[n])));
}

fn add(c: &mut Criterion, durability: Durability) {
    let mut group = c.benchmark_group(format!("add by several threads, {durability:?}"));
    group.sampling_mode(SamplingMode::Flat);
    let directory = tempfile::tempdir().unwrap();
    bare(&mut group, directory.path(), durability);

    let memory = corpus::store(directory.path(), durability);
    let messages = corpus::corpus(3, 2 * THREADS);
    let turns: Vec<_> = corpus::turns(&messages).collect();
    let conversations: Vec<String> = (0..THREADS).map(|number| format!("conversation {number}")).collect();
    let files: Vec<File> = conversations.iter().map(|id| append_only(&memory.path(id))).collect();
    let add = |conversation: usize, turn: usize| memory.add(&conversations[conversation], turns[turn]).unwrap();
    let cut_and_look = || {
        cut(&files);
        conversations.iter().for_each(|id| assert!(memory.get(id).unwrap().is_empty()));
    };
    group.bench_function("chat-memory, 1 thread", |b| at_once(b, 1, cut_and_look, |n| add(0, n)));
    group.bench_function("chat-memory, 8 threads, 1 conversation", |b| {
        at_once(b, THREADS, cut_and_look, |n| add(0, n));
    });
    group.bench_function("chat-memory, 8 threads, 8 conversations", |b| {
        at_once(b, THREADS, cut_and_look, |n| add(n, n));
    });
    group.finish();
}

fn process(c: &mut Criterion) {
    add(c, Durability::Process);
}

fn disk(c: &mut Criterion) {
    add(c, Durability::Disk);
}

// Synced writes first: what the others leave in the page cache is written to the same disk a little later.
criterion_group!(benches, disk, process);
criterion_main!(benches);
