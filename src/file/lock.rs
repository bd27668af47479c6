//! The lock of one conversation, between threads and between processes.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::conversation::{Contents, Conversation, Piece, load};
use super::names::Names;
use super::options::FileLocks;
use super::queue::Queue;
use super::recent::Recent;
use super::{Store, io_error};
use crate::disk::{DiskFile, Identity, Lock, Open, Status};
use crate::error::{Error, Result};

/// What the threads of this process share of one conversation.
///
/// A file lock belongs to the open file, not to a thread, and a second one replaces the first. So the slot has one file and
/// one lock on it: the first of several readers takes the shared lock, the last gives it back, and a writer waits until
/// there are no readers and then keeps the state's mutex as long as it works. No reader joins while a writer waits, and
/// none when the lock was held for a while: else readers that overlap would keep the writers of other processes out.
pub(super) struct Slot {
    pub(super) names: Names,
    pub(super) queue: Queue,
    state: Mutex<State>,
    changed: Condvar,
    /// For [`Slots`](super::slots::Slots): when it was used last.
    pub(super) used_at: AtomicU64,
}

#[derive(Default)]
struct State {
    readers: usize,
    waiting_writers: usize,
    /// Since when the readers hold the file lock, and whether one has joined another since.
    shared_since: Option<Instant>,
    was_joined: bool,
    /// Until when no new reader takes the file lock.
    closed_until: Option<Instant>,
    open: Option<OpenFile>,
}

/// How long readers may join before the file lock is given back, and how long others then have to take it.
const LONGEST_SHARE: Duration = Duration::from_millis(10);
const PAUSE: Duration = Duration::from_millis(1);

/// The conversation's file, open.
pub(super) struct OpenFile {
    pub(super) file: Arc<dyn DiskFile>,
    /// Which file it is; no other can be as long as it is open.
    identity: Identity,
    writable: bool,
    /// Whether this store has made sure that the file's name survives the loss of power.
    pub(super) name_is_durable: bool,
    /// Up to where this store has synced the file's bytes.
    pub(super) synced_end: u64,
    /// What the file held when the lock was held last. Whoever changes the file takes it out first and puts it back when all
    /// went well, so that after an error, or a panic, the next user reads the file again.
    pub(super) contents: Option<Contents>,
    /// The newest messages, as true as the contents.
    pub(super) recent: Option<Arc<Recent>>,
}

impl OpenFile {
    /// A file of which nothing is known yet.
    fn new(file: Arc<dyn DiskFile>, identity: Identity, writable: bool) -> Self {
        Self { file, identity, writable, name_is_durable: false, synced_end: 0, contents: None, recent: None }
    }
}

/// What to do where there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Leave,
    Create,
}

impl Slot {
    pub(super) fn new(names: Names) -> Self {
        Self {
            names,
            queue: Queue::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
            used_at: AtomicU64::new(0),
        }
    }

    /// Whether a file is open here.
    pub(super) fn is_open(&self) -> bool {
        self.state.lock().open.is_some()
    }

    /// Locks the conversation for reading; `None` where there is no file.
    pub(super) fn shared(&self, conversation: &Conversation<'_>) -> Result<Option<Shared<'_>>> {
        let mut state = self.state.lock();
        loop {
            let is_old = || state.shared_since.is_some_and(|since| since.elapsed() > LONGEST_SHARE);
            if state.waiting_writers > 0 || (state.readers > 0 && is_old()) {
                self.changed.wait(&mut state);
            } else if let Some(until) = state.closed_until.filter(|until| Instant::now() < *until) {
                self.changed.wait_until(&mut state, until);
            } else {
                break;
            }
        }
        // While there are readers the file lock is held, so what they know still holds.
        let mut ending = None;
        if state.readers == 0 {
            state.closed_until = None;
            state.shared_since = Some(Instant::now());
            state.was_joined = false;
            match lock_and_load(&mut state.open, conversation, &self.names, Lock::Shared, Missing::Leave)? {
                Locked::No => return Ok(None),
                Locked::Yes(read) => ending = read,
            }
        }
        let State { open: Some(OpenFile { file, contents: Some(contents), recent, .. }), .. } = &*state else {
            // Never an empty conversation for want of knowing.
            return Err(self.names.io("look at", std::io::ErrorKind::NotFound.into()));
        };
        let (file, contents, recent) = (Arc::clone(file), contents.clone(), recent.clone());
        state.was_joined |= state.readers > 0;
        state.readers += 1;
        let locks = conversation.store.options.file_locks;
        Ok(Some(Shared { slot: self, locks, file, contents, recent, ending }))
    }

    /// Locks the conversation for writing. Where there is no file and none is made, the guard has none open.
    pub(super) fn exclusive(&self, conversation: &Conversation<'_>, missing: Missing) -> Result<Exclusive<'_>> {
        let mut exclusive = self.wait_for_readers(conversation);
        lock_and_load(&mut exclusive.state.open, conversation, &self.names, Lock::Exclusive, missing)?;
        Ok(exclusive)
    }

    /// The same for one who means to remove the file and does not care what is in it.
    pub(super) fn exclusive_unread(&self, conversation: &Conversation<'_>, missing: Missing) -> Result<Exclusive<'_>> {
        let mut exclusive = self.wait_for_readers(conversation);
        lock(&mut exclusive.state.open, conversation, &self.names, Lock::Exclusive, missing)?;
        Ok(exclusive)
    }

    fn wait_for_readers(&self, conversation: &Conversation<'_>) -> Exclusive<'_> {
        let mut state = self.state.lock();
        state.waiting_writers += 1;
        while state.readers > 0 {
            self.changed.wait(&mut state);
        }
        state.waiting_writers -= 1;
        Exclusive { slot: self, locks: conversation.store.options.file_locks, state }
    }
}

/// A conversation locked for reading.
pub(super) struct Shared<'a> {
    slot: &'a Slot,
    locks: FileLocks,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) contents: Contents,
    pub(super) recent: Option<Arc<Recent>>,
    /// The file's last bytes, where they had to be read.
    pub(super) ending: Option<Piece>,
}

impl Shared<'_> {
    /// Keeps messages that were read for those who come next.
    pub(super) fn keep(&self, recent: Recent) {
        // Nobody has written since they were read, for we hold the lock.
        if let Some(open) = &mut self.slot.state.lock().open {
            open.recent = Some(Arc::new(recent));
        }
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        let mut state = self.slot.state.lock();
        state.readers -= 1;
        if state.readers == 0 {
            release(&mut state.open, self.locks);
            let was_long = state.shared_since.take().is_some_and(|since| since.elapsed() > LONGEST_SHARE);
            // Readers one after the other leave a gap anyway.
            state.closed_until = (was_long && state.was_joined).then(|| Instant::now() + PAUSE);
        }
        drop(state);
        self.slot.changed.notify_all();
    }
}

/// A conversation locked for writing.
pub(super) struct Exclusive<'a> {
    slot: &'a Slot,
    locks: FileLocks,
    state: MutexGuard<'a, State>,
}

impl Exclusive<'_> {
    /// The file, if there is one.
    pub(super) fn open_file(&mut self) -> Option<&mut OpenFile> {
        self.state.open.as_mut()
    }

    /// Whether the conversation's name still means the file that is locked: true unless somebody has moved it without asking.
    pub(super) fn is_in_place(&self, conversation: &Conversation<'_>) -> Result<bool> {
        let named = named_file(conversation.store, &self.slot.names)?;
        Ok(named.map(|status| status.identity) == self.state.open.as_ref().map(|open| open.identity))
    }

    /// Closes the file, and with it gives back the file lock.
    pub(super) fn close(&mut self) {
        self.state.open = None;
    }

    /// Goes on with another file, which is locked already, in the place of the old one.
    pub(super) fn replace(&mut self, file: Arc<dyn DiskFile>, identity: Identity) {
        self.state.open = Some(OpenFile::new(file, identity, true));
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.state.open = None;
        }
        release(&mut self.state.open, self.locks);
        // Readers that wait for writers to be done look again when the mutex is free.
        self.slot.changed.notify_all();
    }
}

fn release(open: &mut Option<OpenFile>, locks: FileLocks) {
    if locks == FileLocks::Required && open.as_ref().is_some_and(|open| open.file.unlock().is_err()) {
        *open = None; // closing it gives the lock back too
    }
}

enum Locked {
    /// There is no file.
    No,
    Yes(Option<Piece>),
}

/// Opens and locks the file, and makes sure that what is known of it is true. After an error nothing is open.
fn lock_and_load(
    open: &mut Option<OpenFile>,
    conversation: &Conversation<'_>,
    names: &Names,
    how: Lock,
    missing: Missing,
) -> Result<Locked> {
    let Some(status) = lock(open, conversation, names, how, missing)? else {
        return Ok(Locked::No);
    };
    let Some(locked) = open else {
        return Ok(Locked::No);
    };
    // Asked under the lock: whoever held it before may have failed.
    if conversation.store.poisoned.contains_key(&conversation.key) {
        *open = None;
        return Err(Error::Poisoned { path: names.data().to_owned() });
    }
    let trusted = match &locked.contents {
        Some(contents) => contents.still_hold(&*locked.file, status.len),
        None => Ok(false),
    };
    let ending = match trusted.map_err(|source| names.io("read", source)) {
        Ok(true) => Ok(None),
        Ok(false) => load(&*locked.file, status.len, conversation, names).map(|(contents, ending)| {
            locked.name_is_durable |= contents.name_is_durable();
            locked.contents = Some(contents);
            (locked.recent, locked.synced_end) = (None, 0);
            ending
        }),
        Err(error) => Err(error),
    };
    ending.map(Locked::Yes).inspect_err(|_| *open = None)
}

/// How often in a row a file may be replaced while we wait for its lock. Those who clear and add all the time do so a few times.
const MOST_REPLACED: usize = 10_000;

/// Opens and locks the file that has the conversation's name at the moment when the lock is held.
fn lock(
    open: &mut Option<OpenFile>,
    conversation: &Conversation<'_>,
    names: &Names,
    how: Lock,
    missing: Missing,
) -> Result<Option<Status>> {
    let store = conversation.store;
    if how == Lock::Exclusive && open.as_ref().is_some_and(|open| !open.writable) {
        *open = None;
    }
    for _ in 0..MOST_REPLACED {
        if open.is_none() {
            *open = open_file(store, names, how, missing)?;
        }
        let Some(locked) = open else {
            return Ok(None);
        };
        match lock_file(store, names, locked, how) {
            Ok(Some(status)) => return Ok(Some(status)),
            // Somebody has removed or replaced it: what we have open is not the conversation any more.
            Ok(None) => *open = None,
            Err(error) => {
                *open = None;
                return Err(error);
            }
        }
    }
    let advice = "each time it is locked, its name means another file than the one that was opened by it; does this file system \
                  number its files anew each time?";
    Err(names.io("lock", std::io::Error::other(advice)))
}

/// Locks an open file; `None` where the conversation's name does not mean it any more. Nothing but the name says so: a file
/// that lost it may have another, be it a backup's.
fn lock_file(store: &Store, names: &Names, open: &OpenFile, how: Lock) -> Result<Option<Status>> {
    if store.options.file_locks == FileLocks::Required {
        open.file.lock(how).map_err(|source| names.io("lock", explained(source)))?;
    }
    Ok(named_file(store, names)?.filter(|status| status.identity == open.identity))
}

/// The file that the conversation's name means now.
fn named_file(store: &Store, names: &Names) -> Result<Option<Status>> {
    match store.disk.status(names.data()) {
        Ok(status) => Ok(Some(status)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(names.io("look at", source)),
    }
}

fn open_file(store: &Store, names: &Names, how: Lock, missing: Missing) -> Result<Option<OpenFile>> {
    use std::io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
    let open = |mode| store.with_handles(|| store.disk.open(names.data(), mode));
    let mode = if missing == Missing::Create { Open::Create } else { Open::Write };
    let (file, writable) = match open(mode) {
        // Who may not write may still read.
        Err(error) if how == Lock::Shared && matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            (open(Open::Read), false)
        }
        opened => (opened, true),
    };
    match file {
        Ok(file) => {
            let identity = file.status().map_err(|source| names.io("look at", source))?.identity;
            Ok(Some(OpenFile::new(file.into(), identity, writable)))
        }
        Err(error) if error.kind() == NotFound && missing == Missing::Leave => {
            // Where the whole directory is away, nobody can say that there is no conversation.
            store.disk.check_dir(&store.root).map_err(|source| io_error("find", &store.root, source))?;
            Ok(None)
        }
        Err(source) => Err(names.io("open", source)),
    }
}

/// Says what to do where a file system has no locks.
pub(super) fn explained(error: std::io::Error) -> std::io::Error {
    const ENOLCK: i32 = 37;
    if error.kind() == std::io::ErrorKind::Unsupported || error.raw_os_error() == Some(ENOLCK) {
        let advice = "this file system has no file locks; where one process alone uses the directory, open the store with \
                      `file_locks(FileLocks::Off)`";
        return std::io::Error::new(std::io::ErrorKind::Unsupported, advice);
    }
    error
}

impl Names {
    /// An error with this conversation's file.
    pub(super) fn io(&self, operation: &'static str, source: std::io::Error) -> Error {
        Error::Io { operation, path: self.data().to_owned(), source }
    }
}
