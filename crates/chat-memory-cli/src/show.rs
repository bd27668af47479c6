//! A conversation as a transcript for people.

use chat_memory::{Content, Entry, Media, MediaSource, Message, ResultPart, Role, ToolResult};

use anstyle::Style;

use crate::failure::Failure;
use crate::out::{self, BOLD, CYAN, DIM, GREEN, MAGENTA, Out, RED, Styled, YELLOW};
use crate::text::{cut, fit, harmless, on_a_line, size};
use crate::time;

/// How much of a message is shown.
#[derive(Debug, Clone, Copy)]
pub struct Detail {
    /// Calls, results and reasoning as they are, not folded to a line.
    pub is_full: bool,
    /// So many characters of each text.
    pub max_chars: Option<usize>,
    /// So many columns for what is folded.
    pub width: usize,
    /// Lines are broken at words, as a terminal does not.
    pub is_wrapped: bool,
}

impl Detail {
    /// A message as far as it fits a glance.
    pub fn new(out: &Out) -> Self {
        let is_wrapped = out.is_terminal();
        Self { is_full: false, max_chars: None, width: if is_wrapped { out::width() } else { 100 }, is_wrapped }
    }
}

const INDENT: &str = "    ";

/// An entry of a history, under its number and the time when it was said.
pub fn entry(out: &mut Out, entry: &Entry, detail: Detail) -> Result<(), Failure> {
    let said = entry.message.created_at().unwrap_or(entry.recorded_at);
    let place = format!("#{}", entry.seq);
    heading(out, &place, &entry.message, &time::local(said))?;
    body(out, &entry.message, detail)
}

/// A message of a view, which has no number.
pub fn message(out: &mut Out, message: &Message, detail: Detail) -> Result<(), Failure> {
    heading(out, "", message, &message.created_at().map(time::local).unwrap_or_default())?;
    body(out, message, detail)
}

fn heading(out: &mut Out, place: &str, message: &Message, time: &str) -> Result<(), Failure> {
    let style = role_style(message.role());
    let name = message.name().map(|name| format!(" ({})", on_a_line(name))).unwrap_or_default();
    let place = if place.is_empty() { String::new() } else { format!("{place} ") };
    let role = Styled(style.bold(), message.role().as_str());
    out.line(format!("{}{role}{name} {}", Styled(DIM, place), Styled(DIM, time)).trim_end())
}

pub fn role_style(role: Role) -> Style {
    match role {
        Role::System | Role::Developer => MAGENTA,
        Role::User => GREEN,
        Role::Assistant => CYAN,
        Role::Tool => YELLOW,
        _ => BOLD,
    }
}

fn body(out: &mut Out, message: &Message, detail: Detail) -> Result<(), Failure> {
    for content in message.content() {
        match content {
            Content::Text(text) => indented(out, text, detail)?,
            Content::Media(media) => out.line(format_args!("{INDENT}[{}]", describe(media)))?,
            Content::ToolCall(call) => {
                let name = Styled(BOLD, on_a_line(&call.name));
                if detail.is_full {
                    out.line(format_args!("{INDENT}-> {name} {}", Styled(DIM, on_a_line(&call.id))))?;
                    indented(out, &call.arguments, detail)?;
                } else {
                    out.line(format_args!("{INDENT}-> {name} {}", folded(&call.arguments, detail)))?;
                }
            }
            Content::ToolResult(answer) => result(out, answer, detail)?,
            Content::Reasoning(reasoning) => {
                let hidden = if reasoning.redacted.is_some() { " (hidden by the provider)" } else { "" };
                if detail.is_full {
                    out.line(format_args!("{INDENT}{}{hidden}", Styled(DIM, "~ thinks")))?;
                    indented(out, &reasoning.text, detail)?;
                } else {
                    let text = folded(&reasoning.text, detail);
                    out.line(format_args!("{INDENT}{}{hidden} {}", Styled(DIM, "~"), Styled(DIM, text)))?;
                }
            }
            Content::Opaque(opaque) => {
                let provider = on_a_line(&opaque.provider);
                out.line(format_args!("{INDENT}[a part of {provider}'s own, {}]", size(opaque.json.len() as u64)))?;
                if detail.is_full {
                    indented(out, &opaque.json, detail)?;
                }
            }
            _ => out.line(format_args!("{INDENT}[a part that this version does not know]"))?,
        }
    }
    if message.content().is_empty() {
        out.line(format_args!("{INDENT}{}", Styled(DIM, "(no content)")))?;
    }
    out.line("")
}

fn result(out: &mut Out, result: &ToolResult, detail: Detail) -> Result<(), Failure> {
    let name = on_a_line(result.name.as_deref().unwrap_or(&result.call_id));
    let failed = if result.is_error { format!(" {}", Styled(RED, "failed")) } else { String::new() };
    let parts = result.parts.iter().map(|part| match part {
        ResultPart::Text(text) => text.clone(),
        ResultPart::Media(media) => format!("[{}]", describe(media)),
        ResultPart::Opaque(opaque) => format!("[a part of {}'s own]", opaque.provider),
        _ => "[a part that this version does not know]".to_owned(),
    });
    let text = parts.collect::<Vec<_>>().join("\n");
    if detail.is_full {
        out.line(format_args!(
            "{INDENT}<- {}{failed} {}",
            Styled(BOLD, name),
            Styled(DIM, on_a_line(&result.call_id))
        ))?;
        indented(out, &text, detail)
    } else {
        out.line(format_args!("{INDENT}<- {}{failed} {}", Styled(BOLD, name), folded(&text, detail)))
    }
}

/// A text on one line, and how much more there is.
fn folded(text: &str, detail: Detail) -> String {
    let columns = detail.width.saturating_sub(30).max(20);
    let line = on_a_line(cut(text, Some(columns * 4)).0);
    let lines = text.trim().lines().count();
    let more = if lines > 1 { format!(" ({lines} lines)") } else { String::new() };
    format!("{}{}", fit(&line, columns), Styled(DIM, more))
}

fn indented(out: &mut Out, text: &str, detail: Detail) -> Result<(), Failure> {
    let (text, left_out) = cut(text, detail.max_chars);
    let text = harmless(text);
    for line in text.split('\n') {
        if !detail.is_wrapped {
            out.line(format_args!("{INDENT}{line}").to_string().trim_end())?;
            continue;
        }
        let inner: String = line.chars().take_while(|char| *char == ' ').take(detail.width / 2).collect();
        let options = textwrap::Options::new(detail.width.saturating_sub(INDENT.len()).max(10));
        for part in textwrap::wrap(line, options.subsequent_indent(&inner)) {
            out.line(format_args!("{INDENT}{part}").to_string().trim_end())?;
        }
    }
    if left_out > 0 {
        out.line(format_args!("{INDENT}{}", Styled(DIM, format!("… {left_out} more characters"))))?;
    }
    Ok(())
}

fn describe(media: &Media) -> String {
    let kind = on_a_line(media.mime_type.as_deref().unwrap_or("media"));
    match &media.source {
        MediaSource::Url(url) if url.starts_with("data:") => format!("{kind}, {} of data URL", size(url.len() as u64)),
        MediaSource::Url(url) => format!("{kind}, {}", fit(&on_a_line(url), 200)),
        MediaSource::Bytes(bytes) => format!("{kind}, {}", size(bytes.len() as u64)),
        _ => kind,
    }
}
