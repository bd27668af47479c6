//! `search`: a text or a pattern in what was said, thought, called and answered.

use chat_memory::Entry;
use regex::{Regex, RegexBuilder};
use serde_json::json;

use crate::cli::{Global, SearchArgs};
use crate::failure::{Failure, in_full};
use crate::out::{self, BOLD, DIM, MATCH, Out, Styled, YELLOW};
use crate::progress::Progress;
use crate::show::role_style;
use crate::store::{self, Store};
use crate::text::{count, harmless, on_a_line, texts};
use crate::time;

pub fn run(global: &Global, args: &SearchArgs, out: &mut Out) -> Result<(), Failure> {
    let pattern = pattern(args)?;
    let store = Store::open(global)?;
    let (mut found, mut unreadable) = (0, 0);
    let ids = match &args.conversations[..] {
        [] => {
            let catalogue = store::catalogue(&store.memory)?;
            catalogue.problems.iter().for_each(|problem| out::problem("not searched:", problem));
            unreadable = catalogue.problems.len() as u64;
            catalogue.conversations.into_iter().map(|summary| summary.id).collect()
        }
        given => given.to_vec(),
    };
    let mut progress = Progress::new(ids.len() as u64, "conversations");
    let limit = args.limit.unwrap_or(usize::MAX);
    for id in &ids {
        let before = found;
        let searched = store.for_each_chunk(id, |chunk| {
            for entry in chunk.iter().filter(|entry| is_wanted(args, entry)) {
                if found == limit {
                    return Ok(false);
                }
                found += usize::from(search(args, &pattern, id, entry, out)?);
            }
            Ok(true)
        });
        match searched {
            Ok(false) if !args.conversations.is_empty() => return Err(store::unknown(id)),
            Ok(_) => {}
            Err(Failure::Memory(error)) => {
                unreadable += 1;
                out::note(format_args!("{} {}: {}", Styled(YELLOW, "not searched:"), on_a_line(id), in_full(&error)));
            }
            Err(failure) => return Err(failure),
        }
        if found > before {
            out.flush()?; // whoever waits sees it now
        }
        progress.advance(1);
        if found == limit {
            break;
        }
    }
    drop(progress);
    store.verdict()?;
    match (found, unreadable) {
        (_, 1..) => Err(Failure::Partly(format!("{} not searched", count(unreadable, "file")))),
        (0, 0) => Err(Failure::Nothing("no match".to_owned())),
        _ => Ok(()),
    }
}

fn pattern(args: &SearchArgs) -> Result<Regex, Failure> {
    if args.pattern.is_empty() {
        return Err(Failure::Usage("an empty pattern is in every text: give at least one character".to_owned()));
    }
    let pattern = if args.regex { args.pattern.clone() } else { regex::escape(&args.pattern) };
    let built = RegexBuilder::new(&pattern).case_insensitive(!args.case_sensitive).multi_line(true).build();
    built.map_err(|error| Failure::Usage(format!("the pattern is no regular expression: {error}")))
}

fn is_wanted(args: &SearchArgs, entry: &Entry) -> bool {
    (args.role.is_empty() || args.role.contains(&entry.message.role())) && args.times.contain(entry)
}

/// Searches a message, and shows what is found. Whether something is.
fn search(args: &SearchArgs, pattern: &Regex, id: &str, entry: &Entry, out: &mut Out) -> Result<bool, Failure> {
    let mut is_found = false;
    for text in texts(&entry.message).filter(|text| pattern.is_match(text)) {
        let lines: Vec<&str> = text.split('\n').collect();
        let matching = matching_lines(pattern, text);
        if out.is_json() {
            for line in &matching {
                out.json(&json!({
                    "conversation": id,
                    "seq": entry.seq,
                    "role": entry.message.role().as_str(),
                    "recorded_at": time::utc(entry.recorded_at),
                    "line": line + 1,
                    "text": lines.get(*line),
                }))?;
            }
            is_found = true;
            continue;
        }
        if !is_found {
            let role = entry.message.role();
            out.line(format_args!(
                "{} {}{} {} {}",
                Styled(BOLD, on_a_line(id)),
                Styled(DIM, "#"),
                entry.seq,
                Styled(role_style(role), role.as_str()),
                Styled(DIM, time::local(entry.recorded_at)),
            ))?;
        }
        is_found = true;
        let mut shown_until = 0;
        for line in &matching {
            let first = line.saturating_sub(args.context).max(shown_until);
            let end = (line + args.context + 1).min(lines.len());
            if first > shown_until && shown_until > 0 && args.context > 0 {
                out.line(Styled(DIM, "   …"))?;
            }
            for at in first..end {
                let text = lines.get(at).copied().unwrap_or_default().trim_end_matches('\r');
                out.line(format_args!("  {} {}", Styled(DIM, format!("{:>4}:", at + 1)), highlighted(pattern, text)))?;
            }
            shown_until = end.max(shown_until);
        }
    }
    Ok(is_found)
}

/// The lines, from 0, in which a match begins, in their order.
fn matching_lines(pattern: &Regex, text: &str) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let (mut line, mut counted) = (0, 0);
    for matched in pattern.find_iter(text) {
        line += text.get(counted..matched.start()).unwrap_or_default().matches('\n').count();
        counted = matched.start();
        if found.last() != Some(&line) {
            found.push(line);
        }
    }
    found
}

/// How much of a line is shown, in bytes, and how much of it before the match.
const LONGEST: usize = 400;
const BEFORE: usize = 120;

/// A line with its matches marked; of a long one the part around the first.
fn highlighted(pattern: &Regex, line: &str) -> String {
    let start = pattern.find(line).map_or(0, |first| first.start());
    let (mut from, mut to) = (0, line.len());
    if line.len() > LONGEST {
        from = edge(line, start.saturating_sub(BEFORE));
        to = edge(line, (from + LONGEST).min(line.len()));
    }
    let part = line.get(from..to).unwrap_or(line);
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    let mut rest = 0;
    for matched in pattern.find_iter(part).filter(|matched| !matched.is_empty()) {
        shown.push_str(&harmless(part.get(rest..matched.start()).unwrap_or_default()));
        shown.push_str(&Styled(MATCH, harmless(matched.as_str())).to_string());
        rest = matched.end();
    }
    shown.push_str(&harmless(part.get(rest..).unwrap_or_default()));
    if to < line.len() {
        shown.push('…');
    }
    shown
}

/// The edge of what looks like a character at, or shortly before, a place in a text.
fn edge(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let mut cursor = unicode_segmentation::GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or_default(),
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_around_its_match_and_cut_at_characters() {
        let pattern = Regex::new("needle").unwrap();
        for n in 0..30 {
            let line = format!("{}{}needle{}", "x".repeat(n), "👩‍👩‍👧‍👦".repeat(40), "汉".repeat(400));
            let shown = anstream::adapter::strip_str(&highlighted(&pattern, &line)).to_string();
            assert!(shown.contains("needle") && shown.len() < 500, "{shown}");
            assert!(shown.starts_with("…👩‍👩‍👧‍👦"), "{shown}");
        }
    }

    #[test]
    fn lines_are_counted_once() {
        let pattern = Regex::new("a").unwrap();
        assert_eq!(matching_lines(&pattern, "aa\nb\na"), [0, 2]);
    }
}
