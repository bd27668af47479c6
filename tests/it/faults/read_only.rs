//! Places that can be read and not written to.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use chat_memory::{ChatHistory, ChatMemory, Error, FileChatMemory, HistoryRange, Message, PageRequest, Repair};
use tempfile::tempdir;

use super::refused;
use crate::mounts::{Volume, in_own_mounts, run};
use crate::support::{child_part, has_programs, run_child_under, skip, texts};

fn fill(store: &Path) {
    let memory = FileChatMemory::open(store).unwrap();
    memory.add("c", &[Message::user("kept"), Message::assistant("yes")]).unwrap();
}

/// Reading works, everything else is an error, and nothing changes.
fn reads_and_refuses(store: &Path) {
    let memory = FileChatMemory::open(store).unwrap();
    for _ in 0..2 {
        assert_eq!(texts(&memory.get("c").unwrap()), ["kept", "yes"]);
        assert_eq!(memory.get("never seen").unwrap(), []);
        assert_eq!(memory.history("c", HistoryRange::last(1)).unwrap()[0].seq, 1);
        assert!(memory.verify("c").unwrap().is_whole());
        assert_eq!(memory.repair("c", Repair::DryRun).unwrap().messages, 2);
        let page = memory.conversations(&PageRequest::first(9)).unwrap();
        assert_eq!((page.items.len(), page.problems.len()), (1, 0));
        for id in ["c", "new"] {
            refused(memory.add(id, &[Message::user("x")]));
        }
        refused(memory.clear("c"));
        refused(memory.repair("c", Repair::Apply));
    }
    assert_eq!(fs::read_dir(store).unwrap().count(), 1);
}

/// It is there and takes more.
fn goes_on(store: &Path) {
    let memory = FileChatMemory::open(store).unwrap();
    memory.add("c", &[Message::user("more")]).unwrap();
    assert_eq!(texts(&memory.get("c").unwrap()), ["kept", "yes", "more"]);
    memory.clear("c").unwrap();
}

#[test]
fn without_permission_to_write() {
    if let Some((_, store)) = child_part() {
        return reads_and_refuses(&store);
    }
    let directory = tempdir().unwrap();
    let store = directory.path().join("store");
    fill(&store);
    let file = FileChatMemory::open(&store).unwrap().path("c");
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(&file, 0o400);
    set(&store, 0o500);
    // The superuser may write nevertheless, unless that capability is taken away.
    let bind = fs::File::options().append(true).open(&file).is_err();
    let test = "faults::read_only::without_permission_to_write";
    if bind {
        run_child_under(&[], test, "reads", &store);
    } else if has_programs(&["setpriv"]) {
        run_child_under(&["setpriv", "--bounding-set=-dac_override,-dac_read_search"], test, "reads", &store);
    }
    set(&store, 0o700);
    set(&file, 0o600);
    goes_on(&store);
}

#[test]
fn on_a_mount_that_is_read_only() {
    let Some((_, directory)) = child_part() else {
        return in_own_mounts("faults::read_only::on_a_mount_that_is_read_only");
    };
    let store = directory.join("store");
    fill(&store);
    let place = store.to_str().unwrap();
    let mount = |options: &str| run(&["mount", "-o", options, place, place]);
    if let Err(reason) = mount("bind").and_then(|_| mount("remount,bind,ro")) {
        return skip(&reason);
    }
    reads_and_refuses(&store);
    run(&["umount", place]).unwrap();
    goes_on(&store);
}

#[test]
fn on_a_file_system_that_turns_read_only_underneath_a_store() {
    let Some((_, directory)) = child_part() else {
        return in_own_mounts("faults::read_only::on_a_file_system_that_turns_read_only_underneath_a_store");
    };
    if !has_programs(&["mkfs.ext4"]) {
        return;
    }
    let volume = match Volume::new("ext4", 16, ",errors=remount-ro", &directory) {
        Ok(volume) => volume,
        Err(reason) => return skip(&reason),
    };
    let store = volume.place().join("store");
    fill(&store);
    let memory = FileChatMemory::open(&store).unwrap();
    memory.get("c").unwrap();
    // What the kernel does when it finds the file system damaged.
    if let Err(error) = volume.fail() {
        return skip(&format!("no error can be injected: {error}"));
    }
    // The write fails, and so does taking it back.
    let added = memory.add("c", &[Message::user("x")]);
    assert!(matches!(added, Err(Error::Io { .. } | Error::Poisoned { .. })), "{added:?}");
    refused(memory.add("new", &[Message::user("x")]));
    match memory.get("c") {
        Err(Error::Poisoned { .. }) => {}
        found => assert_eq!(texts(&found.unwrap()), ["kept", "yes"]),
    }
    reads_and_refuses(&store);
    drop(memory);
    volume.restart();
    goes_on(&store);
}
