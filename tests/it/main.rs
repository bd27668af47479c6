//! The library, through its public API.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what must hold by panicking"
)]

mod power_cut;
mod sim_disk;
mod window;
mod window_vectors;
