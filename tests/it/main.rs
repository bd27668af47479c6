//! The library, through its public API.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what must hold by panicking"
)]

mod at_work;
mod conformance;
mod conversations;
mod crashes;
mod damage;
mod damage_table;
#[cfg(target_os = "linux")]
mod faults;
mod golden;
mod history;
mod hostile;
mod house_rules;
mod jsonl;
mod kills;
mod ledger;
mod many_writers;
#[cfg(target_os = "linux")]
mod mounts;
mod openai;
mod power_cut;
mod provider;
mod real_data;
#[cfg(target_os = "linux")]
mod real_power_cuts;
mod sim_disk;
mod state_machine;
mod storing;
mod support;
mod window;
mod window_vectors;
