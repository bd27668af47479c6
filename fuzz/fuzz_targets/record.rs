//! The records of a payload: a count, then the payload.

#![no_main]

use chat_memory::fuzzing;
use chat_memory_fuzz::memory::{bounded, bounded_but_in_vain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((count, payload)) = data.split_first_chunk() else {
        return;
    };
    let count = u32::from_le_bytes(*count);
    let checked = bounded(payload.len(), || fuzzing::check(payload, count));
    let decoded = match checked {
        Some(_) => bounded(payload.len(), || fuzzing::decode(payload, count)),
        None => bounded_but_in_vain(payload.len(), || fuzzing::decode(payload, count)),
    };
    assert_eq!(checked, decoded.as_ref().map(Vec::len), "what is checked is what decodes");
    if let Some(messages) = decoded {
        fuzzing::check_records(payload, &messages);
    }
});
