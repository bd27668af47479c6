//! A disk in memory for one thread, which nothing goes wrong on.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use chat_memory::disk::{Disk, DiskFile, Identity, Lock, Open, Status};

/// Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<World>>);

#[derive(Debug, Default)]
struct World {
    names: BTreeMap<PathBuf, Arc<File>>,
    files: u64,
    random: u64,
}

#[derive(Debug)]
struct File {
    number: u64,
    bytes: Mutex<Vec<u8>>,
}

impl MemoryDisk {
    /// A disk with one file.
    pub fn with_file(path: &Path, bytes: &[u8]) -> Self {
        let disk = Self::default();
        disk.world().create(path, bytes);
        disk
    }

    /// What a file holds.
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        self.world().names.get(path).map(|file| file.bytes().clone())
    }

    /// The names of all files.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.world().names.keys().cloned().collect()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

impl World {
    fn create(&mut self, path: &Path, bytes: &[u8]) -> Arc<File> {
        self.files += 1;
        let file = Arc::new(File { number: self.files, bytes: Mutex::new(bytes.to_vec()) });
        self.names.insert(path.to_owned(), Arc::clone(&file));
        file
    }
}

impl Disk for MemoryDisk {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn check_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.world();
        let file = match (world.names.get(path), how) {
            (Some(_), Open::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => Arc::clone(file),
            (None, Open::Read | Open::Write) => return Err(io::ErrorKind::NotFound.into()),
            (None, Open::Create | Open::CreateNew) => world.create(path, &[]),
        };
        Ok(Box::new(OpenFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        let file = world.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        world.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.world().names.remove(path).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let world = self.world();
        let here = world.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(here.filter_map(|path| path.file_name()).map(OsString::from).collect())
    }

    fn survey(&self, dir: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<(OsString, u64)>> {
        let names = self.list(dir)?.into_iter().filter(|name| wanted(name));
        names.map(|name| self.status(&dir.join(&name)).map(|status| (name, status.identity.inode))).collect()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        self.world().names.get(path).map(|file| file.status()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn random(&self) -> u64 {
        let mut world = self.world();
        world.random = world.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        world.random
    }
}

impl File {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap()
    }

    fn status(&self) -> Status {
        let identity = Identity { device: 1, inode: self.number };
        Status { len: self.bytes().len() as u64, identity }
    }
}

#[derive(Debug)]
struct OpenFile(Arc<File>);

impl DiskFile for OpenFile {
    fn lock(&self, _: Lock) -> io::Result<()> {
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }

    fn status(&self) -> io::Result<Status> {
        Ok(self.0.status())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.0.bytes();
        let from = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        let len = from.len().min(buffer.len());
        buffer[..len].copy_from_slice(&from[..len]);
        Ok(len)
    }

    fn write_all_at(&self, new: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.0.bytes();
        let (start, end) = (offset as usize, offset as usize + new.len());
        assert!(start <= bytes.len(), "a store writes where the file ends, or before that");
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(new);
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.bytes().resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
