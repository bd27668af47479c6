//! The library, through its public API.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what must hold by panicking"
)]

mod advisor;
mod anthropic;
mod at_work;
#[cfg(feature = "tokio")]
mod bridges;
mod conformance;
mod conversations;
mod copying;
mod crashes;
mod damage;
mod damage_table;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(feature = "file-memory")]
mod file_memory;
#[cfg(feature = "file-memory")]
mod file_memory_context;
#[cfg(feature = "file-memory")]
mod file_memory_crash;
#[cfg(feature = "file-memory")]
mod file_memory_docs;
#[cfg(feature = "file-memory")]
mod file_memory_local;
#[cfg(feature = "file-memory")]
mod file_memory_names;
#[cfg(feature = "file-memory")]
mod file_memory_race;
#[cfg(feature = "file-memory")]
mod file_memory_search;
#[cfg(feature = "file-memory")]
mod file_memory_tools;
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
mod recordings;
mod responses;
mod sim_disk;
mod state_machine;
mod storing;
mod support;
mod window;
mod window_vectors;
