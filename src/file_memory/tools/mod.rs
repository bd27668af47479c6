//! The tools by which a model uses its notebook: three generations of names over the same files.

mod anthropic;
mod arguments;
mod current;
mod edit;
mod notebook;
mod original;

use serde_json::{Value, json};

pub(crate) use notebook::Notebook;

use crate::context::{ToolDefinition, ToolOutput};
use crate::error::{Error, Result};
use arguments::Arguments;

/// Which names a model is offered. Whichever it is, calls by all names are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ToolNames {
    /// `FileMemory_SaveFile`, `_ReadFile`, `_DeleteFile`, `_ListFiles`, `_SearchFiles`: the Agent Framework's first set.
    #[default]
    Original,
    /// `file_memory_write`, `_read`, `_delete`, `_ls`, `_grep`, `_replace`, `_replace_lines`: its set of today, and here
    /// `_append` and `_read_lines` too.
    Current,
    /// The one tool `memory` (`memory_20250818`) that Anthropic's models know.
    Anthropic,
}

impl ToolNames {
    /// The tools, as model providers want to be told of them.
    pub fn definitions(self) -> Vec<ToolDefinition> {
        match self {
            ToolNames::Original => original::definitions(),
            ToolNames::Current => current::definitions(),
            ToolNames::Anthropic => anthropic::definitions(),
        }
    }

    /// A text with `{write}`, `{read}`, `{list}` and `{search}` as this set names them.
    pub(crate) fn named(self, text: &str) -> String {
        let [write, read, list, search] = match self {
            ToolNames::Original => {
                ["FileMemory_SaveFile", "FileMemory_ReadFile", "FileMemory_ListFiles", "FileMemory_SearchFiles"]
            }
            ToolNames::Current => ["file_memory_write", "file_memory_read", "file_memory_ls", "file_memory_grep"],
            ToolNames::Anthropic => [
                "`memory` with the command `create`",
                "`memory` with the command `view`",
                "`memory` with the command `view` and the path `/memories`",
                "`memory` with the command `view`, file by file",
            ],
        };
        let quoted = |name: &str| if name.contains('`') { name.to_owned() } else { format!("`{name}`") };
        text.replace("{write}", &quoted(write))
            .replace("{read}", &quoted(read))
            .replace("{list}", &quoted(list))
            .replace("{search}", &quoted(search))
    }
}

/// Answers a call, or says with `None` that the tool is none of these.
pub(crate) fn answer(notebook: &Notebook<'_>, tool: &str, arguments: &Value) -> Option<Result<ToolOutput>> {
    let answer = match Arguments::new(arguments) {
        Ok(arguments) => original::answer(notebook, tool, &arguments)
            .or_else(|| current::answer(notebook, tool, &arguments))
            .or_else(|| anthropic::answer(notebook, tool, &arguments))?,
        Err(failure) if is_known(tool) => Err(failure),
        Err(_) => return None,
    };
    Some(match answer {
        Ok(text) => Ok(ToolOutput::done(text)),
        Err(Failure::Refused(text)) => Ok(ToolOutput::refused(text)),
        Err(Failure::Failed(error)) => Err(error),
    })
}

/// Whether one of the sets has a tool of that name.
pub(crate) fn is_known(tool: &str) -> bool {
    let sets = [ToolNames::Original, ToolNames::Current, ToolNames::Anthropic];
    sets.iter().any(|set| set.definitions().iter().any(|definition| definition.name == tool))
}

/// A text for the model, or why there is none.
type Answer = Result<String, Failure>;

/// Why a call did not do what it was asked to do.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The model can do something about it.
    Refused(String),
    /// It cannot.
    Failed(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::TooLarge { what, size, limit } => {
                Failure::Refused(format!("Not saved: {what} would be {size}, and the limit is {limit}."))
            }
            Error::Conflict { reason } => Failure::Refused(format!("Not done: {reason}.")),
            Error::InvalidFileName { rule } => Failure::Refused(format!("The file name is not allowed: {rule}.")),
            other => Failure::Failed(other),
        }
    }
}

fn refused<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Refused(text.into()))
}

/// A text of the model's in a text for the model: short, and on one line.
fn shown(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let unseen = super::name::is_unseen;
    let visible = |char: char| if unseen(char) { char.escape_unicode().to_string() } else { char.to_string() };
    let start: String = text.chars().take(MAX_CHARS).map(visible).collect();
    if text.chars().nth(MAX_CHARS).is_some() { start + "…" } else { start }
}

fn definition(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolDefinition {
    let parameters = match required {
        [] => json!({ "type": "object", "properties": properties }),
        _ => json!({ "type": "object", "properties": properties, "required": required }),
    };
    ToolDefinition { name: name.into(), description: description.into(), parameters, provider_type: None }
}

fn text_property(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn optional_text_property(description: &str) -> Value {
    json!({ "type": ["string", "null"], "default": null, "description": description })
}
