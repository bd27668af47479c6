//! Finding text in files: line by line, in linear time, whatever the pattern.

use std::ops::Range;
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use regex_automata::Input;
use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use serde::Serialize;
use unicode_normalization::UnicodeNormalization;

use super::lines::{lines, split_mark};
use super::name::FileName;

const MAX_PATTERN_BYTES: usize = 1 << 10;
const MAX_COMPILED_BYTES: usize = 1 << 20;
const SNIPPET_CHARS: usize = 50;
const MAX_FILES: usize = 50;
const MAX_LINES_OF_A_FILE: usize = 50;
const MAX_LINE_CHARS: usize = 500;
const MAX_RESULT_BYTES: usize = 64 << 10;
const MAX_SKIPPED_NAMES: usize = 10;
/// As long as a search may take. Time is linear in the text, but a pattern of a few characters may need a millisecond for each
/// byte of it.
const MAX_TIME: Duration = Duration::from_secs(10);
/// The time is looked at behind so many bytes.
const PIECE_BYTES: usize = 8 << 10;

/// A pattern for lines, case-insensitive.
#[derive(Debug)]
pub(crate) struct LinePattern(Regex);

impl LinePattern {
    /// Compiles it, or says for the model why not.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!("The pattern is {} bytes long; the limit is {MAX_PATTERN_BYTES}.", pattern.len()));
        }
        let limits = Config::new().nfa_size_limit(Some(MAX_COMPILED_BYTES)).hybrid_cache_capacity(MAX_COMPILED_BYTES);
        let syntax = syntax::Config::new().case_insensitive(true);
        let error = match Regex::builder().configure(limits).syntax(syntax).build(pattern) {
            Ok(regex) => return Ok(Self(regex)),
            Err(error) => error,
        };
        if error.size_limit().is_some() {
            return Err("The pattern is too large once its repetitions are counted; use a simpler one.".into());
        }
        let reason = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
        Err(format!(
            "The pattern is not a valid regular expression (look-around and back-references are not supported): {}",
            last_line(&reason)
        ))
    }
}

/// The parser draws the pattern with a mark below; the reason is in the last line.
fn last_line(error: &str) -> &str {
    error.lines().last().unwrap_or(error).trim_start_matches("error: ")
}

/// A pattern for file names: `*.md`, `research*`, `**/*.md`. Case-insensitive; a blank one means all files.
#[derive(Debug)]
pub(crate) struct NamePattern(Option<GlobMatcher>);

impl NamePattern {
    /// Compiles it, or says for the model why not.
    pub(crate) fn new(pattern: Option<&str>) -> Result<Self, String> {
        let Some(pattern) = pattern.filter(|pattern| !pattern.trim().is_empty()) else { return Ok(Self(None)) };
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!("The file pattern is {} bytes long; the limit is {MAX_PATTERN_BYTES}.", pattern.len()));
        }
        // Names are composed, so the pattern has to be; a backslash escapes on every system.
        let composed: String = pattern.trim().nfc().collect();
        let glob =
            GlobBuilder::new(&composed).case_insensitive(true).literal_separator(true).backslash_escape(true).build();
        match glob {
            Ok(glob) => Ok(Self(Some(glob.compile_matcher()))),
            Err(error) => Err(format!("The file pattern is not a valid glob: {}.", error.kind())),
        }
    }

    pub(crate) fn matches(&self, name: &FileName) -> bool {
        self.0.as_ref().is_none_or(|glob| glob.is_match(name.as_str()))
    }
}

/// Collects what is found, as far as a model wants to read it, and counts the rest.
#[derive(Debug)]
pub(crate) struct Findings {
    until: Instant,
    bytes_since_look: usize,
    is_out_of_time: bool,
    unfinished_files: usize,
    files: Vec<Element<FileFinding>>,
    bytes: usize,
    more_files: usize,
    skipped: Vec<FileName>,
    more_skipped: usize,
}

/// An element of a list, or a last one that says what is not shown.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Element<T> {
    Shown(T),
    NotShown(String),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FileFinding {
    file_name: String,
    snippet: String,
    matching_lines: Vec<Element<LineFinding>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LineFinding {
    line_number: usize,
    line: String,
}

/// The search has taken as long as it may.
struct OutOfTime;

impl Findings {
    /// Nothing yet; the time counts from now.
    pub(crate) fn new() -> Self {
        Self::until(Instant::now() + MAX_TIME)
    }

    fn until(until: Instant) -> Self {
        Self {
            until,
            bytes_since_look: 0,
            is_out_of_time: false,
            unfinished_files: 0,
            files: Vec::new(),
            bytes: 0,
            more_files: 0,
            skipped: Vec::new(),
            more_skipped: 0,
        }
    }

    /// Whether there is time for one more file; one for which there is none is counted.
    pub(crate) fn has_time(&mut self) -> bool {
        self.is_out_of_time |= Instant::now() >= self.until;
        self.unfinished_files += usize::from(self.is_out_of_time);
        !self.is_out_of_time
    }

    /// Searches one file.
    pub(crate) fn look_into(&mut self, pattern: &LinePattern, name: &FileName, content: &[u8]) {
        let Ok(text) = std::str::from_utf8(content) else { return self.skip(name) };
        let (_, text) = split_mark(text);
        if self.files.len() >= MAX_FILES || self.bytes >= MAX_RESULT_BYTES {
            let mut matches =
                lines(text).map(|line| self.first_match(pattern, line.text)).filter_map(Result::transpose);
            match matches.next() {
                Some(Ok(_)) => self.more_files += 1,
                Some(Err(OutOfTime)) => self.unfinished_files += 1,
                None => {}
            }
        } else if let Some(found) = self.find(pattern, name, text) {
            self.files.push(Element::Shown(found));
        }
    }

    /// Notes a file that is not text, or is too large.
    pub(crate) fn skip(&mut self, name: &FileName) {
        if self.skipped.len() < MAX_SKIPPED_NAMES {
            self.skipped.push(name.clone());
        } else {
            self.more_skipped += 1;
        }
    }

    fn find(&mut self, pattern: &LinePattern, name: &FileName, text: &str) -> Option<FileFinding> {
        let mut found: Option<FileFinding> = None;
        let mut more_lines = 0;
        let mut start = 0;
        for (index, line) in lines(text).enumerate() {
            let Ok(first) = self.first_match(pattern, line.text) else {
                self.unfinished_files += 1;
                break;
            };
            if let Some(first) = first {
                let found = found.get_or_insert_with(|| {
                    let snippet = snippet(text, start + first.start..start + first.end);
                    self.bytes += name.as_str().len() + snippet.len();
                    FileFinding { file_name: name.to_string(), snippet, matching_lines: Vec::new() }
                });
                let is_first = found.matching_lines.is_empty();
                if is_first || found.matching_lines.len() < MAX_LINES_OF_A_FILE && self.bytes < MAX_RESULT_BYTES {
                    let line = shortened(line.text);
                    self.bytes += line.len();
                    found.matching_lines.push(Element::Shown(LineFinding { line_number: index + 1, line }));
                } else {
                    more_lines += 1;
                }
            }
            start += line.text.len() + line.end.len();
        }
        if let Some(found) = found.as_mut().filter(|_| more_lines > 0) {
            found.matching_lines.push(Element::NotShown(format!("… and {more_lines} more")));
        }
        found
    }

    /// The first match in a line. One of more than two pieces is searched by pairs of pieces that overlap: wherever a match of
    /// up to one piece is, it is found.
    fn first_match(&mut self, pattern: &LinePattern, line: &str) -> Result<Option<Range<usize>>, OutOfTime> {
        let mut start = 0;
        loop {
            let end = line.len().min(start + 2 * PIECE_BYTES);
            self.bytes_since_look += end - start;
            if self.bytes_since_look >= PIECE_BYTES {
                self.bytes_since_look = 0;
                self.is_out_of_time |= Instant::now() >= self.until;
            }
            if self.is_out_of_time {
                return Err(OutOfTime);
            }
            match pattern.0.find(Input::new(line).range(start..end)) {
                Some(found) => return Ok(Some(found.range())),
                None if end == line.len() => return Ok(None),
                None => start += PIECE_BYTES,
            }
        }
    }

    /// The list as JSON.
    pub(crate) fn into_json(mut self) -> String {
        if self.more_files > 0 {
            self.files.push(Element::NotShown(format!("… and {} more", self.more_files)));
        }
        if !self.skipped.is_empty() {
            let names: Vec<String> = self.skipped.iter().map(|name| format!("'{name}'")).collect();
            let more =
                if self.more_skipped > 0 { format!(" … and {} more", self.more_skipped) } else { String::new() };
            let text = format!("Not searched, because binary or too large: {}{more}", names.join(", "));
            self.files.push(Element::NotShown(text));
        }
        if self.unfinished_files > 0 {
            self.files.push(Element::NotShown(format!(
                "Stopped after {} seconds, {} file(s) not searched to the end: use a simpler pattern, or fewer files",
                MAX_TIME.as_secs(),
                self.unfinished_files
            )));
        }
        serde_json::to_string(&self.files).unwrap_or_default()
    }
}

/// A match with up to 50 characters of the text on each side.
fn snippet(text: &str, found: Range<usize>) -> String {
    let before = text.get(..found.start).unwrap_or_default();
    let start = before.char_indices().rev().nth(SNIPPET_CHARS - 1).map_or(0, |(at, _)| at);
    let behind = text.get(found.end..).unwrap_or_default();
    let end = behind.char_indices().nth(SNIPPET_CHARS).map_or(text.len(), |(at, _)| found.end + at);
    let parts = [text.get(start..found.start), text.get(found.clone()), text.get(found.end..end)];
    let [before, matched, behind] = parts.map(Option::unwrap_or_default);
    format!("{before}{}{behind}", shortened(matched))
}

/// A line, as far as a model wants to read it.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        None => line.to_owned(),
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(pattern: &str, text: &str) -> String {
        let mut findings = Findings::new();
        findings.look_into(&LinePattern::new(pattern).unwrap(), &FileName::new("a.md").unwrap(), text.as_bytes());
        findings.into_json()
    }

    #[test]
    fn a_snippet_is_cut_between_characters() {
        let text = format!("{}needle{}", "🙏".repeat(60), "汉".repeat(60));
        let expected = format!("{}needle{}", "🙏".repeat(50), "汉".repeat(50));
        assert_eq!(snippet(&text, 240..246), expected);
        assert_eq!(snippet("ab", 0..2), "ab");
    }

    #[test]
    fn lines_are_matched_one_by_one_without_their_ends() {
        let found = search("^two$|x\\s+y", "\u{feff}one\r\nTWO\rx\ny\n");
        assert_eq!(
            found,
            r#"[{"fileName":"a.md","snippet":"one\r\nTWO\rx\ny\n","matchingLines":[{"lineNumber":2,"line":"TWO"}]}]"#
        );
        assert!(search("^one", "\u{feff}one").contains("\"lineNumber\":1"));
        assert_eq!(search("three", "one\ntwo"), "[]");
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        let text = "x\n".repeat(60);
        assert!(search("x", &text).ends_with(r#"{"lineNumber":50,"line":"x"},"… and 10 more"]}]"#));
        let mut findings = Findings::new();
        let pattern = LinePattern::new("x").unwrap();
        for number in 0..60 {
            findings.look_into(&pattern, &FileName::new(&format!("{number}")).unwrap(), b"x");
        }
        findings.look_into(&pattern, &FileName::new("b").unwrap(), &[255]);
        assert!(
            findings.into_json().ends_with(r#","… and 10 more","Not searched, because binary or too large: 'b'"]"#)
        );
    }

    #[test]
    fn no_pattern_takes_longer_than_a_search_may() {
        // In linear time, hours.
        let pattern = LinePattern::new("(?-iu:(?:a?b?){200}\\d)").unwrap();
        let mut findings = Findings::until(Instant::now() + Duration::from_millis(200));
        for name in ["one line", "lines"] {
            let text = if name == "lines" { "ab\n" } else { "ab" }.repeat(30 << 20);
            findings.look_into(&pattern, &FileName::new(name).unwrap(), text.as_bytes());
        }
        assert!(!findings.has_time());
        let expected =
            "Stopped after 10 seconds, 3 file(s) not searched to the end: use a simpler pattern, or fewer files";
        assert_eq!(findings.into_json(), format!("[\"{expected}\"]"));
    }

    #[test]
    fn long_lines_are_searched_by_pieces_that_overlap() {
        for before in [0, PIECE_BYTES - 3, 2 * PIECE_BYTES - 3, 5 * PIECE_BYTES + 1] {
            let line = format!("{}needle{}", "é".repeat(before), "é".repeat(3 * PIECE_BYTES));
            for (pattern, is_found) in
                [("needle", true), ("e{2}\\w+?e", true), ("^needle", before == 0), ("needle$", false), ("e\\b", false)]
            {
                assert_eq!(search(pattern, &line) != "[]", is_found, "{pattern} behind {before}");
            }
        }
        assert_ne!(search("^é+$", &"é".repeat(PIECE_BYTES)), "[]");
    }
}
