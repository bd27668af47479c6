//! rig's agents and rig's messages on the stores.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what must hold by panicking"
)]

mod agents;
mod arbitrary;
mod conversions;
mod lossless;
mod recordings;
mod sealed;
mod server;
mod support;
