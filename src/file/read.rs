//! Reading a conversation: all of it, or what a window shows.

use std::io;
use std::ops::ControlFlow;

use super::conversation::{Contents, Conversation, FIRST_READ, Header, Known, Piece, read};
use super::lock::Shared;
use super::names::Names;
use super::options::Recovery;
use super::recover::{Damage, DamageKind, examine};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::log::{DecodeError, Epoch, Frame, FrameHeader, Records, TRAILER_LEN, Tail, Trailer};
use crate::message::{Message, Role};
use crate::window::Window;

/// What `get` returns.
pub(super) fn view(conversation: &Conversation<'_>, names: &Names, locked: &mut Shared<'_>) -> Result<Vec<Message>> {
    let window = conversation.store.options.window.as_ref();
    let known = match &locked.contents {
        Contents::Known(known) => known,
        // Bytes that were acknowledged once, perhaps: never an empty list.
        Contents::Unreadable { offset, reason } => {
            let (path, offset) = (names.data().to_owned(), *offset);
            return Err(Error::Corrupt { path, offset, reason });
        }
    };
    tell_of_end(conversation, names, known)?;
    let Some(last) = known.last else {
        return Ok(Vec::new());
    };
    let reader =
        Reader { file: &*locked.file, names, epoch: last.header.epoch, start: known.first_frame(conversation.id) };
    let seen = match window {
        Some(window) => reader.window(&last.header, window, locked.ending.take()),
        None => reader.everything(known.end),
    };
    match seen {
        Ok(messages) => Ok(messages),
        Err(Trouble::Error(error)) => Err(error),
        Err(Trouble::Io(source)) => Err(names.io("read", source)),
        Err(Trouble::Irregular) => salvage(conversation, names, locked, window),
    }
}

/// Tells of what is known to be wrong before anything is read: the end and the header.
fn tell_of_end(conversation: &Conversation<'_>, names: &Names, known: &Known) -> Result<()> {
    let header = (known.header == Header::Damaged).then_some(Damage::new(DamageKind::Header, 0, 0));
    let tail = match known.tail {
        Tail::Clean => None,
        Tail::Torn => Some(Damage::new(DamageKind::UnfinishedEnd, known.end, known.end)),
        Tail::Damaged => Some(Damage::new(DamageKind::End, known.end, known.end)),
    };
    header.into_iter().chain(tail).try_for_each(|damage| tell(conversation, names, &damage))
}

/// Logs damage, and with [`Recovery::Strict`] makes an error of it. An unfinished end is what a crash leaves, and no damage.
fn tell(conversation: &Conversation<'_>, names: &Names, damage: &Damage) -> Result<()> {
    let (path, reason) = (names.data(), damage.kind.reason());
    if damage.kind == DamageKind::UnfinishedEnd {
        tracing::warn!(path = %path.display(), offset = damage.offset, "{reason}");
        return Ok(());
    }
    tracing::error!(path = %path.display(), offset = damage.offset, "{reason}");
    match conversation.store.options.recovery {
        Recovery::Salvage => Ok(()),
        Recovery::Strict => Err(Error::Corrupt { path: path.to_owned(), offset: damage.offset, reason }),
    }
}

/// Every intact message of a damaged file, or what a window shows of them.
fn salvage(
    conversation: &Conversation<'_>,
    names: &Names,
    locked: &Shared<'_>,
    window: Option<&Window>,
) -> Result<Vec<Message>> {
    let reading = |source| names.io("read", source);
    let len = locked.file.status().map_err(reading)?.len;
    let bytes = read(&*locked.file, 0, len).map_err(reading)?;
    let mut messages = Vec::new();
    let damage = examine(&bytes, &locked.contents, conversation, names, |frame, found| {
        messages.extend(frame.header.seqs().zip(found));
        Ok(())
    })?;
    // The end and the header were told of already.
    let middle = |damage: &&Damage| matches!(damage.kind, DamageKind::Middle | DamageKind::Undecodable);
    damage.iter().filter(middle).try_for_each(|damage| tell(conversation, names, damage))?;
    let Some(window) = window else {
        return Ok(messages.into_iter().map(|(_, message)| message).collect());
    };
    let newest = |wanted: fn(Role) -> bool| messages.iter().rfind(|(_, message)| wanted(message.role()));
    let newest = |wanted| newest(wanted).map(|(_, message)| message.clone());
    let mut selection = window.select(newest(Role::is_system), newest(|role| role == Role::User));
    for (seq, message) in messages.into_iter().rev() {
        if selection.push(seq, message).is_break() {
            break;
        }
    }
    Ok(selection.finish())
}

/// Why a read did not come to its end.
enum Trouble {
    Error(Error),
    Io(io::Error),
    /// Something is not as a file without damage has it: the file has to be read whole.
    Irregular,
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Io(error)
    }
}

impl From<DecodeError> for Trouble {
    fn from(_: DecodeError) -> Self {
        Trouble::Irregular
    }
}

type Seen<T> = std::result::Result<T, Trouble>;

/// Reads frames that follow each other without a gap.
struct Reader<'a> {
    file: &'a dyn DiskFile,
    names: &'a Names,
    epoch: Epoch,
    /// Where the first frame begins; `None` where the file header, which says so, is damaged.
    start: Option<u64>,
}

impl Reader<'_> {
    /// All messages, from the first frame to the last.
    fn everything(&self, end: u64) -> Seen<Vec<Message>> {
        const PIECE: u64 = 256 << 10;
        let mut position = self.start.ok_or(Trouble::Irregular)?;
        let mut before: Option<FrameHeader> = None;
        let mut messages = Vec::new();
        let mut wanted = PIECE;
        while position < end {
            let bytes = read(self.file, position, end.min(position.saturating_add(wanted)))?;
            let mut rest = bytes.as_slice();
            while let Some(frame) = Frame::parse(rest, position, Some(self.epoch)) {
                let in_order = match &before {
                    None => frame.header.ordinal == 0,
                    Some(before) => follows(before, &frame.header),
                };
                if !in_order {
                    return Err(Trouble::Irregular);
                }
                if let Some(records) = self.records(&frame)? {
                    for message in records.iter() {
                        messages.push(message?);
                    }
                }
                position = frame.header.end();
                before = Some(frame.header);
                rest = rest.get(frame.len()..).unwrap_or_default();
            }
            // The next frame is cut off where the piece ends, or it does not hold.
            let read_to = position.saturating_add(rest.len() as u64);
            wanted = match FrameHeader::parse(rest) {
                Some(header) if header.end() > read_to && header.end() <= end => header.frame_len().max(PIECE),
                None if rest.len() < FrameHeader::LEN && read_to < end => PIECE,
                _ if position == end => break,
                _ => return Err(Trouble::Irregular),
            };
        }
        Ok(messages)
    }

    /// What a window shows, reading backwards from the last frame.
    fn window(&self, last: &FrameHeader, window: &Window, ending: Option<Piece>) -> Seen<Vec<Message>> {
        let mut bytes =
            Backwards { reader: self, end: last.end(), piece: ending.unwrap_or_default(), step: FIRST_READ };
        let newest_system = self.pointed_to(last.newest_system, Role::is_system, &mut bytes)?;
        let newest_user = self.pointed_to(last.newest_user, |role| role == Role::User, &mut bytes)?;
        let mut selection = window.select(newest_system, newest_user);

        let mut after: Option<FrameHeader> = None;
        let mut end = last.end();
        loop {
            let frame = bytes.frame_ending_at(end)?;
            if after.as_ref().is_some_and(|after| !follows(&frame.header, after)) {
                return Err(Trouble::Irregular);
            }
            if let Some(records) = self.records(&frame)? {
                for (seq, message) in frame.header.seqs().zip(records.iter()).rev() {
                    if let ControlFlow::Break(()) = selection.push(seq, message?) {
                        return Ok(selection.finish());
                    }
                }
            }
            end = frame.header.offset;
            after = Some(frame.header);
            match (frame.header.ordinal, self.start) {
                (0, Some(start)) if start != end => return Err(Trouble::Irregular),
                (0, _) => return Ok(selection.finish()),
                _ => {}
            }
        }
    }

    /// The newest message of a role, in the frame that a frame's header points to.
    fn pointed_to(
        &self,
        offset: Option<u64>,
        wanted: fn(Role) -> bool,
        bytes: &mut Backwards<'_>,
    ) -> Seen<Option<Message>> {
        let Some(offset) = offset else {
            return Ok(None);
        };
        let elsewhere;
        let frame = match bytes.frame_at(offset) {
            Some(frame) => frame,
            None => {
                elsewhere = self.read_frame(offset, bytes.end)?;
                Frame::parse(&elsewhere, offset, Some(self.epoch)).ok_or(Trouble::Irregular)?
            }
        };
        let records = self.records(&frame)?.ok_or(Trouble::Irregular)?;
        // A pointer to a frame without such a message is wrong.
        records.newest(wanted).ok_or(Trouble::Irregular)?.map(Some).map_err(Trouble::from)
    }

    /// The bytes of the frame at `offset`, in one read if it is not long.
    fn read_frame(&self, offset: u64, end: u64) -> Seen<Vec<u8>> {
        let bytes = read(self.file, offset, end.min(offset.saturating_add(FIRST_READ)))?;
        match FrameHeader::parse(&bytes) {
            Some(header) if header.frame_len() > bytes.len() as u64 && header.end() <= end => {
                Ok(read(self.file, offset, header.end())?)
            }
            _ => Ok(bytes),
        }
    }

    /// The messages of a frame; `None` for a frame that may be skipped.
    fn records<'f>(&self, frame: &Frame<'f>) -> Seen<Option<Records<'f>>> {
        records(frame, self.names).map_err(Trouble::Error)?.transpose().map_err(Trouble::from)
    }
}

/// The messages of a frame; `None` for one of a kind that may be skipped.
pub(super) fn records<'f>(
    frame: &Frame<'f>,
    names: &Names,
) -> Result<Option<std::result::Result<Records<'f>, DecodeError>>> {
    let FrameHeader { kind, codec, count, offset, .. } = frame.header;
    let unsupported = |feature: String| Error::UnsupportedVersion { path: names.data().to_owned(), offset, feature };
    match (kind, codec) {
        (FrameHeader::MESSAGES, FrameHeader::RECORDS_V1) => Ok(Some(Records::find(frame.payload, count))),
        (FrameHeader::MESSAGES, codec) => Err(unsupported(format!("codec {codec}"))),
        (FrameHeader::SKIPPABLE.., _) => Ok(None),
        (kind, _) => Err(unsupported(format!("a frame of kind {kind}"))),
    }
}

/// Whether a frame is the next one after another. Sequence numbers may leave out what a repair found lost.
fn follows(before: &FrameHeader, after: &FrameHeader) -> bool {
    before.ordinal.checked_add(1) == Some(after.ordinal)
        && before.end() == after.offset
        && before.next_seq() <= after.first_seq
}

/// A file read from its end, in steps that double.
struct Backwards<'a> {
    reader: &'a Reader<'a>,
    /// Where the last frame ends.
    end: u64,
    piece: Piece,
    step: u64,
}

impl Backwards<'_> {
    /// The frame at `offset`, if its bytes were read already.
    fn frame_at(&self, offset: u64) -> Option<Frame<'_>> {
        Frame::parse(self.piece.get(offset, self.end)?, offset, Some(self.reader.epoch))
    }

    fn frame_ending_at(&mut self, end: u64) -> Seen<Frame<'_>> {
        let (start, epoch) = (self.reader.start.unwrap_or(0), self.reader.epoch);
        // First its trailer, which says how long it is.
        let trailer = end.checked_sub(TRAILER_LEN as u64).filter(|trailer| *trailer >= start);
        let trailer = self.read(trailer.ok_or(Trouble::Irregular)?, end)?;
        let begin = Trailer::frame_len(trailer).and_then(|len| end.checked_sub(len)).filter(|begin| *begin >= start);
        let begin = begin.ok_or(Trouble::Irregular)?;
        Frame::parse(self.read(begin, end)?, begin, Some(epoch)).ok_or(Trouble::Irregular)
    }

    /// The bytes from `from` to `end`; where they have to be read, as many before them as the step says are read too.
    fn read(&mut self, from: u64, end: u64) -> Seen<&[u8]> {
        const LARGEST_STEP: u64 = 1 << 20;
        if self.piece.get(from, end).is_none() {
            let offset = from.min(end.saturating_sub(self.step).max(self.reader.start.unwrap_or(0)));
            self.piece = Piece { offset, bytes: read(self.reader.file, offset, end)? };
            self.step = LARGEST_STEP.min(self.step * 2);
        }
        self.piece.get(from, end).ok_or(Trouble::Irregular)
    }
}
