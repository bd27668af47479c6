//! Names, paths and links: nobody gets out of the folder, and one name is one file.

use std::fs;

use chat_memory::{Error, FileMemory, FileName, FolderName, InMemoryFileStore, LocalFileStore, ToolNames};
use serde_json::json;
use tempfile::tempdir;

use crate::file_memory::{
    S, done, entries, index, list, local, names, on_both, on_disk, read, refused, save, search, tree,
};

/// Each with a word of the rule that refuses it.
const REFUSED: &[(&str, &str)] = &[
    ("", "blank"),
    ("   ", "blank"),
    ("\u{3000}", "blank"),
    ("../escape.md", "any of"),
    ("a/../../escape.md", "any of"),
    ("..\\escape.md", "any of"),
    ("/tmp/abs.md", "any of"),
    ("C:\\x.md", "any of"),
    ("x/./y.md", "any of"),
    ("./plan.md", "any of"),
    ("plan.md/", "any of"),
    ("x//plan.md", "any of"),
    ("a:b.md", "any of"),
    ("what?.md", "any of"),
    ("a<b", "any of"),
    ("a>b", "any of"),
    ("a\"b", "any of"),
    ("a|b", "any of"),
    ("a*b", "any of"),
    (".", ". or .."),
    ("..", ". or .."),
    ("nul\u{0}byte", "control"),
    ("a\nb", "control"),
    ("a\u{7f}b", "control"),
    ("a\u{85}b", "control"),
    ("a\u{200b}b", "zero-width"),
    ("\u{feff}a", "zero-width"),
    ("a\u{202e}txt.md", "bidirectional"),
    ("a\u{2066}b", "bidirectional"),
    ("a\u{e0041}", "zero-width"),
    (" lead", "space"),
    ("x ", "space"),
    ("x\u{a0}", "space"),
    ("x.", "end with a dot"),
    ("x..", "end with a dot"),
    (".hidden", "begin with a dot"),
    (".notebook", "begin with a dot"),
    ("con.md", "device"),
    ("NUL", "device"),
    ("aux.txt", "device"),
    ("com1.md", "device"),
    ("LPT9", "device"),
    ("com\u{b9}.tar.gz", "device"),
    ("CON .txt", "device"),
    ("conin$", "device"),
    ("memories.md", "reserved"),
    ("Memories.MD", "reserved"),
    ("plan_description.md", "reserved"),
    ("PLAN_DESCRIPTION.MD", "reserved"),
    ("_description.md", "reserved"),
    ("memorie\u{17f}.md", "reserved"),
    ("x_de\u{17f}cription.md", "reserved"),
];

#[test]
fn a_name_that_breaks_a_rule_is_refused_with_the_rule_and_makes_nothing() {
    let (directory, files, _) = on_disk();
    let before = tree(directory.path());
    let in_memory = FileMemory::new(InMemoryFileStore::new());
    let long = "x".repeat(201);
    for (name, rule) in REFUSED.iter().copied().chain([(long.as_str(), "200 bytes")]) {
        for files in [&files, &in_memory] {
            let text = refused(files, "FileMemory_SaveFile", json!({ "fileName": name, "content": "evil" }));
            assert!(text.contains(rule), "{name:?}: {text}");
            assert!(!text.contains('\n') && !text.contains('\u{202e}'), "{text}");
            for tool in ["FileMemory_ReadFile", "FileMemory_DeleteFile", "file_memory_read"] {
                assert!(refused(files, tool, json!({ "fileName": name })).contains(rule), "{tool} {name:?}");
            }
            let path = format!("/memories/{name}");
            let text = refused(files, "memory", json!({ "command": "create", "path": path, "file_text": "evil" }));
            assert!(text.contains(rule), "{name:?}: {text}");
            assert!(matches!(files.save(S, name, b"evil", None), Err(Error::InvalidFileName { .. })));
            assert_eq!(list(files), json!([]));
        }
    }
    assert_eq!(tree(directory.path()), before);
}

#[test]
fn names_that_only_look_odd_are_names() {
    on_both(|files| {
        let odd =
            ["notes..md", "a b.md", "größe.md", "漢字.txt", "🎉", "conx.md", "com10", "x_description.txt", "a'b;c&d"];
        for name in odd.iter().copied().chain([&*"é".repeat(100)]) {
            save(files, name, name, Some(name));
            assert_eq!(read(files, name), name);
        }
        assert_eq!(names(&list(files)).len(), odd.len() + 1);
    });
}

#[test]
fn two_spellings_of_one_name_are_one_file() {
    on_both(|files| {
        save(files, "Café.md", "1", Some("first"));
        save(files, "CAFE\u{301}.MD", "2", Some("second"));
        assert_eq!(list(files), json!([{ "fileName": "Café.md", "description": "second" }]));
        assert_eq!(read(files, "cafe\u{301}.md"), "2");
        assert_eq!(done(files, "FileMemory_DeleteFile", json!({ "fileName": "café.MD" })), "File 'café.MD' deleted.");
        assert_eq!(list(files), json!([]));
    });
}

#[test]
fn descriptions_of_files_with_one_stem_do_not_meet() {
    on_both(|files| {
        let all = ["notes.md", "notes.txt", "notes", "notes..md", "notes.v2.md", "notes.v2"];
        for name in all {
            save(files, name, name, Some(&format!("about {name}")));
        }
        for name in all {
            save(files, name, "again", Some(&format!("more about {name}")));
            let found = list(files);
            let described = found.as_array().unwrap().iter().find(|file| file["fileName"] == name).unwrap().clone();
            assert_eq!(described["description"], format!("more about {name}"));
        }
        done(files, "FileMemory_DeleteFile", json!({ "fileName": "notes.txt" }));
        save(files, "notes", "x", None);
        let found = list(files);
        let described = found.as_array().unwrap().iter().filter(|file| !file["description"].is_null()).count();
        assert_eq!((names(&found).len(), described), (5, 4));
    });
}

#[cfg(unix)]
#[test]
fn a_link_is_refused_and_not_followed() {
    use std::os::unix::fs::symlink;
    let (directory, files, folder) = on_disk();
    save(&files, "a.md", "a", None);
    let outside = directory.path().join("outside");
    fs::write(&outside, "secret").unwrap();
    for name in ["leak.md", "leak_description.md", "b_description.md"] {
        symlink(&outside, folder.join(name)).unwrap();
    }
    symlink("a.md", folder.join("inside.md")).unwrap();
    symlink(directory.path(), folder.join("folder.md")).unwrap();
    fs::create_dir(folder.join("real-folder.md")).unwrap();
    for name in ["leak.md", "inside.md", "folder.md", "real-folder.md"] {
        let name_only = json!({ "fileName": name });
        assert!(refused(&files, "FileMemory_ReadFile", name_only.clone()).contains("link"), "{name}");
        assert!(refused(&files, "FileMemory_DeleteFile", name_only).contains("link"), "{name}");
        let content = json!({ "fileName": name, "content": "x" });
        assert!(refused(&files, "FileMemory_SaveFile", content.clone()).contains("link"), "{name}");
        assert!(refused(&files, "file_memory_append", content).contains("link"), "{name}");
        let rename =
            json!({ "command": "rename", "old_path": "/memories/a.md", "new_path": format!("/memories/{name}") });
        assert!(refused(&files, "memory", rename).contains("link"), "{name}");
    }
    // A description that is a link is none, and is not written through.
    let described = json!({ "fileName": "b.md", "content": "b", "description": "d" });
    refused(&files, "FileMemory_SaveFile", described);
    save(&files, "b.md", "b", None);
    assert_eq!(
        list(&files),
        json!([{ "fileName": "a.md", "description": null }, { "fileName": "b.md", "description": null }])
    );
    assert_eq!(names(&search(&files, ".", None)), ["a.md", "b.md"]);
    assert_eq!(entries(&files), ["- **a.md**", "- **b.md**"]);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
    // Where the index should be, a link is replaced and not followed.
    fs::remove_file(folder.join("memories.md")).unwrap();
    symlink(&outside, folder.join("memories.md")).unwrap();
    save(&files, "c.md", "c", None);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_a_folder_is_refused() {
    use std::os::unix::fs::symlink;
    let (directory, files, folder) = on_disk();
    save(&files, "a.md", "a", None);
    let elsewhere = directory.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    // The session's.
    let moved = directory.path().join("moved");
    fs::rename(&folder, &moved).unwrap();
    symlink(&elsewhere, &folder).unwrap();
    assert!(files.save(S, "b.md", b"b", None).is_err());
    assert!(files.read(S, "b.md").is_err());
    assert!(files.clear(S).is_err());
    assert_eq!(tree(&elsewhere), [""; 0]);
    assert!(moved.join("a.md").exists());
    // The root's, whatever follows its name.
    let link = directory.path().join("link");
    symlink(&elsewhere, &link).unwrap();
    for path in [link.clone(), link.join(""), link.join(".")] {
        assert!(matches!(LocalFileStore::open(&path), Err(Error::Io { .. })), "{path:?}");
    }
    assert_eq!(tree(&elsewhere), [""; 0]);
}

#[cfg(unix)]
/// The state file is written in place, so with a second name it would be a way out of the folder.
#[test]
fn a_state_file_that_has_another_name_too_is_refused() {
    let (directory, files, folder) = on_disk();
    save(&files, "a.md", "a", None);
    let outside = directory.path().join("outside");
    fs::write(&outside, "precious").unwrap();
    fs::remove_file(folder.join(".notebook")).unwrap();
    fs::hard_link(&outside, folder.join(".notebook")).unwrap();
    for files in [&files, &local(folder.parent().unwrap())] {
        assert!(matches!(files.save(S, "a.md", b"b", None), Err(Error::Io { .. })));
        assert!(matches!(files.list(S), Err(Error::Io { .. })));
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious");
    fs::remove_file(&outside).unwrap();
    assert_eq!(read(&files, "a.md"), "a");
}

#[test]
fn a_pipe_does_not_make_a_call_wait() {
    let (_directory, files, folder) = on_disk();
    save(&files, "a.md", "a", None);
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe.md")).status();
    if !made.is_ok_and(|status| status.success()) {
        return crate::support::skip("no mkfifo");
    }
    assert!(refused(&files, "FileMemory_ReadFile", json!({ "fileName": "pipe.md" })).contains("device"));
    assert_eq!(names(&search(&files, "a", None)), ["a.md"]);
    assert_eq!(names(&list(&files)), ["a.md"]);
}

#[test]
fn sessions_never_meet() {
    let directory = tempdir().unwrap();
    let root = directory.path().join("store");
    let on_disk = local(&root);
    let in_memory = FileMemory::new(InMemoryFileStore::new());
    let ids = [
        "2026-06-07T11:35:56",
        "2026-06-07T11:35:57",
        "../s1",
        "s1",
        "S1",
        "..",
        ".",
        "/abs",
        "C:\\win",
        "a\\b",
        "CON",
        "a\u{1}b",
        "nul\u{0}byte",
        " lead",
        "trail. ",
        "a.b",
        "a:b",
        "a/b",
        "a_b",
        "a b",
        "A.B",
        "café",
        "cafe\u{301}",
        &"x".repeat(1 << 20),
    ];
    for files in [&on_disk, &in_memory] {
        for id in ids {
            files.save(id, "n.md", id.as_bytes(), None).unwrap();
        }
        for id in ids {
            assert_eq!(files.read(id, "n.md").unwrap().unwrap(), id.as_bytes());
            assert_eq!(files.list(id).unwrap().len(), 1);
        }
        for id in ["", " \n"] {
            assert!(matches!(files.list(id), Err(Error::InvalidSessionId)));
        }
        files.clear("s1").unwrap();
        assert!(files.list("s1").unwrap().is_empty());
        assert_eq!(files.list("S1").unwrap().len(), 1);
    }
    assert_eq!(tree(directory.path()).iter().filter(|path| !path.starts_with("store")).count(), 0);
}

#[test]
fn reading_an_unknown_session_makes_nothing() {
    let (directory, files, _) = on_disk();
    let before = tree(directory.path());
    assert_eq!(list(&files), json!([]));
    assert_eq!(search(&files, ".", None), json!([]));
    assert_eq!(refused(&files, "FileMemory_ReadFile", json!({ "fileName": "a.md" })), "File 'a.md' not found.");
    assert_eq!(index(&files), None);
    files.clear(S).unwrap();
    assert_eq!(tree(directory.path()), before);
}

#[test]
fn a_chosen_folder_is_asked_for_once_and_remembered() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let directory = tempdir().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let open = |store: Box<dyn chat_memory::FileStore>| {
        let asked = Arc::clone(&asked);
        let choose = move |_: &str| format!("20260607-113556-{}", asked.fetch_add(1, Ordering::Relaxed));
        FileMemory::builder(store).folder(choose).build().unwrap()
    };
    let local = || open(Box::new(LocalFileStore::open(directory.path()).unwrap()));
    for _ in 0..3 {
        let files = local();
        files.save("one", "a.md", b"1", None).unwrap();
        files.save("two", "a.md", b"2", None).unwrap();
        assert_eq!(files.read("one", "a.md").unwrap().unwrap(), b"1");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    assert!(directory.path().join("20260607-113556-1/a.md").exists());
    // Clearing takes the files, and leaves the folder the session's.
    local().clear("one").unwrap();
    assert!(local().list("one").unwrap().is_empty());
    local().save("one", "b.md", b"", None).unwrap();
    assert!(directory.path().join("20260607-113556-0/b.md").exists());
    let in_memory = open(Box::new(InMemoryFileStore::new()));
    in_memory.save("one", "a.md", b"1", None).unwrap();
    in_memory.list("one").unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[test]
fn a_chosen_folder_that_is_wrong_or_anothers_is_refused() {
    let sha256 = FolderName::of_session("somebody");
    let with = |store: Box<dyn chat_memory::FileStore>, name: &'static str| {
        FileMemory::builder(store).folder(move |_| name.to_owned()).build().unwrap()
    };
    for name in ["2026-06-07T11:35:56", "../up", "a/b", "", ".hidden", "NUL", "x."] {
        let directory = tempdir().unwrap();
        let root = directory.path().join("root");
        for store in [
            Box::new(LocalFileStore::open(&root).unwrap()) as Box<dyn chat_memory::FileStore>,
            Box::new(InMemoryFileStore::new()),
        ] {
            let files = with(store, name);
            let refused = files.save("one", "a.md", b"", None);
            assert!(matches!(refused, Err(Error::InvalidFolderName { .. })), "{name}: {refused:?}");
        }
        assert!(tree(directory.path()).iter().all(|path| path.starts_with("root")));
    }
    assert!(FolderName::new(sha256.as_str()).is_err());
    let directory = tempdir().unwrap();
    let local = || Box::new(LocalFileStore::open(directory.path()).unwrap());
    with(local(), "Shared").save("one", "a.md", b"1", None).unwrap();
    // Also in another case, which some file systems take for the same.
    for name in ["Shared", "shared"] {
        let error = with(local(), name).list("two").unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{error:?}");
        assert_eq!(error.to_string(), "conflict: the folder that was chosen for the session is another session's");
    }
    assert_eq!(with(local(), "else").list("one").unwrap().len(), 1);
}

#[test]
fn a_file_name_is_composed() {
    assert_eq!(FileName::new("cafe\u{301}.md").unwrap().as_str(), "caf\u{e9}.md");
    assert!(FileName::new(&"x".repeat(200)).is_ok());
}

#[test]
fn texts_for_the_model_hold_no_path_of_the_host() {
    let (directory, files, folder) = on_disk();
    let files_of = |names| {
        FileMemory::builder(LocalFileStore::open(directory.path().join("file-memory")).unwrap())
            .tool_names(names)
            .build()
            .unwrap()
    };
    save(&files, "a.md", "text", Some("d"));
    files.save(S, "b.bin", &[255, 0], None).unwrap();
    fs::create_dir(folder.join("c.md")).unwrap();
    let mut texts = vec![format!("{:?}", files.context(S).unwrap())];
    for names in [ToolNames::Original, ToolNames::Current, ToolNames::Anthropic] {
        for tool in files_of(names).tools() {
            for name in ["a.md", "b.bin", "c.md", "missing", "../x"] {
                let path = format!("/memories/{name}");
                for command in ["view", "create", "str_replace", "insert", "rename", "delete"] {
                    let arguments = json!({
                        "fileName": name, "content": "x", "regexPattern": ".", "startLine": 1, "oldString": "x",
                        "newString": "y", "edits": [], "command": command, "path": path, "old_path": path,
                        "new_path": path, "file_text": "", "old_str": "x", "new_str": "y", "insert_line": 0,
                        "insert_text": "x",
                    });
                    texts.push(files.call(S, &tool.name, &arguments).unwrap().text);
                    if tool.name != "memory" {
                        break;
                    }
                }
            }
        }
    }
    let root = directory.path().to_str().unwrap();
    let hash = FolderName::of_session(S);
    for text in texts {
        assert!(!text.contains(root) && !text.contains(hash.as_str()) && !text.contains("file-memory"), "{text}");
    }
}
