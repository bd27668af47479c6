//! The file header: which format, which conversation, which epoch.

use super::{Epoch, Fields, masked};

/// The first byte is no ASCII, and none is zero.
const MAGIC: [u8; 8] = *b"\x89CHATMEM";
const VERSION: u16 = 1;
/// Magic, version, flags, length, epoch, sha256 of the id.
const FIXED_LEN: usize = 8 + 2 + 2 + 4 + 8 + 32;
const CRC_LEN: usize = 4;
/// A reader that does not know a flag in this half must leave the file alone; it may ignore those in the other.
const MUST_KNOW: u16 = 0xff00;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) epoch: Epoch,
    pub(crate) flags: u16,
}

/// What the beginning of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderCheck {
    /// The header of this conversation.
    Holds(FileHeader),
    /// The whole file is the beginning of one: its creation was cut off, and never acknowledged.
    Unfinished,
    /// The header of another conversation.
    OtherConversation,
    /// A header that holds, of a version, or with a flag, that is not known here.
    Unsupported { version: u16 },
    /// No header.
    Bad,
}

impl FileHeader {
    /// The name of this file was made durable before its first byte was written.
    pub(crate) const NAME_IS_DURABLE: u16 = 1;
    /// This file was written by a repair; it holds what was intact in another.
    pub(crate) const REPAIRED: u16 = 2;

    /// The bytes; `None` where the id is too long for the length field.
    pub(crate) fn encode(self, id: &str, sha256: &[u8; 32]) -> Option<Vec<u8>> {
        let len = u32::try_from(header_len(id)).ok()?;
        let mut bytes = Vec::with_capacity(header_len(id));
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        bytes.extend(len.to_le_bytes());
        bytes.extend(self.epoch.0.to_le_bytes());
        bytes.extend(sha256);
        bytes.extend(id.as_bytes());
        bytes.extend(masked(crc32c::crc32c(&bytes)).to_le_bytes());
        Some(bytes)
    }

    /// The length that the beginning of a header claims.
    pub(crate) fn len_in(bytes: &[u8]) -> Option<u64> {
        let mut fields = Fields(bytes.strip_prefix(&MAGIC)?);
        fields.u32()?;
        fields.u32().map(u64::from)
    }

    /// Whether a file of `len` bytes, known by the sha256 of an id, begins as the header of that id does, and ends before it
    /// could be whole.
    pub(crate) fn is_cut_off(bytes: &[u8], len: u64, sha256: &[u8; 32]) -> bool {
        let has = |at: usize, field: &[u8]| {
            bytes.get(at..).unwrap_or_default().iter().zip(field).all(|(byte, expected)| byte == expected)
        };
        let claimed = Self::len_in(bytes);
        let id_end = claimed.and_then(|claimed| usize::try_from(claimed).ok()?.checked_sub(CRC_LEN));
        let id = bytes.get(FIXED_LEN..bytes.len().min(id_end.unwrap_or_default())).unwrap_or_default();
        // The id may be cut off inside a character.
        let is_text = std::str::from_utf8(id).map_or_else(|error| error.error_len().is_none(), |_| true);
        let begins = has(0, &MAGIC) && has(MAGIC.len(), &VERSION.to_le_bytes()) && has(FIXED_LEN - 32, sha256);
        begins && is_text && claimed.is_none_or(|claimed| claimed > len)
    }

    /// The epoch where a header that does not hold would have it.
    pub(crate) fn epoch_in(bytes: &[u8]) -> Option<Epoch> {
        let mut fields = Fields(bytes);
        fields.bytes(16)?;
        fields.u64().map(Epoch)
    }

    /// The conversation id in a header of a known version that holds.
    pub(crate) fn id_in(bytes: &[u8]) -> Option<&str> {
        let parsed = Parsed::of(bytes).filter(|parsed| parsed.version == VERSION)?;
        std::str::from_utf8(parsed.id).ok()
    }

    /// Checks the beginning of a file of `file_len` bytes against a conversation. `bytes` are the first [`header_len`] of
    /// the file, or all of it.
    pub(crate) fn check(bytes: &[u8], file_len: u64, id: &str, sha256: &[u8; 32]) -> HeaderCheck {
        if bytes.len() < header_len(id) && bytes.len() as u64 == file_len && is_beginning(bytes, id, sha256) {
            return HeaderCheck::Unfinished;
        }
        match Parsed::of(bytes) {
            Some(Parsed { version, flags, .. }) if version != VERSION || flags & MUST_KNOW != 0 => {
                HeaderCheck::Unsupported { version }
            }
            Some(parsed) if parsed.sha256 != sha256 || parsed.id != id.as_bytes() => HeaderCheck::OtherConversation,
            Some(Parsed { epoch, flags, .. }) => HeaderCheck::Holds(FileHeader { epoch, flags }),
            None => HeaderCheck::Bad,
        }
    }
}

/// The length of a conversation's file header.
pub(crate) fn header_len(id: &str) -> usize {
    FIXED_LEN + id.len() + CRC_LEN
}

struct Parsed<'a> {
    version: u16,
    flags: u16,
    epoch: Epoch,
    sha256: &'a [u8],
    id: &'a [u8],
}

impl<'a> Parsed<'a> {
    /// The fields of a header whose checksum holds.
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.array()? != MAGIC {
            return None;
        }
        let (version, flags, len) = (fields.u16()?, fields.u16()?, fields.u32()?);
        let (covered, crc) = bytes.get(..usize::try_from(len).ok()?)?.split_last_chunk()?;
        if u32::from_le_bytes(*crc) != masked(crc32c::crc32c(covered)) {
            return None;
        }
        let epoch = Epoch(fields.u64()?);
        let sha256 = fields.bytes(32)?;
        Some(Self { version, flags, epoch, sha256, id: covered.get(FIXED_LEN..)? })
    }
}

/// Whether these bytes, a whole file, begin a header of this conversation.
fn is_beginning(bytes: &[u8], id: &str, sha256: &[u8; 32]) -> bool {
    // What a header leaves open is taken from the bytes: the flags, and the epoch as far as it goes.
    let mut given = [0; FIXED_LEN];
    given.iter_mut().zip(bytes).for_each(|(given, byte)| *given = *byte);
    let mut fields = Fields(&given);
    let header = (|| {
        fields.bytes(10)?;
        let flags = fields.u16()?;
        fields.u32()?;
        FileHeader { epoch: Epoch(fields.u64()?), flags }.encode(id, sha256)
    })();
    header.is_some_and(|header| header.starts_with(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "user-42";
    const SHA: [u8; 32] = [7; 32];

    fn header() -> (FileHeader, Vec<u8>) {
        let header = FileHeader { epoch: Epoch(0x0102_0304_0506_0708), flags: FileHeader::REPAIRED };
        (header, header.encode(ID, &SHA).unwrap())
    }

    fn check(bytes: &[u8]) -> HeaderCheck {
        FileHeader::check(bytes, bytes.len() as u64, ID, &SHA)
    }

    #[test]
    fn a_whole_header_holds_and_every_beginning_of_it_is_unfinished() {
        let (header, bytes) = header();
        assert_eq!(bytes.len(), header_len(ID));
        assert_eq!(check(&bytes), HeaderCheck::Holds(header));
        for cut in 0..bytes.len() {
            assert_eq!(check(&bytes[..cut]), HeaderCheck::Unfinished, "{cut}");
        }
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let (_, bytes) = header();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(check(&bytes), HeaderCheck::Bad, "{bit}");
        }
    }

    #[test]
    fn another_conversation_and_another_version_are_told_apart_from_damage() {
        let (header, bytes) = header();
        assert_eq!(FileHeader::check(&bytes, 999, "user-43", &SHA), HeaderCheck::OtherConversation);
        assert_eq!(FileHeader::check(&bytes, 999, ID, &[8; 32]), HeaderCheck::OtherConversation);
        let newer = FileHeader { flags: 0x0100, ..header }.encode(ID, &SHA).unwrap();
        assert_eq!(check(&newer), HeaderCheck::Unsupported { version: 1 });
        let ignorable = FileHeader { flags: 0x0080, ..header };
        assert_eq!(check(&ignorable.encode(ID, &SHA).unwrap()), HeaderCheck::Holds(ignorable));
    }

    #[test]
    fn a_length_beyond_the_bytes_is_bad() {
        let (_, mut bytes) = header();
        bytes[12..16].copy_from_slice(&[0xff; 4]);
        assert_eq!(check(&bytes), HeaderCheck::Bad);
        bytes[12..16].copy_from_slice(&[0; 4]);
        assert_eq!(check(&bytes), HeaderCheck::Bad);
    }

    #[test]
    fn a_header_tells_its_length_id_and_epoch_and_one_of_another_version_no_id() {
        let (header, bytes) = header();
        assert_eq!(FileHeader::len_in(&bytes), Some(bytes.len() as u64));
        assert_eq!(FileHeader::epoch_in(&bytes), Some(header.epoch));
        assert_eq!(FileHeader::id_in(&bytes), Some(ID));
        let mut newer = bytes.clone();
        newer[8] = 2;
        let at = newer.len() - CRC_LEN;
        let crc = masked(crc32c::crc32c(&newer[..at]));
        newer[at..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(FileHeader::id_in(&newer), None);
        assert!(!FileHeader::is_cut_off(&newer[..40], 40, &SHA));
    }

    #[test]
    fn only_a_beginning_of_the_same_conversation_is_cut_off() {
        let (_, bytes) = header();
        let is_cut_off = |bytes: &[u8], sha: &[u8; 32]| FileHeader::is_cut_off(bytes, bytes.len() as u64, sha);
        for cut in 0..bytes.len() {
            assert!(is_cut_off(&bytes[..cut], &SHA), "{cut}");
            // From where the sha256 differs.
            assert_eq!(is_cut_off(&bytes[..cut], &[8; 32]), cut <= FIXED_LEN - 32, "{cut}");
        }
        assert!(!is_cut_off(&bytes, &SHA), "it is whole");
        assert!(!is_cut_off(b"something else", &SHA));
        let mut binary = bytes[..FIXED_LEN + 3].to_vec();
        binary[FIXED_LEN] = 0xff;
        assert!(!is_cut_off(&binary, &SHA), "an id is a text");
        assert!(!is_beginning(&bytes[..30], "another id", &SHA));
    }
}
