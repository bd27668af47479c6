//! Today's tools of the Agent Framework, and two more: appending, and reading a range of lines.

use serde_json::json;

use super::arguments::Arguments;
use super::edit::{LineEdit, NoReplacement, numbered, replace, replace_lines};
use super::notebook::{MAX_TEXT_BYTES, Notebook, file_name, not_found};
use super::{Answer, Failure, definition, optional_text_property, original, refused, text_property};
use crate::context::ToolDefinition;

pub(super) fn definitions() -> Vec<ToolDefinition> {
    let name = || text_property("The name of the file, without a folder.");
    let glob = || optional_text_property("Which files, such as \"*.md\" or \"research*\". All by default.");
    vec![
        definition(
            "file_memory_write",
            "Write a file in the notebook of this session. A file of the same name is overwritten. Give large files a \
             description, so that they are found again.",
            json!({
                "fileName": name(),
                "content": text_property("The whole content of the file."),
                "description": optional_text_property("What is in the file, in a sentence. Without it the file has none."),
            }),
            &["fileName", "content"],
        ),
        definition(
            "file_memory_read",
            "Read a file of the notebook. The answer is its content, or says that there is no such file.",
            json!({ "fileName": name() }),
            &["fileName"],
        ),
        definition(
            "file_memory_read_lines",
            "Read a range of lines of a file of the notebook. Each line is shown with its number and a tab in front.",
            json!({
                "fileName": name(),
                "startLine": { "type": "integer", "minimum": 1, "description": "The first line, from 1." },
                "endLine": {
                    "type": ["integer", "null"], "default": null, "minimum": 1,
                    "description": "The last line. The file's last by default.",
                },
            }),
            &["fileName", "startLine"],
        ),
        definition(
            "file_memory_append",
            "Add text to the end of a file of the notebook, exactly as it is given; the file is created where it is missing.",
            json!({ "fileName": name(), "content": text_property("The text to add.") }),
            &["fileName", "content"],
        ),
        definition(
            "file_memory_delete",
            "Delete a file of the notebook, and its description.",
            json!({ "fileName": name() }),
            &["fileName"],
        ),
        definition(
            "file_memory_ls",
            "List the files of the notebook with their descriptions.",
            json!({ "globPattern": glob() }),
            &[],
        ),
        definition(
            "file_memory_grep",
            "Search the files of the notebook, line by line, for a regular expression, without regard to case. The answer \
             lists files with a snippet and the matching lines, numbered from 1.",
            json!({
                "regexPattern": text_property("The regular expression, without look-around and back-references."),
                "globPattern": glob(),
            }),
            &["regexPattern"],
        ),
        definition(
            "file_memory_replace",
            "Replace a text in a file of the notebook. It has to occur exactly once, unless replaceAll is true.",
            json!({
                "fileName": name(),
                "oldString": text_property("The text to replace, exactly as it is in the file."),
                "newString": text_property("The text to put in its place."),
                "replaceAll": { "type": "boolean", "default": false, "description": "Whether to replace every occurrence." },
            }),
            &["fileName", "oldString", "newString"],
        ),
        definition(
            "file_memory_replace_lines",
            "Replace whole lines of a file of the notebook, by their numbers from 1 as in search results.",
            json!({
                "fileName": name(),
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "line_number": { "type": "integer", "minimum": 1, "description": "The line, from 1." },
                            "new_line": text_property("The new line; an empty text deletes the line."),
                            "expected_line": optional_text_property("What the line is now; nothing is done if it is not."),
                        },
                        "required": ["line_number", "new_line"],
                    },
                },
            }),
            &["fileName", "edits"],
        ),
    ]
}

pub(super) fn answer(notebook: &Notebook<'_>, tool: &str, arguments: &Arguments<'_>) -> Option<Answer> {
    Some(match tool {
        "file_memory_write" => original::save(notebook, arguments, "written"),
        "file_memory_read" => original::read(notebook, arguments),
        "file_memory_read_lines" => read_lines(notebook, arguments),
        "file_memory_append" => append(notebook, arguments),
        "file_memory_delete" => original::delete(notebook, arguments),
        "file_memory_ls" => original::list(notebook, arguments),
        "file_memory_grep" => original::search(notebook, arguments),
        "file_memory_replace" => replace_text(notebook, arguments),
        "file_memory_replace_lines" => replace_whole_lines(notebook, arguments),
        _ => return None,
    })
}

fn read_lines(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let name = file_name(arguments.text("fileName")?)?;
    let (start, end) = (arguments.number("startLine")?, arguments.optional_number("endLine")?);
    let text = notebook.text_of(&name)?;
    let count = crate::file_memory::lines::lines(&text).count();
    numbered(&text, start, end)
        .ok_or_else(|| Failure::Refused(format!("There are no such lines in '{name}', which has {count} line(s).")))
}

fn append(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let name = file_name(arguments.text("fileName")?)?;
    notebook.append(&name, arguments.text("content")?)?;
    Ok(format!("Appended to '{name}'."))
}

fn replace_text(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let name = file_name(arguments.text("fileName")?)?;
    let (old, new) = (arguments.text("oldString")?, arguments.text("newString")?);
    let is_all = arguments.flag("replaceAll")?;
    let count = notebook.edit(&name, |content| {
        replace(content, old, new, is_all).or_else(|no| match no {
            NoReplacement::Empty => refused("`oldString` must not be empty."),
            NoReplacement::NotFound { has_other_line_ends: true } => refused(format!(
                "`oldString` does not occur in '{name}', whose lines end with \\r\\n: give them so, or replace line by line."
            )),
            NoReplacement::NotFound { .. } => refused(format!("`oldString` does not occur in '{name}'.")),
            NoReplacement::Ambiguous { count } => refused(format!(
                "`oldString` occurs {count} times in '{name}'. Give more of the text around it, or set `replaceAll`."
            )),
            NoReplacement::TooLarge { size } => refused(format!(
                "Not replaced: '{name}' would be {size} bytes large, and the limit is {MAX_TEXT_BYTES}."
            )),
        })
    })?;
    count.map_or_else(|| not_found(&name), |count| Ok(format!("Replaced {count} occurrence(s) in '{name}'.")))
}

fn replace_whole_lines(notebook: &Notebook<'_>, arguments: &Arguments<'_>) -> Answer {
    let name = file_name(arguments.text("fileName")?)?;
    let mut edits = Vec::new();
    for edit in arguments.objects("edits")? {
        let expected = edit.optional_text("expected_line")?.map(str::to_owned);
        edits.push(LineEdit { number: edit.number("line_number")?, new: edit.text("new_line")?.to_owned(), expected });
    }
    if edits.is_empty() {
        return refused("`edits` must not be empty.");
    }
    let done = notebook.edit(&name, |content| Ok((replace_lines(content, &edits, name.as_str())?, ())))?;
    done.map_or_else(|| not_found(&name), |()| Ok(format!("Replaced {} line(s) in '{name}'.", edits.len())))
}
