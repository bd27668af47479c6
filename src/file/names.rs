//! The names of a conversation's files.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The sha256 of a conversation id: what a store knows a conversation by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(pub(super) [u8; 32]);

impl Key {
    pub(super) fn of(conversation_id: &str) -> Self {
        Self(Sha256::digest(conversation_id.as_bytes()).into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// What a name in the directory says of its file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileName {
    Conversation(Key),
    /// Bytes set aside from a conversation's file, where they were, and whether a crash had left them.
    SetAside(Key, u64, bool),
    /// Named as a conversation's, and no conversation's.
    ForeignData,
    /// Somebody else's, or a repair's.
    Other,
}

impl FileName {
    pub(super) fn of(name: &OsStr) -> Self {
        let Some(name) = name.to_str() else {
            return FileName::Other;
        };
        let key = |stem: &str| {
            let mut key = [0; 32];
            let is_lower = !stem.bytes().any(|byte| byte.is_ascii_uppercase());
            (is_lower && hex::decode_to_slice(stem, &mut key).is_ok()).then_some(Key(key))
        };
        if let Some(stem) = name.strip_suffix(".bin") {
            return key(stem).map_or(FileName::ForeignData, FileName::Conversation);
        }
        let aside = name.split_once(".aside-").and_then(|(stem, place)| {
            let (offset, crc) = place.split_once('-')?;
            Some(FileName::SetAside(key(stem)?, offset.parse().ok()?, crc.ends_with(TORN)))
        });
        aside.unwrap_or(FileName::Other)
    }
}

const TORN: &str = "-torn";

/// Where a conversation's files are.
#[derive(Debug, Clone)]
pub(super) struct Names {
    root: PathBuf,
    stem: String,
    data: PathBuf,
}

impl Names {
    pub(super) fn new(root: &Path, key: Key) -> Self {
        let stem = key.to_string();
        let data = root.join(format!("{stem}.bin"));
        Self { root: root.to_owned(), stem, data }
    }

    /// The conversation itself.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// What a repair writes before it takes the conversation's name.
    pub(super) fn temporary(&self) -> PathBuf {
        self.root.join(format!("{}.bin.tmp", self.stem))
    }

    /// A copy of damaged bytes, named by where they were and by their checksum, so that setting the same bytes aside twice
    /// makes one copy; and marked where a crash left them, so that nothing was lost.
    pub(super) fn aside(&self, offset: u64, crc: u32, is_torn: bool) -> PathBuf {
        let mark = if is_torn { TORN } else { "" };
        self.root.join(format!("{}.aside-{offset}-{crc:08x}{mark}", self.stem))
    }

    /// The name that a copy of damaged bytes has when its conversation has another id; `None` for any other file.
    pub(super) fn renamed_aside(&self, path: &Path, new: &Names) -> Option<PathBuf> {
        let rest = path.file_name()?.to_str()?.strip_prefix(&self.stem)?;
        rest.starts_with(".aside-").then(|| new.root.join(format!("{}{rest}", new.stem)))
    }

    /// Whether a name in the directory belongs to this conversation beside the conversation itself.
    pub(super) fn is_beside(&self, name: &OsStr) -> bool {
        let rest = name.to_str().and_then(|name| name.strip_prefix(&self.stem));
        rest.is_some_and(|rest| rest == ".bin.tmp" || rest.starts_with(".aside-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let key = Key::of("user-42");
        let names = Names::new(Path::new("/store"), key);
        let of = |path: &Path| FileName::of(path.file_name().unwrap());
        assert_eq!(of(names.data()), FileName::Conversation(key));
        assert_eq!(of(&names.aside(17, 0xabc, false)), FileName::SetAside(key, 17, false));
        assert_eq!(of(&names.aside(17, 0xabc, true)), FileName::SetAside(key, 17, true));
        assert_eq!(of(&names.temporary()), FileName::Other);
        assert_eq!(FileName::of(OsStr::new("zz.bin")), FileName::ForeignData);
        assert_eq!(FileName::of(OsStr::new(&format!("{}.bin", "F".repeat(64)))), FileName::ForeignData);
        assert_eq!(FileName::of(OsStr::new("notes.txt")), FileName::Other);
        assert!(names.is_beside(names.aside(17, 0, true).file_name().unwrap()));
        assert!(!names.is_beside(names.data().file_name().unwrap()));
    }
}
