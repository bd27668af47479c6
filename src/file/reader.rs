//! Walking over the frames of a file, forwards and backwards.

use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::conversation::{FIRST_READ, Piece, read};
use super::names::Names;
use super::recent::{Newest, Recent};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::history::{Entry, HistoryRange};
use crate::log::{DecodeError, Epoch, Frame, FrameHeader, Records, TRAILER_LEN, Trailer};
use crate::message::{Message, Role};
use crate::window::Window;

/// Why a read did not come to its end.
pub(super) enum Trouble {
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

pub(super) type Seen<T> = std::result::Result<T, Trouble>;

/// Reads frames that follow each other without a gap.
pub(super) struct Reader<'a> {
    pub(super) file: &'a dyn DiskFile,
    pub(super) names: &'a Names,
    pub(super) epoch: Epoch,
    /// Where the first frame begins; `None` where the file header, which says so, is damaged.
    pub(super) start: Option<u64>,
}

impl Reader<'_> {
    /// Visits the frames from the first to the one that ends at `end`.
    pub(super) fn forwards(&self, end: u64, mut visit: impl FnMut(Frame<'_>) -> Seen<ControlFlow<()>>) -> Seen<()> {
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
    pub(super) fn oldest(&self, last: &FrameHeader, range: &HistoryRange) -> Seen<Vec<Entry>> {
        let bounds = range.bounds();
        let mut entries = Vec::new();
        self.forwards(last.end(), |frame| {
            if entries.len() == range.count() || frame.header.first_seq >= bounds.end {
                return Ok(ControlFlow::Break(()));
            }
            self.check_kind(&frame)?;
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
    pub(super) fn newest(&self, last: &FrameHeader, ending: Option<Piece>, range: &HistoryRange) -> Seen<Vec<Entry>> {
        let bounds = range.bounds();
        let mut entries = Vec::new();
        let mut frames = Backwards::new(self, last.end(), ending);
        while let Some(frame) = frames.step()? {
            if entries.len() == range.count() {
                break;
            }
            self.check_kind(&frame)?;
            if frame.header.next_seq() <= bounds.start {
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
    pub(super) fn view(
        &self,
        last: &FrameHeader,
        ending: Option<Piece>,
        window: &Window,
        upto: u64,
    ) -> Seen<(Vec<Message>, Option<Recent>)> {
        let mut frames = Backwards::new(self, last.end(), ending);
        // The newest frame with a message that is old enough.
        let (top, system, user) = loop {
            let Some(frame) = frames.step()? else {
                return Ok((Vec::new(), None));
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

        let mut selection = window.select(system.clone(), user.clone());
        let mut read = Newest::default();
        frames.go_on_with(&top);
        while let Some(frame) = frames.step()? {
            if let Some(records) = self.records(&frame)? {
                let old_enough = frame.header.seqs().zip(records.iter()).rev().filter(|(seq, _)| *seq <= upto);
                for (seq, message) in old_enough {
                    let message = message?;
                    read.push(seq, &message);
                    if selection.push(seq, message).is_break() {
                        return Ok((selection.finish(), Recent::new(read, false, system, user)));
                    }
                }
            }
        }
        Ok((selection.finish(), Recent::new(read, true, system, user)))
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
    pub(super) fn records<'f>(&self, frame: &Frame<'f>) -> Seen<Option<Records<'f>>> {
        records(frame, self.names).map_err(Trouble::Error)?.transpose().map_err(Trouble::from)
    }

    /// Also for a frame whose messages are not asked for: one of a kind that is not known may change what the others mean.
    fn check_kind(&self, frame: &Frame<'_>) -> Seen<()> {
        has_messages(frame, self.names).map(drop).map_err(Trouble::Error)
    }
}

pub(super) fn is_user(role: Role) -> bool {
    role == Role::User
}

/// The messages of a frame; `None` for one of a kind that may be skipped.
pub(super) fn records<'f>(
    frame: &Frame<'f>,
    names: &Names,
) -> Result<Option<std::result::Result<Records<'f>, DecodeError>>> {
    let has_messages = has_messages(frame, names)?;
    Ok(has_messages.then(|| Records::find(frame.payload, frame.header.count)))
}

/// Whether the payload is messages; not for a kind that may be skipped.
fn has_messages(frame: &Frame<'_>, names: &Names) -> Result<bool> {
    let FrameHeader { kind, codec, offset, .. } = frame.header;
    let unsupported = |feature: String| Error::UnsupportedVersion { path: names.data().to_owned(), offset, feature };
    match (kind, codec) {
        (FrameHeader::MESSAGES, FrameHeader::RECORDS_V1) => Ok(true),
        (FrameHeader::MESSAGES, codec) => Err(unsupported(format!("codec {codec}"))),
        (FrameHeader::SKIPPABLE.., _) => Ok(false),
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

/// The time that a frame says, in microseconds since 1970.
pub(super) fn time(recorded_at: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_micros(recorded_at)).unwrap_or(UNIX_EPOCH)
}
