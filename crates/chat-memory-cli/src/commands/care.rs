//! `verify`, `repair`, `clear`, `copy` and `rename`.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use chat_memory::{ChatHistory, ChatMemory, Damage, DamageKind, FileChatMemory, Repair};
use serde_json::json;

use crate::cli::{ClearArgs, FromTo, Global, RepairArgs, VerifyArgs};
use crate::failure::{Failure, in_full};
use crate::out::{DIM, GREEN, Out, RED, Styled, YELLOW};
use crate::progress::Progress;
use crate::store;
use crate::text::{count, on_a_line, size};

pub fn verify(global: &Global, args: &VerifyArgs, out: &mut Out) -> Result<(), Failure> {
    let memory = store::open(global)?;
    let (ids, foreign) = chosen(&memory, &args.conversations, out)?;
    let mut harmed = 0;
    let mut progress = Progress::new(ids.len() as u64, "conversations");
    let (mut messages, mut bytes) = (0, 0);
    for id in &ids {
        let name = on_a_line(id);
        match memory.verify(id) {
            Ok(found) => {
                if found.messages == 0
                    && found.damage.is_empty()
                    && found.set_aside.is_empty()
                    && !args.conversations.is_empty()
                {
                    return Err(store::unknown(id));
                }
                messages += found.messages;
                bytes += found.bytes;
                if out.is_json() {
                    out.json(&json!({
                        "conversation": id, "messages": found.messages, "bytes": found.bytes,
                        "damage": found.damage.iter().map(super::damage_json).collect::<Vec<_>>(),
                        "set_aside": found.set_aside.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(), "file": memory.path(id).display().to_string(),
                    }))?;
                } else if !found.is_whole() {
                    // What was mended is no damage any more; what was lost is not forgotten as long as its copy is there.
                    let state = if found.damage.is_empty() { Styled(YELLOW, "mended") } else { Styled(RED, "damaged") };
                    out.line(format_args!("{state} {name}: {} intact", count(found.messages, "message")))?;
                    tell(out, &found.damage)?;
                    for path in &found.set_aside {
                        out.line(format_args!("    set aside earlier: {}", crate::text::path(path)))?;
                    }
                    out.line(format_args!("    {}", Styled(DIM, crate::text::path(&memory.path(id)))))?;
                } else if !args.conversations.is_empty() {
                    out.line(format_args!("{} {name}: {}", Styled(GREEN, "whole"), count(found.messages, "message")))?;
                }
                harmed += u64::from(!found.damage.is_empty());
            }
            Err(error) => {
                harmed += 1;
                report(out, id, &error)?;
            }
        }
        progress.advance(1);
    }
    drop(progress);
    if !out.is_json() {
        let all = count(ids.len() as u64, "conversation");
        out.line(format_args!("{all}, {}, {} read", count(messages, "message"), size(bytes)))?;
    }
    let foreign = match foreign {
        0 => String::new(),
        foreign => format!("{} no conversation that can be named", is_are(foreign, "file")),
    };
    match harmed {
        0 if foreign.is_empty() => Ok(()),
        0 => Err(Failure::Partly(foreign)),
        _ => {
            let and = if foreign.is_empty() { "" } else { ", and " };
            let harmed = is_are(harmed, "conversation");
            Err(Failure::Partly(format!("{harmed} damaged{and}{foreign}; `chat-memory repair` says what it would do")))
        }
    }
}

pub fn repair(global: &Global, args: &RepairArgs, out: &mut Out) -> Result<(), Failure> {
    let memory = store::open(global)?;
    let (ids, _) = chosen(&memory, &args.conversations, out)?;
    let mut failed = 0;
    let how = if args.apply { Repair::Apply } else { Repair::DryRun };
    let mut progress = Progress::new(ids.len() as u64, "conversations");
    let mut harmed = 0;
    for id in &ids {
        progress.advance(1);
        let name = on_a_line(id);
        let found = match memory.repair(id, how) {
            Ok(found) => found,
            Err(error) => {
                failed += 1;
                report(out, id, &error)?;
                continue;
            }
        };
        if out.is_json() {
            out.json(&json!({
                "conversation": id, "messages": found.messages, "applied": args.apply,
                "damage": found.damage.iter().map(super::damage_json).collect::<Vec<_>>(),
                "set_aside": found.set_aside.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(), "file": memory.path(id).display().to_string(),
            }))?;
        }
        if found.damage.is_empty() {
            continue;
        }
        harmed += 1;
        if out.is_json() {
            continue;
        }
        let done = if args.apply { Styled(GREEN, "mended") } else { Styled(YELLOW, "would be mended") };
        out.line(format_args!("{done} {name}: {} kept", count(found.messages, "message")))?;
        tell(out, &found.damage)?;
        for path in &found.set_aside {
            out.line(format_args!("    set aside: {}", crate::text::path(path)))?;
        }
    }
    drop(progress);
    if !out.is_json() {
        let all = count(ids.len() as u64, "conversation");
        match harmed {
            0 => out.line(format_args!("{all} looked at, nothing to mend"))?,
            _ if args.apply => out.line(format_args!("{all} looked at, {harmed} mended"))?,
            _ => out.line(format_args!("{all} looked at, {harmed} to mend: --apply does it"))?,
        }
    }
    match failed {
        0 if harmed > 0 && !args.apply => Err(Failure::Partly(format!("{} damaged", is_are(harmed, "conversation")))),
        0 => Ok(()),
        _ => Err(Failure::Partly(format!("{} could not be mended", count(failed, "conversation")))),
    }
}

pub fn clear(global: &Global, args: &ClearArgs, out: &mut Out) -> Result<(), Failure> {
    let memory = store::open(global)?;
    for id in &args.conversations {
        if !memory.path(id).exists() {
            return Err(store::unknown(id));
        }
    }
    for id in &args.conversations {
        let name = on_a_line(id);
        if !args.yes && !is_sure(&name)? {
            return Err(Failure::Other(format!("'{name}' was not cleared; --yes does it without asking")));
        }
        memory.clear(id)?;
        match out.is_json() {
            true => out.json(&json!({ "cleared": id }))?,
            false => out.line(format_args!("cleared {name}"))?,
        }
    }
    Ok(())
}

pub fn copy(global: &Global, args: &FromTo, out: &mut Out) -> Result<(), Failure> {
    transfer(global, args, out, "copied", FileChatMemory::copy)
}

pub fn rename(global: &Global, args: &FromTo, out: &mut Out) -> Result<(), Failure> {
    transfer(global, args, out, "renamed", FileChatMemory::rename)
}

fn transfer(
    global: &Global,
    FromTo { from, to }: &FromTo,
    out: &mut Out,
    done: &str,
    transfer: fn(&FileChatMemory, &str, &str) -> chat_memory::Result<u64>,
) -> Result<(), Failure> {
    let memory = store::open(global)?;
    if !memory.path(from).exists() {
        return Err(store::unknown(from));
    }
    let messages = transfer(&memory, from, to)?;
    match out.is_json() {
        true => out.json(&json!({ "from": from, "to": to, "messages": messages, "done": done })),
        false => out.line(format_args!(
            "{done} {} from {} to {}",
            count(messages, "message"),
            on_a_line(from),
            on_a_line(to)
        )),
    }
}

/// The conversations that are meant. Where all are, what cannot be listed is damage too: it is reported and counted.
fn chosen(memory: &FileChatMemory, given: &[String], out: &mut Out) -> Result<(Vec<String>, u64), Failure> {
    if !given.is_empty() {
        return Ok((given.to_vec(), 0));
    }
    let store::Catalogue { conversations, problems } = store::catalogue(memory)?;
    for problem in &problems {
        match out.is_json() {
            true => out.json(&json!({ "file": problem.path.display().to_string(), "problem": problem.reason }))?,
            false => out.line(format_args!(
                "{} {}\n    {}",
                Styled(RED, "not listed"),
                crate::text::path(&problem.path),
                problem.reason
            ))?,
        }
    }
    let mut ids: Vec<String> = conversations.into_iter().map(|summary| summary.id).collect();
    // A file without a whole message is no conversation to the catalogue. Here it is looked at too: it may have had some.
    let listed: HashSet<PathBuf> = ids.iter().map(|id| memory.path(id)).collect();
    let directory = memory.directory();
    for file in std::fs::read_dir(directory).map_err(Failure::io("list", directory))? {
        let path = file.map_err(Failure::io("list", directory))?.path();
        let is_left_out = path.extension().is_some_and(|extension| extension == "bin")
            && !listed.contains(&path)
            && problems.iter().all(|problem| problem.path != path);
        if is_left_out && let Ok(Some(id)) = memory.id_of(&path) {
            ids.push(id);
        }
    }
    Ok((ids, problems.len() as u64))
}

fn tell(out: &mut Out, damage: &[Damage]) -> Result<(), Failure> {
    damage.iter().try_for_each(|Damage { kind, offset, end, .. }| {
        let lost = match kind {
            DamageKind::UnfinishedEnd => "as a crash leaves a write that was not acknowledged yet",
            DamageKind::Header => "no message is in it",
            DamageKind::SetAside => "the copy is kept",
            _ => "what was in it cannot be read; a repair keeps a copy",
        };
        let bytes = size(end.saturating_sub(*offset));
        out.line(format_args!("    bytes {offset} to {end} ({bytes}): {}; {lost}", kind.reason()))
    })
}

fn report(out: &mut Out, id: &str, error: &chat_memory::Error) -> Result<(), Failure> {
    match out.is_json() {
        true => out.json(&json!({ "conversation": id, "error": in_full(error) })),
        false => out.line(format_args!("{} {}: {}", Styled(RED, "failed"), on_a_line(id), in_full(error))),
    }
}

fn is_are(number: u64, one: &str) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{} {verb}", count(number, one))
}

fn is_sure(name: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    anstream::eprint!("Remove '{name}' for good? [y/N] ");
    let failed = |error: io::Error| Failure::Other(format!("cannot ask: {error}"));
    io::stderr().flush().map_err(failed)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
