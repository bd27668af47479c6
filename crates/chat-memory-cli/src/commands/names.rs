//! `path` and `id`: from a conversation to its file, and back.

use serde_json::json;

use crate::cli::{Global, IdArgs, PathArgs};
use crate::failure::Failure;
use crate::out::{self, Out};
use crate::store;
use crate::text::harmless;

pub fn path(global: &Global, args: &PathArgs, out: &mut Out) -> Result<(), Failure> {
    let memory = store::open(global)?;
    let mut missing = None;
    for id in &args.conversations {
        let path = memory.path(id);
        match out.is_json() {
            true => {
                out.json(&json!({ "conversation": id, "file": path.display().to_string(), "exists": path.exists() }))?
            }
            false if out.is_terminal() => out.line(crate::text::path(&path))?,
            false => out.data(&path.display().to_string())?,
        }
        if !path.exists() {
            missing = Some(id);
        }
    }
    missing.map_or(Ok(()), |id| Err(store::unknown(id)))
}

pub fn id(global: &Global, args: &IdArgs, out: &mut Out) -> Result<(), Failure> {
    let memory = store::open(global)?;
    let mut failed = 0;
    for file in &args.files {
        let found = match memory.id_of(file) {
            Ok(Some(id)) => id,
            Ok(None) => {
                out::note(format_args!(
                    "{}: there is no such file in the store, or nothing in it yet",
                    crate::text::path(file)
                ));
                failed += 1;
                continue;
            }
            Err(error) => {
                out::note(format_args!("{}: {}", crate::text::path(file), crate::failure::in_full(&error)));
                failed += 1;
                continue;
            }
        };
        match out.is_json() {
            true => out.json(&json!({ "conversation": found, "file": file.display().to_string() }))?,
            false if out.is_terminal() => out.line(harmless(&found))?,
            false => out.data(&found)?,
        }
    }
    match failed {
        0 => Ok(()),
        _ if failed == args.files.len() => Err(Failure::Nothing("none of them is a conversation's file".to_owned())),
        _ => Err(Failure::Partly(format!("{failed} of {} are no conversation's files", args.files.len()))),
    }
}
