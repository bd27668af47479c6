//! The queue of adds to one conversation: one thread writes for all that wait.
//!
//! Threads queue their encoded batches. One that finds nobody leading leads: it takes what is queued, writes it as one frame
//! with one sync, and tells the others. What comes meanwhile is the next group, whose leader takes the file lock anew, so
//! that other processes get their turn between two groups.

use std::collections::HashMap;
use std::path::Path;

use parking_lot::{Condvar, Mutex};

use super::write::{Batch, Receipt};
use crate::error::{Error, Result};

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    told: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<(u64, Batch)>,
    next_ticket: u64,
    is_led: bool,
    results: HashMap<u64, Result<Receipt>>,
}

impl Queue {
    /// Has the batch written, by this thread or by another one, alone or together with others. `write` writes a group as one
    /// frame, all or nothing; a group of several is at most `max_bytes` long.
    pub(super) fn add(
        &self,
        path: &Path,
        batch: Batch,
        max_bytes: u64,
        write: impl Fn(Vec<Batch>) -> Result<Vec<Receipt>>,
    ) -> Result<Receipt> {
        let mut state = self.state.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push((ticket, batch));
        loop {
            if let Some(result) = state.results.remove(&ticket) {
                return result;
            }
            if state.is_led {
                self.told.wait(&mut state);
                continue;
            }
            state.is_led = true;
            let (tickets, group) = take_group(&mut state.waiting, max_bytes);
            drop(state);
            let mut leader = Leader { queue: self, path, tickets, written: None };
            leader.written = Some(write(group));
            drop(leader);
            state = self.state.lock();
        }
    }
}

/// Takes batches from the front: the first, and as many more as fit with it.
fn take_group(waiting: &mut Vec<(u64, Batch)>, max_bytes: u64) -> (Vec<u64>, Vec<Batch>) {
    let mut bytes = 0;
    let fitting = waiting.iter().take_while(|(_, batch)| {
        bytes += batch.len();
        bytes <= max_bytes
    });
    let count = fitting.count().max(1).min(waiting.len());
    waiting.drain(..count).unzip()
}

/// Tells everyone in the group, and lets another thread lead; also where writing panicked.
struct Leader<'a> {
    queue: &'a Queue,
    path: &'a Path,
    tickets: Vec<u64>,
    written: Option<Result<Vec<Receipt>>>,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let panicked = || {
            let source = std::io::Error::other(
                "the thread that wrote for several panicked; whether it had written is not known",
            );
            Error::Io { operation: "write to", path: self.path.to_owned(), source }
        };
        let mut state = self.queue.state.lock();
        match self.written.take().unwrap_or_else(|| Err(panicked())) {
            Ok(receipts) => {
                let results = receipts.into_iter().map(Ok).chain(std::iter::repeat_with(|| Err(panicked())));
                state.results.extend(self.tickets.iter().copied().zip(results));
            }
            Err(error) => {
                state.results.extend(self.tickets.iter().map(|ticket| (*ticket, Err(error.for_another()))));
            }
        }
        state.is_led = false;
        self.queue.told.notify_all();
    }
}
