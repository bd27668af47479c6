//! The only door from the conversation store to the operating system.
//!
//! A trait, so that tests can cut the power at any operation. It is public for them alone, and no part of the crate's
//! stable interface.

mod std_disk;

use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::io;
use std::path::Path;

pub use std_disk::StdDisk;

/// Directories and files by path.
pub trait Disk: Send + Sync + Debug {
    /// Creates a directory and those above it that are missing, for the owner alone, each durable when this returns.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// An error where there is no such directory.
    fn check_dir(&self, dir: &Path) -> io::Result<()>;

    /// Opens a regular file, without following a link in its place and without waiting for anyone.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>>;

    /// Lets the name `to` mean what `from` meant, in one step.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// The names in a directory that are wanted, each with the time of the last write to its file, in nanoseconds since 1970;
    /// what goes meanwhile is left out.
    fn survey(&self, dir: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<(OsString, u64)>>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Which file a path names now, and what is known of it.
    fn status(&self, path: &Path) -> io::Result<Status>;

    /// A number that no file has had before.
    fn random(&self) -> u64;
}

/// An open file. Closing it releases its lock.
pub trait DiskFile: Send + Sync + Debug {
    /// Waits for a lock on the file, which belongs to this handle. A second one replaces the first.
    fn lock(&self, lock: Lock) -> io::Result<()>;

    /// Gives the lock back.
    fn unlock(&self) -> io::Result<()>;

    /// What is known of the file.
    fn status(&self) -> io::Result<Status>;

    /// Fills `buffer` from `offset` on, as far as the file goes; the number of bytes read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts the file to `len` bytes.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes the file's bytes and length durable.
    fn sync(&self) -> io::Result<()>;
}

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// What is there, to read only.
    Read,
    /// What is there, to read and write.
    Write,
    /// What is there, or a new empty file, to read and write, for the owner alone.
    Create,
    /// A new empty file where nothing is, to read and write, for the owner alone.
    CreateNew,
}

/// Who else may hold a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Others that share it.
    Shared,
    /// Nobody.
    Exclusive,
}

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Length in bytes.
    pub len: u64,
    /// Which file it is.
    pub identity: Identity,
}

/// Tells a file from every other that exists at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The device.
    pub device: u64,
    /// The file's number on it.
    pub inode: u64,
}
