//! A whole file, through everything that a store does with it. The first byte says what the others are: 0 the file, 1 the
//! file before its checksums are mended, 2 a recipe. The rules are those of `docs/durability.md`.

#![no_main]

use std::path::PathBuf;
use std::sync::Arc;

use chat_memory::{
    ChatHistory, ChatMemory, Damage, DamageKind, Error, FileChatMemory, HistoryRange, Message, PageRequest, Recovery,
    Repair, Result, Verification, Window,
};
use chat_memory_fuzz::disk::MemoryDisk;
use chat_memory_fuzz::forge::{ID, build, id_in, mend_frames, mend_header};
use chat_memory_fuzz::memory::{bounded, bounded_but_in_vain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((mode, rest)) = data.split_first() else {
        return;
    };
    let mut bytes = rest.to_vec();
    match mode % 3 {
        0 => {}
        1 => {
            mend_header(&mut bytes);
            mend_frames(&mut bytes);
        }
        _ => bytes = build(rest),
    }
    let case = Case { id: id_in(&bytes).unwrap_or(ID).to_owned(), bytes };
    let seen = case.look();
    case.read_strictly(&seen);
    case.list(&seen);
    case.add(&seen);
    case.add_strictly(&seen);
    case.repair(&seen);
    case.clear(&seen);
});

/// A file, and whose it is. Each part works on a copy of its own.
struct Case {
    id: String,
    bytes: Vec<u8>,
}

/// What a store says of the file before anything is changed.
struct Seen {
    verified: Result<Verification>,
    messages: Result<Vec<Message>>,
}

impl Seen {
    fn damage(&self) -> &[Damage] {
        self.verified.as_ref().map_or(&[], |verification| &verification.damage)
    }

    fn has(&self, kinds: &[DamageKind]) -> bool {
        self.damage().iter().any(|damage| kinds.contains(&damage.kind))
    }

    /// What is no trace of a crash.
    fn is_harmed(&self) -> bool {
        self.damage().iter().any(|damage| damage.kind != DamageKind::UnfinishedEnd)
    }
}

/// A store, and its disk.
struct Opened {
    disk: MemoryDisk,
    memory: FileChatMemory,
    path: PathBuf,
}

impl Case {
    fn open(&self, recovery: Recovery, window: Option<Window>) -> Opened {
        let place = FileChatMemory::builder("/store").disk(Arc::new(MemoryDisk::default())).open().unwrap();
        let path = place.path(&self.id);
        let disk = MemoryDisk::with_file(&path, &self.bytes);
        let memory = store(&disk, recovery, window);
        Opened { disk, memory, path }
    }

    /// A call that reads. Only where a frame that holds does not decode is there work in vain: it takes wrong checksums.
    #[track_caller]
    fn read<T>(&self, verified: &Result<Verification>, call: impl FnOnce() -> T) -> T {
        let decodes = verified.as_ref().is_ok_and(|verification| !has_undecodable(&verification.damage));
        let len = self.bytes.len();
        if decodes { bounded(len, call) } else { bounded_but_in_vain(len, call) }
    }

    /// Looks, and changes nothing.
    fn look(&self) -> Seen {
        let Opened { disk, memory, path } = self.open(Recovery::Salvage, None);
        let len = self.bytes.len();
        let verified = bounded(len, || memory.verify(&self.id));
        let report = bounded(len, || memory.repair(&self.id, Repair::DryRun));
        match (&verified, &report) {
            (Ok(verified), Ok(report)) => {
                assert_eq!((verified.messages, &verified.damage), (report.messages, &report.damage));
                assert!(verified.bytes <= len as u64 && verified.set_aside.is_empty() && report.set_aside.is_empty());
                let stretches = verified.damage.iter().flat_map(|damage| [damage.offset, damage.end]);
                assert!(stretches.is_sorted(), "damage is told in the order of the file: {:?}", verified.damage);
                assert!(verified.damage.iter().all(|damage| damage.end <= len as u64));
            }
            (Err(error), Err(_)) => assert!(is_refused(error), "damage is no error of verify: {error}"),
            _ => panic!("{verified:?} {report:?}"),
        }
        let messages = self.read(&verified, || memory.get(&self.id));
        let seen = Seen { verified, messages };
        self.compare(&seen, &memory);
        assert_eq!(disk.read(&path).as_ref(), Some(&self.bytes), "reading changes nothing");
        assert_eq!(disk.paths(), [path]);
        seen
    }

    fn compare(&self, seen: &Seen, memory: &FileChatMemory) {
        let Seen { verified, messages } = seen;
        let everything = seen.has(&[DamageKind::Everything]);
        match (verified, messages) {
            (Ok(verified), Ok(messages)) => {
                assert!(!everything, "nothing holds, and the conversation is {} messages", messages.len());
                assert_eq!(messages.len() as u64, verified.messages, "get and verify find the same messages");
                let unreadable = [DamageKind::End, DamageKind::Middle, DamageKind::Undecodable];
                assert!(!messages.is_empty() || !seen.has(&unreadable), "an empty list hides {:?}", verified.damage);
            }
            (Ok(verified), Err(error)) => {
                assert!(error.is_corrupt() && seen.is_harmed() && verified.messages == 0, "{verified:?} {error}");
            }
            (Err(_), Err(error)) => assert!(is_refused(error), "{error}"),
            (Err(error), Ok(messages)) => panic!("verify refuses, get gives {}: {error}", messages.len()),
        }
        let history = self.read(verified, || memory.history(&self.id, HistoryRange::all()));
        let newest = self.read(verified, || memory.history(&self.id, HistoryRange::last(3)));
        match (messages, &history) {
            // Numbers that near the largest there is have no place in a range.
            (_, Ok(history)) if self.numbers_may_run_out() => {
                let mut rest = messages.iter().flatten();
                assert!(history.iter().all(|entry| rest.any(|known| *known == entry.message)));
            }
            (Ok(messages), Ok(history)) => {
                assert!(
                    history.iter().map(|entry| &entry.message).eq(messages),
                    "history and get are the same messages"
                );
                let (last, newest) = (&history[history.len().saturating_sub(3)..], newest.unwrap());
                // Of a frame that holds and does not decode whole, which takes made-up checksums, whoever reads its end alone sees that.
                let may_differ = self.claims_of_none() || seen.has(&[DamageKind::Undecodable]);
                assert!(newest == last || may_differ, "the newest end the history: {newest:?} {last:?}");
            }
            (Err(_), Ok(history)) => assert!(history.is_empty() && self.claims_of_none(), "{messages:?} {history:?}"),
            (_, Err(_)) => assert!(messages.is_err(), "{history:?}"),
        }
        for seq in [0, 2, u64::MAX] {
            let view = self.read(verified, || memory.view_at(&self.id, seq, &Window::messages(2).with_step(3)));
            assert!(view.is_ok() || view.is_err_and(|error| is_refused(&error) || error.is_corrupt()));
        }
    }

    /// Whether a frame claims numbers near the largest there is.
    fn numbers_may_run_out(&self) -> bool {
        self.any_frame(|header| u64::from_le_bytes(header[32..].try_into().unwrap()) > u64::MAX >> 1)
    }

    /// Whether a frame claims that it has no message, so that no range asks for what is in it.
    fn claims_of_none(&self) -> bool {
        self.any_frame(|header| header[28..32] == [0; 4])
    }

    /// The bytes up to the sequence number of what may be a frame.
    fn any_frame(&self, claims: impl Fn(&[u8]) -> bool) -> bool {
        self.bytes.windows(40).filter(|header| header.starts_with(b"\xf5CMf")).any(claims)
    }

    fn read_strictly(&self, seen: &Seen) {
        let strict = self.open(Recovery::Strict, None).memory;
        let messages = self.read(&seen.verified, || strict.get(&self.id));
        match (messages, &seen.messages) {
            (Ok(strict), Ok(messages)) => {
                assert_eq!(&strict, messages);
                assert!(!seen.is_harmed(), "damage is an error of a strict store: {:?}", seen.damage());
            }
            (Ok(_), Err(error)) => panic!("{error}"),
            // A damaged end is seen before what needs a newer version.
            (Err(error), _) => assert!(is_refused(&error) || seen.is_harmed() || seen.verified.is_err(), "{error}"),
        }
    }

    /// A file too short for a message may look like a creation that was cut off to whoever does not know the id.
    fn list(&self, seen: &Seen) {
        let memory = self.open(Recovery::Salvage, None).memory;
        let page = bounded(self.bytes.len(), || memory.conversations(&PageRequest::first(10))).unwrap();
        assert!(page.items.len() + page.problems.len() <= 1 && page.next.is_none());
        if let Some(item) = page.items.first() {
            assert!(item.id == self.id && item.bytes <= self.bytes.len() as u64);
        } else if page.problems.is_empty() && self.bytes.len() >= SHORTEST {
            let is_empty = seen.messages.as_ref().is_ok_and(Vec::is_empty);
            assert!(is_empty && !seen.is_harmed(), "what is not listed was never acknowledged");
        }
    }

    /// An acknowledged message is read back, behind what was there; what is cut off is set aside.
    fn add(&self, seen: &Seen) {
        let Opened { disk, memory, path } = self.open(Recovery::Salvage, None);
        let window = Window::messages(3).with_step(2);
        let windowed = store(&disk, Recovery::Salvage, Some(window.clone()));
        let before = self.read(&seen.verified, || windowed.get(&self.id));
        assert!(before.is_ok() || seen.messages.is_err(), "{before:?}");
        let added = Message::user("acknowledged").with_id("added");
        // Once through each store, so that what each remembers is asked for.
        for (round, store) in [(1, &memory), (2, &windowed)] {
            match bounded(self.bytes.len(), || store.add(&self.id, std::slice::from_ref(&added))) {
                Ok(()) => {}
                Err(Error::TooLarge { .. }) => return, // ordinals have run out
                Err(error) => {
                    assert!(seen.verified.is_err() && is_refused(&error), "{error}");
                    assert_eq!(disk.read(&path).as_ref(), Some(&self.bytes), "an add that fails changes nothing");
                    return;
                }
            }
            self.check_set_aside(seen, &disk);
            if seen.verified.is_err() {
                continue; // of a newer version, not at its end
            }
            let mut expected = seen.messages.as_ref().map_or_else(|_| Vec::new(), Vec::clone);
            expected.resize(expected.len() + round, added.clone());
            let fresh = self::store(&disk, Recovery::Salvage, None).get(&self.id).unwrap();
            assert!(fresh == expected, "{} of {} messages", fresh.len(), expected.len());
            assert!(memory.get(&self.id).unwrap() == expected, "what is remembered is what is there");
            let fresh = self::store(&disk, Recovery::Salvage, Some(window.clone())).get(&self.id).unwrap();
            for view in [windowed.get(&self.id).unwrap(), fresh] {
                assert_eq!(view.last(), Some(&added), "the newest message is shown");
            }
            let verified = memory.verify(&self.id).unwrap();
            assert_eq!(verified.messages, expected.len() as u64);
            let ends = [DamageKind::End, DamageKind::UnfinishedEnd, DamageKind::Everything];
            assert!(!verified.damage.iter().any(|damage| ends.contains(&damage.kind)), "the end was mended");
        }
    }

    /// Every stretch that is no longer in the file is in a copy beside it.
    fn check_set_aside(&self, seen: &Seen, disk: &MemoryDisk) {
        let files: Vec<Vec<u8>> = disk.paths().iter().filter_map(|path| disk.read(path)).collect();
        // Where checksums are made up, a copy may begin before it, or behind its beginning, which then stands where it stood.
        let is_kept = |at: usize, bytes: &[u8]| {
            (0..=bytes.len()).any(|part| {
                let (there, rest) = bytes.split_at(part);
                files.iter().any(|file| file.ends_with(rest))
                    && (there.is_empty() || files.iter().any(|file| file.get(at..at + part) == Some(there)))
            })
        };
        for damage in seen.damage() {
            let bytes = &self.bytes[damage.offset as usize..damage.end as usize];
            match damage.kind {
                // Of a header that was never finished there is nothing to keep.
                DamageKind::UnfinishedEnd if damage.offset == 0 => {}
                DamageKind::UnfinishedEnd | DamageKind::End | DamageKind::Everything => {
                    assert!(is_kept(damage.offset as usize, bytes), "{damage:?} is not kept")
                }
                _ => {}
            }
        }
    }

    /// A strict store adds nothing behind a damaged end.
    fn add_strictly(&self, seen: &Seen) {
        let Opened { disk, memory, path } = self.open(Recovery::Strict, None);
        let added = bounded(self.bytes.len(), || memory.add(&self.id, &[Message::user("strict")]));
        if seen.has(&[DamageKind::End, DamageKind::Everything]) {
            assert!(added.is_err_and(|error| error.is_corrupt()));
            assert_eq!(disk.read(&path).as_ref(), Some(&self.bytes));
        }
    }

    /// What is intact stays, under its number; what is not is set aside; a second repair changes nothing.
    fn repair(&self, seen: &Seen) {
        let Opened { disk, memory, path } = self.open(Recovery::Salvage, None);
        let numbered = memory.history(&self.id, HistoryRange::all());
        let report = bounded(self.bytes.len(), || memory.repair(&self.id, Repair::Apply));
        let Ok(verified) = &seen.verified else {
            assert!(report.is_err());
            assert_eq!(disk.read(&path).as_ref(), Some(&self.bytes), "what is not understood is left alone");
            return;
        };
        let report = report.unwrap();
        assert_eq!((report.messages, &report.damage), (verified.messages, &verified.damage));
        assert!(report.set_aside.len() <= report.damage.len());
        let copies: Vec<Vec<u8>> = report.set_aside.iter().filter_map(|path| disk.read(path)).collect();
        for damage in
            report.damage.iter().filter(|damage| (damage.offset, damage.kind) != (0, DamageKind::UnfinishedEnd))
        {
            let bytes = &self.bytes[damage.offset as usize..damage.end as usize];
            assert!(copies.iter().any(|copy| copy.ends_with(bytes)), "{damage:?} is not kept");
        }
        if report.damage.is_empty() {
            assert_eq!(disk.read(&path).as_ref(), Some(&self.bytes), "a file without damage is left alone");
        }

        let repaired = disk.read(&path);
        let messages = memory.get(&self.id).unwrap();
        assert!(messages == seen.messages.as_ref().map_or_else(|_| Vec::new(), Vec::clone));
        // Numbers that near the largest there is have no place in a range.
        if let Ok(numbered) = numbered
            && !self.numbers_may_run_out()
        {
            assert!(memory.history(&self.id, HistoryRange::all()).unwrap() == numbered, "numbers and times stay");
        }
        let second = bounded(self.bytes.len(), || memory.repair(&self.id, Repair::Apply)).unwrap();
        assert!(second.damage.is_empty() && second.set_aside.is_empty(), "{report:?} {second:?}");
        assert_eq!(disk.read(&path), repaired, "a second repair changes nothing");
        assert!(store(&disk, Recovery::Strict, None).get(&self.id).unwrap() == messages);

        let added = Message::user("after the repair");
        match memory.add(&self.id, std::slice::from_ref(&added)) {
            Ok(()) => assert_eq!(store(&disk, Recovery::Strict, None).get(&self.id).unwrap().last(), Some(&added)),
            Err(error) => assert!(matches!(error, Error::TooLarge { .. }), "{error}"),
        }
    }

    fn clear(&self, seen: &Seen) {
        let Opened { disk, memory, path } = self.open(Recovery::Salvage, None);
        let _ = memory.add(&self.id, &[Message::user("cleared")]);
        match memory.clear(&self.id) {
            Ok(()) => {
                assert!(disk.paths().is_empty() && memory.get(&self.id).unwrap().is_empty());
                assert!(memory.verify(&self.id).unwrap().is_whole());
            }
            Err(error) => {
                assert!(error.is_corrupt() && seen.verified.is_err(), "{error}");
                assert_eq!(disk.read(&path).as_ref(), Some(&self.bytes), "another conversation's file is left alone");
            }
        }
    }
}

/// A file header and an empty frame.
const SHORTEST: usize = 60 + 1 + 84;

fn store(disk: &MemoryDisk, recovery: Recovery, window: Option<Window>) -> FileChatMemory {
    let builder = FileChatMemory::builder("/store").disk(Arc::new(disk.clone())).recovery(recovery);
    match window {
        Some(window) => builder.window(window),
        None => builder,
    }
    .open()
    .unwrap()
}

fn has_undecodable(damage: &[Damage]) -> bool {
    damage.iter().any(|damage| damage.kind == DamageKind::Undecodable)
}

/// The file is another conversation's, or of a newer version.
fn is_refused(error: &Error) -> bool {
    matches!(error, Error::UnsupportedVersion { .. } | Error::Corrupt { offset: 0, .. })
}
