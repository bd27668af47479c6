//! Every way in which one file can be harmed, and what becomes of it: which messages are read, what is told, and that nothing goes
//! without a copy. What is expected is worked out here from where the harm was done, and not by the library.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use chat_memory::{
    ChatHistory, ChatMemory, DamageKind, Durability, Error, FileChatMemory, HistoryRange, Message, Recovery, Repair,
};

use chat_memory::disk::Disk;

use crate::sim_disk::{Image, SimDisk};

const ID: &str = "c";
const HEADER: usize = 60 + ID.len();
const SECTOR: usize = 512;
const FRAME_HEADER: usize = 72;
/// The shortest frame.
const LEAST: usize = 84;

fn builder(disk: &SimDisk) -> chat_memory::FileChatMemoryBuilder {
    FileChatMemory::builder("/store").durability(Durability::Process).disk(Arc::new(disk.clone()))
}

/// A file and where its frames are.
struct Whole {
    bytes: Vec<u8>,
    frames: Vec<(Range<usize>, Vec<Message>)>,
}

impl Whole {
    /// `epoch` tells it from other files with the same messages.
    fn of(epoch: usize, id: &str, batches: &[Vec<Message>]) -> Self {
        let disk = SimDisk::default();
        (0..epoch).for_each(|_| _ = disk.random());
        let memory = builder(&disk).open().unwrap();
        let mut whole = Self { bytes: Vec::new(), frames: Vec::new() };
        for batch in batches {
            memory.add(id, batch).unwrap();
            whole.bytes = disk.live()[&memory.path(id)].clone();
            let start = whole.frames.last().map_or(60 + id.len(), |(range, _)| range.end);
            whole.frames.push((start..whole.bytes.len(), batch.clone()));
        }
        whole
    }

    /// Short frames, and two that pass a sector.
    fn usual() -> Self {
        let call = Message::assistant("I shall look.").with_tool_call("t1", "look", "{\"at\":1}");
        Self::of(
            1,
            ID,
            &[
                vec![Message::system("Be brief."), Message::user("hello")],
                vec![Message::assistant("long ".repeat(300))],
                vec![Message::user("and now?")],
                vec![call, Message::tool_result("t1", "look", "nothing")],
                vec![Message::user("x".repeat(700)), Message::assistant("the last")],
            ],
        )
    }

    /// Like the usual one, of short frames alone.
    fn short() -> Self {
        Self::of(
            1,
            ID,
            &["one", "two", "three", "four"].map(|text| vec![Message::user(text), Message::assistant(text)]),
        )
    }

    fn range(&self, frame: usize) -> Range<usize> {
        self.frames[frame].0.clone()
    }

    fn frame(&self, frame: usize) -> &[u8] {
        &self.bytes[self.range(frame)]
    }

    /// The bytes of the header and of some frames, one behind the other.
    fn with_frames(&self, frames: &[usize]) -> Vec<u8> {
        let frames = frames.iter().flat_map(|frame| self.frame(*frame));
        self.bytes[..HEADER].iter().chain(frames).copied().collect()
    }

    fn changed(&self, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        bytes
    }

    fn all(&self) -> Vec<usize> {
        (0..self.frames.len()).collect()
    }

    fn all_but(&self, lost: &[usize]) -> Vec<usize> {
        self.all().into_iter().filter(|frame| !lost.contains(frame)).collect()
    }
}

/// What is expected of a harmed file.
struct Expected<'a> {
    what: String,
    /// The frames that are read.
    kept: &'a [usize],
    damage: Vec<(DamageKind, Range<usize>)>,
}

impl Whole {
    /// Checks everything that the public interface says of a harmed file.
    fn check(&self, harmed: &[u8], expected: &Expected<'_>) {
        let Expected { what, kept, damage } = expected;
        let path = builder(&SimDisk::default()).open().unwrap().path(ID);
        let disk = SimDisk::with_image(&Image::from([(path.clone(), harmed.to_vec())]));
        let open = || builder(&disk).open().unwrap();
        let firsts: Vec<u64> = self
            .frames
            .iter()
            .scan(0, |next, (_, messages)| {
                let first = *next;
                *next += messages.len() as u64;
                Some(first)
            })
            .collect();
        let messages: Vec<(u64, Message)> =
            kept.iter().flat_map(|frame| (firsts[*frame]..).zip(self.frames[*frame].1.iter().cloned())).collect();
        let texts: Vec<Message> = messages.iter().map(|(_, message)| message.clone()).collect();
        let everything = matches!(damage.first(), Some((DamageKind::Everything, _)));
        let told = |memory: &FileChatMemory| -> Vec<(DamageKind, Range<usize>)> {
            let damage = memory.verify(ID).unwrap().damage;
            damage.iter().map(|found| (found.kind, found.offset as usize..found.end as usize)).collect()
        };

        // What is read, and what is told.
        let memory = open();
        match memory.get(ID) {
            Err(Error::Corrupt { .. }) => assert!(everything, "{what}: nothing is read"),
            found => assert!(!everything && found.as_ref().unwrap() == &texts, "{what}: {found:?}"),
        }
        assert_eq!(told(&open()), *damage, "{what}");
        let strict = builder(&disk).recovery(Recovery::Strict).open().unwrap();
        let is_harm = |(kind, _): &(DamageKind, _)| *kind != DamageKind::UnfinishedEnd;
        assert_eq!(strict.get(ID).is_err_and(|error| error.is_corrupt()), damage.iter().any(is_harm), "{what}");
        if !everything {
            let entries = open().history(ID, HistoryRange::last(100)).unwrap();
            let found: Vec<(u64, Message)> = entries.into_iter().map(|entry| (entry.seq, entry.message)).collect();
            assert_eq!(found, messages, "{what}");
            let view = builder(&disk).max_messages(2).open().unwrap().get(ID).unwrap();
            assert!(view.iter().all(|message| texts.contains(message)), "{what}: {view:?}");
        }
        assert_eq!(disk.live()[&path], harmed, "{what}: reading changed the file");

        // It goes on, by an add or by a repair, and what does not hold is kept.
        let next = Message::user("what comes next");
        let longer = [&texts[..], std::slice::from_ref(&next)].concat();
        let memory = open();
        memory.add(ID, std::slice::from_ref(&next)).unwrap();
        for memory in [&memory, &open()] {
            assert_eq!(memory.get(ID).unwrap(), longer, "{what}");
        }
        let memory = open();
        memory.repair(ID, Repair::Apply).unwrap();
        for memory in [&memory, &open(), &strict] {
            assert_eq!(memory.get(ID).unwrap(), longer, "{what}");
        }
        assert_eq!(memory.verify(ID).unwrap().damage, [], "{what}");
        assert_eq!(memory.repair(ID, Repair::Apply).unwrap().set_aside, [""; 0].map(PathBuf::from), "{what}");
        for (kind, range) in damage {
            let bytes = &harmed[range.clone()];
            let is_kept = disk.live().iter().any(|(at, kept)| *at != path && kept == bytes);
            // Of a header that was never finished there is nothing to keep.
            let is_header = *kind == DamageKind::UnfinishedEnd && range.start == 0;
            assert!(is_kept || is_header, "{what}: {kind:?} {range:?} is gone");
        }
    }

    /// What is told of bytes behind the last frame that holds, by the rules of `docs/format.md`, where no header holds.
    fn tail(harmed: &[u8], start: usize) -> Option<(DamageKind, Range<usize>)> {
        let used = harmed[start..].iter().rposition(|byte| *byte != 0)? + 1;
        Some(Self::tail_of(harmed, start, used.max(LEAST)))
    }

    /// The same where a write is known to have reached so far.
    fn tail_of(harmed: &[u8], start: usize, extent: usize) -> (DamageKind, Range<usize>) {
        let tail = &harmed[start..];
        let is_torn = extent > tail.len()
            || tail[extent - 1] == 0
            || (start..start + extent)
                .collect::<Vec<_>>()
                .chunk_by(|a, b| a / SECTOR == b / SECTOR)
                .any(|sector| sector.iter().all(|at| harmed[*at] == 0));
        let kind = if is_torn { DamageKind::UnfinishedEnd } else { DamageKind::End };
        (kind, start..harmed.len())
    }
}

#[test]
fn cut_at_every_byte() {
    let whole = Whole::usual();
    for cut in 0..=whole.bytes.len() {
        let kept: Vec<usize> = whole.all().into_iter().filter(|frame| whole.range(*frame).end <= cut).collect();
        let end = kept.last().map_or(HEADER, |frame| whole.range(*frame).end);
        let damage = match cut {
            0 => None,
            // A creation that was never finished.
            _ if cut < HEADER => Some((DamageKind::UnfinishedEnd, 0..cut)),
            _ if cut == end => None,
            _ => Some((DamageKind::UnfinishedEnd, end..cut)),
        };
        let expected = Expected { what: format!("cut at {cut}"), kept: &kept, damage: damage.into_iter().collect() };
        whole.check(&whole.bytes[..cut], &expected);
    }
}

#[test]
fn every_bit_flipped() {
    let whole = Whole::short();
    let last = whole.frames.len() - 1;
    for bit in 0..whole.bytes.len() * 8 {
        let at = bit / 8;
        let harmed = whole.changed(|bytes| bytes[at] ^= 1 << (bit % 8));
        let hit = whole.all().into_iter().find(|frame| whole.range(*frame).contains(&at));
        let damage = match hit {
            None => (DamageKind::Header, 0..HEADER),
            // The last byte of a frame is no zero, nor is it one with a bit flipped: it was whole once.
            Some(frame) if frame == last => (DamageKind::End, whole.range(frame)),
            Some(frame) => (DamageKind::Middle, whole.range(frame)),
        };
        let what = format!("bit {} of byte {at}", bit % 8);
        let kept = whole.all_but(hit.as_slice());
        whole.check(&harmed, &Expected { what, kept: &kept, damage: vec![damage] });
    }
}

#[test]
fn every_bit_flipped_in_space_written_ahead() {
    let whole = Whole::short();
    let end = whole.bytes.len();
    let kept = whole.all();
    for behind in 0..1_200 {
        for bit in [0, 7] {
            let harmed = whole.changed(|bytes| {
                bytes.resize(end + 1_200, 0);
                bytes[end + behind] ^= 1 << bit;
            });
            let what = format!("bit {bit} of the zero {behind} behind the end");
            let damage = Whole::tail(&harmed, end).into_iter().collect();
            whole.check(&harmed, &Expected { what, kept: &kept, damage });
        }
    }
}

/// Frames that a stretch of harm meets are lost together where they follow one another.
fn damage_of(whole: &Whole, harmed: &[u8], harm: Range<usize>) -> (Vec<usize>, Vec<(DamageKind, Range<usize>)>) {
    let is_hit = |range: &Range<usize>| range.start < harm.end && harm.start < range.end;
    let lost: Vec<usize> = whole.all().into_iter().filter(|frame| is_hit(&whole.range(*frame))).collect();
    let kept = whole.all_but(&lost);
    let header_is_hit = harm.start < HEADER;
    let mut damage = Vec::new();
    let start = if header_is_hit { 0 } else { lost.first().map_or(0, |frame| whole.range(*frame).start) };
    let end = lost.last().map_or(HEADER, |frame| whole.range(*frame).end);
    if kept.is_empty() {
        damage.push((DamageKind::Everything, 0..harmed.len()));
    } else if kept.last() < lost.last() {
        let first = whole.range(lost[0]);
        match harm.start >= first.start + FRAME_HEADER {
            true => damage.push(Whole::tail_of(harmed, start, first.len())),
            false => damage.extend(Whole::tail(harmed, start)),
        }
    } else {
        damage.push((if header_is_hit { DamageKind::Header } else { DamageKind::Middle }, start..end));
    }
    (kept, damage)
}

#[test]
fn every_sector_zeroed() {
    let whole = Whole::usual();
    let len = whole.bytes.len();
    for start in (0..len).step_by(SECTOR) {
        // One sector, and all from it on.
        for end in [len.min(start + SECTOR), len] {
            let harmed = whole.changed(|bytes| bytes[start..end].fill(0));
            let what = format!("zeros from {start} to {end}");
            let (kept, mut damage) = damage_of(&whole, &harmed, start..end);
            if start == 0 && end == len {
                damage = vec![(DamageKind::Everything, 0..len)];
            }
            whole.check(&harmed, &Expected { what, kept: &kept, damage });
        }
    }
}

#[test]
fn frames_dropped_doubled_and_swapped() {
    for whole in [Whole::usual(), Whole::short()] {
        let all = whole.all();
        let count = all.len();
        for frame in all.clone() {
            // Dropped: what is behind it stands where it was not written.
            let harmed = whole.with_frames(&whole.all_but(&[frame]));
            let start = whole.range(frame).start;
            let damage: Vec<_> = Whole::tail(&harmed, start).into_iter().collect();
            // A file without its last frames looks whole: no reader could tell.
            assert_eq!(damage.is_empty(), frame == count - 1);
            let damage = if frame == 0 { vec![(DamageKind::Everything, 0..harmed.len())] } else { damage };
            let what = format!("frame {frame} is dropped");
            whole.check(&harmed, &Expected { what, kept: &all[..frame], damage });

            // Doubled: the copy and what is behind it do.
            let twice: Vec<usize> = (0..=frame).chain(frame..count).collect();
            let harmed = whole.with_frames(&twice);
            let damage = Whole::tail(&harmed, whole.range(frame).end).into_iter().collect();
            let what = format!("frame {frame} is doubled");
            whole.check(&harmed, &Expected { what, kept: &all[..=frame], damage });

            // Swapped with the next one; behind them all is in its place again.
            if frame + 1 < count {
                let mut order = all.clone();
                order.swap(frame, frame + 1);
                let harmed = whole.with_frames(&order);
                let (start, end) = (whole.range(frame).start, whole.range(frame + 1).end);
                let kept = whole.all_but(&[frame, frame + 1]);
                let damage = match frame + 2 < count {
                    true => vec![(DamageKind::Middle, start..end)],
                    false => Whole::tail(&harmed, start).into_iter().collect(),
                };
                let what = format!("frame {frame} and the next are swapped");
                whole.check(&harmed, &Expected { what, kept: &kept, damage });
            }
        }
    }
}

#[test]
fn frames_from_another_file_and_from_another_epoch() {
    let whole = Whole::short();
    let texts = ["uno", "dos", "tress", "four"].map(|text| vec![Message::user(text), Message::assistant(text)]);
    // Another conversation's, and this one's before a clear: the epoch tells.
    for (other, what) in [(Whole::of(2, "d", &texts), "another file"), (Whole::of(2, ID, &texts), "another epoch")] {
        for frame in whole.all() {
            let range = whole.range(frame);
            assert_eq!(range, other.range(frame), "of the same length, for the worst case");
            let harmed = whole.changed(|bytes| bytes[range.clone()].copy_from_slice(other.frame(frame)));
            let kept = whole.all_but(&[frame]);
            let is_last = frame + 1 == whole.frames.len();
            let damage = vec![(if is_last { DamageKind::End } else { DamageKind::Middle }, range)];
            let what = format!("frame {frame} is from {what}");
            whole.check(&harmed, &Expected { what, kept: &kept, damage });
        }
    }
}

#[test]
fn tails_of_zeros_and_of_garbage() {
    let whole = Whole::short();
    let kept = whole.all();
    let end = whole.bytes.len();
    let mut random = 1_u64;
    for len in (1..200).chain([511, 512, 513, 1_024, 5_000, 70_000]) {
        let zeros = whole.changed(|bytes| bytes.resize(end + len, 0));
        let what = format!("{len} zeros behind the end");
        whole.check(&zeros, &Expected { what, kept: &kept, damage: vec![] });

        let garbage = whole.changed(|bytes| {
            bytes.extend((0..len).map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8
            }));
        });
        let what = format!("{len} bytes of garbage behind the end");
        let damage = Whole::tail(&garbage, end).into_iter().collect();
        whole.check(&garbage, &Expected { what, kept: &kept, damage });
    }
}

#[test]
fn two_files_concatenated() {
    let whole = Whole::short();
    let kept = whole.all();
    for (other, what) in [
        (whole.bytes.clone(), "itself"),
        (Whole::usual().bytes, "another"),
        (Whole::of(2, "d", &[vec![Message::user("d")]]).bytes, "another conversation's"),
    ] {
        let harmed = [&whole.bytes[..], &other].concat();
        let what = format!("with {what} behind it");
        let damage = vec![(DamageKind::End, whole.bytes.len()..harmed.len())];
        whole.check(&harmed, &Expected { what, kept: &kept, damage });
    }
}

#[test]
fn a_file_in_which_nothing_holds() {
    let whole = Whole::short();
    let len = whole.bytes.len();
    for (what, harmed) in [
        ("zeros", vec![0; len]),
        ("text", b"not a conversation at all, but text ".repeat(20)),
        ("every byte changed", whole.bytes.iter().map(|byte| !byte).collect()),
        ("no header, and frames out of place", whole.bytes[HEADER..].to_vec()),
    ] {
        let damage = vec![(DamageKind::Everything, 0..harmed.len())];
        whole.check(&harmed, &Expected { what: what.to_owned(), kept: &[], damage });
    }
}
