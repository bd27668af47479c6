//! `files`: the notebooks of agents.

use std::fs;
use std::path::Path;

use chat_memory::{FileMemory, LocalFileStore};
use serde_json::json;

use crate::cli::{FilesArgs, FilesCommand};
use crate::failure::Failure;
use crate::out::Out;
use crate::text::{count, fit, harmless, on_a_line, size};

pub fn run(args: &FilesArgs, out: &mut Out) -> Result<(), Failure> {
    let root = &args.files;
    if !root.is_dir() {
        let text = format!(
            "there are no notebooks at {}: name their directory with --files, or in CHAT_MEMORY_FILES",
            root.display()
        );
        return Err(Failure::Nothing(text));
    }
    let files = FileMemory::new(LocalFileStore::open(root)?);
    match &args.command {
        FilesCommand::List { session } => list(&files, session, out),
        FilesCommand::Show { session, name } => show(&files, session, name, out),
        FilesCommand::Search { session, pattern } => search(&files, session, pattern, out),
        FilesCommand::Export { session, directory } => export(&files, session, directory, out),
    }
}

fn list(files: &FileMemory, session: &str, out: &mut Out) -> Result<(), Failure> {
    let entries = files.list(session)?;
    if entries.is_empty() {
        return Err(no_files(session));
    }
    let width = entries.iter().map(|entry| entry.name.as_str().chars().count()).max().unwrap_or_default().min(50);
    for entry in &entries {
        if out.is_json() {
            out.json(&json!({ "name": entry.name.as_str(), "bytes": entry.size, "description": entry.description.as_deref() }))?;
            continue;
        }
        let name = on_a_line(entry.name.as_str());
        let description = on_a_line(entry.description.as_deref().unwrap_or_default());
        let line = format!("{name:<width$}  {:>9}  {}", size(entry.size), fit(&description, 100));
        out.line(line.trim_end())?;
    }
    Ok(())
}

fn show(files: &FileMemory, session: &str, name: &str, out: &mut Out) -> Result<(), Failure> {
    let Some(content) = files.read(session, name)? else {
        return Err(Failure::Nothing(format!("the session has no file '{}'", on_a_line(name))));
    };
    match String::from_utf8(content) {
        Ok(text) if out.is_json() => out.json(&json!({ "name": name, "content": text })),
        Ok(text) if out.is_terminal() => out.text(harmless(&text)),
        Ok(text) => out.text(text),
        Err(error) => out.bytes(error.as_bytes()),
    }
}

fn search(files: &FileMemory, session: &str, pattern: &str, out: &mut Out) -> Result<(), Failure> {
    let arguments = json!({ "regexPattern": pattern });
    let output = files.call(session, "FileMemory_SearchFiles", &arguments)?;
    if output.is_error {
        return Err(Failure::Usage(output.text));
    }
    let text = output.text;
    match out.is_json() {
        true => out.line(text),
        false => out.line(harmless(&text)),
    }
}

fn export(files: &FileMemory, session: &str, directory: &Path, out: &mut Out) -> Result<(), Failure> {
    let entries = files.list(session)?;
    if entries.is_empty() {
        return Err(no_files(session));
    }
    fs::create_dir_all(directory).map_err(Failure::io("create", directory))?;
    for entry in &entries {
        let name = entry.name.as_str();
        let Some(content) = files.read(session, name)? else {
            continue; // deleted since
        };
        // The name was checked by the notebook: it is one component, and no way out.
        let path = directory.join(name);
        fs::write(&path, content).map_err(Failure::io("write to", &path))?;
    }
    out.line(format_args!("{} to {}", count(entries.len() as u64, "file"), directory.display()))
}

fn no_files(session: &str) -> Failure {
    Failure::Nothing(format!("the session '{}' has no files", on_a_line(session)))
}
