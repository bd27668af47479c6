//! The file being read, and places in it.

use std::borrow::Cow;
use std::path::Path;

use chat_memory::transcript::{Import, mend_surrogates};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::Refused;
use super::json::Fields;

/// A file's text.
pub(super) struct Source<'a> {
    stem: String,
    /// As it came, without a byte order mark.
    original: &'a str,
    /// The same with U+FFFD for every half of a surrogate pair; offsets are the same too.
    text: Cow<'a, str>,
    /// The offsets of those.
    mended: Vec<usize>,
    /// The offsets at which lines begin.
    lines: Vec<usize>,
}

/// What is wrong at a place in the file.
#[derive(Debug)]
pub(super) struct Bad {
    pub(super) line: usize,
    column: usize,
    pub(super) reason: String,
}

impl Bad {
    pub(super) fn named(self, name: impl Into<String>) -> Refused {
        let Bad { line, column, reason } = self;
        Refused { name: name.into(), line, column, reason }
    }

    /// Named by its line.
    pub(super) fn of_line(self) -> Refused {
        let name = format!("line {}", self.line);
        self.named(name)
    }
}

/// The values of a file: the elements of an array, or what stands one behind the other.
pub(super) struct Items<'a> {
    pub(super) values: Vec<Result<&'a RawValue, Bad>>,
    /// Whether each stands for itself, as in JSON Lines.
    pub(super) are_lines: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(file_name: &str, text: &'a str) -> Self {
        let stem = Path::new(file_name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let stem = stem.filter(|stem| !stem.trim().is_empty()).unwrap_or_else(|| "conversation".to_owned());
        let original = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = std::iter::once(0).chain(original.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let (text, mended) = mend_surrogates(original);
        Self { stem, original, text, mended, lines }
    }

    /// The file's name without its extension.
    pub(super) fn stem(&self) -> &str {
        &self.stem
    }

    /// The text for readers of JSON.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text for all others.
    pub(super) fn original(&self) -> &'a str {
        self.original
    }

    /// Line and column of a part of the text; of anything else, the beginning.
    fn place(&self, part: &str) -> (usize, usize) {
        self.place_at(self.offset_of(part))
    }

    fn place_at(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        (line, offset - start + 1)
    }

    fn offset_of(&self, part: &str) -> usize {
        let offset = part.as_ptr().addr().checked_sub(self.text.as_ptr().addr());
        offset.filter(|offset| *offset <= self.text.len()).unwrap_or(0)
    }

    /// Where a part of the text begins.
    pub(super) fn offset(&self, part: &RawValue) -> usize {
        self.offset_of(part.get())
    }

    /// The line at an offset.
    pub(super) fn line_at(&self, offset: usize) -> usize {
        self.place_at(offset).0
    }

    /// The line of a part of the text.
    pub(super) fn line(&self, part: &RawValue) -> usize {
        self.place(part.get()).0
    }

    /// How many halves of surrogate pairs were replaced in a part of the text.
    pub(super) fn mended_in(&self, part: &RawValue) -> usize {
        let start = self.offset_of(part.get());
        let before = |end: usize| self.mended.partition_point(|at| *at < end);
        before(start + part.get().len()) - before(start)
    }

    /// Something is wrong at the beginning of a part of the text.
    pub(super) fn bad(&self, part: &RawValue, reason: impl Into<String>) -> Bad {
        let (line, column) = self.place(part.get());
        Bad { line, column, reason: reason.into() }
    }

    pub(super) fn bad_at(&self, offset: usize, reason: impl Into<String>) -> Bad {
        let (line, column) = self.place_at(offset.min(self.original.len()));
        Bad { line, column, reason: reason.into() }
    }

    /// What the parser found wrong in a part of the text.
    fn parse_error(&self, part: &str, error: &serde_json::Error) -> Bad {
        let reason = match error.classify() {
            // Would show the value that it found.
            Category::Data => "a value is of another type than the form says".to_owned(),
            // The parser's text ends in its own line and column, which count from the part.
            _ => format!("broken JSON: {}", error.to_string().split(" at line ").next().unwrap_or_default()),
        };
        self.bad_inside(part, error.line(), error.column(), reason)
    }

    /// Something is wrong at a line and column that count from a part of the text.
    fn bad_inside(&self, part: &str, line: usize, column: usize, reason: String) -> Bad {
        let (first, start) = self.place(part);
        let column = if line <= 1 { (start + column).saturating_sub(1) } else { column };
        Bad { line: first + line.max(1) - 1, column: column.max(1), reason }
    }

    /// What one of the library's readers makes of a message, or of any text that it takes as an element of a list.
    pub(super) fn read_by(
        &self,
        read: fn(&str) -> chat_memory::Result<Import>,
        part: &RawValue,
    ) -> Result<Import, Bad> {
        read(&format!("[{}]", part.get())).map_err(|error| self.library_error(part, 1, &error))
    }

    /// What one of the library's readers makes of a whole conversation.
    pub(super) fn read_whole_by(
        &self,
        read: fn(&str) -> chat_memory::Result<Import>,
        part: &RawValue,
    ) -> Result<Import, Bad> {
        read(part.get()).map_err(|error| self.library_error(part, 0, &error))
    }

    /// An error of the library for a text that is not of the file, but stands for a part of it.
    pub(super) fn bad_for(&self, part: &RawValue, error: &chat_memory::Error) -> Bad {
        match error {
            chat_memory::Error::InvalidTranscript { reason, .. } => self.bad(part, reason.clone()),
            _ => self.bad(part, "this cannot be read"),
        }
    }

    /// An error of the library, which counts from a part of the text with `before` bytes before it.
    fn library_error(&self, part: &RawValue, before: usize, error: &chat_memory::Error) -> Bad {
        match error {
            chat_memory::Error::InvalidTranscript { line, column, reason } => {
                let column = if *line <= 1 { column.saturating_sub(before) } else { *column };
                self.bad_inside(part.get(), *line, column, reason.clone())
            }
            _ => self.bad_for(part, error),
        }
    }

    /// An object's fields.
    pub(super) fn fields(&self, part: &'a RawValue) -> Result<Fields<'a>, Bad> {
        if !part.get().starts_with('{') {
            return Err(self.bad(part, "this is no object"));
        }
        serde_json::from_str(part.get()).map_err(|error| self.parse_error(part.get(), &error))
    }

    /// An array's elements.
    pub(super) fn list(&self, part: &'a RawValue) -> Result<Vec<&'a RawValue>, Bad> {
        if !part.get().starts_with('[') {
            return Err(self.bad(part, "this is no list"));
        }
        serde_json::from_str(part.get()).map_err(|error| self.parse_error(part.get(), &error))
    }

    /// A string's text.
    pub(super) fn string(&self, part: &RawValue) -> Result<String, Bad> {
        serde_json::from_str(part.get()).map_err(|_| self.bad(part, "this is no string"))
    }

    /// The values of the file.
    ///
    /// One JSON text as a whole, or several one behind the other. Where that is not so, but there are lines that are values of
    /// their own, each line has its own fate: a line that was cut off does not touch the others.
    pub(super) fn items(&'a self) -> Result<Items<'a>, Bad> {
        let text = self.text();
        match serde_json::from_str::<&RawValue>(text) {
            Ok(whole) if whole.get().starts_with('[') => {
                return Ok(Items { values: self.list(whole)?.into_iter().map(Ok).collect(), are_lines: false });
            }
            Ok(whole) => return Ok(Items { values: vec![Ok(whole)], are_lines: true }),
            Err(_) => {}
        }
        let stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let broken = match stream.collect::<Result<Vec<_>, _>>() {
            Ok(values) => return Ok(Items { values: values.into_iter().map(Ok).collect(), are_lines: true }),
            Err(error) => error,
        };
        let lines = || text.split('\n').map(str::trim).filter(|line| !line.is_empty());
        let is_whole = |line: &str| serde_json::from_str::<&RawValue>(line).is_ok();
        // Inside of one broken text there are such lines too, but indented or within an array.
        let is_object_line = |line: &str| line.starts_with('{') && is_whole(line.trim_end());
        let is_array = text.trim_start().starts_with('[');
        if !lines().next().is_some_and(is_whole) && (is_array || !text.split('\n').any(is_object_line)) {
            return Err(self.parse_error(text, &broken));
        }
        let value = |line| serde_json::from_str(line).map_err(|error| self.parse_error(line, &error));
        Ok(Items { values: lines().map(value).collect(), are_lines: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<Result<String, (usize, usize)>> {
        let source = Source::new("a.json", text);
        let items = source.items().unwrap_or_else(|bad| panic!("{bad:?}"));
        items
            .values
            .iter()
            .map(|value| value.as_ref().map(|raw| raw.to_string()).map_err(|bad| (bad.line, bad.column)))
            .collect()
    }

    fn broken(text: &str) -> (usize, usize) {
        let source = Source::new("a.json", text);
        source.items().map(|_| ()).map_err(|bad| (bad.line, bad.column)).unwrap_err()
    }

    #[test]
    fn a_file_is_a_list_or_values_one_behind_the_other() {
        let ok = |text: &str| Ok(text.to_owned());
        assert_eq!(places("\u{feff}[1, {}]\n"), [ok("1"), ok("{}")]);
        assert_eq!(places("{\"a\":1}\r\n\r\n{\"b\":2}\r\n"), [ok("{\"a\":1}"), ok("{\"b\":2}")]);
        assert_eq!(places("{\n\"a\":1}{}\n"), [ok("{\n\"a\":1}"), ok("{}")]);
        assert_eq!(places(" \n"), []);
        // No other separator ends a line.
        assert_eq!(places("{\"a\":\"\u{2028}\"}\n{}"), [ok("{\"a\":\"\u{2028}\"}"), ok("{}")]);
    }

    #[test]
    fn a_broken_line_does_not_touch_the_others() {
        let ok = |text: &str| Ok(text.to_owned());
        assert_eq!(places("{\"a\":1}\n{\"b\":"), [ok("{\"a\":1}"), Err((2, 5))]);
        assert_eq!(places("{\"a\":\n{}\n3"), [Err((1, 5)), ok("{}"), ok("3")]);
        assert_eq!(places("[1]\n  [2\n[3]"), [ok("[1]"), Err((2, 4)), ok("[3]")]);
    }

    #[test]
    fn a_broken_text_is_refused_as_a_whole_with_its_place() {
        assert_eq!(broken("[{\"title\":\"t\",}]"), (1, 15));
        assert_eq!(broken("[\n{\"a\":1},\n{\"b\":2}\n"), (4, 1));
        assert_eq!(broken("{\n  \"a\": {}\n  \"b\": {}\n}"), (3, 3));
        assert_eq!(broken("{\n \"a\": 1\n}\n{\n \"b\": 2\n"), (6, 1));
        assert_eq!(broken("hello"), (1, 1));
    }

    #[test]
    fn what_nests_deeply_is_read_as_text() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert_eq!(places(&format!("[{deep}]")), [Ok(deep.clone())]);
        assert_eq!(places(&deep).len(), 1);
    }
}
