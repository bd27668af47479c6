//! One folder, by its handle: the only place that calls the file system. No name leads out of it, and no link is followed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cap_fs_ext::{DirExt, FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::fs::{Dir, DirBuilder, Metadata, OpenOptions};

use crate::disk::{Disk, StdDisk};
use crate::error::{Error, Result};

/// A change that is about to be made in a folder. For tests that cut the power between any two of them.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)]
pub enum Change<'a> {
    CreateFolder { name: &'a str },
    Write { file: &'a str, bytes: &'a [u8] },
    Truncate { file: &'a str, len: u64 },
    SyncFile { file: &'a str },
    Rename { from: &'a str, to: &'a str },
    Remove { file: &'a str },
    RemoveFolder { name: &'a str },
    SyncFolder,
}

/// Is told of each change before it is made, with the name of the folder, empty for the root; an error takes its place.
#[doc(hidden)]
pub type Watch = Arc<dyn Fn(&str, Change<'_>) -> io::Result<()> + Send + Sync>;

/// What a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) is_file: bool,
    pub(super) size: u64,
    pub(super) modified: SystemTime,
    /// Device and number: which file it is.
    pub(super) identity: (u64, u64),
}

pub(super) struct Folder {
    dir: Dir,
    /// Relative to the root; empty for the root itself.
    name: String,
    /// For errors alone.
    path: PathBuf,
    watch: Option<Watch>,
}

impl Folder {
    /// Opens a folder that the host chose, and creates it, and those above it, where they are missing. The folder itself may
    /// not be a link.
    pub(super) fn open_root(path: &Path, watch: Option<Watch>) -> Result<Self> {
        // Without what may follow the name: a separator behind a link would follow it.
        let path: PathBuf = path.components().collect();
        let opened = StdDisk.create_dir(&path).and_then(|()| system::open_root(&path));
        match opened {
            Ok(dir) => Ok(Self { dir, name: String::new(), path, watch }),
            Err(source) => Err(Error::Io { operation: "open", path, source }),
        }
    }

    /// A folder in this one, if it is there. A link in its place is an error.
    pub(super) fn child(&self, name: &str) -> Result<Option<Self>> {
        match self.dir.open_dir_nofollow(name) {
            Ok(dir) => Ok(Some(self.of(dir, name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("open", name, error)),
        }
    }

    /// A folder in this one, which is created where it is missing.
    pub(super) fn child_or_new(&self, name: &str) -> Result<Self> {
        loop {
            if let Some(child) = self.child(name)? {
                return Ok(child);
            }
            self.about_to(name, Change::CreateFolder { name })?;
            match self.dir.create_dir_with(name, &system::private_folder()) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(self.failed("create", name, error));
                }
                _ => {}
            }
        }
    }

    /// Opens or creates a file of our own, to read and write in place: so it may not be a second name of a file elsewhere.
    pub(super) fn open_own(&self, name: &str) -> Result<File> {
        let mut options = system::direct_options();
        options.read(true).write(true).create(true);
        let opened = self.dir.open_with(name, &options).and_then(|file| match file.metadata()?.nlink() {
            0 | 1 => regular(file),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it has a second name")),
        });
        opened.map_err(|error| self.failed("open", name, error))
    }

    /// The bytes of a file, no more than one beyond the limit, or `None` where there is no such name.
    pub(super) fn read(&self, name: &str, max_bytes: u64) -> Result<Option<Vec<u8>>> {
        let mut options = system::direct_options();
        let opened = self.dir.open_with(name, options.read(true)).and_then(regular);
        let read = opened.and_then(|file| {
            let mut content = Vec::new();
            let size = usize::try_from(file.metadata()?.len().min(max_bytes)).unwrap_or(usize::MAX);
            content.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
            file.take(max_bytes.saturating_add(1)).read_to_end(&mut content)?;
            Ok(content)
        });
        match read {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", name, error)),
        }
    }

    /// What a name belongs to, if to anything. A path of two names is a file in a folder of this one.
    pub(super) fn status(&self, name: &str) -> Result<Option<Status>> {
        match self.dir.symlink_metadata(name).and_then(|metadata| status(&metadata)) {
            Ok(status) => Ok(Some(status)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(self.failed("look at", name, error)),
        }
    }

    /// When a name was last added to the folder, taken away, or given to another file.
    pub(super) fn modified(&self) -> Result<SystemTime> {
        let modified = self.dir.dir_metadata().and_then(|metadata| metadata.modified());
        modified.map(cap_std::time::SystemTime::into_std).map_err(|error| self.failed("look at", "", error))
    }

    /// All names that are text and not hidden.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let failed = |error| self.failed("list", "", error);
        let mut names = Vec::new();
        for entry in self.dir.entries().map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().into_string().ok());
        }
        names.retain(|name| !name.starts_with('.'));
        Ok(names)
    }

    /// All names that are text, and what they belong to.
    pub(super) fn scan(&self) -> Result<Vec<(String, Status)>> {
        let mut found = Vec::new();
        let failed = |error| self.failed("list", "", error);
        for entry in self.dir.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            match entry.metadata().and_then(|metadata| status(&metadata)) {
                Ok(status) => found.push((name, status)),
                // It went meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(found)
    }

    /// Writes a new file in the place of whatever has its name, and says what the file system took for its time.
    pub(super) fn write(&self, name: &str, bytes: &[u8], modified: SystemTime, durable: Durable) -> Result<SystemTime> {
        self.remove(name)?;
        self.about_to(name, Change::Write { file: name, bytes })?;
        let mut options = system::direct_options();
        options.write(true).create_new(true);
        let written = self.dir.open_with(name, &options).and_then(|file| {
            let mut file = file.into_std();
            file.write_all(bytes)?;
            file.set_modified(modified)?;
            Ok(file)
        });
        let file = written.map_err(|error| self.failed("write", name, error))?;
        if durable == Durable::Yes {
            self.sync_file(name, &file)?;
        }
        file.metadata().and_then(|metadata| metadata.modified()).map_err(|error| self.failed("look at", name, error))
    }

    pub(super) fn sync_file(&self, name: &str, file: &File) -> Result<()> {
        self.about_to(name, Change::SyncFile { file: name })?;
        // Never retried: after a failed sync the system may have dropped what it could not write.
        file.sync_all().map_err(|error| self.failed("sync", name, error))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.about_to(to, Change::Rename { from, to })?;
        self.dir.rename(from, &self.dir, to).map_err(|error| self.failed("write", to, error))
    }

    /// Removes a file or a link, if it is there.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        if self.dir.symlink_metadata(name).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(());
        }
        self.about_to(name, Change::Remove { file: name })?;
        match self.dir.remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("remove", name, error)),
            _ => Ok(()),
        }
    }

    /// Removes a folder in this one and everything in it; links are removed, not followed.
    pub(super) fn remove_child(&self, name: &str) -> Result<()> {
        self.about_to(name, Change::RemoveFolder { name })?;
        match self.dir.remove_dir_all(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("remove", name, error)),
            _ => Ok(()),
        }
    }

    /// Makes the names in the folder durable.
    pub(super) fn sync(&self) -> Result<()> {
        self.about_to("", Change::SyncFolder)?;
        system::sync_folder(&self.dir).map_err(|error| self.failed("sync", "", error))
    }

    /// Tells who watches; an error of theirs takes the place of the change.
    pub(super) fn about_to(&self, name: &str, change: Change<'_>) -> Result<()> {
        match &self.watch {
            Some(watch) => watch(&self.name, change).map_err(|error| self.failed("change", name, error)),
            None => Ok(()),
        }
    }

    pub(super) fn failed(&self, operation: &'static str, name: &str, source: io::Error) -> Error {
        Error::Io { operation, path: self.path.join(name), source }
    }

    fn of(&self, dir: Dir, name: &str) -> Self {
        Self { dir, name: name.to_owned(), path: self.path.join(name), watch: self.watch.clone() }
    }
}

/// Whether a file is synced after it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durable {
    Yes,
    No,
}

/// The file as the standard library's, if it is one and no pipe or device.
fn regular(file: cap_std::fs::File) -> io::Result<File> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file.into_std())
}

fn status(metadata: &Metadata) -> io::Result<Status> {
    Ok(Status {
        is_file: metadata.is_file(),
        size: metadata.len(),
        modified: metadata.modified()?.into_std(),
        identity: (metadata.dev(), metadata.ino()),
    })
}

/// Which file an open one is.
pub(super) fn identity(file: &File) -> io::Result<(u64, u64)> {
    let metadata = Metadata::from_file(file)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Whether a name is one name, and not a way to somewhere.
pub(super) fn is_one_name(name: &str) -> bool {
    Path::new(name).file_name() == Some(OsStr::new(name))
}

#[cfg(unix)]
mod system {
    use super::*;
    use cap_std::fs::{DirBuilderExt, OpenOptionsExt};
    use rustix::fs::OFlags;

    pub(super) fn open_root(path: &Path) -> io::Result<Dir> {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
        std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).map(Dir::from_std_file)
    }

    pub(super) fn private_folder() -> DirBuilder {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        builder
    }

    /// A link is refused, a pipe does not make the call wait, and what is created is for the owner alone.
    pub(super) fn direct_options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.follow(FollowSymlinks::No).mode(0o600).custom_flags(OFlags::NONBLOCK.bits() as i32);
        options
    }

    pub(super) fn sync_folder(dir: &Dir) -> io::Result<()> {
        dir.open(".")?.sync_all()
    }
}

/// Compiles and works, without promises of durability: a folder cannot be synced.
#[cfg(windows)]
mod system {
    use super::*;

    pub(super) fn open_root(path: &Path) -> io::Result<Dir> {
        if std::fs::symlink_metadata(path)?.is_symlink() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is a link"));
        }
        Dir::open_ambient_dir(path, cap_std::ambient_authority())
    }

    pub(super) fn private_folder() -> DirBuilder {
        DirBuilder::new()
    }

    pub(super) fn direct_options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.follow(FollowSymlinks::No);
        options
    }

    pub(super) fn sync_folder(_: &Dir) -> io::Result<()> {
        Ok(())
    }
}
