//! The header of a file. The first byte says what is mended before: 1 the checksum, 2 the sha256 of the id; with 4 the
//! conversation is the one that the header names.

#![no_main]

use chat_memory::fuzzing;
use chat_memory_fuzz::forge::{ID, id_in, mend_header};
use chat_memory_fuzz::memory::bounded;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

fuzz_target!(|data: &[u8]| {
    let Some((mode, bytes)) = data.split_first() else {
        return;
    };
    let mut bytes = bytes.to_vec();
    if mode & 2 != 0
        && let Some(len) = bytes.get(12..16).map(|len| u32::from_le_bytes(len.try_into().unwrap()) as usize)
        && let Some(id) = len.checked_sub(4).and_then(|end| bytes.get(56..end))
    {
        let sha256 = Sha256::digest(id);
        bytes[24..56].copy_from_slice(&sha256);
    }
    if mode & 1 != 0 {
        mend_header(&mut bytes);
    }
    let id = if mode & 4 != 0 { id_in(&bytes).unwrap_or(ID) } else { ID }.to_owned();
    bounded(bytes.len(), || fuzzing::header(&bytes, &id));
});
