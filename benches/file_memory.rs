//! The notebook: a save among few and many files, search beside `grep -i`, a list.
//!
//! `cargo bench --bench file_memory`; the search is over 100 MB of text. Files are made beside the target folder, on a real disk.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench says what must hold by panicking")]

use std::fs;
use std::process::{Command, Stdio};

use chat_memory::{FileMemory, FolderName, LocalFileStore};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;

const S: &str = "session";

/// A notebook whose session has so many small files, put there by hand.
fn with_files(count: usize) -> (tempfile::TempDir, FileMemory) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = directory.path().join(FolderName::of_session(S).as_str());
    fs::create_dir(&folder).unwrap();
    for number in 0..count {
        fs::write(folder.join(format!("file {number:05}.md")), "x".repeat(400)).unwrap();
        fs::write(folder.join(format!("file {number:05}_description.md")), "what is in it").unwrap();
    }
    (directory, FileMemory::new(LocalFileStore::open(folder.parent().unwrap()).unwrap()))
}

fn save(c: &mut Criterion) {
    let notebooks = [10, 1_000, 10_000].map(|count| (count, with_files(count)));
    let mut group = c.benchmark_group("save");
    group.sample_size(20);
    let content = "x".repeat(1_000);
    for (count, (_directory, files)) in &notebooks {
        files.save(S, "new.md", content.as_bytes(), Some("warm")).unwrap();
        group.bench_function(format!("over one of {count} files"), |b| {
            b.iter(|| files.save(S, "new.md", content.as_bytes(), Some("what is in it")).unwrap());
        });
    }
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    group.bench_function("bare: two files written, synced and renamed, and the folder synced", |b| {
        b.iter(|| {
            for name in ["a", "b"] {
                let waiting = place.path().join("waiting");
                fs::write(&waiting, &content).unwrap();
                fs::File::open(&waiting).unwrap().sync_all().unwrap();
                fs::rename(&waiting, place.path().join(name)).unwrap();
            }
            fs::File::open(place.path()).unwrap().sync_all().unwrap();
        });
    });
    group.finish();
}

fn list(c: &mut Criterion) {
    let (_directory, files) = with_files(10_000);
    let mut group = c.benchmark_group("10,000 files with descriptions");
    group.sample_size(10);
    group.bench_function("list", |b| b.iter(|| assert_eq!(files.list(S).unwrap().len(), 10_000)));
    group.bench_function("context", |b| b.iter(|| assert_eq!(files.context(S).unwrap().messages.len(), 1)));
    group.bench_function("read of one", |b| b.iter(|| files.read(S, "file 05000.md").unwrap().unwrap()));
    group.finish();
}

fn search(c: &mut Criterion) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let files = FileMemory::new(LocalFileStore::open(directory.path()).unwrap());
    let line = "the quick brown fox jumps over the lazy dog, größer 漢字, and goes on for a while\n";
    let text = line.repeat((1 << 20) / line.len());
    for number in 0..100 {
        files.save(S, &format!("{number}.txt"), format!("{text}needle {number}\n").as_bytes(), None).unwrap();
    }
    let mut group = c.benchmark_group("search in 100 MB");
    group.sample_size(10).throughput(Throughput::Bytes(100 * text.len() as u64));
    for pattern in ["needle 42", "n[e]{2}dle \\d+$", "fox.*cat|needle"] {
        group.bench_function(pattern, |b| {
            let arguments = json!({ "regexPattern": pattern });
            b.iter(|| assert!(files.call(S, "FileMemory_SearchFiles", &arguments).unwrap().text.contains("needle")));
        });
    }
    let folder = directory.path().join(FolderName::of_session(S).as_str());
    let grep = |pattern: &str| {
        let mut grep = Command::new("grep");
        grep.args(["-rniE", pattern]).arg(&folder).stdout(Stdio::null()).env("LC_ALL", "C.UTF-8");
        grep.status().is_ok_and(|status| status.success())
    };
    if grep("needle 42") {
        for pattern in ["needle 42", "n[e]{2}dle [0-9]+$", "fox.*cat|needle"] {
            group.bench_function(format!("grep -i: {pattern}"), |b| b.iter(|| assert!(grep(pattern))));
        }
    }
    group.finish();
}

criterion_group!(benches, save, list, search);
criterion_main!(benches);
