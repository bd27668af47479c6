//! Threads and processes on the same conversations.

use std::sync::Arc;
use std::thread;

use chat_memory::{ChatMemory, Durability, FileChatMemory, InMemoryChatMemory, Message};
use tempfile::tempdir;

use crate::support::{child_part, quick, start_child, texts};

/// Checks that each writer's messages are all there, once, and in its order.
fn check_lines(found: &[String], writers: &[&str], each: usize) {
    assert_eq!(found.len(), writers.len() * each);
    for writer in writers {
        let own: Vec<&String> = found.iter().filter(|line| line.split('-').next() == Some(writer)).collect();
        let expected: Vec<String> = (0..each).map(|number| format!("{writer}-{number}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>(), "{writer}");
    }
}

#[test]
fn threads_on_one_conversation_lose_nothing() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    let in_memory = InMemoryChatMemory::new();
    let writers = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"];
    thread::scope(|scope| {
        for writer in writers {
            let (memory, in_memory) = (&memory, &in_memory);
            scope.spawn(move || {
                for number in 0..100 {
                    let message = [Message::user(format!("{writer}-{number}"))];
                    memory.add("c", &message).unwrap();
                    in_memory.add("c", &message).unwrap();
                    assert!(memory.get("c").unwrap().contains(&message[0]));
                }
            });
        }
    });
    check_lines(&texts(&memory.get("c").unwrap()), &writers, 100);
    check_lines(&texts(&in_memory.get("c").unwrap()), &writers, 100);
    check_lines(&texts(&quick(directory.path()).get("c").unwrap()), &writers, 100);
}

#[test]
fn several_handles_on_one_directory_exclude_each_other() {
    let directory = tempdir().unwrap();
    let a = Arc::new(quick(directory.path()));
    let handles: [(&str, Arc<FileChatMemory>); 3] =
        [("A", Arc::clone(&a)), ("A2", Arc::clone(&a)), ("B", Arc::new(quick(directory.path())))];
    thread::scope(|scope| {
        for (name, memory) in &handles {
            scope.spawn(move || {
                for number in 0..200 {
                    memory.add("c", &[Message::user(format!("{name}-{number}"))]).unwrap();
                    if number % 10 == 0 {
                        memory.get("c").unwrap();
                    }
                }
            });
        }
    });
    check_lines(&texts(&a.get("c").unwrap()), &["A", "A2", "B"], 200);
}

#[test]
fn two_processes_write_whole_messages() {
    let test = "many_writers::two_processes_write_whole_messages";
    if let Some((name, directory)) = child_part() {
        let memory = quick(&directory);
        for _ in 0..200 {
            memory.add("c", &[Message::user(format!("{name} ").repeat(10_000))]).unwrap();
        }
        return;
    }
    let directory = tempdir().unwrap();
    let children = ["p1", "p2"].map(|name| start_child(test, name, directory.path()));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let found = texts(&quick(directory.path()).get("c").unwrap());
    for name in ["p1", "p2"] {
        let whole = format!("{name} ").repeat(10_000);
        assert_eq!(found.iter().filter(|text| **text == whole).count(), 200);
    }
    assert_eq!(found.len(), 400);
}

/// Adds, reads and clears of many conversations at once, from inside each other's way: nothing waits for ever.
#[test]
fn many_conversations_at_once_do_not_lock_up() {
    let directory = tempdir().unwrap();
    let memory =
        FileChatMemory::builder(directory.path()).durability(Durability::Process).max_open_files(8).open().unwrap();
    thread::scope(|scope| {
        for worker in 0..16 {
            let memory = &memory;
            scope.spawn(move || {
                for number in 0..100 {
                    let id = format!("k{number}");
                    memory.add(&id, &[Message::user("x")]).unwrap();
                    memory.get(&format!("k{worker}")).unwrap();
                    memory.repair(&id, chat_memory::Repair::DryRun).unwrap();
                    memory.clear(&id).unwrap();
                }
            });
        }
    });
    assert!(memory.conversations_in_use() <= 8);
    // Calling the memory again for each message of a list: no lock is held any more.
    memory.add("list", &[Message::user("a"), Message::user("b")]).unwrap();
    for message in memory.get("list").unwrap() {
        memory.add("list", &[message]).unwrap();
    }
    assert_eq!(texts(&memory.get("list").unwrap()), ["a", "b", "a", "b"]);
}

#[test]
fn a_clear_beside_adds_is_one_or_the_other() {
    let directory = tempdir().unwrap();
    let stores = [quick(directory.path()), quick(directory.path())];
    thread::scope(|scope| {
        for store in &stores {
            scope.spawn(move || {
                for number in 0..300 {
                    store.add("c", &[Message::user(format!("{number}")), Message::assistant("yes")]).unwrap();
                    let found = store.get("c").unwrap();
                    // Batches stay whole: question and answer alternate.
                    for pair in found.chunks(2) {
                        assert_eq!(pair[1].text(), "yes");
                    }
                    if number % 7 == 0 {
                        store.clear("c").unwrap();
                    }
                }
            });
        }
    });
    stores[0].clear("c").unwrap();
    assert_eq!(stores[1].get("c").unwrap(), []);
}
