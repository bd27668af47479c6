//! Copies, new ids, and conversations that come from elsewhere.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use chat_memory::disk::{Disk, DiskFile, Open, Status};
use chat_memory::{
    ChatHistory, ChatMemory, Durability, Entry, Error, FileChatMemory, HistoryRange, Message, PageRequest, Repair,
};

use crate::sim_disk::{SimDisk, Trouble};
use crate::support::{quick, texts};

const ROOT: &str = "/store";

fn open(disk: &SimDisk) -> FileChatMemory {
    FileChatMemory::builder(ROOT).durability(Durability::Disk).disk(Arc::new(disk.clone())).open().unwrap()
}

fn whole(memory: &FileChatMemory, id: &str) -> Vec<Entry> {
    memory.history(id, HistoryRange::all()).unwrap()
}

#[test]
fn a_copy_has_the_same_messages_numbers_and_times_and_goes_its_own_way() {
    let directory = tempfile::tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("a", &[Message::system("s"), Message::user("one")]).unwrap();
    memory.add("a", &[Message::assistant("two")]).unwrap();
    assert_eq!(memory.copy("a", "b").unwrap(), 3);
    assert_eq!(whole(&memory, "b"), whole(&memory, "a"));
    memory.add("b", &[Message::user("three")]).unwrap();
    assert_eq!(whole(&memory, "b").last().unwrap().seq, 3);
    assert_eq!(whole(&memory, "a").len(), 3);
    // Also for a store that sees it for the first time, through a window, and whole.
    let windowed = FileChatMemory::builder(directory.path()).max_messages(2).open().unwrap();
    assert_eq!(texts(&windowed.get("b").unwrap()), ["s", "three"]);
    assert!(windowed.verify("b").unwrap().is_whole());
}

#[test]
fn a_conversation_is_never_copied_over_another_or_from_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("a", &[Message::user("one")]).unwrap();
    memory.add("b", &[Message::user("two")]).unwrap();
    for (from, to) in [("a", "b"), ("a", "a"), ("unknown", "c"), ("unknown", "a")] {
        for copied in [memory.copy(from, to), memory.rename(from, to)] {
            assert!(matches!(copied, Err(Error::Conflict { .. })), "{from} to {to}");
        }
    }
    assert!(matches!(memory.copy("a", " "), Err(Error::InvalidConversationId)));
    assert_eq!(texts(&memory.get("a").unwrap()), ["one"]);
    assert_eq!(texts(&memory.get("b").unwrap()), ["two"]);
    assert_eq!(memory.conversations(&PageRequest::first(9)).unwrap().items.len(), 2);
    assert!(!memory.path("c").exists());
}

#[test]
fn what_is_damaged_is_not_copied_before_it_is_repaired() {
    let disk = SimDisk::default();
    let memory = open(&disk);
    memory.add("a", &[Message::user("one")]).unwrap();
    memory.add("a", &[Message::user("two")]).unwrap();
    disk.tamper(&memory.path("a"), |bytes| bytes[150] ^= 1);
    assert!(memory.rename("a", "b").unwrap_err().is_corrupt());
    assert!(memory.get("b").unwrap().is_empty());
    memory.repair("a", Repair::Apply).unwrap();
    // It goes on under its numbers.
    let kept = whole(&memory, "a");
    memory.rename("a", "b").unwrap();
    assert_eq!((whole(&memory, "b"), whole(&memory, "a")), (kept, Vec::new()));
}

#[test]
fn what_was_set_aside_goes_along_with_a_new_id() {
    let disk = SimDisk::default();
    let memory = open(&disk);
    memory.add("a", &[Message::user("one")]).unwrap();
    memory.add("a", &[Message::user("two")]).unwrap();
    disk.tamper(&memory.path("a"), |bytes| bytes[150] ^= 1);
    memory.repair("a", Repair::Apply).unwrap();
    // And what a crash left, which nobody has set aside yet.
    disk.tamper(&memory.path("a"), |bytes| bytes.extend(b"torn"));
    let memory = open(&disk);
    let before = memory.verify("a").unwrap();
    assert_eq!((before.set_aside.len(), before.damage.len()), (1, 1));
    memory.rename("a", "b").unwrap();
    assert_eq!(memory.verify("a").unwrap(), Default::default());
    let after = memory.verify("b").unwrap();
    assert_eq!((after.set_aside.len(), after.damage.len()), (2, 0), "{after:?}");
    assert!(disk.live().values().any(|bytes| bytes.starts_with(b"torn")));
    memory.clear("b").unwrap();
    assert_eq!(disk.live().len(), 0);
}

#[test]
fn a_power_cut_or_a_failure_during_a_rename_leaves_one_or_both_and_never_none() {
    let said = [Message::user("one"), Message::assistant("two")];
    let begin = || {
        let disk = SimDisk::default();
        open(&disk).add("a", &said).unwrap();
        disk
    };
    let steps = {
        let disk = begin();
        let before = disk.operations();
        open(&disk).rename("a", "b").unwrap();
        disk.operations() - before
    };
    assert!(steps > 5, "{steps}");
    let check = |memory: &FileChatMemory, renamed: bool| {
        let (old, new) = (memory.get("a").unwrap(), memory.get("b").unwrap());
        assert!(old == said || (old.is_empty() && new == said));
        assert!(new == said || (new.is_empty() && !renamed));
        // Whatever is there goes on.
        if new.is_empty() {
            memory.rename("a", "b").unwrap();
            assert_eq!(memory.get("b").unwrap(), said);
        }
        memory.add("b", &[Message::user("three")]).unwrap();
        assert_eq!(memory.get("b").unwrap().len(), 3);
    };
    let mut states = 0;
    for at in 0..steps {
        let disk = begin();
        let memory = open(&disk);
        disk.trouble(Trouble::PowerCut { at });
        let renamed = memory.rename("a", "b").is_ok();
        for image in disk.after_power_cut() {
            check(&open(&SimDisk::with_image(&image)), renamed);
            states += 1;
        }
        for (short, for_good) in [(false, false), (true, false), (false, true), (true, true)] {
            let disk = begin();
            let memory = open(&disk);
            disk.trouble(Trouble::Fails { at, errno: 5, short, for_good });
            let renamed = memory.rename("a", "b").is_ok();
            disk.no_trouble();
            for image in disk.after_power_cut().into_iter().chain([disk.live()]) {
                check(&open(&SimDisk::with_image(&image)), renamed);
                states += 1;
            }
        }
    }
    println!("{states} states");
    assert!(states > 60, "{states}");
}

/// The power goes, and each operation fails, while a conversation is written anew: what was there is there, or all that was to be.
#[test]
fn a_power_cut_or_a_failure_during_a_copy_or_a_restore_leaves_all_or_what_was_there() {
    let said = [Message::user("one"), Message::assistant("two")];
    let entries = |first: u64| -> Vec<Entry> {
        // More than share a frame.
        (first..first + 11).map(|seq| Entry::new(seq, UNIX_EPOCH, Message::user(format!("restored {seq}")))).collect()
    };
    let with_torn_end = |memory: &FileChatMemory, disk: &SimDisk| {
        memory.add("b", &[Message::user("acknowledged once")]).unwrap();
        disk.tamper(&memory.path("b"), |bytes| bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() - 5));
    };
    type Prepare<'a> = &'a dyn Fn(&FileChatMemory, &SimDisk);
    type Call<'a> = &'a dyn Fn(&FileChatMemory) -> chat_memory::Result<()>;
    let cases: [(&str, Prepare<'_>, Call<'_>, usize, usize); 5] = [
        ("copy", &|_, _| (), &|memory| memory.copy("a", "b").map(drop), 0, 2),
        ("copy over a torn end", &with_torn_end, &|memory| memory.copy("a", "b").map(drop), 0, 2),
        ("restore", &|_, _| (), &|memory| memory.restore("b", None, &entries(3)), 0, 11),
        ("restore over a torn end", &with_torn_end, &|memory| memory.restore("b", None, &entries(3)), 0, 11),
        (
            "restore behind messages",
            &|memory, _| memory.add("b", &said).unwrap(),
            &|memory| memory.restore("b", Some(1), &entries(3)),
            2,
            13,
        ),
    ];
    let mut states = 0;
    for (what, prepare, call, before, after) in cases {
        let begin = || {
            let disk = SimDisk::default();
            let memory = open(&disk);
            memory.add("a", &said).unwrap();
            prepare(&memory, &disk);
            (open(&disk), disk)
        };
        let torn_is_kept = |disk: &SimDisk| {
            !what.ends_with("a torn end")
                || disk.live().values().any(|bytes| bytes.windows(17).any(|at| at == b"acknowledged once"))
        };
        let mut check = |image: &crate::sim_disk::Image, result: &chat_memory::Result<()>, at: usize| {
            states += 1;
            let disk = SimDisk::with_image(image);
            let memory = open(&disk);
            assert_eq!(memory.get("a").unwrap(), said);
            let found = memory.get("b").unwrap();
            let is_done = found.len() == after;
            assert!(
                is_done || (found.len() == before && result.is_err()),
                "{what} at {at}: {result:?} {}",
                found.len()
            );
            assert!(torn_is_kept(&disk), "{what} at {at}: {result:?}");
            memory.add("b", &[Message::user("next")]).unwrap();
            assert_eq!(memory.get("b").unwrap()[..], [&found[..], &[Message::user("next")]].concat()[..]);
        };
        for at in 0.. {
            let (memory, disk) = begin();
            disk.trouble(Trouble::PowerCut { at });
            let result = call(&memory);
            let is_over = disk.operations() <= at;
            disk.after_power_cut().iter().for_each(|image| check(image, &result, at));
            for (short, for_good) in [(false, false), (true, false), (false, true), (true, true)] {
                let (memory, disk) = begin();
                disk.take_log();
                disk.trouble(Trouble::Fails { at, errno: 5, short, for_good });
                let result = call(&memory);
                let failed = disk.take_log().get(at).cloned().unwrap_or_default();
                disk.no_trouble();
                // Only where the directory was not synced, an error may mean that it is done.
                let is_done = open(&disk).get("b").unwrap().len() == after;
                assert!(result.is_ok() || !is_done || failed.starts_with("sync-names"), "{what} {failed} {result:?}");
                check(&disk.live(), &result, at);
                disk.after_power_cut().iter().for_each(|image| check(image, &result, at));
            }
            if is_over {
                break;
            }
        }
    }
    println!("{states} states");
    assert!(states > 5_000, "{states}");
}

/// A disk on which one operation says that it begins, and waits, the first time.
#[derive(Debug)]
struct Halting {
    disk: SimDisk,
    at: &'static str,
    halt: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Halting {
    /// The disk, who hears that it halts, and who lets it go on.
    fn new(disk: &SimDisk, at: &'static str) -> (Arc<Self>, Receiver<()>, Sender<()>) {
        let ((begins, has_begun), (let_go, go_on)) = (channel(), channel());
        let halt = Mutex::new(Some((begins, go_on)));
        (Arc::new(Self { disk: disk.clone(), at, halt }), has_begun, let_go)
    }

    fn before(&self, operation: &str) {
        let halt = if operation == self.at { self.halt.lock().unwrap().take() } else { None };
        if let Some((begins, go_on)) = halt {
            begins.send(()).unwrap();
            go_on.recv().unwrap();
        }
    }
}

impl Disk for Halting {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir(dir)
    }

    fn check_dir(&self, dir: &Path) -> io::Result<()> {
        self.before("check_dir");
        self.disk.check_dir(dir)
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(path, how)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before("rename");
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if path.extension() == Some(OsStr::new("tmp")) {
            self.before("remove .tmp");
        }
        self.disk.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.disk.list(dir)
    }

    fn survey(&self, dir: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<(OsString, u64)>> {
        self.disk.survey(dir, wanted)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        let mut status = self.disk.status(path)?;
        if self.at == "status" {
            status.identity.inode += 1_000; // it means another file than the handles do
        }
        Ok(status)
    }

    fn random(&self) -> u64 {
        self.disk.random()
    }
}

#[test]
fn a_clear_that_finds_nothing_takes_nothing_from_a_restore_and_costs_no_add() {
    let disk = SimDisk::default();
    let restored = [Entry::new(0, UNIX_EPOCH, Message::user("restored"))];
    let on = |disk| FileChatMemory::builder(ROOT).disk(disk).open().unwrap();
    let (clearing_disk, found_nothing, go_on_clearing) = Halting::new(&disk, "check_dir");
    let (restoring_disk, is_locked, go_on_restoring) = Halting::new(&disk, "rename");
    let (clearing, restoring) = (on(clearing_disk), on(restoring_disk));
    std::thread::scope(|scope| {
        let clear = scope.spawn(|| clearing.clear("c"));
        found_nothing.recv().unwrap();
        let restore = scope.spawn(|| restoring.restore("c", None, &restored));
        is_locked.recv().unwrap();
        // The clear waits for the restore, or has nothing to remove.
        go_on_clearing.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let added = clear.is_finished();
        if added {
            open(&disk).add("c", &[Message::user("acknowledged")]).unwrap();
        }
        go_on_restoring.send(()).unwrap();
        clear.join().unwrap().unwrap();
        let restored = restore.join().unwrap();
        let found = texts(&open(&disk).get("c").unwrap());
        let expected: &[&[&str]] = if added { &[&["acknowledged"]] } else { &[&[], &["restored"]] };
        assert!(expected.contains(&&*found.iter().map(|text| &**text).collect::<Vec<_>>()), "{found:?} {restored:?}");
    });
}

#[test]
fn a_file_that_was_removed_by_hand_while_it_was_written_anew_costs_no_add() {
    let disk = SimDisk::default();
    let (halting, has_begun, let_go) = Halting::new(&disk, "remove .tmp");
    let memory = FileChatMemory::builder(ROOT).disk(halting).open().unwrap();
    std::thread::scope(|scope| {
        let restore =
            scope.spawn(|| memory.restore("c", None, &[Entry::new(0, UNIX_EPOCH, Message::user("restored"))]));
        has_begun.recv().unwrap();
        disk.remove(&memory.path("c")).unwrap();
        open(&disk).add("c", &[Message::user("acknowledged")]).unwrap();
        let_go.send(()).unwrap();
        assert!(matches!(restore.join().unwrap(), Err(Error::Conflict { .. })));
    });
    assert_eq!(texts(&open(&disk).get("c").unwrap()), ["acknowledged"]);
}

#[test]
fn a_restore_that_is_refused_leaves_no_file() {
    let disk = SimDisk::default();
    let entries = [Entry::new(6, UNIX_EPOCH, Message::user("restored"))];
    assert!(matches!(open(&disk).restore("c", Some(5), &entries), Err(Error::Conflict { .. })));
    assert!(disk.live().is_empty(), "{:?}", disk.live().keys());
}

/// Such as a file system in user space that numbers its files anew each time.
#[test]
fn a_file_system_whose_file_numbers_never_agree_is_an_error_and_no_endless_loop() {
    let disk = SimDisk::default();
    let (renumbering, ..) = Halting::new(&disk, "status");
    let memory = FileChatMemory::builder(ROOT).disk(renumbering).open().unwrap();
    let error = memory.add("c", &[Message::user("one")]).unwrap_err();
    assert!(error.to_string().contains("lock"), "{error}");
    assert!(format!("{error:?}").contains("its name means another file"), "{error:?}");
}

#[test]
fn adds_beside_renames_to_and_fro_all_arrive() {
    let directory = tempfile::tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("a", &[Message::user("first")]).unwrap();
    std::thread::scope(|scope| {
        let memory = &memory;
        let adds = ["a", "b"].map(|id| {
            scope.spawn(move || (0..200).for_each(|n| memory.add(id, &[Message::user(n.to_string())]).unwrap()))
        });
        let rename = |from, to| {
            move || {
                for n in 0..200 {
                    // Where both have messages it is refused; then one goes to a place of its own.
                    if memory.rename(from, to).is_err() {
                        let _ = memory.rename(from, &format!("{from}-{n}"));
                    }
                }
            }
        };
        scope.spawn(rename("a", "b"));
        scope.spawn(rename("b", "a"));
        adds.into_iter().for_each(|add| add.join().unwrap());
    });
    let all = memory.conversations(&PageRequest::first(1_000)).unwrap().items;
    assert_eq!(all.iter().map(|summary| summary.messages).sum::<u64>(), 401);
}

#[test]
fn what_comes_from_elsewhere_keeps_its_numbers_and_times() {
    let directory = tempfile::tempdir().unwrap();
    let memory = quick(directory.path());
    let time = |seconds| UNIX_EPOCH + Duration::from_micros(seconds * 1_000_000 + 17);
    let mut entries: Vec<Entry> =
        (0..300).map(|n| Entry::new(n, time(n / 150), Message::user(format!("number {n}")))).collect();
    entries.push(Entry::new(400, time(9), Message::assistant("behind a gap")));
    memory.restore("a", None, &entries).unwrap();
    assert_eq!(whole(&memory, "a"), entries);
    assert_eq!(memory.history("a", HistoryRange::last(2)).unwrap(), entries[299..]);
    assert!(memory.verify("a").unwrap().is_whole());
    memory.add("a", &[Message::user("next")]).unwrap();
    assert_eq!(whole(&memory, "a").last().unwrap().seq, 401);

    for after in [None, Some(0), Some(400), Some(402)] {
        let next = Entry::new(500, time(10), Message::user("x"));
        assert!(matches!(memory.restore("a", after, &[next]), Err(Error::Conflict { .. })), "{after:?}");
    }
    let next = [Entry::new(401, time(10), Message::user("x"))];
    assert!(matches!(memory.restore("a", Some(401), &next), Err(Error::InvalidMessage { index: 0, .. })));
    let next = [500, 501, 700].map(|seq| Entry::new(seq, time(seq), Message::user("behind")));
    let before = whole(&memory, "a");
    memory.restore("a", Some(401), &next).unwrap();
    assert_eq!(whole(&memory, "a"), [&before[..], &next].concat());
    assert!(memory.verify("a").unwrap().is_whole());
    let unordered = [entries[1].clone(), entries[0].clone()];
    assert!(matches!(memory.restore("b", None, &unordered), Err(Error::InvalidMessage { index: 1, .. })));
    memory.restore("b", None, &[]).unwrap();
    assert!(!memory.path("b").exists());
}

#[test]
fn a_restore_splits_what_one_batch_may_not_hold_and_refuses_what_no_batch_may() {
    let directory = tempfile::tempdir().unwrap();
    let memory = FileChatMemory::builder(directory.path()).max_batch_bytes(4_000).open().unwrap();
    let entry = |seq, length| Entry::new(seq, UNIX_EPOCH, Message::user("x".repeat(length)));
    let entries: Vec<Entry> = (0..40).map(|seq| entry(seq, 700)).collect();
    memory.restore("a", None, &entries).unwrap();
    assert_eq!(whole(&memory, "a"), entries);
    assert!(matches!(memory.restore("b", None, &[entry(0, 10), entry(1, 5_000)]), Err(Error::TooLarge { .. })));
    assert!(memory.get("b").unwrap().is_empty());
    memory.restore("b", None, &[entry(0, 10)]).unwrap();
}

#[test]
fn a_file_tells_whose_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add("user-42", &[Message::user("one")]).unwrap();
    let path = memory.path("user-42");
    assert_eq!(memory.id_of(&path).unwrap().as_deref(), Some("user-42"));
    assert_eq!(memory.id_of(path.file_name().unwrap()).unwrap().as_deref(), Some("user-42"));
    assert_eq!(memory.id_of(memory.path("another")).unwrap(), None);
    assert!(matches!(memory.id_of("notes.txt"), Err(Error::InvalidOption { .. })));
}

#[test]
fn of_many_who_restore_the_same_one_does() {
    let directory = tempfile::tempdir().unwrap();
    quick(directory.path()).add("a", &[Message::user("0")]).unwrap();
    let new: Vec<Entry> = (1..200).map(|seq| Entry::new(seq, UNIX_EPOCH, Message::user(seq.to_string()))).collect();
    let restored = std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..8).map(|_| scope.spawn(|| quick(directory.path()).restore("a", Some(0), &new).is_ok())).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).filter(|restored| *restored).count()
    });
    assert_eq!((restored, whole(&quick(directory.path()), "a").len()), (1, 200));
}

#[test]
fn a_window_over_what_was_restored_shows_what_it_shows_of_any_list() {
    let directory = tempfile::tempdir().unwrap();
    let said: Vec<Message> = (0..60)
        .map(|n| match n {
            0 => Message::system("rules"),
            n if n % 7 == 1 => Message::user(format!("question {n}")),
            n => Message::assistant(format!("answer {n}")),
        })
        .collect();
    let entries: Vec<Entry> = (0..).zip(&said).map(|(seq, m)| Entry::new(seq, UNIX_EPOCH, m.clone())).collect();
    let memory = quick(directory.path());
    memory.restore("a", None, &entries[..40]).unwrap();
    memory.restore("a", Some(39), &entries[40..]).unwrap();
    memory.copy("a", "b").unwrap();
    for n in [1, 2, 3, 10, 30, 100] {
        let windowed = FileChatMemory::builder(directory.path()).max_messages(n).open().unwrap();
        for id in ["a", "b"] {
            assert_eq!(windowed.get(id).unwrap(), chat_memory::Window::messages(n).view(&said), "{n} of {id}");
        }
    }
}
