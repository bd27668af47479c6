//! Texts that others wrote, made fit for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use chat_memory::{Content, Message, ResultPart, Role};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A text that cannot drive a terminal: control characters, but for line feeds and tabs, become their pictures (␛), and marks that
/// turn the direction of writing become visible.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::with_capacity(text.len());
    for char in text.chars() {
        match u32::from(char) {
            _ if !is_harmful(char) => harmless.push(char),
            code @ 0..0x20 => harmless.extend(char::from_u32(0x2400 + code)),
            0x7f => harmless.push('\u{2421}'),
            code => _ = write!(harmless, "<U+{code:04X}>"),
        }
    }
    Cow::Owned(harmless)
}

fn is_harmful(char: char) -> bool {
    (char.is_control() && char != '\n' && char != '\t')
        || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// A file's name, fit for a terminal.
pub fn path(path: &Path) -> String {
    harmless(&path.display().to_string()).into_owned()
}

/// A text on one line: white space of any kind becomes one space.
pub fn on_a_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    harmless(&words.join(" ")).into_owned()
}

/// A text on one line with all its blanks: what would end the line becomes visible.
pub fn one_line(text: &str) -> String {
    harmless(text).replace('\n', "␊").replace('\t', "␉")
}

/// As much of a text as fits this many columns, and `…` where something was left out. What looks like one character stays one.
pub fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    if text.len() <= columns || text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let mut used = 1;
    let fits = text.graphemes(true).take_while(|grapheme| {
        used += grapheme.width();
        used <= columns
    });
    Cow::Owned(fits.collect::<String>() + "…")
}

/// The first characters of a text, and how many were left out. What looks like one character stays one.
pub fn cut(text: &str, max_chars: Option<usize>) -> (&str, usize) {
    let Some(max) = max_chars.filter(|max| text.len() > *max) else {
        return (text, 0);
    };
    let mut chars = 0;
    let mut end = 0;
    for grapheme in text.graphemes(true) {
        chars += grapheme.chars().count();
        if chars > max {
            break;
        }
        end += grapheme.len();
    }
    let (head, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    (head, rest.chars().count())
}

/// The first words that a person would know a conversation by: the first text of a user, or of anybody.
pub fn first_words(messages: &[Message]) -> String {
    let text = |message: &&Message| !message.text().trim().is_empty();
    let first = messages.iter().filter(text).find(|message| message.role() == Role::User);
    let first = first.or_else(|| messages.iter().find(text));
    // A line on a terminal is short; the text may be megabytes.
    first.map(|message| on_a_line(cut(message.text().trim_start(), Some(300)).0)).unwrap_or_default()
}

/// All texts in a message: what was said, thought, called and answered.
pub fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.content().iter().flat_map(|content| -> Box<dyn Iterator<Item = &str>> {
        match content {
            Content::Text(text) => Box::new(std::iter::once(text.as_str())),
            Content::Reasoning(reasoning) => Box::new(std::iter::once(reasoning.text.as_str())),
            Content::ToolCall(call) => Box::new([call.name.as_str(), call.arguments.as_str()].into_iter()),
            Content::ToolResult(result) => Box::new(result.parts.iter().filter_map(|part| match part {
                ResultPart::Text(text) => Some(text.as_str()),
                _ => None,
            })),
            _ => Box::new(std::iter::empty()),
        }
    })
}

/// A number of bytes for people.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        _ => indicatif::DecimalBytes(bytes).to_string(),
    }
}

/// "1 message", "2 messages".
pub fn count(number: u64, one: &str) -> String {
    let number_text = indicatif::HumanCount(number);
    if number == 1 { format!("{number_text} {one}") } else { format!("{number_text} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_drives_a_terminal() {
        assert_eq!(harmless("a\tb\nc"), "a\tb\nc");
        assert_eq!(harmless("\u{1b}[2Jgone\r\u{7f}\u{9b}"), "␛[2Jgone␍␡<U+009B>");
        assert_eq!(harmless("a\u{202e}b\u{2028}"), "a<U+202E>b<U+2028>");
        assert_eq!(harmless("👩‍👩‍👧‍👦 سلام"), "👩‍👩‍👧‍👦 سلام");
    }

    #[test]
    fn cuts_are_at_the_edges_of_what_looks_like_a_character() {
        let family = "👩‍👩‍👧‍👦";
        for columns in 0..12 {
            let text = format!("ab{family}{family}");
            let fitted = fit(&text, columns);
            assert!(fitted.width() <= columns.max(1), "{columns}");
            assert!(!fitted.contains("\u{200d}…"));
        }
        assert_eq!(cut("漢字漢字", Some(3)), ("漢字漢", 1));
        assert_eq!(cut("short", Some(30)), ("short", 0));
        assert_eq!(cut(family, Some(3)).0, "");
    }

    #[test]
    fn the_first_words_are_a_users() {
        let messages = [Message::system("rules"), Message::user("  Where\n did we stop? "), Message::assistant("x")];
        assert_eq!(first_words(&messages), "Where did we stop?");
        assert_eq!(first_words(&[Message::assistant("only me")]), "only me");
        assert_eq!(first_words(&[]), "");
        for n in 50..64 {
            first_words(&[Message::user("t".repeat(n) + "🎉🎉🎉👩‍👩‍👧‍👦→→")]);
        }
    }
}
