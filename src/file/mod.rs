//! The memory on disk: one file per conversation, appended to and never rewritten.

mod anew;
mod catalogue;
mod conversation;
mod copy;
mod lock;
mod names;
mod options;
mod queue;
mod read;
mod reader;
mod recent;
mod recover;
mod slots;
mod write;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;

pub use options::{Durability, FileChatMemoryBuilder, FileLocks, Recovery};
pub use recover::{Repair, RepairReport};

use self::catalogue::Catalogue;
use self::conversation::{Conversation, check_header, other_conversation};
use self::lock::{Exclusive, Missing};
use self::names::{FileName, Key, Names};
use self::options::Options;
use self::slots::{SlotRef, Slots};
use self::write::Receipt;
use crate::disk::Disk;
use crate::error::{Error, Result, is_out_of_handles};
use crate::history::{
    Appended, ChatHistory, ConversationSummary, Entry, HistoryRange, Page, PageRequest, Verification,
};
use crate::log::HeaderCheck;
use crate::memory::{ChatMemory, check_batch, check_id};
use crate::message::Message;
use crate::window::Window;

/// A [`ChatMemory`] on disk that survives restarts, crashes and the loss of power.
///
/// Each conversation is one append-only file, `<sha256 of the id>.bin`. An `add` writes what is new and nothing else; a `get`
/// with a window reads the end of the file, however long the conversation is. Any number of threads and processes may use
/// one directory at the same time.
///
/// ```
/// use chat_memory::{ChatMemory, FileChatMemory, Message};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("chat-memory");
/// let memory = FileChatMemory::builder(&path).max_messages(20).open()?;
/// memory.add("user-42", &[Message::user("hello"), Message::assistant("hi")])?;
/// drop(memory);
///
/// // After the restart.
/// let memory = FileChatMemory::open(&path)?;
/// assert_eq!(memory.get("user-42")?.len(), 2);
/// # Ok::<(), chat_memory::Error>(())
/// ```
///
/// # What it promises
///
/// With [`Durability::Disk`], the default, an `add` that returned survives `kill -9` and the loss of power. A batch is all
/// or nothing. A failed `add` leaves the file as it was. A crash in the middle of an `add` leaves an unfinished end, which
/// readers skip with a warning, and which the next writer copies to a file beside the conversation before it cuts it off.
/// Damage anywhere is detected by checksums; with [`Recovery::Salvage`], the default, what is intact is still read. Nothing that
/// may have been a message is cut off without a copy, except by [`clear`](ChatMemory::clear). `docs/durability.md` has the whole list, with
/// what is not promised.
///
/// Conversations are not encrypted: a directory that it creates is for its owner alone (mode 0700, files 0600; one that exists
/// keeps its mode), and a conversation's id is in its file in clear.
///
/// Neither the messages nor an id are ever written to a log, an error or `Debug` output; a path shows the id's sha256.
#[doc(alias = "FileBasedChatMemory")]
pub struct FileChatMemory {
    store: Store,
}

/// What all conversations of one directory share.
struct Store {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    options: Options,
    slots: Slots,
    catalogue: Catalogue,
    /// Conversations in which a failed write could not be taken back. Remembered here, not in their slots, which go.
    poisoned: DashMap<Key, ()>,
    /// Whether the directory's own name was made durable.
    root_is_durable: AtomicBool,
}

impl FileChatMemory {
    /// Opens the store in this directory, with all defaults. The directory is created where it is missing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the directory cannot be made.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self> {
        Self::builder(directory).open()
    }

    /// A store in this directory, with options.
    pub fn builder(directory: impl Into<PathBuf>) -> FileChatMemoryBuilder {
        FileChatMemoryBuilder::new(directory.into())
    }

    fn with_options(disk: Arc<dyn Disk>, root: PathBuf, options: Options) -> Result<Self> {
        // A later change of the working directory must not move the store.
        let root = std::path::absolute(&root).map_err(|source| io_error("resolve", &root, source))?;
        disk.create_dir(&root).map_err(|source| io_error("create", &root, source))?;
        let store = Store {
            disk,
            root,
            slots: Slots::new(options.max_open_files),
            options,
            catalogue: Catalogue::default(),
            poisoned: DashMap::new(),
            root_is_durable: AtomicBool::new(false),
        };
        Ok(Self { store })
    }

    /// The directory of the store, as an absolute path.
    pub fn directory(&self) -> &Path {
        &self.store.root
    }

    /// The file of a conversation, whether it exists or not.
    pub fn path(&self, conversation_id: &str) -> PathBuf {
        Names::new(&self.store.root, Key::of(conversation_id)).data().to_owned()
    }

    /// How many conversations this store keeps a lock and an open file for: those in use, and those used last.
    pub fn conversations_in_use(&self) -> usize {
        self.store.slots.len()
    }

    /// Looks for damage in a conversation, and with [`Repair::Apply`] mends it.
    ///
    /// What is damaged is copied beside the conversation, as `<stem>.aside-<offset>-<crc32c>`, with `-torn` behind it for an
    /// unfinished end. A damaged or unfinished end is then cut off. Damage before the end is mended by writing the intact
    /// messages, under their sequence numbers, to a new file that takes the old one's name. A conversation without damage is
    /// left alone, so a second repair changes nothing.
    ///
    /// # Errors
    ///
    /// As [`get`](ChatMemory::get). After an error no intact message is lost; some of the work may have been done, and a
    /// repair can be tried again.
    pub fn repair(&self, conversation_id: &str, repair: Repair) -> Result<RepairReport> {
        let conversation = self.conversation(conversation_id)?;
        let slot = self.slot(&conversation);
        recover::repair(&conversation, &slot, repair)
    }

    /// Copies a conversation under another id, with its sequence numbers and times; the number of messages.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] where the one has no messages, the other has some, or both are the same; [`Error::Corrupt`] where the
    /// first is damaged: [`repair`](Self::repair) comes first. After an error the second has no messages, or, where only the
    /// directory could not be synced at the end, all of them.
    pub fn copy(&self, from: &str, to: &str) -> Result<u64> {
        copy::copy(self, from, to, copy::Source::Keep)
    }

    /// Gives a conversation another id; the number of messages. Nothing that is added meanwhile is lost: who adds to the old id waits,
    /// and then begins a new conversation under it. Copies of damaged bytes go along. A crash may leave both, each whole.
    ///
    /// ```
    /// use chat_memory::{ChatMemory, FileChatMemory, Message};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let memory = FileChatMemory::open(directory.path())?;
    /// memory.add("guest-7", &[Message::user("hello")])?;
    /// memory.rename("guest-7", "user-42")?;
    /// assert_eq!(memory.get("user-42")?.len(), 1);
    /// assert!(memory.get("guest-7")?.is_empty());
    /// # Ok::<(), chat_memory::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`copy`](Self::copy). An error of the removal leaves both, each whole.
    pub fn rename(&self, from: &str, to: &str) -> Result<u64> {
        copy::copy(self, from, to, copy::Source::Remove)
    }

    /// Writes messages that were kept elsewhere, with their sequence numbers and times of recording, all or nothing: what
    /// [`history`](ChatHistory::history) gave, here or on another machine. `after` is the sequence number of the newest message that is
    /// here, or `None` where none is: so nothing is mixed with what somebody else adds meanwhile. Times are kept to the microsecond.
    ///
    /// ```
    /// use chat_memory::{ChatHistory, ChatMemory, FileChatMemory, HistoryRange, Message};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let old = FileChatMemory::open(directory.path().join("old"))?;
    /// let new = FileChatMemory::open(directory.path().join("new"))?;
    /// old.add("user-42", &[Message::user("hello")])?;
    /// new.restore("user-42", None, &old.history("user-42", HistoryRange::all())?)?;
    /// assert_eq!(new.history("user-42", HistoryRange::all())?, old.history("user-42", HistoryRange::all())?);
    ///
    /// old.add("user-42", &[Message::assistant("hi")])?;
    /// new.restore("user-42", Some(0), &old.history("user-42", HistoryRange::all().from(1))?)?;
    /// # assert_eq!(new.get("user-42")?, old.get("user-42")?);
    /// # Ok::<(), chat_memory::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] where `after` is not the newest message; [`Error::InvalidMessage`] where sequence numbers do not
    /// ascend from there; [`Error::Corrupt`] where what is here is damaged: [`repair`](Self::repair) comes first. Nothing is
    /// written then. After an [`Error::Io`] that came from syncing the directory at the end, all of it is there, else none.
    pub fn restore(&self, conversation_id: &str, after: Option<u64>, entries: &[Entry]) -> Result<()> {
        let conversation = self.conversation(conversation_id)?;
        if entries.is_empty() {
            return Ok(());
        }
        let slot = self.slot(&conversation);
        copy::restore(&conversation, &slot, after, entries)
    }

    /// The id of the conversation whose file this is, from its header; `None` where nothing was acknowledged in it, or there is no file.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] where the path is not that of a conversation's file in this store; [`Error::Corrupt`] where the
    /// header does not hold.
    pub fn id_of(&self, path: impl AsRef<Path>) -> Result<Option<String>> {
        let name = path.as_ref().file_name().map(FileName::of);
        let Some(FileName::Conversation(key) | FileName::SetAside(key, ..)) = name else {
            let reason = "the file's name is not the sha256 of a conversation id";
            return Err(Error::InvalidOption { option: "path", reason });
        };
        catalogue::id_of(&self.store, key, Names::new(&self.store.root, key).data())
    }

    /// Appends messages; `None` where there were none.
    fn write(&self, conversation_id: &str, messages: &[Message]) -> Result<Option<Receipt>> {
        let conversation = self.conversation(conversation_id)?;
        check_batch(messages)?;
        if messages.is_empty() {
            return Ok(None);
        }
        // Encoded before anyone is kept waiting.
        let batch = write::Batch::encode(messages, self.store.options.max_batch_bytes)?;
        let slot = self.slot(&conversation);
        write::append(&conversation, &slot, batch).map(Some)
    }

    fn conversation<'a>(&'a self, id: &'a str) -> Result<Conversation<'a>> {
        check_id(id)?;
        Ok(Conversation { store: &self.store, id, key: Key::of(id) })
    }

    fn slot(&self, conversation: &Conversation<'_>) -> SlotRef<'_> {
        self.store.slots.take(conversation.key, &self.store.root)
    }
}

impl ChatMemory for FileChatMemory {
    fn add(&self, conversation_id: &str, messages: &[Message]) -> Result<()> {
        self.write(conversation_id, messages).map(drop)
    }

    fn get(&self, conversation_id: &str) -> Result<Vec<Message>> {
        let conversation = self.conversation(conversation_id)?;
        let slot = self.slot(&conversation);
        let Some(mut locked) = slot.shared(&conversation)? else {
            return Ok(Vec::new());
        };
        match &self.store.options.window {
            Some(window) => read::view(&conversation, &slot.names, &mut locked, window),
            None => read::everything(&conversation, &slot.names, &mut locked),
        }
    }

    fn clear(&self, conversation_id: &str) -> Result<()> {
        let conversation = self.conversation(conversation_id)?;
        let store = &self.store;
        let slot = self.slot(&conversation);
        let names = &slot.names;
        let mut locked = slot.exclusive_unread(&conversation, Missing::Leave)?;
        if locked.open_file().is_none() && !store.beside(names)?.is_empty() {
            // What lies beside is removed by whoever holds the lock, and there is none without a file.
            drop(locked);
            locked = slot.exclusive_unread(&conversation, Missing::Create)?;
        }
        if let Some(open) = locked.open_file() {
            let status = open.file.status().map_err(|source| names.io("look at", source))?;
            let header = check_header(&*open.file, status.len, &conversation);
            if header.map_err(|source| names.io("read", source))? == HeaderCheck::OtherConversation {
                return Err(other_conversation(names));
            }
        }
        store.remove(&conversation, names, &mut locked)
    }
}

impl ChatHistory for FileChatMemory {
    fn append(&self, conversation_id: &str, messages: &[Message]) -> Result<Appended> {
        if let Some(Receipt { seqs, recorded_at }) = self.write(conversation_id, messages)? {
            return Ok(Appended::new(seqs, reader::time(recorded_at)));
        }
        let conversation = self.conversation(conversation_id)?;
        let slot = self.slot(&conversation);
        let locked = slot.shared(&conversation)?;
        let known = locked.as_ref().map(|locked| locked.contents.known(&slot.names)).transpose()?;
        let next = known.and_then(|known| known.last).map_or(0, |last| last.header.next_seq());
        Ok(Appended::new(next..next, reader::time(write::microseconds_since_1970())))
    }

    fn history(&self, conversation_id: &str, range: HistoryRange) -> Result<Vec<Entry>> {
        let conversation = self.conversation(conversation_id)?;
        let slot = self.slot(&conversation);
        match slot.shared(&conversation)? {
            Some(mut locked) => read::history(&conversation, &slot.names, &mut locked, &range),
            None => Ok(Vec::new()),
        }
    }

    fn conversations(&self, page: &PageRequest) -> Result<Page<ConversationSummary>> {
        self.store.catalogue.page(&self.store, page)
    }

    fn view_at(&self, conversation_id: &str, seq: u64, window: &Window) -> Result<Vec<Message>> {
        window.check()?;
        let conversation = self.conversation(conversation_id)?;
        let slot = self.slot(&conversation);
        match slot.shared(&conversation)? {
            Some(mut locked) => read::view_at(&conversation, &slot.names, &mut locked, window, seq),
            None => Ok(Vec::new()),
        }
    }

    fn verify(&self, conversation_id: &str) -> Result<Verification> {
        let conversation = self.conversation(conversation_id)?;
        let slot = self.slot(&conversation);
        let mut verification = Verification::default();
        if let Some(locked) = slot.shared(&conversation)? {
            let look = recover::Look::at(&conversation, &slot, &*locked.file)?;
            (verification.bytes, verification.messages) = (look.len(), look.messages);
            verification.damage = look.damage;
        }
        let beside = self.store.beside(&slot.names)?;
        verification.set_aside = beside.into_iter().filter(|path| *path != slot.names.temporary()).collect();
        Ok(verification)
    }
}

impl Store {
    /// Removes a conversation that is locked, and everything beside it, for good.
    fn remove(&self, conversation: &Conversation<'_>, names: &Names, locked: &mut Exclusive<'_>) -> Result<()> {
        // Where there was no file, one that is there now is somebody else's.
        if locked.open_file().is_some() {
            // What was set aside goes first: it is found by the conversation's name only.
            for path in self.beside(names)?.into_iter().chain([names.data().to_owned()]) {
                match self.disk.remove(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    removed => removed.map_err(|source| io_error("remove", &path, source))?,
                }
            }
        }
        // Also where nothing was removed: another process may have removed it and not have come to this yet.
        self.sync_names()?;
        locked.close();
        self.poisoned.remove(&conversation.key);
        Ok(())
    }

    /// The files beside a conversation that belong to it: what was set aside, and what a repair left.
    fn beside(&self, names: &Names) -> Result<Vec<PathBuf>> {
        let all = self.with_handles(|| self.disk.list(&self.root));
        let all = all.map_err(|source| io_error("list", &self.root, source))?;
        Ok(all.iter().filter(|name| names.is_beside(name)).map(|name| self.root.join(name)).collect())
    }

    /// Makes the names in the directory durable, and the first time the directory's own.
    fn sync_names(&self) -> Result<()> {
        if let Some(parent) = self.root.parent()
            && !self.root_is_durable.load(Ordering::Acquire)
        {
            match self.with_handles(|| self.disk.sync_dir(parent)) {
                // Who may not read the directory above has not made this one, and found it there.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                synced => synced.map_err(|source| io_error("sync", parent, source))?,
            }
            self.root_is_durable.store(true, Ordering::Release);
        }
        self.with_handles(|| self.disk.sync_dir(&self.root)).map_err(|source| io_error("sync", &self.root, source))
    }

    /// Does something that needs a file handle. Where the process has none left, the idle ones are closed first.
    fn with_handles<T>(&self, call: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match call() {
            Err(error) if is_out_of_handles(&error) => {
                self.slots.close_idle(0);
                call()
            }
            done => done,
        }
    }
}

fn io_error(operation: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io { operation, path: path.to_owned(), source }
}

impl fmt::Debug for FileChatMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileChatMemory")
            .field("directory", &self.store.root)
            .field("options", &self.store.options)
            .field("conversations_in_use", &self.store.slots.len())
            .finish()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("root", &self.root).finish_non_exhaustive()
    }
}
