//! What the order of operations is for: single power cuts and failures that were worth a test of their own.

use std::sync::Arc;

use chat_memory::{ChatHistory, ChatMemory, Durability, Error, FileChatMemory, Message, Recovery, Repair};

use crate::sim_disk::{SimDisk, Trouble};

const ROOT: &str = "/store";
const ID: &str = "a conversation";

fn open(disk: &SimDisk, durability: Durability) -> FileChatMemory {
    FileChatMemory::builder(ROOT).durability(durability).disk(Arc::new(disk.clone())).open().unwrap()
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
                let add = scope.spawn(move || memory.add(ID, std::slice::from_ref(message)));
                std::thread::sleep(std::time::Duration::from_millis(80));
                add
            })
            .collect();
        other.unlock().unwrap();
        // A thread that panicked acknowledged nothing.
        adds.into_iter().map(|add| matches!(add.join(), Ok(Ok(())))).collect::<Vec<_>>()
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

/// Who waits for a thread that panics while it writes for several is told that nobody knows what became of it, and waits no longer.
#[test]
fn a_panic_of_whoever_writes_for_several_leaves_nobody_waiting_and_loses_nothing() {
    let before = [Message::user("before")];
    // The first add's write and sync, then the group's write and sync.
    for at in 0..4 {
        let disk = SimDisk::default();
        let memory = open(&disk, Durability::Disk);
        memory.add(ID, &before).unwrap();
        let added = add_in_groups(&disk, &memory, Trouble::Panics { at });
        let failed = added.iter().filter(|(_, ok)| !ok).count();
        assert_eq!(failed, if at < 2 { 1 } else { 5 }, "panic at {at}");
        let again = [Message::user("again")];
        memory.add(ID, &again).unwrap();
        for memory in [&memory, &open(&disk, Durability::Disk)] {
            let found = memory.get(ID).unwrap();
            assert!(found.starts_with(&before) && found.ends_with(&again), "panic at {at}");
            for (message, _) in added.iter().filter(|(_, ok)| *ok) {
                assert!(found.contains(message), "panic at {at}");
            }
        }
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

#[test]
fn a_clear_that_could_not_remove_the_file_says_so() {
    let disk = SimDisk::default();
    let memory = open(&disk, Durability::Disk);
    let one = [Message::user("one")];
    memory.add(ID, &one).unwrap();
    disk.trouble(Trouble::Fails { at: 0, errno: 5, short: false, for_good: false });
    assert!(matches!(memory.clear(ID), Err(Error::Io { .. })));
    assert_eq!(memory.get(ID).unwrap(), one);
    memory.clear(ID).unwrap();
    assert_eq!(memory.get(ID).unwrap(), []);
}

#[test]
fn a_conversation_that_was_just_used_is_kept_open_and_one_that_is_not_there_is_not() {
    let disk = SimDisk::default();
    let memory = open(&disk, Durability::Disk);
    memory.get("unknown").unwrap();
    assert_eq!(memory.conversations_in_use(), 0);
    memory.add(ID, &[Message::user("one")]).unwrap();
    assert_eq!(memory.conversations_in_use(), 1);
    memory.clear(ID).unwrap();
    assert_eq!(memory.conversations_in_use(), 0);
}

/// What was not synced before a sync that failed, and was written by somebody who had not promised that it survives.
#[test]
fn a_failed_sync_does_not_cost_what_was_written_before() {
    let by_a_store_that_does_not_sync = |disk: &SimDisk| {
        let memory = open(disk, Durability::Process);
        memory.add(ID, &[Message::user("x".repeat(5_000))]).unwrap();
        memory.add(ID, &[Message::user("y".repeat(5_000))]).unwrap();
    };
    let killed_before_its_sync = |disk: &SimDisk| {
        let memory = open(disk, Durability::Disk);
        memory.add(ID, &[Message::user("x".repeat(9_000))]).unwrap();
        disk.trouble(Trouble::PowerCut { at: 1 });
        memory.add(ID, &[Message::user("y".repeat(9_000))]).unwrap_err();
    };
    let before_a_torn_end = |disk: &SimDisk| {
        by_a_store_that_does_not_sync(disk);
        disk.append_unsynced(&open(disk, Durability::Process).path(ID), b"torn");
    };
    type Write<'a> = &'a dyn Fn(&SimDisk);
    let written: [(Write<'_>, &str); 3] = [
        (&by_a_store_that_does_not_sync, "by a store that does not sync"),
        (&killed_before_its_sync, "killed before its sync"),
        (&before_a_torn_end, "before a torn end"),
    ];
    for (write, how) in written {
        let mut failed_syncs = 0;
        for at in 0.. {
            let disk = SimDisk::default();
            write(&disk);
            disk.no_trouble();
            let memory = open(&disk, Durability::Disk);
            disk.take_log();
            disk.trouble(Trouble::Fails { at, errno: 5, short: false, for_good: false });
            let failed = memory.add(ID, &[Message::user("fails")]);
            let log = disk.take_log();
            disk.no_trouble();
            let Some(operation) = log.get(at) else { break };
            failed_syncs += usize::from(operation.starts_with("sync ") && failed.is_err());
            memory.add(ID, &[Message::user("acknowledged")]).unwrap();
            let seen = memory.get(ID).unwrap();
            for image in disk.after_power_cut() {
                let memory = open(&SimDisk::with_image(&image), Durability::Disk);
                assert_eq!(memory.get(ID).unwrap(), seen, "{how}, {operation} failed");
                assert_eq!(memory.verify(ID).unwrap().damage, [], "{how}, {operation} failed");
            }
        }
        assert!(failed_syncs > 0, "{how}");
    }
}
