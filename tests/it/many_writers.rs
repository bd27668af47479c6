//! Threads and processes on the same conversations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chat_memory::{
    ChatHistory, ChatMemory, Durability, FileChatMemory, InMemoryChatMemory, Message, PageRequest, Window,
};
use tempfile::tempdir;

use crate::support::{child_part, full_mode, quick, start_child, texts};

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

/// 64 threads add a thousand times each, to one conversation, to eight, and each to its own at every turn.
#[test]
fn sixty_four_threads_lose_nothing_on_one_conversation_or_on_many() {
    const THREADS: usize = 64;
    const ADDS: usize = 1_000;
    for conversations in [1, 8, 1_000] {
        let directory = tempdir().unwrap();
        let memory = quick(directory.path());
        thread::scope(|scope| {
            for writer in 0..THREADS {
                let memory = &memory;
                scope.spawn(move || {
                    for number in 0..ADDS {
                        let id = (writer * 7 + number) % conversations;
                        memory.add(&id.to_string(), &[Message::user(format!("{writer}-{number}"))]).unwrap();
                    }
                });
            }
        });
        let fresh = quick(directory.path());
        let mut seen = [0; THREADS];
        for id in 0..conversations {
            let found = texts(&memory.get(&id.to_string()).unwrap());
            assert_eq!(found, texts(&fresh.get(&id.to_string()).unwrap()));
            let mut last = [None; THREADS];
            for line in &found {
                let (writer, number) = line.split_once('-').unwrap();
                let (writer, number): (usize, usize) = (writer.parse().unwrap(), number.parse().unwrap());
                assert!(last[writer] < Some(number), "{line} is out of its writer's order, or there twice");
                last[writer] = Some(number);
                seen[writer] += 1;
            }
        }
        assert_eq!(seen, [ADDS; THREADS]);
    }
}

#[test]
fn ids_that_are_asked_for_and_never_added_to_leave_no_slot_and_no_file_behind() {
    // A million in all, or a tenth of that.
    let each = if full_mode() { 250_000 } else { 25_000 };
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    thread::scope(|scope| {
        for thread in 0..4 {
            let memory = &memory;
            scope.spawn(move || {
                for number in 0..each {
                    assert_eq!(memory.get(&format!("{thread} {number}")).unwrap(), []);
                }
            });
        }
    });
    assert_eq!(memory.conversations_in_use(), 0);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn ids_that_are_added_to_keep_no_more_files_open_than_allowed() {
    const THREADS: usize = 4;
    const OPEN_FILES: usize = 64;
    // A million in all, or 20,000.
    let each = if full_mode() { 250_000 } else { 5_000 };
    let directory = tempdir().unwrap();
    let memory = FileChatMemory::builder(directory.path())
        .durability(Durability::Process)
        .max_open_files(OPEN_FILES)
        .open()
        .unwrap();
    let open_files = || {
        let handles = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let files = handles.filter_map(|handle| std::fs::read_link(handle.path()).ok());
        files.filter(|file| file.starts_with(directory.path())).count()
    };
    let most = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (memory, open_files, most) = (&memory, &open_files, &most);
            scope.spawn(move || {
                for number in 0..each {
                    memory.add(&format!("{thread} {number}"), &[Message::user("one")]).unwrap();
                    if number % 100 == 0 {
                        most.fetch_max(open_files(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let most = most.into_inner();
    println!("{most} files open at the most");
    // Each thread may have one beyond.
    assert!((OPEN_FILES / 2..=OPEN_FILES + THREADS).contains(&most), "{most}");
    assert!(open_files() <= OPEN_FILES && memory.conversations_in_use() <= OPEN_FILES);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), THREADS * each);
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
                    if number % 10 == 0 {
                        memory.conversations(&PageRequest::first(5)).unwrap();
                    }
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
    for item in memory.conversations(&PageRequest::first(5)).unwrap().items {
        memory.add(&item.id, &[Message::user("from inside a listing")]).unwrap();
    }
    assert_eq!(memory.get("list").unwrap().len(), 5);
}

/// Two stores on one directory take turns at random: what one keeps in memory is never shown when the other has changed it.
#[test]
fn what_is_kept_in_memory_is_never_out_of_date() {
    for (seed, durability) in [(1, Durability::Process), (2, Durability::Disk), (3, Durability::Process)] {
        let directory = tempdir().unwrap();
        let store = |window: usize| {
            let builder = FileChatMemory::builder(directory.path()).durability(durability);
            builder.max_messages(window).window_step(1 + window % 3).open().unwrap()
        };
        let stores = [(5, store(5)), (20, store(20)), (3, store(3))];
        let mut model: Vec<Message> = Vec::new();
        let mut random = seed as u64;
        for number in 0..400 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (window, store) = &stores[(random >> 40) as usize % 3];
            match (random >> 50) % 16 {
                0 => {
                    store.clear("c").unwrap();
                    model.clear();
                }
                1 => assert!(store.repair("c", chat_memory::Repair::Apply).unwrap().damage.is_empty()),
                2..=7 => {
                    let batch: Vec<Message> = (0..1 + (random >> 55) % 4)
                        .map(|part| match (number + part) % 5 {
                            0 => Message::system(format!("s {number}.{part}")),
                            1 | 2 => Message::user(format!("u {number}.{part}")),
                            // Some are too large to be kept.
                            _ => Message::assistant(format!(
                                "a {number}.{part} {}",
                                "x".repeat((random >> 33) as usize % 90_000)
                            )),
                        })
                        .collect();
                    store.add("c", &batch).unwrap();
                    model.extend(batch);
                }
                _ => {}
            }
            let expected = Window::messages(*window).with_step(1 + window % 3).view(&model);
            assert!(store.get("c").unwrap() == expected, "step {number} with a window of {window}");
        }
    }
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

/// What a backup by hard links, or an operator who moves files about, must not lead to.
#[cfg(unix)]
mod other_names {
    use super::*;
    use std::fs;

    const ID: &str = "c";
    const HEADER: usize = 60 + ID.len();

    #[test]
    fn a_clear_is_seen_beside_a_hard_linked_backup() {
        let directory = tempdir().unwrap();
        let (one, two) = (quick(directory.path()), quick(directory.path()));
        one.add(ID, &[Message::user("secret")]).unwrap();
        two.get(ID).unwrap();
        fs::hard_link(one.path(ID), directory.path().join("backup")).unwrap();
        one.clear(ID).unwrap();
        let after_clear = texts(&two.get(ID).unwrap());
        two.add(ID, &[Message::user("acknowledged")]).unwrap();
        let seen = texts(&one.get(ID).unwrap());
        assert_eq!((after_clear, seen), (vec![], vec!["acknowledged".to_owned()]));
    }

    #[test]
    fn a_repair_is_seen_beside_a_hard_linked_backup() {
        let directory = tempdir().unwrap();
        let (one, two) = (quick(directory.path()), quick(directory.path()));
        for text in ["a", "b", "c"] {
            one.add(ID, &[Message::user(text)]).unwrap();
        }
        two.get(ID).unwrap();
        let path = one.path(ID);
        fs::hard_link(&path, directory.path().join("backup")).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_at(&file, b"\0", (HEADER + 80) as u64).unwrap();
        one.repair(ID, chat_memory::Repair::Apply).unwrap();
        two.add(ID, &[Message::user("acknowledged")]).unwrap();
        assert_eq!(texts(&one.get(ID).unwrap()), ["b", "c", "acknowledged"]);
    }

    #[test]
    fn a_file_that_was_moved_away_is_not_written_to() {
        let directory = tempdir().unwrap();
        let one = quick(directory.path());
        one.add(ID, &[Message::user("old")]).unwrap();
        fs::rename(one.path(ID), directory.path().join("moved")).unwrap();
        one.add(ID, &[Message::user("acknowledged")]).unwrap();
        assert_eq!(texts(&quick(directory.path()).get(ID).unwrap()), ["acknowledged"]);
    }
}

/// Without a pause the writer would wait until the readers stop, after ten seconds.
#[test]
fn readers_that_overlap_do_not_keep_the_writer_of_another_store_out() {
    let directory = tempdir().unwrap();
    let (one, two) = (quick(directory.path()), quick(directory.path()));
    let batch: Vec<Message> = (0..2_000).map(|n| Message::user(format!("line {n}"))).collect();
    one.add("c", &batch).unwrap();
    let stop = AtomicBool::new(false);
    let waited = thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    one.get("c").unwrap();
                }
            });
        }
        let guard = scope.spawn(|| {
            for _ in 0..100 {
                thread::sleep(Duration::from_millis(100));
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        thread::sleep(Duration::from_millis(200));
        let start = Instant::now();
        two.add("c", &[Message::user("x")]).unwrap();
        let waited = start.elapsed();
        stop.store(true, Ordering::Relaxed);
        guard.join().unwrap();
        waited
    });
    assert!(waited < Duration::from_secs(5), "{waited:?}");
}

#[test]
fn open_files_are_bounded_again_after_a_burst() {
    let directory = tempdir().unwrap();
    let barrier = Arc::new(std::sync::Barrier::new(32));
    let waits = Arc::clone(&barrier);
    let window = chat_memory::Window::tokens(1, move |message: &Message| {
        if message.text() == "wait" {
            waits.wait();
        }
        1
    });
    let memory = FileChatMemory::builder(directory.path())
        .durability(chat_memory::Durability::Process)
        .window(window)
        .max_open_files(4)
        .open()
        .unwrap();
    for n in 0..32 {
        memory.add(&format!("c{n}"), &[Message::assistant("wait")]).unwrap();
    }
    thread::scope(|scope| {
        for n in 0..32 {
            let memory = &memory;
            scope.spawn(move || memory.get(&format!("c{n}")).unwrap());
        }
    });
    assert!(memory.conversations_in_use() <= 4, "{}", memory.conversations_in_use());
}

/// Two processes that sync each add and write space ahead, and one that does not, with readers beside them.
#[test]
fn processes_of_both_durabilities_share_a_conversation() {
    let test = "many_writers::processes_of_both_durabilities_share_a_conversation";
    if let Some((name, directory)) = child_part() {
        let durability = if name == "p3" { Durability::Process } else { Durability::Disk };
        let builder = FileChatMemory::builder(&directory).durability(durability);
        let (memory, windowed) = (builder.clone().open().unwrap(), builder.max_messages(5).open().unwrap());
        thread::scope(|scope| {
            for writer in ["a", "b"] {
                let (memory, windowed, name) = (&memory, &windowed, &name);
                scope.spawn(move || {
                    for number in 0..40 {
                        memory.add("c", &[Message::user(format!("{name}{writer}-{number}"))]).unwrap();
                        assert!(windowed.get("c").unwrap().len() <= 5);
                    }
                });
            }
        });
        return;
    }
    let directory = tempdir().unwrap();
    let children = ["p1", "p2", "p3"].map(|name| start_child(test, name, directory.path()));
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let found = texts(&quick(directory.path()).get("c").unwrap());
    check_lines(&found, &["p1a", "p1b", "p2a", "p2b", "p3a", "p3b"], 40);
}
