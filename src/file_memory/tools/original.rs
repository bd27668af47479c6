//! The first five tools of the Agent Framework, by the names and arguments that models were told there.

use serde_json::json;

use super::arguments::Arguments;
use super::notebook::{Notebook, file_name};
use super::{Answer, definition, optional_text_property, text_property};
use crate::context::ToolDefinition;
use crate::file_memory::store::{Description, Precondition};

pub(super) fn definitions() -> Vec<ToolDefinition> {
    let name = || text_property("The name of the file, without a folder.");
    vec![
        definition(
            "FileMemory_SaveFile",
            "Save a file in the notebook of this session. A file of the same name is overwritten. Give large files a \
             description, so that they are found again.",
            json!({
                "fileName": name(),
                "content": text_property("The whole content of the file."),
                "description": optional_text_property("What is in the file, in a sentence. Without it the file has none."),
            }),
            &["fileName", "content"],
        ),
        definition(
            "FileMemory_ReadFile",
            "Read a file of the notebook. The answer is its content, or says that there is no such file.",
            json!({ "fileName": name() }),
            &["fileName"],
        ),
        definition(
            "FileMemory_DeleteFile",
            "Delete a file of the notebook, and its description.",
            json!({ "fileName": name() }),
            &["fileName"],
        ),
        definition("FileMemory_ListFiles", "List all files of the notebook with their descriptions.", json!({}), &[]),
        definition(
            "FileMemory_SearchFiles",
            "Search the files of the notebook, line by line, for a regular expression, without regard to case. The answer \
             lists files with a snippet and the matching lines, numbered from 1.",
            json!({
                "regexPattern": text_property("The regular expression, without look-around and back-references."),
                "filePattern": optional_text_property("Which files to search, such as \"*.md\" or \"research*\". All by default."),
            }),
            &["regexPattern"],
        ),
    ]
}

pub(super) fn answer(notebook: &Notebook<'_>, tool: &str, arguments: &Arguments<'_>) -> Option<Answer> {
    Some(match tool {
        "FileMemory_SaveFile" => save(notebook, arguments, "saved"),
        "FileMemory_ReadFile" => read(notebook, arguments),
        "FileMemory_DeleteFile" => delete(notebook, arguments),
        "FileMemory_ListFiles" => list(notebook, arguments),
        "FileMemory_SearchFiles" => search(notebook, arguments),
        _ => return None,
    })
}

pub(super) fn save(notebook: &Notebook<'_>, arguments: &Arguments<'_>, done: &str) -> Answer {
    let name = file_name(arguments.text("fileName")?)?;
    let content = arguments.text("content")?;
    let description = arguments.optional_text("description")?.filter(|description| !description.trim().is_empty());
    let change = description.map_or(Description::Remove, Description::Set);
    notebook.save(&name, content, change, Precondition::None)?;
    let with = if description.is_some() { " with description" } else { "" };
    Ok(format!("File '{name}' {done}{with}."))
}

pub(super) fn read(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    notebook.text_of(&file_name(arguments.text("fileName")?)?)
}

pub(super) fn delete(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let name = file_name(arguments.text("fileName")?)?;
    notebook.delete(&name)?;
    Ok(format!("File '{name}' deleted."))
}

pub(super) fn list(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    notebook.list(files_argument(arguments)?)
}

pub(super) fn search(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    notebook.search(arguments.text("regexPattern")?, files_argument(arguments)?)
}

/// The glob has another name in today's set.
fn files_argument<'a>(arguments: &'a Arguments<'_>) -> Result<Option<&'a str>, super::Failure> {
    Ok(arguments.optional_text("filePattern")?.or(arguments.optional_text("globPattern")?))
}
