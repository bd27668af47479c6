//! `import`: conversations in.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use chat_memory::{ChatHistory, Entry, Error, FileChatMemory, HistoryRange};
use serde_json::json;

use crate::cli::{Global, ImportArgs};
use crate::failure::{Failure, in_full};
use crate::import::{self, Archive, Conversation, Refused, Said};
use crate::out::{BOLD, DIM, GREEN, Out, RED, Styled, YELLOW};
use crate::progress::Progress;
use crate::store;
use crate::text::{count, on_a_line, path};

pub fn run(global: &Global, args: &ImportArgs, out: &mut Out) -> Result<(), Failure> {
    // Without a store there is nothing that could be there already.
    let memory = match args.dry_run && !global.store.is_dir() {
        true => None,
        false => Some(store::create(&global.store)?),
    };
    let mut import =
        Import { args, memory, seen: HashSet::new(), done: 0, messages: 0, unchanged: 0, empty: 0, refused: 0 };
    for file in &args.files {
        import.file(file, out)?;
    }
    import.summary(out)
}

struct Import<'a> {
    args: &'a ImportArgs,
    memory: Option<FileChatMemory>,
    /// The ids of this run: two files that are only named alike must not become one conversation.
    seen: HashSet<String>,
    done: u64,
    messages: u64,
    unchanged: u64,
    empty: u64,
    refused: u64,
}

/// What became of a conversation.
enum Fate {
    /// It is new here.
    Stored(u64),
    /// It was here, and had grown.
    Grown { added: u64, before: u64 },
    /// It was here.
    Unchanged(u64),
    /// Nothing was said in it.
    Empty,
}

impl Import<'_> {
    fn file(&mut self, file: &Path, out: &mut Out) -> Result<(), Failure> {
        let name = path(file);
        let read = text(file).and_then(|text| {
            let archive = import::read(&name, &text, self.args.format)?;
            match &self.args.into {
                Some(_) if archive.conversations.len() != 1 || self.args.files.len() != 1 => Err(Refused {
                    name: name.clone(),
                    line: 1,
                    column: 1,
                    reason: format!(
                        "--into gives one conversation its id, and here are {}: --prefix goes before the ids of several",
                        archive.conversations.len()
                    ),
                }),
                _ => Ok(archive),
            }
        });
        let Archive { format, conversations } = match read {
            Ok(archive) => archive,
            Err(refused) => return self.refuse(&name, &refused, out),
        };
        if !out.is_json() {
            let found = count(conversations.len() as u64, "conversation");
            out.line(format_args!("{}: {found} in the form {}", Styled(BOLD, &name), format.name()))?;
        }
        let mut progress = Progress::new(conversations.len() as u64, "conversations");
        for conversation in conversations {
            match conversation {
                Ok(conversation) => self.conversation(&name, conversation, out)?,
                Err(refused) => self.refuse(&name, &refused, out)?,
            }
            out.flush()?; // what is stored is reported, also if this is stopped
            progress.advance(1);
        }
        Ok(())
    }

    fn conversation(&mut self, file: &str, conversation: Conversation, out: &mut Out) -> Result<(), Failure> {
        let Conversation { id, title, said, notes } = conversation;
        let id = match (&self.args.into, &self.args.prefix) {
            (Some(into), _) => into.clone(),
            (None, Some(prefix)) => format!("{prefix}{id}"),
            (None, None) => id,
        };
        let is_unnamed = file == "-" && (id == "-" || id.starts_with("-/"));
        let fate = if is_unnamed && self.args.prefix.is_none() {
            Err("standard input has no name: --into gives one conversation its id, --prefix several".to_owned())
        } else if !self.seen.insert(id.clone()) {
            Err("an earlier file of this import has a conversation of this id: --prefix tells them apart".to_owned())
        } else {
            self.store(&id, said)
        };
        let fate = match fate {
            Ok(fate) => fate,
            Err(reason) => {
                self.refused += 1;
                return match out.is_json() {
                    true => out.json(&json!({
                        "file": file, "conversation": id, "title": title, "status": "refused", "reason": reason,
                    })),
                    false => out.line(format_args!("  {} {}: {reason}", Styled(RED, "refused"), on_a_line(&id))),
                };
            }
        };
        let (status, messages) = match fate {
            Fate::Stored(messages) => ("imported", messages),
            Fate::Grown { added, .. } => ("added", added),
            Fate::Unchanged(_) => ("unchanged", 0),
            Fate::Empty => ("empty", 0),
        };
        match fate {
            Fate::Empty => self.empty += 1,
            Fate::Unchanged(_) => self.unchanged += 1,
            Fate::Stored(_) | Fate::Grown { .. } => self.done += 1,
        }
        self.messages += messages;
        if out.is_json() {
            return out.json(&json!({
                "file": file, "conversation": id, "title": title, "status": status, "messages": messages, "notes": notes,
            }));
        }
        let title = title.map(|title| format!(" {}", Styled(DIM, on_a_line(&title)))).unwrap_or_default();
        let what = match fate {
            Fate::Stored(messages) => Styled(GREEN, count(messages, "message")),
            Fate::Grown { added, before } => Styled(GREEN, format!("{added} more than the {before} that were here")),
            Fate::Unchanged(messages) => Styled(DIM, format!("unchanged, {}", count(messages, "message"))),
            Fate::Empty => Styled(DIM, "empty, not stored".to_owned()),
        };
        out.line(format_args!("  {}: {what}{title}", on_a_line(&id)))?;
        const MOST: usize = 5;
        for note in notes.iter().take(MOST) {
            out.line(format_args!("      {} {}", Styled(YELLOW, "note:"), on_a_line(note)))?;
        }
        if notes.len() > MOST {
            out.line(format_args!("      {} {} more; --json shows all", Styled(YELLOW, "note:"), notes.len() - MOST))?;
        }
        Ok(())
    }

    /// Stores what is not there yet; an error is the reason why nothing was stored.
    fn store(&self, id: &str, said: Said) -> Result<Fate, String> {
        let now = SystemTime::now();
        let entries: Vec<Entry> = match said {
            Said::Entries(entries) => entries,
            Said::Messages(messages) => {
                (0..).zip(messages).map(|(seq, message)| Entry::new(seq, now, message)).collect()
            }
        };
        if entries.is_empty() {
            return Ok(Fate::Empty);
        }
        let number = entries.len() as u64;
        let Some(memory) = &self.memory else {
            return Ok(Fate::Stored(number));
        };
        let reason = |error: Error| in_full(&error);
        let stored = memory.history(id, HistoryRange::all()).map_err(reason)?;
        let after = stored.last().map(|last| last.seq);
        let is_the_same = |(a, b): (&Entry, &Entry)| {
            a.message.role() == b.message.role() && a.message.content() == b.message.content()
        };
        if !stored.iter().zip(&entries).all(is_the_same) {
            let reason = "another conversation has this id already, or a part of this one: --prefix or --into gives this one another id, \
                          and after `clear` it takes the place of the other";
            return Err(reason.to_owned());
        }
        let mut new: Vec<Entry> = entries.into_iter().skip(stored.len()).collect();
        if new.is_empty() {
            return Ok(Fate::Unchanged(number));
        }
        // Numbers that are taken here are given anew; those of a conversation that has the same here and there fit.
        if new.first().zip(after).is_some_and(|(first, after)| first.seq <= after) {
            let first = after.map_or(0, |after| after.saturating_add(1));
            (first..).zip(&mut new).for_each(|(seq, entry)| entry.seq = seq);
        }
        let added = new.len() as u64;
        if !self.args.dry_run {
            // Only behind what was looked at: somebody may add to it meanwhile.
            memory.restore(id, after, &new).map_err(reason)?;
        }
        match after {
            None => Ok(Fate::Stored(added)),
            Some(_) => Ok(Fate::Grown { added, before: stored.len() as u64 }),
        }
    }

    fn refuse(&mut self, file: &str, refused: &Refused, out: &mut Out) -> Result<(), Failure> {
        self.refused += 1;
        let Refused { name, line, column, reason } = refused;
        match out.is_json() {
            true => out.json(&json!({
                "file": file, "name": name, "status": "refused", "line": line, "column": column, "reason": reason,
            })),
            false if name == file && *line == 0 => {
                out.line(format_args!("{} {file}: {reason}", Styled(RED, "refused")))
            }
            false if name == file => {
                out.line(format_args!("{} {file}:{line}:{column}: {reason}", Styled(RED, "refused")))
            }
            false => {
                let name = on_a_line(name);
                out.line(format_args!("  {} {name} ({file}:{line}:{column}): {reason}", Styled(RED, "refused")))
            }
        }
    }

    fn summary(&self, out: &mut Out) -> Result<(), Failure> {
        let Self { done, messages, unchanged, empty, refused, .. } = self;
        if !out.is_json() {
            let would = if self.args.dry_run { "would be " } else { "" };
            let done = format!("{} with {}", count(*done, "conversation"), count(*messages, "message"));
            let empty = if *empty > 0 { format!(", {empty} empty") } else { String::new() };
            out.line(format_args!("{done} {would}imported, {unchanged} unchanged{empty}, {refused} refused"))?;
        }
        match refused {
            0 => Ok(()),
            _ if *done + *unchanged == 0 => {
                Err(Failure::Other("nothing was imported; the reasons are above".to_owned()))
            }
            _ if self.args.dry_run => Err(Failure::Partly(format!("{refused} would be refused; nothing was stored"))),
            _ => Err(Failure::Partly(format!("{refused} refused; what was good is stored"))),
        }
    }
}

/// The text of a file, or of standard input.
fn text(file: &Path) -> Result<String, Refused> {
    let refused = |line, column, reason| Refused { name: path(file), line, column, reason };
    let mut bytes = Vec::new();
    let read = match file.as_os_str() == "-" {
        true => std::io::stdin().read_to_end(&mut bytes).map(drop),
        false => fs::read(file).map(|read| bytes = read),
    };
    read.map_err(|error| refused(0, 0, format!("it cannot be read: {error}")))?;
    if bytes.trim_ascii().is_empty() {
        return Err(refused(1, 1, "it is empty".to_owned()));
    }
    let packed = match &bytes[..] {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [b'P', b'K', 3, 4, ..] => Some("a zip archive"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        _ => None,
    };
    if let Some(packed) = packed {
        return Err(refused(1, 1, format!("it is {packed}; unpack or convert it to UTF-8 first")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = good.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        refused(line, column, "it is no UTF-8 text from here on".to_owned())
    })
}
