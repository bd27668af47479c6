//! `files`: the notebooks of agents.

use std::fs;
use std::io::Write;
use std::path::Path;

use chat_memory::{FileMemory, LocalFileStore};
use serde::Deserialize;
use serde_json::json;

use crate::cli::{FilesArgs, FilesCommand};
use crate::failure::Failure;
use crate::out::{self, BOLD, DIM, Out, Styled};
use crate::text::{count, fit, harmless, on_a_line, path, size};

pub fn run(args: &FilesArgs, out: &mut Out) -> Result<(), Failure> {
    let root = &args.files;
    if !root.is_dir() {
        let text = format!(
            "there are no notebooks at {}: name their directory with --files, or in CHAT_MEMORY_FILES",
            path(root)
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
        Ok(text) => out.bytes(text.as_bytes()),
        // Bytes could drive the terminal.
        Err(_) if out.is_terminal() || out.is_json() => {
            Err(Failure::Usage("the file is no text; send it to a file or a program".to_owned()))
        }
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
    if out.is_json() {
        return out.data(&text);
    }
    let items: Vec<Item> = serde_json::from_str(&text).map_err(|error| Failure::Other(error.to_string()))?;
    let mut is_found = false;
    for item in &items {
        match item {
            Item::Note(note) => out::note(harmless(note)),
            Item::Found(file) => {
                is_found = true;
                out.line(Styled(BOLD, on_a_line(&file.file_name)))?;
                for Line { line_number, line } in &file.matching_lines {
                    out.line(format_args!("  {} {}", Styled(DIM, format!("{line_number:>4}:")), harmless(line)))?;
                }
            }
        }
    }
    if is_found { Ok(()) } else { Err(Failure::Nothing("no match".to_owned())) }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Found(Found),
    /// What the tool has to say beside that.
    Note(String),
}

/// What the tool says of a file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    file_name: String,
    matching_lines: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    line_number: u64,
    line: String,
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
        super::export::replace(&path, |file| file.write_all(&content).map_err(Failure::io("write to", &path)))?;
    }
    out.line(format_args!("{} to {}", count(entries.len() as u64, "file"), path(directory)))
}

fn no_files(session: &str) -> Failure {
    Failure::Nothing(format!("the session '{}' has no files", on_a_line(session)))
}
