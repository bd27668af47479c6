//! Telling a file apart, from its beginning and from its end. The first byte says what the others are: 0 the file, 1 the file
//! before its checksums are mended, 2 a recipe.

#![no_main]

use chat_memory::fuzzing;
use chat_memory_fuzz::forge::{build, mend_frames};
use chat_memory_fuzz::memory::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [mode, start, piece, rest @ ..] = data else {
        return;
    };
    let mut bytes = rest.to_vec();
    match mode % 3 {
        0 => {}
        1 => mend_frames(&mut bytes),
        _ => bytes = build(rest),
    }
    // The epoch is that of the header, or unknown.
    let epoch = bytes.get(16..24).map(|epoch| u64::from_le_bytes(epoch.try_into().unwrap()));
    for epoch in [epoch, None] {
        bounded(bytes.len(), || fuzzing::scan(&bytes, usize::from(*start), epoch, 16 * usize::from(*piece)));
    }
});
