//! Conversations in and out of the JSON forms that others read and write.
//!
//! What a form cannot say is reported as a [`Warning`], never dropped in silence.

mod base64;
mod json;
pub mod jsonl;
pub mod openai;

use std::fmt;

use crate::message::Message;

/// Messages read from another form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Import {
    /// The messages, in the order of the text.
    pub messages: Vec<Message>,
    /// What could not be taken as it stands.
    pub warnings: Vec<Warning>,
}

/// Messages written in another form.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Export {
    /// One JSON object per message of that form, each on a single line.
    pub objects: Vec<String>,
    /// What the form cannot say.
    pub warnings: Vec<Warning>,
}

impl Export {
    /// One JSON array, a message a line.
    pub fn to_json(&self) -> String {
        if self.objects.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", self.objects.join(",\n")) }
    }

    /// JSON Lines: an object a line.
    pub fn to_json_lines(&self) -> String {
        self.objects.iter().map(|object| format!("{object}\n")).collect()
    }
}

/// Shows how much was written, never what.
impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").field("objects", &self.objects.len()).field("warnings", &self.warnings).finish()
    }
}

/// Something that a conversion changed or left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The message's position among the messages that were converted, from 0.
    pub position: usize,
    /// What was changed or left out. It never holds what was said.
    pub text: String,
}
