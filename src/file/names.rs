//! The names of a conversation's files.

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

/// Where a conversation's files are.
#[derive(Debug, Clone)]
pub(super) struct Names {
    root: PathBuf,
    stem: String,
    data: PathBuf,
}

impl Names {
    pub(super) fn new(root: &Path, key: Key) -> Self {
        let stem = hex::encode(key.0);
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
    /// makes one copy.
    pub(super) fn aside(&self, offset: u64, crc: u32) -> PathBuf {
        self.root.join(format!("{}.aside-{offset}-{crc:08x}", self.stem))
    }

    /// Whether a name in the directory belongs to this conversation beside the conversation itself.
    pub(super) fn is_beside(&self, name: &std::ffi::OsStr) -> bool {
        let rest = name.to_str().and_then(|name| name.strip_prefix(&self.stem));
        rest.is_some_and(|rest| rest == ".bin.tmp" || rest.starts_with(".aside-"))
    }
}
