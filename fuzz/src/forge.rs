//! Files with right checksums, from bytes that a fuzzer chose: else it would hardly get past them. Written from
//! `docs/format.md`, not from the library.

use arbitrary::{Result, Unstructured};
use sha2::{Digest, Sha256};

const FILE_MAGIC: &[u8] = b"\x89CHATMEM";
const FRAME_MAGIC: &[u8] = b"\xf5CMf";
const END_MARK: &[u8] = b"\xf6CMe";
const FRAME_HEADER: usize = 72;
const TRAILER: usize = 12;
const EPOCH: u64 = 0x6f4a_2375_a3a1_fb98;
/// The conversation of files that do not say whose they are.
pub const ID: &str = "c";

fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize)
}

/// The id in a header, if the sha256 there is the id's.
pub fn id_in(bytes: &[u8]) -> Option<&str> {
    let id = bytes.get(56..u32_at(bytes, 12)?.checked_sub(4)?)?;
    let is_its_own = bytes.starts_with(FILE_MAGIC) && bytes.get(24..56)? == Sha256::digest(id).as_slice();
    std::str::from_utf8(id).ok().filter(|id| is_its_own && !id.trim().is_empty())
}

/// Makes the checksum of a file header right, where its length says.
pub fn mend_header(bytes: &mut [u8]) {
    let Some(at) = u32_at(bytes, 12).and_then(|len| len.checked_sub(4)) else {
        return;
    };
    if let Some((covered, crc)) = bytes.split_at_mut_checked(at)
        && let Some(crc) = crc.first_chunk_mut()
    {
        *crc = masked(covered);
    }
}

/// Makes the checksums and trailers of the frames in a file right, each where its header says.
pub fn mend_frames(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(next) = bytes.get(at..).and_then(|rest| rest.windows(4).position(|four| four == FRAME_MAGIC)) {
        at += next;
        at += mend_frame(&mut bytes[at..]).unwrap_or(1);
    }
}

/// The length of the frame, where all of it is there.
fn mend_frame(bytes: &mut [u8]) -> Option<usize> {
    let payload_len = u32_at(bytes, 4)?;
    let (header, rest) = bytes.split_at_mut_checked(FRAME_HEADER)?;
    let header_crc = masked(&header[..68]);
    header[68..].copy_from_slice(&header_crc);
    let (payload, rest) = rest.split_at_mut_checked(payload_len)?;
    let trailer = rest.first_chunk_mut::<TRAILER>()?;
    trailer.copy_from_slice(&trailer_of(&header_crc, payload));
    Some(FRAME_HEADER + payload_len + TRAILER)
}

fn trailer_of(header_crc: &[u8], payload: &[u8]) -> Vec<u8> {
    let both = [header_crc, &crc32c::crc32c(payload).to_le_bytes()].concat();
    [&masked(&both), &(payload.len() as u32).to_le_bytes(), END_MARK].concat()
}

/// Builds a file step by step, as the bytes say. Every field of a frame is what a writer would have written, or anything.
///
/// ```text
/// file    header step*
/// header  kind (1): 0 to 4 holds, then flags (2); 5 a damaged byte; 6 none; 7 another version (2)
/// step    kind (1): 0 to 3 a frame; 4 bytes: length (1), bytes; 5 zeros: count (2); 6 a cut: count (1);
///         7 a copy of an earlier frame: which (1)
/// frame   which fields are anything (2), those fields, payload
/// payload kind (1): even: length (2), bytes; odd: messages, each a role (1) and a text: length (1), bytes
/// ```
pub fn build(recipe: &[u8]) -> Vec<u8> {
    let mut file = File { bytes: Vec::new(), frames: Vec::new(), messages: 0, pointers: [0; 2] };
    // A recipe that breaks off has its file too.
    let _ = file.follow(&mut Unstructured::new(recipe));
    file.bytes
}

struct File {
    bytes: Vec<u8>,
    /// Where the frames begin.
    frames: Vec<usize>,
    messages: u64,
    pointers: [u64; 2],
}

impl File {
    fn follow(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.header(u)?;
        while !u.is_empty() {
            match u.arbitrary::<u8>()? % 8 {
                0..=3 => self.frame(u)?,
                4 => {
                    let len = usize::from(u.arbitrary::<u8>()?);
                    self.bytes.extend(u.bytes(len.min(u.len()))?);
                }
                5 => self.bytes.resize(self.bytes.len() + usize::from(u.arbitrary::<u16>()? % 1500), 0),
                6 => self.bytes.truncate(self.bytes.len().saturating_sub(u.arbitrary::<u8>()?.into())),
                _ => {
                    let which = usize::from(u.arbitrary::<u8>()?);
                    let begin = self.frames.get(which % self.frames.len().max(1)).copied();
                    let frame = begin.and_then(|begin| self.bytes.get(begin..)).unwrap_or_default();
                    let len = u32_at(frame, 4).unwrap_or_default().saturating_add(FRAME_HEADER + TRAILER);
                    self.bytes.extend(frame[..len.min(frame.len())].to_vec());
                }
            }
            if self.bytes.len() > 1 << 18 {
                break;
            }
        }
        Ok(())
    }

    fn header(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let kind = u.arbitrary::<u8>()? % 8;
        if kind == 6 {
            return Ok(());
        }
        let version = if kind == 7 { u.arbitrary()? } else { 1_u16 };
        let flags: u16 = u.arbitrary()?;
        self.bytes.extend(FILE_MAGIC);
        self.bytes.extend(version.to_le_bytes());
        // Flags that must be known are seldom what is wanted.
        self.bytes.extend(if flags % 64 == 63 { flags } else { flags & 0xff }.to_le_bytes());
        self.bytes.extend(60_u32.wrapping_add(ID.len() as u32).to_le_bytes());
        self.bytes.extend(EPOCH.to_le_bytes());
        self.bytes.extend(Sha256::digest(ID.as_bytes()));
        self.bytes.extend(ID.as_bytes());
        self.bytes.extend(masked(&self.bytes));
        if kind == 5 {
            let at = usize::from(u.arbitrary::<u8>()?) % self.bytes.len();
            self.bytes[at] ^= 1 << (flags % 8);
        }
        Ok(())
    }

    fn frame(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let anything: u16 = u.arbitrary()?;
        let is_any = |field: u32| anything & (1 << field) != 0;
        let begin = self.bytes.len();
        let mut fields = [
            EPOCH,
            begin as u64,
            self.frames.len() as u64,
            0,
            self.messages,
            1_764_000_000_000_000,
            self.pointers[0],
            self.pointers[1],
        ];
        let mut chosen = [false; 8];
        for (field, value) in fields.iter_mut().enumerate().filter(|(field, _)| is_any(*field as u32)) {
            (*value, chosen[field]) = (self.number(u)?, true);
        }
        let (kind, codec) = if is_any(8) { (u.arbitrary()?, u.arbitrary()?) } else { (1, 1) };
        let flags: u16 = if is_any(9) { u.arbitrary()? } else { 0 };
        let broken = if is_any(10) { Some(u.arbitrary::<u16>()?) } else { None };
        let claimed_len: Option<u32> = if is_any(11) { Some(u.arbitrary()?) } else { None };

        let (payload, roles) = payload(u)?;
        if !chosen[3] {
            fields[3] = roles.len() as u64;
        }
        for (pointer, wanted) in [(0, &[0, 1][..]), (1, &[2])] {
            if roles.iter().any(|role| wanted.contains(role)) {
                self.pointers[pointer] = begin as u64;
                if !chosen[6 + pointer] {
                    fields[6 + pointer] = begin as u64;
                }
            }
        }
        let [epoch, offset, ordinal, count, first_seq, recorded_at, newest_system, newest_user] = fields;
        let mut frame = FRAME_MAGIC.to_vec();
        frame.extend(claimed_len.unwrap_or(payload.len() as u32).to_le_bytes());
        frame.extend(epoch.to_le_bytes());
        frame.extend(offset.to_le_bytes());
        frame.extend((ordinal as u32).to_le_bytes());
        frame.extend((count as u32).to_le_bytes());
        for field in [first_seq, recorded_at, newest_system, newest_user] {
            frame.extend(field.to_le_bytes());
        }
        frame.extend([kind, codec]);
        frame.extend(flags.to_le_bytes());
        let header_crc = masked(&frame);
        frame.extend(header_crc);
        frame.extend(&payload);
        frame.extend(trailer_of(&header_crc, &payload));
        if let Some(broken) = broken {
            let at = usize::from(broken / 8) % frame.len();
            frame[at] ^= 1 << (broken % 8);
        }
        self.frames.push(begin);
        self.messages = first_seq.saturating_add(count);
        self.bytes.extend(frame);
        Ok(())
    }

    /// A small number, one near the largest, the place of a frame, or any number.
    fn number(&self, u: &mut Unstructured<'_>) -> Result<u64> {
        let choice: u8 = u.arbitrary()?;
        Ok(match choice {
            0..=63 => choice.into(),
            64..=79 => u64::MAX - u64::from(choice - 64),
            80..=95 => u64::from(u32::MAX) - u64::from(choice - 80),
            96..=191 => {
                let which = usize::from(choice - 96) % (self.frames.len() + 1);
                self.frames.get(which).map_or(self.bytes.len(), |begin| *begin) as u64
            }
            _ => u.arbitrary()?,
        })
    }
}

/// Records, and the roles in them.
fn payload(u: &mut Unstructured<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
    let kind: u8 = u.arbitrary()?;
    if kind % 2 == 0 {
        let len = usize::from(u.arbitrary::<u16>()?);
        return Ok((u.bytes(len.min(u.len()))?.to_vec(), Vec::new()));
    }
    let (mut records, mut roles) = (Vec::new(), Vec::new());
    for _ in 0..kind / 2 % 4 + 1 {
        let role = u.arbitrary::<u8>()? % 5;
        let len = u.arbitrary::<u8>()? % 128;
        let text: Vec<u8> = u.bytes(usize::from(len).min(u.len()))?.iter().map(|byte| byte % 128).collect();
        // No id, name and time; one part, no metadata; the part is a text.
        records.extend([role, 0, 0, 0, 1, 0, 0, text.len() as u8]);
        records.extend(text);
        roles.push(role);
    }
    Ok((records, roles))
}
