//! Why a command did not do what it was asked to.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chat_memory::Error;

/// A failure, with what to do about it.
#[derive(Debug)]
pub enum Failure {
    /// Whoever reads the output has closed it: no failure of ours.
    ClosedPipe,
    /// The operating system refused something.
    Io { operation: &'static str, path: PathBuf, source: io::Error },
    /// The store refused something.
    Memory(Error),
    /// Arguments that do not go together, or cannot be read.
    Usage(String),
    /// There is nothing of the kind.
    Nothing(String),
    /// Some of it was done, or damage was found; the rest was said before.
    Partly(String),
    /// Anything else.
    Other(String),
}

impl Failure {
    /// Says what was tried on which file.
    pub fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Failure::Io { operation, path, source }
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::ClosedPipe => 0,
            Failure::Io { .. } | Failure::Memory(_) | Failure::Other(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Partly(_) => 3,
            Failure::Nothing(_) => 4,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::ClosedPipe => f.write_str("the output was closed"),
            Failure::Io { operation, path, source } => {
                write!(f, "cannot {operation} {}: {source}", crate::text::path(path))
            }
            Failure::Memory(error) => {
                f.write_str(&in_full(error))?;
                match error {
                    Error::Corrupt { .. } => {
                        f.write_str("\n  `chat-memory verify` says what is lost, `chat-memory repair` mends it")
                    }
                    Error::UnsupportedVersion { .. } => f.write_str("\n  a newer chat-memory can read it"),
                    _ => Ok(()),
                }
            }
            Failure::Usage(text) | Failure::Nothing(text) | Failure::Partly(text) | Failure::Other(text) => {
                f.write_str(text)
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Memory(error)
    }
}

/// An error with its causes.
pub fn in_full(error: &dyn std::error::Error) -> String {
    let all = std::iter::successors(Some(error), |error| error.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
