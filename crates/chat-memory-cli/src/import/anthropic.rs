//! One message of Anthropic's form. The library reads it; one with results and other blocks becomes several.

use chat_memory::transcript::anthropic;
use serde_json::value::RawValue;

use super::draft::Draft;
use super::source::Bad;

/// Adds a message.
pub(super) fn message<'a>(draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<(), Bad> {
    let import = draft.source.read_by(anthropic::read, raw)?;
    draft.take(import, raw);
    Ok(())
}
