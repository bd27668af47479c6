//! What the tests of the notebook share: both stores, and calls as a model makes them.

use std::path::{Path, PathBuf};

use chat_memory::{FileMemory, FolderName, InMemoryFileStore, LocalFileStore, ToolOutput};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

pub const S: &str = "s1";

/// Runs a test on a fresh notebook over each store.
pub fn on_both(test: impl Fn(&FileMemory)) {
    test(&FileMemory::new(InMemoryFileStore::new()));
    let directory = tempdir().unwrap();
    test(&local(directory.path()));
}

pub fn local(root: &Path) -> FileMemory {
    FileMemory::new(LocalFileStore::open(root).unwrap())
}

/// A notebook on disk, and the folder of session `S`, which is not there yet.
pub fn on_disk() -> (TempDir, FileMemory, PathBuf) {
    let directory = tempdir().unwrap();
    let root = directory.path().join("file-memory");
    let folder = root.join(FolderName::of_session(S).as_str());
    let files = local(&root);
    (directory, files, folder)
}

pub fn call(files: &FileMemory, tool: &str, arguments: Value) -> ToolOutput {
    files.call(S, tool, &arguments).unwrap()
}

/// The text of an answer that is no error.
pub fn done(files: &FileMemory, tool: &str, arguments: Value) -> String {
    let output = call(files, tool, arguments);
    assert!(!output.is_error, "{}", output.text);
    output.text
}

/// The text of an answer that is one.
pub fn refused(files: &FileMemory, tool: &str, arguments: Value) -> String {
    let output = call(files, tool, arguments);
    assert!(output.is_error, "{}", output.text);
    output.text
}

pub fn save(files: &FileMemory, name: &str, content: &str, description: Option<&str>) {
    let arguments = json!({ "fileName": name, "content": content, "description": description });
    done(files, "FileMemory_SaveFile", arguments);
}

pub fn read(files: &FileMemory, name: &str) -> String {
    done(files, "FileMemory_ReadFile", json!({ "fileName": name }))
}

pub fn list(files: &FileMemory) -> Value {
    serde_json::from_str(&done(files, "FileMemory_ListFiles", json!({}))).unwrap()
}

pub fn search(files: &FileMemory, pattern: &str, glob: Option<&str>) -> Value {
    let arguments = json!({ "regexPattern": pattern, "filePattern": glob });
    serde_json::from_str(&done(files, "FileMemory_SearchFiles", arguments)).unwrap()
}

/// The names in a list or in search results.
pub fn names(found: &Value) -> Vec<String> {
    let elements = found.as_array().unwrap().iter();
    elements.filter_map(|element| element["fileName"].as_str()).map(str::to_owned).collect()
}

/// The text of the index message, if there is one.
pub fn index(files: &FileMemory) -> Option<String> {
    let context = files.context(S).unwrap();
    assert!(context.messages.len() <= 1);
    context.messages.first().map(|message| message.text().into_owned())
}

/// The lines of the index message that are entries.
pub fn entries(files: &FileMemory) -> Vec<String> {
    let index = index(files).unwrap_or_default();
    index.lines().filter(|line| line.starts_with("- ") || line.starts_with("… and")).map(str::to_owned).collect()
}

/// All paths below a folder, relative to it.
pub fn tree(folder: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            paths.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    paths.sort();
    paths
}
