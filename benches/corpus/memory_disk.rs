//! A disk in memory, so that what is left to measure is the library: no system calls, no syncing, no waiting for locks.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use chat_memory::disk::{Disk, DiskFile, Identity, Lock, Open, Status};

/// Files by path.
#[derive(Debug, Default)]
pub struct MemoryDisk {
    files: Mutex<HashMap<PathBuf, MemoryFile>>,
    drawn: AtomicU64,
}

/// One file; every handle is a clone that shares the bytes.
#[derive(Debug, Clone)]
struct MemoryFile {
    inode: u64,
    bytes: Arc<RwLock<Vec<u8>>>,
}

impl Disk for MemoryDisk {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn check_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut files = self.files.lock().unwrap();
        let file = match (files.get(path), how) {
            (Some(_), Open::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => file.clone(),
            (None, Open::Read | Open::Write) => return Err(io::ErrorKind::NotFound.into()),
            (None, Open::Create | Open::CreateNew) => {
                let file = MemoryFile { inode: self.random(), bytes: Arc::default() };
                files.insert(path.to_owned(), file.clone());
                file
            }
        };
        Ok(Box::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.files.lock().unwrap();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.lock().unwrap().remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let files = self.files.lock().unwrap();
        let inside = files.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| path.file_name()).map(OsString::from).collect())
    }

    fn survey(&self, dir: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<(OsString, u64)>> {
        let names = self.list(dir)?.into_iter().filter(|name| wanted(name));
        Ok(names.map(|name| (name, 0)).collect())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        self.files.lock().unwrap().get(path).ok_or(io::ErrorKind::NotFound)?.status()
    }

    fn random(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl DiskFile for MemoryFile {
    fn lock(&self, _: Lock) -> io::Result<()> {
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }

    fn status(&self) -> io::Result<Status> {
        let len = self.bytes.read().unwrap().len() as u64;
        Ok(Status { len, identity: Identity { device: 0, inode: self.inode } })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.bytes.read().unwrap();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_all_at(&self, new: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.bytes.write().unwrap();
        let (start, end) = (offset as usize, offset as usize + new.len());
        if start == bytes.len() {
            bytes.extend_from_slice(new);
            return Ok(());
        }
        let len = bytes.len().max(end);
        bytes.resize(len, 0);
        bytes[start..end].copy_from_slice(new);
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.bytes.write().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
