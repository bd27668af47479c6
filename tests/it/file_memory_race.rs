//! Threads and processes on one notebook: what comes out is what somebody saved, whole.

use std::path::Path;
use std::thread;

use chat_memory::{Error, FileMemory};
use serde_json::json;
use tempfile::tempdir;

use crate::file_memory::{S, call, done, entries, list, local, on_both, read, save, search};
use crate::support::{child_part, start_child};

/// A content that says who wrote it, on every line, and its description.
fn written_by(writer: &str, number: usize) -> (String, String) {
    (format!("{writer} {number}\n").repeat(500), format!("{writer} {number}"))
}

/// Each file is whole, and has the description that was saved with it.
fn check(files: &FileMemory) {
    for entry in files.list(S).unwrap() {
        if !entry.name.as_str().starts_with("shared") {
            continue;
        }
        // Between the two reads somebody may have saved again; so both are asked for until they are of one moment.
        let content = match files.read(S, entry.name.as_str()).unwrap() {
            Some(content) => String::from_utf8(content).unwrap(),
            None => continue,
        };
        let first = content.lines().next().unwrap_or_default();
        assert_eq!(content, format!("{first}\n").repeat(500), "{} is mixed", entry.name);
    }
}

/// As `check`, where nobody saves any more; and the index is the list.
fn check_at_rest(files: &FileMemory) {
    check(files);
    let list = files.list(S).unwrap();
    for entry in &list {
        if entry.name.as_str().starts_with("shared") {
            let content = files.read(S, entry.name.as_str()).unwrap().unwrap();
            let (content, description) = (String::from_utf8(content).unwrap(), entry.description.as_deref().unwrap());
            assert_eq!(content.lines().next(), Some(description), "{} has another's description", entry.name);
        }
    }
    assert_eq!(entries(files).len(), list.len());
}

/// Saves, deletes, edits and searches, on files that others use too.
fn work(files: &FileMemory, writer: &str, rounds: usize) {
    for round in 0..rounds {
        let name = format!("shared {}.md", round % 3);
        let (content, description) = written_by(writer, round);
        match round % 5 {
            0..3 => save(files, &name, &content, Some(&description)),
            3 => _ = call(files, "FileMemory_DeleteFile", json!({ "fileName": name })),
            _ => {
                for found in search(files, ".", Some("shared*")).as_array().unwrap() {
                    let lines = found["matchingLines"].as_array().unwrap();
                    let first = &lines[0]["line"];
                    let shown = lines.iter().filter(|line| line.is_object());
                    assert!(shown.clone().all(|line| line["line"] == *first), "{found}");
                }
            }
        }
        let line = format!("{writer} {round}\n");
        done(files, "file_memory_append", json!({ "fileName": "log.txt", "content": line }));
    }
}

fn check_log(files: &FileMemory, writers: &[String], rounds: usize) {
    let log = read(files, "log.txt");
    assert_eq!(log.lines().count(), writers.len() * rounds);
    for writer in writers {
        let own: Vec<&str> = log.lines().filter(|line| line.split(' ').next() == Some(writer)).collect();
        let expected: Vec<String> = (0..rounds).map(|round| format!("{writer} {round}")).collect();
        assert_eq!(own, expected);
    }
}

fn threads(files: &[&FileMemory], writers: &[String], rounds: usize) {
    thread::scope(|scope| {
        for (number, writer) in writers.iter().enumerate() {
            let files = files[number % files.len()];
            scope.spawn(move || work(files, writer, rounds));
        }
    });
}

fn writers(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

#[test]
fn twenty_threads_end_consistent() {
    on_both(|files| {
        let writers = writers("t", 20);
        threads(&[files], &writers, 10);
        check_at_rest(files);
        check_log(files, &writers, 10);
    });
}

#[test]
fn two_processes_of_twenty_threads_end_consistent() {
    let test = "file_memory_race::two_processes_of_twenty_threads_end_consistent";
    const ROUNDS: usize = 5;
    if let Some((name, root)) = child_part() {
        // Two handles, which know no more of each other than processes do.
        threads(&[&local(&root), &local(&root)], &writers(&name, 10), ROUNDS);
        return;
    }
    let directory = tempdir().unwrap();
    let children = ["p", "q"].map(|name| start_child(test, name, directory.path()));
    let files = local(directory.path());
    let mut children = children.map(Some);
    while children.iter().any(Option::is_some) {
        for child in &mut children {
            if let Some(status) = child.as_mut().and_then(|child| child.try_wait().unwrap()) {
                assert!(status.success());
                *child = None;
            }
        }
        check(&files);
        let _ = (files.context(S).unwrap(), files.list(S).unwrap());
    }
    check_at_rest(&files);
    check_log(&files, &[writers("p", 10), writers("q", 10)].concat(), ROUNDS);
}

/// Clearing while others save: what is there afterwards was saved afterwards, and works.
#[test]
fn clearing_while_others_save_leaves_whole_files() {
    let directory = tempdir().unwrap();
    let (one, two) = (local(directory.path()), local(directory.path()));
    thread::scope(|scope| {
        for (writer, files) in [("a", &one), ("b", &two), ("c", &one)] {
            scope.spawn(move || {
                for round in 0..60 {
                    let (content, description) = written_by(writer, round);
                    save(files, "shared.md", &content, Some(&description));
                    check(files);
                }
            });
        }
        scope.spawn(|| (0..40).for_each(|_| two.clear(S).unwrap()));
    });
    check_at_rest(&one);
    one.clear(S).unwrap();
    assert_eq!((list(&one), list(&two)), (json!([]), json!([])));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Sessions that begin at the same time with the same wish for a folder: one gets it.
#[test]
fn a_folder_that_many_choose_at_once_is_one_sessions() {
    let directory = tempdir().unwrap();
    let open = |root: &Path| {
        let store = chat_memory::LocalFileStore::open(root).unwrap();
        FileMemory::builder(store).folder(|_| "wanted".into()).build().unwrap()
    };
    let results: Vec<Result<(), Error>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..10)
            .map(|number| {
                let files = open(directory.path());
                scope.spawn(move || files.save(&format!("session {number}"), "a.md", b"x", None).map(|_| ()))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().all(|result| matches!(result, Ok(()) | Err(Error::Conflict { .. }))));
    let winner = results.iter().position(Result::is_ok).unwrap();
    assert_eq!(open(directory.path()).list(&format!("session {winner}")).unwrap().len(), 1);
}
