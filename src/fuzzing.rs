//! What must hold of any bytes, for the fuzz targets in `fuzz/`: they are built with `--cfg fuzzing`, and nothing else sees
//! this room.

use sha2::{Digest, Sha256};

use crate::log::{
    Epoch, FileHeader, Frame, FrameHeader, HeaderCheck, LastFrame, Records, Scan, Stretch, Tail, Trailer, encode,
    header_len, last_frame,
};
use crate::message::{Message, Role};

/// Checks the beginning of a file, and its beginnings, against a conversation.
pub fn header(bytes: &[u8], id: &str) {
    let sha256: [u8; 32] = Sha256::digest(id.as_bytes()).into();
    let check = |bytes: &[u8]| FileHeader::check(bytes, bytes.len() as u64, id, &sha256);
    match check(bytes) {
        HeaderCheck::Holds(header) => {
            let encoded = header.encode(id, &sha256).unwrap_or_default();
            assert!(bytes.starts_with(&encoded) && encoded.len() == header_len(id), "it is written as it was read");
            assert!(FileHeader::id_in(bytes) == Some(id), "a file without its name is known by its header");
            for (len, _) in encoded.iter().enumerate() {
                let beginning = bytes.get(..len).unwrap_or_default();
                assert!(check(beginning) == HeaderCheck::Unfinished, "its first {len} bytes are a creation cut off");
                assert!(FileHeader::is_cut_off(beginning, len as u64, &sha256), "the catalogue says so too, of {len}");
            }
        }
        HeaderCheck::Unfinished => {
            assert!(bytes.len() < header_len(id) && FileHeader::id_in(bytes).is_none());
            assert!(FileHeader::is_cut_off(bytes, bytes.len() as u64, &sha256), "the catalogue leaves it out");
        }
        HeaderCheck::OtherConversation => {
            let claimed = FileHeader::len_in(bytes).and_then(|len| usize::try_from(len).ok());
            let is_ours = FileHeader::id_in(bytes) == Some(id) && bytes.get(24..56) == Some(&sha256);
            assert!(!is_ours && claimed.is_some_and(|len| len <= bytes.len()));
        }
        HeaderCheck::Unsupported { .. } => assert!(FileHeader::len_in(bytes).is_some()),
        HeaderCheck::Bad => assert!(FileHeader::id_in(bytes).is_none() && !bytes.is_empty()),
    }
}

/// Tells the bytes of a file apart from `start` on, and holds the result to a reading of the description that takes its time.
/// `piece` is how much of the end is looked at first in the search backwards.
pub fn scan(bytes: &[u8], start: usize, epoch: Option<u64>, piece: usize) {
    let epoch = epoch.map(Epoch);
    let start = start.min(bytes.len());
    let (all, summed) = frames_that_hold(bytes, start, epoch);
    // Beyond this a search may give up.
    let is_cheap = summed <= 2 * bytes.len();

    let (mut end, mut last, mut corrupt_before) = (start as u64, None, false);
    let mut expected = all.iter();
    let mut stretches = Scan::new(bytes, start as u64, epoch);
    for stretch in &mut stretches {
        match stretch {
            Stretch::Corrupt(from, to) => {
                assert!(from == end && to > from && !corrupt_before, "stretches follow each other");
                (end, corrupt_before) = (to, true);
            }
            Stretch::Frame(frame) => {
                let begin = frame.header.offset;
                assert!(begin == end, "stretches follow each other");
                assert!(expected.find(|(from, _)| *from >= end) == Some(&(begin, frame.header.end())));
                end = frame.header.end();
                (last, corrupt_before) = (Some((begin, end)), false);
            }
        }
    }
    assert!(!corrupt_before, "behind a corrupt stretch there is a frame");
    let left_out = expected.find(|(from, _)| *from >= end);
    assert!(!is_cheap || left_out.is_none(), "a frame that holds was not found: {left_out:?}");

    let (tail_at, tail) = stretches.tail();
    assert!(tail_at == end);
    let behind = bytes.get(end as usize..).unwrap_or_default();
    // At 0 stands the file header, and what is behind nothing is of no kind.
    assert!(end == 0 || tail == expected_tail(behind, end as usize, epoch), "the tail at {end} is {tail:?}");

    let newest = all.iter().max_by_key(|(_, end)| *end).copied();
    let backwards = search_backwards(bytes, start, epoch, bytes.len());
    let in_pieces = search_backwards(bytes, start, epoch, piece.max(1));
    for found in [backwards, in_pieces] {
        if is_cheap {
            assert!(found == newest, "the search from the end found {found:?} of {newest:?}");
            // Frames that overlap take somebody who computes checksums; of those the scan takes the first.
            let overlaps = newest.is_some_and(|(begin, _)| last.is_some_and(|(_, end)| begin < end)) && newest != last;
            assert!(overlaps || found == last, "from the end {found:?}, from the start {last:?}");
        } else {
            assert!(found.is_none_or(|found| all.contains(&found)));
        }
    }
}

/// Begin and end of every frame that holds, wherever it stands, and how many bytes were summed of those that do not.
fn frames_that_hold(bytes: &[u8], start: usize, epoch: Option<Epoch>) -> (Vec<(u64, u64)>, usize) {
    let (mut all, mut summed) = (Vec::new(), 0);
    for offset in start..bytes.len() {
        let rest = bytes.get(offset..).unwrap_or_default();
        let Some(header) = FrameHeader::parse(rest) else {
            continue;
        };
        if let Some(frame) = Frame::parse(rest, offset as u64, epoch) {
            assert!(frame.header == header && frame.payload.len() == header.payload_len as usize);
            all.push((offset as u64, header.end()));
            continue;
        }
        let whole = usize::try_from(header.frame_len()).ok().and_then(|len| rest.get(..len));
        if whole.and_then(Trailer::frame_len) == Some(header.frame_len()) {
            summed += header.payload_len as usize;
        }
    }
    (all, summed)
}

fn expected_tail(behind: &[u8], offset: usize, epoch: Option<Epoch>) -> Tail {
    const SECTOR: usize = 512;
    let used = behind.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if used == 0 {
        return Tail::Clean;
    }
    let header = FrameHeader::parse(behind)
        .filter(|header| header.offset == offset as u64 && epoch.is_none_or(|epoch| epoch == header.epoch));
    let extent = header.map_or(used.max(84), |header| 84 + header.payload_len as usize);
    if extent > behind.len() || behind.get(extent - 1) == Some(&0) {
        return Tail::Torn;
    }
    // Each sector of the file that the extent touches, and whether anything in it is not zero.
    let mut at = offset;
    while at < offset + extent {
        let sector_end = (at / SECTOR + 1) * SECTOR;
        let sector = behind.get(at - offset..extent.min(sector_end - offset)).unwrap_or_default();
        if sector.iter().all(|byte| *byte == 0) {
            return Tail::Torn;
        }
        at = sector_end;
    }
    Tail::Damaged
}

/// The last frame that holds, as a store searches for it.
fn search_backwards(bytes: &[u8], start: usize, epoch: Option<Epoch>, piece: usize) -> Option<(u64, u64)> {
    let mut len = piece;
    loop {
        let from = bytes.len().saturating_sub(len).max(start);
        match last_frame(bytes.get(from..).unwrap_or_default(), from as u64, start as u64, epoch) {
            LastFrame::Found(frame) => return Some((frame.header.offset, frame.header.end())),
            LastFrame::Before => {
                assert!(from > start, "there is nothing before the start");
                len = len.saturating_mul(4);
            }
            LastFrame::None => return None,
        }
    }
}

/// The messages of a payload, if all of it decodes.
pub fn decode(payload: &[u8], count: u32) -> Option<Vec<Message>> {
    Records::find(payload, count).ok()?.iter().collect::<Result<_, _>>().ok()
}

/// The number of messages in a payload, if all of it decodes; none is kept.
pub fn check(payload: &[u8], count: u32) -> Option<usize> {
    Records::find(payload, count).ok()?.checked_roles().try_fold(0, |checked, role| role.map(|_| checked + 1).ok())
}

/// Encodes what was decoded, decodes it again, and compares.
pub fn check_records(payload: &[u8], messages: &[Message]) {
    let count = messages.len() as u32;
    let mut again = Vec::new();
    assert!(encode(messages, &mut again).is_ok(), "what was decoded can be encoded");
    let found = Records::find(&again, count);
    assert!(found.is_ok(), "what was encoded can be found");
    for records in found.into_iter().chain(Records::find(payload, count)) {
        let roles = records.checked_roles().map(|role| role.ok());
        assert!(roles.eq(messages.iter().map(|message| Some(message.role()))), "checked as decoded");
        assert!(records.iter().zip(messages).all(|(again, message)| again.as_ref() == Ok(message)));
        assert!(records.iter().rev().eq(messages.iter().rev().cloned().map(Ok)), "backwards as forwards");
        for upto in [0, u64::from(count / 2), u64::MAX] {
            for wanted in [Role::is_system, |role| role == Role::User, |role| role == Role::Tool] {
                let old_enough = messages.get(..=usize::try_from(upto).unwrap_or(usize::MAX - 1)).unwrap_or(messages);
                let expected = old_enough.iter().rfind(|message| wanted(message.role()));
                let newest = records.newest(upto, wanted);
                assert!(newest == expected.cloned().map(Ok), "the newest of a role, up to {upto}");
            }
        }
    }
    let mut shortest = Vec::new();
    let decoded = decode(&again, count).unwrap_or_default();
    assert!(encode(&decoded, &mut shortest).is_ok() && shortest == again, "there is one way to write a message");
}
