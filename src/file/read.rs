//! Reading a conversation: all of it, a range, or what a window shows.

use std::ops::ControlFlow;
use std::time::SystemTime;

use super::conversation::{Contents, Conversation, Header, Known, Piece, read};
use super::lock::Shared;
use super::names::Names;
use super::options::Recovery;
use super::reader::{Reader, Seen, Trouble, is_user, time};
use super::recent::Recent;
use super::recover::examine;
use crate::error::{Error, Result};
use crate::history::{Damage, DamageKind, Entry, HistoryRange};
use crate::log::{FrameHeader, Records, Tail};
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
    let (view, read) = view_and_kept(conversation, names, locked, window, u64::MAX)?;
    if let Some(recent) = read {
        locked.keep(recent);
    }
    Ok(view)
}

/// What a window shows when message `upto` is the newest.
pub(super) fn view_at(
    conversation: &Conversation<'_>,
    names: &Names,
    locked: &mut Shared<'_>,
    window: &Window,
    upto: u64,
) -> Result<Vec<Message>> {
    view_and_kept(conversation, names, locked, window, upto).map(|(view, _)| view)
}

/// The same, and what was read for it, to be kept if `upto` is the newest message.
fn view_and_kept(
    conversation: &Conversation<'_>,
    names: &Names,
    locked: &mut Shared<'_>,
    window: &Window,
    upto: u64,
) -> Result<(Vec<Message>, Option<Recent>)> {
    let fast = |reader: &Reader<'_>, last: &FrameHeader, ending| reader.view(last, ending, window, upto);
    let salvaged = |intact: &Intact<'_>| {
        let old_enough = || intact.iter().rev().filter(|(seq, _, _)| *seq <= upto);
        let newest = |wanted: fn(Role) -> bool| old_enough().map(|(_, _, message)| message).find(|m| wanted(m.role()));
        let selection = window.select(newest(Role::is_system), newest(is_user));
        (selection.finish_with(old_enough().map(|(seq, _, message)| (seq, message))), None)
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
    let known = locked.contents.known(names)?;
    tell_of_end(conversation, names, known)?;
    let Some(last) = known.last else {
        return Ok(T::default());
    };
    if known.tail == Tail::Damaged && !last.header.has_messages() {
        // What is lost may have been all that was said.
        return salvage(conversation, names, locked, salvaged);
    }
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
    let damage = examine(&bytes, &locked.contents, conversation, names, |frame, roles| {
        intact.frames.extend((roles.messages > 0).then_some(frame.header.offset));
        Ok(())
    })?;
    // The end and the header were told of already.
    let middle = |damage: &&Damage| matches!(damage.kind, DamageKind::Middle | DamageKind::Undecodable);
    damage.iter().filter(middle).try_for_each(|damage| tell(conversation, names, damage))?;
    // Where bytes that were acknowledged cannot be read, and nothing else can, the conversation does not pass for an empty one.
    let lost = damage.iter().find(|damage| !matches!(damage.kind, DamageKind::UnfinishedEnd | DamageKind::Header));
    if let Some(Damage { kind, offset, .. }) = lost
        && intact.frames.is_empty()
    {
        return Err(Error::Corrupt { path: names.data().to_owned(), offset: *offset, reason: kind.reason() });
    }
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
