//! The one tool that Anthropic's models know, `memory` of the type `memory_20250818`: paths under `/memories`.

use serde_json::json;

use super::arguments::Arguments;
use super::edit::{NoReplacement, insert, numbered, replace};
use super::notebook::{MAX_TEXT_BYTES, Notebook, file_name};
use super::{Answer, Failure, definition, refused, shown, text_property};
use crate::context::ToolDefinition;
use crate::error::Error;
use crate::file_memory::lines::lines;
use crate::file_memory::name::FileName;
use crate::file_memory::store::{Description, Precondition};

const FOLDER: &str = "/memories";
const COMMANDS: &str = "view, create, str_replace, insert, delete or rename";

pub(super) fn definitions() -> Vec<ToolDefinition> {
    let mut tool = definition(
        "memory",
        "The notebook of this session: text files directly under /memories, kept between model calls. Commands: view (a \
         file, or /memories for the list), create, str_replace, insert, delete, rename.",
        json!({
            "command": {
                "type": "string",
                "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
                "description": "What to do.",
            },
            "path": text_property("For all commands but rename: /memories/NAME; for view also /memories."),
            "view_range": {
                "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2,
                "description": "For view: first and last line, from 1; -1 for the file's last.",
            },
            "file_text": text_property("For create: the whole content."),
            "old_str": text_property("For str_replace: the text to replace, which has to occur exactly once."),
            "new_str": text_property("For str_replace: the text to put in its place."),
            "insert_line": { "type": "integer", "minimum": 0, "description": "For insert: the line to insert behind; 0 for the top." },
            "insert_text": text_property("For insert: the text."),
            "old_path": text_property("For rename: /memories/NAME as it is."),
            "new_path": text_property("For rename: /memories/NAME as it shall be."),
        }),
        &["command"],
    );
    tool.provider_type = Some("memory_20250818".into());
    vec![tool]
}

pub(super) fn answer(notebook: &Notebook<'_>, tool: &str, arguments: &Arguments<'_>) -> Option<Answer> {
    (tool == "memory").then(|| match arguments.text("command")? {
        "view" => view(notebook, arguments),
        "create" => create(notebook, arguments),
        "str_replace" => str_replace(notebook, arguments),
        "insert" => insert_text(notebook, arguments),
        "delete" => delete(notebook, arguments),
        "rename" => rename(notebook, arguments),
        other => refused(format!("There is no command '{}'. Use {COMMANDS}.", shown(other))),
    })
}

fn view(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let path = arguments.text("path")?;
    if path.trim_end_matches('/') == FOLDER {
        return view_folder(notebook);
    }
    let name = name_of(path)?;
    let text = notebook.text(&name)?.map_or_else(|| no_path(&name), |file| Ok(file.text))?;
    let (first, last) = arguments.optional_range("view_range")?.unwrap_or((1, -1));
    match numbered(&text, first, Some(last).filter(|last| *last != -1)) {
        Some(lines) => Ok(format!("{FOLDER}/{name}, with line numbers:\n{lines}")),
        None => {
            let count = lines(&text).count();
            refused(format!("`view_range` is not within the {count} line(s) of {FOLDER}/{name}."))
        }
    }
}

fn view_folder(notebook: &Notebook<'_>) -> Answer {
    const MAX_FILES: usize = 1_000;
    let files = notebook.store.list(notebook.folder)?;
    let mut text = format!("{} file(s) in {FOLDER}, with their sizes in bytes:", files.len());
    for file in files.iter().take(MAX_FILES) {
        text += &format!("\n{:>8}\t{FOLDER}/{}", file.size, file.name);
    }
    if let Some(more) = files.len().checked_sub(MAX_FILES).filter(|more| *more > 0) {
        text += &format!("\n… and {more} more");
    }
    Ok(text)
}

fn create(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let name = name_of(arguments.text("path")?)?;
    let text = arguments.text("file_text")?;
    match notebook.save(&name, text, Description::Remove, Precondition::Absent) {
        Ok(()) => Ok(format!("File created: {FOLDER}/{name}")),
        Err(Error::Conflict { .. }) => refused(format!(
            "The file {FOLDER}/{name} already exists. Change it with str_replace or insert, or delete it first."
        )),
        Err(error) => Err(error.into()),
    }
}

fn str_replace(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let name = name_of(arguments.text("path")?)?;
    let (old, new) = (arguments.text("old_str")?, arguments.optional_text("new_str")?.unwrap_or_default());
    let done = notebook.edit(&name, |content| {
        replace(content, old, new, false).or_else(|no| match no {
            NoReplacement::Empty => refused("`old_str` must not be empty."),
            NoReplacement::NotFound { .. } => {
                refused(format!("Nothing was replaced: `old_str` does not occur verbatim in {FOLDER}/{name}."))
            }
            NoReplacement::Ambiguous { count } => refused(format!(
                "Nothing was replaced: `old_str` occurs {count} times in {FOLDER}/{name}. Make it unique."
            )),
            NoReplacement::TooLarge { size } => refused(format!(
                "Not replaced: {FOLDER}/{name} would be {size} bytes large, and the limit is {MAX_TEXT_BYTES}."
            )),
        })
    })?;
    done.map_or_else(|| no_path(&name), |_| Ok(format!("The file {FOLDER}/{name} has been edited.")))
}

fn insert_text(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let name = name_of(arguments.text("path")?)?;
    let (after, text) = (arguments.number("insert_line")?, arguments.text("insert_text")?);
    let done = notebook.edit(&name, |content| {
        let count = lines(content).count();
        let changed = insert(content, after, text);
        changed.map_or_else(|| refused(format!("`insert_line` must be from 0 to {count}.")), |text| Ok((text, ())))
    })?;
    done.map_or_else(|| no_path(&name), |()| Ok(format!("The file {FOLDER}/{name} has been edited.")))
}

fn delete(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let path = arguments.text("path")?;
    if path.trim_end_matches('/') == FOLDER {
        return refused(format!("{FOLDER} itself cannot be deleted."));
    }
    let name = name_of(path)?;
    if notebook.store.delete(notebook.folder, &name)? { Ok(format!("Deleted {FOLDER}/{name}")) } else { no_path(&name) }
}

fn rename(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let (from, to) = (name_of(arguments.text("old_path")?)?, name_of(arguments.text("new_path")?)?);
    match notebook.store.rename(notebook.folder, &from, &to) {
        Ok(true) => Ok(format!("Renamed {FOLDER}/{from} to {FOLDER}/{to}")),
        Ok(false) => no_path(&from),
        Err(Error::Conflict { .. }) => refused(format!("The path {FOLDER}/{to} already exists.")),
        Err(error) => Err(error.into()),
    }
}

/// The file that a path names.
fn name_of(path: &str) -> Result<FileName, Failure> {
    match path.strip_prefix(FOLDER).and_then(|rest| rest.strip_prefix('/')) {
        Some(name) => file_name(name),
        None => refused(format!("The path '{}' must be {FOLDER}/ and the name of a file.", shown(path))),
    }
}

fn no_path<T>(name: &FileName) -> Result<T, Failure> {
    refused(format!("The path {FOLDER}/{name} does not exist."))
}
