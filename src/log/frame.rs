//! A frame: what one lock holder writes at once, whole or not at all.

use super::{Epoch, Fields, masked};

const MAGIC: [u8; 4] = *b"\xf5CMf";
const END_MARK: [u8; 4] = *b"\xf6CMe";
/// Magic, payload length, epoch, offset, ordinal, count, first sequence number, time, two pointers, kind, codec, flags, crc.
const HEADER_LEN: usize = 4 + 4 + 8 + 8 + 4 + 4 + 8 + 8 + 8 + 8 + 1 + 1 + 2 + 4;
/// Crc over header and payload, payload length, end mark.
pub(crate) const TRAILER_LEN: usize = 4 + 4 + 4;
/// A frame with nothing in it.
pub(super) const EMPTY_LEN: usize = HEADER_LEN + TRAILER_LEN;

/// What the header of a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) payload_len: u32,
    pub(crate) epoch: Epoch,
    /// Where the frame begins in its file.
    pub(crate) offset: u64,
    /// The number of frames before it.
    pub(crate) ordinal: u32,
    /// The number of messages in it.
    pub(crate) count: u32,
    /// The sequence number of its first message.
    pub(crate) first_seq: u64,
    /// When it was written, in microseconds since 1970.
    pub(crate) recorded_at: u64,
    /// Where the newest frame with a system or developer message begins, this one included.
    pub(crate) newest_system: Option<u64>,
    /// Where the newest frame with a user message begins, this one included.
    pub(crate) newest_user: Option<u64>,
    pub(crate) kind: u8,
    pub(crate) codec: u8,
    pub(crate) flags: u16,
}

impl FrameHeader {
    /// The payload is messages.
    pub(crate) const MESSAGES: u8 = 1;
    /// Kinds from here on may be skipped by a reader that does not know them.
    pub(crate) const SKIPPABLE: u8 = 128;
    /// The payload is the records of `record.rs`.
    pub(crate) const RECORDS_V1: u8 = 1;

    /// The length of a header in bytes.
    pub(crate) const LEN: usize = HEADER_LEN;

    fn encode(&self) -> [u8; HEADER_LEN] {
        // No frame begins at 0, where the file header is.
        let pointer = |offset: Option<u64>| offset.unwrap_or(0).to_le_bytes();
        let mut bytes = [0; HEADER_LEN];
        let mut rest = bytes.as_mut_slice();
        let mut put = |field: &[u8]| {
            if let Some((place, behind)) = std::mem::take(&mut rest).split_at_mut_checked(field.len()) {
                place.copy_from_slice(field);
                rest = behind;
            }
        };
        put(&MAGIC);
        put(&self.payload_len.to_le_bytes());
        put(&self.epoch.0.to_le_bytes());
        put(&self.offset.to_le_bytes());
        put(&self.ordinal.to_le_bytes());
        put(&self.count.to_le_bytes());
        put(&self.first_seq.to_le_bytes());
        put(&self.recorded_at.to_le_bytes());
        put(&pointer(self.newest_system));
        put(&pointer(self.newest_user));
        put(&[self.kind, self.codec]);
        put(&self.flags.to_le_bytes());
        if let Some((covered, crc)) = bytes.split_last_chunk_mut::<4>() {
            *crc = masked(crc32c::crc32c(covered)).to_le_bytes();
        }
        bytes
    }

    /// The header at the start of `bytes`, if its magic and its checksum hold.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (header, _) = bytes.split_first_chunk::<HEADER_LEN>()?;
        if !header.starts_with(&MAGIC) {
            return None;
        }
        let (covered, crc) = header.split_last_chunk()?;
        if u32::from_le_bytes(*crc) != masked(crc32c::crc32c(covered)) {
            return None;
        }
        let mut fields = Fields(covered);
        fields.bytes(MAGIC.len())?;
        let payload_len = fields.u32()?;
        let (epoch, offset) = (Epoch(fields.u64()?), fields.u64()?);
        let (ordinal, count) = (fields.u32()?, fields.u32()?);
        let (first_seq, recorded_at) = (fields.u64()?, fields.u64()?);
        let mut pointer = || fields.u64().map(|offset| (offset != 0).then_some(offset));
        let (newest_system, newest_user) = (pointer()?, pointer()?);
        let (kind, codec, flags) = (fields.u8()?, fields.u8()?, fields.u16()?);
        Some(Self {
            payload_len,
            epoch,
            offset,
            ordinal,
            count,
            first_seq,
            recorded_at,
            newest_system,
            newest_user,
            kind,
            codec,
            flags,
        })
    }

    /// The length of the whole frame.
    pub(crate) fn frame_len(&self) -> u64 {
        EMPTY_LEN as u64 + u64::from(self.payload_len)
    }

    /// Where the next frame begins.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.frame_len())
    }

    /// Whether it says that messages are in it.
    pub(crate) fn has_messages(&self) -> bool {
        self.kind == Self::MESSAGES && self.count > 0
    }

    /// The sequence numbers of its messages.
    pub(crate) fn seqs(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + use<> {
        let first = self.first_seq;
        (0..self.count).map(move |position| first.saturating_add(u64::from(position)))
    }

    /// The sequence number behind its last message.
    pub(crate) fn next_seq(&self) -> u64 {
        self.first_seq.saturating_add(u64::from(self.count))
    }
}

/// The last bytes of a frame, which tell it from every other frame of its file: they cover its place and its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trailer(pub(crate) [u8; TRAILER_LEN]);

impl Trailer {
    fn new(header: &[u8; HEADER_LEN], payload_crc: u32, payload_len: u32) -> Self {
        let mut both = [0; 8];
        let (header_crc, payload) = both.split_at_mut(4);
        header_crc.copy_from_slice(header.last_chunk::<4>().unwrap_or(&[0; 4]));
        payload.copy_from_slice(&payload_crc.to_le_bytes());
        let crc = masked(crc32c::crc32c(&both));

        let [a, b, c, d] = crc.to_le_bytes();
        let [e, f, g, h] = payload_len.to_le_bytes();
        let [i, j, k, l] = END_MARK;
        Self([a, b, c, d, e, f, g, h, i, j, k, l])
    }

    /// The length of the frame that ends with these bytes, if they end one.
    pub(crate) fn frame_len(bytes: &[u8]) -> Option<u64> {
        let before_mark = bytes.strip_suffix(&END_MARK)?;
        let len = before_mark.last_chunk()?;
        Some(EMPTY_LEN as u64 + u64::from(u32::from_le_bytes(*len)))
    }
}

/// A frame that holds: its header, its trailer and its payload belong together, and it stands where it was written.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) payload: &'a [u8],
    pub(crate) trailer: Trailer,
}

impl<'a> Frame<'a> {
    /// The frame at the start of `bytes`, which begin at `offset` in their file. An unknown epoch is any.
    pub(crate) fn parse(bytes: &'a [u8], offset: u64, epoch: Option<Epoch>) -> Option<Self> {
        match Self::check(bytes, offset, epoch) {
            Checked::Holds(frame) => Some(frame),
            Checked::DoesNot { .. } => None,
        }
    }

    /// The same, with what it took to find out.
    pub(super) fn check(bytes: &'a [u8], offset: u64, epoch: Option<Epoch>) -> Checked<'a> {
        let Some((header, header_bytes, payload, trailer)) = Self::parts(bytes, offset, epoch) else {
            return Checked::DoesNot { checked: 0 };
        };
        if trailer == Trailer::new(header_bytes, crc32c::crc32c(payload), header.payload_len) {
            Checked::Holds(Self { header, payload, trailer })
        } else {
            Checked::DoesNot { checked: payload.len() }
        }
    }

    /// The parts of what looks like a frame before its payload is summed.
    fn parts(
        bytes: &'a [u8],
        offset: u64,
        epoch: Option<Epoch>,
    ) -> Option<(FrameHeader, &'a [u8; HEADER_LEN], &'a [u8], Trailer)> {
        let header = FrameHeader::parse(bytes)?;
        // At 0 stands the file header, and an offset of 0 means none.
        if header.offset != offset || offset == 0 || epoch.is_some_and(|epoch| epoch != header.epoch) {
            return None;
        }
        let (header_bytes, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let (payload, rest) = rest.split_at_checked(usize::try_from(header.payload_len).ok()?)?;
        let trailer = Trailer(*rest.first_chunk::<TRAILER_LEN>()?);
        (Trailer::frame_len(&trailer.0) == Some(header.frame_len())).then_some((header, header_bytes, payload, trailer))
    }

    /// The length of the whole frame in bytes.
    pub(crate) fn len(&self) -> usize {
        EMPTY_LEN + self.payload.len()
    }

    /// The frame that ends where `bytes` end, at `end` in their file. [`Ending::Before`] says where it would begin if that
    /// is before the bytes given.
    pub(super) fn parse_ending(bytes: &'a [u8], end: u64, epoch: Option<Epoch>) -> Ending<'a> {
        let Some(len) = Trailer::frame_len(bytes) else {
            return Ending::None { checked: 0 };
        };
        let Some(start) = end.checked_sub(len) else {
            return Ending::None { checked: 0 };
        };
        let frame = usize::try_from(len).ok().and_then(|len| bytes.get(bytes.len().checked_sub(len)?..));
        match frame {
            None => Ending::Before(start),
            Some(bytes) => match Frame::check(bytes, start, epoch) {
                Checked::Holds(frame) => Ending::Frame(frame),
                Checked::DoesNot { checked } => Ending::None { checked },
            },
        }
    }
}

/// Whether a frame holds; if not, how many bytes had to be summed to know.
pub(super) enum Checked<'a> {
    Holds(Frame<'a>),
    DoesNot { checked: usize },
}

/// What ends at some place in a file.
pub(super) enum Ending<'a> {
    Frame(Frame<'a>),
    /// Something with a trailer that begins here, before the bytes that were given.
    Before(u64),
    /// Nothing; so many bytes had to be summed to know.
    None {
        checked: usize,
    },
}

/// Where the next frame may begin.
pub(super) fn find_magic(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MAGIC.len()).position(|window| window == MAGIC)
}

/// The end of the last end mark in `bytes`.
pub(super) fn rfind_end_mark(bytes: &[u8]) -> Option<usize> {
    let start = bytes.windows(END_MARK.len()).rposition(|window| window == END_MARK)?;
    Some(start + END_MARK.len())
}

/// A frame being written: the payload is encoded and summed before anyone takes a lock, the header is filled in under it.
pub(crate) struct FrameWriter {
    /// Room for the header, then the payload.
    bytes: Vec<u8>,
    payload_crc: u32,
}

impl FrameWriter {
    /// Encodes a payload with `write`, which appends to the buffer that it is given.
    pub(crate) fn new<E>(write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Self, E> {
        let mut bytes = vec![0; HEADER_LEN];
        write(&mut bytes)?;
        let payload_crc = crc32c::crc32c(bytes.get(HEADER_LEN..).unwrap_or_default());
        Ok(Self { bytes, payload_crc })
    }

    /// For a payload that is encoded already.
    pub(crate) fn with_payload(payload: &[u8]) -> Self {
        let bytes = [&[0; HEADER_LEN], payload].concat();
        Self { bytes, payload_crc: crc32c::crc32c(payload) }
    }

    /// One payload of several.
    pub(crate) fn join<'a>(writers: impl Iterator<Item = &'a Self>) -> Self {
        let mut bytes = vec![0; HEADER_LEN];
        writers.for_each(|writer| bytes.extend(writer.bytes.get(HEADER_LEN..).unwrap_or_default()));
        let payload_crc = crc32c::crc32c(bytes.get(HEADER_LEN..).unwrap_or_default());
        Self { bytes, payload_crc }
    }

    pub(crate) fn payload_len(&self) -> usize {
        self.bytes.len() - HEADER_LEN
    }

    /// The whole frame. The header's payload length is set here.
    pub(crate) fn finish(mut self, mut header: FrameHeader) -> (Vec<u8>, FrameHeader, Trailer) {
        // Whoever writes has checked the payload against a limit below 4 GiB.
        header.payload_len = u32::try_from(self.payload_len()).unwrap_or(u32::MAX);
        let header_bytes = header.encode();
        if let Some(place) = self.bytes.first_chunk_mut() {
            *place = header_bytes;
        }
        let trailer = Trailer::new(&header_bytes, self.payload_crc, header.payload_len);
        self.bytes.extend(trailer.0);
        (self.bytes, header, trailer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FrameHeader {
        FrameHeader {
            payload_len: 5,
            epoch: Epoch(0x1122_3344_5566_7788),
            offset: 67,
            ordinal: 3,
            count: 2,
            first_seq: 9,
            recorded_at: 1_764_000_000_000_000,
            newest_system: None,
            newest_user: Some(67),
            kind: FrameHeader::MESSAGES,
            codec: FrameHeader::RECORDS_V1,
            flags: 0,
        }
    }

    fn frame() -> Vec<u8> {
        let writer = FrameWriter::new(|bytes| {
            bytes.extend(b"hello");
            Ok::<_, ()>(())
        });
        writer.unwrap().finish(header()).0
    }

    #[test]
    fn a_frame_comes_back_as_it_was_written() {
        let bytes = frame();
        let frame = Frame::parse(&bytes, 67, Some(Epoch(0x1122_3344_5566_7788))).unwrap();
        assert_eq!((frame.header, frame.payload), (header(), &b"hello"[..]));
        assert_eq!(frame.header.frame_len(), bytes.len() as u64);
        assert_eq!(bytes.len(), EMPTY_LEN + 5);
        assert!(!MAGIC.contains(&0) && !END_MARK.contains(&0));
    }

    #[test]
    fn a_frame_holds_only_in_its_place_and_epoch() {
        let bytes = frame();
        assert!(Frame::parse(&bytes, 68, None).is_none());
        assert!(Frame::parse(&bytes, 67, Some(Epoch(1))).is_none());
        assert!(Frame::parse(&bytes, 67, None).is_some());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let whole = frame();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Frame::parse(&bytes, 67, None).is_none(), "{bit}");
        }
        for cut in 0..whole.len() {
            assert!(Frame::parse(&whole[..cut], 67, None).is_none(), "{cut}");
        }
    }

    #[test]
    fn a_header_never_meets_another_payload() {
        let one = frame();
        let writer = FrameWriter::new(|bytes| {
            bytes.extend(b"world");
            Ok::<_, ()>(())
        });
        let other = writer.unwrap().finish(FrameHeader { recorded_at: 1, ..header() }).0;
        let mixed = [&one[..HEADER_LEN], &other[HEADER_LEN..]].concat();
        assert!(Frame::parse(&mixed, 67, None).is_none());
    }

    #[test]
    fn a_frame_is_found_from_its_end() {
        let bytes = frame();
        let end = 67 + bytes.len() as u64;
        assert!(matches!(Frame::parse_ending(&bytes, end, None), Ending::Frame(frame) if frame.header == header()));
        assert!(matches!(Frame::parse_ending(&bytes[10..], end, None), Ending::Before(67)));
        assert!(matches!(Frame::parse_ending(&bytes[..bytes.len() - 1], end - 1, None), Ending::None { .. }));
        // A length that reaches before the file.
        assert!(matches!(Frame::parse_ending(&bytes, 50, None), Ending::None { .. }));
    }
}
