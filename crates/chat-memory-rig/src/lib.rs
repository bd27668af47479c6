//! [rig](https://docs.rs/rig-core)'s conversation memory on [`chat_memory`]: agents that go on after a restart where they stopped.
//!
//! [`RigMemory`] makes a [`ConversationMemory`](rig_core::memory::ConversationMemory) of any memory; [`from_rig`] and [`to_rig`]
//! convert messages, for those who read and write a store themselves.

mod extra;
mod from_rig;
mod media;
mod memory;
mod to_rig;

pub use from_rig::from_rig;
pub use memory::RigMemory;
pub use to_rig::{RigMessages, Warning, to_rig};

/// The README's code is compiled and run as a test.
#[cfg(all(doctest, feature = "tokio"))]
#[doc = include_str!("../README.md")]
struct Readme;
