//! The store on disk: plain files in one folder per session.

mod chosen;
mod contents;
mod folder;
mod intent;
mod session;
mod slots;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;

pub use folder::{Change, Watch};

use contents::{Contents, Look};
use folder::Folder;
use intent::Changes;
use session::{Missing, Session};
use slots::Slots;

use super::name::{FileName, FolderName};
use super::store::{Description, FileEntry, FileStore, Precondition, Save, StoredFile, Version};
use crate::error::{Error, Result};

/// Beginning of the names of folders that are being removed.
const CLEARED: &str = ".cleared-";

/// Session folders on disk, for any number of threads and processes.
///
/// - What a call changes is written down and synced before anything is touched, and whoever comes next finishes what a crash
///   or the loss of power interrupted: a file never has another's description, and no half content.
/// - Everything is done relative to the handle of an open folder, without following links: no name leads out of it.
/// - A lock per session between threads, and one on the hidden file `.notebook` of the folder between processes.
///
/// Linux is supported and tested; see `docs/file-memory.md` for what is on disk.
#[doc(alias = "FileSystemAgentFileStore")]
pub struct LocalFileStore {
    root: Folder,
    slots: Slots,
}

impl LocalFileStore {
    /// Opens the folder that holds the sessions' folders, and creates it where it is missing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where it cannot be opened, or is a link.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_watched(path, None)
    }

    /// The same for tests that look at every change.
    #[doc(hidden)]
    pub fn open_watched(path: impl AsRef<Path>, watch: Option<Watch>) -> Result<Self> {
        let root = Folder::open_root(path.as_ref(), watch)?;
        for (name, _) in root.scan()?.iter().filter(|(name, _)| name.starts_with(CLEARED)) {
            // Left by a crash; another process may be at it as well.
            if let Err(error) = root.remove_child(name) {
                tracing::warn!(%error, "what is left of a cleared session could not be removed");
            }
        }
        Ok(Self { root, slots: Slots::default() })
    }

    /// Somebody who waited for the lock may still put a file into the folder, before they find that it is gone.
    fn remove_cleared(&self, name: &str) -> Result<()> {
        for _ in 0..10 {
            match self.root.remove_child(name) {
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                done => return done,
            }
        }
        self.root.remove_child(name)
    }

    /// Runs `work` on a session's folder with its lock held; `None` where there is no folder.
    fn enter<T>(
        &self,
        name: &FolderName,
        missing: Missing,
        work: impl FnOnce(&mut Session, &mut Contents) -> Result<T>,
    ) -> Result<Option<T>> {
        self.slots.take(name).lock().enter(&self.root, name, missing, work)
    }
}

impl FileStore for LocalFileStore {
    fn folder(&self, session_id: &str, choose: &dyn Fn() -> Result<FolderName>) -> Result<FolderName> {
        chosen::folder_of(&self.root, session_id, choose)
    }

    fn save(&self, folder: &FolderName, save: &Save<'_>) -> Result<Version> {
        let missing = match save.precondition {
            Precondition::Unchanged(_) => Missing::Leave,
            Precondition::None | Precondition::Absent => {
                // What can be refused without looking makes no folder.
                save.check(false, || Ok(None), 0, 0)?;
                Missing::Create
            }
        };
        let saved = self.enter(folder, missing, |session, contents| {
            let there = session.find(contents, save.name)?;
            let version = || match &there {
                Some(file) => Ok(session.folder.read(&file.on_disk, u64::MAX)?.map(|content| Version::of(&content))),
                None => Ok(None),
            };
            let (files, bytes) = there.as_ref().map_or((0, 0), |file| (1, file.size));
            save.check(
                there.is_some(),
                version,
                contents.len() as u64 - files,
                contents.bytes().saturating_sub(bytes),
            )?;
            let name = there.as_ref().map_or(save.name, |file| &file.name);
            let on_disk = there.as_ref().map_or(save.name.as_str(), |file| &file.on_disk);
            let mut changes = Changes::new();
            describe(session, contents, name, save.description, &mut changes)?;
            changes.insert(on_disk.to_owned(), Some(Cow::Borrowed(save.content)));
            session.commit(contents, &changes)
        })?;
        match saved {
            Some(()) => Ok(Version::of(save.content)),
            None => save.check(false, || Ok(None), 0, 0).map(|()| Version::of(save.content)),
        }
    }

    fn read(&self, folder: &FolderName, name: &FileName, max_bytes: u64) -> Result<Option<StoredFile>> {
        let read = self.enter(folder, Missing::Leave, |session, contents| {
            let Some(file) = session.find(contents, name)? else { return Ok(None) };
            session.folder.read(&file.on_disk, max_bytes)
        })?;
        let Some(content) = read.flatten() else { return Ok(None) };
        let size = content.len() as u64;
        if size > max_bytes {
            return Err(Error::TooLarge { what: "the size of the file in bytes", size, limit: max_bytes });
        }
        Ok(Some(StoredFile { version: Version::of(&content), content }))
    }

    fn delete(&self, folder: &FolderName, name: &FileName) -> Result<bool> {
        let deleted = self.enter(folder, Missing::Leave, |session, contents| {
            let Some(file) = session.find(contents, name)? else { return Ok(false) };
            let mut changes = Changes::from([(file.on_disk, None)]);
            forget_description(contents, &file.name, &mut changes);
            session.commit(contents, &changes)?;
            Ok(true)
        })?;
        Ok(deleted.unwrap_or(false))
    }

    fn rename(&self, folder: &FolderName, from: &FileName, to: &FileName) -> Result<bool> {
        let renamed = self.enter(folder, Missing::Leave, |session, contents| {
            let Some(file) = session.find(contents, from)? else { return Ok(false) };
            if session.find(contents, to)?.is_some() {
                return Err(Error::Conflict { reason: "a file of that name is there" });
            }
            let Some(content) = session.folder.read(&file.on_disk, u64::MAX)? else { return Ok(false) };
            let entry = contents.entry(&session.folder, &file.name, Look::OnDisk)?;
            let description = entry.and_then(|entry| entry.description);
            let mut changes = Changes::from([(file.on_disk, None)]);
            forget_description(contents, &file.name, &mut changes);
            let description = description.as_deref().map_or(Description::Remove, Description::Set);
            describe(session, contents, to, description, &mut changes)?;
            changes.insert(to.to_string(), Some(Cow::Owned(content)));
            session.commit(contents, &changes)?;
            Ok(true)
        })?;
        Ok(renamed.unwrap_or(false))
    }

    fn list(&self, folder: &FolderName) -> Result<Vec<FileEntry>> {
        let files = self.enter(folder, Missing::Leave, |session, contents| {
            contents.make_certain(&session.folder)?;
            let names: Vec<FileName> = contents.files().map(|file| file.name.clone()).collect();
            session.entries(contents, &names, Look::OnDisk)
        })?;
        Ok(files.unwrap_or_default())
    }

    fn recent(&self, folder: &FolderName, limit: usize) -> Result<(Vec<FileEntry>, usize)> {
        let recent = self.enter(folder, Missing::Leave, |session, contents| {
            contents.make_certain(&session.folder)?;
            Ok((session.recent(contents, limit, Look::OnDisk)?, contents.len()))
        })?;
        Ok(recent.unwrap_or_default())
    }

    fn clear(&self, folder: &FolderName) -> Result<()> {
        let slot = self.slots.take(folder);
        let mut slot = slot.lock();
        // Under its lock the folder gets another name, in one step: whoever waits for the lock finds it gone.
        let cleared = format!("{CLEARED}{}", random_name());
        let moved = slot.locked(&self.root, folder, Missing::Leave, |_| {
            self.root.rename(folder.as_str(), &cleared)?;
            self.root.sync()
        });
        slot.forget();
        match moved? {
            Some(()) => self.remove_cleared(&cleared),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for LocalFileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalFileStore").finish_non_exhaustive()
    }
}

/// Adds what becomes of a file's description when it is saved.
fn describe(
    session: &Session,
    contents: &mut Contents,
    name: &FileName,
    description: Description<'_>,
    changes: &mut Changes<'_>,
) -> Result<()> {
    let is_new = contents.find(name).is_none();
    if description == Description::Keep && !is_new {
        return Ok(());
    }
    // Where a new file takes the name of a description that others share, they get copies of their own.
    if let Some(shared) = contents.sidecar(&name.sidecar()).map(str::to_owned).filter(|_| is_new) {
        for user in contents.users_of_shared(&shared) {
            if is_deleted(contents, &user, changes) {
                continue;
            }
            let text = contents.entry(&session.folder, &user, Look::OnDisk)?.and_then(|entry| entry.description);
            let copy = text.unwrap_or_default().as_bytes().to_vec();
            changes.entry(user.sidecar()).or_insert(Some(Cow::Owned(copy)));
        }
    }
    forget_description(contents, name, changes);
    if let Some(text) = description.text() {
        let own = contents.sidecar(&name.sidecar()).map_or_else(|| name.sidecar(), str::to_owned);
        changes.insert(own, Some(Cow::Owned(text.as_bytes().to_vec())));
    }
    Ok(())
}

/// Adds that a file has no description any more. One that others share stays, and an empty one of the file's own hides it.
fn forget_description(contents: &Contents, name: &FileName, changes: &mut Changes<'_>) {
    if let Some(own) = contents.sidecar(&name.sidecar()) {
        changes.insert(own.to_owned(), None);
    }
    let Some(shared) = contents.shared_sidecar_of(name) else { return };
    if contents.users_of_shared(shared).iter().all(|user| user == name) {
        changes.insert(shared.to_owned(), None);
    } else if !is_deleted(contents, name, changes) {
        changes.insert(name.sidecar(), Some(Cow::Borrowed(b"")));
    }
}

fn is_deleted(contents: &Contents, name: &FileName, changes: &Changes<'_>) -> bool {
    contents.find(name).is_some_and(|file| changes.get(&file.on_disk) == Some(&None))
}

/// A name that nothing has had before.
fn random_name() -> String {
    use crate::disk::{Disk, StdDisk};
    format!("{:016x}{:016x}", StdDisk.random(), StdDisk.random())
}
