//! What can be chosen when a store is opened.

use std::path::PathBuf;
use std::sync::Arc;

use super::FileChatMemory;
use crate::disk::{Disk, StdDisk};
use crate::error::{Error, Result};
use crate::window::Window;

/// What an acknowledged [`add`](crate::ChatMemory::add) survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// The end of the process in any way, and the loss of power: `add` returns when the disk has the messages. The default.
    #[default]
    Disk,
    /// The end of the process in any way, `kill -9` included, but not the loss of power, nor a crash of the operating
    /// system: `add` returns when the operating system has the messages, which is some fifty times faster.
    Process,
}

/// What a damaged file means to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Recovery {
    /// Reads return every intact message of what they read, and the damage is told as a `tracing` event at error level.
    /// The default.
    #[default]
    Salvage,
    /// Damage in what is read is an error, and nothing is added behind a damaged end until it is repaired.
    Strict,
}

/// Whether a conversation's file is locked against other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FileLocks {
    /// Any number of processes may use one directory. A file system without locks is an error. The default.
    #[default]
    Required,
    /// No locks are taken. Only one process, with one [`FileChatMemory`], may use the directory, or messages are lost.
    Off,
}

/// Options of a [`FileChatMemory`].
#[derive(Debug, Clone)]
#[must_use]
pub struct FileChatMemoryBuilder {
    root: PathBuf,
    window: Option<Window>,
    window_step: Option<usize>,
    durability: Durability,
    recovery: Recovery,
    file_locks: FileLocks,
    max_batch_bytes: u64,
    max_open_files: usize,
    disk: Option<Arc<dyn Disk>>,
}

/// The options after they were checked.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) window: Option<Window>,
    pub(super) durability: Durability,
    pub(super) recovery: Recovery,
    pub(super) file_locks: FileLocks,
    pub(super) max_batch_bytes: u64,
    pub(super) max_open_files: usize,
}

impl FileChatMemoryBuilder {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            window: None,
            window_step: None,
            durability: Durability::default(),
            recovery: Recovery::default(),
            file_locks: FileLocks::default(),
            max_batch_bytes: 64 << 20,
            max_open_files: 256,
            disk: None,
        }
    }

    /// `get` returns a view of at most this many messages. Default: everything.
    pub fn max_messages(self, count: usize) -> Self {
        self.window(Window::messages(count))
    }

    /// `get` returns the view of this window; the same option as [`max_messages`](Self::max_messages), for budgets in tokens.
    /// Default: everything.
    pub fn window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self
    }

    /// [`Window::with_step`] for the window that is set: larger keeps the head of the view, and with it the provider's prompt
    /// cache, stable for several calls. Default: the window's own, 1.
    pub fn window_step(mut self, step: usize) -> Self {
        self.window_step = Some(step);
        self
    }

    /// What an acknowledged `add` survives. Default: [`Durability::Disk`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// What a damaged file means to a reader. Default: [`Recovery::Salvage`].
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// Whether files are locked against other processes. Default: [`FileLocks::Required`].
    pub fn file_locks(mut self, file_locks: FileLocks) -> Self {
        self.file_locks = file_locks;
        self
    }

    /// The largest batch that `add` takes, in bytes as stored; it has to fit in memory twice. At most 4 GiB less 1 MiB.
    /// Default: 64 MiB.
    pub fn max_batch_bytes(mut self, bytes: u64) -> Self {
        self.max_batch_bytes = bytes;
        self
    }

    /// How many files stay open after they were used; those of conversations in use at one moment are open whatever this
    /// says. Default: 256.
    pub fn max_open_files(mut self, count: usize) -> Self {
        self.max_open_files = count;
        self
    }

    /// Another disk than the real one, for tests.
    #[doc(hidden)]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = Some(disk);
        self
    }

    /// Opens the store, and creates its directory where it is missing.
    ///
    /// The cost does not depend on how many conversations there are: nothing is read before it is asked for.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for a value outside of its range, [`Error::Io`] where the directory cannot be made.
    pub fn open(self) -> Result<FileChatMemory> {
        const LARGEST_BATCH: u64 = (4 << 30) - (1 << 20);
        if !(1..=LARGEST_BATCH).contains(&self.max_batch_bytes) {
            let reason = "it has to be between 1 byte and 4 GiB less 1 MiB";
            return Err(Error::InvalidOption { option: "max_batch_bytes", reason });
        }
        let options = Options {
            window: Window::from_options(self.window, self.window_step)?,
            durability: self.durability,
            recovery: self.recovery,
            file_locks: self.file_locks,
            max_batch_bytes: self.max_batch_bytes,
            max_open_files: self.max_open_files,
        };
        let disk = self.disk.unwrap_or_else(|| Arc::new(StdDisk));
        FileChatMemory::with_options(disk, self.root, options)
    }
}
