//! Reading a conversation: all of it, a range, or what a window shows.

use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::conversation::{Contents, Conversation, FIRST_READ, Header, Known, Piece, read};
use super::lock::Shared;
use super::names::Names;
use super::options::Recovery;
use super::recent::Recent;
use super::recover::examine;
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::history::{Damage, DamageKind, Entry, HistoryRange};
use crate::log::{DecodeError, Epoch, Frame, FrameHeader, Records, TRAILER_LEN, Tail, Trailer};
use crate::message::{Message, Role};
use crate::window::Window;

/// Everything, in the order of adding.
pub(super) fn everything(
    conversation: &Conversation<'_>,
    names: &Names,
    locked: &mut Shared<'_>,
) -> Result<Vec<Message>> {
    if let Some(messages) = kept(locked).and_then(Recent::everything) {
        return Ok(messages);
    }
    let fast = |reader: &Reader<'_>, last: &FrameHeader, ending: Option<Piece>| {
        drop(ending); // it would be there beside what is read now
        let mut messages = Vec::new();
        reader.forwards(last.end(), |frame| {
            if let Some(records) = reader.records(&frame)? {
                for message in records.iter() {
                    messages.push(message?);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(messages)
    };
    let salvaged = |intact: &Intact<'_>| {
        let mut messages = Vec::new();
        intact.iter().for_each(|(_, _, message)| messages.push(message));
        messages
    };
    read_or_salvage(conversation, names, locked, fast, salvaged)
}

/// The newest messages, where they are kept, of a file in which nothing is wrong.
fn kept<'a>(locked: &'a Shared<'_>) -> Option<&'a Recent> {
    match &locked.contents {
        Contents::Known(Known { header: Header::Holds(_), tail: Tail::Clean, .. }) => locked.recent.as_deref(),
        _ => None,
    }
}

/// What a window shows now.
pub(super) fn view(
    conversation: &Conversation<'_>,
    names: &Names,
    locked: &mut Shared<'_>,
    window: &Window,
) -> Result<Vec<Message>> {
    if let Some(view) = kept(locked).and_then(|recent| recent.view(window)) {
        return Ok(view);
    }
    let mut read = None;
    let view = view_at(conversation, names, locked, window, u64::MAX, &mut read)?;
    if let Some(recent) = read {
        locked.keep(recent);
    }
    Ok(view)
}

/// What a window shows when message `upto` is the newest; `read` is given what was read for it in order, if it was.
pub(super) fn view_at(
    conversation: &Conversation<'_>,
    names: &Names,
    locked: &mut Shared<'_>,
    window: &Window,
    upto: u64,
    read: &mut Option<Recent>,
) -> Result<Vec<Message>> {
    let fast = |reader: &Reader<'_>, last: &FrameHeader, ending| {
        let (view, recent) = reader.view(last, ending, window, upto)?;
        *read = Some(recent);
        Ok(view)
    };
    let salvaged = |intact: &Intact<'_>| {
        let old_enough = || intact.iter().rev().filter(|(seq, _, _)| *seq <= upto);
        let newest = |wanted: fn(Role) -> bool| old_enough().map(|(_, _, message)| message).find(|m| wanted(m.role()));
        let selection = window.select(newest(Role::is_system), newest(is_user));
        selection.finish_with(old_enough().map(|(seq, _, message)| (seq, message)))
    };
    read_or_salvage(conversation, names, locked, fast, salvaged)
}

/// Messages by sequence number.
pub(super) fn history(
    conversation: &Conversation<'_>,
    names: &Names,
    locked: &mut Shared<'_>,
    range: &HistoryRange,
) -> Result<Vec<Entry>> {
    let fast = |reader: &Reader<'_>, last: &FrameHeader, ending| match range.is_last() {
        true => reader.newest(last, ending, range),
        false => {
            drop(ending);
            reader.oldest(last, range)
        }
    };
    let salvaged = |intact: &Intact<'_>| {
        let in_bounds = intact.iter().filter(|(seq, _, _)| range.bounds().contains(seq));
        let entry = |(seq, recorded_at, message)| Entry::new(seq, recorded_at, message);
        if !range.is_last() {
            return in_bounds.take(range.count()).map(entry).collect();
        }
        let mut entries: Vec<Entry> = in_bounds.rev().take(range.count()).map(entry).collect();
        entries.reverse();
        entries
    };
    read_or_salvage(conversation, names, locked, fast, salvaged)
}

/// Tells of what is known to be wrong, and reads the fast way; where that meets anything that a file without damage does not
/// have, the file is read whole and what is intact is taken from it.
fn read_or_salvage<T: Default>(
    conversation: &Conversation<'_>,
    names: &Names,
    locked: &mut Shared<'_>,
    fast: impl FnOnce(&Reader<'_>, &FrameHeader, Option<Piece>) -> Seen<T>,
    salvaged: impl FnOnce(&Intact<'_>) -> T,
) -> Result<T> {
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
        return Ok(T::default());
    };
    let start = known.first_frame(conversation.id);
    let reader = Reader { file: &*locked.file, names, epoch: last.header.epoch, start };
    match fast(&reader, &last.header, locked.ending.take()) {
        Ok(seen) => Ok(seen),
        Err(Trouble::Error(error)) => Err(error),
        Err(Trouble::Io(source)) => Err(names.io("read", source)),
        Err(Trouble::Irregular) => salvage(conversation, names, locked, salvaged),
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

/// Reads a damaged file whole, tells what is damaged, and hands on what is intact.
fn salvage<T>(
    conversation: &Conversation<'_>,
    names: &Names,
    locked: &Shared<'_>,
    salvaged: impl FnOnce(&Intact<'_>) -> T,
) -> Result<T> {
    let reading = |source| names.io("read", source);
    let len = locked.file.status().map_err(reading)?.len;
    let bytes = read(&*locked.file, 0, len).map_err(reading)?;
    let mut intact = Intact { bytes: &bytes, frames: Vec::new() };
    let damage = examine(&bytes, &locked.contents, conversation, names, |frame, _| {
        intact.frames.extend((frame.header.count > 0).then_some(frame.header.offset));
        Ok(())
    })?;
    // The end and the header were told of already.
    let middle = |damage: &&Damage| matches!(damage.kind, DamageKind::Middle | DamageKind::Undecodable);
    damage.iter().filter(middle).try_for_each(|damage| tell(conversation, names, damage))?;
    Ok(salvaged(&intact))
}

/// The intact messages of a damaged file, decoded as they are asked for.
struct Intact<'a> {
    bytes: &'a [u8],
    /// Where the frames with messages begin.
    frames: Vec<u64>,
}

impl Intact<'_> {
    /// Each message with its sequence number and its time.
    fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, SystemTime, Message)> {
        self.frames.iter().flat_map(|offset| {
            let bytes = usize::try_from(*offset).ok().and_then(|offset| self.bytes.get(offset..)).unwrap_or_default();
            let header = FrameHeader::parse(bytes);
            let payload = header.and_then(|header| Some((header, bytes.get(FrameHeader::LEN..)?)));
            payload.into_iter().flat_map(|(header, payload)| {
                let payload = payload.get(..header.payload_len as usize).unwrap_or_default();
                // The examination has decoded them before.
                let records = Records::find(payload, header.count).into_iter();
                records
                    .flat_map(move |records| records.numbered(&header))
                    .map(move |(seq, message)| (seq, time(header.recorded_at), message))
            })
        })
    }
}

/// The time that a frame says, in microseconds since 1970.
pub(super) fn time(recorded_at: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_micros(recorded_at)).unwrap_or(UNIX_EPOCH)
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
    /// Visits the frames from the first to the one that ends at `end`.
    fn forwards(&self, end: u64, mut visit: impl FnMut(Frame<'_>) -> Seen<ControlFlow<()>>) -> Seen<()> {
        const PIECE: u64 = 256 << 10;
        let mut position = self.start.ok_or(Trouble::Irregular)?;
        let mut before: Option<FrameHeader> = None;
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
                position = frame.header.end();
                before = Some(frame.header);
                rest = rest.get(frame.len()..).unwrap_or_default();
                if visit(frame)?.is_break() {
                    return Ok(());
                }
            }
            // The next frame is cut off where the piece ends, or it does not hold.
            let read_to = position.saturating_add(rest.len() as u64);
            wanted = match FrameHeader::parse(rest) {
                Some(header) if header.offset == position && header.end() > read_to && header.end() <= end => {
                    header.frame_len().max(PIECE)
                }
                None if rest.len() < FrameHeader::LEN && read_to < end => PIECE,
                _ if position == end => break,
                _ => return Err(Trouble::Irregular),
            };
        }
        Ok(())
    }

    /// The first messages of a range.
    fn oldest(&self, last: &FrameHeader, range: &HistoryRange) -> Seen<Vec<Entry>> {
        let bounds = range.bounds();
        let mut entries = Vec::new();
        self.forwards(last.end(), |frame| {
            if entries.len() == range.count() || frame.header.first_seq >= bounds.end {
                return Ok(ControlFlow::Break(()));
            }
            if frame.header.next_seq() > bounds.start
                && let Some(records) = self.records(&frame)?
            {
                let numbered = frame.header.seqs().zip(records.iter()).filter(|(seq, _)| bounds.contains(seq));
                for (seq, message) in numbered.take(range.count() - entries.len()) {
                    entries.push(Entry::new(seq, time(frame.header.recorded_at), message?));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(entries)
    }

    /// The last messages of a range.
    fn newest(&self, last: &FrameHeader, ending: Option<Piece>, range: &HistoryRange) -> Seen<Vec<Entry>> {
        let bounds = range.bounds();
        let mut entries = Vec::new();
        let mut frames = Backwards::new(self, last.end(), ending);
        while let Some(frame) = frames.step()? {
            if entries.len() == range.count() || frame.header.next_seq() <= bounds.start {
                break;
            }
            if frame.header.first_seq < bounds.end
                && let Some(records) = self.records(&frame)?
            {
                let numbered = frame.header.seqs().zip(records.iter()).rev().filter(|(seq, _)| bounds.contains(seq));
                for (seq, message) in numbered.take(range.count() - entries.len()) {
                    entries.push(Entry::new(seq, time(frame.header.recorded_at), message?));
                }
            }
        }
        entries.reverse();
        Ok(entries)
    }

    /// What a window shows, reading backwards from the last frame.
    fn view(
        &self,
        last: &FrameHeader,
        ending: Option<Piece>,
        window: &Window,
        upto: u64,
    ) -> Seen<(Vec<Message>, Recent)> {
        let mut frames = Backwards::new(self, last.end(), ending);
        // The newest frame with a message that is old enough.
        let (top, system, user) = loop {
            let Some(frame) = frames.step()? else {
                return Ok((Vec::new(), Recent::default()));
            };
            if frame.header.first_seq <= upto {
                let records = self.records(&frame)?;
                let newest = |wanted: fn(Role) -> bool| match &records {
                    Some(records) => records.newest(upto - frame.header.first_seq, wanted).transpose(),
                    None => Ok(None),
                };
                break (frame.header, newest(Role::is_system)?, newest(is_user)?);
            }
        };
        let system = self.or_before(system, &top, |header| header.newest_system, Role::is_system, &frames)?;
        let user = self.or_before(user, &top, |header| header.newest_user, is_user, &frames)?;

        let mut recent = Recent::of_cut(system.clone(), user.clone());
        let mut selection = window.select(system, user);
        frames.go_on_with(&top);
        while let Some(frame) = frames.step()? {
            if let Some(records) = self.records(&frame)? {
                let bytes = frame.payload.len() / records.iter().len().max(1);
                let old_enough = frame.header.seqs().zip(records.iter()).rev().filter(|(seq, _)| *seq <= upto);
                for (seq, message) in old_enough {
                    let message = message?;
                    recent.push_older(seq, bytes, &message);
                    if selection.push(seq, message).is_break() {
                        return Ok((selection.finish(), recent));
                    }
                }
            }
        }
        Ok((selection.finish(), recent.end()))
    }

    /// The newest message of a role: one from the frame at hand, or else from the frame that a pointer names.
    fn or_before(
        &self,
        here: Option<Message>,
        header: &FrameHeader,
        pointer: fn(&FrameHeader) -> Option<u64>,
        wanted: fn(Role) -> bool,
        frames: &Backwards<'_>,
    ) -> Seen<Option<Message>> {
        if here.is_some() {
            return Ok(here);
        }
        let offset = match pointer(header) {
            // The frame has such a message, but it is too new: the frame before knows of an older one.
            Some(offset) if offset == header.offset && header.ordinal > 0 => {
                let mut frames = Backwards::new(self, header.offset, None);
                frames.step()?.and_then(|frame| pointer(&frame.header))
            }
            Some(offset) if offset >= header.offset => None,
            pointer => pointer,
        };
        let Some(offset) = offset else {
            return Ok(None);
        };
        let elsewhere;
        let frame = match frames.frame_at(offset, header.end()) {
            Some(frame) => frame,
            None => {
                elsewhere = self.read_frame(offset, header.offset)?;
                Frame::parse(&elsewhere, offset, Some(self.epoch)).ok_or(Trouble::Irregular)?
            }
        };
        let records = self.records(&frame)?.ok_or(Trouble::Irregular)?;
        // A pointer to a frame without such a message is wrong.
        records.newest(u64::MAX, wanted).ok_or(Trouble::Irregular)?.map(Some).map_err(Trouble::from)
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

fn is_user(role: Role) -> bool {
    role == Role::User
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

/// The frames of a file from the last one back, read in steps that double.
struct Backwards<'a> {
    reader: &'a Reader<'a>,
    /// Where the next frame to visit ends.
    end: u64,
    /// The frame visited last.
    after: Option<FrameHeader>,
    piece: Piece,
    step: u64,
}

impl<'a> Backwards<'a> {
    /// Begins with the frame that ends at `end`.
    fn new(reader: &'a Reader<'a>, end: u64, ending: Option<Piece>) -> Self {
        Self { reader, end, after: None, piece: ending.unwrap_or_default(), step: FIRST_READ }
    }

    /// Goes on with a frame that was visited already.
    fn go_on_with(&mut self, header: &FrameHeader) {
        self.end = header.end();
        self.after = None;
    }

    /// Visits the next older frame; `None` where the last one visited was the file's first.
    fn step(&mut self) -> Seen<Option<Frame<'_>>> {
        if let Some(FrameHeader { ordinal: 0, offset, .. }) = self.after {
            let is_first = self.reader.start.is_none_or(|start| start == offset);
            return if is_first { Ok(None) } else { Err(Trouble::Irregular) };
        }
        let (end, start, epoch) = (self.end, self.reader.start.unwrap_or(0), self.reader.epoch);
        // First its trailer, which says how long it is.
        let trailer = end.checked_sub(TRAILER_LEN as u64).filter(|trailer| *trailer >= start);
        let trailer = self.read(trailer.ok_or(Trouble::Irregular)?, end)?;
        let begin = Trailer::frame_len(trailer).and_then(|len| end.checked_sub(len)).filter(|begin| *begin >= start);
        let begin = begin.ok_or(Trouble::Irregular)?;
        self.read(begin, end)?;
        let bytes = self.piece.get(begin, end).unwrap_or_default();
        let frame = Frame::parse(bytes, begin, Some(epoch)).ok_or(Trouble::Irregular)?;
        if self.after.is_some_and(|after| !follows(&frame.header, &after)) {
            return Err(Trouble::Irregular);
        }
        self.after = Some(frame.header);
        self.end = begin;
        Ok(Some(frame))
    }

    /// The frame at `offset` that ends no later than `end`, if its bytes were read already.
    fn frame_at(&self, offset: u64, end: u64) -> Option<Frame<'_>> {
        Frame::parse(self.piece.get(offset, end)?, offset, Some(self.reader.epoch))
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
