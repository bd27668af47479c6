//! Damaged, foreign and hostile files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use chat_memory::{
    ChatHistory, ChatMemory, DamageKind, Durability, Error, FileChatMemory, HistoryRange, Message, PageRequest,
    Recovery, Repair, Window,
};
use tempfile::tempdir;
use tracing_subscriber::layer::SubscriberExt;

use crate::support::{child_part, quick, skip, start_child, texts};

fn numbered(memory: &FileChatMemory, id: &str, count: usize) {
    for number in 0..count {
        memory.add(id, &[Message::user(format!("line {number}"))]).unwrap();
    }
}

fn tamper(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn beside(path: &Path) -> Vec<PathBuf> {
    let mut beside: Vec<PathBuf> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|p| p != path)
        .collect();
    beside.sort();
    beside
}

/// The events that a piece of work logs on this thread: level and fields.
fn events(work: impl FnOnce()) -> Vec<String> {
    use std::cell::RefCell;
    use std::sync::Once;
    thread_local! {
        static TOLD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    }
    struct Events;
    impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Events {
        fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
            struct Line(String);
            impl tracing::field::Visit for Line {
                fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                    self.0.push_str(&format!(" {field}={value:?}"));
                }
            }
            let mut line = Line(event.metadata().level().to_string());
            event.record(&mut line);
            TOLD.with_borrow_mut(|told| told.iter_mut().for_each(|told| told.push(line.0.clone())));
        }
    }
    // One for all threads: those that come and go while others log can make an event go unnoticed.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Events)).unwrap());
    TOLD.set(Some(Vec::new()));
    work();
    TOLD.take().unwrap()
}

#[test]
fn a_torn_end_loses_the_last_message_only_and_one_warning_names_file_and_offset() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    numbered(&memory, "c", 200);
    let path = memory.path("c");
    let whole = fs::metadata(&path).unwrap().len();
    tamper(&path, |bytes| bytes.truncate(bytes.len() - 7));
    let memory = quick(directory.path());
    let mut found = Vec::new();
    let events = events(|| found = memory.get("c").unwrap());
    assert_eq!(found.len(), 199);
    assert_eq!(found.last().unwrap().text(), "line 198");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].starts_with("WARN") && events[0].contains(path.to_str().unwrap()), "{events:?}");
    let offset: u64 = events[0].split("offset=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(offset < whole && offset > whole - 200, "{events:?}");
}

#[test]
fn what_is_added_behind_a_torn_end_is_whole() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("c", &[Message::user("one")]).unwrap();
    memory.add("c", &[Message::user("two")]).unwrap();
    let path = memory.path("c");
    let torn = fs::metadata(&path).unwrap().len() - 5;
    tamper(&path, |bytes| bytes.truncate(torn as usize));
    quick(directory.path()).add("c", &[Message::user("three")]).unwrap();
    for _ in 0..2 {
        assert_eq!(texts(&quick(directory.path()).get("c").unwrap()), ["one", "three"]);
    }
    // The torn bytes were set aside, and go with the conversation.
    assert_eq!(beside(&path).len(), 1);
    assert!(fs::metadata(&beside(&path)[0]).unwrap().len() > 50);
    quick(directory.path()).clear("c").unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_file_of_zeros_is_an_error_for_that_conversation_alone() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    for id in ["a", "b", "c"] {
        memory.add(id, &[Message::user(id)]).unwrap();
    }
    tamper(&memory.path("b"), |bytes| bytes.fill(0));
    for memory in [memory, quick(directory.path())] {
        assert_eq!(texts(&memory.get("a").unwrap()), ["a"]);
        assert_eq!(texts(&memory.get("c").unwrap()), ["c"]);
        let error = memory.get("b").unwrap_err();
        assert!(error.is_corrupt(), "{error:?}");
        assert!(error.to_string().contains(memory.path("b").to_str().unwrap()), "{error}");
    }
    // An add is never stuck: it keeps a copy and begins anew.
    let memory = quick(directory.path());
    memory.add("b", &[Message::user("again")]).unwrap();
    assert_eq!(texts(&memory.get("b").unwrap()), ["again"]);
    let strict = FileChatMemory::builder(directory.path()).recovery(Recovery::Strict).open().unwrap();
    tamper(&memory.path("c"), |bytes| bytes.fill(0));
    assert!(strict.add("c", &[Message::user("x")]).unwrap_err().is_corrupt());
}

#[test]
fn stray_files_in_the_directory_disturb_nobody() {
    let directory = tempdir().unwrap();
    quick(directory.path()).add("ok", &[Message::user("hi")]).unwrap();
    fs::write(directory.path().join("zz.bin"), "").unwrap();
    fs::write(directory.path().join("notes.txt"), "hello").unwrap();
    fs::create_dir(directory.path().join("sub")).unwrap();
    fs::write(directory.path().join(format!("{}.bin", "f".repeat(64))), "garbage").unwrap();
    let memory = quick(directory.path());
    assert_eq!(texts(&memory.get("ok").unwrap()), ["hi"]);
    memory.clear("ok").unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
    assert_eq!(fs::read_to_string(directory.path().join("notes.txt")).unwrap(), "hello");
}

#[test]
fn a_stale_temporary_file_blocks_nothing_and_is_swept() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    let path = memory.path("c");
    let stale = path.with_extension("bin.tmp");
    fs::write(&stale, "junk").unwrap();
    numbered(&memory, "c", 3);
    tamper(&path, |bytes| bytes[150] ^= 1);
    let report = memory.repair("c", Repair::Apply).unwrap();
    assert_eq!(report.damage.len(), 1);
    assert!(!stale.exists());
    let kept = quick(directory.path()).get("c").unwrap();
    assert_eq!(kept.len() as u64, report.messages);
    fs::write(&stale, "junk").unwrap();
    memory.clear("c").unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn hostile_lengths_are_damage_and_cost_no_memory() {
    let directory = match child_part() {
        Some((_, directory)) => directory,
        None => {
            let directory = tempdir().unwrap();
            let memory = quick(directory.path());
            memory.add("hello", &[Message::user("hello")]).unwrap();
            let path = memory.path("hello");
            let whole = fs::read(&path).unwrap();
            // At every offset, so that it meets every length field.
            for at in 0..whole.len() - 8 {
                let memory = quick(directory.path());
                let id = format!("at {at}");
                memory.add(&id, &[Message::user("hello")]).unwrap();
                tamper(&memory.path(&id), |bytes| {
                    let at = at.min(bytes.len() - 8);
                    bytes[at..at + 8].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
                });
            }
            let mut seed = 1_u64;
            for number in 0..10_000 {
                let memory = quick(directory.path());
                let bytes: Vec<u8> = (0..number % 300)
                    .map(|_| {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (seed >> 56) as u8
                    })
                    .collect();
                fs::File::create(memory.path(&format!("random {number}"))).unwrap().write_all(&bytes).unwrap();
            }
            // In a process that cannot have more than a gigabyte of address space, program and threads included.
            let limited = std::process::Command::new("sh")
                .args(["-c", "ulimit -v 1000000 && exec \"$0\" \"$@\""])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "damage::hostile_lengths_are_damage_and_cost_no_memory", "--test-threads=1"])
                .env("CHAT_MEMORY_TEST_CHILD", format!("read={}", directory.path().display()))
                .output();
            match limited {
                Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
                Err(error) => skip(&format!("no shell: {error}")),
            }
            return;
        }
    };
    let memory = quick(&directory);
    let whole = fs::read(memory.path("hello")).unwrap().len();
    for at in 0..whole - 8 {
        let id = format!("at {at}");
        let found = memory.get(&id);
        // In the file header alone it costs nothing; the message behind it still holds.
        let in_header = at + 8 <= 60 + id.len();
        match found {
            Ok(messages) => assert!(in_header && texts(&messages) == ["hello"], "{at}"),
            Err(error) => assert!(!in_header && error.is_corrupt(), "{at}: {error}"),
        }
    }
    for number in 1..10_000_usize {
        let found = memory.get(&format!("random {number}"));
        assert!(number % 300 == 0 || matches!(found, Err(Error::Corrupt { .. })), "{number}: {found:?}");
    }
}

#[test]
fn a_corrupt_middle_hides_nothing_but_itself_and_is_never_cut_off() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    numbered(&memory, "c", 10);
    let path = memory.path("c");
    let before = fs::read(&path).unwrap();
    let middle = before.len() / 2;
    tamper(&path, |bytes| bytes[middle] ^= 4);

    let memory = quick(directory.path());
    let found = memory.get("c").unwrap();
    assert_eq!(found.len(), 9);
    let told = events(|| _ = memory.get("c").unwrap());
    assert!(told.len() == 1 && told[0].starts_with("ERROR"), "{told:?}");
    // Appending goes on behind it, and nothing of the file is touched.
    memory.add("c", &[Message::user("more")]).unwrap();
    assert_eq!(memory.get("c").unwrap().len(), 10);
    assert_eq!(fs::read(&path).unwrap()[middle + 1..before.len()], before[middle + 1..]);
    // A window that does not reach it reads well, also for the strict.
    let strict = || FileChatMemory::builder(directory.path()).recovery(Recovery::Strict);
    assert_eq!(strict().max_messages(2).open().unwrap().get("c").unwrap().len(), 2);
    assert!(strict().open().unwrap().get("c").unwrap_err().is_corrupt());
    strict().open().unwrap().add("c", &[Message::user("and more")]).unwrap();

    // A dry run tells, a repair mends, a second one finds nothing.
    let dry = memory.repair("c", Repair::DryRun).unwrap();
    assert_eq!((dry.messages, dry.damage.len(), dry.set_aside.len()), (11, 1, 0));
    assert_eq!(dry.damage[0].kind, DamageKind::Middle);
    assert!((dry.damage[0].offset..dry.damage[0].end).contains(&(middle as u64)));
    let expected = memory.get("c").unwrap();
    let report = memory.repair("c", Repair::Apply).unwrap();
    assert_eq!((report.messages, &report.damage), (11, &dry.damage));
    let set_aside = fs::read(&report.set_aside[0]).unwrap();
    assert_eq!(set_aside.len() as u64, dry.damage[0].end - dry.damage[0].offset);
    for memory in [&memory, &quick(directory.path())] {
        assert_eq!(memory.get("c").unwrap(), expected);
        assert!(memory.repair("c", Repair::Apply).unwrap().damage.is_empty());
    }
    assert_eq!(strict().open().unwrap().get("c").unwrap(), expected);
    memory.add("c", &[Message::user("after the repair")]).unwrap();
    assert_eq!(quick(directory.path()).get("c").unwrap().len(), 12);
    for count in [1, 5, 30] {
        let windowed = FileChatMemory::builder(directory.path()).max_messages(count).open().unwrap();
        assert_eq!(windowed.get("c").unwrap().len(), count.min(12));
    }
}

#[test]
fn a_flipped_bit_in_the_file_header_loses_nothing() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("c", &[Message::system("s")]).unwrap();
    numbered(&memory, "c", 30);
    let path = memory.path("c");
    tamper(&path, |bytes| bytes[20] ^= 1);
    for window in [None, Some(5), Some(100)] {
        let builder = FileChatMemory::builder(directory.path());
        let memory = match window {
            Some(count) => builder.max_messages(count),
            None => builder,
        };
        let memory = memory.open().unwrap();
        let mut found = Vec::new();
        let told = events(|| found = memory.get("c").unwrap());
        assert_eq!(found.len(), window.unwrap_or(31).min(31));
        assert_eq!(found[0].text(), "s");
        assert!(told.len() == 1 && told[0].starts_with("ERROR"), "{told:?}");
    }
    let memory = quick(directory.path());
    memory.add("c", &[Message::user("more")]).unwrap();
    assert_eq!(memory.get("c").unwrap().len(), 32);
    let strict = FileChatMemory::builder(directory.path()).recovery(Recovery::Strict).open().unwrap();
    assert!(strict.get("c").unwrap_err().is_corrupt());
    let report = memory.repair("c", Repair::Apply).unwrap();
    assert_eq!((report.damage[0].kind, report.damage[0].offset), (DamageKind::Header, 0));
    assert_eq!(strict.get("c").unwrap().len(), 32);
}

#[test]
fn a_renamed_file_is_refused_and_kept() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("mine", &[Message::user("mine")]).unwrap();
    memory.add("a longer id", &[Message::user("longer")]).unwrap();
    for (from, to) in [("mine", "yours, with a longer id"), ("a longer id", "short")] {
        fs::rename(memory.path(from), memory.path(to)).unwrap();
        let memory = quick(directory.path());
        assert!(memory.get(to).unwrap_err().to_string().contains("another conversation"));
        assert!(memory.add(to, &[Message::user("x")]).unwrap_err().is_corrupt());
        assert!(memory.clear(to).unwrap_err().is_corrupt());
        fs::rename(memory.path(to), memory.path(from)).unwrap();
        assert_eq!(memory.get(from).unwrap().len(), 1);
    }
}

#[test]
fn a_header_that_names_another_conversation_than_its_file_is_not_listed() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("c", &[Message::user("x")]).unwrap();
    let path = memory.path("c");
    // Another id of the same length, with the checksum that it would have, and the sha256 that the file's name has.
    tamper(&path, |bytes| {
        bytes[56] = b'd';
        let crc = crc32c::crc32c(&bytes[..57]).rotate_right(15).wrapping_add(0xa282_ead8);
        bytes[57..61].copy_from_slice(&crc.to_le_bytes());
    });
    let memory = quick(directory.path());
    assert!(memory.get("c").unwrap_err().is_corrupt());
    let page = memory.conversations(&PageRequest::first(9)).unwrap();
    assert_eq!((page.items.len(), page.problems.len()), (0, 1), "{page:?}");
    assert!(memory.id_of(&path).unwrap_err().is_corrupt());
}

#[test]
fn a_newer_format_is_not_damage() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("c", &[Message::user("x")]).unwrap();
    let path = memory.path("c");
    // Version 2, with the checksum that it would have.
    tamper(&path, |bytes| {
        bytes[8] = 2;
        let header = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let crc = crc32c::crc32c(&bytes[..header - 4]).rotate_right(15).wrapping_add(0xa282_ead8);
        bytes[header - 4..header].copy_from_slice(&crc.to_le_bytes());
    });
    let before = fs::read(&path).unwrap();
    let memory = quick(directory.path());
    assert!(matches!(memory.get("c"), Err(Error::UnsupportedVersion { .. })));
    assert!(matches!(memory.add("c", &[Message::user("y")]), Err(Error::UnsupportedVersion { .. })));
    assert!(matches!(memory.repair("c", Repair::Apply), Err(Error::UnsupportedVersion { .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn zeros_behind_the_end_are_no_damage() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    numbered(&memory, "c", 3);
    for zeros in [1, 12, 4_096, 200_000] {
        tamper(&memory.path("c"), |bytes| bytes.resize(bytes.len() + zeros, 0));
        let fresh = quick(directory.path());
        let before = fresh.get("c").unwrap().len();
        for memory in [&memory, &fresh] {
            let told = events(|| assert_eq!(memory.get("c").unwrap().len(), before));
            assert_eq!(told, [""; 0]);
            assert!(memory.repair("c", Repair::DryRun).unwrap().damage.is_empty());
        }
        memory.add("c", &[Message::user("more")]).unwrap();
        assert_eq!(fresh.get("c").unwrap().len(), before + 1);
    }
    assert!(beside(&memory.path("c")).is_empty());
}

#[test]
fn neither_messages_nor_ids_reach_logs_errors_or_debug_output() {
    let directory = tempdir().unwrap();
    let canary = "canary-7f3a";
    let memory = quick(directory.path());
    let mut seen = String::new();
    let told = events(|| {
        let message = Message::assistant(canary).with_tool_call(canary, canary, canary).with_metadata(canary, canary);
        for _ in 0..3 {
            memory.add(canary, std::slice::from_ref(&message)).unwrap();
        }
        seen.push_str(&format!("{memory:?} {:?}", memory.get(canary).unwrap()));
        let path = memory.path(canary);
        // Each time a store that has not seen the file whole.
        tamper(&path, |bytes| bytes[180] ^= 1);
        let memory = quick(directory.path());
        seen.push_str(&format!("{:?}", memory.get(canary)));
        tamper(&path, |bytes| bytes.truncate(bytes.len() - 1));
        memory.add(canary, &[message]).unwrap();
        seen.push_str(&format!("{:?}", memory.repair(canary, Repair::Apply)));
        let memory = quick(directory.path());
        tamper(&path, |bytes| bytes.fill(7));
        let error = memory.get(canary).unwrap_err();
        seen.push_str(&format!("{error} {error:?}"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = memory.get(canary).unwrap_err();
        seen.push_str(&format!("{error} {error:?}"));
        fs::remove_dir(&path).unwrap();

        // The calls beside `add` and `get`, and the other errors.
        let other = format!("{canary} 2");
        let message = [Message::user(canary)];
        memory.add(canary, &message).unwrap();
        memory.copy(canary, &other).unwrap();
        let copied = memory.copy(canary, &other).unwrap_err();
        let renamed = memory.rename(&other, canary).unwrap_err();
        let entries = memory.history(canary, HistoryRange::all()).unwrap();
        let refused = memory.restore(canary, Some(5), &entries).unwrap_err();
        let misnumbered = memory.restore(canary, Some(0), &entries).unwrap_err();
        let small = FileChatMemory::builder(directory.path()).max_batch_bytes(10).open().unwrap();
        let too_large = small.add(canary, &message).unwrap_err();
        let invalid = memory.add(canary, &[Message::user(canary).with_metadata("", canary)]);
        let stranger = fs::copy(&path, memory.path("stranger")).map(|_| memory.get("stranger").unwrap_err()).unwrap();
        fs::remove_file(memory.path("stranger")).unwrap();
        let listed = memory.conversations(&PageRequest::first(9)).unwrap();
        let verified = memory.verify(canary).unwrap();
        let view = memory.view_at(canary, 0, &Window::messages(3)).unwrap();
        seen.push_str(&format!("{entries:?} {listed:?} {verified:?} {view:?} {invalid:?}"));
        for error in [copied, renamed, refused, misnumbered, too_large, stranger] {
            seen.push_str(&format!("{error} {error:?}"));
        }
        memory.clear(canary).unwrap();
    });
    assert!(told.len() >= 3, "{told:?}");
    for text in told.iter().chain([&seen]) {
        assert!(!text.contains(canary), "{text}");
    }
}

/// A process is killed between two adds of a conversation whose tool never answered.
#[test]
fn a_killed_process_leaves_a_conversation_that_can_be_sent() {
    use chat_memory::{OpenCalls, model_ready};
    let test = "damage::a_killed_process_leaves_a_conversation_that_can_be_sent";
    if let Some((_, directory)) = child_part() {
        let memory = FileChatMemory::builder(directory).durability(Durability::Process).open().unwrap();
        memory.add("c", &[Message::user("run the build")]).unwrap();
        memory.add("c", &[Message::assistant("").with_tool_call("t1", "build", "{}")]).unwrap();
        println!("acknowledged");
        loop {
            std::thread::park();
        }
    }
    let directory = tempdir().unwrap();
    let mut child = start_child(test, "killed", directory.path());
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    assert!(std::io::BufRead::lines(output).any(|line| line.unwrap().contains("acknowledged")));
    child.kill().unwrap();
    child.wait().unwrap();

    let memory = quick(directory.path());
    assert_eq!(memory.get("c").unwrap().len(), 2);
    let bytes = fs::read(memory.path("c")).unwrap();
    memory.add("c", &[Message::user("what happened?")]).unwrap();
    let recalled = memory.get("c").unwrap();
    assert_eq!(recalled.len(), 3);
    let sent = model_ready(&recalled, OpenCalls::Interrupt);
    crate::provider::check_sent(&sent).unwrap();
    assert!(sent[2].tool_results().all(|result| result.is_error && result.call_id == "t1"));
    let sent = model_ready(&recalled, OpenCalls::Drop);
    assert_eq!(texts(&sent), ["run the build", "what happened?"]);
    // What is stored is not rewritten.
    assert!(fs::read(memory.path("c")).unwrap().starts_with(&bytes));
}
