//! Finding damage, setting it aside, and mending a conversation.

use std::path::PathBuf;
use std::sync::Arc;

use super::anew;
use super::conversation::{Contents, Conversation, Header, Known, load, read};
use super::io_error;
use super::lock::{Exclusive, Missing};
use super::names::Names;
use super::reader::records;
use super::slots::SlotRef;
use super::write::{begin_anew, mend_end};
use crate::disk::{DiskFile, Open};
use crate::error::Result;
use crate::history::{Damage, DamageKind};
use crate::log::{DecodeError, FileHeader, Frame, FrameWriter, Scan, Stretch, Tail};
use crate::message::Role;

/// What [`FileChatMemory::repair`](super::FileChatMemory::repair) does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Looks, and changes nothing.
    DryRun,
    /// Sets aside what is damaged, and mends the conversation.
    Apply,
}

/// What [`FileChatMemory::repair`](super::FileChatMemory::repair) found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The number of messages that are intact.
    pub messages: u64,
    /// What is damaged, in the order of the file; empty where nothing is.
    pub damage: Vec<Damage>,
    /// The copies that were made of damaged bytes.
    pub set_aside: Vec<PathBuf>,
}

/// Looks through the bytes of a whole file, of which the contents are known: hands on every frame that is intact, with the
/// roles in it (none for a kind that may be skipped), and returns what is damaged. No message is kept.
pub(super) fn examine<'a>(
    bytes: &'a [u8],
    contents: &Contents,
    conversation: &Conversation<'_>,
    names: &Names,
    mut intact: impl FnMut(Frame<'a>, Roles) -> Result<()>,
) -> Result<Vec<Damage>> {
    let len = bytes.len() as u64;
    let known = match contents {
        Contents::Unreadable { .. } => return Ok(vec![Damage::new(DamageKind::Everything, 0, len)]),
        Contents::Known(Known { header: Header::Missing, .. }) => {
            let unfinished = (len > 0).then_some(Damage::new(DamageKind::UnfinishedEnd, 0, len));
            return Ok(unfinished.into_iter().collect());
        }
        Contents::Known(known) => known,
    };
    let mut damage = Vec::new();
    let mut scan = Scan::new(bytes, known.first_frame(conversation.id).unwrap_or(0), known.epoch());
    for stretch in &mut scan {
        match stretch {
            Stretch::Corrupt(start, end) => {
                // Without a header that holds, what stands before the first frame is the header.
                let is_header = start == 0 && known.header == Header::Damaged;
                let kind = if is_header { DamageKind::Header } else { DamageKind::Middle };
                damage.push(Damage::new(kind, start, end));
            }
            Stretch::Frame(frame) => match Roles::of(&frame, names)? {
                Ok(roles) => intact(frame, roles)?,
                Err(DecodeError) => {
                    damage.push(Damage::new(DamageKind::Undecodable, frame.header.offset, frame.header.end()));
                }
            },
        }
    }
    let (end, tail) = scan.tail();
    let tail = match tail {
        Tail::Clean => None,
        Tail::Torn => Some(DamageKind::UnfinishedEnd),
        Tail::Damaged => Some(DamageKind::End),
    };
    damage.extend(tail.map(|kind| Damage::new(kind, end, len)));
    Ok(damage)
}

/// Which roles speak in a frame, and how many messages are in it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Roles {
    pub(super) messages: u64,
    pub(super) has_system: bool,
    pub(super) has_user: bool,
}

impl Roles {
    /// Checks every message of a frame, and keeps none.
    fn of(frame: &Frame<'_>, names: &Names) -> Result<std::result::Result<Self, DecodeError>> {
        let mut roles = Self::default();
        let records = match records(frame, names)? {
            None => return Ok(Ok(roles)),
            Some(Err(error)) => return Ok(Err(error)),
            Some(Ok(records)) => records,
        };
        let all = records.checked_roles().try_for_each(|role| {
            let role = role?;
            roles.messages += 1;
            roles.has_system |= role.is_system();
            roles.has_user |= role == Role::User;
            Ok(())
        });
        Ok(all.map(|()| roles))
    }
}

/// A whole file, looked at anew: what is remembered of a file says nothing about what was harmed since.
pub(super) struct Look {
    pub(super) bytes: Vec<u8>,
    pub(super) contents: Contents,
    /// The number of intact messages.
    pub(super) messages: u64,
    pub(super) damage: Vec<Damage>,
}

impl Look {
    /// Reads the file of a conversation that is locked.
    pub(super) fn at(conversation: &Conversation<'_>, slot: &SlotRef<'_>, file: &dyn DiskFile) -> Result<Self> {
        let names = &slot.names;
        let len = file.status().map_err(|source| names.io("look at", source))?.len;
        let (contents, ending) = load(file, len, conversation, names)?;
        drop(ending);
        let bytes = read(file, 0, len).map_err(|source| names.io("read", source))?;
        let mut messages = 0;
        let damage = examine(&bytes, &contents, conversation, names, |_, roles| {
            messages += roles.messages;
            Ok(())
        })?;
        Ok(Self { bytes, contents, messages, damage })
    }

    /// What the conversation takes in the store, without space written ahead.
    pub(super) fn len(&self) -> u64 {
        self.contents.len().min(self.bytes.len() as u64)
    }
}

/// Looks for damage, and mends it if asked to.
pub(super) fn repair(conversation: &Conversation<'_>, slot: &SlotRef<'_>, repair: Repair) -> Result<RepairReport> {
    let mut report = RepairReport { messages: 0, damage: Vec::new(), set_aside: Vec::new() };
    match repair {
        Repair::DryRun => {
            if let Some(locked) = slot.shared(conversation)? {
                let look = Look::at(conversation, slot, &*locked.file)?;
                (report.messages, report.damage) = (look.messages, look.damage);
            }
        }
        Repair::Apply => {
            let mut locked = slot.exclusive(conversation, Missing::Leave)?;
            if let Some(open) = locked.open_file() {
                // Whoever comes next reads the file again.
                (open.contents, open.recent) = (None, None);
                let file = Arc::clone(&open.file);
                let look = Look::at(conversation, slot, &*file)?;
                if !look.damage.is_empty() {
                    report.set_aside = mend(conversation, slot, &mut locked, &*file, &look)?;
                }
                (report.messages, report.damage) = (look.messages, look.damage);
            }
        }
    }
    Ok(report)
}

/// Mends a file; the copies that were made.
fn mend(
    conversation: &Conversation<'_>,
    slot: &SlotRef<'_>,
    locked: &mut Exclusive<'_>,
    file: &dyn DiskFile,
    look: &Look,
) -> Result<Vec<PathBuf>> {
    let mut asides = Vec::new();
    let only_the_end = |damage: &Damage| matches!(damage.kind, DamageKind::UnfinishedEnd | DamageKind::End);
    match &look.contents {
        Contents::Unreadable { .. } => _ = begin_anew(conversation, slot, file, &mut asides)?,
        Contents::Known(known) if look.damage.iter().all(only_the_end) => {
            _ = mend_end(conversation, slot, file, known.clone(), &mut asides)?;
        }
        contents => {
            for Damage { kind, offset, end } in &look.damage {
                let is_torn = *kind == DamageKind::UnfinishedEnd;
                asides.push(set_aside(conversation, &slot.names, file, *offset, Some(*end), is_torn)?);
            }
            // The frames that are intact, under their sequence numbers.
            anew::replace(conversation, slot, locked, FileHeader::REPAIRED, |new| {
                let bytes = &look.bytes;
                examine(bytes, contents, conversation, &slot.names, |frame, roles| {
                    new.append(FrameWriter::with_payload(frame.payload), frame.header, roles)
                })
                .map(drop)
            })?;
        }
    }
    Ok(asides)
}

/// Copies a stretch of a file, or all from `start` on, to a file of its own beside it, durably.
pub(super) fn set_aside(
    conversation: &Conversation<'_>,
    names: &Names,
    file: &dyn DiskFile,
    start: u64,
    end: Option<u64>,
    is_torn: bool,
) -> Result<PathBuf> {
    const PIECE: u64 = 1 << 20;
    let store = conversation.store;
    let end = match end {
        Some(end) => end,
        None => file.status().map_err(|source| names.io("look at", source))?.len,
    };
    let pieces = || (start..end).step_by(PIECE as usize).map(|from| (from, end.min(from + PIECE)));

    let mut crc = 0;
    for (from, to) in pieces() {
        let piece = read(file, from, to).map_err(|source| names.io("read", source))?;
        crc = crc32c::crc32c_append(crc, &piece);
    }
    let path = names.aside(start, crc, is_torn);
    let failed = |operation| {
        let path = path.clone();
        move |source| io_error(operation, &path, source)
    };
    // Where a crash interrupted this, the copy is there already, in part or whole.
    let copy = store.with_handles(|| store.disk.open(&path, Open::Create)).map_err(failed("create"))?;
    copy.truncate(0).map_err(failed("truncate"))?;
    for (from, to) in pieces() {
        let piece = read(file, from, to).map_err(|source| names.io("read", source))?;
        copy.write_all_at(&piece, from - start).map_err(failed("write to"))?;
    }
    copy.sync().map_err(failed("sync"))?;
    store.sync_names()?;
    tracing::warn!(path = %names.data().display(), offset = start, bytes = end - start, aside = %path.display(),
        "bytes that do not hold were set aside");
    Ok(path)
}
