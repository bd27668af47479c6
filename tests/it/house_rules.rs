//! Rules for the source itself: who may import whom, and what must not be left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The room that a file belongs to: its first folder or file name.
fn room(file: &Path) -> String {
    let inside = file.strip_prefix(root().join("src")).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
    first.strip_suffix(".rs").unwrap_or(first).to_owned()
}

/// The code without comments.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |code, line| code + line + "\n")
}

/// The rooms that each room names by `crate::`.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in rust_files(&root().join("src")) {
        let from = room(&file);
        let named = imports.entry(from.clone()).or_default();
        let code = code(&file);
        for (at, _) in code.match_indices("crate::") {
            let before = code[..at].chars().next_back();
            let name: String =
                code[at + 7..].chars().take_while(|char| char.is_ascii_alphanumeric() || *char == '_').collect();
            assert!(!name.is_empty(), "{}: name each room in a `use crate::` of its own", file.display());
            // Beside rooms there are items that the crate gives out at its top.
            let is_item = name.chars().next().is_some_and(char::is_uppercase);
            if before != Some('$') && name != from && !is_item {
                named.insert(name);
            }
        }
    }
    imports
}

/// The floors of the house: a room may import from floors below its own, and nobody from its own.
const FLOORS: [&[&str]; 7] = [
    &["error", "message"],
    &["log", "disk", "window", "context"],
    &["memory", "history"],
    &["in_memory", "file", "file_memory", "async_memory"],
    &["transcript", "advisor", "bridge"],
    &["conformance"],
    &["fuzzing"],
];

#[test]
fn a_room_imports_from_the_floors_below_alone() {
    let floor = |room: &str| FLOORS.iter().position(|rooms| rooms.contains(&room));
    for (from, named) in imports() {
        if from == "lib" {
            continue;
        }
        let own = floor(&from).unwrap_or_else(|| panic!("which floor is `{from}` on?"));
        for room in named {
            let other = floor(&room).unwrap_or_else(|| panic!("`{from}` imports `{room}`, which is no room"));
            assert!(other < own, "`{from}` imports `{room}`, which is not below it");
        }
    }
    // Conversions know messages, and no store.
    let transcript = &imports()["transcript"];
    assert!(transcript.iter().all(|room| room == "error" || room == "message"), "{transcript:?}");
    // A notebook is no conversation.
    let file_memory = &imports()["file_memory"];
    assert!(
        file_memory.is_disjoint(&["memory", "history", "window", "log"].map(str::to_owned).into()),
        "{file_memory:?}"
    );
    // The suite runs on any backend, so it knows none.
    let conformance = &imports()["conformance"];
    assert!(
        conformance.is_disjoint(&["file", "in_memory", "log", "disk"].map(str::to_owned).into()),
        "{conformance:?}"
    );
}

/// The floors of the notebook.
const NOTEBOOK: [&[&str]; 4] =
    [&["name", "lines"], &["store"], &["index", "search"], &["in_memory", "local", "tools", "provider"]];

/// As above, but that the provider may name the tools.
#[test]
fn a_part_of_the_notebook_imports_from_the_floors_below_alone() {
    let folder = root().join("src/file_memory");
    let floor = |part: &str| NOTEBOOK.iter().position(|parts| parts.contains(&part));
    for file in rust_files(&folder) {
        let inside = file.strip_prefix(&folder).unwrap();
        let from = inside.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        if from == "mod" {
            continue;
        }
        let code = code(&file);
        // Where `super` is the notebook.
        let is_top = inside.components().count() == 1 || inside.ends_with("mod.rs");
        let prefixes: &[&str] = if is_top { &["crate::file_memory::", "super::"] } else { &["crate::file_memory::"] };
        for prefix in prefixes {
            let tests = code.find("#[cfg(test)]").unwrap_or(code.len());
            for (at, _) in code[..tests].match_indices(prefix) {
                let rest = code[at + prefix.len()..].chars();
                let named: String = rest.take_while(|char| char.is_ascii_lowercase() || *char == '_').collect();
                let is_allowed = floor(&named) < floor(from) || (from, &*named) == ("provider", "tools");
                assert!(floor(&named).is_some() && is_allowed, "`{from}` imports `{named}`, which is not below it");
            }
        }
    }
}

#[test]
fn bytes_know_no_disk_and_only_the_disk_knows_the_file_system() {
    for file in rust_files(&root().join("src")) {
        let (room, code) = (room(&file), code(&file));
        let names = |word: &str| code.contains(word);
        if room == "log" {
            for word in ["std::fs", "std::io", "disk", "std::path", "SystemTime::now"] {
                assert!(!names(word), "{} names {word}", file.display());
            }
        }
        let is_local = file.starts_with(root().join("src/file_memory/local"));
        if room != "disk" && !is_local {
            for word in ["std::fs", "fs::", "File::open", "OpenOptions", "rustix"] {
                assert!(!names(word), "{} names {word}", file.display());
            }
        }
        if room == "window" {
            for word in ["FileChatMemory", "InMemoryChatMemory"] {
                assert!(!names(word), "{} names {word}", file.display());
            }
        }
        let is_record = file.ends_with("log/record.rs");
        assert!(is_record || !names("bincode"), "{} names bincode", file.display());
    }
}

#[test]
fn the_changelog_has_one_heading_for_what_comes_next() {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let headings: Vec<&str> = changelog.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(headings.iter().filter(|line| line.contains("Unreleased")).count(), 1, "{headings:?}");
    assert_eq!(headings.len(), headings.iter().collect::<BTreeSet<_>>().len(), "{headings:?}");
}

/// Code that this package cannot compile, for it needs crates that it does not, is compiled where it stands too.
#[test]
fn code_of_other_crates_in_the_readme_is_that_of_their_own_readmes() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let compiled = read("crates/chat-memory-rig/README.md") + &read("examples/axum_chat/README.md");
    // There a line may be hidden from readers.
    let shown: String = compiled.lines().filter(|line| !line.starts_with("# ")).flat_map(|line| [line, "\n"]).collect();
    let readme = read("README.md");
    let blocks: Vec<&str> = readme.split("```rs\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        assert!(shown.contains(block), "not compiled anywhere:\n{block}");
    }
}
