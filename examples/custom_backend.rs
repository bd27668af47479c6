//! A backend of your own, and the suite that says whether it keeps the contract.
//!
//! `cargo run --example custom_backend --features conformance`

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chat_memory::conformance::Suite;
use chat_memory::{ChatMemory, Error, Message, Result, Window};

/// Conversations in a map.
#[derive(Default)]
struct MapMemory {
    conversations: Mutex<HashMap<String, Vec<Message>>>,
    window: Option<Window>,
}

impl MapMemory {
    fn with<T>(&self, id: &str, work: impl FnOnce(&mut HashMap<String, Vec<Message>>) -> T) -> Result<T> {
        if id.trim().is_empty() {
            return Err(Error::InvalidConversationId);
        }
        Ok(work(&mut self.conversations.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl ChatMemory for MapMemory {
    fn add(&self, id: &str, messages: &[Message]) -> Result<()> {
        self.with(id, |all| {
            if !messages.is_empty() {
                all.entry(id.to_owned()).or_default().extend_from_slice(messages);
            }
        })
    }

    fn get(&self, id: &str) -> Result<Vec<Message>> {
        let messages = self.with(id, |all| all.get(id).cloned().unwrap_or_default())?;
        Ok(self.window.as_ref().map_or_else(|| messages.clone(), |window| window.view(&messages)))
    }

    fn clear(&self, id: &str) -> Result<()> {
        self.with(id, |all| _ = all.remove(id))
    }
}

fn main() {
    let windowed = |count| MapMemory { window: Some(Window::messages(count)), ..MapMemory::default() };
    let report = Suite::new(MapMemory::default).windowed(windowed).run();
    print!("{report}");
    assert!(report.is_passed());
}
