//! What a change will do to a folder, written down before it does: so that it is done whole, or not at all.
//!
//! The hidden state file of a folder is `magic, generation, length, checksum`, and behind it the record of the change that
//! is being made, if one is: a line of JSON with names and lengths, then the bytes to write. Each change counts the
//! generation up before it touches anything, so whoever remembers the folder under an older number looks anew.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use serde::{Deserialize, Serialize};

use super::folder::is_one_name;

/// The state file: also what processes lock.
pub(super) const STATE_NAME: &str = ".notebook";

const MAGIC: &[u8; 8] = b"CMnotes1";
const HEADER_LEN: usize = 28;

/// Names and what they will hold; `None` removes. Doing it twice is doing it once.
pub(super) type Changes<'a> = BTreeMap<String, Option<Cow<'a, [u8]>>>;

/// What the state file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    pub(super) generation: u64,
    /// Whether a record follows, whole or not.
    pub(super) is_pending: bool,
}

/// `None` for a file that was not set up, or is not ours.
pub(super) fn read_state(mut file: &File) -> io::Result<Option<State>> {
    let mut header = [0; HEADER_LEN];
    file.seek(SeekFrom::Start(0))?;
    match file.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = file.metadata()?.len();
    Ok(Header::decode(&header)
        .map(|header| State { generation: header.generation, is_pending: length > HEADER_LEN as u64 }))
}

/// The state file's bytes with a record, in one piece.
pub(super) fn encode(generation: u64, changes: &Changes<'_>) -> Vec<u8> {
    let steps = changes.iter().map(|(name, bytes)| Step { name: name.clone(), len: bytes.as_ref().map(|b| b.len()) });
    let mut record = serde_json::to_vec(&steps.collect::<Vec<_>>()).unwrap_or_default();
    record.push(b'\n');
    for bytes in changes.values().flatten() {
        record.extend_from_slice(bytes);
    }
    let mut file = Header { generation, length: record.len() as u64 }.sealed(&record);
    file.append(&mut record);
    file
}

/// The state file's bytes without a record.
pub(super) fn encode_idle(generation: u64) -> Vec<u8> {
    Header { generation, length: 0 }.sealed(&[])
}

/// Replaces what the state file holds.
pub(super) fn write(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)
}

/// Where the record begins; the file is cut here when its change is done.
pub(super) fn idle_len() -> u64 {
    HEADER_LEN as u64
}

/// The change of the record, if it is whole. One that is not was never begun.
pub(super) fn read_changes(mut file: &File) -> io::Result<Option<Changes<'static>>> {
    let mut bytes = vec![0; HEADER_LEN];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut bytes)?;
    let length = bytes.first_chunk().and_then(Header::decode).map_or(0, |header| header.length);
    // No more than the record: what is behind it may be anything.
    file.take(length).read_to_end(&mut bytes)?;
    Ok(decode(&bytes))
}

fn decode(bytes: &[u8]) -> Option<Changes<'static>> {
    let (header, record) = bytes.split_first_chunk::<HEADER_LEN>()?;
    let header = Header::decode(header)?;
    let record = record.get(..usize::try_from(header.length).ok()?)?;
    if header.length == 0 || header.sealed(record) != bytes.get(..HEADER_LEN)? {
        return None;
    }
    let end = memchr::memchr(b'\n', record)?;
    let (steps, rest) = record.split_at_checked(end)?;
    let steps: Vec<Step> = serde_json::from_slice(steps).ok()?;
    let mut rest = rest.get(1..)?;
    let mut changes = Changes::new();
    for step in steps {
        // A record that somebody forged leads nowhere else, and to no file of our own.
        if !is_one_name(&step.name) || step.name.starts_with('.') {
            return None;
        }
        let content = match step.len {
            Some(len) => {
                let (content, behind) = rest.split_at_checked(len)?;
                rest = behind;
                Some(Cow::Owned(content.to_vec()))
            }
            None => None,
        };
        changes.insert(step.name, content);
    }
    rest.is_empty().then_some(changes)
}

#[derive(Serialize, Deserialize)]
struct Step {
    name: String,
    /// As many of the bytes behind, in order; without it the name is removed.
    len: Option<usize>,
}

struct Header {
    generation: u64,
    length: u64,
}

impl Header {
    fn decode(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (generation, rest) = rest.split_first_chunk()?;
        let (length, _) = rest.split_first_chunk()?;
        Some(Self { generation: u64::from_le_bytes(*generation), length: u64::from_le_bytes(*length) })
    }

    /// The header's bytes, with the checksum over generation, length and record.
    fn sealed(&self, record: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.generation.to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes), record);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Changes<'static> {
        Changes::from([
            ("a.md".into(), Some(Cow::Borrowed(&b"one\ntwo"[..]))),
            ("a_description.md".into(), None),
            ("b".into(), Some(Cow::Borrowed(&b""[..]))),
        ])
    }

    #[test]
    fn a_record_comes_back_whole_or_not_at_all() {
        let bytes = encode(7, &example());
        assert_eq!(decode(&bytes), Some(example()));
        assert_eq!(decode(&encode_idle(7)), None);
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]), None, "cut at {len}");
        }
        for at in 0..bytes.len() {
            let mut harmed = bytes.clone();
            harmed[at] ^= 1;
            assert_eq!(decode(&harmed), None, "harmed at {at}");
        }
    }

    #[test]
    fn a_forged_record_leads_nowhere() {
        for name in ["../a.md", "a/b", "/etc/passwd", "..", ".", "", ".notebook", "a/"] {
            let changes = Changes::from([(name.to_owned(), Some(Cow::Borrowed(&b"x"[..])))]);
            assert_eq!(decode(&encode(1, &changes)), None, "{name}");
        }
    }
}
