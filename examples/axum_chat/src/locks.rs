//! One lock per conversation.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The locks of the conversations in use. A lock lives as long as someone holds it or waits for it.
#[derive(Default)]
pub struct Locks(parking_lot::Mutex<HashMap<String, Weak<Mutex<()>>>>);

impl Locks {
    /// Waits for the conversation's turn, first come, first served.
    pub async fn lock(&self, conversation: &str) -> OwnedMutexGuard<()> {
        let lock = self.of(conversation);
        lock.lock_owned().await
    }

    fn of(&self, conversation: &str) -> Arc<Mutex<()>> {
        let mut locks = self.0.lock();
        locks.retain(|_, lock| lock.strong_count() > 0);
        locks.get(conversation).and_then(Weak::upgrade).unwrap_or_else(|| {
            let lock = Arc::default();
            locks.insert(conversation.to_owned(), Arc::downgrade(&lock));
            lock
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_conversation_waits_for_itself_alone_and_leaves_nothing_behind() {
        let locks = Locks::default();
        let a = locks.lock("a").await;
        let b = locks.lock("b").await;
        assert!(locks.of("a").try_lock().is_err());
        assert_eq!(locks.0.lock().len(), 2);
        drop((a, b));
        let _c = locks.lock("c").await;
        assert!(locks.of("a").try_lock().is_ok());
        assert_eq!(locks.0.lock().keys().filter(|id| *id == "b").count(), 0);
    }
}
