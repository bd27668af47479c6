//! Telling what a file holds: which frames hold, which stretches are damaged, what the tail is.

use super::Epoch;
use super::frame::{Checked, EMPTY_LEN, Ending, Frame, FrameHeader, find_magic, rfind_end_mark};

/// What a power cut writes or does not write as a whole.
const SECTOR: usize = 512;

/// What lies behind the last frame that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing, or zeros: space written ahead.
    Clean,
    /// What a crash leaves of a frame that was never acknowledged.
    Torn,
    /// It was whole once.
    Damaged,
}

/// One stretch of a file.
pub(crate) enum Stretch<'a> {
    /// A frame that holds.
    Frame(Frame<'a>),
    /// Bytes that do not hold, from start to end, with a frame that does behind them.
    Corrupt(u64, u64),
}

/// Tells a whole file apart, stretch by stretch.
pub(crate) struct Scan<'a> {
    bytes: &'a [u8],
    epoch: Option<Epoch>,
    /// The end of the stretches so far.
    end: u64,
    /// The frame behind a corrupt stretch.
    next: Option<Frame<'a>>,
    /// How many more bytes may be summed for frames that turn out not to hold.
    budget: usize,
}

/// What harm done by accident needs: frames do not overlap, so no byte is summed twice. Bytes made by someone who computes
/// checksums could make a search sum half the file for every frame; what lies behind is then taken as damaged.
fn budget(bytes: &[u8]) -> usize {
    bytes.len().saturating_mul(2)
}

impl<'a> Scan<'a> {
    /// Begins at the end of the file header, or at 0 where that does not hold.
    pub(crate) fn new(bytes: &'a [u8], start: u64, epoch: Option<Epoch>) -> Self {
        Self { bytes, epoch, end: start, next: None, budget: budget(bytes) }
    }

    /// The next frame that holds.
    fn find_frame(&mut self) -> Option<Frame<'a>> {
        let mut position = self.end;
        loop {
            let rest = from(self.bytes, position);
            match Frame::check(rest, position, self.epoch) {
                Checked::Holds(frame) => return Some(frame),
                Checked::DoesNot { checked } => self.budget = self.budget.checked_sub(checked)?,
            }
            position += 1 + find_magic(rest.get(1..)?)? as u64;
        }
    }

    /// When there are no more stretches: where the last frame that holds ends, and what is behind it.
    pub(crate) fn tail(&self) -> (u64, Tail) {
        (self.end, classify_tail(from(self.bytes, self.end), self.end, self.epoch))
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = Stretch<'a>;

    fn next(&mut self) -> Option<Stretch<'a>> {
        let start = self.end;
        let frame = match self.next.take() {
            Some(frame) => frame,
            None => self.find_frame()?,
        };
        if frame.header.offset > start {
            self.end = frame.header.offset;
            self.next = Some(frame);
            return Some(Stretch::Corrupt(start, self.end));
        }
        self.end = frame.header.end();
        Some(Stretch::Frame(frame))
    }
}

/// What the bytes behind the last frame that holds are; they begin at `offset` in their file, and reach to its end.
pub(crate) fn classify_tail(tail: &[u8], offset: u64, epoch: Option<Epoch>) -> Tail {
    let Some(last) = tail.iter().rposition(|byte| *byte != 0) else {
        return Tail::Clean;
    };
    // How far the write reached that left this.
    let extent = match FrameHeader::parse(tail) {
        Some(header) if header.offset == offset && epoch.is_none_or(|epoch| epoch == header.epoch) => {
            header.frame_len()
        }
        _ => EMPTY_LEN.max(last + 1) as u64,
    };
    let Some(written) = usize::try_from(extent).ok().and_then(|extent| tail.get(..extent)) else {
        return Tail::Torn; // it passes the end of the file
    };
    let first_sector = SECTOR - (offset % SECTOR as u64) as usize;
    let (first, rest) = written.split_at(first_sector.min(written.len()));
    let is_zero = |sector: &[u8]| sector.iter().all(|byte| *byte == 0);
    if written.last() == Some(&0) || is_zero(first) || rest.chunks(SECTOR).any(is_zero) {
        Tail::Torn
    } else {
        Tail::Damaged
    }
}

/// What a search from the end of a file for the last frame that holds has found.
pub(crate) enum LastFrame<'a> {
    Found(Frame<'a>),
    /// It may be one that begins before the bytes given.
    Before,
    None,
}

/// Searches backwards for the last frame that holds. `bytes` are the end of a file, from `offset` on; no frame begins before
/// `start`.
pub(crate) fn last_frame(bytes: &[u8], offset: u64, start: u64, epoch: Option<Epoch>) -> LastFrame<'_> {
    let mut candidates = bytes;
    let mut budget = budget(bytes);
    while let Some(end) = rfind_end_mark(candidates) {
        let (before, _) = candidates.split_at(end);
        match Frame::parse_ending(before, offset + end as u64, epoch) {
            Ending::Frame(frame) if frame.header.offset >= start => return LastFrame::Found(frame),
            Ending::Before(begin) if begin >= start => return LastFrame::Before,
            Ending::Frame(_) | Ending::Before(_) | Ending::None { checked: 0 } => {}
            Ending::None { checked } => match budget.checked_sub(checked) {
                Some(left) => budget = left,
                // More bytes make for a larger budget.
                None => break,
            },
        }
        candidates = before.split_last().map_or(&[], |(_, rest)| rest);
    }
    // A frame may have its end mark before, or across the edge of, these bytes.
    if offset > start { LastFrame::Before } else { LastFrame::None }
}

fn from(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::FrameWriter;
    use super::*;

    const EPOCH: Epoch = Epoch(77);

    /// A file of a three-byte header and frames with these payloads.
    fn file(payloads: &[&[u8]]) -> (Vec<u8>, Vec<u64>) {
        let mut bytes = b"hdr".to_vec();
        let mut offsets = Vec::new();
        for (ordinal, payload) in payloads.iter().enumerate() {
            let offset = bytes.len() as u64;
            let header = FrameHeader {
                payload_len: 0,
                epoch: EPOCH,
                offset,
                ordinal: ordinal as u32,
                count: 1,
                first_seq: ordinal as u64,
                recorded_at: 0,
                newest_system: None,
                newest_user: None,
                kind: FrameHeader::MESSAGES,
                codec: FrameHeader::RECORDS_V1,
                flags: 0,
            };
            let writer = FrameWriter::new(|bytes| {
                bytes.extend(*payload);
                Ok::<_, ()>(())
            });
            bytes.extend(writer.unwrap().finish(header).0);
            offsets.push(offset);
        }
        offsets.push(bytes.len() as u64);
        (bytes, offsets)
    }

    /// The ordinals of the frames that hold, the corrupt stretches, and the tail.
    struct Found {
        ordinals: Vec<u32>,
        corrupt: Vec<(u64, u64)>,
        end: u64,
        tail: Tail,
    }

    fn scan(bytes: &[u8], start: u64, epoch: Option<Epoch>) -> Found {
        let mut scan = Scan::new(bytes, start, epoch);
        let (mut ordinals, mut corrupt) = (Vec::new(), Vec::new());
        for stretch in &mut scan {
            match stretch {
                Stretch::Frame(frame) => ordinals.push(frame.header.ordinal),
                Stretch::Corrupt(start, end) => corrupt.push((start, end)),
            }
        }
        let (end, tail) = scan.tail();
        Found { ordinals, corrupt, end, tail }
    }

    fn found(bytes: &[u8], offset: u64) -> Option<u32> {
        match last_frame(&bytes[offset as usize..], offset, 3, Some(EPOCH)) {
            LastFrame::Found(frame) => Some(frame.header.ordinal),
            _ => None,
        }
    }

    #[test]
    fn a_whole_file_is_all_frames_and_a_clean_tail() {
        let (mut bytes, offsets) = file(&[b"one", b"", b"three"]);
        for zeros in [0, 1, 11, 600] {
            bytes.truncate(offsets[3] as usize);
            bytes.resize(bytes.len() + zeros, 0);
            let scan = scan(&bytes, 3, Some(EPOCH));
            assert_eq!(scan.ordinals, [0, 1, 2]);
            assert_eq!((scan.corrupt.len(), scan.end, scan.tail), (0, offsets[3], Tail::Clean));
            assert_eq!(found(&bytes, 3), Some(2));
        }
    }

    #[test]
    fn a_damaged_middle_is_told_apart_from_a_damaged_tail() {
        let (whole, offsets) = file(&[b"one", b"two", b"three"]);
        for at in 3..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let scan = scan(&bytes, 3, Some(EPOCH));
            let hit = (0..3).find(|frame| (at as u64) < offsets[frame + 1]).unwrap();
            let expected: Vec<u32> = (0..3).filter(|frame| *frame != hit as u32).collect();
            assert_eq!(scan.ordinals, expected, "{at}");
            if hit == 2 {
                assert_eq!((scan.corrupt.len(), scan.end), (0, offsets[2]));
                assert_eq!(scan.tail, Tail::Damaged, "{at}");
                assert_eq!(found(&bytes, 3), Some(1), "{at}");
            } else {
                assert_eq!(scan.corrupt, [(offsets[hit], offsets[hit + 1])], "{at}");
                assert_eq!(scan.tail, Tail::Clean);
                assert_eq!(found(&bytes, 3), Some(2), "{at}");
            }
        }
    }

    #[test]
    fn a_cut_tail_is_torn() {
        let (whole, offsets) = file(&[b"one", b"two"]);
        for cut in offsets[1] as usize + 1..whole.len() {
            let scan = scan(&whole[..cut], 3, Some(EPOCH));
            assert_eq!((scan.ordinals, scan.end, scan.tail), (vec![0], offsets[1], Tail::Torn), "{cut}");
            assert_eq!(found(&whole[..cut], 3), Some(0), "{cut}");
        }
    }

    #[test]
    fn a_tail_with_a_sector_of_zeros_is_torn() {
        let (mut bytes, offsets) = file(&[b"one", &[7; 2000]]);
        let sector = (offsets[1] as usize + 600).next_multiple_of(SECTOR);
        bytes[sector..sector + SECTOR].fill(0);
        assert_eq!(scan(&bytes, 3, Some(EPOCH)).tail, Tail::Torn);
        // Fewer zeros than a sector, or across two, are no trace of a power cut.
        let (mut bytes, _) = file(&[b"one", &[7; 2000]]);
        bytes[sector + 1..sector + SECTOR].fill(0);
        assert_eq!(scan(&bytes, 3, Some(EPOCH)).tail, Tail::Damaged);
    }

    #[test]
    fn stale_doubled_and_foreign_frames_do_not_hold() {
        let (whole, offsets) = file(&[b"one", b"two"]);
        let frame = |at: usize| &whole[offsets[at] as usize..offsets[at + 1] as usize];
        // Doubled: the copy knows another offset.
        let doubled = [&whole[..], frame(1)].concat();
        let doubled = scan(&doubled, 3, Some(EPOCH));
        assert_eq!((doubled.ordinals, doubled.tail), (vec![0, 1], Tail::Damaged));
        // Swapped.
        let swapped = [b"hdr", frame(1), frame(0)].concat();
        assert_eq!(scan(&swapped, 3, Some(EPOCH)).ordinals, [0; 0]);
        // Of another epoch.
        assert_eq!(scan(&whole, 3, Some(Epoch(78))).ordinals, [0; 0]);
        // Inside a payload.
        let (nested, _) = file(&[b"one", &whole]);
        assert_eq!(scan(&nested, 3, Some(EPOCH)).ordinals, [0, 1]);
    }

    #[test]
    fn the_search_from_the_end_asks_for_more_when_the_frame_begins_earlier() {
        let (bytes, _) = file(&[b"one", &[7; 3000]]);
        let end = bytes.len() as u64;
        assert!(matches!(last_frame(&bytes[end as usize - 100..], end - 100, 3, None), LastFrame::Before));
        assert!(matches!(last_frame(&[0; 50], end - 100, 3, None), LastFrame::Before));
        assert!(matches!(last_frame(b"nothing", 3, 3, None), LastFrame::None));
    }

    #[test]
    fn a_tail_is_torn_only_if_a_write_of_ours_could_have_left_it() {
        let long = [7; 600];
        let (bytes, offsets) = file(&[b"one", &long]);
        let at = offsets[1];
        let frame = &bytes[at as usize..];
        let cut = &frame[..500];
        assert_eq!(classify_tail(cut, at, Some(EPOCH)), Tail::Torn);
        // The same bytes where no write of ours would have put them.
        assert_eq!(classify_tail(cut, at + 1, Some(EPOCH)), Tail::Damaged);
        assert_eq!(classify_tail(cut, at, Some(Epoch(78))), Tail::Damaged);
        // All there but the last byte, with space ahead behind it.
        let mut unfinished = frame.to_vec();
        *unfinished.last_mut().unwrap() = 0;
        unfinished.extend([0; 100]);
        assert_eq!(classify_tail(&unfinished, at, Some(EPOCH)), Tail::Torn);
        // What begins no frame reaches to its last byte that is not zero, and includes it.
        let mut garbage = vec![1; 99];
        garbage.extend([0, 1]);
        assert_eq!(classify_tail(&garbage, 512, Some(EPOCH)), Tail::Damaged);
    }

    #[test]
    fn no_frame_is_found_before_the_start() {
        let (bytes, offsets) = file(&[&[7; 200]]);
        let is_none =
            |bytes: &[u8], offset, start| matches!(last_frame(bytes, offset, start, Some(EPOCH)), LastFrame::None);
        assert!(matches!(last_frame(&bytes, 0, offsets[0], Some(EPOCH)), LastFrame::Found(_)));
        assert!(is_none(&bytes, 0, offsets[0] + 1));
        // Its end alone: it begins before these bytes, and before the start.
        assert!(is_none(&bytes[50..], 50, 50));
        assert!(matches!(last_frame(&bytes[50..], 50, offsets[0], Some(EPOCH)), LastFrame::Before));
    }
}
