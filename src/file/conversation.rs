//! What a conversation's file holds, and whether what we remember of it is still true.

use std::io;

use super::Store;
use super::names::{Key, Names};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::log::{
    Epoch, FileHeader, FrameHeader, HeaderCheck, LastFrame, TRAILER_LEN, Tail, Trailer, classify_tail, header_len,
    last_frame,
};

/// A conversation that someone asks for.
#[derive(Clone, Copy)]
pub(super) struct Conversation<'a> {
    pub(super) store: &'a Store,
    pub(super) id: &'a str,
    pub(super) key: Key,
}

/// What a file holds.
#[derive(Debug, Clone)]
pub(super) enum Contents {
    /// A conversation, perhaps without a message.
    Known(Known),
    /// Bytes in which no frame holds, and which no unfinished creation leaves behind.
    Unreadable { offset: u64, reason: &'static str },
}

/// What has to be known of a file to append to it, and to read its end.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) header: Header,
    /// The last frame that holds; `None` where nothing was acknowledged yet.
    pub(super) last: Option<Last>,
    /// Where the next frame goes: behind the last one, or behind the header, or at 0.
    pub(super) end: u64,
    /// The length of the file; what is behind `end` is space written ahead, if the tail is clean.
    pub(super) len: u64,
    /// What is behind `end`.
    pub(super) tail: Tail,
}

/// The file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    /// The file is empty, or its creation was cut off inside the header.
    Missing,
    Holds(FileHeader),
    /// Damaged, but frames behind it hold.
    Damaged,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    pub(super) header: FrameHeader,
    trailer: Trailer,
}

impl Last {
    pub(super) fn new(header: FrameHeader, trailer: Trailer) -> Self {
        Self { header, trailer }
    }
}

impl Known {
    /// A file that begins anew.
    pub(super) const fn empty() -> Self {
        Self { header: Header::Missing, last: None, end: 0, len: 0, tail: Tail::Clean }
    }

    /// The epoch of the frames; `None` where there is neither header nor frame.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        match self.header {
            Header::Holds(header) => Some(header.epoch),
            Header::Missing | Header::Damaged => self.last.map(|last| last.header.epoch),
        }
    }

    /// Where the first frame begins; `None` where that is not known.
    pub(super) fn first_frame(&self, id: &str) -> Option<u64> {
        match self.header {
            Header::Holds(_) => Some(header_len(id) as u64),
            Header::Missing | Header::Damaged => None,
        }
    }
}

impl Contents {
    /// The conversation; an error where the file holds bytes that were acknowledged once, perhaps, and cannot be read: never
    /// an empty conversation.
    pub(super) fn known(&self, names: &Names) -> Result<&Known> {
        match self {
            Contents::Known(known) => Ok(known),
            Contents::Unreadable { offset, reason } => {
                Err(Error::Corrupt { path: names.data().to_owned(), offset: *offset, reason })
            }
        }
    }

    /// How far the file is used: without space written ahead.
    pub(super) fn len(&self) -> u64 {
        match self {
            Contents::Known(Known { end, tail: Tail::Clean, .. }) => *end,
            _ => u64::MAX,
        }
    }

    /// Whether the file was made by someone who made its name durable first.
    pub(super) fn name_is_durable(&self) -> bool {
        match self {
            Contents::Known(Known { header: Header::Holds(header), .. }) => {
                header.flags & FileHeader::NAME_IS_DURABLE != 0
            }
            _ => false,
        }
    }

    /// Whether this is still what the file holds. To be asked under the file lock, with the file's length.
    ///
    /// Length, inode and time alone prove nothing: the last trailer has to be where it was, with nothing but space written
    /// ahead behind it. A trailer covers its frame's place, epoch and payload, so no other frame has the same. Whoever wrote
    /// since then began at our end, with a byte that is not zero, so the first bytes behind it tell for all.
    pub(super) fn still_hold(&self, file: &dyn DiskFile, len: u64) -> io::Result<bool> {
        let Contents::Known(Known { last: Some(last), end, len: known_len, tail: Tail::Clean, .. }) = self else {
            return Ok(false);
        };
        if len != *known_len {
            return Ok(false);
        }
        let mut bytes = [0; 2 * TRAILER_LEN];
        let read = file.read_at(&mut bytes, end - TRAILER_LEN as u64)?;
        let (trailer, ahead) = bytes.split_at(TRAILER_LEN);
        Ok(read >= TRAILER_LEN && *trailer == last.trailer.0 && ahead.iter().all(|byte| *byte == 0))
    }
}

/// Some bytes of a file, read together.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

impl Piece {
    /// The bytes from `from` to `to`, if all of them were read.
    pub(super) fn get(&self, from: u64, to: u64) -> Option<&[u8]> {
        let start = usize::try_from(from.checked_sub(self.offset)?).ok()?;
        let end = usize::try_from(to.checked_sub(self.offset)?).ok()?;
        self.bytes.get(start..end)
    }
}

/// How much of a file's end is read first.
pub(super) const FIRST_READ: u64 = 16 << 10;

/// Finds out what a file of `len` bytes holds, from its header and its end. Also gives the bytes that were read last.
pub(super) fn load(
    file: &dyn DiskFile,
    len: u64,
    conversation: &Conversation<'_>,
    names: &Names,
) -> Result<(Contents, Option<Piece>)> {
    if len == 0 {
        return Ok((Contents::Known(Known::empty()), None));
    }
    let reading = |source| names.io("read", source);
    let header = match check_header(file, len, conversation).map_err(reading)? {
        HeaderCheck::Holds(header) => Header::Holds(header),
        HeaderCheck::Unfinished => {
            return Ok((Contents::Known(Known { tail: Tail::Torn, len, ..Known::empty() }), None));
        }
        HeaderCheck::Bad => Header::Damaged,
        HeaderCheck::OtherConversation => return Err(other_conversation(names)),
        HeaderCheck::Unsupported { version } => {
            let feature = format!("format version {version}, or a flag it may have");
            return Err(Error::UnsupportedVersion { path: names.data().to_owned(), offset: 0, feature });
        }
    };
    let (start, epoch) = match header {
        Header::Holds(header) => (header_len(conversation.id) as u64, Some(header.epoch)),
        // The epoch may be among what is intact of the header; a frame that bears it is a better witness than any other.
        Header::Missing | Header::Damaged => (0, FileHeader::epoch_in(&read(file, 0, 24).map_err(reading)?)),
    };
    let (mut last, mut ending) = find_last_frame(file, len, start, epoch).map_err(reading)?;
    if last.is_none() && header == Header::Damaged {
        (last, ending) = find_last_frame(file, len, start, None).map_err(reading)?;
    }
    let end = last.as_ref().map_or(start, |last| last.header.end());
    let epoch = last.as_ref().map(|last| last.header.epoch).or(epoch);
    // Where all that was read behind the last frame is zeros, so is all behind it.
    let read_to = ending.offset + ending.bytes.len() as u64;
    let tail = match ending.get(end, read_to) {
        Some(behind) if behind.iter().all(|byte| *byte == 0) => Tail::Clean,
        _ => classify_tail(&read(file, end, len).map_err(reading)?, end, epoch),
    };
    let contents = match (last, header, tail) {
        (None, Header::Holds(_), Tail::Clean | Tail::Torn) | (Some(_), ..) => {
            Contents::Known(Known { header, last, end, len, tail })
        }
        (None, Header::Holds(_), Tail::Damaged) => {
            Contents::Unreadable { offset: end, reason: "what follows the header is no message that holds" }
        }
        (None, ..) => Contents::Unreadable { offset: 0, reason: "neither the header nor any message in it holds" },
    };
    Ok((contents, Some(ending)))
}

pub(super) fn other_conversation(names: &Names) -> Error {
    let reason = "it belongs to another conversation; was it renamed or copied?";
    Error::Corrupt { path: names.data().to_owned(), offset: 0, reason }
}

pub(super) fn check_header(file: &dyn DiskFile, len: u64, conversation: &Conversation<'_>) -> io::Result<HeaderCheck> {
    let bytes = read(file, 0, len.min(header_len(conversation.id) as u64))?;
    match FileHeader::check(&bytes, len, conversation.id, &conversation.key.0) {
        // Another conversation's header may be longer than this one's.
        HeaderCheck::Bad => {
            let bytes =
                FileHeader::len_in(&bytes).filter(|claimed| *claimed <= len).map(|claimed| read(file, 0, claimed));
            match bytes.transpose()? {
                Some(bytes) => Ok(FileHeader::check(&bytes, len, conversation.id, &conversation.key.0)),
                None => Ok(HeaderCheck::Bad),
            }
        }
        checked => Ok(checked),
    }
}

/// Whether any frame holds in a file.
pub(super) fn has_frame(file: &dyn DiskFile, len: u64) -> io::Result<bool> {
    find_last_frame(file, len, 0, None).map(|(last, _)| last.is_some())
}

/// Searches backwards from the end of the file for the last frame that holds, reading as much as that needs. Also gives the
/// bytes that were read last, which reach to the last that is not zero.
fn find_last_frame(
    file: &dyn DiskFile,
    len: u64,
    start: u64,
    epoch: Option<Epoch>,
) -> io::Result<(Option<Last>, Piece)> {
    let start = start.min(len);
    let mut end = len;
    let mut from = end.saturating_sub(FIRST_READ).max(start);
    loop {
        let bytes = read(file, from, end)?;
        if bytes.iter().all(|byte| *byte == 0) && from > start {
            // Space written ahead: no frame ends in it.
            end = from;
            from = end.saturating_sub(FIRST_READ).max(start);
            continue;
        }
        let found = match last_frame(&bytes, from, start, epoch) {
            // Four times as much, whatever the bytes say of where it begins: they may say it again and again.
            LastFrame::Before => {
                from = end.saturating_sub((end - from).saturating_mul(4)).max(start);
                continue;
            }
            LastFrame::Found(frame) => Some(Last::new(frame.header, frame.trailer)),
            LastFrame::None => None,
        };
        return Ok((found, Piece { offset: from, bytes }));
    }
}

/// The bytes of a file from `from` to `to`, or to its end where that comes first.
pub(super) fn read(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let len = usize::try_from(to.saturating_sub(from)).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut bytes = vec![0; len];
    let read = file.read_at(&mut bytes, from)?;
    bytes.truncate(read);
    Ok(bytes)
}
