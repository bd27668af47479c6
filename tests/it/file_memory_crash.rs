//! A process killed, the power cut, or the disk failing, before any change that a call makes on disk, also while an earlier
//! crash is made good: the files are as before the call or as behind it, whole, and the index is equal to them.
//!
//! Each change is noted as it is made, in a model that knows what was synced. From it every state is built that the disk may be
//! in after a crash at that point, and the library is let loose on it.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use chat_memory::{Change, FileMemory, FolderName, LocalFileStore};
use serde_json::json;
use tempfile::TempDir;

use crate::file_memory::{S, call, entries, local};
use crate::support::{child_part, full_mode, start_child};

const STATE: &str = ".notebook";
const ROOT: usize = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Folder(usize),
    File(usize),
}

type Names = BTreeMap<String, Node>;

#[derive(Debug, Clone)]
enum NameChange {
    Link(String, Node),
    Unlink(String),
    Move(String, String, Node),
}

/// What names and files hold, and what of it would outlive a power cut.
#[derive(Debug, Clone, Default)]
struct Model {
    names: Vec<Names>,
    durable_names: Vec<Names>,
    /// Changes of names that were not synced, in order, by folder.
    pending: Vec<Vec<NameChange>>,
    files: Vec<Content>,
}

#[derive(Debug, Clone, Default)]
struct Content {
    now: Vec<u8>,
    durable: Option<Vec<u8>>,
}

impl Model {
    /// What is on disk now, all of it durable.
    fn of(root: &Path) -> Self {
        let mut model = Self::default();
        model.add_folder();
        for entry in fs::read_dir(root).unwrap() {
            let path = entry.unwrap().path();
            let folder = model.add_folder();
            model.names[ROOT].insert(file_name(&path), Node::Folder(folder));
            for entry in fs::read_dir(&path).unwrap() {
                let path = entry.unwrap().path();
                let bytes = fs::read(&path).unwrap();
                model.files.push(Content { durable: Some(bytes.clone()), now: bytes });
                model.names[folder].insert(file_name(&path), Node::File(model.files.len() - 1));
            }
        }
        model.durable_names = model.names.clone();
        model
    }

    fn add_folder(&mut self) -> usize {
        self.names.push(Names::new());
        self.durable_names.push(Names::new());
        self.pending.push(Vec::new());
        self.names.len() - 1
    }

    fn change_name(&mut self, folder: usize, change: NameChange) {
        apply(&mut self.names[folder], &change);
        self.pending[folder].push(change);
    }

    fn new_file(&mut self, folder: usize, name: &str, bytes: &[u8]) {
        self.files.push(Content { now: bytes.to_vec(), durable: None });
        self.change_name(folder, NameChange::Link(name.into(), Node::File(self.files.len() - 1)));
    }

    fn folder(&mut self, name: &str) -> usize {
        let folder = match self.names[ROOT].get(name) {
            _ if name.is_empty() => return ROOT,
            Some(Node::Folder(folder)) => *folder,
            other => panic!("{name}: {other:?}"),
        };
        // It is there before anything else in the folder.
        if !self.names[folder].contains_key(STATE) {
            self.new_file(folder, STATE, b"");
        }
        folder
    }

    fn file(&mut self, folder: usize, name: &str) -> &mut Content {
        match self.names[folder].get(name) {
            Some(Node::File(file)) => &mut self.files[*file],
            other => panic!("{name}: {other:?}"),
        }
    }

    fn apply(&mut self, folder: &str, change: Change<'_>) {
        let folder = self.folder(folder);
        match change {
            Change::CreateFolder { name } => {
                let created = self.add_folder();
                self.change_name(folder, NameChange::Link(name.into(), Node::Folder(created)));
            }
            Change::Write { file: STATE, bytes } => overwrite(&mut self.file(folder, STATE).now, bytes),
            Change::Write { file, bytes } => self.new_file(folder, file, bytes),
            Change::Truncate { file, len } => self.file(folder, file).now.resize(len as usize, 0),
            Change::SyncFile { file } => {
                let content = self.file(folder, file);
                content.durable = Some(content.now.clone());
            }
            Change::Rename { from, to } => {
                let node = self.names[folder][from];
                self.change_name(folder, NameChange::Move(from.into(), to.into(), node));
            }
            Change::Remove { file } | Change::RemoveFolder { name: file } => {
                self.change_name(folder, NameChange::Unlink(file.into()));
            }
            Change::SyncFolder => {
                self.durable_names[folder] = self.names[folder].clone();
                self.pending[folder].clear();
            }
        }
    }

    /// The state in which a killed process leaves the disk, with half of what it was writing.
    fn killed(&self, cut_off: Option<&(String, OwnedChange)>) -> Self {
        let mut model = self.clone();
        if let Some((folder, change)) = cut_off
            && let Change::Write { file, bytes } = change.borrowed()
        {
            model.apply(folder, Change::Write { file, bytes: &bytes[..bytes.len() / 2] });
        }
        model
    }

    /// States of the disk after a power cut. Any of the changes of names may have come through or not.
    fn power_cuts(&self) -> Vec<Self> {
        let count: usize = self.pending.iter().map(Vec::len).sum();
        let all = (1_u64 << count.min(60)) - 1;
        // None, all, the first so many, and others; the full mode tries every one.
        let mut subsets: Vec<u64> = (0..=count).map(|first| (1 << first) - 1).collect();
        let others: Vec<u64> = if full_mode() && count <= 10 {
            (0..=all).collect()
        } else {
            (1..6).map(|seed: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7 & all).collect()
        };
        subsets.extend(others);
        subsets.sort_unstable();
        subsets.dedup();
        // And each content that was not synced may have become anything.
        let unsynced = self.files.iter().filter(|file| file.durable.as_ref() != Some(&file.now)).count();
        let fates = 3_usize.pow(unsynced.min(5) as u32);
        subsets.iter().flat_map(|subset| (0..fates).map(|fate| self.after_power_cut(*subset, fate))).collect()
    }

    fn after_power_cut(&self, subset: u64, mut fate: usize) -> Self {
        let mut model = self.clone();
        let mut number = 0;
        for folder in 0..model.names.len() {
            model.names[folder] = model.durable_names[folder].clone();
            for change in std::mem::take(&mut model.pending[folder]) {
                if subset >> number & 1 == 1 {
                    apply(&mut model.names[folder], &change);
                }
                number += 1;
            }
        }
        for file in model.files.iter_mut().filter(|file| file.durable.as_ref() != Some(&file.now)) {
            let durable = file.durable.clone().unwrap_or_default();
            match fate % 3 {
                0 => {}
                1 => file.now = durable,
                _ => {
                    let now = std::mem::replace(&mut file.now, durable);
                    overwrite(&mut file.now, &now[..now.len() / 2]);
                }
            }
            fate /= 3;
            file.durable = Some(file.now.clone());
        }
        model.durable_names = model.names.clone();
        model
    }

    /// Makes it so on a real file system.
    fn build(&self, root: &Path) {
        fs::create_dir(root).unwrap();
        for (name, node) in &self.names[ROOT] {
            let Node::Folder(folder) = node else { panic!("{name} is no folder") };
            fs::create_dir(root.join(name)).unwrap();
            for (file, node) in &self.names[*folder] {
                let Node::File(content) = node else { panic!("{file} is no file") };
                fs::write(root.join(name).join(file), &self.files[*content].now).unwrap();
            }
        }
    }

    /// All paths with contents; a folder has none.
    fn tree(&self) -> Tree {
        let mut tree = BTreeMap::new();
        for (name, node) in &self.names[ROOT] {
            let Node::Folder(folder) = node else { continue };
            tree.insert(name.into(), Vec::new());
            for (file, node) in &self.names[*folder] {
                let Node::File(content) = node else { continue };
                tree.insert(Path::new(name).join(file), self.files[*content].now.clone());
            }
        }
        tree
    }
}

fn apply(names: &mut Names, change: &NameChange) {
    match change {
        NameChange::Link(name, node) => _ = names.insert(name.clone(), *node),
        NameChange::Unlink(name) => _ = names.remove(name),
        NameChange::Move(from, to, node) => {
            names.remove(from);
            names.insert(to.clone(), *node);
        }
    }
}

fn overwrite(content: &mut Vec<u8>, bytes: &[u8]) {
    content.resize(content.len().max(bytes.len()), 0);
    content[..bytes.len()].copy_from_slice(bytes);
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[derive(Debug, Clone)]
enum OwnedChange {
    Write(String, Vec<u8>),
    Truncate(String, u64),
    SyncFile(String),
    CreateFolder(String),
    Rename(String, String),
    Remove(String),
    RemoveFolder(String),
    SyncFolder,
}

impl OwnedChange {
    fn of(change: Change<'_>) -> Self {
        match change {
            Change::Write { file, bytes } => Self::Write(file.into(), bytes.into()),
            Change::Truncate { file, len } => Self::Truncate(file.into(), len),
            Change::SyncFile { file } => Self::SyncFile(file.into()),
            Change::CreateFolder { name } => Self::CreateFolder(name.into()),
            Change::Rename { from, to } => Self::Rename(from.into(), to.into()),
            Change::Remove { file } => Self::Remove(file.into()),
            Change::RemoveFolder { name } => Self::RemoveFolder(name.into()),
            Change::SyncFolder => Self::SyncFolder,
        }
    }

    fn borrowed(&self) -> Change<'_> {
        match self {
            Self::Write(file, bytes) => Change::Write { file, bytes },
            Self::Truncate(file, len) => Change::Truncate { file, len: *len },
            Self::SyncFile(file) => Change::SyncFile { file },
            Self::CreateFolder(name) => Change::CreateFolder { name },
            Self::Rename(from, to) => Change::Rename { from, to },
            Self::Remove(file) => Change::Remove { file },
            Self::RemoveFolder(name) => Change::RemoveFolder { name },
            Self::SyncFolder => Change::SyncFolder,
        }
    }
}

/// Runs `work` on a store and gives what it changed, in order.
fn changes_of(root: &Path, work: impl Fn(&FileMemory)) -> Vec<(String, OwnedChange)> {
    let noted: Arc<Mutex<Vec<(String, OwnedChange)>>> = Arc::default();
    let note = Arc::clone(&noted);
    let store = LocalFileStore::open_watched(
        root,
        Some(Arc::new(move |folder, change| {
            note.lock().unwrap().push((folder.to_owned(), OwnedChange::of(change)));
            Ok(())
        })),
    );
    work(&FileMemory::new(store.unwrap()));
    let noted = noted.lock().unwrap();
    noted.clone()
}

/// The files with their contents and descriptions.
type Files = BTreeMap<String, (Vec<u8>, Option<String>)>;

fn files_of(files: &FileMemory) -> Files {
    let described = |entry: &chat_memory::FileEntry| entry.description.as_deref().map(str::to_owned);
    let list = files.list(S).unwrap();
    let content = |name: &str| files.read(S, name).unwrap().unwrap();
    list.iter().map(|entry| (entry.name.to_string(), (content(entry.name.as_str()), described(entry)))).collect()
}

/// What is there is one of these, whole, with its index; and the notebook works.
fn check(root: &Path, expected: &[&Files], what: &str) {
    let files = local(root);
    let found = files_of(&files);
    assert!(expected.contains(&&found), "{what}: {found:?} is none of {expected:?}");
    let index: Vec<String> = found
        .iter()
        .map(|(name, (_, description))| match description {
            Some(description) => format!("- **{name}**: {description}"),
            None => format!("- **{name}**"),
        })
        .collect();
    assert_eq!(entries(&files), index, "{what}");
    let folder = root.join(FolderName::of_session(S).as_str());
    if folder.exists() {
        let on_disk = fs::read_to_string(folder.join("memories.md")).unwrap_or_default();
        let on_disk: Vec<&str> = on_disk.lines().filter(|line| line.starts_with("- ")).collect();
        assert_eq!(on_disk, index, "{what}");
        let hidden = fs::read_dir(&folder).unwrap().map(|entry| file_name(&entry.unwrap().path()));
        let hidden: Vec<String> = hidden.filter(|name| name.starts_with('.')).collect();
        assert_eq!(hidden, [STATE], "{what}");
        assert_eq!(fs::metadata(folder.join(STATE)).unwrap().len(), 28, "{what}");
    }
    files.save(S, "z.md", b"works", Some("again")).unwrap();
    assert_eq!(local(root).list(S).unwrap().len(), found.len() + 1, "{what}");
}

/// All paths with their contents.
type Tree = BTreeMap<PathBuf, Vec<u8>>;

struct Bench {
    place: TempDir,
    count: usize,
    /// What was looked at, and how many outcomes were fine: much of what may happen comes to the same.
    checked: HashSet<(Tree, usize)>,
}

impl Bench {
    /// In memory where that can be, for nothing here depends on a real sync.
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self { place: place.unwrap(), count: 0, checked: HashSet::new() }
    }

    /// A new root in the state of the model.
    fn build(&mut self, model: &Model) -> PathBuf {
        self.count += 1;
        let root = self.place.path().join(self.count.to_string());
        model.build(&root);
        root
    }

    fn check(&mut self, model: &Model, expected: &[&Files], what: &str) {
        if !self.checked.insert((model.tree(), expected.len())) {
            return;
        }
        let root = self.build(model);
        check(&root, expected, what);
        fs::remove_dir_all(root).unwrap();
    }
}

/// Crashes one call at every point, in every way.
fn crash_everywhere(name: &str, before: impl Fn(&FileMemory), work: impl Fn(&FileMemory)) {
    let mut bench = Bench::new();
    let root = bench.place.path().join("root");
    before(&local(&root));
    let model = Model::of(&root);
    let old = files_of(&local(&root));
    let changes = changes_of(&root, &work);
    let new = files_of(&local(&root));
    assert!(changes.len() > 2 && old != new, "{name}");

    let mut now = model.clone();
    for at in 0..=changes.len() {
        let is_over = at == changes.len();
        let expected: &[&Files] = if is_over { &[&new] } else { &[&old, &new] };
        let what = format!("{name}: before {at} of {}: {:?}", changes.len(), changes.get(at));
        for state in now.power_cuts() {
            bench.check(&state, expected, &format!("{what}: power cut"));
        }
        // Killed, then found by another process, which is cut off too: by a kill, or with the power.
        let killed = now.killed(changes.get(at));
        bench.check(&killed, expected, &format!("{what}: killed"));
        let again = bench.build(&killed);
        let repairs = changes_of(&again, |files| _ = files.list(S).unwrap());
        fs::remove_dir_all(again).unwrap();
        let mut repaired = killed;
        for (step, (folder, change)) in repairs.iter().enumerate() {
            let what = format!("{what}: killed, before {step} of {}: {change:?}", repairs.len());
            bench.check(&repaired, expected, &what);
            for state in repaired.power_cuts() {
                bench.check(&state, expected, &format!("{what}: power cut"));
            }
            repaired.apply(folder, change.borrowed());
        }
        if let Some((folder, change)) = changes.get(at) {
            now.apply(folder, change.borrowed());
        }
    }
    // The model is what really happened.
    assert_eq!(now.tree(), Model::of(&root).tree(), "{name}");

    // The disk fails before any change, once, or from then on until the process is over.
    for (at, (_, change)) in changes.iter().enumerate() {
        for is_once in [true, false] {
            let root = bench.build(&model);
            let count = Mutex::new(0);
            let store = LocalFileStore::open_watched(
                &root,
                Some(Arc::new(move |_, _| {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    let fails = if is_once { *count == at + 1 } else { *count > at };
                    if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
                })),
            );
            let files = FileMemory::new(store.unwrap());
            work(&files);
            if is_once {
                let found = files_of(&files);
                assert!([&old, &new].contains(&&found), "{name}: {at}: {found:?}");
            }
            drop(files);
            check(&root, &[&old, &new], &format!("{name}: the disk fails before {change:?}"));
            fs::remove_dir_all(root).unwrap();
        }
    }
}

fn some_files(files: &FileMemory) {
    files.save(S, "a.md", b"old a", Some("old a's")).unwrap();
    files.save(S, "b.txt", b"b", None).unwrap();
}

#[test]
fn the_first_save_of_a_session() {
    crash_everywhere("first save", |_| {}, |files| _ = files.save(S, "a.md", b"new", Some("new's")));
}

#[test]
fn a_save_of_a_new_file() {
    crash_everywhere("new file", some_files, |files| _ = files.save(S, "c.md", b"new c", Some("c's")));
}

#[test]
fn a_save_over_a_file_with_another_description() {
    crash_everywhere("overwrite", some_files, |files| _ = files.save(S, "A.md", b"new a, longer", Some("new a's")));
}

#[test]
fn a_save_that_takes_the_description_away() {
    crash_everywhere("no description", some_files, |files| _ = files.save(S, "a.md", b"", None));
}

#[test]
fn a_delete() {
    crash_everywhere("delete", some_files, |files| _ = files.delete(S, "a.md"));
}

#[test]
fn a_rename() {
    let rename = json!({ "command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/c.txt" });
    crash_everywhere("rename", some_files, |files| _ = files.call(S, "memory", &rename));
}

#[test]
fn clearing_a_session() {
    crash_everywhere("clear", some_files, |files| _ = files.clear(S));
}

/// What is left of cleared sessions goes when the store is opened.
#[test]
fn a_cleared_folder_that_a_crash_left_is_swept() {
    let place = Bench::new();
    let root = place.place.path().join("root");
    some_files(&local(&root));
    let stop_at_removal: chat_memory::Watch = Arc::new(|_, change| match change {
        Change::RemoveFolder { .. } => Err(io::ErrorKind::Other.into()),
        _ => Ok(()),
    });
    let files = FileMemory::new(LocalFileStore::open_watched(&root, Some(stop_at_removal)).unwrap());
    assert!(files.clear(S).is_err());
    assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    local(&root);
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
}

/// With a real process and a real kill, at whatever moment it comes.
#[test]
fn a_killed_process_leaves_the_old_or_the_new() {
    let test = "file_memory_crash::a_killed_process_leaves_the_old_or_the_new";
    if let Some((_, root)) = child_part() {
        let files = local(&root);
        for number in 0.. {
            let text = format!("{number} ").repeat(20_000);
            match number % 3 {
                0 => _ = files.save(S, "a.md", text.as_bytes(), Some(&number.to_string())).unwrap(),
                1 => _ = files.save(S, "b.md", text.as_bytes(), None).unwrap(),
                _ => _ = files.delete(S, "b.md").unwrap(),
            }
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let rounds = if full_mode() { 200 } else { 15 };
    for round in 0..rounds {
        let mut child = start_child(test, "save", directory.path());
        std::thread::sleep(std::time::Duration::from_millis(40 + 13 * (round % 16)));
        child.kill().unwrap();
        child.wait().unwrap();
        let files = local(directory.path());
        for (name, (content, description)) in files_of(&files) {
            let content = String::from_utf8(content).unwrap();
            let number = content.split(' ').next().unwrap();
            assert_eq!(content, format!("{number} ").repeat(20_000), "{name} is mixed");
            assert_eq!(description.as_deref(), (name == "a.md").then_some(number), "{name}");
        }
        let index = call(&files, "FileMemory_ListFiles", json!({}));
        assert_eq!(entries(&files).len(), files.list(S).unwrap().len(), "{}", index.text);
    }
    assert!(!local(directory.path()).list(S).unwrap().is_empty());
}
