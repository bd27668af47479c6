//! Conversations in forms for people and other programs.

pub mod archive;
pub mod html;
pub mod markdown;

use chat_memory::transcript::{anthropic, openai};
use chat_memory::{Entry, Message};

/// A form to export to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Our own JSON Lines: a message a line, with everything that is known of it; many conversations in one file
    Jsonl,
    /// The messages of OpenAI's chat completions, as a JSON array
    Openai,
    /// Anthropic's Messages: a JSON array, or where there are instructions an object of system and messages
    Anthropic,
    /// Markdown
    Markdown,
    /// One page that needs nothing else
    Html,
}

/// A conversation in a form, and what the form cannot say of it.
pub struct Written {
    pub text: String,
    pub unsaid: Vec<String>,
}

impl Format {
    /// What files of this form end in.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Openai | Format::Anthropic => "json",
            Format::Markdown => "md",
            Format::Html => "html",
        }
    }

    /// Writes a whole conversation.
    pub fn write(self, id: &str, entries: &[Entry]) -> Written {
        let messages = || entries.iter().map(|entry| entry.message.clone()).collect::<Vec<Message>>();
        let plain = |text| Written { text, unsaid: Vec::new() };
        let exported = |export: chat_memory::transcript::Export| {
            let warnings = export.warnings.iter();
            let unsaid = warnings.map(|warning| format!("message {}: {}", warning.position, warning.text)).collect();
            Written { text: export.to_json(), unsaid }
        };
        match self {
            Format::Jsonl => plain(entries.iter().map(|entry| archive::line(id, entry) + "\n").collect()),
            Format::Openai => exported(openai::write(&messages())),
            Format::Anthropic => exported(anthropic::write(&messages())),
            Format::Markdown => plain(markdown::write(id, entries)),
            Format::Html => plain(html::write(id, entries)),
        }
    }
}
