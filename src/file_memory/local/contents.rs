//! What a folder holds, kept in memory between two looks: names, sizes, times and descriptions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::folder::{Folder, Status};
use crate::error::Result;
use crate::file_memory::name::{DESCRIPTION_SUFFIX, FileName, INDEX_NAME, folded};
use crate::file_memory::store::{FileEntry, MAX_DESCRIPTION_BYTES};

/// Names of ours begin with this while they wait to take another's place.
pub(super) const WAITING: &str = ".put-";

/// No file system's clock that is meant to be used here ticks slower.
const TICK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct Contents {
    /// All that are not hidden, whatever they belong to.
    names: HashSet<String>,
    files: ByName<KnownFile>,
    /// Descriptions, by their own names; the value is the name on disk.
    sidecars: ByName<String>,
    /// Texts of descriptions that were read, by name on disk.
    descriptions: HashMap<String, Option<Arc<str>>>,
    by_time: BTreeSet<(SystemTime, Id)>,
    bytes: u64,
    /// The index as it is on disk.
    pub(super) index: Option<String>,
    /// Whether that is known to be what it should be.
    pub(super) is_index_current: bool,
    /// Whether no name can have come or gone unseen. A change of ours gives the folder a new time, which hides what somebody
    /// else did meanwhile.
    is_certain: bool,
}

/// A name, with what it has in common with others that mean the same file in front.
type Id = (String, String);

#[derive(Debug, Clone)]
pub(super) struct KnownFile {
    /// As it is on disk, where it may not be composed.
    pub(super) on_disk: String,
    pub(super) name: FileName,
    pub(super) size: u64,
    pub(super) modified: SystemTime,
}

impl Contents {
    /// Looks at the folder, and removes what a killed process left waiting.
    pub(super) fn load(folder: &Folder) -> Result<Self> {
        let mut contents = Self { is_certain: is_settled(folder)?, ..Self::default() };
        let mut found = folder.scan()?;
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, status) in found {
            if name.starts_with(WAITING) && status.is_file {
                folder.remove(&name)?;
            } else {
                contents.add(name, status);
            }
        }
        let index = folder.read(INDEX_NAME, 1 << 20).unwrap_or_default();
        // The original writes a byte order mark, and line ends of the system.
        contents.index = index.map(|index| text(&index).replace("\r\n", "\n"));
        Ok(contents)
    }

    fn add(&mut self, on_disk: String, status: Status) {
        if !on_disk.starts_with('.') {
            self.names.insert(on_disk.clone());
        }
        if !status.is_file {
            return;
        }
        if let Ok(name) = FileName::new(&on_disk) {
            let id = (name.key(), name.to_string());
            // Of two that differ in composition alone, the first is the file.
            if self.files.0.contains_key(&id) {
                return;
            }
            self.bytes += status.size;
            self.by_time.insert((status.modified, id.clone()));
            let file = KnownFile { on_disk, name, size: status.size, modified: status.modified };
            self.files.0.insert(id, file);
        } else if folded(&on_disk).ends_with(DESCRIPTION_SUFFIX) {
            self.sidecars.0.insert((folded(&on_disk), on_disk.clone()), on_disk);
        }
    }

    /// Notes that a name now holds something else.
    pub(super) fn wrote(&mut self, on_disk: &str, bytes: &[u8], modified: SystemTime) {
        self.removed(on_disk);
        self.is_index_current = false;
        let status = Status { is_file: true, size: bytes.len() as u64, modified, identity: (0, 0) };
        self.add(on_disk.to_owned(), status);
        if folded(on_disk).ends_with(DESCRIPTION_SUFFIX) {
            self.descriptions.insert(on_disk.to_owned(), described(bytes));
        }
    }

    /// Notes that a name is gone.
    pub(super) fn removed(&mut self, on_disk: &str) {
        self.is_index_current = false;
        self.is_certain = false;
        self.names.remove(on_disk);
        self.descriptions.remove(on_disk);
        if let Ok(name) = FileName::new(on_disk) {
            let id = (name.key(), name.to_string());
            if let Some(file) = self.files.0.remove(&id) {
                self.bytes -= file.size;
                self.by_time.remove(&(file.modified, id));
            }
        } else {
            self.sidecars.0.remove(&(folded(on_disk), on_disk.to_owned()));
        }
    }

    /// Notes what the index says now.
    pub(super) fn wrote_index(&mut self, text: String) {
        self.index = Some(text);
        self.names.insert(INDEX_NAME.to_owned());
        self.is_certain = false;
    }

    /// Looks at the names again, unless that can show nothing new, and where they are others at everything.
    pub(super) fn make_certain(&mut self, folder: &Folder) -> Result<()> {
        if self.is_certain {
            return Ok(());
        }
        self.is_certain = is_settled(folder)?;
        let names = folder.names()?;
        if names.len() != self.names.len() || !names.iter().all(|name| self.names.contains(name)) {
            *self = Self::load(folder)?;
        }
        Ok(())
    }

    /// The file that a name means: the one of exactly that name, else one that differs in case.
    pub(super) fn find(&self, name: &FileName) -> Option<&KnownFile> {
        self.files.find(&name.key(), name.as_str())
    }

    pub(super) fn len(&self) -> usize {
        self.files.0.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The name on disk of a description by that name, if there is one.
    pub(super) fn sidecar(&self, name: &str) -> Option<&str> {
        self.sidecars.find(&folded(name), name).map(String::as_str)
    }

    /// The name on disk of the description that a file has: its own, or else one that it shares.
    pub(super) fn sidecar_of(&self, name: &FileName) -> Option<&str> {
        if self.sidecars.0.is_empty() {
            return None;
        }
        self.sidecar(&name.sidecar()).or_else(|| self.shared_sidecar_of(name))
    }

    /// The name on disk of the original's description for all files of a stem, unless it is the own one of a file that is there.
    pub(super) fn shared_sidecar_of(&self, name: &FileName) -> Option<&str> {
        let shared = name.shared_sidecar()?;
        let stem = shared.strip_suffix(DESCRIPTION_SUFFIX)?;
        let owners = [format!("{stem}.md"), stem.to_owned(), stem.trim_end_matches('.').to_owned()];
        let owners = owners.iter().filter_map(|owner| FileName::new(owner).ok());
        let is_owned = owners.filter(|owner| owner.sidecar() == shared).any(|owner| self.find(&owner).is_some());
        if is_owned { None } else { self.sidecar(&shared) }
    }

    /// The files that have a description by that name on disk, which is the own one of none of them.
    pub(super) fn users_of_shared(&self, sidecar: &str) -> Vec<FileName> {
        let folded_sidecar = folded(sidecar);
        let Some(stem) = folded_sidecar.strip_suffix(DESCRIPTION_SUFFIX) else { return Vec::new() };
        let of_stem = self.files.0.range((stem.to_owned(), String::new())..);
        of_stem
            .take_while(|((key, _), _)| key.starts_with(stem))
            .map(|(_, file)| &file.name)
            .filter(|name| folded(&name.sidecar()) != folded_sidecar && self.sidecar_of(name) == Some(sidecar))
            .cloned()
            .collect()
    }

    /// All files in alphabetical order.
    pub(super) fn files(&self) -> impl Iterator<Item = &KnownFile> {
        self.files.0.values()
    }

    /// The files that were written last, in alphabetical order.
    pub(super) fn recent(&self, limit: usize) -> Vec<&KnownFile> {
        let ids: BTreeSet<&Id> = self.by_time.iter().rev().take(limit).map(|(_, id)| id).collect();
        ids.into_iter().filter_map(|id| self.files.0.get(id)).collect()
    }

    /// An entry of a list, with the description from memory, where it is known.
    pub(super) fn entry(&mut self, folder: &Folder, name: &FileName, look: Look) -> Result<Option<FileEntry>> {
        let Some(mut file) = self.find(name).cloned() else { return Ok(None) };
        if look == Look::OnDisk {
            match folder.status(&file.on_disk)?.filter(|status| status.is_file) {
                Some(status) if (status.size, status.modified) != (file.size, file.modified) => {
                    self.removed(&file.on_disk);
                    self.add(file.on_disk.clone(), status);
                    (file.size, file.modified) = (status.size, status.modified);
                }
                Some(_) => {}
                None => return Ok(None),
            }
        }
        let description = match self.sidecar_of(name).map(str::to_owned) {
            None => None,
            Some(sidecar) => match self.descriptions.get(&sidecar).filter(|_| look == Look::InMemory) {
                Some(known) => known.clone(),
                None => {
                    let read = folder.read(&sidecar, MAX_DESCRIPTION_BYTES as u64)?;
                    let description = read.as_deref().and_then(described);
                    let known = self.descriptions.insert(sidecar, description.clone());
                    if known.is_some_and(|known| known != description) {
                        self.is_index_current = false;
                    }
                    description
                }
            },
        };
        Ok(Some(FileEntry { name: file.name, description, size: file.size, modified: file.modified }))
    }
}

/// Where to look for what an entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// In memory, as far as it was read before.
    InMemory,
    /// On disk: somebody may have edited the file or its description there.
    OnDisk,
}

/// Whether whatever happens to the names from now on gives the folder another time: the file system's clock has ticked since.
fn is_settled(folder: &Folder) -> Result<bool> {
    Ok(folder.modified()?.elapsed().is_ok_and(|elapsed| elapsed > TICK))
}

/// A description file's text, without a byte order mark and line ends behind it; `None` for a blank one.
pub(super) fn described(bytes: &[u8]) -> Option<Arc<str>> {
    let text = text(bytes);
    let text = text.trim_end_matches(['\r', '\n']);
    Some(Arc::from(text)).filter(|text: &Arc<str>| !text.trim().is_empty())
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
}

/// By name, found exactly or else without regard to case and composition.
#[derive(Debug)]
struct ByName<T>(BTreeMap<Id, T>);

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> ByName<T> {
    fn find(&self, key: &str, name: &str) -> Option<&T> {
        self.0.get(&(key.to_owned(), name.to_owned())).or_else(|| {
            let mut alike = self.0.range((key.to_owned(), String::new())..);
            alike.next().filter(|((found, _), _)| found == key).map(|(_, value)| value)
        })
    }
}
