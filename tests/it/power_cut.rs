//! What was acknowledged survives: the power is cut, or the process killed, at every operation of short scripts.

use std::path::Path;
use std::sync::Arc;

use chat_memory::{ChatMemory, Durability, Error, FileChatMemory, Message, Recovery, Repair};

use crate::sim_disk::{Image, SimDisk, Trouble};

const ROOT: &str = "/store";
const ID: &str = "a conversation";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Add,
    Batch,
    Long,
    Clear,
    Reopen,
    Repair,
}

fn open(disk: &SimDisk, durability: Durability) -> FileChatMemory {
    FileChatMemory::builder(ROOT).durability(durability).disk(Arc::new(disk.clone())).open().unwrap()
}

/// What a conversation may hold after a crash.
#[derive(Debug, Clone, Default)]
struct Acknowledged {
    /// What was acknowledged.
    messages: Vec<Message>,
    /// What the step in flight would have left.
    in_flight: Option<Vec<Message>>,
    /// The conversation's first frame is in flight.
    in_creation: bool,
}

/// Runs a script until it ends or a step fails.
fn run(disk: &SimDisk, script: &[Step], durability: Durability) -> Acknowledged {
    let mut memory = open(disk, durability);
    let mut known = Acknowledged::default();
    let mut number = 0;
    for step in script {
        let batch = match step {
            Step::Add => 1,
            Step::Batch => 3,
            Step::Long => 1,
            _ => 0,
        };
        let batch: Vec<Message> = (0..batch)
            .map(|_| {
                number += 1;
                let filler = if *step == Step::Long { "long ".repeat(400) } else { String::new() };
                Message::user(format!("message {number} {filler}"))
            })
            .collect();
        let after = match step {
            Step::Add | Step::Batch | Step::Long => [&known.messages[..], &batch[..]].concat(),
            Step::Clear => Vec::new(),
            Step::Reopen | Step::Repair => known.messages.clone(),
        };
        let result = match step {
            Step::Add | Step::Batch | Step::Long => memory.add(ID, &batch),
            Step::Clear => memory.clear(ID),
            Step::Repair => memory.repair(ID, Repair::Apply).map(drop),
            Step::Reopen => {
                memory = open(disk, durability);
                Ok(())
            }
        };
        match result {
            Ok(()) => known.messages = after,
            Err(_) => {
                known.in_creation = known.messages.is_empty();
                known.in_flight = Some(after);
                return known;
            }
        }
    }
    known
}

/// After a crash: the acknowledged messages, and at most what was in flight; and the conversation goes on.
fn check(image: &Image, known: &Acknowledged, context: &dyn Fn() -> String) {
    let disk = SimDisk::with_image(image);
    let memory = open(&disk, Durability::Disk);
    let found = match memory.get(ID) {
        Ok(found) => found,
        // A creation in flight may leave zeros, which nobody can tell from damage.
        Err(Error::Corrupt { .. }) if known.in_creation => Vec::new(),
        Err(error) => panic!("{error:?}\n{}", context()),
    };
    let allowed = found == known.messages || known.in_flight.as_ref().is_some_and(|messages| found == *messages);
    assert!(allowed, "found {found:?}\nknown {known:?}\n{}", context());

    // It goes on from there, and what was set aside does not come back.
    let next = Message::assistant("after the crash");
    memory.add(ID, std::slice::from_ref(&next)).unwrap();
    let expected = [&found[..], std::slice::from_ref(&next)].concat();
    assert_eq!(memory.get(ID).unwrap(), expected, "{}", context());
    let memory = open(&disk, Durability::Disk);
    assert_eq!(memory.get(ID).unwrap(), expected, "{}", context());
    assert!(memory.repair(ID, Repair::DryRun).unwrap().damage.is_empty(), "{}", context());
    memory.clear(ID).unwrap();
    assert!(disk.live().keys().all(|path| path.parent() != Some(Path::new(ROOT))), "{:?}", disk.live().keys());
}

fn scripts() -> Vec<Vec<Step>> {
    use Step::*;
    let mut scripts = Vec::new();
    let steps = [Add, Batch, Long, Clear, Reopen, Repair];
    for first in steps {
        for second in steps {
            scripts.push(vec![first, second]);
            for third in [Add, Clear] {
                scripts.push(vec![first, second, third]);
            }
        }
    }
    scripts
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_at_every_operation() {
    let mut states = 0;
    for script in scripts() {
        for at in 0.. {
            let disk = SimDisk::default();
            disk.trouble(Trouble::PowerCut { at });
            let known = run(&disk, &script, Durability::Disk);
            let images = disk.after_power_cut();
            states += images.len();
            for image in &images {
                check(image, &known, &|| format!("{script:?}, power cut at {at}, {:?}", sizes(image)));
            }
            if disk.operations() <= at {
                break; // the script came to its end
            }
        }
    }
    println!("{states} states after a power cut");
    assert!(states > 10_000, "{states}");
}

#[test]
fn what_was_acknowledged_survives_a_kill_at_every_operation() {
    for durability in [Durability::Disk, Durability::Process] {
        for script in scripts() {
            for at in 0.. {
                let disk = SimDisk::default();
                disk.trouble(Trouble::PowerCut { at });
                let known = run(&disk, &script, durability);
                for image in &disk.after_kill() {
                    check(image, &known, &|| format!("{script:?} {durability:?}, killed at {at}, {:?}", sizes(image)));
                }
                if disk.operations() <= at {
                    break;
                }
            }
        }
    }
}

/// A second power cut while the first one's traces are being mended.
#[test]
fn what_was_acknowledged_survives_a_second_power_cut_during_recovery() {
    use Step::*;
    let mut states = 0;
    for script in [vec![Add, Add], vec![Add, Long], vec![Add, Clear], vec![Long, Reopen, Batch]] {
        for at in 0.. {
            let disk = SimDisk::default();
            disk.trouble(Trouble::PowerCut { at });
            let known = run(&disk, &script, Durability::Disk);
            // Some of the images: those of a cut anywhere look much alike.
            for image in disk.after_power_cut().iter().step_by(41) {
                states += second_cut(image, &known, &script);
            }
            if disk.operations() <= at {
                break;
            }
        }
    }
    println!("{states} states after a second power cut");
    assert!(states > 10_000, "{states}");
}

fn second_cut(image: &Image, known: &Acknowledged, script: &[Step]) -> usize {
    let mut states = 0;
    for at in 0.. {
        let disk = SimDisk::with_image(image);
        let memory = open(&disk, Durability::Disk);
        let found = match memory.get(ID) {
            Ok(found) => found,
            Err(Error::Corrupt { .. }) if known.in_creation => Vec::new(),
            Err(error) => panic!("{error:?} {script:?}"),
        };
        disk.trouble(Trouble::PowerCut { at });
        let next = Message::assistant("after the crash");
        let added = memory.add(ID, std::slice::from_ref(&next)).is_ok();
        let after = [&found[..], &[next]].concat();
        let known = match added {
            true => Acknowledged { messages: after, ..Acknowledged::default() },
            false => Acknowledged { in_creation: found.is_empty(), messages: found, in_flight: Some(after) },
        };
        for image in disk.after_power_cut() {
            states += 1;
            check(&image, &known, &|| format!("{script:?}, second cut at {at}, {:?}", sizes(&image)));
        }
        if disk.operations() <= at {
            return states;
        }
    }
    unreachable!()
}

fn sizes(image: &Image) -> Vec<(String, usize)> {
    image.iter().map(|(path, bytes)| (path.display().to_string(), bytes.len())).collect()
}

#[test]
fn a_failing_disk_leaves_the_conversation_as_it_was() {
    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;
    let one = [Message::user("one")];
    let two = [Message::user("two"), Message::assistant("2")];
    for before in [&[][..], &one] {
        for (errno, short) in [(EIO, false), (ENOSPC, false), (ENOSPC, true)] {
            for at in 0.. {
                let disk = SimDisk::default();
                let memory = open(&disk, Durability::Disk);
                if !before.is_empty() {
                    memory.add(ID, before).unwrap();
                }
                disk.take_log();
                disk.trouble(Trouble::Fails { at, errno, short, for_good: false });
                let added = memory.add(ID, &two);
                let context = format!("{before:?} {errno} {short} at {at}");
                if disk.operations() <= at {
                    added.unwrap();
                    break;
                }
                let stored = [before, &two].concat();
                if added.is_ok() {
                    // What failed was the space ahead, which nobody needs.
                    assert_eq!(disk.take_log().iter().filter(|line| line.starts_with("write")).count(), 2, "{context}");
                    assert_eq!(memory.get(ID).unwrap(), stored, "{context}");
                    continue;
                }
                // One failure can always be undone: nothing was stored, and the next try works.
                assert!(matches!(added, Err(Error::Io { .. })), "{added:?} {context}");
                assert_eq!(memory.get(ID).unwrap(), before, "{context}");
                for image in disk.after_power_cut() {
                    let known =
                        Acknowledged { messages: before.to_vec(), in_flight: None, in_creation: before.is_empty() };
                    check(&image, &known, &|| context.clone());
                }
                memory.add(ID, &two).unwrap();
                assert_eq!(memory.get(ID).unwrap(), stored, "{context}");
            }
        }
    }
}

#[test]
fn a_failed_write_that_cannot_be_taken_back_takes_the_conversation_out_of_use() {
    let disk = SimDisk::default();
    let memory = open(&disk, Durability::Disk);
    let one = [Message::user("one")];
    memory.add(ID, &one).unwrap();
    memory.add("another", &one).unwrap();
    // The write fails half-way, and so does everything after it.
    disk.trouble(Trouble::Fails { at: 0, errno: 5, short: true, for_good: true });
    assert!(matches!(memory.add(ID, &one), Err(Error::Poisoned { .. })));
    disk.no_trouble();
    assert!(matches!(memory.add(ID, &one), Err(Error::Poisoned { .. })));
    assert!(matches!(memory.get(ID), Err(Error::Poisoned { .. })));
    // The others go on, and this one after the store was opened again, or the conversation cleared.
    memory.add("another", &one).unwrap();
    assert_eq!(open(&disk, Durability::Disk).get(ID).unwrap(), one);
    memory.clear(ID).unwrap();
    assert_eq!(memory.get(ID).unwrap(), []);
    memory.add(ID, &one).unwrap();
    assert_eq!(memory.get(ID).unwrap(), one);
}

#[test]
fn a_read_error_is_an_error_and_never_an_empty_list() {
    let disk = SimDisk::default();
    let memory = open(&disk, Durability::Disk);
    let one = [Message::user("one")];
    memory.add(ID, &one).unwrap();
    for memory in [memory, open(&disk, Durability::Disk)] {
        disk.reads_fail(true);
        assert!(matches!(memory.get(ID), Err(Error::Io { .. })));
        assert!(matches!(memory.add(ID, &one), Err(Error::Io { .. })));
        disk.reads_fail(false);
        assert_eq!(memory.get(ID).unwrap(), one);
    }
}

#[test]
fn disk_durability_syncs_data_before_it_acknowledges_and_names_before_the_first_byte() {
    let disk = SimDisk::default();
    let memory = open(&disk, Durability::Disk);
    let file = memory.path(ID);
    let name = file.file_name().unwrap().to_str().unwrap();
    let one = [Message::user("one")];
    memory.add(ID, &one).unwrap();
    // The second write is of space ahead.
    let create = ["create", "sync-names", "sync-names", "write", "write", "sync"];
    let verbs = |disk: &SimDisk| -> Vec<String> {
        disk.take_log().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(verbs(&disk), create);
    memory.add(ID, &one).unwrap();
    assert_eq!(disk.take_log(), [format!("write {name}"), format!("sync {name}")]);

    // A repair that rewrites: what was damaged is durable beside it, the new file is durable, then it takes the name.
    disk.tamper(&file, |bytes| bytes[100] ^= 1);
    memory.repair(ID, Repair::Apply).unwrap();
    let repair = [
        "create",
        "truncate",
        "write",
        "sync",
        "sync-names",
        "create",
        "write",
        "write",
        "sync",
        "rename",
        "sync-names",
    ];
    assert_eq!(verbs(&disk), repair);

    // A file that a `Process` store made is not known to have a durable name.
    open(&disk, Durability::Process).add("other", &one).unwrap();
    assert_eq!(verbs(&disk), ["create", "write"]);
    memory.add("other", &one).unwrap();
    assert_eq!(verbs(&disk), ["sync-names", "write", "write", "sync"]);
    memory.add("other", &one).unwrap();
    assert_eq!(verbs(&disk), ["write", "sync"]);

    memory.clear(ID).unwrap();
    assert_eq!(verbs(&disk), ["remove", "remove", "sync-names"]);
    memory.clear("never seen").unwrap();
    assert_eq!(verbs(&disk), ["sync-names"]);
}

#[test]
fn strict_recovery_refuses_a_damaged_end_and_mends_it_when_asked() {
    let disk = SimDisk::default();
    let one = [Message::user("one")];
    // Without space written ahead, so that the last bytes are the last message's.
    let memory = open(&disk, Durability::Process);
    memory.add(ID, &one).unwrap();
    memory.add(ID, &one).unwrap();
    disk.tamper(&memory.path(ID), |bytes| {
        let at = bytes.len() - 20;
        bytes[at] ^= 1;
    });
    let strict = FileChatMemory::builder(ROOT).recovery(Recovery::Strict).disk(Arc::new(disk.clone())).open().unwrap();
    assert!(strict.get(ID).unwrap_err().is_corrupt());
    assert!(strict.add(ID, &one).unwrap_err().is_corrupt());
    assert_eq!(strict.repair(ID, Repair::Apply).unwrap().set_aside.len(), 1);
    assert_eq!(strict.get(ID).unwrap(), one);
    assert!(strict.repair(ID, Repair::Apply).unwrap().damage.is_empty());
}

#[test]
fn an_add_after_a_repair_whose_directory_sync_failed_survives_a_power_cut() {
    let disk = SimDisk::default();
    let memory = FileChatMemory::builder("/store").disk(Arc::new(disk.clone())).open().unwrap();
    for text in ["one", "two", "three"] {
        memory.add(ID, &[Message::user(text)]).unwrap();
    }
    disk.tamper(&memory.path(ID), |bytes| bytes[160] ^= 1);
    disk.trouble(Trouble::Fails { at: 11, errno: 5, short: false, for_good: false });
    memory.repair(ID, Repair::Apply).unwrap_err();
    disk.no_trouble();
    memory.add(ID, &[Message::user("acknowledged")]).unwrap();
    for image in disk.after_power_cut() {
        let disk = SimDisk::with_image(&image);
        let memory = FileChatMemory::builder("/store").disk(Arc::new(disk)).open().unwrap();
        let found = crate::support::texts(&memory.get(ID).unwrap());
        assert!(found.contains(&"acknowledged".to_owned()), "{found:?}");
    }
}

/// Several threads add while another store holds the conversation's lock, so that all but the first wait as one group.
fn add_in_groups(disk: &SimDisk, memory: &FileChatMemory, trouble: Trouble) -> Vec<(Message, bool)> {
    use chat_memory::disk::{Disk, Lock, Open};
    let other = disk.open(&memory.path(ID), Open::Write).unwrap();
    other.lock(Lock::Exclusive).unwrap();
    disk.trouble(trouble);
    let messages: Vec<Message> = (0..6).map(|number| Message::user(format!("grouped {number}"))).collect();
    let results = std::thread::scope(|scope| {
        let adds: Vec<_> = messages
            .iter()
            .map(|message| {
                let add = scope.spawn(move || memory.add(ID, std::slice::from_ref(message)).is_ok());
                std::thread::sleep(std::time::Duration::from_millis(80));
                add
            })
            .collect();
        other.unlock().unwrap();
        adds.into_iter().map(|add| add.join().unwrap()).collect::<Vec<_>>()
    });
    messages.into_iter().zip(results).collect()
}

#[test]
fn adds_that_wait_together_are_synced_together_and_survive_a_power_cut() {
    let before = [Message::user("before")];
    for at in 0..6 {
        let disk = SimDisk::default();
        let memory = open(&disk, Durability::Disk);
        memory.add(ID, &before).unwrap();
        disk.take_log();
        let added = add_in_groups(&disk, &memory, Trouble::PowerCut { at });
        if at == 5 {
            // No trouble came: the first alone, and the five that waited for it in one write and one sync.
            assert!(added.iter().all(|(_, ok)| *ok));
            let syncs = disk.take_log().iter().filter(|line| line.starts_with("sync ")).count();
            assert_eq!(syncs, 2);
        }
        for image in disk.after_power_cut() {
            let disk = SimDisk::with_image(&image);
            let found = open(&disk, Durability::Disk).get(ID).unwrap();
            // Everything acknowledged is there, and what waited together is there together.
            for (message, _) in added.iter().filter(|(_, ok)| *ok) {
                assert!(found.contains(message), "cut at {at}");
            }
            assert!([1, 2, 7].contains(&found.len()), "cut at {at}: {}", found.len());
        }
    }
}

#[test]
fn a_failed_sync_reaches_everyone_who_waited_for_it() {
    let before = [Message::user("before")];
    // The first add's write and sync, then the group's write and sync.
    for (at, stored) in [(0, 6), (1, 6), (2, 2), (3, 2)] {
        let disk = SimDisk::default();
        let memory = open(&disk, Durability::Disk);
        memory.add(ID, &before).unwrap();
        let added = add_in_groups(&disk, &memory, Trouble::Fails { at, errno: 5, short: true, for_good: false });
        let failed = added.iter().filter(|(_, ok)| !ok).count();
        assert_eq!(failed, 7 - stored, "failure at {at}");
        let expected: Vec<&Message> = added.iter().filter(|(_, ok)| *ok).map(|(message, _)| message).collect();
        let found = memory.get(ID).unwrap();
        let mut found: Vec<&Message> = found.iter().skip(1).collect();
        found.sort_by_key(|message| message.text().into_owned());
        assert_eq!(found, expected, "failure at {at}");
    }
}

#[test]
fn space_written_ahead_is_part_of_no_message_and_outlives_another_store() {
    let disk = SimDisk::default();
    let (one, two) = (open(&disk, Durability::Disk), open(&disk, Durability::Process));
    let mut expected = Vec::new();
    for number in 0..60 {
        let batch = [Message::user(format!("{number} {}", "x".repeat(number * 40)))];
        let store = if number % 3 == 0 { &two } else { &one };
        store.add(ID, &batch).unwrap();
        expected.extend(batch);
        assert_eq!(one.get(ID).unwrap(), expected);
        assert_eq!(two.get(ID).unwrap(), expected);
    }
    let bytes = &disk.live()[&one.path(ID)];
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    assert!(zeros > 0, "no space is left ahead at this moment");
    assert_eq!(open(&disk, Durability::Disk).get(ID).unwrap(), expected);
}
