//! Lines of a text: the same numbers for searching, for reading a range, and for editing.

/// The lines of a text without their ends, which are `\n`, `\r\n` or a lone `\r`. A text that ends with the end of a line has
/// no empty line behind it.
pub(crate) fn lines(text: &str) -> Lines<'_> {
    Lines { rest: text }
}

/// The byte order mark that a text begins with, or nothing, and the rest. It is no part of the first line.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.split_at(text.len() - rest.len())
}

/// A line and what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a str,
    /// Empty for a last line that nothing ends.
    pub(crate) end: &'a str,
}

pub(crate) struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (text, from_end) = match memchr::memchr2(b'\n', b'\r', self.rest.as_bytes()) {
            Some(at) => self.rest.split_at(at),
            None => (self.rest, ""),
        };
        let length = if from_end.starts_with("\r\n") { 2 } else { from_end.len().min(1) };
        let (end, rest) = from_end.split_at(length);
        self.rest = rest;
        Some(Line { text, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_ends_count_and_nothing_is_lost() {
        let text = "one\r\ntwo\rthree\n\nfive";
        let found: Vec<Line<'_>> = lines(text).collect();
        assert_eq!(found.iter().map(|line| line.text).collect::<Vec<_>>(), ["one", "two", "three", "", "five"]);
        assert_eq!(found.iter().map(|line| line.end).collect::<Vec<_>>(), ["\r\n", "\r", "\n", "\n", ""]);
        assert_eq!(lines("").count(), 0);
        assert_eq!(lines("a\n").count(), 1);
    }
}
