//! The catalogue: all conversations of a directory, without reading them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::conversation::{Contents, Conversation, Known, has_frame, other_conversation, read};
use super::lock::explained;
use super::names::{FileName, Key, Names};
use super::options::FileLocks;
use super::reader::time;
use super::{Store, io_error};
use crate::disk::{Lock, Open};
use crate::error::{Error, Result};
use crate::history::{ConversationSummary, Cursor, Damage, DamageKind, Page, PageRequest, Problem};
use crate::log::{FileHeader, FrameHeader, Tail};

/// The list that the last first page made, for the pages behind it.
#[derive(Debug, Default)]
pub(super) struct Catalogue(Mutex<Option<Arc<Listing>>>);

/// What is in a directory, by name and time alone.
#[derive(Debug, Default)]
struct Listing {
    /// The conversations' files, the one written last first, with the time of the last write in nanoseconds since 1970.
    files: Vec<(u64, Key)>,
    /// What was set aside, by conversation.
    set_aside: HashMap<Key, Vec<Aside>>,
    /// What is no conversation's.
    problems: Vec<Problem>,
}

/// A copy of bytes that did not hold.
#[derive(Debug)]
struct Aside {
    path: PathBuf,
    offset: u64,
    /// Whether a crash had left them, so that nothing was lost.
    is_torn: bool,
}

impl Catalogue {
    /// A page of conversations. A first page lists the directory anew; the others go on with that list while there is one.
    pub(super) fn page(&self, store: &Store, request: &PageRequest) -> Result<Page<ConversationSummary>> {
        let limit = request.checked_limit()?;
        let listing = match request.cursor() {
            Some(_) => self.0.lock().clone(),
            None => None,
        };
        let listing = match listing {
            Some(listing) => listing,
            None => {
                let listing = Arc::new(Listing::of(store)?);
                *self.0.lock() = Some(Arc::clone(&listing));
                listing
            }
        };

        let mut page = Page::new(Vec::new(), None, Vec::new());
        let start = match request.cursor() {
            None => {
                page.problems.clone_from(&listing.problems);
                0
            }
            Some(cursor) => {
                let passed =
                    |(written, key): &(u64, Key)| (*written, key.to_string()) >= (cursor.written, cursor.key.clone());
                listing.files.partition_point(passed)
            }
        };
        let mut rest = listing.files.iter().skip(start).peekable();
        while let Some((written, key)) = rest.next() {
            let asides = listing.set_aside.get(key).map_or(&[][..], Vec::as_slice);
            let without_item =
                |aside: &Aside| Problem::new(&aside.path, "it was set aside from a conversation that is not listed");
            match summary(store, *key, asides) {
                Ok(Some(summary)) => page.items.push(summary),
                // Removed since, or never acknowledged.
                Ok(None) => page.problems.extend(asides.iter().map(without_item)),
                Err(problem) => {
                    page.problems.push(problem);
                    page.problems.extend(asides.iter().map(without_item));
                }
            }
            if page.items.len() == limit {
                page.next = rest.peek().map(|_| Cursor::new(*written, key.to_string()));
                break;
            }
        }
        if page.next.is_none() {
            *self.0.lock() = None; // the last page needs it no more
        }
        Ok(page)
    }
}

impl Listing {
    fn of(store: &Store) -> Result<Self> {
        let wanted = |name: &OsStr| FileName::of(name) != FileName::Other;
        let found = store.with_handles(|| store.disk.survey(&store.root, &wanted));
        let mut listing = Self::default();
        for (name, modified) in found.map_err(|source| io_error("list", &store.root, source))? {
            let path = || store.root.join(&name);
            match FileName::of(&name) {
                FileName::Conversation(key) => listing.files.push((modified, key)),
                FileName::SetAside(key, offset, is_torn) => {
                    listing.set_aside.entry(key).or_default().push(Aside { path: path(), offset, is_torn });
                }
                FileName::ForeignData => {
                    let reason = "it is no conversation's: its name is not the sha256 of an id";
                    listing.problems.push(Problem::new(path(), reason));
                }
                FileName::Other => {}
            }
        }
        listing.files.sort_unstable_by_key(|(written, key)| std::cmp::Reverse((*written, key.0)));
        let known: HashSet<Key> =
            listing.files.iter().map(|(_, key)| *key).filter(|key| listing.set_aside.contains_key(key)).collect();
        for (_, asides) in listing.set_aside.iter().filter(|(key, _)| !known.contains(key)) {
            let reason = "it was set aside from a conversation that is gone";
            listing.problems.extend(asides.iter().map(|aside| Problem::new(&aside.path, reason)));
        }
        listing.problems.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }
}

/// A conversation from its file's header and end; `None` where it has no acknowledged message.
fn summary(store: &Store, key: Key, set_aside: &[Aside]) -> Result<Option<ConversationSummary>, Problem> {
    let path = Names::new(&store.root, key).data().to_owned();
    let problem = |error: Error| {
        let reason = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        Problem::new(&path, reason.map(ToString::to_string).collect::<Vec<_>>().join(": "))
    };
    let Some(id) = id_of(store, key, &path).map_err(problem)? else {
        return Ok(None);
    };
    let conversation = Conversation { store, id: &id, key };
    let slot = store.slots.take(key, &store.root);
    let Some(locked) = slot.shared(&conversation).map_err(problem)? else {
        return Ok(None);
    };
    let known = match &locked.contents {
        Contents::Known(known) => known,
        Contents::Unreadable { reason, .. } => return Err(Problem::new(&path, *reason)),
    };
    let Known { last: Some(last), end, tail, .. } = known else {
        return Ok(None);
    };
    let reason = "the file header does not hold";
    let first = known.first_frame(&id).ok_or_else(|| Problem::new(&path, reason))?;
    let reading = |source| problem(slot.names.io("read", source));
    let len = locked.file.status().map_err(reading)?.len;
    let first = read(&*locked.file, first, first + FrameHeader::LEN as u64).map_err(reading)?;

    let mut summary = ConversationSummary::new(id.as_str());
    summary.messages = last.header.next_seq();
    summary.bytes = locked.contents.len().min(len);
    summary.created = FrameHeader::parse(&first).map(|header| time(header.recorded_at));
    summary.updated = Some(time(last.header.recorded_at));
    if *tail == Tail::Damaged {
        summary.damage.push(Damage::new(DamageKind::End, *end, len));
    }
    for aside in set_aside.iter().filter(|aside| !aside.is_torn) {
        let len = store.disk.status(&aside.path).map_or(0, |status| status.len);
        summary.damage.push(Damage::new(DamageKind::SetAside, aside.offset, aside.offset.saturating_add(len)));
    }
    Ok(Some(summary))
}

/// The id in a file's header; `None` for a file that is gone, or empty.
pub(super) fn id_of(store: &Store, key: Key, path: &Path) -> Result<Option<String>> {
    const USUAL: u64 = 4 << 10;
    let file = match store.with_handles(|| store.disk.open(path, Open::Read)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(io_error("open", path, source)),
    };
    let reading = |source| io_error("read", path, source);
    // Until the file is closed: else a header could be read while somebody writes it.
    if store.options.file_locks == FileLocks::Required {
        file.lock(Lock::Shared).map_err(|source| io_error("lock", path, explained(source)))?;
    }
    let len = file.status().map_err(reading)?.len;
    if len == 0 {
        return Ok(None);
    }
    let mut bytes = read(&*file, 0, USUAL.min(len)).map_err(reading)?;
    if let Some(whole) = FileHeader::len_in(&bytes).filter(|whole| (USUAL..=len).contains(whole)) {
        bytes = read(&*file, 0, whole).map_err(reading)?;
    }
    let id = FileHeader::id_in(&bytes).map(str::to_owned);
    if id.is_none() && FileHeader::is_cut_off(&bytes, len, &key.0) && !has_frame(&*file, len).map_err(reading)? {
        return Ok(None); // a creation that was never acknowledged
    }
    let reason =
        "the file header does not hold, so the conversation's id is not known; its messages are read under their id";
    match id {
        // Nobody who asks for that id would be led to this file.
        Some(id) if Key::of(&id) != key => Err(other_conversation(&Names::new(&store.root, key))),
        Some(id) => Ok(Some(id)),
        None => Err(Error::Corrupt { path: path.to_owned(), offset: 0, reason }),
    }
}
