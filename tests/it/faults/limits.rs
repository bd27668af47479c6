//! A process with few file handles, and one whose files may not grow.

use std::io::ErrorKind;
use std::thread;

use chat_memory::{ChatHistory, ChatMemory, Error, FileChatMemory, Message, PageRequest, Repair};
use tempfile::tempdir;

use super::Acknowledged;
use crate::support::{child_part, flip_a_bit, has_programs, run_child_under};

const CONVERSATIONS: usize = 150;

/// Fewer handles than the store would keep: idle files are closed, and nobody notices.
#[test]
fn few_file_handles_are_enough_for_many_conversations() {
    let test = "faults::limits::few_file_handles_are_enough_for_many_conversations";
    let Some((_, directory)) = child_part() else {
        let directory = tempdir().unwrap();
        if has_programs(&["prlimit"]) {
            run_child_under(&["prlimit", "--nofile=16"], test, "few handles", directory.path());
            let memory = FileChatMemory::open(directory.path()).unwrap();
            assert_eq!(memory.conversations(&PageRequest::first(1_000)).unwrap().items.len(), CONVERSATIONS);
        }
        return;
    };
    let memory = FileChatMemory::open(&directory).unwrap();
    for round in 0..2 {
        for number in 0..CONVERSATIONS {
            let id = format!("{number}");
            memory.add(&id, &[Message::user(format!("{number} in round {round}"))]).unwrap();
            assert_eq!(memory.get(&id).unwrap().len(), round + 1);
        }
        assert_eq!(memory.conversations(&PageRequest::first(1_000)).unwrap().items.len(), CONVERSATIONS);
    }
    // The store keeps all handles that there are, so that this one has none.
    drop(memory);
    let memory = FileChatMemory::open(directory).unwrap();
    flip_a_bit(&memory.path("0"), 150).unwrap();
    // As many as may be are open again when the repair needs two more.
    (0..CONVERSATIONS).for_each(|number| _ = memory.get(&format!("{number}")).unwrap());
    assert_eq!(memory.repair("0", Repair::Apply).unwrap().damage.len(), 1);
    (0..CONVERSATIONS).for_each(|number| _ = memory.get(&format!("{number}")).unwrap());
    memory.clear("1").unwrap();
    memory.add("1", &[Message::user("again")]).unwrap();
}

/// Threads that need more handles at one moment than there are: some are refused for now, and lose nothing.
#[test]
fn with_too_few_file_handles_a_call_is_refused_for_now() {
    let test = "faults::limits::with_too_few_file_handles_a_call_is_refused_for_now";
    const THREADS: usize = 16;
    const EACH: usize = 20;
    let Some((_, directory)) = child_part() else {
        let directory = tempdir().unwrap();
        if has_programs(&["prlimit"]) {
            run_child_under(&["prlimit", "--nofile=12"], test, "too few handles", directory.path());
            let memory = FileChatMemory::open(directory.path()).unwrap();
            for thread in 0..THREADS {
                let found = crate::support::texts(&memory.get(&format!("{thread}")).unwrap());
                assert_eq!(found, (0..EACH).map(|number| number.to_string()).collect::<Vec<_>>());
            }
        }
        return;
    };
    let memory = FileChatMemory::open(directory).unwrap();
    let refused: usize = thread::scope(|scope| {
        let add = |thread: usize| {
            let (mut refused, id) = (0, format!("{thread}"));
            for number in 0..EACH {
                let message = [Message::user(number.to_string())];
                while let Err(error) = memory.add(&id, &message) {
                    assert!(matches!(error, Error::Io { .. }) && error.is_transient(), "{error:?}");
                    refused += 1;
                    thread::yield_now();
                }
            }
            refused
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || add(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("{refused} calls refused for now");
}

#[test]
fn a_file_that_may_not_grow_takes_what_fits() {
    let test = "faults::limits::a_file_that_may_not_grow_takes_what_fits";
    let Some((_, directory)) = child_part() else {
        let directory = tempdir().unwrap();
        if has_programs(&["prlimit"]) {
            // Without the signal that would end the process.
            let ignoring = ["sh", "-c", "trap '' XFSZ && exec \"$@\"", "sh", "prlimit", "--fsize=100000"];
            run_child_under(&ignoring, test, "short files", directory.path());
            // And without the limit.
            let memory = FileChatMemory::open(directory.path()).unwrap();
            let before = memory.get("c").unwrap();
            memory.add("c", &[Message::user("x".repeat(200_000))]).unwrap();
            assert_eq!(memory.get("c").unwrap()[..before.len()], before);
            assert_eq!(memory.repair("c", Repair::DryRun).unwrap().damage, []);
        }
        return;
    };
    let memory = FileChatMemory::open(&directory).unwrap();
    let mut c = Acknowledged::new(&memory, "c");
    let too_large = |result: Result<(), std::io::Error>| result.unwrap_err().kind() == ErrorKind::FileTooLarge;
    assert!(too_large(c.add(1, 100_000)));
    while c.messages.len() < 8 {
        c.add(1, 10_000).unwrap();
    }
    assert!(too_large(c.add(3, 10_000)));
    c.add(1, 5_000).unwrap();
    while c.add(1, 1_000).is_ok() {}
    while c.add(1, 10).is_ok() {}
    assert!(c.messages.len() > 10);
    let mut other = Acknowledged::new(&memory, "other");
    other.add(3, 1_000).unwrap();
    c.check_in(&FileChatMemory::open(&directory).unwrap());
}
