//! Conversations as Markdown.

use std::fmt::Write as _;

use chat_memory::{Content, Entry, Media, MediaSource, Message, ResultPart};

use crate::text::{harmless, on_a_line, size};
use crate::time;

/// Writes a conversation. What was said is quoted, so that nothing in it, no heading, no open fence and no open comment, reaches
/// beyond its message; inside it stands as it is, for a model's answers are Markdown already. What tools said is fenced.
pub fn write(id: &str, entries: &[Entry]) -> String {
    let mut page = format!("# {}\n", heading(id));
    for entry in entries {
        let said = entry.message.created_at().unwrap_or(entry.recorded_at);
        let name = entry.message.name().map(|name| format!(" ({})", heading(name))).unwrap_or_default();
        let role = entry.message.role();
        _ = write!(page, "\n## {}{name}\n\n*#{} · {}*\n", role.as_str(), entry.seq, time::local(said));
        message(&mut page, &entry.message);
    }
    page
}

fn message(page: &mut String, message: &Message) {
    for content in message.content() {
        page.push('\n');
        match content {
            Content::Text(text) => page.push_str(&quoted(text)),
            Content::Media(media) => page.push_str(&describe(media)),
            Content::ToolCall(call) => {
                _ = write!(page, "**Calls {}** {}\n\n", code(&call.name), code(&call.id));
                page.push_str(&fenced(&call.arguments, "json"));
            }
            Content::ToolResult(result) => {
                let of = result.name.as_deref().unwrap_or(&result.call_id);
                let failed = if result.is_error { " (failed)" } else { "" };
                _ = writeln!(page, "**Result of {}**{failed}", code(of));
                for part in &result.parts {
                    page.push('\n');
                    match part {
                        ResultPart::Text(text) => page.push_str(&fenced(text, "")),
                        ResultPart::Media(media) => page.push_str(&describe(media)),
                        ResultPart::Opaque(opaque) => page.push_str(&fenced(&opaque.json, "json")),
                        _ => {}
                    }
                    page.push('\n');
                }
            }
            Content::Reasoning(reasoning) => {
                _ = write!(page, "*Thinks*\n\n{}", quoted(&reasoning.text));
            }
            Content::Opaque(opaque) => page.push_str(&fenced(&opaque.json, "json")),
            _ => {}
        }
        page.push('\n');
    }
    if message.content().is_empty() {
        page.push_str("\n*(no content)*\n");
    }
}

/// A heading is one line, and holds no markup of its own.
fn heading(text: &str) -> String {
    let escaped = on_a_line(text).chars().fold(String::new(), |mut escaped, char| {
        if "\\`*_[]<>#|~".contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
        escaped
    });
    if escaped.is_empty() { "(no name)".to_owned() } else { escaped }
}

/// A text in a quotation. To Markdown a carriage return ends a line too.
fn quoted(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<String> =
        harmless(&text).split('\n').map(|line| format!("> {line}").trim_end().to_owned()).collect();
    lines.join("\n")
}

/// A block that its text cannot end: the fence is longer than any in it.
fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", harmless(&text.replace('\r', "\n")))
}

fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{}{space}{ticks}", on_a_line(text))
}

/// The longest run of back-ticks.
fn longest_run(text: &str) -> usize {
    text.split(|char| char != '`').map(str::len).max().unwrap_or_default()
}

fn describe(media: &Media) -> String {
    let kind = on_a_line(media.mime_type.as_deref().unwrap_or("media"));
    match &media.source {
        MediaSource::Url(url) => format!("[{}](<{}>)", heading(&kind), on_a_line(url).replace(['<', '>'], "")),
        MediaSource::Bytes(bytes) => format!("*({kind}, {})*", size(bytes.len() as u64)),
        _ => format!("*({kind})*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn no_text_breaks_out_of_its_message() {
        let said = Message::assistant("# Title\n```\n# no heading\n\r## heading\n<!-- heading").with_tool_call(
            "c`1",
            "look",
            "``` inside",
        );
        let page = write("a *b*\n# c", &[Entry::new(0, UNIX_EPOCH, said)]);
        assert!(page.starts_with("# a \\*b\\* \\# c\n"), "{page}");
        assert!(page.contains("\n> # Title\n> ```\n> # no heading\n>\n> ## heading\n"), "{page}");
        // Every line of the text is inside the quotation.
        let outside = page.lines().filter(|line| line.contains("heading") || line.contains("Title"));
        assert!(outside.clone().count() > 0 && outside.clone().all(|line| line.starts_with("> ")), "{page}");
        assert!(page.contains("\n````json\n``` inside\n````\n"), "{page}");
        assert!(page.contains("``c`1``"), "{page}");
    }
}
