//! Something else where a conversation's file should be, and no directory where the store was.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use chat_memory::{
    ChatHistory, ChatMemory, Error, FileChatMemory, HistoryRange, Message, PageRequest, Repair, Result, Window,
};
use tempfile::{TempDir, tempdir};

use super::refused;
use crate::mounts::run;
use crate::support::{flip_a_bit, quick, skip, texts};

/// What may stand in a file's place, each with a file outside that nobody may touch.
const OBSTACLES: [&str; 9] = [
    "pipe",
    "socket",
    "directory",
    "link to a file",
    "link to a directory",
    "link to nothing",
    "link to itself",
    "link to another conversation",
    "device",
];

/// Puts it there; whether that could be done.
fn put(obstacle: &str, path: &Path, outside: &Path, store: &FileChatMemory) -> bool {
    let name = path.to_str().unwrap();
    match obstacle {
        "pipe" => _ = run(&["mkfifo", name]).unwrap(),
        "socket" => _ = std::os::unix::net::UnixListener::bind(path).unwrap(),
        "directory" => fs::create_dir(path).unwrap(),
        "link to a file" => symlink(outside.join("file"), path).unwrap(),
        "link to a directory" => symlink(outside, path).unwrap(),
        "link to nothing" => symlink(outside.join("nothing"), path).unwrap(),
        "link to itself" => symlink(path, path).unwrap(),
        "link to another conversation" => symlink(store.path("other"), path).unwrap(),
        "device" => {
            if let Err(reason) = run(&["mknod", name, "c", "1", "3"]) {
                skip(&reason);
                return false;
            }
        }
        _ => unreachable!(),
    }
    true
}

struct Scene {
    directory: TempDir,
    outside: PathBuf,
    store: FileChatMemory,
}

impl Scene {
    fn new() -> Self {
        let directory = tempdir().unwrap();
        let outside = directory.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "untouched").unwrap();
        let store = quick(&directory.path().join("store"));
        store.add("other", &[Message::user("other")]).unwrap();
        Self { directory, outside, store }
    }

    fn fresh(&self) -> FileChatMemory {
        quick(self.store.directory())
    }

    /// Nothing outside was touched, and the other conversation goes on.
    fn check_others(&self) {
        assert_eq!(fs::read_to_string(self.outside.join("file")).unwrap(), "untouched");
        assert_eq!(fs::read_dir(&self.outside).unwrap().count(), 1);
        assert_eq!(fs::read_dir(self.directory.path()).unwrap().count(), 2);
        let before = self.store.get("other").unwrap().len();
        self.store.add("other", &[Message::user("more")]).unwrap();
        assert_eq!(self.fresh().get("other").unwrap().len(), before + 1);
    }
}

/// Fails where something waits, for a pipe's other end perhaps.
fn within_a_minute(work: impl FnOnce() + Send + 'static) {
    let (done, wait) = channel();
    let worker = thread::spawn(move || {
        work();
        _ = done.send(());
    });
    match wait.recv_timeout(Duration::from_secs(60)) {
        Err(RecvTimeoutError::Timeout) => panic!("it hangs"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => worker.join().unwrap(),
    }
}

#[test]
fn what_is_no_regular_file_is_refused_by_every_call() {
    within_a_minute(|| OBSTACLES.iter().for_each(|obstacle| refused_by_every_call(obstacle)));
}

fn refused_by_every_call(obstacle: &str) {
    let scene = Scene::new();
    let path = scene.store.path("c");
    // One store has had the conversation open, and the other has not.
    scene.store.add("c", &[Message::user("lost")]).unwrap();
    fs::remove_file(&path).unwrap();
    if !put(obstacle, &path, &scene.outside, &scene.store) {
        return;
    }
    for memory in [&scene.store, &scene.fresh()] {
        let calls: [(&str, Result<()>); 8] = [
            ("get", memory.get("c").map(drop)),
            ("add", memory.add("c", &[Message::user("x")])),
            ("clear", memory.clear("c")),
            ("repair", memory.repair("c", Repair::Apply).map(drop)),
            ("look for damage", memory.repair("c", Repair::DryRun).map(drop)),
            ("verify", memory.verify("c").map(drop)),
            ("history", memory.history("c", HistoryRange::all()).map(drop)),
            ("view_at", memory.view_at("c", 0, &Window::messages(3)).map(drop)),
        ];
        for (call, result) in calls {
            match result {
                Err(Error::Io { path: named, .. }) if named == path => {}
                other => panic!("{call} of a {obstacle}: {other:?}"),
            }
        }
        let page = memory.conversations(&PageRequest::first(10)).unwrap();
        assert_eq!(page.items.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(), ["other"], "{obstacle}");
        assert!(page.problems.iter().any(|problem| problem.path == path), "{obstacle}: {:?}", page.problems);
    }
    assert!(fs::symlink_metadata(&path).is_ok(), "{obstacle}");
    scene.check_others();
}

/// In the place of the files that a repair or an add makes beside a conversation.
#[test]
fn what_stands_beside_a_conversation_is_not_followed() {
    within_a_minute(|| OBSTACLES.iter().for_each(|obstacle| beside_a_conversation(obstacle)));
}

fn beside_a_conversation(obstacle: &str) {
    let damaged = || {
        let scene = Scene::new();
        for text in ["one", "two", "three"] {
            scene.store.add("c", &[Message::user(text)]).unwrap();
        }
        flip_a_bit(&scene.store.path("c"), 165).unwrap();
        scene
    };
    // Where the damaged bytes will be set aside is told by another repair of the same bytes.
    let scene = damaged();
    let bytes = fs::read(scene.store.path("c")).unwrap();
    let aside = scene.store.repair("c", Repair::Apply).unwrap().set_aside.remove(0);
    for place in [aside.clone(), scene.store.path("c").with_extension("bin.tmp")] {
        let scene = damaged();
        fs::write(scene.store.path("c"), &bytes).unwrap();
        let place = scene.store.directory().join(place.file_name().unwrap());
        if !put(obstacle, &place, &scene.outside, &scene.store) {
            return;
        }
        let intact = texts(&scene.fresh().get("c").unwrap());
        assert_eq!(intact.len(), 2);
        match scene.store.repair("c", Repair::Apply) {
            // A leftover of the temporary name goes, whatever it is.
            Ok(report) => assert!(report.set_aside[0] != place && obstacle != "directory"),
            Err(Error::Io { path, .. }) => assert_eq!(path, place),
            Err(error) => panic!("{obstacle}: {error:?}"),
        }
        assert_eq!(texts(&scene.fresh().get("c").unwrap()), intact, "{obstacle}");
        scene.store.add("c", &[Message::user("four")]).unwrap();
        assert_eq!(texts(&scene.fresh().get("c").unwrap()).len(), 3);
        scene.check_others();
    }
}

/// A store whose directory is moved away tells so, until it is back.
#[test]
fn a_directory_that_is_gone_is_an_error_and_no_empty_conversation() {
    let scene = Scene::new();
    let (memory, place) = (&scene.store, scene.store.directory());
    memory.add("c", &[Message::user("one")]).unwrap();
    let elsewhere = place.with_extension("moved");
    fs::rename(place, &elsewhere).unwrap();
    for memory in [memory, &FileChatMemory::builder(place).max_messages(3).open().unwrap()] {
        // Opening a store makes its directory.
        _ = fs::remove_dir(place);
        for id in ["c", "never seen"] {
            refused(memory.get(id));
            refused(memory.history(id, HistoryRange::all()));
            refused(memory.verify(id));
            refused(memory.repair(id, Repair::Apply));
            refused(memory.add(id, &[Message::user("two")]));
            refused(memory.clear(id));
        }
        refused(memory.conversations(&PageRequest::first(5)));
        assert!(!place.exists());
    }
    fs::rename(&elsewhere, place).unwrap();
    memory.add("c", &[Message::user("two")]).unwrap();
    assert_eq!(texts(&memory.get("c").unwrap()), ["one", "two"]);
    assert_eq!(memory.get("never seen").unwrap(), []);
}

/// What was removed with the directory is gone; what is added to a new one is kept.
#[test]
fn a_directory_that_was_removed_and_made_again_is_used() {
    let scene = Scene::new();
    let (memory, place) = (&scene.store, scene.store.directory());
    for round in 0..3 {
        memory.add("c", &[Message::user(format!("{round}"))]).unwrap();
        fs::remove_dir_all(place).unwrap();
        refused(memory.add("c", &[Message::user("refused")]));
        refused(memory.get("c"));
        fs::create_dir(place).unwrap();
        assert_eq!(memory.get("c").unwrap(), []);
        memory.add("c", &[Message::user("again")]).unwrap();
        assert_eq!(texts(&memory.get("c").unwrap()), ["again"]);
        assert_eq!(texts(&scene.fresh().get("c").unwrap()), ["again"]);
        memory.clear("c").unwrap();
    }
}

/// Beside threads at work.
#[test]
fn a_directory_that_goes_and_comes_makes_nobody_panic() {
    let scene = Scene::new();
    let place = scene.store.directory().to_owned();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|thread| {
                let memory = &scene.store;
                scope.spawn(move || {
                    let own = format!("c{thread}");
                    for number in 0..400 {
                        match memory.add(&own, &[Message::user(format!("{number}"))]) {
                            // It was there, unless it was removed since: never another one.
                            Ok(()) => match memory.get(&own).map(|found| texts(&found).pop()) {
                                Ok(None) => {}
                                Ok(Some(last)) => assert_eq!(last, format!("{number}")),
                                Err(error) => assert!(matches!(error, Error::Io { .. }), "{error:?}"),
                            },
                            Err(error) => assert!(matches!(error, Error::Io { .. }), "{error:?}"),
                        }
                    }
                })
            })
            .collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            // New files may come while the old ones are removed.
            _ = fs::remove_dir_all(&place);
            thread::sleep(Duration::from_millis(1));
            _ = fs::create_dir(&place);
            thread::sleep(Duration::from_millis(1));
        }
    });
    let memory = scene.fresh();
    memory.add("c0", &[Message::user("last")]).unwrap();
    assert_eq!(texts(&memory.get("c0").unwrap()).pop().unwrap(), "last");
}
