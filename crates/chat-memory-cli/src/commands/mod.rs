//! What each command does.

pub mod care;
pub mod chat;
pub mod export;
pub mod files;
pub mod generate;
pub mod import;
pub mod list;
pub mod names;
pub mod search;
pub mod show;
pub mod stats;

use chat_memory::Damage;
use serde_json::{Value, json};

/// A damaged stretch, for machines.
fn damage_json(damage: &Damage) -> Value {
    json!({
        "kind": format!("{:?}", damage.kind),
        "reason": damage.kind.reason(),
        "offset": damage.offset,
        "end": damage.end,
    })
}
