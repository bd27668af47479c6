//! Names of files and of session folders: one rule book for both.

use std::fmt;

use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use crate::error::{Error, Result};

/// What the names of all descriptions end in.
pub(crate) const DESCRIPTION_SUFFIX: &str = "_description.md";
/// The index, which the store writes.
pub(crate) const INDEX_NAME: &str = "memories.md";

const MAX_BYTES: usize = 200;
const SEPARATORS_AND_WILDCARDS: [char; 9] = ['/', '\\', ':', '<', '>', '"', '|', '?', '*'];

/// The name of a file in a session's folder, in NFC. Flat, and fit for every file system.
///
/// ```
/// use chat_memory::FileName;
///
/// assert!(FileName::new("sales 2024.md").is_ok());
/// let refused = FileName::new("../etc/passwd").unwrap_err();
/// assert_eq!(refused.to_string(), "invalid file name: it must not contain any of / \\ : < > \" | ? *");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(String);

impl FileName {
    /// Checks a name, and composes its characters.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidFileName`] with the rule that the name breaks.
    pub fn new(name: &str) -> Result<Self> {
        let name = checked(name)?;
        let folded = folded(&name);
        if folded == INDEX_NAME || folded.ends_with(DESCRIPTION_SUFFIX) {
            return Err(Error::InvalidFileName {
                rule: "memories.md and names that end in _description.md are reserved for the index and for descriptions",
            });
        }
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What two names have in common that mean the same file: they differ in case alone.
    pub(crate) fn key(&self) -> String {
        folded(&self.0)
    }

    /// The name of the file's description: `notes_description.md` for `notes.md`; for others the whole name, and one dot more
    /// where there is none, so that no two files share a description.
    pub(crate) fn sidecar(&self) -> String {
        match self.0.rsplit_once('.') {
            Some((stem, extension)) if extension.eq_ignore_ascii_case("md") && !stem.contains('.') => {
                format!("{stem}{DESCRIPTION_SUFFIX}")
            }
            Some(_) => format!("{}{DESCRIPTION_SUFFIX}", self.0),
            None => format!("{}.{DESCRIPTION_SUFFIX}", self.0),
        }
    }

    /// The name of the description in the Agent Framework, where it is another: `notes_description.md` for `notes.txt` too.
    pub(crate) fn shared_sidecar(&self) -> Option<String> {
        let stem = self.0.rsplit_once('.').map_or(self.0.as_str(), |(stem, _)| stem);
        Some(format!("{stem}{DESCRIPTION_SUFFIX}")).filter(|shared| *shared != self.sidecar())
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a session's folder: the sha256 of the session id, or a name of the caller's choice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FolderName(String);

impl FolderName {
    /// The folder of a session for which nobody chose another.
    pub fn of_session(session_id: &str) -> Self {
        Self(hex::encode(Sha256::digest(session_id)))
    }

    /// A chosen name. It is checked like a file name, and may not look like the folder of a session that has no chosen one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidFolderName`] with the rule that the name breaks.
    pub fn new(name: &str) -> Result<Self> {
        let name = match checked(name) {
            Ok(name) => name,
            Err(Error::InvalidFileName { rule }) => return Err(Error::InvalidFolderName { rule }),
            Err(error) => return Err(error),
        };
        if name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Error::InvalidFolderName { rule: "64 hexadecimal digits may be another session's sha256" });
        }
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What two names have in common that some file system takes for one.
    pub(crate) fn key(&self) -> String {
        folded(&self.0)
    }
}

/// The name in NFC, if it is fit for every file system and looks like what it is.
fn checked(name: &str) -> Result<String> {
    let name: String = name.nfc().collect();
    let rule = if name.trim().is_empty() {
        "it must not be empty or blank"
    } else if name.contains(SEPARATORS_AND_WILDCARDS) {
        "it must not contain any of / \\ : < > \" | ? *"
    } else if name == "." || name == ".." {
        "it must not be . or .."
    } else if name.chars().any(is_unseen) {
        "it must not contain control, zero-width or bidirectional characters"
    } else if name.starts_with(char::is_whitespace) || name.ends_with(char::is_whitespace) {
        "it must not begin or end with a space"
    } else if name.ends_with('.') {
        "it must not end with a dot"
    } else if name.starts_with('.') {
        "it must not begin with a dot"
    } else if is_device(&name) {
        "it must not be the name of a device on Windows, such as CON, NUL or COM1, whatever follows a dot"
    } else if name.len() > MAX_BYTES {
        "it must not be longer than 200 bytes"
    } else {
        return Ok(name);
    };
    Err(Error::InvalidFileName { rule })
}

/// Whether a character is a control, steers the direction of text, or takes no place where it is shown.
pub(crate) fn is_unseen(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Windows opens a device for these, also with an extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_uppercase();
    let numbered = |prefix| {
        let rest = stem.strip_prefix(prefix).unwrap_or_default();
        matches!(rest, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") || numbered("COM") || numbered("LPT")
}

/// The same text for all that differ in case or composition alone: each character's simple case folding, then NFC.
pub(crate) fn folded(name: &str) -> String {
    name.nfc().flat_map(folded_char).nfc().collect()
}

/// Through upper case, so that both small sigmas become one; a dotless i stays itself.
fn folded_char(char: char) -> impl Iterator<Item = char> {
    let mut upper = char.to_uppercase();
    let single = upper.next().filter(|_| upper.next().is_none() && char != 'ı');
    single.unwrap_or(char).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sidecar(name: &str) -> String {
        FileName::new(name).unwrap().sidecar()
    }

    #[test]
    fn no_two_files_share_a_description() {
        assert_eq!(sidecar("notes.md"), "notes_description.md");
        assert_eq!(sidecar("notes.MD"), "notes_description.md");
        assert_eq!(sidecar("notes.txt"), "notes.txt_description.md");
        assert_eq!(sidecar("notes"), "notes._description.md");
        assert_eq!(sidecar("notes.v2.md"), "notes.v2.md_description.md");
        assert_eq!(sidecar("notes..md"), "notes..md_description.md");
    }

    #[test]
    fn the_shared_description_of_the_original() {
        let shared = |name: &str| FileName::new(name).unwrap().shared_sidecar();
        assert_eq!(shared("notes.txt").as_deref(), Some("notes_description.md"));
        assert_eq!(shared("notes").as_deref(), Some("notes_description.md"));
        assert_eq!(shared("notes.v2.md").as_deref(), Some("notes.v2_description.md"));
        assert_eq!(shared("notes.md"), None);
    }

    #[test]
    fn folding_joins_case_and_composition_and_no_more() {
        assert_eq!(folded("CAFÉ.md"), folded("cafe\u{301}.MD"));
        assert_eq!(folded("ΟΔΟΣ"), folded("οδος"));
        assert_ne!(folded("ısı"), folded("isi"));
        assert_ne!(folded("straße"), folded("strasse"));
    }
}
