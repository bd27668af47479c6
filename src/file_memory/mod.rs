//! An agent's notebook: named files with descriptions, one flat folder per session.

mod in_memory;
mod index;
mod lines;
mod local;
mod name;
mod provider;
mod search;
mod store;
mod tools;

pub use in_memory::InMemoryFileStore;
pub use local::LocalFileStore;
#[doc(hidden)]
pub use local::{Change, Watch};
pub use name::{FileName, FolderName};
pub use provider::{FileMemory, FileMemoryBuilder};
pub use store::{Description, FileEntry, FileStore, Precondition, Quota, Save, StoredFile, Version};
pub use tools::ToolNames;
