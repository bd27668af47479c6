//! The promises of [`FileStore`].
//!
//! ```
//! use chat_memory::{InMemoryFileStore, conformance::file_store::Suite};
//!
//! let report = Suite::new(InMemoryFileStore::new).run();
//! assert!(report.is_passed(), "{report}");
//! ```

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use super::{Outcome, Report, Violation, holds};
use crate::error::Error;
use crate::file_memory::{Description, FileEntry, FileName, FileStore, FolderName, Precondition, Quota, Save, Version};

type Fresh<'a> = Box<dyn Fn() -> Box<dyn FileStore + 'a> + 'a>;
type Restart<'a> = Box<dyn Fn() -> (Box<dyn FileStore + 'a>, Reopen<'a>) + 'a>;

/// Opens the same store again.
pub type Reopen<'a> = Box<dyn Fn() -> Box<dyn FileStore + 'a> + 'a>;

/// All promises, for one store.
pub struct Suite<'a> {
    fresh: Fresh<'a>,
    restart: Option<Restart<'a>>,
}

impl<'a> Suite<'a> {
    /// A suite for a store of which `fresh` makes one that is empty, and shares nothing with those made before.
    pub fn new<S: FileStore + 'a>(fresh: impl Fn() -> S + 'a) -> Self {
        Self { fresh: Box::new(move || Box::new(fresh())), restart: None }
    }

    /// Also checks restarts: `restart` makes a fresh store, and a function that opens the same one again after it is gone.
    #[must_use]
    pub fn restart(mut self, restart: impl Fn() -> (Box<dyn FileStore + 'a>, Reopen<'a>) + 'a) -> Self {
        self.restart = Some(Box::new(restart));
        self
    }

    /// Checks everything.
    pub fn run(&self) -> Report {
        let mut report = Report { results: Vec::new() };
        for (promise, check) in PROMISES {
            report.add(promise, check(&*(self.fresh)()));
        }
        if let Some(restart) = &self.restart {
            let (store, reopen) = restart();
            report.add("everything is there after a restart", a_restart_loses_nothing(store, &*reopen));
        }
        report
    }
}

impl fmt::Debug for Suite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite").field("restart", &self.restart.is_some()).finish_non_exhaustive()
    }
}

/// A promise, and the function that checks it.
type Promise = (&'static str, fn(&dyn FileStore) -> Outcome);

const PROMISES: &[Promise] = &[
    ("any bytes come back", any_bytes_come_back),
    ("a description belongs to its file", a_description_belongs_to_its_file),
    ("a precondition is kept", a_precondition_is_kept),
    ("two spellings of a name are one file", two_spellings_are_one_file),
    ("deleting removes that file alone", deleting_removes_that_file_alone),
    ("renaming moves content and description", renaming_moves_content_and_description),
    ("a list is in alphabetical order", a_list_is_in_alphabetical_order),
    ("the files written last are known", the_files_written_last_are_known),
    ("folders do not know of each other", folders_do_not_know_of_each_other),
    ("a quota is kept", a_quota_is_kept),
    ("a chosen folder is asked for once", a_chosen_folder_is_asked_for_once),
    ("threads lose nothing", threads_lose_nothing),
];

fn folder() -> FolderName {
    FolderName::of_session("session")
}

fn save(store: &dyn FileStore, name: &str, content: &[u8], description: Description<'_>) -> Result<Version, Violation> {
    let name = FileName::new(name)?;
    Ok(store.save(&folder(), &Save::new(&name, content).with_description(description))?)
}

fn content(store: &dyn FileStore, name: &str) -> Result<Option<Vec<u8>>, Violation> {
    Ok(store.read(&folder(), &FileName::new(name)?, u64::MAX)?.map(|file| file.content))
}

/// Names and descriptions.
fn listed(store: &dyn FileStore) -> Result<Vec<(String, Option<String>)>, Violation> {
    let entry = |entry: FileEntry| (entry.name.to_string(), entry.description.map(|text| text.to_string()));
    Ok(store.list(&folder())?.into_iter().map(entry).collect())
}

fn is_listed(store: &dyn FileStore, expected: &[(&str, Option<&str>)], what: &str) -> Outcome {
    let found = listed(store)?;
    let found: Vec<(&str, Option<&str>)> = found.iter().map(|(name, text)| (name.as_str(), text.as_deref())).collect();
    holds(found == expected, || format!("{what}: the list is {found:?}, not {expected:?}"))
}

/// None, all values, a megabyte; and their versions.
pub fn any_bytes_come_back(store: &dyn FileStore) -> Outcome {
    let every: Vec<u8> = (0..=255).collect();
    for bytes in [&b""[..], b"\r\n", &every, &every.repeat(4096)] {
        let version = save(store, "a.bin", bytes, Description::Remove)?;
        let read = store.read(&folder(), &FileName::new("a.bin")?, bytes.len() as u64)?;
        let read = read.ok_or_else(|| Violation("a saved file is not found".into()))?;
        holds(read.content == bytes, || format!("{} bytes do not come back", bytes.len()))?;
        holds(read.version == version, || "the version read is not the one saved".into())?;
    }
    let limited = store.read(&folder(), &FileName::new("a.bin")?, 1000);
    holds(matches!(limited, Err(Error::TooLarge { .. })), || "more bytes were read than the limit allows".into())?;
    holds(content(store, "b.bin")?.is_none(), || "a file that was never saved is found".into())
}

/// Kept, replaced and removed with saves, for names of one stem too.
pub fn a_description_belongs_to_its_file(store: &dyn FileStore) -> Outcome {
    for name in ["n.md", "n.txt", "n", "n.v2.md"] {
        save(store, name, b"1", Description::Set(name))?;
    }
    save(store, "n.md", b"2", Description::Keep)?;
    save(store, "n.txt", b"2", Description::Remove)?;
    save(store, "n", b"2", Description::Set("other\n# text"))?;
    save(store, "n.v2.md", b"2", Description::Set(" \n"))?;
    save(store, "new", b"2", Description::Keep)?;
    let expected =
        [("n", Some("other\n# text")), ("n.md", Some("n.md")), ("n.txt", None), ("n.v2.md", None), ("new", None)];
    is_listed(store, &expected, "after saves")
}

/// Nothing is changed where it does not hold.
pub fn a_precondition_is_kept(store: &dyn FileStore) -> Outcome {
    let name = FileName::new("a.md")?;
    let save = |content: &[u8], precondition| {
        store.save(&folder(), &Save::new(&name, content).with_precondition(precondition))
    };
    let is_conflict = |saved: &Result<Version, Error>| matches!(saved, Err(Error::Conflict { .. }));
    let none = save(b"0", Precondition::Unchanged(Version::of(b"0")));
    holds(is_conflict(&none), || "a file that is not there counts as unchanged".into())?;
    let first = save(b"1", Precondition::Absent)?;
    holds(is_conflict(&save(b"2", Precondition::Absent)), || "a file that is there counts as absent".into())?;
    let second = save(b"2", Precondition::Unchanged(first))?;
    holds(is_conflict(&save(b"3", Precondition::Unchanged(first))), || "a change was not noticed".into())?;
    holds(content(store, "a.md")?.as_deref() == Some(b"2"), || "a refused save changed the file".into())?;
    save(b"3", Precondition::Unchanged(second))?;
    save(b"4", Precondition::None)?;
    Ok(())
}

/// The file keeps the name it has.
pub fn two_spellings_are_one_file(store: &dyn FileStore) -> Outcome {
    save(store, "Caf\u{e9}.md", b"1", Description::Set("first"))?;
    save(store, "CAFE\u{301}.MD", b"2", Description::Keep)?;
    is_listed(store, &[("Caf\u{e9}.md", Some("first"))], "two spellings")?;
    holds(content(store, "cafe\u{301}.md")?.as_deref() == Some(b"2"), || "another spelling reads another file".into())?;
    let other = store.delete(&folder(), &FileName::new("caf\u{e9}.MD")?)?;
    holds(other && listed(store)?.is_empty(), || "another spelling does not delete the file".into())
}

/// With its description; a file that is not there is no error.
pub fn deleting_removes_that_file_alone(store: &dyn FileStore) -> Outcome {
    save(store, "a.md", b"a", Description::Set("a's"))?;
    save(store, "b.md", b"b", Description::Set("b's"))?;
    let name = FileName::new("a.md")?;
    holds(store.delete(&folder(), &name)?, || "a file that is there is not deleted".into())?;
    holds(!store.delete(&folder(), &name)?, || "a file that is gone is deleted again".into())?;
    save(store, "a.md", b"a", Description::Keep)?;
    is_listed(store, &[("a.md", None), ("b.md", Some("b's"))], "after deleting")
}

/// Onto a free name; neither onto another file nor onto itself.
pub fn renaming_moves_content_and_description(store: &dyn FileStore) -> Outcome {
    save(store, "a.md", b"a", Description::Set("a's"))?;
    save(store, "b.md", b"b", Description::Remove)?;
    let rename = |from: &str, to: &str| store.rename(&folder(), &FileName::new(from)?, &FileName::new(to)?);
    for to in ["b.md", "B.MD", "a.md", "A.md"] {
        let renamed = rename("a.md", to);
        holds(matches!(renamed, Err(Error::Conflict { .. })), || format!("a.md to {to} is {renamed:?}"))?;
    }
    holds(!rename("x", "y")?, || "a file that is not there has a new name".into())?;
    holds(rename("a.md", "c.txt")?, || "a file that is there has no new name".into())?;
    is_listed(store, &[("b.md", None), ("c.txt", Some("a's"))], "after renaming")?;
    holds(content(store, "c.txt")?.as_deref() == Some(b"a"), || "the content did not come along".into())
}

/// Without regard to case, and with sizes.
pub fn a_list_is_in_alphabetical_order(store: &dyn FileStore) -> Outcome {
    for name in ["b", "C", "a.md", "\u{e9}", "B2"] {
        save(store, name, name.as_bytes(), Description::Remove)?;
    }
    let files = store.list(&folder())?;
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    holds(names == ["a.md", "b", "B2", "C", "\u{e9}"], || format!("the order is {names:?}"))?;
    holds(files.iter().all(|file| file.size == file.name.as_str().len() as u64), || "a size is wrong".into())
}

/// In alphabetical order, with the number of all.
pub fn the_files_written_last_are_known(store: &dyn FileStore) -> Outcome {
    holds(store.recent(&folder(), 5)? == (Vec::new(), 0), || "an unknown folder has files".into())?;
    for name in ["d", "c", "b", "a", "c"] {
        save(store, name, b"x", Description::Set(name))?;
        // A store may know the time of a write no better than this.
        std::thread::sleep(Duration::from_millis(20));
    }
    for (limit, expected) in [(0, &[][..]), (2, &["a", "c"]), (3, &["a", "b", "c"]), (9, &["a", "b", "c", "d"])] {
        let (files, count) = store.recent(&folder(), limit)?;
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        holds(names == expected && count == 4, || format!("the last {limit} of {count} are {names:?}"))?;
        let described = files.iter().all(|file| file.description.as_deref() == Some(file.name.as_str()));
        holds(described, || "a description is not its file's".into())?;
    }
    Ok(())
}

/// Clearing one leaves the others.
pub fn folders_do_not_know_of_each_other(store: &dyn FileStore) -> Outcome {
    let folders = ["one", "One", "two"].map(FolderName::of_session);
    let name = FileName::new("a.md")?;
    for folder in &folders {
        store.save(folder, &Save::new(&name, folder.as_str().as_bytes()))?;
    }
    let [first, others @ ..] = &folders;
    store.clear(first)?;
    store.clear(&FolderName::of_session("unknown"))?;
    holds(store.list(first)?.is_empty(), || "a cleared folder has files".into())?;
    for folder in others {
        let read = store.read(folder, &name, u64::MAX)?.map(|file| file.content);
        holds(read.as_deref() == Some(folder.as_str().as_bytes()), || "a folder has another's file".into())?;
    }
    store.save(first, &Save::new(&name, b"again"))?;
    holds(store.list(first)?.len() == 1, || "a cleared folder cannot be used again".into())
}

/// Each of the three; what is there already does not count twice.
pub fn a_quota_is_kept(store: &dyn FileStore) -> Outcome {
    let quota = Quota { file_bytes: Some(10), files: Some(2), session_bytes: Some(15) };
    let save = |name: &str, size: usize| {
        let (name, content) = (FileName::new(name)?, vec![b'x'; size]);
        store.save(&folder(), &Save::new(&name, &content).with_quota(quota))
    };
    let refused = |saved: Result<Version, Error>| matches!(saved, Err(Error::TooLarge { .. }));
    save("a", 10)?;
    holds(refused(save("a", 11)), || "a file is larger than allowed".into())?;
    holds(refused(save("b", 6)), || "all files are larger than allowed".into())?;
    save("b", 5)?;
    holds(refused(save("c", 0)), || "there are more files than allowed".into())?;
    save("A", 10)?;
    holds(listed(store)?.len() == 2, || "a refused save left a file".into())
}

/// Remembered, also when it is cleared; a folder that another session has is refused.
pub fn a_chosen_folder_is_asked_for_once(store: &dyn FileStore) -> Outcome {
    let asked = Cell::new(0);
    let choose = || {
        asked.set(asked.get() + 1);
        FolderName::new(&format!("folder {}", asked.get()))
    };
    let first = store.folder("one", &choose)?;
    holds(store.folder("one", &choose)? == first && asked.get() == 1, || "it is asked again".into())?;
    store.clear(&first)?;
    holds(store.folder("one", &choose)? == first, || "clearing forgets the folder".into())?;
    let same = store.folder("two", &|| Ok(first.clone()));
    holds(matches!(same, Err(Error::Conflict { .. })), || "two sessions have one folder".into())?;
    let alike = store.folder("two", &|| FolderName::new("FOLDER 1"));
    holds(matches!(alike, Err(Error::Conflict { .. })), || "two folders differ in case alone".into())?;
    let failed = store.folder("three", &|| FolderName::new("../up"));
    holds(matches!(failed, Err(Error::InvalidFolderName { .. })), || "a wrong folder is taken".into())?;
    holds(store.folder("two", &choose)? != first, || "a refused session has no folder".into())
}

/// Threads that count together, each from what it read.
pub fn threads_lose_nothing(store: &dyn FileStore) -> Outcome {
    const THREADS: u64 = 4;
    const EACH: u64 = 10;
    save(store, "count", b"0", Description::Set("a count"))?;
    let count_up = || -> Outcome {
        let name = FileName::new("count")?;
        for _ in 0..EACH {
            loop {
                let file = store.read(&folder(), &name, u64::MAX)?;
                let file = file.ok_or_else(|| Violation("the file is gone for a moment".into()))?;
                let count: u64 = String::from_utf8_lossy(&file.content).parse().unwrap_or_default();
                let content = (count + 1).to_string();
                let save = Save::new(&name, content.as_bytes()).with_description(Description::Keep);
                match store.save(&folder(), &save.with_precondition(Precondition::Unchanged(file.version))) {
                    Err(Error::Conflict { .. }) => {}
                    saved => break saved.map(|_| ())?,
                }
            }
        }
        Ok(())
    };
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(count_up)).collect();
        let panicked = |_| Err(Violation("a thread panicked".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    outcomes.into_iter().collect::<Outcome>()?;
    let count = content(store, "count")?.unwrap_or_default();
    let expected = (THREADS * EACH).to_string();
    holds(count == expected.as_bytes(), || format!("{} instead of {expected}", String::from_utf8_lossy(&count)))?;
    is_listed(store, &[("count", Some("a count"))], "after counting")
}

fn a_restart_loses_nothing<'a>(
    store: Box<dyn FileStore + 'a>,
    reopen: &dyn Fn() -> Box<dyn FileStore + 'a>,
) -> Outcome {
    let chosen = store.folder("chosen", &|| FolderName::new("a folder"))?;
    save(&*store, "a.md", b"a", Description::Set("a's"))?;
    save(&*store, "b.md", b"b", Description::Set("b's"))?;
    store.delete(&folder(), &FileName::new("b.md")?)?;
    let (list, recent) = (store.list(&folder())?, store.recent(&folder(), 50)?);
    drop(store);
    let store = reopen();
    holds(store.list(&folder())? == list, || "the list is another".into())?;
    holds(store.recent(&folder(), 50)? == recent, || "the files written last are others".into())?;
    holds(content(&*store, "a.md")?.as_deref() == Some(b"a"), || "a content is another".into())?;
    let again = store.folder("chosen", &|| FolderName::new("another folder"))?;
    holds(again == chosen, || "a chosen folder is forgotten".into())
}
