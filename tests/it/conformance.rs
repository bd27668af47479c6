//! Both stores keep every promise, bare and behind a pointer, at both durability levels; a store that does not is found out.

#![cfg(feature = "conformance")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use chat_memory::conformance::{Report, Suite};
use chat_memory::{ChatMemory, Durability, FileChatMemory, InMemoryChatMemory, Message, Result};
use tempfile::{TempDir, tempdir};

fn passed(report: Report, promises: usize) {
    assert!(report.is_passed(), "{report}");
    assert_eq!(report.results.len(), promises, "{report}");
}

#[test]
fn the_in_memory_store_keeps_every_promise() {
    let windowed = |count| InMemoryChatMemory::builder().max_messages(count).build().unwrap();
    passed(Suite::new(InMemoryChatMemory::new).windowed(windowed).history(InMemoryChatMemory::new).run(), 18);
    let behind_a_pointer = || -> Arc<dyn ChatMemory> { Arc::new(InMemoryChatMemory::new()) };
    passed(Suite::new(behind_a_pointer).run(), 12);
}

#[test]
fn the_file_store_keeps_every_promise_at_both_durabilities() {
    for durability in [Durability::Disk, Durability::Process] {
        let places: Mutex<Vec<TempDir>> = Mutex::default();
        let place = || {
            let place = tempdir().unwrap();
            let path = place.path().join("store");
            places.lock().unwrap().push(place);
            path
        };
        let builder = |path: &Path| FileChatMemory::builder(path).durability(durability);
        let open = |path: &Path| builder(path).open().unwrap();
        let restart = || -> (Box<dyn ChatMemory>, chat_memory::conformance::Reopen<'_>) {
            let path = place();
            (Box::new(open(&path)), Box::new(move || Box::new(open(&path))))
        };
        let suite = Suite::new(|| open(&place()))
            .windowed(|count| builder(&place()).max_messages(count).open().unwrap())
            .history(|| open(&place()))
            .restart(restart);
        passed(suite.run(), 19);
        let behind_a_pointer = || -> Arc<dyn ChatMemory> { Arc::new(open(&place())) };
        passed(Suite::new(behind_a_pointer).run(), 12);
    }
}

/// A store with the usual mistakes.
#[derive(Default)]
struct Careless(Mutex<HashMap<String, Vec<Message>>>);

impl ChatMemory for Careless {
    fn add(&self, conversation_id: &str, messages: &[Message]) -> Result<()> {
        // Reads, changes and writes without holding the lock; odd characters of the id become one.
        let id: String = conversation_id.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        let mut all = self.0.lock().unwrap().get(&id).cloned().unwrap_or_default();
        std::thread::yield_now();
        all.extend(messages.iter().cloned());
        all.sort_by_key(Message::created_at);
        self.0.lock().unwrap().insert(id, all);
        Ok(())
    }

    fn get(&self, conversation_id: &str) -> Result<Vec<Message>> {
        let id: String = conversation_id.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        Ok(self.0.lock().unwrap().get(&id).cloned().unwrap_or_default())
    }

    fn clear(&self, _: &str) -> Result<()> {
        self.0.lock().unwrap().clear();
        Ok(())
    }
}

#[test]
fn a_careless_store_is_found_out() {
    let report = Suite::new(Careless::default).run();
    let broken: Vec<&str> = report.results.iter().filter(|(_, outcome)| outcome.is_err()).map(|(p, _)| *p).collect();
    for promise in [
        "any id that is not blank works, and is its own",
        "a blank id is refused",
        "the order is that of adding, whatever the times say",
        "clearing removes that conversation alone",
    ] {
        assert!(broken.contains(&promise), "{report}");
    }
    assert!(!report.is_passed());
}

#[cfg(feature = "file-memory")]
mod file_stores {
    use chat_memory::conformance::file_store::{Reopen, Suite};
    use chat_memory::{FileStore, InMemoryFileStore, LocalFileStore};

    use super::*;

    #[test]
    fn both_file_stores_keep_every_promise() {
        passed(Suite::new(InMemoryFileStore::new).run(), 12);
        let places: Mutex<Vec<TempDir>> = Mutex::default();
        let place = || {
            let place = tempdir().unwrap();
            let path = place.path().join("store");
            places.lock().unwrap().push(place);
            path
        };
        let open = |path: &Path| LocalFileStore::open(path).unwrap();
        let restart = || -> (Box<dyn FileStore>, Reopen<'_>) {
            let path = place();
            (Box::new(open(&path)), Box::new(move || Box::new(open(&path))))
        };
        passed(Suite::new(|| open(&place())).restart(restart).run(), 13);
        let behind_a_pointer = || -> Arc<dyn FileStore> { Arc::new(open(&place())) };
        passed(Suite::new(behind_a_pointer).run(), 12);
    }

    /// Two handles on one root, used by turns: what either does, the other knows.
    struct Alternating(Mutex<usize>, [LocalFileStore; 2]);

    impl Alternating {
        fn next(&self) -> &LocalFileStore {
            let mut turn = self.0.lock().unwrap();
            *turn += 1;
            &self.1[*turn % 2]
        }
    }

    impl FileStore for Alternating {
        fn folder(
            &self,
            session_id: &str,
            choose: &dyn Fn() -> Result<chat_memory::FolderName>,
        ) -> Result<chat_memory::FolderName> {
            self.next().folder(session_id, choose)
        }

        fn save(&self, folder: &chat_memory::FolderName, save: &chat_memory::Save<'_>) -> Result<chat_memory::Version> {
            self.next().save(folder, save)
        }

        fn read(
            &self,
            folder: &chat_memory::FolderName,
            name: &chat_memory::FileName,
            max_bytes: u64,
        ) -> Result<Option<chat_memory::StoredFile>> {
            self.next().read(folder, name, max_bytes)
        }

        fn delete(&self, folder: &chat_memory::FolderName, name: &chat_memory::FileName) -> Result<bool> {
            self.next().delete(folder, name)
        }

        fn rename(
            &self,
            folder: &chat_memory::FolderName,
            from: &chat_memory::FileName,
            to: &chat_memory::FileName,
        ) -> Result<bool> {
            self.next().rename(folder, from, to)
        }

        fn list(&self, folder: &chat_memory::FolderName) -> Result<Vec<chat_memory::FileEntry>> {
            self.next().list(folder)
        }

        fn clear(&self, folder: &chat_memory::FolderName) -> Result<()> {
            self.next().clear(folder)
        }
    }

    #[test]
    fn two_handles_used_by_turns_keep_every_promise() {
        let places: Mutex<Vec<TempDir>> = Mutex::default();
        let fresh = || {
            let place = tempdir().unwrap();
            let store = || LocalFileStore::open(place.path().join("store")).unwrap();
            let stores = [store(), store()];
            places.lock().unwrap().push(place);
            Alternating(Mutex::new(0), stores)
        };
        passed(Suite::new(fresh).run(), 12);
    }
}
