//! A disk in memory that can lose power and fail.
//!
//! It keeps two images: the live one, which the running program sees, and the durable one, which is what a power cut leaves
//! for certain. In between are the operations that were not synced; after a cut any of them may be there or not, and the
//! last write in part.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use chat_memory::disk::{Disk, DiskFile, Identity, Lock, Open, Status};

const SECTOR: usize = 512;
const PAGE: usize = 4096;

#[derive(Debug, Clone, Default)]
pub struct SimDisk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    world: Mutex<World>,
    unlocked: Condvar,
}

#[derive(Debug, Default)]
struct World {
    names: Names,
    durable_names: Names,
    name_changes: Vec<NameChange>,
    files: Vec<File>,
    next_handle: u64,
    random: u64,
    /// How many operations that change something, or sync, were asked for.
    operations: usize,
    trouble: Option<Trouble>,
    reads_fail: bool,
    pub bytes_read: usize,
    pub bytes_written: usize,
    log: Vec<String>,
    /// The file that was written to last.
    written_last: usize,
}

type Names = BTreeMap<PathBuf, usize>;

#[derive(Debug, Clone)]
enum NameChange {
    Link(PathBuf, usize),
    Unlink(PathBuf),
}

#[derive(Debug, Default)]
struct File {
    live: Vec<u8>,
    durable: Vec<u8>,
    changes: Vec<Change>,
    /// Pages that a sync could not write. The system takes them for written, so no later sync writes them, until they are
    /// changed again.
    dropped: BTreeSet<usize>,
    shared: Vec<u64>,
    exclusive: Option<u64>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

/// What goes wrong, from the n-th operation (from 0) on.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    /// The power goes during the operation: it may or may not reach the disk. Everything later fails.
    PowerCut { at: usize },
    /// The operation fails with this error code; a write does a half first if `short`.
    Fails { at: usize, errno: i32, short: bool, for_good: bool },
    /// The operation panics; the next one works.
    Panics { at: usize },
}

/// The bytes of each file by name.
pub type Image = BTreeMap<PathBuf, Vec<u8>>;

impl SimDisk {
    /// A disk that holds these files, durably.
    pub fn with_image(image: &Image) -> Self {
        let disk = Self::default();
        {
            let mut world = disk.world();
            for (path, bytes) in image {
                let id = world.files.len();
                world.files.push(File { live: bytes.clone(), durable: bytes.clone(), ..File::default() });
                world.names.insert(path.clone(), id);
            }
            world.durable_names = world.names.clone();
        }
        disk
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.world.lock()
    }

    pub fn trouble(&self, trouble: Trouble) {
        let mut world = self.world();
        world.operations = 0;
        world.trouble = Some(trouble);
    }

    pub fn no_trouble(&self) {
        self.world().trouble = None;
    }

    /// Whether the power cut that was asked for has come.
    pub fn power_is_off(&self) -> bool {
        let world = self.world();
        matches!(world.trouble, Some(Trouble::PowerCut { at }) if world.operations > at)
    }

    /// From now on every read fails, or none.
    pub fn reads_fail(&self, fail: bool) {
        self.world().reads_fail = fail;
    }

    pub fn operations(&self) -> usize {
        self.world().operations
    }

    /// Bytes read and written since this was asked last.
    pub fn take_counts(&self) -> (usize, usize) {
        let mut world = self.world();
        (std::mem::take(&mut world.bytes_read), std::mem::take(&mut world.bytes_written))
    }

    /// The operations that changed something, or synced, since this was asked last: a verb and a file name each.
    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.world().log)
    }

    /// What the running program sees, and what a killed process leaves.
    pub fn live(&self) -> Image {
        let world = self.world();
        world.names.iter().map(|(path, id)| (path.clone(), world.files[*id].live.clone())).collect()
    }

    /// Changes a file behind the program's back.
    pub fn tamper(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut world = self.world();
        let id = world.names[path];
        change(&mut world.files[id].live);
        world.files[id].durable = world.files[id].live.clone();
        world.files[id].changes.clear();
    }

    /// Writes at the end of a file as another program would, without a sync.
    pub fn append_unsynced(&self, path: &Path, bytes: &[u8]) {
        let mut world = self.world();
        let id = world.names[path];
        let end = world.files[id].live.len() as u64;
        world.change(id, Change::Write(end, bytes.to_vec()));
    }

    /// Everything that a power cut now may leave. Each un-synced change of a name is there or not; each un-synced change of
    /// a file is there or not, and the last write may be cut or have sectors of zeros.
    pub fn after_power_cut(&self) -> Vec<Image> {
        let world = self.world();
        let files: Vec<Vec<Vec<u8>>> = world.files.iter().map(File::outcomes).collect();
        let mut images = Vec::new();
        for names in world.name_outcomes() {
            // Files are written one at a time, so at most one has many outcomes.
            let mut partial = vec![Image::new()];
            for (path, id) in &names {
                partial = partial
                    .iter()
                    .flat_map(|image| {
                        files[*id].iter().map(move |bytes| {
                            let mut image = image.clone();
                            image.insert(path.clone(), bytes.clone());
                            image
                        })
                    })
                    .collect();
            }
            images.extend(partial);
        }
        images.sort();
        images.dedup();
        images
    }

    /// What a kill in the middle of the last operation may leave: the live image, and if it was a write, that write cut.
    pub fn after_kill(&self) -> Vec<Image> {
        let live = self.live();
        let world = self.world();
        let mut images = vec![live.clone()];
        let was_write = world.log.last().is_some_and(|line| line.starts_with("write"));
        drop(world);
        if !was_write || !self.power_is_off() {
            return images;
        }
        let world = self.world();
        for (path, id) in world.names.iter().filter(|(_, id)| **id == world.written_last) {
            let file = &world.files[*id];
            if let Some((Change::Write(offset, bytes), before)) = file.changes.split_last() {
                let mut base = file.durable.clone();
                before.iter().for_each(|change| change.apply(&mut base));
                for cut in cuts(bytes) {
                    let mut image = live.clone();
                    let mut file = base.clone();
                    Change::Write(*offset, bytes[..cut].to_vec()).apply(&mut file);
                    image.insert(path.clone(), file);
                    images.push(image);
                }
            }
        }
        images.sort();
        images.dedup();
        images
    }
}

/// Every byte of a short write; of a long one the edges, the sectors' edges and some between. One zero is like another, so of
/// zeros a few will do.
fn cuts(bytes: &[u8]) -> Vec<usize> {
    let len = bytes.len();
    if bytes.iter().all(|byte| *byte == 0) {
        return vec![0, len / 3, len];
    }
    if len <= 300 {
        return (0..=len).collect();
    }
    let edges = (0..40).chain((0..len).step_by(SECTOR)).chain((0..len).step_by(97)).chain(len - 40..=len);
    edges.collect()
}

impl File {
    /// What was changed is durable, but for the pages that an earlier sync could not write.
    fn synced(&mut self) {
        let old = std::mem::replace(&mut self.durable, self.live.clone());
        for page in &self.dropped {
            let new = self.durable.iter_mut().skip(page * PAGE).take(PAGE);
            let old = old.iter().copied().skip(page * PAGE).chain(std::iter::repeat(0));
            new.zip(old).for_each(|(new, old)| *new = old);
        }
        self.changes.clear();
    }

    /// What the file may hold after a power cut. Each un-synced change took place or not, in any order,
    /// and one write may have taken place in part.
    fn outcomes(&self) -> Vec<Vec<u8>> {
        if self.changes.is_empty() {
            return vec![self.durable.clone()];
        }
        let mut outcomes = Vec::new();
        for chosen in subsets(self.changes.len()) {
            let is_chosen = |at: usize| chosen & (1 << at) != 0;
            let apply = |from: Vec<u8>, range: std::ops::Range<usize>| {
                range.filter(|at| is_chosen(*at)).fold(from, |bytes, at| self.changes[at].applied(bytes))
            };
            let all = 0..self.changes.len();
            outcomes.push(apply(self.durable.clone(), all.clone()));
            for at in all.clone().filter(|at| is_chosen(*at)) {
                if let Change::Write(offset, bytes) = &self.changes[at] {
                    let before = apply(self.durable.clone(), 0..at);
                    let parts = in_part(*offset, bytes, &before);
                    outcomes.extend(parts.into_iter().map(|part| apply(part, at + 1..all.end)));
                }
            }
        }
        outcomes.sort();
        outcomes.dedup();
        outcomes
    }
}

/// Which of so many changes took place, as bits: all subsets of a few; of more, the first ones, the last ones, all but one, and
/// one alone.
fn subsets(count: usize) -> Vec<u32> {
    let all = (1_u32 << count) - 1;
    if count <= 5 {
        return (0..=all).collect();
    }
    let mut subsets: Vec<u32> =
        (0..=count).flat_map(|at| [all >> at, all << at & all, all & !(1 << at), all & 1 << at]).collect();
    subsets.sort_unstable();
    subsets.dedup();
    subsets
}

/// What a write leaves that reached the disk in part: its first bytes, or some of its sectors, with the rest as it was, which is
/// zeros where there was nothing.
fn in_part(offset: u64, bytes: &[u8], before: &[u8]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = cuts(bytes)
        .into_iter()
        .map(|cut| Change::Write(offset, bytes[..cut].to_vec()).applied(before.to_vec()))
        .collect();
    if bytes.iter().all(|byte| *byte == 0) {
        return parts; // a sector of it is like one that was not written
    }
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    let (first, last) = (start / SECTOR, end.div_ceil(SECTOR));
    let sectors = last - first;
    let patterns: Vec<u32> = if sectors <= 4 { (0..1 << sectors).collect() } else { vec![0, 1, 2, 5, !1, !2] };
    for pattern in patterns {
        let mut part = Change::Write(offset, bytes.to_vec()).applied(before.to_vec());
        for sector in (first..last).filter(|sector| pattern & (1 << ((sector - first) % 32)) == 0) {
            let (from, to) = ((sector * SECTOR).max(start), ((sector + 1) * SECTOR).min(end));
            let old = before.iter().copied().chain(std::iter::repeat(0)).skip(from);
            part[from..to].iter_mut().zip(old).for_each(|(byte, old)| *byte = old);
        }
        parts.push(part);
    }
    parts
}

impl Change {
    /// The pages that it makes dirty.
    fn pages(&self) -> std::ops::Range<usize> {
        let (start, end) = match self {
            Change::Write(offset, bytes) => (*offset as usize, *offset as usize + bytes.len()),
            Change::Truncate(len) => (*len as usize, (*len as usize).next_multiple_of(PAGE)),
        };
        if start == end { 0..0 } else { start / PAGE..end.div_ceil(PAGE) }
    }

    fn applied(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        self.apply(&mut bytes);
        bytes
    }

    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(offset, new) => {
                let end = *offset as usize + new.len();
                if bytes.len() < end && !new.is_empty() {
                    bytes.resize(end, 0);
                }
                if !new.is_empty() {
                    bytes[*offset as usize..end].copy_from_slice(new);
                }
            }
            Change::Truncate(len) => bytes.resize(*len as usize, 0),
        }
    }
}

impl World {
    fn name_outcomes(&self) -> Vec<Names> {
        let mut outcomes = Vec::new();
        for chosen in subsets(self.name_changes.len()) {
            let mut names = self.durable_names.clone();
            for (_, change) in self.name_changes.iter().enumerate().filter(|(at, _)| chosen & (1 << at) != 0) {
                change.apply(&mut names);
            }
            outcomes.push(names);
        }
        outcomes.dedup();
        outcomes
    }

    /// Counts an operation; `Err` where it fails. `Ok(true)` where it takes place and the power goes with it.
    fn operation(&mut self, what: &str, path: &Path) -> Result<bool, (io::Error, bool)> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.log.push(format!("{what} {name}"));
        let now = self.operations;
        self.operations += 1;
        match self.trouble {
            Some(Trouble::PowerCut { at }) if now == at => Ok(true),
            Some(Trouble::PowerCut { at }) if now > at => Err((power_is_off(), false)),
            Some(Trouble::Fails { at, errno, short, for_good }) if now == at || (for_good && now > at) => {
                Err((io::Error::from_raw_os_error(errno), short))
            }
            Some(Trouble::Panics { at }) if now == at => panic!("the disk panics"),
            _ => Ok(false),
        }
    }

    /// Whether reads work: not without power.
    fn check_reads(&self) -> io::Result<()> {
        match self.trouble {
            Some(Trouble::PowerCut { at }) if self.operations > at => Err(power_is_off()),
            _ if self.reads_fail => Err(io::Error::from_raw_os_error(5)),
            _ => Ok(()),
        }
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }
}

fn power_is_off() -> io::Error {
    io::Error::other("the power is off")
}

fn done(power_gone: bool) -> io::Result<()> {
    if power_gone { Err(power_is_off()) } else { Ok(()) }
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match self {
            NameChange::Link(path, id) => _ = names.insert(path.clone(), *id),
            NameChange::Unlink(path) => _ = names.remove(path),
        }
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn check_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.world();
        let known = world.names.get(path).copied();
        let id = match (known, how) {
            (Some(_), Open::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(id), _) => {
                world.check_reads()?;
                id
            }
            (None, Open::Read | Open::Write) => {
                world.check_reads()?;
                return Err(io::ErrorKind::NotFound.into());
            }
            (None, Open::Create | Open::CreateNew) => {
                let gone = world.operation("create", path).map_err(|(error, _)| error)?;
                let id = world.files.len();
                world.files.push(File::default());
                world.change_name(NameChange::Link(path.to_owned(), id));
                done(gone)?;
                id
            }
        };
        world.next_handle += 1;
        Ok(Box::new(SimFile { disk: self.clone(), id, handle: world.next_handle, path: path.to_owned() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        let gone = world.operation("rename", to).map_err(|(error, _)| error)?;
        let id = *world.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        // Either half may reach the disk first.
        world.change_name(NameChange::Link(to.to_owned(), id));
        world.change_name(NameChange::Unlink(from.to_owned()));
        done(gone)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        if !world.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let gone = world.operation("remove", path).map_err(|(error, _)| error)?;
        world.change_name(NameChange::Unlink(path.to_owned()));
        done(gone)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let world = self.world();
        world.check_reads()?;
        let names = world.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(names.filter_map(|path| path.file_name()).map(OsString::from).collect())
    }

    fn survey(&self, dir: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<(OsString, u64)>> {
        let names = self.list(dir)?.into_iter().filter(|name| wanted(name));
        names.map(|name| self.status(&dir.join(&name)).map(|status| (name, status.identity.inode))).collect()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.world();
        let gone = world.operation("sync-names", dir).map_err(|(error, _)| error)?;
        done(gone)?;
        let is_here = |path: &Path| path.parent() == Some(dir);
        world.name_changes.retain(|change| match change {
            NameChange::Link(path, _) | NameChange::Unlink(path) => !is_here(path),
        });
        let World { names, durable_names, .. } = &mut *world;
        durable_names.retain(|path, _| !is_here(path));
        durable_names.extend(names.iter().filter(|(path, _)| is_here(path)).map(|(path, id)| (path.clone(), *id)));
        Ok(())
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        let world = self.world();
        world.check_reads()?;
        let id = *world.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(world.status(id))
    }

    fn random(&self) -> u64 {
        let mut world = self.world();
        world.random = world.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        // Another disk made from an image of this one must not repeat its numbers.
        world.random ^ (world.files.len() as u64) << 48
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    id: usize,
    handle: u64,
    path: PathBuf,
}

impl SimFile {
    fn release(&self) {
        let mut world = self.disk.world();
        let file = &mut world.files[self.id];
        file.shared.retain(|handle| *handle != self.handle);
        if file.exclusive == Some(self.handle) {
            file.exclusive = None;
        }
        self.disk.0.unlocked.notify_all();
    }

    /// Nobody reads a conversation's file without a lock on it, or writes to it without the exclusive one.
    fn check_lock(&self, world: &World, needed: Lock) {
        let file = &world.files[self.id];
        let is_exclusive = file.exclusive == Some(self.handle);
        let is_shared = needed == Lock::Shared && file.shared.contains(&self.handle);
        let is_conversation = self.path.extension().is_some_and(|extension| extension == "bin");
        assert!(!is_conversation || is_exclusive || is_shared, "{:?} without a lock", self.path);
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.release();
    }
}

impl DiskFile for SimFile {
    fn lock(&self, lock: Lock) -> io::Result<()> {
        self.release();
        let mut world = self.disk.world();
        loop {
            let file = &mut world.files[self.id];
            match lock {
                Lock::Shared if file.exclusive.is_none() => {
                    file.shared.push(self.handle);
                    return Ok(());
                }
                Lock::Exclusive if file.exclusive.is_none() && file.shared.is_empty() => {
                    file.exclusive = Some(self.handle);
                    return Ok(());
                }
                _ => self.disk.0.unlocked.wait(&mut world),
            }
        }
    }

    fn unlock(&self) -> io::Result<()> {
        self.release();
        Ok(())
    }

    fn status(&self) -> io::Result<Status> {
        let world = self.disk.world();
        world.check_reads()?;
        Ok(world.status(self.id))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut world = self.disk.world();
        self.check_lock(&world, Lock::Shared);
        world.check_reads()?;
        let live = &world.files[self.id].live;
        let from = live.get(offset as usize..).unwrap_or_default();
        let len = from.len().min(buffer.len());
        buffer[..len].copy_from_slice(&from[..len]);
        world.bytes_read += len;
        Ok(len)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        self.check_lock(&world, Lock::Exclusive);
        let (bytes, result) = match world.operation("write", &self.path) {
            Ok(gone) => (bytes, done(gone)),
            Err((error, true)) => (&bytes[..bytes.len() / 2], Err(error)),
            Err((error, false)) => return Err(error),
        };
        world.bytes_written += bytes.len();
        world.written_last = self.id;
        world.change(self.id, Change::Write(offset, bytes.to_vec()));
        result
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        self.check_lock(&world, Lock::Exclusive);
        let gone = world.operation("truncate", &self.path).map_err(|(error, _)| error)?;
        world.change(self.id, Change::Truncate(len));
        done(gone)
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.disk.world();
        match world.operation("sync", &self.path) {
            Ok(gone) => done(gone)?,
            Err((error, _)) => {
                let file = &mut world.files[self.id];
                file.dropped.extend(file.changes.iter().flat_map(Change::pages));
                return Err(error);
            }
        }
        world.files[self.id].synced();
        Ok(())
    }
}

impl World {
    fn status(&self, id: usize) -> Status {
        let identity = Identity { device: 1, inode: id as u64 };
        Status { len: self.files[id].live.len() as u64, identity }
    }

    fn change(&mut self, id: usize, change: Change) {
        let file = &mut self.files[id];
        change.apply(&mut file.live);
        if let Change::Truncate(len) = change {
            file.dropped.retain(|page| *page * PAGE < len as usize);
        }
        change.pages().for_each(|page| _ = file.dropped.remove(&page));
        file.changes.push(change);
    }
}
