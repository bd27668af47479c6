//! `export`: conversations out.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use chat_memory::{FileChatMemory, HistoryRange};

use crate::cli::{ExportArgs, Global};
use crate::export::{Format, archive};
use crate::failure::Failure;
use crate::out::{self, Out, Styled, YELLOW};
use crate::progress::Progress;
use crate::store::{self, Store};
use crate::text::{count, on_a_line};

pub fn run(global: &Global, args: &ExportArgs, out: &mut Out) -> Result<(), Failure> {
    let store = Store::open(global)?;
    let mut ids = args.conversations.clone();
    let mut failed = 0;
    if args.all {
        let catalogue = store::catalogue(&store.memory)?;
        catalogue.problems.iter().for_each(|problem| out::problem("not exported:", problem));
        failed = catalogue.problems.len() as u64;
        ids = catalogue.conversations.into_iter().map(|summary| summary.id).collect();
        // The order of a backup must not depend on who wrote last.
        ids.sort_unstable();
    }
    let several = args.all || ids.len() > 1;
    let mut progress = Progress::new(ids.len() as u64, "conversations");
    let mut done = |id: &str, result: Result<(), Failure>| {
        progress.advance(1);
        match result {
            Err(failure @ (Failure::Memory(_) | Failure::Nothing(_))) if several => {
                failed += 1;
                out::note(format_args!("{} {}: {failure}", Styled(YELLOW, "not exported:"), on_a_line(id)));
                Ok(())
            }
            result => result,
        }
    };
    match (&args.output, args.format) {
        (None, Format::Jsonl) => ids.iter().try_for_each(|id| done(id, lines(&store, id, |line| out.data(&line))))?,
        (Some(path), Format::Jsonl) => {
            replace(path, |file| {
                let failed = |source| Failure::Io { operation: "write to", path: path.clone(), source };
                let mut written = 0;
                for id in &ids {
                    let line = |line| {
                        written += 1;
                        writeln!(file, "{line}").map_err(failed)
                    };
                    done(id, lines(&store, id, line))?;
                }
                match written {
                    0 if !ids.is_empty() => {
                        Err(Failure::Other("nothing could be exported, so no file was written".to_owned()))
                    }
                    _ => Ok(()),
                }
            })?;
        }
        (None, _) if several => {
            return Err(Failure::Usage(
                "several conversations of this form do not fit one file: name a directory with --output".to_owned(),
            ));
        }
        (None, format) => ids
            .iter()
            .try_for_each(|id| done(id, whole(&store, id, format).and_then(|text| out.bytes(text.as_bytes()))))?,
        (Some(path), format) if several => {
            fs::create_dir_all(path).map_err(Failure::io("create", path))?;
            let mut taken = std::collections::HashSet::new();
            ids.iter().try_for_each(|id| {
                let file = path.join(file_name(id, format, &store.memory, &mut taken));
                done(id, whole(&store, id, format).and_then(|text| write(&file, &text)))
            })?;
        }
        (Some(path), format) => {
            ids.iter().try_for_each(|id| done(id, whole(&store, id, format).and_then(|text| write(path, &text))))?;
        }
    }
    drop(progress);
    match failed {
        0 => store.verdict(),
        _ => Err(Failure::Partly(format!("{} not exported", count(failed, "conversation")))),
    }
}

/// Our own form, without holding a conversation in memory.
fn lines(store: &Store, id: &str, mut write: impl FnMut(String) -> Result<(), Failure>) -> Result<(), Failure> {
    let found = store.for_each_chunk(id, |chunk| {
        chunk.iter().try_for_each(|entry| write(archive::line(id, entry)))?;
        Ok(true)
    })?;
    if found { Ok(()) } else { Err(store::unknown(id)) }
}

fn whole(store: &Store, id: &str, format: Format) -> Result<String, Failure> {
    let entries = store.history(id, HistoryRange::all())?;
    if entries.is_empty() {
        return Err(store::unknown(id));
    }
    let written = format.write(id, &entries);
    const MOST: usize = 5;
    for unsaid in written.unsaid.iter().take(MOST) {
        out::note(format_args!("{} {}, {unsaid}", Styled(YELLOW, "left out:"), on_a_line(id)));
    }
    if let Some(more) = written.unsaid.len().checked_sub(MOST + 1) {
        out::note(format_args!("{} {}, {} more of the kind", Styled(YELLOW, "left out:"), on_a_line(id), more + 1));
    }
    Ok(written.text)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    replace(path, |file| file.write_all(text.as_bytes()).map_err(Failure::io("write to", path)))
}

/// Writes a file under another name first, so that a backup is never half a backup: after a failure the old one is there.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&fs::File>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if path.is_dir() {
        let text = format!("{} is a directory; name a file, or several conversations", crate::text::path(path));
        return Err(Failure::Usage(text));
    }
    let fill = |file: &fs::File| {
        let mut file = BufWriter::with_capacity(1 << 16, file);
        write(&mut file)?;
        file.flush().map_err(Failure::io("write to", path))
    };
    // What is no plain file, such as /dev/stdout, is written to as it is. A link is followed.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fill(&fs::File::create(path).map_err(Failure::io("open", path))?);
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // For its owner alone, as the store is, and gone if anything fails.
    let partial = tempfile::NamedTempFile::new_in(directory).map_err(Failure::io("create a file in", directory))?;
    fill(partial.as_file())?;
    partial.as_file().sync_all().map_err(Failure::io("sync", partial.path()))?;
    partial.persist(&target).map(drop).map_err(|error| Failure::io("replace", path)(error.error))
}

/// A name that a person knows the conversation by and every file system takes; where that is not the id itself, with the
/// beginning of the store's own name behind it.
fn file_name(
    id: &str,
    format: Format,
    memory: &FileChatMemory,
    taken: &mut std::collections::HashSet<String>,
) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    let plain: String = id.chars().take(60).map(|char| if is_plain(char) { char } else { '_' }).collect();
    let hash = memory.path(id);
    let hash = hash.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let extension = format.extension();
    if plain == id && !id.starts_with(['.', '-']) && taken.insert(plain.to_lowercase()) {
        return format!("{plain}.{extension}");
    }
    format!("{}-{}.{extension}", plain.trim_start_matches(['.', '-']), hash.get(..12).unwrap_or(hash))
}
