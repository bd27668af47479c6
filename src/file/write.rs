//! Appending to a conversation.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::conversation::{Contents, Conversation, Header, Known, Last, read};
use super::lock::{Missing, OpenFile};
use super::options::{Durability, Recovery};
use super::recover::set_aside;
use super::slots::SlotRef;
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::log::{EncodeError, Epoch, FileHeader, FrameHeader, FrameWriter, Tail, encode};
use crate::message::{Message, Role};

/// Messages encoded, to be written in one frame.
pub(super) struct Batch {
    messages: Vec<Message>,
    frame: FrameWriter,
}

/// What a batch got.
pub(super) struct Receipt {
    pub(super) seqs: Range<u64>,
    /// In microseconds since 1970.
    pub(super) recorded_at: u64,
}

impl Batch {
    pub(super) fn encode(messages: &[Message], max_bytes: u64) -> Result<Self> {
        let too_large = |size| Error::TooLarge { what: "the size of the batch in bytes", size, limit: max_bytes };
        let frame = FrameWriter::new(|payload| encode(messages, payload));
        let frame = frame.map_err(|EncodeError| too_large(u64::from(u32::MAX)))?;
        let batch = Self { messages: messages.to_vec(), frame };
        if batch.len() > max_bytes { Err(too_large(batch.len())) } else { Ok(batch) }
    }

    /// Its size in bytes as stored.
    pub(super) fn len(&self) -> u64 {
        self.frame.payload_len() as u64
    }

    /// One batch of several. Each is still there whole or not at all, for a frame is.
    fn join(mut group: Vec<Self>) -> Option<Self> {
        if group.len() == 1 {
            return group.pop();
        }
        let frame = FrameWriter::join(group.iter().map(|batch| &batch.frame));
        Some(Self { messages: group.into_iter().flat_map(|batch| batch.messages).collect(), frame })
    }

    fn has(&self, wanted: impl Fn(Role) -> bool) -> bool {
        self.messages.iter().any(|message| wanted(message.role()))
    }
}

/// Appends a batch, all or nothing, together with those of other threads that wait for the same conversation.
pub(super) fn append(conversation: &Conversation<'_>, slot: &SlotRef<'_>, batch: Batch) -> Result<Receipt> {
    let max_bytes = conversation.store.options.max_batch_bytes;
    slot.queue.add(slot.names.data(), batch, max_bytes, |group| {
        let counts: Vec<u64> = group.iter().map(|batch| batch.messages.len() as u64).collect();
        let header = match Batch::join(group) {
            Some(batch) => append_frame(conversation, slot, batch)?,
            None => return Ok(Vec::new()),
        };
        let mut next = header.first_seq;
        let receipt = |count| {
            let first = next;
            next = next.saturating_add(count);
            Receipt { seqs: first..next, recorded_at: header.recorded_at }
        };
        Ok(counts.into_iter().map(receipt).collect())
    })
}

/// Appends a frame; its header.
fn append_frame(conversation: &Conversation<'_>, slot: &SlotRef<'_>, batch: Batch) -> Result<FrameHeader> {
    let store = conversation.store;
    let mut locked = slot.exclusive(conversation, Missing::Create)?;
    let open = locked.open_file().ok_or_else(|| slot.names.io("open", std::io::ErrorKind::NotFound.into()))?;
    let known = writable(conversation, slot, open)?;
    if store.options.durability == Durability::Disk && !open.name_is_durable {
        // Before the first byte, or the first of ours: else a power cut can take the file's name, and with it what was
        // acknowledged in it.
        store.sync_names()?;
        open.name_is_durable = true;
    }
    let recent = open.recent.take().or_else(|| known.last.is_none().then(Arc::default));
    let (bytes, mut next, header, messages) = compose(conversation, &known, open.name_is_durable, batch)?;

    // Until the write is known to be whole, nothing is known of the file.
    open.contents = None;
    let file = &*open.file;
    let synced_end = open.synced_end.min(known.end);
    let written = file.write_all_at(&bytes, known.end).map_err(|source| slot.names.io("write to", source));
    let written = written.and_then(|()| match store.options.durability {
        Durability::Disk => {
            write_ahead(file, &mut next);
            sync(conversation, slot, file, synced_end..known.end).map(|()| open.synced_end = next.end)
        }
        Durability::Process => Ok(()),
    });
    match written {
        Ok(()) => {
            open.contents = Some(Contents::Known(next));
            let recent = recent.and_then(|recent| Arc::unwrap_or_clone(recent).append(header.first_seq, messages));
            open.recent = recent.map(Arc::new);
            Ok(header)
        }
        Err(error) => {
            take_back(conversation, slot, file, synced_end..known.end)?;
            Err(error)
        }
    }
}

/// What is known of the file, after its end was made fit to be written behind.
fn writable(conversation: &Conversation<'_>, slot: &SlotRef<'_>, open: &mut OpenFile) -> Result<Known> {
    let path = slot.names.data();
    let strict = conversation.store.options.recovery == Recovery::Strict;
    let corrupt = |offset, reason| Error::Corrupt { path: path.to_owned(), offset, reason };
    match open.contents.take() {
        Some(Contents::Unreadable { offset, reason }) if strict => Err(corrupt(offset, reason)),
        Some(Contents::Known(known)) if strict && known.tail == Tail::Damaged => {
            Err(corrupt(known.end, "its end does not hold, and adding to it would hide that"))
        }
        Some(Contents::Known(known)) => {
            if let Some(last) = &known.last
                && last.header.kind != FrameHeader::MESSAGES
                && last.header.kind < FrameHeader::SKIPPABLE
            {
                let feature = format!("a frame of kind {}", last.header.kind);
                let offset = last.header.offset;
                return Err(Error::UnsupportedVersion { path: path.to_owned(), offset, feature });
            }
            mend_end(conversation, slot, &*open.file, known, &mut Vec::new())
        }
        Some(Contents::Unreadable { .. }) => begin_anew(conversation, slot, &*open.file, &mut Vec::new()),
        // Whoever locks the file looks at it. Writing without having done so could overwrite what is there.
        None => Err(slot.names.io("look at", std::io::ErrorKind::InvalidData.into())),
    }
}

/// Copies what is behind the last frame that holds aside, and cuts it off.
pub(super) fn mend_end(
    conversation: &Conversation<'_>,
    slot: &SlotRef<'_>,
    file: &dyn DiskFile,
    known: Known,
    asides: &mut Vec<PathBuf>,
) -> Result<Known> {
    if known.tail == Tail::Clean {
        return Ok(known);
    }
    // Of a header that was never finished there is nothing to keep.
    if known.header != Header::Missing {
        let is_torn = known.tail == Tail::Torn;
        asides.push(set_aside(conversation, &slot.names, file, known.end, None, is_torn)?);
    }
    cut(conversation, slot, file, 0..known.end)?;
    Ok(Known { tail: Tail::Clean, len: known.end, ..known })
}

/// Copies a file in which nothing holds aside, and empties it. The file stays the same: another process that waits for its
/// lock would take a new one for damage of the old.
pub(super) fn begin_anew(
    conversation: &Conversation<'_>,
    slot: &SlotRef<'_>,
    file: &dyn DiskFile,
    asides: &mut Vec<PathBuf>,
) -> Result<Known> {
    asides.push(set_aside(conversation, &slot.names, file, 0, None, false)?);
    cut(conversation, slot, file, 0..0)?;
    Ok(Known::empty())
}

/// Truncates to the end of what is kept, of which a part may not be synced yet. Synced before anything is written behind the
/// cut: else what was cut off could return after a power cut.
fn cut(conversation: &Conversation<'_>, slot: &SlotRef<'_>, file: &dyn DiskFile, kept: Range<u64>) -> Result<()> {
    file.truncate(kept.end).map_err(|source| slot.names.io("truncate", source))?;
    sync(conversation, slot, file, kept)
}

/// Makes everything written durable. The system takes what a failed sync could not write for written, and the next sync succeeds
/// without it. So the stretch that is to be kept, and may never have been synced, is written again.
fn sync(conversation: &Conversation<'_>, slot: &SlotRef<'_>, file: &dyn DiskFile, kept: Range<u64>) -> Result<()> {
    const PIECE: u64 = 1 << 20;
    file.sync().map_err(|source| {
        let mut pieces = kept.clone().step_by(PIECE as usize);
        let again = pieces.try_for_each(|from| {
            let piece = read(file, from, kept.end.min(from + PIECE))?;
            file.write_all_at(&piece, from)
        });
        again.err().map_or_else(|| slot.names.io("sync", source), |error| poison(conversation, slot, &error))
    })
}

/// Undoes a failed write.
fn take_back(conversation: &Conversation<'_>, slot: &SlotRef<'_>, file: &dyn DiskFile, kept: Range<u64>) -> Result<()> {
    cut(conversation, slot, file, kept).map_err(|error| poison(conversation, slot, &error))
}

/// A failed write that could not be undone: the conversation takes no more work, for nobody could say what it holds.
fn poison(conversation: &Conversation<'_>, slot: &SlotRef<'_>, error: &dyn std::fmt::Display) -> Error {
    conversation.store.poisoned.insert(conversation.key, ());
    let path = slot.names.data();
    tracing::error!(path = %path.display(), error = %error, "a failed write could not be taken back");
    Error::Poisoned { path: path.to_owned() }
}

/// The bytes to write at the end of what is known, and what is known once they are written.
fn compose(
    conversation: &Conversation<'_>,
    known: &Known,
    name_is_durable: bool,
    batch: Batch,
) -> Result<(Vec<u8>, Known, FrameHeader, Vec<Message>)> {
    let newest = |has: bool, offset: u64, before: Option<u64>| if has { Some(offset) } else { before };
    let (has_system, has_user) = (batch.has(Role::is_system), batch.has(|role| role == Role::User));
    let Batch { frame, messages } = batch;
    // As large as a payload may be, it has no room for as many messages as do not fit in the count.
    let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
    let (mut file_header, header) = match (known.header, known.epoch()) {
        (header, Some(_)) => (Vec::new(), header),
        (_, None) => {
            let flags = if name_is_durable { FileHeader::NAME_IS_DURABLE } else { 0 };
            let header = FileHeader { epoch: Epoch(conversation.store.disk.random()), flags };
            (encode_header(conversation, header)?, Header::Holds(header))
        }
    };
    let known = Known { header, ..known.clone() };
    let offset = known.end + file_header.len() as u64;
    let last = known.last.as_ref().map(|last| &last.header);
    let ordinal = last.map_or(Some(0), |last| last.ordinal.checked_add(1)).ok_or(Error::TooLarge {
        what: "the number of batches in the conversation",
        size: u64::from(u32::MAX) + 1,
        limit: u64::from(u32::MAX),
    })?;
    let frame_header = FrameHeader {
        payload_len: 0, // the writer knows it
        epoch: known.epoch().unwrap_or(Epoch(0)),
        offset,
        ordinal,
        count,
        first_seq: last.map_or(0, FrameHeader::next_seq),
        recorded_at: microseconds_since_1970(),
        newest_system: newest(has_system, offset, last.and_then(|last| last.newest_system)),
        newest_user: newest(has_user, offset, last.and_then(|last| last.newest_user)),
        kind: FrameHeader::MESSAGES,
        codec: FrameHeader::RECORDS_V1,
        flags: 0,
    };
    let (frame, frame_header, trailer) = frame.finish(frame_header);
    let bytes = if file_header.is_empty() {
        frame
    } else {
        file_header.extend(frame);
        file_header
    };
    let end = frame_header.end();
    let next = Known { end, len: known.len.max(end), last: Some(Last::new(frame_header, trailer)), ..known };
    Ok((bytes, next, frame_header, messages))
}

/// Writes space of zeros behind the end where there is none left: while it lasts, a sync has no new length to write, which makes
/// it faster. Where there is no room for it, there is none.
fn write_ahead(file: &dyn DiskFile, known: &mut Known) {
    if known.end < known.len {
        return;
    }
    let ahead = known.end.next_power_of_two().clamp(LEAST_AHEAD, MOST_AHEAD);
    let zeros = vec![0; usize::try_from(ahead).unwrap_or_default()];
    if file.write_all_at(&zeros, known.end).is_ok() {
        known.len = known.end + ahead;
    }
}

/// How much space is written ahead: as much as there is, but no less and no more than this, so that short conversations stay
/// short.
const LEAST_AHEAD: u64 = 4 << 10;
const MOST_AHEAD: u64 = 64 << 10;

pub(super) fn encode_header(conversation: &Conversation<'_>, header: FileHeader) -> Result<Vec<u8>> {
    header.encode(conversation.id, &conversation.key.0).ok_or(Error::TooLarge {
        what: "the length of the conversation id in bytes",
        size: conversation.id.len() as u64,
        limit: u64::from(u32::MAX),
    })
}

pub(super) fn microseconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
