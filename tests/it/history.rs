//! Everything that was said: receipts, ranges, views of the past, the catalogue, verification.

use std::fs;
use std::time::SystemTime;

use chat_memory::{
    ChatHistory, ChatMemory, ConversationSummary, DamageKind, Durability, Error, FileChatMemory, HistoryRange,
    InMemoryChatMemory, Message, PageRequest, Repair, Window,
};
use tempfile::tempdir;

use crate::support::{quick, real_data, texts};
use crate::{conversations, provider};

/// Runs a test on both stores.
fn on_both(test: impl Fn(&(dyn ChatHistory + Sync), &dyn ChatMemory)) {
    let directory = tempdir().unwrap();
    let file = quick(directory.path());
    test(&file, &file);
    let in_memory = InMemoryChatMemory::new();
    test(&in_memory, &in_memory);
}

fn numbered(range: std::ops::Range<u64>) -> Vec<Message> {
    range.map(|number| Message::user(number.to_string())).collect()
}

#[test]
fn receipts_number_the_messages_without_gaps() {
    on_both(|history, memory| {
        let before = SystemTime::now();
        let receipt = history.append("c", &numbered(0..3)).unwrap();
        assert_eq!(receipt.seqs, 0..3);
        assert!(receipt.recorded_at <= SystemTime::now());
        let distance = before.duration_since(receipt.recorded_at).unwrap_or_default();
        assert!(distance.as_millis() == 0, "{distance:?}");
        memory.add("c", &numbered(3..4)).unwrap();
        assert_eq!(history.append("c", &[]).unwrap().seqs, 4..4);
        assert_eq!(history.append("other", &[]).unwrap().seqs, 0..0);
        let receipt = history.append("c", &numbered(4..6)).unwrap();
        assert_eq!(receipt.seqs, 4..6);
        let entries = history.history("c", HistoryRange::last(1)).unwrap();
        assert_eq!((entries[0].seq, entries[0].recorded_at), (5, receipt.recorded_at));
        memory.clear("c").unwrap();
        assert_eq!(history.append("c", &numbered(0..1)).unwrap().seqs, 0..1);
    });
}

#[test]
fn ranges_run_from_either_end_and_come_oldest_first() {
    on_both(|history, _| {
        // Frames of one, two and many messages, more than one read holds.
        let mut next = 0;
        for batch in [1, 2, 1, 50, 3, 700, 1, 1, 5] {
            history.append("c", &numbered(next..next + batch)).unwrap();
            next += batch;
        }
        let found = |range: HistoryRange| -> Vec<u64> {
            let entries = history.history("c", range).unwrap();
            for entry in &entries {
                assert_eq!(entry.message.text(), entry.seq.to_string());
            }
            entries.iter().map(|entry| entry.seq).collect()
        };
        let all: Vec<u64> = (0..next).collect();
        assert_eq!(found(HistoryRange::all()), all);
        for count in [0, 1, 2, 6, 7, 100, 764, 1_000] {
            let count_u64 = count as u64;
            assert_eq!(found(HistoryRange::first(count)), all[..count.min(all.len())]);
            assert_eq!(found(HistoryRange::last(count)), all[all.len().saturating_sub(count)..]);
            assert_eq!(found(HistoryRange::first(3).from(count_u64)), (count_u64..next).take(3).collect::<Vec<_>>());
            let before: Vec<u64> = (count_u64.saturating_sub(3)..count_u64.min(next)).collect();
            if count_u64 <= next {
                assert_eq!(found(HistoryRange::last(3).before(count_u64)), before);
            }
        }
        assert_eq!(found(HistoryRange::all().from(10).before(12)), [10, 11]);
        assert_eq!(found(HistoryRange::all().from(12).before(10)), [0; 0]);
        assert_eq!(history.history("unknown", HistoryRange::all()).unwrap(), []);
    });
}

#[test]
fn a_view_of_the_past_is_what_the_window_showed_then() {
    let Some(data) = real_data() else { return };
    let all: Vec<_> = conversations::airline(&data).into_iter().take(20).chain([conversations::agent(&data)]).collect();
    on_both(|history, _| {
        for conversation in &all {
            // Batches of three, so that most points in time lie inside a frame.
            for batch in conversation.messages.chunks(3) {
                history.append(&conversation.id, batch).unwrap();
            }
            let step = if conversation.messages.len() > 100 { 13 } else { 1 };
            for count in [1, 5, 20] {
                let window = Window::messages(count);
                for seq in (0..conversation.messages.len()).step_by(step) {
                    let past = &conversation.messages[..=seq];
                    let view = history.view_at(&conversation.id, seq as u64, &window).unwrap();
                    assert_eq!(view, window.view(past), "{} at {seq}, {count} messages", conversation.id);
                    provider::check_view(past, &view).unwrap();
                }
            }
            let newest = history.view_at(&conversation.id, u64::MAX, &Window::messages(20)).unwrap();
            assert_eq!(newest, Window::messages(20).view(&conversation.messages));
        }
        assert_eq!(history.view_at("unknown", 0, &Window::messages(1)).unwrap(), []);
        assert!(matches!(history.view_at("c", 0, &Window::messages(0)), Err(Error::InvalidOption { .. })));
    });
}

/// All pages of a catalogue.
fn pages(history: &dyn ChatHistory, limit: usize) -> (Vec<ConversationSummary>, Vec<String>) {
    let (mut items, mut problems) = (Vec::new(), Vec::new());
    let mut request = PageRequest::first(limit);
    loop {
        let page = history.conversations(&request).unwrap();
        assert!(page.items.len() <= limit);
        items.extend(page.items);
        problems.extend(page.problems.iter().map(|problem| format!("{}: {}", problem.path.display(), problem.reason)));
        match page.next {
            // A cursor survives being a text.
            Some(cursor) => request = PageRequest::after(limit, cursor.to_string().parse().unwrap()),
            None => return (items, problems),
        }
    }
}

#[test]
fn the_catalogue_lists_each_conversation_once_the_one_written_last_first() {
    on_both(|history, memory| {
        assert_eq!(pages(history, 3), (vec![], vec![]));
        let ids: Vec<String> = (0..20).map(|number| format!("../{number} 🎉\n{}", "x".repeat(number * 500))).collect();
        for id in &ids {
            history.append(id, &numbered(0..2)).unwrap();
            // File times may be coarse.
            std::thread::sleep(std::time::Duration::from_millis(11));
        }
        let again = history.append(&ids[3], &numbered(2..3)).unwrap();
        memory.clear(&ids[5]).unwrap();
        let mut expected: Vec<&String> = ids.iter().rev().filter(|id| **id != ids[5] && **id != ids[3]).collect();
        expected.insert(0, &ids[3]);
        for limit in [1, 7, 19, 100] {
            let (items, problems) = pages(history, limit);
            let found: Vec<&String> = items.iter().map(|item| &item.id).collect();
            assert!(found == expected, "in pages of {limit}");
            assert!(problems.is_empty(), "{problems:?}");
            assert_eq!(items[0].messages, 3);
            assert_eq!(items[0].updated, Some(again.recorded_at));
            assert!(items[0].created < items[0].updated && items[0].bytes > 0);
            assert!(items[1..].iter().all(|item| item.messages == 2 && item.damage.is_empty()));
        }
        assert!(matches!(history.conversations(&PageRequest::first(0)), Err(Error::InvalidOption { .. })));
    });
}

#[test]
fn the_catalogue_reports_what_is_damaged_or_foreign_beside_the_rest() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    for id in ["ok", "zeros", "end", "torn", "header", "renamed"] {
        for _ in 0..3 {
            memory.add(id, &numbered(0..1)).unwrap();
        }
    }
    let tamper = |id: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(memory.path(id)).unwrap();
        change(&mut bytes);
        fs::write(memory.path(id), bytes).unwrap();
    };
    tamper("zeros", &|bytes| bytes.fill(0));
    tamper("end", &|bytes| *bytes.iter_mut().rev().nth(15).unwrap() ^= 1);
    tamper("torn", &|bytes| bytes.truncate(bytes.len() - 3));
    tamper("header", &|bytes| bytes[30] ^= 1);
    fs::rename(memory.path("renamed"), memory.path("another id")).unwrap();
    fs::write(directory.path().join("zz.bin"), "").unwrap();
    fs::write(directory.path().join("notes.txt"), "hello").unwrap();
    fs::create_dir(directory.path().join("sub")).unwrap();
    fs::create_dir(memory.path("directory")).unwrap();
    fs::write(directory.path().join(format!("{}.bin", "f".repeat(64))), "garbage").unwrap();

    // A store that has not seen the files whole.
    let memory = quick(directory.path());
    let (items, problems) = pages(&memory, 2);
    let mut ids: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["end", "ok", "torn"]);
    let damaged = items.iter().find(|item| item.id == "end").unwrap();
    assert_eq!(damaged.damage.iter().map(|damage| damage.kind).collect::<Vec<_>>(), [DamageKind::End]);
    let reported = |path: std::path::PathBuf| problems.iter().filter(|p| p.starts_with(path.to_str().unwrap())).count();
    for id in ["zeros", "header", "another id", "directory"] {
        assert_eq!(reported(memory.path(id)), 1, "{id}: {problems:#?}");
    }
    assert_eq!(reported(directory.path().join("zz.bin")), 1);
    assert_eq!(reported(directory.path().join(format!("{}.bin", "f".repeat(64)))), 1);
    assert_eq!(problems.len(), 6, "{problems:#?}");

    // What was set aside stays damage until somebody looks: unless a crash left it.
    for id in ["end", "torn"] {
        memory.add(id, &numbered(0..1)).unwrap();
    }
    let (items, _) = pages(&memory, 10);
    for (id, expected) in [("ok", vec![]), ("torn", vec![]), ("end", vec![DamageKind::SetAside])] {
        let item = items.iter().find(|item| item.id == id).unwrap();
        let kinds: Vec<DamageKind> = item.damage.iter().map(|damage| damage.kind).collect();
        assert_eq!(kinds, expected, "{id}");
        let verified = memory.verify(id).unwrap();
        assert_eq!(verified.set_aside.len(), usize::from(id != "ok"), "{id}");
        assert_eq!(verified.is_whole(), id == "ok");
        assert_eq!(verified.messages, 3);
        assert!(verified.damage.is_empty());
    }
    // A copy whose conversation is gone is reported too.
    fs::remove_file(memory.path("torn")).unwrap();
    assert_eq!(pages(&memory, 10).1.len(), 7);
}

#[test]
fn verification_reads_everything_and_changes_nothing() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    for number in 0..10 {
        memory.add("c", &numbered(number..number + 1)).unwrap();
    }
    let whole = memory.verify("c").unwrap();
    assert!(whole.is_whole());
    let path = memory.path("c");
    assert_eq!((whole.messages, whole.bytes), (10, fs::metadata(&path).unwrap().len()));
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let verified = memory.verify("c").unwrap();
    assert_eq!((verified.messages, verified.damage.len()), (9, 1));
    assert_eq!(verified.damage, memory.repair("c", Repair::DryRun).unwrap().damage);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert!(memory.verify("unknown").unwrap().is_whole());
}

#[test]
fn numbers_of_lost_messages_stay_unused_after_a_repair() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    for number in 0..10 {
        memory.add("c", &numbered(number..number + 1)).unwrap();
    }
    let entries = memory.history("c", HistoryRange::all()).unwrap();
    let path = memory.path("c");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    // Before and after the repair, from both ends.
    for _ in 0..2 {
        let found = memory.history("c", HistoryRange::all()).unwrap();
        assert_eq!(found.len(), 9);
        assert!(found.iter().all(|entry| entries.contains(entry)));
        assert_eq!(memory.history("c", HistoryRange::last(20)).unwrap(), found);
        assert_eq!(memory.view_at("c", 9, &Window::messages(3)).unwrap().len(), 3);
        memory.repair("c", Repair::Apply).unwrap();
    }
    assert_eq!(memory.append("c", &numbered(10..11)).unwrap().seqs, 10..11);
    assert_eq!(texts(&memory.get("c").unwrap()).last().unwrap(), "10");
}

#[test]
fn a_listing_reads_heads_and_ends_only() {
    use crate::sim_disk::SimDisk;
    let disk = SimDisk::default();
    let open = || {
        let builder = FileChatMemory::builder("/store").durability(Durability::Process);
        builder.disk(std::sync::Arc::new(disk.clone())).open().unwrap()
    };
    for number in 0..20 {
        open().add(&format!("c{number}"), &[Message::user("x".repeat(1_000_000))]).unwrap();
        open().add(&format!("c{number}"), &[Message::user("short")]).unwrap();
    }
    disk.take_counts();
    let memory = open();
    assert_eq!(pages(&memory, 100).0.len(), 20);
    let (read, _) = disk.take_counts();
    assert!(read < 20 * 25_000, "{read} bytes read of 20 MB");
}

/// The kinds of damage that the catalogue tells of the one conversation that it lists.
fn listed_damage(memory: &FileChatMemory) -> Vec<DamageKind> {
    let page = memory.conversations(&PageRequest::first(10)).unwrap();
    assert_eq!(page.items.len(), 1, "{page:?}");
    page.items[0].damage.iter().map(|damage| damage.kind).collect()
}

#[test]
fn a_loss_is_told_as_long_as_its_copy_is_there() {
    // A whole file of zeros, set aside by the next add.
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("c", &numbered(0..1)).unwrap();
    let len = fs::metadata(memory.path("c")).unwrap().len() as usize;
    fs::write(memory.path("c"), vec![0; len]).unwrap();
    memory.add("c", &numbered(0..1)).unwrap();
    assert_eq!(listed_damage(&memory), [DamageKind::SetAside]);
    // Sectors of zeros in the middle, set aside by a repair.
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    for _ in 0..3 {
        memory.add("c", &[Message::user("q".repeat(3_000))]).unwrap();
    }
    let mut bytes = fs::read(memory.path("c")).unwrap();
    bytes[4_096..5_120].fill(0);
    fs::write(memory.path("c"), bytes).unwrap();
    assert_eq!(memory.repair("c", Repair::Apply).unwrap().messages, 2);
    assert_eq!(listed_damage(&memory), [DamageKind::SetAside]);
    // A copy beside a file that was emptied in between.
    fs::write(memory.path("c"), "").unwrap();
    let page = memory.conversations(&PageRequest::first(10)).unwrap();
    assert_eq!((page.items.len(), page.problems.len()), (0, 1));
}

#[test]
fn a_creation_that_was_cut_off_is_no_problem() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("c", &numbered(0..1)).unwrap();
    let bytes = fs::read(memory.path("c")).unwrap();
    for cut in [1, 8, 13, 30, 60] {
        fs::write(memory.path("c"), &bytes[..cut]).unwrap();
        let memory = quick(directory.path());
        assert_eq!(memory.get("c").unwrap(), []);
        let page = memory.conversations(&PageRequest::first(10)).unwrap();
        assert_eq!((page.items.len(), page.problems.len()), (0, 0), "{cut}");
    }
    // A length that points beyond the file, with messages behind it, is one.
    let mut bytes = bytes;
    bytes[13] = 0xff;
    fs::write(memory.path("c"), &bytes).unwrap();
    assert_eq!(quick(directory.path()).conversations(&PageRequest::first(10)).unwrap().problems.len(), 1);
}

#[test]
fn sizes_leave_out_space_written_ahead() {
    let directory = tempdir().unwrap();
    let memory = FileChatMemory::open(directory.path()).unwrap();
    memory.append("c", &numbered(0..1)).unwrap();
    let listed = memory.conversations(&PageRequest::first(10)).unwrap().items[0].bytes;
    assert_eq!(listed, memory.verify("c").unwrap().bytes);
    assert!(listed < 200 && fs::metadata(memory.path("c")).unwrap().len() > 4_096);
}
