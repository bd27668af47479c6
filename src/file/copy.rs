//! A conversation under another id, and one that comes from elsewhere with its numbers and times.

use std::time::UNIX_EPOCH;

use super::anew;
use super::conversation::{Contents, Conversation};
use super::lock::{Exclusive, Missing};
use super::recover::{Look, Roles, examine, set_aside};
use super::slots::SlotRef;
use super::write::mend_end;
use super::{FileChatMemory, io_error};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::history::{Damage, DamageKind, Entry};
use crate::log::{Epoch, FrameHeader, FrameWriter, Tail, encode};
use crate::message::{Message, Role};

/// What becomes of the conversation that was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Keep,
    Remove,
}

/// Copies a conversation; the number of messages. Both are locked, so nothing is added to the one in between.
pub(super) fn copy(store: &FileChatMemory, from: &str, to: &str, source: Source) -> Result<u64> {
    let (from, to) = (store.conversation(from)?, store.conversation(to)?);
    if from.key == to.key {
        return Err(Error::Conflict { reason: "a conversation cannot be copied onto itself" });
    }
    let (from_slot, to_slot) = (store.slot(&from), store.slot(&to));
    let lock_from = || from_slot.exclusive(&from, Missing::Leave);
    let lock_to = || to_slot.exclusive(&to, Missing::Create);
    // Always in the same order, so that nobody who copies the other way waits for us while we wait for him. What is not there is found
    // out before a file is made for it.
    if from_slot.shared(&from)?.is_none() {
        return Err(nothing_to_copy());
    }
    let (mut locked_from, mut locked_to) = if from.key.0 < to.key.0 {
        let first = lock_from()?;
        (first, lock_to()?)
    } else {
        let first = lock_to()?;
        (lock_from()?, first)
    };
    check_empty(&to, &to_slot, &mut locked_to)?;
    let file = locked_from.open_file().ok_or_else(nothing_to_copy)?.file.clone();
    let look = Look::at(&from, &from_slot, &*file)?;
    match source {
        Source::Keep => check_whole(&from_slot, &look)?,
        Source::Remove => set_aside_or_refuse(&from, &from_slot, &*file, &look)?,
    }
    if look.messages == 0 {
        return Err(nothing_to_copy());
    }
    anew::replace(&to, &to_slot, &mut locked_to, 0, |new| {
        examine(&look.bytes, &look.contents, &from, &from_slot.names, |frame, roles| {
            new.append(FrameWriter::with_payload(frame.payload), frame.header, roles)
        })
        .map(drop)
    })?;
    if source == Source::Remove {
        // Only now: a crash before this leaves two of it, and none leaves none. What was set aside goes along.
        for path in store.store.beside(&from_slot.names)? {
            if let Some(new) = from_slot.names.renamed_aside(&path, &to_slot.names) {
                store.store.disk.rename(&path, &new).map_err(|source| io_error("rename", &path, source))?;
            }
        }
        store.store.remove(&from, &from_slot.names, &mut locked_from)?;
    }
    Ok(look.messages)
}

/// Writes messages that were kept elsewhere behind the newest one here, which has to be `after`, all or nothing.
pub(super) fn restore(
    conversation: &Conversation<'_>,
    slot: &SlotRef<'_>,
    after: Option<u64>,
    entries: &[Entry],
) -> Result<()> {
    let mut next = after.map_or(0, |after| after.saturating_add(1));
    for (index, entry) in entries.iter().enumerate() {
        if entry.seq < next || entry.seq == u64::MAX {
            return Err(Error::InvalidMessage { index, reason: "its sequence number is not above the one before" });
        }
        next = entry.seq + 1;
        entry.message.check_storable().map_err(|reason| Error::InvalidMessage { index, reason })?;
    }
    let max_bytes = conversation.store.options.max_batch_bytes;
    let missing = if after.is_some() { Missing::Leave } else { Missing::Create };
    let mut locked = slot.exclusive(conversation, missing)?;
    // What is there goes into the new file first.
    let known = match after {
        None => check_empty(conversation, slot, &mut locked).map(|()| None)?,
        Some(after) => Some(ending_at(conversation, slot, &mut locked, after)?),
    };
    anew::replace(conversation, slot, &mut locked, 0, |new| {
        if let Some(look) = &known {
            examine(&look.bytes, &look.contents, conversation, &slot.names, |frame, roles| {
                new.append(FrameWriter::with_payload(frame.payload), frame.header, roles)
            })?;
        }
        let is_together = |a: &Entry, b: &Entry| a.recorded_at == b.recorded_at && a.seq + 1 == b.seq;
        entries.chunk_by(is_together).flat_map(|run| run.chunks(MOST_IN_A_FRAME)).try_for_each(|run| {
            for (frame, header, roles) in frames(run, max_bytes)? {
                new.append(frame, header, roles)?;
            }
            Ok(())
        })
    })
}

/// A conversation without damage whose newest message is this one.
fn ending_at(
    conversation: &Conversation<'_>,
    slot: &SlotRef<'_>,
    locked: &mut Exclusive<'_>,
    after: u64,
) -> Result<Look> {
    let reason = "the newest message is another one than the caller takes it to be";
    let open = locked.open_file().ok_or(Error::Conflict { reason })?;
    let newest = match &open.contents {
        Some(contents) => contents.known(&slot.names)?.last,
        None => None,
    };
    if newest.and_then(|last| last.header.next_seq().checked_sub(1)) != Some(after) {
        return Err(Error::Conflict { reason });
    }
    let file = open.file.clone();
    let look = Look::at(conversation, slot, &*file)?;
    set_aside_or_refuse(conversation, slot, &*file, &look)?;
    Ok(look)
}

/// A file that is replaced must not take anything along of which there is no copy: an unfinished end, which was never
/// acknowledged, is set aside. Anything else that is damaged may be worth more than what a copy would hold.
fn set_aside_or_refuse(
    conversation: &Conversation<'_>,
    slot: &SlotRef<'_>,
    file: &dyn DiskFile,
    look: &Look,
) -> Result<()> {
    check_whole(slot, look)?;
    for Damage { offset, end, .. } in &look.damage {
        set_aside(conversation, &slot.names, file, *offset, Some(*end), true)?;
    }
    Ok(())
}

fn check_whole(slot: &SlotRef<'_>, look: &Look) -> Result<()> {
    match look.damage.iter().find(|damage| damage.kind != DamageKind::UnfinishedEnd) {
        None => Ok(()),
        Some(damage) => {
            let path = slot.names.data().to_owned();
            Err(Error::Corrupt { path, offset: damage.offset, reason: "it has to be repaired first" })
        }
    }
}

/// How many messages share a frame, at the most: what harms one byte of a frame costs all of it, and a window reads whole frames.
const MOST_IN_A_FRAME: usize = 8;

/// Frames of messages that were recorded together: one, or more where that would be too large.
fn frames(run: &[Entry], max_bytes: u64) -> Result<Vec<(FrameWriter, FrameHeader, Roles)>> {
    let Some(first) = run.first() else {
        return Ok(Vec::new());
    };
    let messages: Vec<Message> = run.iter().map(|entry| entry.message.clone()).collect();
    let frame = FrameWriter::new(|payload| encode(&messages, payload)).ok();
    match frame.filter(|frame| frame.payload_len() as u64 <= max_bytes) {
        Some(frame) => Ok(vec![(frame, header(first, run.len()), roles(&messages))]),
        None if run.len() > 1 => {
            let (head, tail) = run.split_at(run.len() / 2);
            Ok([frames(head, max_bytes)?, frames(tail, max_bytes)?].into_iter().flatten().collect())
        }
        None => {
            let mut size = Vec::new();
            let size = encode(&messages, &mut size).map_or(u64::MAX, |()| size.len() as u64);
            Err(Error::TooLarge { what: "the size of a message in bytes", size, limit: max_bytes })
        }
    }
}

/// What a frame says of its messages. Its place in the file is not known here.
fn header(first: &Entry, count: usize) -> FrameHeader {
    let since = first.recorded_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    FrameHeader {
        payload_len: 0,
        epoch: Epoch(0),
        offset: 0,
        ordinal: 0,
        count: u32::try_from(count).unwrap_or(u32::MAX),
        first_seq: first.seq,
        recorded_at: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
        newest_system: None,
        newest_user: None,
        kind: FrameHeader::MESSAGES,
        codec: FrameHeader::RECORDS_V1,
        flags: 0,
    }
}

fn roles(messages: &[Message]) -> Roles {
    let has = |wanted: fn(Role) -> bool| messages.iter().any(|message| wanted(message.role()));
    Roles {
        messages: messages.len() as u64,
        has_system: has(Role::is_system),
        has_user: has(|role| role == Role::User),
    }
}

/// A conversation that is written anew must not take the place of one that holds messages, or bytes that may have been some. An
/// unfinished end is set aside.
fn check_empty(conversation: &Conversation<'_>, slot: &SlotRef<'_>, locked: &mut Exclusive<'_>) -> Result<()> {
    let Some(open) = locked.open_file() else {
        return Ok(());
    };
    // Whoever comes next reads the file again, for its end may be cut off here.
    match open.contents.take() {
        Some(contents @ Contents::Unreadable { .. }) => contents.known(&slot.names).map(drop),
        Some(Contents::Known(known)) if known.tail == Tail::Damaged => {
            let reason = "it holds no message any more, and bytes that may have been some";
            Err(Error::Corrupt { path: slot.names.data().to_owned(), offset: known.end, reason })
        }
        Some(Contents::Known(known)) if known.last.is_some() => {
            Err(Error::Conflict { reason: "the conversation that is to be written holds messages already" })
        }
        Some(Contents::Known(known)) => mend_end(conversation, slot, &*open.file, known, &mut Vec::new()).map(drop),
        None => Ok(()),
    }
}

fn nothing_to_copy() -> Error {
    Error::Conflict { reason: "the conversation that is to be copied holds no messages" }
}
