//! Changing a text in places. Pure.

use std::collections::BTreeMap;

use super::notebook::MAX_TEXT_BYTES;
use super::{Failure, refused, shown};
use crate::file_memory::lines::{Line, lines, split_mark};

/// Replaces a text that occurs once, or all of its occurrences; the new content, and how many there were.
pub(super) fn replace(content: &str, old: &str, new: &str, is_all: bool) -> Result<(String, usize), NoReplacement> {
    if old.is_empty() {
        return Err(NoReplacement::Empty);
    }
    let count = content.matches(old).count();
    let size = (content.len() - count * old.len()).saturating_add(count.saturating_mul(new.len()));
    match count {
        0 => Err(NoReplacement::NotFound { has_other_line_ends: content.contains(&old.replace('\n', "\r\n")) }),
        count if count > 1 && !is_all => Err(NoReplacement::Ambiguous { count }),
        _ if size as u64 > MAX_TEXT_BYTES => Err(NoReplacement::TooLarge { size }),
        count => Ok((content.replace(old, new), count)),
    }
}

/// Why nothing was replaced.
pub(super) enum NoReplacement {
    Empty,
    NotFound {
        has_other_line_ends: bool,
    },
    Ambiguous {
        count: usize,
    },
    /// What would come of it could not be read again.
    TooLarge {
        size: usize,
    },
}

/// One line to replace, by its number from 1.
pub(super) struct LineEdit {
    pub(super) number: i64,
    pub(super) new: String,
    /// What the line should be now.
    pub(super) expected: Option<String>,
}

/// Replaces whole lines. An empty text deletes the line with its end; a text without an end of line keeps the line's own.
pub(super) fn replace_lines(content: &str, edits: &[LineEdit], name: &str) -> Result<String, Failure> {
    let (mark, content) = split_mark(content);
    let count = lines(content).count();
    let mut by_number = BTreeMap::new();
    for edit in edits {
        let number = usize::try_from(edit.number).unwrap_or(0);
        if number == 0 || number > count {
            return refused(format!("There is no line {} in '{name}', which has {count} line(s).", edit.number));
        }
        if by_number.insert(number, edit).is_some() {
            return refused(format!("Line {number} is to be replaced twice."));
        }
    }
    let mut changed = mark.to_owned();
    for (number, line) in (1..).zip(lines(content)) {
        match by_number.get(&number) {
            None => changed.extend([line.text, line.end]),
            Some(edit) => {
                if edit.expected.as_ref().is_some_and(|expected| without_end(expected) != line.text) {
                    return refused(format!(
                        "Line {number} of '{name}' is not as expected. It is: {}",
                        shown(line.text)
                    ));
                }
                changed.push_str(&new_line(&edit.new, line));
            }
        }
    }
    Ok(changed)
}

fn new_line(new: &str, line: Line<'_>) -> String {
    let text = without_end(new);
    match (new.is_empty(), line.end.is_empty()) {
        (true, _) => String::new(),
        // The last line, which nothing ends: the end is the model's to add.
        (false, true) => new.to_owned(),
        (false, false) => format!("{text}{}", line.end),
    }
}

fn without_end(text: &str) -> &str {
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r'])).unwrap_or(text)
}

/// Puts a text behind line `after`, 0 for the top; `None` where there is no such line.
pub(super) fn insert(content: &str, after: i64, text: &str) -> Option<String> {
    let (mark, content) = split_mark(content);
    let after = usize::try_from(after).ok().filter(|after| *after <= lines(content).count())?;
    let at: usize = lines(content).take(after).map(|line| line.text.len() + line.end.len()).sum();
    let (before, behind) = content.split_at_checked(at)?;
    let end = lines(content).next().map(|line| line.end).filter(|end| !end.is_empty()).unwrap_or("\n");
    let mut changed = format!("{mark}{before}");
    if !before.is_empty() && !before.ends_with(['\n', '\r']) {
        changed.push_str(end);
    }
    changed.push_str(text);
    if !behind.is_empty() && !text.ends_with(['\n', '\r']) {
        changed.push_str(end);
    }
    changed.push_str(behind);
    Some(changed)
}

/// Lines with their numbers, from `first` to `last`, both counted from 1 and both shown; `None` where `first` is behind the end.
pub(super) fn numbered(content: &str, first: i64, last: Option<i64>) -> Option<String> {
    let (_, content) = split_mark(content);
    let first = usize::try_from(first.max(1)).ok()?;
    let last = last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(0));
    let count = lines(content).count();
    if first > count.max(1) || last < first {
        return None;
    }
    let shown = lines(content).zip(1_usize..).skip(first - 1).take(last - first + 1);
    let numbered: Vec<String> = shown.map(|(line, number)| format!("{number:>6}\t{}", line.text)).collect();
    Some(numbered.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(content: &str, edits: &[(i64, &str)]) -> Result<String, Failure> {
        let edits = edits.iter().map(|(number, new)| LineEdit { number: *number, new: (*new).into(), expected: None });
        replace_lines(content, &edits.collect::<Vec<_>>(), "x")
    }

    #[test]
    fn lines_keep_their_own_ends() {
        let content = "one\r\ntwo\nthree";
        assert_eq!(edited(content, &[(1, "1"), (3, "3\n")]).unwrap(), "1\r\ntwo\n3\n");
        assert_eq!(edited(content, &[(1, "1\n"), (2, "")]).unwrap(), "1\r\nthree");
        assert_eq!(edited(content, &[(2, "2\nand a half\n")]).unwrap(), "one\r\n2\nand a half\nthree");
        assert!(edited(content, &[(0, "x")]).is_err());
        assert!(edited(content, &[(4, "x")]).is_err());
        assert!(edited(content, &[(1, "x"), (1, "y")]).is_err());
        assert!(edited(content, &[(i64::MIN, "x")]).is_err());
    }

    #[test]
    fn an_insertion_is_a_line_of_its_own() {
        assert_eq!(insert("one\ntwo", 0, "zero").unwrap(), "zero\none\ntwo");
        assert_eq!(insert("one\r\ntwo", 1, "x\n").unwrap(), "one\r\nx\ntwo");
        assert_eq!(insert("one\r\ntwo", 2, "three").unwrap(), "one\r\ntwo\r\nthree");
        assert_eq!(insert("", 0, "x").unwrap(), "x");
        assert_eq!(insert("one", 2, "x"), None);
        assert_eq!(insert("one", -1, "x"), None);
    }

    #[test]
    fn ranges_are_cut_to_what_is_there() {
        assert_eq!(numbered("a\nb\nc", 2, Some(2)).unwrap(), "     2\tb");
        assert_eq!(numbered("a\nb\nc", 2, None).unwrap(), "     2\tb\n     3\tc");
        assert_eq!(numbered("a\nb\nc", -5, Some(i64::MAX)).unwrap().lines().count(), 3);
        assert_eq!(numbered("a", 2, None), None);
        assert_eq!(numbered("a\nb", 2, Some(1)), None);
        assert_eq!(numbered("", 1, None).unwrap(), "");
    }
}
