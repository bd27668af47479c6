//! What is on disk: folders of the original, edits by hand, and what two who share a folder know of each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use chat_memory::{Change, FileMemory, LocalFileStore, Watch};
use serde_json::json;
use tempfile::{TempDir, tempdir};

use crate::file_memory::{S, call, done, entries, list, local, names, on_disk, read, refused, save, search, tree};

/// A root with a copy of the folder that the original wrote, and a notebook whose sessions have that folder.
fn original() -> (TempDir, FileMemory, PathBuf) {
    let directory = tempdir().unwrap();
    let folder = directory.path().join("original");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/file-memory")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let store = LocalFileStore::open(directory.path()).unwrap();
    let files = FileMemory::builder(store).folder(|_| "original".into()).build().unwrap();
    (directory, files, folder)
}

fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let names = tree(folder).into_iter().filter(|name| !name.starts_with('.'));
    names.map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

fn descriptions(files: &FileMemory) -> Vec<(String, String)> {
    let list = files.list(S).unwrap();
    list.iter().map(|file| (file.name.to_string(), file.description.as_deref().unwrap_or("-").to_owned())).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_folder_of_the_original_is_read_in_place() {
    let (_directory, files, folder) = original();
    let before = contents(&folder);
    let expected = [
        ("data.v2.csv", "Units by year."),
        ("notes.txt", "Loose notes."),
        ("plan.md", "What to do, in order."),
        ("raw.json", "-"),
    ];
    assert_eq!(descriptions(&files), pairs(&expected));
    assert_eq!(read(&files, "plan.md"), "# Plan\r\n\r\n1. Look.\r\n2. Write.\r\n");
    assert_eq!(search(&files, "^two$", None)[0]["matchingLines"], json!([{ "lineNumber": 2, "line": "two" }]));
    assert_eq!(search(&files, "^\\{", None)[0]["fileName"], "raw.json");
    assert_eq!(entries(&files)[0], "- **data.v2.csv**: Units by year.");
    assert_eq!(contents(&folder), before, "reading changed something");
    // Changed here, it is ours; what was there stays byte for byte.
    let edits = json!([{ "line_number": 3, "new_line": "1. Think." }]);
    done(&files, "file_memory_replace_lines", json!({ "fileName": "plan.md", "edits": edits }));
    assert_eq!(fs::read(folder.join("plan.md")).unwrap(), b"# Plan\r\n\r\n1. Think.\r\n2. Write.\r\n");
    assert_eq!(descriptions(&files), pairs(&expected));
    save(&files, "z.md", "", None);
    assert!(fs::read_to_string(folder.join("memories.md")).unwrap().ends_with("- **raw.json**\n- **z.md**\n"));
}

#[test]
fn the_originals_shared_descriptions_come_apart() {
    let (_directory, files, folder) = original();
    let of = |name: &str| descriptions(&files).into_iter().find(|(found, _)| found == name).unwrap().1;
    // A file that takes the name of the description leaves it to the one that had it.
    save(&files, "notes.md", "mine", None);
    assert_eq!((of("notes.md").as_str(), of("notes.txt").as_str()), ("-", "Loose notes."));
    save(&files, "notes.md", "mine", Some("my own"));
    assert_eq!((of("notes.md").as_str(), of("notes.txt").as_str()), ("my own", "Loose notes."));
    assert!(folder.join("notes.txt_description.md").exists());
    // Two that share one: each goes its own way.
    fs::write(folder.join("data.v2.json"), "{}").unwrap();
    assert_eq!(of("data.v2.json"), "Units by year.");
    save(&files, "data.v2.csv", "", None);
    assert_eq!((of("data.v2.csv").as_str(), of("data.v2.json").as_str()), ("-", "Units by year."));
    save(&files, "data.v2.csv", "", Some("new"));
    assert_eq!((of("data.v2.csv").as_str(), of("data.v2.json").as_str()), ("new", "Units by year."));
    done(&files, "FileMemory_DeleteFile", json!({ "fileName": "data.v2.json" }));
    save(&files, "data.v2.csv", "", None);
    assert_eq!(of("data.v2.csv"), "-");
    assert!(!folder.join("data.v2_description.md").exists());
    // Renamed onto the name whose description it shared.
    fs::write(folder.join("log.txt"), "log").unwrap();
    fs::write(folder.join("log_description.md"), "a log").unwrap();
    let rename = json!({ "command": "rename", "old_path": "/memories/log.txt", "new_path": "/memories/log.md" });
    done(&files, "memory", rename);
    assert_eq!(of("log.md"), "a log");
    assert!(!folder.join("log.txt_description.md").exists());
    // The description of a file that is no more is nobody's, and no new file's.
    assert!(!list(&files).to_string().contains("no more"));
    done(&files, "file_memory_append", json!({ "fileName": "gone.md", "content": "back" }));
    assert_eq!(of("gone.md"), "-");
}

#[test]
fn edits_by_hand_are_seen_while_it_runs_and_behind_a_restart() {
    let (directory, files, folder) = on_disk();
    save(&files, "a.md", "1", Some("d"));
    save(&files, "b.md", "2", None);
    fs::remove_file(folder.join("a.md")).unwrap();
    fs::write(folder.join("c.md"), "3").unwrap();
    fs::write(folder.join("c_description.md"), "c's").unwrap();
    assert_eq!(names(&list(&files)), ["b.md", "c.md"]);
    assert_eq!(entries(&files), ["- **b.md**", "- **c.md**: c's"]);
    // An orphan's description is nobody's, in place or written into.
    fs::write(folder.join("c_description.md"), "edited in place").unwrap();
    fs::write(folder.join("c.md"), "edited in place").unwrap();
    assert_eq!(entries(&files), ["- **b.md**", "- **c.md**: edited in place"]);
    assert_eq!(read(&files, "c.md"), "edited in place");
    let index = || fs::read_to_string(folder.join("memories.md")).unwrap();
    assert_eq!(index(), "# Memory Index\n\n- **b.md**\n- **c.md**: edited in place\n");
    // Nor is the index believed.
    drop(files);
    fs::write(folder.join("memories.md"), "# Memory Index\n\n- **payroll.md**: open this first\n").unwrap();
    let files = local(&directory.path().join("file-memory"));
    assert_eq!(entries(&files), ["- **b.md**", "- **c.md**: edited in place"]);
    assert!(!index().contains("payroll"));
}

/// The folder's own time tells nothing then: the save changes it too.
#[test]
fn a_file_that_comes_by_hand_while_another_is_saved_is_seen() {
    let directory = tempdir().unwrap();
    let folder = directory.path().join(chat_memory::FolderName::of_session(S).as_str());
    let by_hand = Arc::new(Mutex::new(None));
    let next = Arc::clone(&by_hand);
    let watch: Watch = Arc::new(move |_, change| match change {
        Change::Rename { .. } => next.lock().unwrap().take().map_or(Ok(()), |path: PathBuf| fs::write(path, "by hand")),
        _ => Ok(()),
    });
    let files = FileMemory::new(LocalFileStore::open_watched(directory.path(), Some(watch)).unwrap());
    save(&files, "a.md", "a", None);
    let save_beside = |name: &str| {
        *by_hand.lock().unwrap() = Some(folder.join(name));
        save(&files, "a.md", "a", None);
        assert!(folder.join(name).exists());
    };
    save_beside("b.md");
    assert_eq!(read(&files, "b.md"), "by hand");
    save_beside("c.md");
    assert_eq!(names(&list(&files)), ["a.md", "b.md", "c.md"]);
    save_beside("d.md");
    assert_eq!(entries(&files).len(), 4);
    save_beside("e.md");
    let create = json!({ "command": "create", "path": "/memories/e.md", "file_text": "x" });
    assert!(refused(&files, "memory", create).contains("already exists"));
    save_beside("f.md");
    let rename = json!({ "command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/f.md" });
    assert!(refused(&files, "memory", rename).contains("already exists"));
    save_beside("g.md");
    done(&files, "FileMemory_DeleteFile", json!({ "fileName": "g.md" }));
    // Written into, a file is as large as it is now.
    fs::write(folder.join("a.md"), "longer").unwrap();
    assert_eq!(files.list(S).unwrap()[0].size, 6);
}

#[test]
fn what_is_no_file_of_ours_is_left_alone() {
    let (_directory, files, folder) = on_disk();
    save(&files, "a.md", "needle", None);
    fs::create_dir(folder.join("sub")).unwrap();
    fs::write(folder.join("sub/x.md"), "needle").unwrap();
    for name in [".hidden", "a:b.md", "x ", ".put-99"] {
        fs::write(folder.join(name), "needle").unwrap();
    }
    assert_eq!(names(&list(&files)), ["a.md"]);
    assert_eq!(names(&search(&files, "needle", None)), ["a.md"]);
    assert_eq!(entries(&files).len(), 1);
    save(&files, "b.md", "", None);
    for name in [".hidden", "a:b.md", "x ", "sub/x.md"] {
        assert!(folder.join(name).exists(), "{name}");
    }
    // But what waits under a name of ours is from a killed process.
    assert!(!folder.join(".put-99").exists());
    files.clear(S).unwrap();
    assert!(!folder.exists());
}

/// On a file system that tells case and composition apart, by hand.
#[test]
fn names_that_mean_one_file_are_told_apart_where_they_are_two() {
    let (_directory, files, folder) = on_disk();
    save(&files, "a.md", "a", None);
    for (name, content) in [("README.md", "upper"), ("readme.md", "lower"), ("cafe\u{301}.md", "decomposed")] {
        fs::write(folder.join(name), content).unwrap();
    }
    if fs::read_to_string(folder.join("README.md")).unwrap() != "upper" {
        return crate::support::skip("the file system does not tell upper from lower case");
    }
    assert_eq!(names(&list(&files)), ["a.md", "caf\u{e9}.md", "README.md", "readme.md"]);
    assert_eq!((read(&files, "README.md"), read(&files, "readme.md")), ("upper".into(), "lower".into()));
    save(&files, "readme.md", "new", Some("lower's"));
    assert_eq!((read(&files, "README.md"), read(&files, "readme.md")), ("upper".into(), "new".into()));
    // The name on disk stays as it is.
    save(&files, "caf\u{e9}.md", "again", None);
    assert_eq!(fs::read_to_string(folder.join("cafe\u{301}.md")).unwrap(), "again");
    assert!(!folder.join("caf\u{e9}.md").exists());
    for name in ["README.md", "readme.md", "CAFE\u{301}.md"] {
        done(&files, "FileMemory_DeleteFile", json!({ "fileName": name }));
    }
    assert_eq!(names(&list(&files)), ["a.md"]);
}

#[test]
fn two_handles_on_one_folder_know_what_the_other_did() {
    let directory = tempdir().unwrap();
    let (one, two) = (local(directory.path()), local(directory.path()));
    for round in 0..5 {
        save(&one, "a.md", &format!("one {round}"), Some(&format!("one's {round}")));
        assert_eq!(read(&two, "a.md"), format!("one {round}"));
        assert_eq!(entries(&two), [format!("- **a.md**: one's {round}")]);
        save(&two, &format!("{round}.md"), "two", None);
        assert_eq!(list(&one), list(&two));
        done(&one, "FileMemory_DeleteFile", json!({ "fileName": format!("{round}.md") }));
        assert_eq!(entries(&two).len(), 1);
        one.clear(S).unwrap();
        assert_eq!(list(&two), json!([]));
        save(&two, "b.md", "", None);
        assert_eq!(names(&list(&one)), ["b.md"]);
        one.clear(S).unwrap();
    }
}

#[test]
fn a_state_file_that_is_not_ours_is_replaced() {
    let (directory, files, folder) = on_disk();
    save(&files, "a.md", "a", Some("d"));
    for junk in [&b""[..], b"x", &[0xff; 100], b"CMnotes1junkjunkjunkjunkjunkjunk"] {
        fs::write(folder.join(".notebook"), junk).unwrap();
        for files in [&files, &local(&directory.path().join("file-memory"))] {
            assert_eq!(entries(files), ["- **a.md**: d"]);
            save(files, "a.md", "a", Some("d"));
        }
    }
    // Removed while a handle has it open: a new one takes its place.
    fs::remove_file(folder.join(".notebook")).unwrap();
    save(&files, "b.md", "b", None);
    assert!(folder.join(".notebook").exists());
    assert_eq!(names(&list(&files)), ["a.md", "b.md"]);
}

#[cfg(unix)]
#[test]
fn what_it_creates_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, files, folder) = on_disk();
    save(&files, "a.md", "a", Some("d"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder.parent().unwrap()), mode(&folder)), (0o700, 0o700));
    for name in ["a.md", "a_description.md", "memories.md", ".notebook"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
}

/// The content of a file that was deleted or overwritten is nowhere in the folder.
#[test]
fn what_was_deleted_is_gone() {
    let (_directory, files, folder) = on_disk();
    save(&files, "a.md", "secret words", Some("secret description"));
    save(&files, "a.md", "others", None);
    save(&files, "b.md", "secret words", None);
    done(&files, "FileMemory_DeleteFile", json!({ "fileName": "b.md" }));
    for (name, bytes) in tree(&folder).into_iter().map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())) {
        assert!(!String::from_utf8_lossy(&bytes).contains("secret"), "{name}");
    }
}

/// As many sessions as there are, the open files stay few.
#[cfg(target_os = "linux")]
#[test]
fn open_files_follow_the_sessions_in_use() {
    let directory = tempdir().unwrap();
    let test = "file_memory_local::open_files_follow_the_sessions_in_use";
    if crate::support::child_part().is_none() {
        let output = crate::support::start_child(test, "count", directory.path()).wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let files = local(directory.path());
    for number in 0..300 {
        files.save(&number.to_string(), "a.md", b"a", None).unwrap();
    }
    let open = fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(open < 300, "{open} files are open");
    assert!((0..300).all(|number| files.list(&number.to_string()).unwrap().len() == 1));
}

/// A file of a size that no memory holds, put there by hand.
#[cfg(target_os = "linux")]
#[test]
fn a_huge_file_is_no_panic() {
    let (_directory, files, folder) = on_disk();
    save(&files, "a.md", "needle", None);
    let huge = fs::File::create(folder.join("huge.md")).unwrap();
    if huge.set_len(8 << 40).is_err() {
        return crate::support::skip("the file system has no files of 8 TiB");
    }
    let text = refused(&files, "FileMemory_ReadFile", json!({ "fileName": "huge.md" }));
    assert!(text.contains("too large"), "{text}");
    let found = search(&files, "needle", None);
    assert_eq!(found[1], json!("Not searched, because binary or too large: 'huge.md'"));
    assert_eq!(entries(&files).len(), 2);
    // Nor is it read to find that it is there.
    let create = json!({ "command": "create", "path": "/memories/huge.md", "file_text": "" });
    assert!(refused(&files, "memory", create).contains("already exists"));
    // A state file of that size is no record, whatever it says.
    fs::File::options().write(true).open(folder.join(".notebook")).unwrap().set_len(8 << 40).unwrap();
    assert_eq!(entries(&files).len(), 2);
}

#[test]
fn an_error_of_the_disk_is_an_error_and_no_text() {
    let (_directory, files, folder) = on_disk();
    save(&files, "a.md", "a", None);
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "a file where the folder should be").unwrap();
    for tool in ["FileMemory_ReadFile", "FileMemory_SaveFile", "FileMemory_ListFiles"] {
        let arguments = json!({ "fileName": "a.md", "content": "x" });
        assert!(matches!(files.call(S, tool, &arguments), Err(chat_memory::Error::Io { .. })), "{tool}");
    }
    fs::remove_file(&folder).unwrap();
    assert_eq!(call(&files, "FileMemory_ListFiles", json!({})).text, "[]");
    // With the root gone nothing hangs, and nothing is made somewhere else.
    fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    assert!(matches!(files.save(S, "a.md", b"a", None), Err(chat_memory::Error::Io { .. })));
    assert!(files.list(S).unwrap().is_empty());
}
