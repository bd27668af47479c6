//! Faults of a real system: calls that fail, full disks, limits, places that cannot be written to or are something else.

mod in_the_way;
mod injected;
mod limits;
mod no_space;
mod read_only;

use chat_memory::{ChatMemory, Error, FileChatMemory, Message};

/// A store, and what it has acknowledged in one conversation.
struct Acknowledged<'a> {
    memory: &'a FileChatMemory,
    id: String,
    messages: Vec<Message>,
}

impl<'a> Acknowledged<'a> {
    fn new(memory: &'a FileChatMemory, id: &str) -> Self {
        Self { memory, id: id.to_owned(), messages: Vec::new() }
    }

    /// Adds a batch of messages of `size` bytes each. If that fails, nothing of it is there.
    fn add(&mut self, count: usize, size: usize) -> Result<(), std::io::Error> {
        let first = self.messages.len();
        let text = |number| format!("{number} ").repeat(size / 2);
        let batch: Vec<Message> = (first..first + count).map(|number| Message::user(text(number))).collect();
        match self.memory.add(&self.id, &batch) {
            Ok(()) => {
                self.messages.extend(batch);
                self.check();
                Ok(())
            }
            Err(Error::Io { source, path, .. }) => {
                assert!(path.starts_with(self.memory.directory()), "{path:?}");
                self.check();
                Err(source)
            }
            Err(error) => panic!("{}: {error:?}", self.id),
        }
    }

    /// Everything acknowledged is there and nothing else, for this store.
    fn check(&self) {
        self.check_in(self.memory);
    }

    fn check_in(&self, memory: &FileChatMemory) {
        let found = memory.get(&self.id).unwrap();
        assert!(found == self.messages, "{}: {} of {}", self.id, found.len(), self.messages.len());
    }
}

/// The operating system's answer in an error that has to be one.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: chat_memory::Result<T>) -> std::io::Error {
    match result {
        Err(Error::Io { source, .. }) => source,
        other => panic!("{other:?}"),
    }
}
