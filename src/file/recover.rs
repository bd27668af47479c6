//! Finding damage, setting it aside, and mending a conversation.

use std::path::PathBuf;

use super::conversation::{Contents, Conversation, Header, Known, read};
use super::io_error;
use super::lock::{Exclusive, OpenFile};
use super::names::Names;
use super::options::FileLocks;
use super::read::records;
use super::slots::SlotRef;
use super::write::{begin_anew, encode_header, mend_end};
use crate::disk::{DiskFile, Lock, Open};
use crate::error::{Error, Result};
use crate::log::{DecodeError, Epoch, FileHeader, Frame, FrameHeader, FrameWriter, Records, Tail, scan};
use crate::message::{Message, Role};

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

/// A stretch of a file that does not read as what was once written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// What is wrong.
    pub kind: DamageKind,
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// Where it ends, in bytes from the start of the file.
    pub end: u64,
}

/// What is wrong with a stretch of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// What a crash leaves of a write that was never acknowledged. Nothing is lost.
    UnfinishedEnd,
    /// The end of the file was whole once.
    End,
    /// A stretch with intact messages behind it.
    Middle,
    /// The file header, with intact messages behind it.
    Header,
    /// Messages whose checksums hold, and which cannot be decoded.
    Undecodable,
    /// Nothing in the file holds.
    Everything,
}

impl Damage {
    pub(super) fn new(kind: DamageKind, offset: u64, end: u64) -> Self {
        Self { kind, offset, end }
    }
}

impl DamageKind {
    pub(super) fn reason(self) -> &'static str {
        match self {
            DamageKind::UnfinishedEnd => "an unfinished write at the end is not read",
            DamageKind::End => "the end of the file does not hold",
            DamageKind::Middle => "a stretch with intact messages behind it does not hold",
            DamageKind::Header => "the file header does not hold",
            DamageKind::Undecodable => "messages whose checksums hold cannot be decoded",
            DamageKind::Everything => "nothing in the file holds",
        }
    }
}

/// A whole file, looked through.
pub(super) struct Examination<'a> {
    /// Every intact message, with its sequence number.
    pub(super) messages: Vec<(u64, Message)>,
    pub(super) damage: Vec<Damage>,
    /// The frames that hold, with the messages in them where they are messages and could be decoded.
    frames: Vec<(Frame<'a>, Option<Records<'a>>)>,
}

impl<'a> Examination<'a> {
    /// Looks through the bytes of a whole file, of which the contents are known.
    pub(super) fn of(
        bytes: &'a [u8],
        contents: &Contents,
        conversation: &Conversation<'_>,
        names: &Names,
    ) -> Result<Self> {
        let mut examination = Self { messages: Vec::new(), damage: Vec::new(), frames: Vec::new() };
        let len = bytes.len() as u64;
        let known = match contents {
            Contents::Unreadable { .. } => {
                examination.damage.push(Damage::new(DamageKind::Everything, 0, len));
                return Ok(examination);
            }
            Contents::Known(Known { header: Header::Missing, .. }) => {
                let unfinished = (len > 0).then_some(Damage::new(DamageKind::UnfinishedEnd, 0, len));
                examination.damage.extend(unfinished);
                return Ok(examination);
            }
            Contents::Known(known) => known,
        };

        let scanned = scan(bytes, known.first_frame(conversation.id).unwrap_or(0), known.epoch());
        // Without a header that holds, what stands before the first frame is the header.
        let header = (known.header == Header::Damaged).then_some(DamageKind::Header);
        let kinds = header.into_iter().chain(std::iter::repeat(DamageKind::Middle));
        let stretches = kinds.zip(&scanned.corrupt).map(|(kind, (start, end))| Damage::new(kind, *start, *end));
        examination.damage.extend(stretches);
        for frame in scanned.frames {
            examination.take(frame, names)?;
        }
        examination.damage.sort_by_key(|damage| damage.offset);
        let tail = match scanned.tail {
            Tail::Clean => None,
            Tail::Torn => Some(DamageKind::UnfinishedEnd),
            Tail::Damaged => Some(DamageKind::End),
        };
        examination.damage.extend(tail.map(|kind| Damage::new(kind, scanned.end, len)));
        Ok(examination)
    }

    fn take(&mut self, frame: Frame<'a>, names: &Names) -> Result<()> {
        let Some(records) = records(&frame, names)? else {
            self.frames.push((frame, None));
            return Ok(());
        };
        let decoded =
            records.and_then(|records| Ok((records.iter().collect::<std::result::Result<Vec<_>, _>>()?, records)));
        match decoded {
            Ok((messages, records)) => {
                self.messages.extend(frame.header.seqs().zip(messages));
                self.frames.push((frame, Some(records)));
            }
            Err(DecodeError) => {
                self.damage.push(Damage::new(DamageKind::Undecodable, frame.header.offset, frame.header.end()));
            }
        }
        Ok(())
    }
}

/// Looks for damage, and mends it if asked to.
pub(super) fn repair(conversation: &Conversation<'_>, slot: &SlotRef<'_>, repair: Repair) -> Result<RepairReport> {
    let names = &slot.names;
    let mut report = RepairReport { messages: 0, damage: Vec::new(), set_aside: Vec::new() };
    let look = |file: &dyn DiskFile| {
        let len = file.status().map_err(|source| names.io("look at", source))?.len;
        read(file, 0, len).map_err(|source| names.io("read", source))
    };
    match repair {
        Repair::DryRun => {
            if let Some(locked) = slot.shared(conversation)? {
                let bytes = look(&*locked.file)?;
                let examination = Examination::of(&bytes, &locked.contents, conversation, names)?;
                report.messages = examination.messages.len() as u64;
                report.damage = examination.damage;
            }
        }
        Repair::Apply => {
            let mut locked = slot.exclusive_existing(conversation)?;
            let Some(OpenFile { file, contents: Some(contents), .. }) = locked.open_file() else {
                return Ok(report);
            };
            let bytes = look(&**file)?;
            let examination = Examination::of(&bytes, contents, conversation, names)?;
            mend(conversation, slot, &mut locked, &examination, &mut report.set_aside)?;
            report.messages = examination.messages.len() as u64;
            report.damage = examination.damage;
        }
    }
    Ok(report)
}

fn mend(
    conversation: &Conversation<'_>,
    slot: &SlotRef<'_>,
    locked: &mut Exclusive<'_>,
    examination: &Examination<'_>,
    asides: &mut Vec<PathBuf>,
) -> Result<()> {
    let Some(OpenFile { file, contents, .. }) = locked.open_file().filter(|_| !examination.damage.is_empty()) else {
        return Ok(());
    };
    let only_the_end = |damage: &Damage| matches!(damage.kind, DamageKind::UnfinishedEnd | DamageKind::End);
    // Whoever comes next reads the file again.
    match contents.take() {
        Some(Contents::Unreadable { .. }) => begin_anew(conversation, slot, &**file, asides).map(drop),
        Some(Contents::Known(known)) if examination.damage.iter().all(only_the_end) => {
            mend_end(conversation, slot, &**file, known, asides).map(drop)
        }
        _ => {
            for Damage { offset, end, .. } in &examination.damage {
                asides.push(set_aside(conversation, &slot.names, &**file, *offset, Some(*end))?);
            }
            rewrite(conversation, slot, locked, &examination.frames)
        }
    }
}

/// Writes the frames that hold to a new file, which takes the conversation's name.
fn rewrite(
    conversation: &Conversation<'_>,
    slot: &SlotRef<'_>,
    locked: &mut Exclusive<'_>,
    frames: &[(Frame<'_>, Option<Records<'_>>)],
) -> Result<()> {
    let (store, names) = (conversation.store, &slot.names);
    let path = names.temporary();
    let failed = |operation| {
        let path = path.clone();
        move |source| io_error(operation, &path, source)
    };
    // Nobody else writes this name, for we hold the conversation's lock: what is there is left from a crash.
    match store.disk.remove(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        removed => removed.map_err(failed("remove"))?,
    }
    let file = store.with_handles(|| store.disk.open(&path, Open::CreateNew)).map_err(failed("create"))?;
    let written = (|| {
        // Locked before it has the conversation's name, and until that is durable: whoever opens it then waits, and
        // acknowledges nothing that a power cut could replace by the old file.
        if store.options.file_locks == FileLocks::Required {
            file.lock(Lock::Exclusive).map_err(failed("lock"))?;
        }
        write_frames(conversation, &*file, frames, &failed)?;
        file.sync().map_err(failed("sync"))?;
        store.disk.rename(&path, names.data()).map_err(failed("rename"))
    })();
    if let Err(error) = written {
        drop(file);
        let _ = store.disk.remove(&path); // the next repair, or a clear, tries again
        return Err(error);
    }
    // The old file has lost its name: what follows is about the new one, whether the sync succeeds or not.
    locked.replace(file.into());
    store.sync_names()
}

fn write_frames<F: FnOnce(std::io::Error) -> Error>(
    conversation: &Conversation<'_>,
    file: &dyn DiskFile,
    frames: &[(Frame<'_>, Option<Records<'_>>)],
    failed: &impl Fn(&'static str) -> F,
) -> Result<()> {
    let epoch = Epoch(conversation.store.disk.random());
    let header = encode_header(conversation, FileHeader { epoch, flags: FileHeader::REPAIRED })?;
    file.write_all_at(&header, 0).map_err(failed("write to"))?;
    let mut offset = header.len() as u64;
    let (mut newest_system, mut newest_user) = (None, None);
    for (ordinal, (frame, records)) in (0..).zip(frames) {
        if let Some(records) = records {
            let has = |wanted: fn(Role) -> bool| records.roles().any(wanted);
            newest_system = if has(Role::is_system) { Some(offset) } else { newest_system };
            newest_user = if has(|role| role == Role::User) { Some(offset) } else { newest_user };
        }
        let writer = FrameWriter::new(|payload| {
            payload.extend(frame.payload);
            Ok::<_, Error>(())
        })?;
        let (bytes, header, _) =
            writer.finish(FrameHeader { epoch, offset, ordinal, newest_system, newest_user, ..frame.header });
        file.write_all_at(&bytes, offset).map_err(failed("write to"))?;
        offset = header.end();
    }
    Ok(())
}

/// Copies a stretch of a file, or all from `start` on, to a file of its own beside it, durably.
pub(super) fn set_aside(
    conversation: &Conversation<'_>,
    names: &Names,
    file: &dyn DiskFile,
    start: u64,
    end: Option<u64>,
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
    let path = names.aside(start, crc);
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
