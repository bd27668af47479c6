//! What can go wrong, and what to do about it.

use std::path::PathBuf;

/// `Result` with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong.
///
/// The text of an error names the thing and the rule. It never holds what was said in a conversation, and never a raw
/// conversation id: a path shows the id's sha256 only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The conversation id is blank: nothing is left of it after trimming. Any other text is a conversation id.
    #[error("invalid conversation id: it is blank")]
    InvalidConversationId,

    /// The session id is blank: nothing is left of it after trimming. Any other text is a session id.
    #[error("invalid session id: it is blank")]
    InvalidSessionId,

    /// A file of a session cannot have this name, or what has the name is no file.
    #[error("invalid file name: {rule}")]
    InvalidFileName {
        /// The rule that the name breaks.
        rule: &'static str,
    },

    /// A session's folder cannot have the name that was chosen for it.
    #[error("invalid folder name: {rule}")]
    InvalidFolderName {
        /// The rule that the name breaks.
        rule: &'static str,
    },

    /// What a call takes for granted is not so. Nothing was changed.
    #[error("conflict: {reason}")]
    Conflict {
        /// What is not as expected.
        reason: &'static str,
    },

    /// An option was given a value outside of its range.
    #[error("invalid option `{option}`: {reason}")]
    InvalidOption {
        /// The option, by the name of its setter.
        option: &'static str,
        /// The rule that the value breaks.
        reason: &'static str,
    },

    /// A message cannot be stored so that it would come back equal. Nothing of its batch was stored.
    #[error("invalid message at position {index} of the batch: {reason}")]
    InvalidMessage {
        /// Position in the slice given to `add`, from 0.
        index: usize,
        /// The rule that the message breaks.
        reason: &'static str,
    },

    /// A text that should hold messages in some interchange form does not.
    #[error("invalid transcript at line {line}, column {column}: {reason}")]
    InvalidTranscript {
        /// Line in the text, from 1.
        line: usize,
        /// Column in the line, in bytes, from 1; 0 where a whole line or value is meant.
        column: usize,
        /// What is wrong there.
        reason: String,
    },

    /// The operating system refused an operation. Nothing was acknowledged.
    #[error("cannot {operation} {path}", path = path.display())]
    Io {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The file or directory it was tried on.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },

    /// A file holds bytes that do not read as what was once written.
    ///
    /// Nothing was changed. `FileChatMemory::repair` shows what is lost, and sets it aside.
    #[error("{path} is damaged at byte {offset}: {reason}", path = path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where the damage begins, in bytes from the start of the file.
        offset: u64,
        /// What does not hold there.
        reason: &'static str,
    },

    /// A file is whole, but was written by a version of this library that knows more than this one.
    #[error("{path} needs a newer version of this library at byte {offset}: {feature}", path = path.display())]
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// Where the unknown part begins, in bytes from the start of the file.
        offset: u64,
        /// What is not known here.
        feature: String,
    },

    /// Something exceeds a limit. Nothing was stored.
    #[error("{what} is {size}, and the limit is {limit}")]
    TooLarge {
        /// What is too large, and the unit it is counted in.
        what: &'static str,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },

    /// A failed write could not be taken back, so this conversation takes no more work.
    ///
    /// What was acknowledged before is on disk. Whether the batch that failed is there too is not known until the store is
    /// opened again, or the conversation is cleared.
    #[error("{path} is out of use after a failed write that could not be taken back; open the store again", path = path.display())]
    Poisoned {
        /// The file of the conversation.
        path: PathBuf,
    },

    /// A backend other than this crate's own failed.
    #[error("the {backend} backend failed")]
    Backend {
        /// The backend's name.
        backend: &'static str,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Whether stored bytes are damaged: a file has to be looked at, a retry is of no use.
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Error::Corrupt { .. })
    }

    /// Whether the same call may succeed later without anything being changed: too many open files, a full disk, an
    /// interrupted call.
    pub fn is_transient(&self) -> bool {
        use std::io::ErrorKind;
        match self {
            Error::Io { source, .. } => {
                matches!(
                    source.kind(),
                    ErrorKind::Interrupted
                        | ErrorKind::WouldBlock
                        | ErrorKind::TimedOut
                        | ErrorKind::StorageFull
                        | ErrorKind::QuotaExceeded
                        | ErrorKind::OutOfMemory
                        | ErrorKind::ResourceBusy
                ) || is_out_of_handles(source)
            }
            _ => false,
        }
    }
}

impl Error {
    /// The same error for another one who waited for the same write.
    pub(crate) fn for_another(&self) -> Self {
        match self {
            Error::InvalidConversationId => Error::InvalidConversationId,
            Error::InvalidSessionId => Error::InvalidSessionId,
            Error::InvalidFileName { rule } => Error::InvalidFileName { rule },
            Error::InvalidFolderName { rule } => Error::InvalidFolderName { rule },
            Error::Conflict { reason } => Error::Conflict { reason },
            Error::InvalidOption { option, reason } => Error::InvalidOption { option, reason },
            Error::InvalidMessage { index, reason } => Error::InvalidMessage { index: *index, reason },
            Error::InvalidTranscript { line, column, reason } => {
                Error::InvalidTranscript { line: *line, column: *column, reason: reason.clone() }
            }
            Error::Io { operation, path, source } => {
                let source = match source.raw_os_error() {
                    Some(code) => std::io::Error::from_raw_os_error(code),
                    None => std::io::Error::new(source.kind(), source.to_string()),
                };
                Error::Io { operation, path: path.clone(), source }
            }
            Error::Corrupt { path, offset, reason } => Error::Corrupt { path: path.clone(), offset: *offset, reason },
            Error::UnsupportedVersion { path, offset, feature } => {
                Error::UnsupportedVersion { path: path.clone(), offset: *offset, feature: feature.clone() }
            }
            Error::TooLarge { what, size, limit } => Error::TooLarge { what, size: *size, limit: *limit },
            Error::Poisoned { path } => Error::Poisoned { path: path.clone() },
            Error::Backend { backend, source } => Error::Backend { backend, source: source.to_string().into() },
        }
    }
}

/// Whether the process (EMFILE) or the system (ENFILE) has no file handle left; the standard library has no kind for it.
pub(crate) fn is_out_of_handles(error: &std::io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    cfg!(unix) && matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}
