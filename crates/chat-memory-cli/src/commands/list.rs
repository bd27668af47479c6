//! `list`: the catalogue.

use std::cmp::Reverse;

use chat_memory::{ChatHistory, ConversationSummary, Cursor, FileChatMemory, HistoryRange, Page, PageRequest};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::cli::{Global, ListArgs, Sort};
use crate::failure::Failure;
use crate::out::{self, Out, RED, Styled};
use crate::text::{count, first_words, fit, one_line, size};
use crate::{store, time};

pub fn run(global: &Global, args: &ListArgs, out: &mut Out) -> Result<(), Failure> {
    let memory = store::open(global)?;
    let limit = args.limit.or_else(|| out.is_terminal().then_some(ON_A_SCREEN)).unwrap_or(usize::MAX);
    if limit == 0 {
        return Err(Failure::Usage("a list of 0 conversations shows nothing: --limit is at least 1".to_owned()));
    }
    let found = find(&memory, args, limit)?;
    if out.is_json() {
        for summary in &found.items {
            let words = words(&memory, summary, args.preview);
            out.json(&as_json(&memory, summary, words))?;
        }
    } else {
        table(&memory, args, &found.items, out)?;
    }
    out.flush()?;
    found.problems.iter().for_each(|problem| out::problem("not listed:", problem));
    if let Some(cursor) = found.next {
        out::note(format_args!("There are more: --limit shows more at once, --after {cursor} the next."));
    }
    Ok(())
}

const DAMAGED: &str = "DAMAGED ";

/// How many are shown on a terminal if nobody says how many.
const ON_A_SCREEN: usize = 50;

/// The conversations asked for.
fn find(memory: &FileChatMemory, args: &ListArgs, limit: usize) -> Result<Page<ConversationSummary>, Failure> {
    let is_wanted = |summary: &ConversationSummary| {
        args.matching.as_ref().is_none_or(|text| summary.id.contains(text.as_str()))
            && args.times.since.is_none_or(|since| summary.updated.is_some_and(|updated| updated >= since.0))
            && args.times.until.is_none_or(|until| summary.created.is_none_or(|created| created < until.0))
    };
    let cursor = args.after.as_deref().map(str::parse::<Cursor>).transpose()?;
    if args.sort == Sort::Last && !args.reverse {
        return first_ones(memory, cursor, limit, is_wanted);
    }
    // Any other order needs them all.
    let store::Catalogue { mut conversations, problems } = store::catalogue(memory)?;
    conversations.retain(is_wanted);
    match args.sort {
        Sort::Last => {}
        Sort::Created => conversations.sort_by_key(|summary| Reverse(summary.created)),
        Sort::Size => conversations.sort_by_key(|summary| Reverse(summary.bytes)),
        Sort::Messages => conversations.sort_by_key(|summary| Reverse(summary.messages)),
        Sort::Id => conversations.sort_by(|a, b| a.id.cmp(&b.id)),
    }
    if args.reverse {
        conversations.reverse();
    }
    if conversations.len() > limit {
        out::note(format_args!("{} more are not shown; --limit shows more.", conversations.len() - limit));
        conversations.truncate(limit);
    }
    Ok(Page::new(conversations, None, problems))
}

/// In the store's own order nothing is read beyond the page.
fn first_ones(
    memory: &FileChatMemory,
    mut cursor: Option<Cursor>,
    limit: usize,
    is_wanted: impl Fn(&ConversationSummary) -> bool,
) -> Result<Page<ConversationSummary>, Failure> {
    let mut found = Page::new(Vec::new(), None, Vec::new());
    loop {
        // As many as are still wanted, so that a page ends where the store's does.
        let missing = (limit - found.items.len()).min(1_000);
        let page = memory.conversations(&match cursor.take() {
            Some(cursor) => PageRequest::after(missing, cursor),
            None => PageRequest::first(missing),
        })?;
        found.items.extend(page.items.into_iter().filter(|summary| is_wanted(summary)));
        found.problems.extend(page.problems);
        match page.next {
            Some(next) if found.items.len() < limit => cursor = Some(next),
            next => {
                found.next = next;
                return Ok(found);
            }
        }
    }
}

fn table(
    memory: &FileChatMemory,
    args: &ListArgs,
    conversations: &[ConversationSummary],
    out: &mut Out,
) -> Result<(), Failure> {
    if conversations.is_empty() {
        return out.line("No conversations.");
    }
    let width = if out.is_terminal() { out::width() } else { 200 };
    // Where there is little room, people rather see what was said.
    let (is_wide, is_roomy) = (width >= 110, width >= 100);
    // An id is what other commands take, so a usual one stays whole; for a program every one.
    let id_width = if out.is_terminal() { (width / 3).clamp(40, 60) } else { usize::MAX };
    let mut rows = vec![["ID", "MESSAGES", "SIZE", "CREATED", "LAST", "FIRST WORDS"].map(str::to_owned)];
    for summary in conversations {
        let damage = if summary.damage.is_empty() { "" } else { DAMAGED };
        rows.push([
            fit(&one_line(&summary.id), id_width).into_owned(),
            summary.messages.to_string(),
            size(summary.bytes),
            summary.created.map(time::short).unwrap_or_default(),
            summary.updated.map(time::short).unwrap_or_default(),
            damage.to_owned() + &words(memory, summary, args.preview).unwrap_or_default(),
        ]);
    }
    let columns = [true, true, is_roomy, is_wide, true];
    let widest =
        |at: usize| rows.iter().map(|row| row.get(at).map_or(0, |cell| cell.width())).max().unwrap_or_default();
    let taken: usize = (0..columns.len()).filter(|at| columns.get(*at) == Some(&true)).map(|at| widest(at) + 2).sum();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    for mut row in rows {
        let [.., words] = &mut row;
        *words = fit(words, width.saturating_sub(taken + 2).max(10)).into_owned();
        let shown = row.into_iter().zip(columns.into_iter().chain([true])).filter(|(_, is_shown)| *is_shown);
        table.add_row(shown.map(|(cell, _)| cell).collect::<Vec<String>>());
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if at == 1 || at == 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for (at, line) in table.lines().enumerate() {
        let line = line.trim_end();
        match at {
            0 => out.line(Styled(out::BOLD, line))?,
            _ if conversations.get(at - 1).is_some_and(|summary| !summary.damage.is_empty()) => {
                out.line(Styled(RED, line))?
            }
            _ => out.line(line)?,
        }
    }
    if out.is_terminal() {
        out.line(Styled(out::DIM, count(conversations.len() as u64, "conversation")))?;
    }
    Ok(())
}

/// A first message may be as large as its conversation, so the large ones are read only if asked for.
const CHEAP: u64 = 256 << 10;

fn words(memory: &FileChatMemory, summary: &ConversationSummary, is_asked_for: bool) -> Option<String> {
    if summary.bytes > CHEAP && !is_asked_for {
        return None;
    }
    let first = |count| memory.history(&summary.id, HistoryRange::first(count)).ok();
    let mut entries = first(1)?;
    if entries.iter().all(|entry| entry.message.role().is_system()) {
        entries = first(4)?;
    }
    let messages: Vec<_> = entries.into_iter().map(|entry| entry.message).collect();
    Some(first_words(&messages))
}

fn as_json(memory: &FileChatMemory, summary: &ConversationSummary, words: Option<String>) -> serde_json::Value {
    json!({
        "conversation": summary.id,
        "messages": summary.messages,
        "bytes": summary.bytes,
        "created": summary.created.and_then(time::utc),
        "updated": summary.updated.and_then(time::utc),
        "first_words": words,
        "damage": summary.damage.iter().map(super::damage_json).collect::<Vec<_>>(),
        "file": memory.path(&summary.id).display().to_string(),
    })
}
