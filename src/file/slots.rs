//! One slot per conversation in use.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dashmap::DashMap;

use super::lock::Slot;
use super::names::{Key, Names};

/// The slots of the conversations in use, and of some that were used last, whose files stay open.
///
/// Lock order: a map guard is never held while a slot is locked for work, and no file is opened under one; so two
/// conversations never wait for each other.
pub(super) struct Slots {
    map: DashMap<Key, Arc<Slot>>,
    capacity: usize,
    /// Whether there may be more slots than that: whoever leaves one closes idle ones.
    crowded: AtomicBool,
    /// Counts uses, to tell which slot was used longest ago.
    clock: AtomicU64,
}

impl Slots {
    pub(super) fn new(capacity: usize) -> Self {
        Self { map: DashMap::new(), capacity, crowded: AtomicBool::new(false), clock: AtomicU64::new(0) }
    }

    /// The conversation's slot, for as long as the reference lives.
    pub(super) fn take(&self, key: Key, root: &Path) -> SlotRef<'_> {
        // The `Arc` is cloned out of the map in one expression, so that the guard is gone before anyone waits.
        let known = self.map.get(&key).map(|slot| Arc::clone(&slot));
        let slot = known.unwrap_or_else(|| {
            let slot = Arc::clone(&self.map.entry(key).or_insert_with(|| Arc::new(Slot::new(Names::new(root, key)))));
            self.crowded.store(self.map.len() > self.capacity, Ordering::Relaxed);
            slot
        });
        slot.used_at.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        SlotRef { slots: self, key, slot: Some(slot) }
    }

    /// Drops idle slots, those used longest ago first, until no more than `keep` are left or none is idle. A slot in use is
    /// never dropped: with its file its lock would go.
    pub(super) fn close_idle(&self, keep: usize) {
        let mut idle: Vec<(u64, Key)> = self
            .map
            .iter()
            .filter(|slot| Arc::strong_count(slot) == 1)
            .map(|slot| (slot.used_at.load(Ordering::Relaxed), *slot.key()))
            .collect();
        idle.sort_unstable_by_key(|(used_at, _)| *used_at);
        let excess = self.map.len().saturating_sub(keep);
        for (_, key) in idle.into_iter().take(excess) {
            self.map.remove_if(&key, |_, slot| Arc::strong_count(slot) == 1);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }
}

/// A slot in use. Where its last user leaves nothing open behind, the slot goes.
pub(super) struct SlotRef<'a> {
    slots: &'a Slots,
    key: Key,
    slot: Option<Arc<Slot>>,
}

impl Deref for SlotRef<'_> {
    type Target = Slot;

    #[expect(clippy::expect_used, reason = "the slot is taken out in `drop` alone")]
    fn deref(&self) -> &Slot {
        self.slot.as_deref().expect("a slot reference holds its slot until it is dropped")
    }
}

impl Drop for SlotRef<'_> {
    fn drop(&mut self) {
        // Our own reference goes first, so of two users that leave together the last sees the map's alone.
        self.slot = None;
        self.slots.map.remove_if(&self.key, |_, slot| Arc::strong_count(slot) == 1 && !slot.is_open());
        if self.slots.crowded.load(Ordering::Relaxed) {
            // A quarter more than necessary, so that not everyone who comes next has to.
            let capacity = self.slots.capacity;
            if self.slots.map.len() > capacity {
                self.slots.close_idle(capacity - capacity / 4);
            }
            self.slots.crowded.store(self.slots.map.len() > capacity, Ordering::Relaxed);
        }
    }
}
