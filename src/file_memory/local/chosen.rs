//! The folders that were chosen for sessions, remembered in the root.

use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::folder::{Durable, Folder};
use crate::error::{Error, Result};
use crate::file_memory::name::FolderName;

const PLACE: &str = ".folders";
const LOCK: &str = ".lock";
const WAITING: &str = ".put";

/// The folder that is remembered for a session, or the one that `choose` chooses now.
///
/// Two files for each: the session's holds the folder's name, the folder's holds the session's key. The folder's is written
/// first, so a crash between the two leaves a folder that nobody else gets.
pub(super) fn folder_of(
    root: &Folder,
    session_id: &str,
    choose: &dyn Fn() -> Result<FolderName>,
) -> Result<FolderName> {
    let session = hex::encode(Sha256::digest(session_id));
    if let Some(place) = root.child(PLACE)?
        && let Some(known) = remembered(&place, &session)?
    {
        return Ok(known);
    }
    let place = root.child_or_new(PLACE)?;
    root.sync()?;
    let lock = place.open_own(LOCK)?;
    lock.lock().map_err(|error| place.failed("lock", LOCK, error))?;
    if let Some(known) = remembered(&place, &session)? {
        return Ok(known);
    }
    let chosen = choose()?;
    let owner_file = format!("folder-{}", hex::encode(Sha256::digest(chosen.key())));
    match place.read(&owner_file, 100)? {
        Some(owner) if owner != session.as_bytes() => {
            return Err(Error::Conflict { reason: "the folder that was chosen for the session is another session's" });
        }
        _ => keep(&place, &owner_file, &session)?,
    }
    keep(&place, &session_file(&session), chosen.as_str())?;
    Ok(chosen)
}

fn session_file(session: &str) -> String {
    format!("session-{session}")
}

fn remembered(place: &Folder, session: &str) -> Result<Option<FolderName>> {
    let Some(name) = place.read(&session_file(session), 1 << 10)? else { return Ok(None) };
    FolderName::new(&String::from_utf8_lossy(&name)).map(Some)
}

fn keep(place: &Folder, name: &str, text: &str) -> Result<()> {
    place.write(WAITING, text.as_bytes(), SystemTime::now(), Durable::Yes)?;
    place.rename(WAITING, name)?;
    place.sync()
}
