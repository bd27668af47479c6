//! A file that is written anew and takes a conversation's name once it is whole.

use super::conversation::Conversation;
use super::io_error;
use super::lock::Exclusive;
use super::options::FileLocks;
use super::recover::Roles;
use super::slots::SlotRef;
use super::write::encode_header;
use crate::disk::{DiskFile, Lock, Open};
use crate::error::{Error, Result};
use crate::log::{Epoch, FileHeader, FrameHeader, FrameWriter};

/// Writes a new file by `write`, and puts it in the place of the conversation's: a crash leaves the old one or the new one.
pub(super) fn replace(
    conversation: &Conversation<'_>,
    slot: &SlotRef<'_>,
    locked: &mut Exclusive<'_>,
    flags: u16,
    write: impl FnOnce(&mut NewFile<'_>) -> Result<()>,
) -> Result<()> {
    let (store, path) = (conversation.store, slot.names.temporary());
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
        let epoch = Epoch(store.disk.random());
        let header = encode_header(conversation, FileHeader { epoch, flags })?;
        file.write_all_at(&header, 0).map_err(failed("write to"))?;
        let offset = header.len() as u64;
        let failed_write = |source| io_error("write to", &path, source);
        write(&mut NewFile {
            file: &*file,
            failed: &failed_write,
            epoch,
            offset,
            ordinal: 0,
            newest_system: None,
            newest_user: None,
        })?;
        file.sync().map_err(failed("sync"))?;
        // Who removes a file by hand does not ask for its lock, and others may have begun a new one since.
        if !locked.is_in_place(conversation)? {
            let reason = "the conversation's file was removed or replaced while it was being written anew";
            return Err(Error::Conflict { reason });
        }
        store.disk.rename(&path, slot.names.data()).map_err(failed("rename"))
    })();
    if let Err(error) = written {
        drop(file);
        let _ = store.disk.remove(&path); // the next one who writes anew, or a clear, tries again
        return Err(error);
    }
    // The old file has lost its name: what follows is about the new one. Until its name is durable, nothing may be
    // acknowledged in it: a store that promises to survive the loss of power syncs the directory before it adds to it.
    let identity = file.status().map_err(failed("look at"))?.identity;
    locked.replace(file.into(), identity);
    store.sync_names()?;
    if let Some(open) = locked.open_file() {
        open.name_is_durable = true;
    }
    Ok(())
}

/// A file under way, and where its next frame goes.
pub(super) struct NewFile<'a> {
    file: &'a dyn DiskFile,
    failed: &'a dyn Fn(std::io::Error) -> crate::error::Error,
    epoch: Epoch,
    offset: u64,
    ordinal: u32,
    newest_system: Option<u64>,
    newest_user: Option<u64>,
}

impl NewFile<'_> {
    /// Appends a frame: its messages, sequence numbers and time as `header` says, in a place of its own.
    pub(super) fn append(&mut self, frame: FrameWriter, header: FrameHeader, roles: Roles) -> Result<()> {
        let Self { epoch, offset, ordinal, .. } = *self;
        if roles.has_system {
            self.newest_system = Some(offset);
        }
        if roles.has_user {
            self.newest_user = Some(offset);
        }
        let (newest_system, newest_user) = (self.newest_system, self.newest_user);
        let header = FrameHeader { epoch, offset, ordinal, newest_system, newest_user, ..header };
        let (bytes, header, _) = frame.finish(header);
        self.file.write_all_at(&bytes, offset).map_err(self.failed)?;
        self.offset = header.end();
        self.ordinal += 1;
        Ok(())
    }
}
