//! The command, run as people run it.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what must hold by panicking"
)]

mod cases;
mod chat;
mod documentation;
mod looking;
mod moving;
mod real_data;
mod safety;
mod support;
