//! The bytes of a conversation's file: a header, then frames of records, each with its checksums.
//!
//! Pure: no I/O, no paths, no clock. `docs/format.md` is the description for readers in other languages.

mod frame;
mod header;
mod record;
mod scan;

pub(crate) use frame::{Frame, FrameHeader, FrameWriter, TRAILER_LEN, Trailer};
pub(crate) use header::{FileHeader, HeaderCheck, header_len};
pub(crate) use record::{DecodeError, EncodeError, Records, encode};
pub(crate) use scan::{LastFrame, Scan, Stretch, Tail, classify_tail, last_frame};

/// A random number that a file gets when it is created, and every frame in it repeats: bytes of another file, or of the file
/// that had this name before, do not pass for this file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(pub(crate) u64);

/// A CRC-32C that may be stored beside the bytes it covers: a plain one over bytes that hold a plain one is easy to meet by
/// chance. Masked as in LevelDB's log.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Reads little-endian fields one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(field)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc_32c_masked() {
        // The check value of CRC-32C, and its mask.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(masked(0xe306_9283), 0x2507_c60d_u32.wrapping_add(0xa282_ead8));
    }
}
