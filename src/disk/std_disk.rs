//! The real disk.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;

use super::{Disk, DiskFile, Identity, Lock, Open, Status};

/// The file system, through the standard library.
#[derive(Debug, Clone, Copy, Default)]
pub struct StdDisk;

impl Disk for StdDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent {
            self.create_dir(parent)?;
        }
        match system::create_private_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
            Err(error) => Err(error),
            Ok(()) => self.sync_dir(parent.unwrap_or(Path::new("."))),
        }
    }

    fn check_dir(&self, dir: &Path) -> io::Result<()> {
        if fs::metadata(dir)?.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(how != Open::Read);
        match how {
            Open::Read | Open::Write => {}
            Open::Create => _ = options.create(true).truncate(false),
            Open::CreateNew => _ = options.create_new(true),
        }
        system::private_and_direct(&mut options);
        let file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(Box::new(StdFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }

    fn survey(&self, dir: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<(OsString, u64)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if wanted(&name) {
                match entry.metadata() {
                    Ok(metadata) => found.push((name, modified(&metadata))),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(found)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        system::sync_dir(dir)
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        system::status_of_path(path)
    }

    fn random(&self) -> u64 {
        // The standard library seeds its hash maps from the operating system's random numbers.
        RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now()))
    }
}

#[derive(Debug)]
struct StdFile(File);

impl DiskFile for StdFile {
    fn lock(&self, lock: Lock) -> io::Result<()> {
        retried(|| match lock {
            Lock::Shared => self.0.lock_shared(),
            Lock::Exclusive => self.0.lock(),
        })
    }

    fn unlock(&self) -> io::Result<()> {
        retried(|| self.0.unlock())
    }

    fn status(&self) -> io::Result<Status> {
        system::status(&self.0)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match retried(|| system::read_at(&self.0, rest, offset + filled as u64))? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match retried(|| system::write_at(&self.0, rest, offset + written as u64))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                more => written += more,
            }
        }
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        retried(|| self.0.set_len(len))
    }

    fn sync(&self) -> io::Result<()> {
        // Never retried: after a failed sync the system may have dropped what it could not write.
        self.0.sync_data()
    }
}

fn modified(metadata: &fs::Metadata) -> u64 {
    let since_1970 = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    u64::try_from(since_1970.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

/// Calls again what a signal interrupted.
fn retried<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(unix)]
mod system {
    #[cfg(not(target_os = "linux"))]
    pub(super) use metadata::{status, status_of_path};
    #[cfg(target_os = "linux")]
    pub(super) use statx::{status, status_of_path};

    use super::{File, OpenOptions, Path, fs, io};
    use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};

    use rustix::fs::OFlags;

    pub(super) fn create_private_dir(dir: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(dir)
    }

    /// A link in the file's place is refused, and a pipe does not make the call wait.
    pub(super) fn private_and_direct(options: &mut OpenOptions) {
        options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    }

    pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    /// Asks for what is needed and no more. A kernel with fine-grained time stamps (6.13 and later) gives a file whose times
    /// were asked for a new one at its next write, and that makes the sync behind it half as slow again.
    #[cfg(target_os = "linux")]
    mod statx {
        use std::os::fd::AsFd;

        use rustix::fs::{AtFlags, CWD, Statx, StatxFlags};
        use rustix::io::Errno;

        use super::super::{File, Identity, Path, Status, io};

        const WANTED: StatxFlags = StatxFlags::INO.union(StatxFlags::SIZE);

        pub(in super::super) fn status(file: &File) -> io::Result<Status> {
            match rustix::fs::statx(file.as_fd(), "", AtFlags::EMPTY_PATH, WANTED) {
                Err(Errno::NOSYS) => super::metadata::status(file),
                asked => Ok(of(&asked?)),
            }
        }

        pub(in super::super) fn status_of_path(path: &Path) -> io::Result<Status> {
            match rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, WANTED) {
                Err(Errno::NOSYS) => super::metadata::status_of_path(path),
                asked => Ok(of(&asked?)),
            }
        }

        fn of(statx: &Statx) -> Status {
            let device = u64::from(statx.stx_dev_major) << 32 | u64::from(statx.stx_dev_minor);
            Status { len: statx.stx_size, identity: Identity { device, inode: statx.stx_ino } }
        }
    }

    /// For other systems, and for sandboxes that do not know that call.
    mod metadata {
        use std::os::unix::fs::MetadataExt;

        use super::super::{File, Identity, Path, Status, fs, io};

        pub(in super::super) fn status(file: &File) -> io::Result<Status> {
            file.metadata().map(|metadata| of(&metadata))
        }

        pub(in super::super) fn status_of_path(path: &Path) -> io::Result<Status> {
            fs::symlink_metadata(path).map(|metadata| of(&metadata))
        }

        fn of(metadata: &fs::Metadata) -> Status {
            Status { len: metadata.len(), identity: Identity { device: metadata.dev(), inode: metadata.ino() } }
        }
    }

    pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(buffer, offset)
    }

    pub(super) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        file.write_at(bytes, offset)
    }
}

/// Compiles and works, without promises of durability: a directory cannot be synced, and files are not told apart.
#[cfg(windows)]
mod system {
    use super::{File, Identity, OpenOptions, Path, Status, fs, io};
    use std::os::windows::fs::FileExt;

    pub(super) fn create_private_dir(dir: &Path) -> io::Result<()> {
        fs::create_dir(dir)
    }

    pub(super) fn private_and_direct(_: &mut OpenOptions) {}

    pub(super) fn sync_dir(_: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn status(file: &File) -> io::Result<Status> {
        file.metadata().map(|metadata| of(&metadata))
    }

    pub(super) fn status_of_path(path: &Path) -> io::Result<Status> {
        fs::symlink_metadata(path).map(|metadata| of(&metadata))
    }

    fn of(metadata: &fs::Metadata) -> Status {
        Status { len: metadata.len(), identity: Identity { device: 0, inode: 0 } }
    }

    pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.seek_read(buffer, offset)
    }

    pub(super) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        file.seek_write(bytes, offset)
    }
}
