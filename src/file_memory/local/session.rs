//! One session's folder in use: its lock between threads and processes, what is remembered of it, and how it is changed.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use super::contents::{Contents, KnownFile, Look, WAITING};
use super::folder::{Change, Durable, Folder, identity};
use super::intent::{self, Changes, STATE_NAME};
use crate::error::{Error, Result};
use crate::file_memory::index::{self, MAX_BYTES, MAX_ENTRIES};
use crate::file_memory::name::{FileName, FolderName, INDEX_NAME};
use crate::file_memory::store::FileEntry;

/// As often as a folder is opened that is cleared at the same moment.
const MAX_TRIES: usize = 100;

/// A folder with its lock held: by this thread through the slot, by this process through the state file.
pub(super) struct Session {
    pub(super) folder: Folder,
    state: File,
    /// What is remembered, taken out before a change and put back after it succeeded.
    memory: Option<Memory>,
}

struct Memory {
    contents: Contents,
    generation: u64,
    /// The folder's own time: it changes with every name, whoever does it.
    modified: SystemTime,
}

/// Whether a folder that is missing is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Create,
    Leave,
}

/// What a slot holds: the folder of a session, once it was used.
#[derive(Default)]
pub(super) struct Slot(Option<Session>);

impl Slot {
    /// Takes the file lock, finishes what a crash left unfinished, and runs `work` on the folder; `None` where there is none.
    pub(super) fn enter<T>(
        &mut self,
        root: &Folder,
        name: &FolderName,
        missing: Missing,
        work: impl FnOnce(&mut Session, &mut Contents) -> Result<T>,
    ) -> Result<Option<T>> {
        self.locked(root, name, missing, |session| session.run(root, work))
    }

    /// Takes the file lock and runs `work` on the folder as it is.
    ///
    /// Lock order: the slot, then the state file. The session is out of the slot meanwhile, so a panic closes its files, and
    /// with them goes the lock.
    pub(super) fn locked<T>(
        &mut self,
        root: &Folder,
        name: &FolderName,
        missing: Missing,
        work: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut tries = 0;
        loop {
            tries += 1;
            let session = match self.0.take() {
                Some(session) => Ok(Some(session)),
                None => Session::open(root, name, missing),
            };
            let mut session = match session {
                Ok(Some(session)) => session,
                Ok(None) => return Ok(None),
                // The folder was cleared while it was opened; or the root is gone, and it will not come back.
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound && tries < MAX_TRIES => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            session.lock()?;
            // A folder that was cleared meanwhile is another's by now, or nobody's.
            if session.is_current(root, name)? {
                let done = work(&mut session);
                session.unlock()?;
                self.0 = Some(session);
                return done.map(Some);
            }
            if tries >= MAX_TRIES {
                let never_the_same = io::ErrorKind::ResourceBusy.into();
                return Err(session.folder.failed("lock", STATE_NAME, never_the_same));
            }
        }
    }

    /// Forgets the folder and closes what is open of it.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}

impl Session {
    fn open(root: &Folder, name: &FolderName, missing: Missing) -> Result<Option<Self>> {
        let folder = match missing {
            Missing::Create => root.child_or_new(name.as_str())?,
            Missing::Leave => match root.child(name.as_str())? {
                Some(folder) => folder,
                None => return Ok(None),
            },
        };
        let state = folder.open_own(STATE_NAME)?;
        Ok(Some(Self { folder, state, memory: None }))
    }

    fn lock(&self) -> Result<()> {
        retried(|| self.state.lock()).map_err(|error| self.folder.failed("lock", STATE_NAME, error))
    }

    fn unlock(&self) -> Result<()> {
        retried(|| self.state.unlock()).map_err(|error| self.folder.failed("unlock", STATE_NAME, error))
    }

    /// Whether the folder's name and the state file's still mean what is open.
    fn is_current(&self, root: &Folder, name: &FolderName) -> Result<bool> {
        let found = root.status(&format!("{}/{STATE_NAME}", name.as_str()))?;
        let own = identity(&self.state).map_err(|error| self.folder.failed("look at", STATE_NAME, error))?;
        Ok(found.is_some_and(|found| found.identity == own))
    }

    fn run<T>(&mut self, root: &Folder, work: impl FnOnce(&mut Self, &mut Contents) -> Result<T>) -> Result<T> {
        let state = self.read_state()?;
        let generation = match state {
            Some(state) => state.generation,
            None => self.set_up(root)?,
        };
        let is_pending = state.is_some_and(|state| state.is_pending);
        if is_pending {
            self.memory = None;
            self.roll_forward()?;
        }
        let modified = self.folder.modified()?;
        let known = self.memory.take().filter(|known| known.generation == generation && known.modified == modified);
        let mut contents = match known {
            Some(known) => known.contents,
            None => Contents::load(&self.folder)?,
        };
        self.write_index(&mut contents);
        let done = work(self, &mut contents);
        if !matches!(done, Err(Error::Io { .. })) {
            self.write_index(&mut contents);
            // Asked again: the work may have written, and the index too.
            let generation = self.read_state()?.map_or(generation, |state| state.generation);
            let modified = self.folder.modified()?;
            self.memory = Some(Memory { contents, generation, modified });
        }
        done
    }

    fn read_state(&self) -> Result<Option<intent::State>> {
        intent::read_state(&self.state).map_err(|error| self.folder.failed("read", STATE_NAME, error))
    }

    /// The folder's name and the state file's are durable before the header is there: so no change, which needs both, can
    /// outlive them in part. A number that was not used before keeps others from trusting what they remember.
    fn set_up(&mut self, root: &Folder) -> Result<u64> {
        root.sync()?;
        self.folder.sync()?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let generation = u64::try_from(since_1970.as_nanos()).unwrap_or_default();
        self.truncate(0)?;
        self.write_state(&intent::encode_idle(generation))?;
        Ok(generation)
    }

    /// Makes a change whole: written down and synced first, then done, then synced, then no longer written down.
    pub(super) fn commit(&mut self, contents: &mut Contents, changes: &Changes<'_>) -> Result<()> {
        for (name, _) in changes.iter().filter(|(_, bytes)| bytes.is_some()) {
            if self.folder.status(name)?.is_some_and(|status| !status.is_file) {
                return Err(NOT_A_FILE);
            }
        }
        let generation = self.read_state()?.map_or(0, |state| state.generation) + 1;
        let written = self.write_state(&intent::encode(generation, changes)).and_then(|()| self.sync_state());
        // From here on the change is pending. If nothing was renamed yet it can be taken back; else it goes forward at the
        // next access, and an error says that it may have happened.
        let done = written.and_then(|()| self.prepare(changes));
        let times = match done {
            Ok(times) => times,
            Err(error) => {
                self.truncate(intent::idle_len()).and_then(|()| self.sync_state())?;
                return Err(error);
            }
        };
        self.replace(changes)?;
        self.truncate(intent::idle_len())?;
        for ((name, bytes), modified) in changes.iter().zip(times) {
            match bytes {
                Some(bytes) => contents.wrote(name, bytes, modified),
                None => contents.removed(name),
            }
        }
        Ok(())
    }

    /// Does what the state file says, if it says it whole. The record is synced first, for a killed process may not have: else
    /// the loss of power could leave half of what is done now, and nothing that says so.
    fn roll_forward(&mut self) -> Result<()> {
        let changes = intent::read_changes(&self.state);
        if let Some(changes) = changes.map_err(|error| self.folder.failed("read", STATE_NAME, error))? {
            self.sync_state()?;
            self.prepare(&changes)?;
            self.replace(&changes)?;
        }
        self.truncate(intent::idle_len())
    }

    /// Writes what is to be put under names that wait, durably, and gives their times.
    fn prepare(&self, changes: &Changes<'_>) -> Result<Vec<SystemTime>> {
        let now = SystemTime::now();
        let write = |(number, bytes): (usize, &Option<Cow<'_, [u8]>>)| match bytes {
            Some(bytes) => self.folder.write(&waiting(number), bytes, now, Durable::Yes),
            None => Ok(now),
        };
        changes.values().enumerate().map(write).collect()
    }

    /// Lets the names mean what waits, and makes that durable.
    fn replace(&self, changes: &Changes<'_>) -> Result<()> {
        for (number, (name, bytes)) in changes.iter().enumerate() {
            match bytes {
                Some(_) => self.folder.rename(&waiting(number), name)?,
                None => self.folder.remove(name)?,
            }
        }
        self.folder.sync()
    }

    /// Writes the index, if it is not as it should be. It is derived, so nothing depends on it, and the next access tries
    /// again.
    fn write_index(&self, contents: &mut Contents) {
        if contents.is_index_current {
            return;
        }
        let written = self.recent(contents, MAX_ENTRIES, Look::InMemory).and_then(|entries| {
            let text = index::render(&entries, contents.len(), MAX_BYTES, "");
            let is_there = contents.index.is_some();
            if contents.index.as_ref() != Some(&text) && (is_there || !entries.is_empty()) {
                let name = format!("{WAITING}index");
                self.folder.write(&name, text.as_bytes(), SystemTime::now(), Durable::No)?;
                self.folder.rename(&name, INDEX_NAME)?;
                contents.wrote_index(text);
            }
            contents.is_index_current = true;
            Ok(())
        });
        if let Err(error) = written {
            tracing::warn!(%error, "the index of a session's files could not be written");
        }
    }

    /// The file that a name means. One that is not known may have come unseen.
    pub(super) fn find(&self, contents: &mut Contents, name: &FileName) -> Result<Option<KnownFile>> {
        if contents.find(name).is_none() {
            match self.folder.status(name.as_str())? {
                Some(status) if status.is_file => *contents = Contents::load(&self.folder)?,
                Some(_) => return Err(NOT_A_FILE),
                None => {}
            }
        }
        Ok(contents.find(name).cloned())
    }

    /// The files that were written last, in alphabetical order.
    pub(super) fn recent(&self, contents: &mut Contents, limit: usize, look: Look) -> Result<Vec<FileEntry>> {
        let names: Vec<FileName> = contents.recent(limit).into_iter().map(|file| file.name.clone()).collect();
        self.entries(contents, &names, look)
    }

    /// What a list says of these files.
    pub(super) fn entries(&self, contents: &mut Contents, names: &[FileName], look: Look) -> Result<Vec<FileEntry>> {
        let entries = names.iter().filter_map(|name| contents.entry(&self.folder, name, look).transpose());
        entries.collect()
    }

    fn write_state(&self, bytes: &[u8]) -> Result<()> {
        self.folder.about_to(STATE_NAME, Change::Write { file: STATE_NAME, bytes })?;
        intent::write(&self.state, bytes).map_err(|error| self.folder.failed("write", STATE_NAME, error))
    }

    fn sync_state(&self) -> Result<()> {
        self.folder.sync_file(STATE_NAME, &self.state)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.folder.about_to(STATE_NAME, Change::Truncate { file: STATE_NAME, len })?;
        self.state.set_len(len).map_err(|error| self.folder.failed("truncate", STATE_NAME, error))
    }
}

/// Something else than a file has the name: a link, a folder, a device.
const NOT_A_FILE: Error =
    Error::InvalidFileName { rule: "what has this name is a link, a folder or a device, and no file" };

fn waiting(number: usize) -> String {
    format!("{WAITING}{number}")
}

/// Calls again what a signal interrupted.
fn retried(mut call: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
