//! A store at work: what it remembers of a file, and keeps of its messages, is never taken for what is there.

use std::fs;
use std::path::Path;

use chat_memory::{
    ChatHistory, ChatMemory, DamageKind, Durability, FileChatMemory, HistoryRange, Message, Repair, Role, Window,
};
use tempfile::tempdir;

use crate::support::{quick, texts};

fn windowed(directory: &Path, count: usize) -> FileChatMemory {
    FileChatMemory::builder(directory).durability(Durability::Process).max_messages(count).open().unwrap()
}

#[test]
fn a_message_too_large_to_be_kept_in_memory_is_shown_every_time() {
    let directory = tempdir().unwrap();
    let large = Message::assistant("x".repeat(300 << 10));
    quick(directory.path()).add("c", &[Message::user("q")]).unwrap();
    quick(directory.path()).add("c", std::slice::from_ref(&large)).unwrap();
    let memory = windowed(directory.path(), 10);
    for _ in 0..3 {
        assert_eq!(memory.get("c").unwrap(), [Message::user("q"), large.clone()]);
    }
    memory.add("c", &[Message::user("next")]).unwrap();
    for _ in 0..3 {
        assert_eq!(memory.get("c").unwrap(), [Message::user("q"), large.clone(), Message::user("next")]);
    }
}

#[test]
fn repair_and_verification_look_anew() {
    // (Where a bit is flipped, counted from the start or from the end, and what that is.)
    for (from_start, from_end, kind) in [(Some(30), 0, DamageKind::Header), (None, 14, DamageKind::End)] {
        let directory = tempdir().unwrap();
        let memory = quick(directory.path());
        for text in ["a", "b", "ccccc"] {
            memory.add("c", &[Message::user(text)]).unwrap();
        }
        let path = memory.path("c");
        let mut bytes = fs::read(&path).unwrap();
        let at = from_start.unwrap_or(bytes.len() - from_end);
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        let kinds = |damage: Vec<chat_memory::Damage>| damage.iter().map(|damage| damage.kind).collect::<Vec<_>>();
        assert_eq!(kinds(memory.verify("c").unwrap().damage), [kind]);
        assert_eq!(kinds(memory.repair("c", Repair::DryRun).unwrap().damage), [kind]);
        let report = memory.repair("c", Repair::Apply).unwrap();
        assert_eq!((kinds(report.damage), report.set_aside.len()), (vec![kind], 1));
        for memory in [&memory, &quick(directory.path())] {
            assert!(memory.verify("c").unwrap().damage.is_empty());
            assert_eq!(memory.get("c").unwrap().len(), if kind == DamageKind::End { 2 } else { 3 });
        }
    }
}

/// In a process of its own, for what other tests take would count.
#[cfg(target_os = "linux")]
#[test]
fn what_is_kept_in_memory_is_bounded() {
    let test = "at_work::what_is_kept_in_memory_is_bounded";
    let Some((_, directory)) = crate::support::child_part() else {
        let directory = tempdir().unwrap();
        let output = crate::support::start_child(test, "measure", directory.path()).wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    };
    let resident = || {
        let pages = fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let memory = windowed(&directory, 5);
    let before = resident();
    for number in 0..40 {
        memory.add(&format!("c{number}"), &[Message::user("x".repeat(4 << 20))]).unwrap();
        memory.get(&format!("c{number}")).unwrap();
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 40 << 20, "{grown} bytes kept of 40 conversations");
}

#[test]
fn a_warm_get_of_a_window_reads_a_trailer_and_nothing_more() {
    use crate::sim_disk::SimDisk;
    for durability in [Durability::Process, Durability::Disk] {
        let disk = SimDisk::default();
        let builder = || {
            let builder = FileChatMemory::builder("/store").durability(durability).max_messages(5);
            builder.disk(std::sync::Arc::new(disk.clone())).open().unwrap()
        };
        let memory = builder();
        for number in 0..401 {
            memory.add("c", &[Message::user(format!("{number} {}", "x".repeat(300)))]).unwrap();
        }
        for (memory, cold) in [(memory, false), (builder(), true)] {
            disk.take_counts();
            memory.get("c").unwrap();
            let (read, _) = disk.take_counts();
            // Space written ahead has to be passed over once.
            assert!(if cold { read < 90_000 } else { read < 100 }, "{durability:?}, cold {cold}: {read} bytes");
            memory.get("c").unwrap();
            assert!(disk.take_counts().0 < 100);
        }
    }
}

/// Stores that have been at work beside a fresh one, with clears, harm, crashes' traces and repairs in between.
#[test]
fn stores_at_work_show_what_a_fresh_one_shows() {
    let mut state = 0x1234_5678_8765_4321_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for round in 0..30 {
        let directory = tempdir().unwrap();
        let window = Window::messages(1 + random(12) as usize).with_step(1 + random(4) as usize);
        let durability = if random(2) == 0 { Durability::Disk } else { Durability::Process };
        let builder = || FileChatMemory::builder(directory.path()).durability(durability);
        let fresh = || builder().window(window.clone()).open().unwrap();
        let fresh_whole = || builder().open().unwrap();
        let stores = [fresh(), fresh(), fresh()];
        let wholes = [fresh_whole(), fresh_whole()];
        let path = stores[0].path("c");
        let mut said = 0;
        for operation in 0..60 {
            let context = format!("round {round}, operation {operation}, {window:?}");
            let store = &stores[random(3) as usize];
            let end_of = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            match random(14) {
                0 if random(6) == 0 => store.clear("c").unwrap(),
                1..=5 => {
                    let count = 1 + said % 3;
                    let mut message = || {
                        said += 1;
                        let text = format!("{said} {}", "y".repeat(if random(9) == 0 { 90_000 } else { 5 }));
                        match random(6) {
                            0 => Message::system(text),
                            1..=3 => Message::user(text),
                            _ => Message::assistant(text),
                        }
                    };
                    let batch: Vec<Message> = (0..count).map(|_| message()).collect();
                    store.add("c", &batch).unwrap();
                }
                // Garbage, where the next frame goes.
                6 => {
                    if let Ok(mut bytes) = fs::read(&path)
                        && end_of(&bytes) > 200
                    {
                        bytes.truncate(end_of(&bytes));
                        bytes.extend((0..1 + random(200)).map(|_| random(256) as u8));
                        let zeros = if random(2) == 0 { 4096 } else { 0 };
                        bytes.resize(bytes.len() + zeros, 0);
                        fs::write(&path, bytes).unwrap();
                    }
                }
                7 => {
                    if let Ok(mut bytes) = fs::read(&path)
                        && end_of(&bytes) > 800
                    {
                        let at = 61 + random(end_of(&bytes) as u64 - 61) as usize;
                        bytes[at] ^= 1 << random(8);
                        fs::write(&path, bytes).unwrap();
                        store.repair("c", Repair::Apply).unwrap();
                        assert!(fresh().repair("c", Repair::DryRun).unwrap().damage.is_empty(), "{context}");
                    }
                }
                8 => {
                    let expected = fresh_whole().get("c").unwrap();
                    assert!(wholes.iter().all(|whole| whole.get("c").unwrap() == expected), "{context}");
                }
                9 => {
                    // Over sequence numbers with gaps.
                    let all = fresh_whole().history("c", HistoryRange::all()).unwrap();
                    let (count, seq) = (random(8) as usize, random(1 + said));
                    let last = store.history("c", HistoryRange::last(count)).unwrap();
                    assert!(last == all[all.len().saturating_sub(count)..], "{context}");
                    let from = store.history("c", HistoryRange::first(count).from(seq)).unwrap();
                    assert!(all.iter().filter(|entry| entry.seq >= seq).take(count).eq(from.iter()), "{context}");
                    let past: Vec<_> = all.iter().filter(|entry| entry.seq <= seq).collect();
                    let newest =
                        |wanted: fn(Role) -> bool| past.iter().rev().find(|entry| wanted(entry.message.role()));
                    let newest = |wanted| newest(wanted).map(|entry| entry.message.clone());
                    let selection = window.select(newest(Role::is_system), newest(|role| role == Role::User));
                    let expected = selection.finish_with(past.iter().rev().map(|e| (e.seq, e.message.clone())));
                    assert!(store.view_at("c", seq, &window).unwrap() == expected, "{context}");
                }
                _ => assert!(store.get("c").unwrap() == fresh().get("c").unwrap(), "{context}"),
            }
        }
        assert_eq!(texts(&stores[0].get("c").unwrap()), texts(&fresh().get("c").unwrap()));
    }
}
