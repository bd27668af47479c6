//! One slot per session in use.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::session::Slot;
use crate::file_memory::name::FolderName;

/// As many sessions keep their folder open, and what is known of it in memory, beside those in use.
const CAPACITY: usize = 64;

/// The slots of the sessions in use, and of some that were used last.
///
/// Lock order: the map is never locked while a slot is.
#[derive(Default)]
pub(super) struct Slots(Mutex<Used>);

#[derive(Default)]
struct Used {
    slots: HashMap<FolderName, (Arc<Mutex<Slot>>, u64)>,
    /// Counts uses, to tell which slot was used longest ago.
    clock: u64,
}

impl Slots {
    /// The session's slot. It stays the session's only one for as long as anybody has it.
    pub(super) fn take(&self, name: &FolderName) -> Arc<Mutex<Slot>> {
        let mut used = self.0.lock();
        used.clock += 1;
        let now = used.clock;
        if used.slots.len() >= 2 * CAPACITY && !used.slots.contains_key(name) {
            used.close_idle();
        }
        let (slot, used_at) = used.slots.entry(name.clone()).or_default();
        *used_at = now;
        Arc::clone(slot)
    }
}

impl Used {
    /// Drops slots that nobody has, those used longest ago.
    fn close_idle(&mut self) {
        let mut times: Vec<u64> = self.slots.values().map(|(_, used_at)| *used_at).collect();
        times.sort_unstable();
        let oldest = times.iter().rev().nth(CAPACITY - 1).copied().unwrap_or_default();
        self.slots.retain(|_, (slot, used_at)| *used_at >= oldest || Arc::strong_count(slot) > 1);
    }
}
