//! The contract of a store of session folders.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::name::{FileName, FolderName};
use crate::error::{Error, Result};

/// As long as a description may be, in bytes.
pub(crate) const MAX_DESCRIPTION_BYTES: usize = 16 << 10;

/// Where the files of sessions live. One folder per session, flat.
///
/// What is promised, and checked by the `conformance` feature's suite on any store:
///
/// - What one call changes, it changes whole: whoever reads through the library sees a file with its own description, old or
///   new, and the index that belongs to it. An error means that nothing was changed, but for [`Error::Io`], after which the
///   change has happened or it has not.
/// - Two names that differ in case or composition alone mean the same file, which keeps the name it has.
/// - Folders do not know of each other. Reading an unknown one finds nothing and creates nothing.
#[doc(alias = "AgentFileStore")]
pub trait FileStore: Send + Sync {
    /// The folder that was remembered for a session, or the one that `choose` now chooses, remembered for good.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] where the chosen folder is another session's; whatever `choose` says.
    fn folder(&self, session_id: &str, choose: &dyn Fn() -> Result<FolderName>) -> Result<FolderName>;

    /// Writes a whole file, and what is said of its description.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] where the precondition does not hold, [`Error::TooLarge`] beyond a quota,
    /// [`Error::InvalidFileName`] where the name belongs to something that is no file.
    fn save(&self, folder: &FolderName, save: &Save<'_>) -> Result<Version>;

    /// A file's content, or `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] for a file of more than `max_bytes`, [`Error::InvalidFileName`] where the name belongs to
    /// something that is no file.
    fn read(&self, folder: &FolderName, name: &FileName, max_bytes: u64) -> Result<Option<StoredFile>>;

    /// Deletes a file and its description. `false` where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidFileName`] where the name belongs to something that is no file.
    fn delete(&self, folder: &FolderName, name: &FileName) -> Result<bool>;

    /// Gives a file, with its description, another name. `false` where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] where there is a file of the new name, [`Error::InvalidFileName`] where either belongs to
    /// something that is no file.
    fn rename(&self, folder: &FolderName, from: &FileName, to: &FileName) -> Result<bool>;

    /// All files in alphabetical order, by [`FileEntry::cmp_by_name`].
    ///
    /// # Errors
    ///
    /// Whatever keeps the store from reading.
    fn list(&self, folder: &FolderName) -> Result<Vec<FileEntry>>;

    /// The files that were written last, at most `limit`, in alphabetical order, and how many there are in all.
    ///
    /// # Errors
    ///
    /// Whatever keeps the store from reading.
    fn recent(&self, folder: &FolderName, limit: usize) -> Result<(Vec<FileEntry>, usize)> {
        let mut files = self.list(folder)?;
        let count = files.len();
        files.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.cmp_by_name(b)));
        files.truncate(limit);
        files.sort_by(FileEntry::cmp_by_name);
        Ok((files, count))
    }

    /// Removes a folder and everything in it, for good. The name stays its session's.
    ///
    /// # Errors
    ///
    /// An error means that the files may still be there.
    fn clear(&self, folder: &FolderName) -> Result<()>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<S: FileStore + ?Sized> FileStore for $pointer {
            fn folder(&self, session_id: &str, choose: &dyn Fn() -> Result<FolderName>) -> Result<FolderName> {
                (**self).folder(session_id, choose)
            }

            fn save(&self, folder: &FolderName, save: &Save<'_>) -> Result<Version> {
                (**self).save(folder, save)
            }

            fn read(&self, folder: &FolderName, name: &FileName, max_bytes: u64) -> Result<Option<StoredFile>> {
                (**self).read(folder, name, max_bytes)
            }

            fn delete(&self, folder: &FolderName, name: &FileName) -> Result<bool> {
                (**self).delete(folder, name)
            }

            fn rename(&self, folder: &FolderName, from: &FileName, to: &FileName) -> Result<bool> {
                (**self).rename(folder, from, to)
            }

            fn list(&self, folder: &FolderName) -> Result<Vec<FileEntry>> {
                (**self).list(folder)
            }

            fn recent(&self, folder: &FolderName, limit: usize) -> Result<(Vec<FileEntry>, usize)> {
                (**self).recent(folder, limit)
            }

            fn clear(&self, folder: &FolderName) -> Result<()> {
                (**self).clear(folder)
            }
        }
    )*};
}
forward!(&S, Arc<S>, Box<S>);

/// A file to write.
#[derive(Debug, Clone, Copy)]
pub struct Save<'a> {
    /// Its name.
    pub name: &'a FileName,
    /// All of its bytes.
    pub content: &'a [u8],
    /// What becomes of its description.
    pub description: Description<'a>,
    /// What has to be so.
    pub precondition: Precondition,
    /// What must not be exceeded.
    pub quota: Quota,
}

impl<'a> Save<'a> {
    /// Writes a file without a description, whatever is there, without a limit.
    pub fn new(name: &'a FileName, content: &'a [u8]) -> Self {
        Self {
            name,
            content,
            description: Description::Remove,
            precondition: Precondition::None,
            quota: Quota::default(),
        }
    }

    /// Whether it may be done, given the file that is there, if one is, and how much is in the others.
    pub(crate) fn check(
        &self,
        is_there: bool,
        version: impl FnOnce() -> Result<Option<Version>>,
        other_files: u64,
        other_bytes: u64,
    ) -> Result<()> {
        self.precondition.check(is_there, version)?;
        let (size, limit) = (self.description.text().map_or(0, str::len) as u64, MAX_DESCRIPTION_BYTES as u64);
        if size > limit {
            return Err(Error::TooLarge { what: "the size of the description in bytes", size, limit });
        }
        let size = self.content.len() as u64;
        self.quota.check(size, other_files + 1, other_bytes + size)
    }

    /// Sets what becomes of the description; [`Description::Remove`] by default.
    #[must_use]
    pub fn with_description(mut self, description: Description<'a>) -> Self {
        self.description = description;
        self
    }

    /// Sets what has to be so; nothing by default.
    #[must_use]
    pub fn with_precondition(mut self, precondition: Precondition) -> Self {
        self.precondition = precondition;
        self
    }

    /// Sets what must not be exceeded; there is no limit by default.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }
}

/// What a save does with the file's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Description<'a> {
    /// Leaves it as it is.
    Keep,
    /// Writes this text. A blank one removes it.
    Set(&'a str),
    /// Removes it.
    Remove,
}

impl<'a> Description<'a> {
    /// The text to write, if there is one, without line ends behind it.
    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Description::Set(text) => Some(text.trim_end_matches(['\r', '\n'])).filter(|text| !text.trim().is_empty()),
            Description::Keep | Description::Remove => None,
        }
    }
}

/// What has to be so for a save to happen.
#[derive(Debug, Clone, PartialEq, Eq, Copy)]
pub enum Precondition {
    /// Nothing.
    None,
    /// There is no file of that name.
    Absent,
    /// The file is there, and is as it was when this version was seen.
    Unchanged(Version),
}

impl Precondition {
    /// Whether it holds for the file that is there, if one is. Its version is asked for only where it matters.
    fn check(&self, is_there: bool, version: impl FnOnce() -> Result<Option<Version>>) -> Result<()> {
        match self {
            Precondition::Absent if is_there => Err(Error::Conflict { reason: "a file of that name is there" }),
            Precondition::Unchanged(expected) if version()? != Some(*expected) => {
                Err(Error::Conflict { reason: "the file has changed since it was read" })
            }
            _ => Ok(()),
        }
    }
}

/// Which content a file has. Equal versions have equal contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version([u8; 32]);

impl Version {
    /// The version of a content: its sha256.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// What must not be exceeded. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Bytes of one file.
    pub file_bytes: Option<u64>,
    /// Files of one session.
    pub files: Option<u64>,
    /// Bytes of all files of one session, descriptions not counted.
    pub session_bytes: Option<u64>,
}

impl Quota {
    /// Whether a folder may become as large as it will be.
    fn check(&self, file_bytes: u64, files: u64, session_bytes: u64) -> Result<()> {
        for (what, size, limit) in [
            ("the size of the file in bytes", file_bytes, self.file_bytes),
            ("the number of files", files, self.files),
            ("the size of all files in bytes", session_bytes, self.session_bytes),
        ] {
            if let Some(limit) = limit.filter(|limit| size > *limit) {
                return Err(Error::TooLarge { what, size, limit });
            }
        }
        Ok(())
    }
}

/// A file's content, with the version that says whether it is still the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// All of its bytes, exactly as they were saved.
    pub content: Vec<u8>,
    /// For [`Precondition::Unchanged`].
    pub version: Version,
}

/// What a list says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Its name.
    pub name: FileName,
    /// Its description, whole; `None` where there is none.
    pub description: Option<Arc<str>>,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written.
    pub modified: SystemTime,
}

impl FileEntry {
    /// Alphabetical order, without regard to case unless it makes the only difference.
    pub fn cmp_by_name(&self, other: &Self) -> std::cmp::Ordering {
        (self.name.key(), &self.name).cmp(&(other.name.key(), &other.name))
    }
}
