//! The store that keeps nothing on disk, and the reference for those that do.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::name::{FileName, FolderName};
use super::store::{Description, FileEntry, FileStore, Save, StoredFile, Version};
use crate::error::{Error, Result};

/// Session folders in working memory, gone with the value: for tests, and for sessions that may be lost.
#[derive(Debug, Default)]
#[doc(alias = "InMemoryAgentFileStore")]
pub struct InMemoryFileStore(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By session id.
    folders: HashMap<String, FolderName>,
    /// The session that a folder belongs to, by the folder's key.
    owners: HashMap<String, String>,
    /// By folder.
    files: HashMap<FolderName, Files>,
}

/// By the names' keys, so that two names for one file find the same.
type Files = BTreeMap<String, File>;

#[derive(Debug, Clone)]
struct File {
    name: FileName,
    content: Arc<[u8]>,
    description: Option<Arc<str>>,
    modified: SystemTime,
}

impl InMemoryFileStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl FileStore for InMemoryFileStore {
    fn folder(&self, session_id: &str, choose: &dyn Fn() -> Result<FolderName>) -> Result<FolderName> {
        let mut state = self.0.lock();
        if let Some(known) = state.folders.get(session_id) {
            return Ok(known.clone());
        }
        let chosen = choose()?;
        if state.owners.get(&chosen.key()).is_some_and(|owner| owner != session_id) {
            return Err(Error::Conflict { reason: "the folder that was chosen for the session is another session's" });
        }
        state.owners.insert(chosen.key(), session_id.to_owned());
        state.folders.insert(session_id.to_owned(), chosen.clone());
        Ok(chosen)
    }

    fn save(&self, folder: &FolderName, save: &Save<'_>) -> Result<Version> {
        let mut state = self.0.lock();
        let key = save.name.key();
        let none = Files::new();
        let files = state.files.get(folder).unwrap_or(&none);
        let there = files.get(&key).cloned();
        let others = files.iter().filter(|(other, _)| **other != key);
        let (count, bytes) = others.fold((0, 0), |(count, bytes), (_, file)| (count + 1, bytes + file.content.len()));
        let version = || Ok(there.as_ref().map(|file| Version::of(&file.content)));
        save.check(there.is_some(), version, count, bytes as u64)?;
        let (name, before) = match there {
            Some(file) => (file.name, file.description),
            None => (save.name.clone(), None),
        };
        let description = match save.description {
            Description::Keep => before,
            other => other.text().map(Into::into),
        };
        let file = File { name, content: save.content.into(), description, modified: SystemTime::now() };
        state.files.entry(folder.clone()).or_default().insert(key, file);
        Ok(Version::of(save.content))
    }

    fn read(&self, folder: &FolderName, name: &FileName, max_bytes: u64) -> Result<Option<StoredFile>> {
        let state = self.0.lock();
        let Some(file) = state.files.get(folder).and_then(|files| files.get(&name.key())) else { return Ok(None) };
        let content = Arc::clone(&file.content);
        drop(state);
        let size = content.len() as u64;
        if size > max_bytes {
            return Err(Error::TooLarge { what: "the size of the file in bytes", size, limit: max_bytes });
        }
        Ok(Some(StoredFile { version: Version::of(&content), content: content.to_vec() }))
    }

    fn delete(&self, folder: &FolderName, name: &FileName) -> Result<bool> {
        let mut state = self.0.lock();
        Ok(state.files.get_mut(folder).and_then(|files| files.remove(&name.key())).is_some())
    }

    fn rename(&self, folder: &FolderName, from: &FileName, to: &FileName) -> Result<bool> {
        let mut state = self.0.lock();
        let Some(files) = state.files.get_mut(folder).filter(|files| files.contains_key(&from.key())) else {
            return Ok(false);
        };
        if files.contains_key(&to.key()) {
            return Err(Error::Conflict { reason: "a file of that name is there" });
        }
        if let Some(file) = files.remove(&from.key()) {
            files.insert(to.key(), File { name: to.clone(), modified: SystemTime::now(), ..file });
        }
        Ok(true)
    }

    fn list(&self, folder: &FolderName) -> Result<Vec<FileEntry>> {
        let state = self.0.lock();
        // The keys are in alphabetical order.
        let files = state.files.get(folder).into_iter().flat_map(BTreeMap::values);
        let entry = |file: &File| FileEntry {
            name: file.name.clone(),
            description: file.description.clone(),
            size: file.content.len() as u64,
            modified: file.modified,
        };
        Ok(files.map(entry).collect())
    }

    fn clear(&self, folder: &FolderName) -> Result<()> {
        self.0.lock().files.remove(folder);
        Ok(())
    }
}
