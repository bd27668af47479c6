//! Files made to do harm: hangs, memory, wrong turns. Their checksums are right where it says so.

use std::fs;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use chat_memory::transcript::{jsonl, openai};
use chat_memory::{
    ChatHistory, ChatMemory, Content, FileChatMemory, HistoryRange, Media, Message, PageRequest, Recovery, Repair, Role,
};
use tempfile::tempdir;

use crate::sim_disk::SimDisk;
use crate::support::{child_part, quick, start_child, texts};

const ID: &str = "c";
/// The length of the file header for this id.
const HEADER: usize = 60 + ID.len();

fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

fn frame_header(payload_len: u32, epoch: &[u8], offset: u64, ordinal: u32, count: u32, kind: u8) -> Vec<u8> {
    let mut b = b"\xf5CMf".to_vec();
    b.extend(payload_len.to_le_bytes());
    b.extend(epoch);
    b.extend(offset.to_le_bytes());
    b.extend(ordinal.to_le_bytes());
    b.extend(count.to_le_bytes());
    b.extend(u64::from(ordinal).to_le_bytes());
    b.extend(0_u64.to_le_bytes());
    b.extend(0_u64.to_le_bytes());
    b.extend(0_u64.to_le_bytes());
    b.extend([kind, 1, 0, 0]);
    let crc = masked(crc32c::crc32c(&b));
    b.extend(crc.to_le_bytes());
    assert_eq!(b.len(), 72);
    b
}

fn frame(payload: &[u8], epoch: &[u8], offset: u64, ordinal: u32, count: u32, kind: u8) -> Vec<u8> {
    let mut b = frame_header(payload.len() as u32, epoch, offset, ordinal, count, kind);
    let mut both = b[68..72].to_vec();
    both.extend(crc32c::crc32c(payload).to_le_bytes());
    b.extend(payload);
    b.extend(masked(crc32c::crc32c(&both)).to_le_bytes());
    b.extend((payload.len() as u32).to_le_bytes());
    b.extend(b"\xf6CMe");
    b
}

/// What the work returns, or `None` where it takes so long that it must hang: many times what it should.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(work()));
    receive.recv_timeout(limit).ok()
}

/// Two frames of equal length swapped, as by a misdirected write.
#[test]
fn swapped_frames_do_not_hang_a_reader() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    for number in 0..3 {
        memory.add(ID, &[Message::user(format!("{number}").repeat(200_000))]).unwrap();
    }
    let path = memory.path(ID);
    let mut bytes = fs::read(&path).unwrap();
    let len = (bytes.len() - HEADER) / 3;
    let (first, rest) = bytes[HEADER..].split_at_mut(len);
    first.swap_with_slice(&mut rest[..len]);
    fs::write(&path, bytes).unwrap();
    let root = directory.path().to_owned();
    let found = within(Duration::from_secs(20), move || quick(&root).get(ID).map(|found| found.len()));
    assert!(found.is_some(), "get hangs");
}

/// An attachment of nothing but end marks with lengths before them, torn.
#[test]
fn a_torn_end_that_looks_like_many_ends_is_read_a_few_times() {
    let pattern = [&(16_384_u32 + 8 - 84).to_le_bytes()[..], b"\xf6CMe"].concat();
    for size in [64 << 10, 128 << 10] {
        let disk = SimDisk::default();
        let open = || FileChatMemory::builder("/store").disk(Arc::new(disk.clone())).open().unwrap();
        let memory = open();
        memory.add(ID, &[Message::user("one")]).unwrap();
        let attachment = pattern.repeat(size / 8);
        memory.add(ID, &[Message::user("two").with_media(Media::bytes("image/png", attachment))]).unwrap();
        // A power cut: the trailer and a bit more is missing.
        disk.tamper(&memory.path(ID), |bytes| {
            let at = bytes.windows(8).rposition(|w| w == pattern).unwrap();
            bytes.truncate(at + 8);
        });
        disk.take_counts();
        assert_eq!(open().get(ID).unwrap().len(), 1);
        let read = disk.take_counts().0;
        assert!(size < (128 << 10) || read < 20 * size, "{read} bytes read of a file of {size}");
    }
}

/// Headers with right checksums and long payloads that overlap, each with its end mark: summing each would take minutes.
#[test]
fn frames_that_overlap_do_not_make_a_search_take_for_ever() {
    const COUNT: usize = 40_000;
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add(ID, &[Message::user("one")]).unwrap();
    let path = memory.path(ID);
    let mut bytes = fs::read(&path).unwrap();
    let epoch = bytes[16..24].to_vec();
    bytes.truncate(HEADER);
    let trailers = HEADER + COUNT * 72;
    let payload = |at: usize| (trailers + 12 * at).saturating_sub(HEADER + 72 * at + 72) as u32;
    for at in 0..COUNT {
        bytes.extend(frame_header(payload(at), &epoch, (HEADER + 72 * at) as u64, at as u32, 1, 1));
    }
    for at in 0..COUNT {
        bytes.extend([0x11; 4]);
        bytes.extend(payload(at).to_le_bytes());
        bytes.extend(b"\xf6CMe");
    }
    fs::write(&path, &bytes).unwrap();
    let root = directory.path().to_owned();
    let found = within(Duration::from_secs(60), move || {
        let memory = quick(&root);
        (memory.get(ID).is_err(), memory.repair(ID, Repair::DryRun).unwrap().damage.len())
    });
    assert_eq!(found, Some((true, 1)));
}

/// With right checksums.
#[test]
fn a_frame_where_the_file_header_should_be_is_no_frame() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    let path = memory.path(ID);
    fs::write(&path, frame(b"", &[7; 8], 0, 0, 0, 200)).unwrap();
    let strict = FileChatMemory::builder(directory.path()).recovery(Recovery::Strict).open().unwrap();
    let refused = strict.get(ID).is_err();
    let report = strict.repair(ID, Repair::Apply).unwrap();
    assert_eq!((refused, strict.get(ID).is_err()), (!report.damage.is_empty(), false));
}

/// The last frame has a lower ordinal than the one before, with right checksums.
#[test]
fn an_acknowledged_add_is_read_back_whatever_the_file_says() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add(ID, &[Message::user("x")]).unwrap();
    let path = memory.path(ID);
    let mut bytes = fs::read(&path).unwrap();
    let epoch = bytes[16..24].to_vec();
    let payload = bytes[HEADER + 72..bytes.len() - 12].to_vec();
    bytes.truncate(HEADER);
    for ordinal in [5, 3] {
        let offset = bytes.len() as u64;
        bytes.extend(frame(&payload, &epoch, offset, ordinal, 1, 1));
    }
    fs::write(&path, &bytes).unwrap();
    let memory = quick(directory.path());
    memory.add(ID, &[Message::user("acknowledged")]).unwrap();
    let found = texts(&memory.get(ID).unwrap());
    let report = memory.repair(ID, Repair::Apply).unwrap();
    let again = memory.repair(ID, Repair::Apply).unwrap();
    assert!(found.contains(&"acknowledged".to_owned()), "{found:?} {report:?} {again:?}");
}

/// Fields of any value with right checksums.
#[test]
fn no_file_makes_it_panic_or_hang() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory
        .add(
            ID,
            &[
                Message::system("s"),
                Message::user("x").with_metadata("a", 1).with_media(Media::url("u")),
                Message::assistant("").with_tool_call("c", "f", "{}"),
                Message::tool_result("c", "f", "r"),
            ],
        )
        .unwrap();
    let path = memory.path(ID);
    let whole = fs::read(&path).unwrap();
    let epoch = whole[16..24].to_vec();
    let payload = whole[HEADER + 72..whole.len() - 12].to_vec();
    drop(memory);
    let mut state = 7_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let root = directory.path().to_owned();
    let done = within(Duration::from_secs(100), move || {
        for round in 0..1_000 {
            let mut bytes = whole[..HEADER].to_vec();
            if random() % 8 == 0 {
                bytes[20] ^= 1;
            }
            for _ in 0..random() % 5 {
                let offset = bytes.len() as u64;
                let mut payload = payload.clone();
                if random() % 2 == 0 {
                    let at = (random() as usize) % payload.len();
                    payload[at] ^= 1 << (random() % 8);
                }
                let interesting = [
                    0,
                    1,
                    2,
                    3,
                    4,
                    5,
                    62,
                    67,
                    offset,
                    offset + 1,
                    u64::MAX,
                    u64::MAX - 1,
                    u64::MAX - 4,
                    1 << 32,
                    1 << 63,
                ];
                let mut pick = || interesting[random() as usize % interesting.len()];
                let mut b = b"\xf5CMf".to_vec();
                b.extend((payload.len() as u32).to_le_bytes());
                b.extend(&epoch);
                b.extend(if pick() == 3 { pick() } else { offset }.to_le_bytes());
                b.extend((pick() as u32).to_le_bytes());
                b.extend(if pick() > 5 { 4 } else { pick() as u32 }.to_le_bytes());
                for _ in 0..4 {
                    b.extend(pick().to_le_bytes());
                }
                b.extend([if pick() > 2 { 1 } else { pick() as u8 }, if pick() > 1 { 1 } else { pick() as u8 }, 0, 0]);
                let crc = masked(crc32c::crc32c(&b)).to_le_bytes();
                b.extend(crc);
                let mut both = crc.to_vec();
                both.extend(crc32c::crc32c(&payload).to_le_bytes());
                b.extend(&payload);
                b.extend(masked(crc32c::crc32c(&both)).to_le_bytes());
                b.extend((payload.len() as u32).to_le_bytes());
                b.extend(b"\xf6CMe");
                bytes.extend(b);
            }
            if random() % 3 == 0 {
                let len = bytes.len();
                bytes.truncate(len - random() as usize % 30);
            }
            fs::write(&path, &bytes).unwrap();
            let memory = quick(&root);
            let step = FileChatMemory::builder(&root).max_messages(3).window_step(1 + round % 3).open().unwrap();
            let _ = memory.get(ID);
            let _ = step.get(ID);
            let _ = memory.repair(ID, Repair::DryRun);
            if memory.add(ID, &[Message::user("new")]).is_ok() {
                let _ = memory.get(ID);
                let _ = step.get(ID);
            }
            if memory.repair(ID, Repair::Apply).is_ok() {
                let again = memory.repair(ID, Repair::Apply).unwrap();
                let _ = again;
            }
            let _ = memory.get(ID);
            memory.clear(ID).unwrap_or(());
        }
    });
    assert!(done.is_some());
}

/// The most memory that the work took, beyond what there was before.
#[cfg(target_os = "linux")]
fn peak_of(work: impl FnOnce()) -> usize {
    let status = |key: &str| {
        let text = fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
    };
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    work();
    status("VmHWM") - before
}

/// In a process of its own, for what other tests take would count.
#[cfg(target_os = "linux")]
#[test]
fn a_damaged_file_costs_no_more_memory_than_twice_its_size() {
    let test = "hostile::a_damaged_file_costs_no_more_memory_than_twice_its_size";
    let Some((_, directory)) = child_part() else {
        let directory = tempdir().unwrap();
        let output = start_child(test, "measure", directory.path()).wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    };
    let within_bounds = |what: &str, size: usize, peak: usize| {
        println!("{what}: {peak} bytes for a file of {size}, {:.1} times", peak as f64 / size as f64);
        assert!(peak <= 2 * size + (1 << 20), "{what}: {peak} bytes for a file of {size}");
    };
    // The shortest messages there are, half a million in one frame.
    let memory = quick(&directory);
    let path = memory.path(ID);
    memory.add(ID, &[Message::user("x".repeat(100))]).unwrap();
    memory.add(ID, &vec![Message::new(Role::Tool, []); 500_000]).unwrap();
    memory.add(ID, &[Message::user("last")]).unwrap();
    let size = fs::metadata(&path).unwrap().len() as usize;
    within_bounds("repair", size, peak_of(|| _ = quick(&directory).repair(ID, Repair::DryRun).unwrap()));
    let mut bytes = fs::read(&path).unwrap();
    bytes[HEADER + 90] ^= 1;
    fs::write(&path, &bytes).unwrap();
    drop(bytes);
    let window = || FileChatMemory::builder(&directory).max_messages(5).open().unwrap().get(ID).unwrap();
    within_bounds("a view of a damaged file", size, peak_of(|| assert_eq!(window().len(), 1)));
    memory.clear(ID).unwrap();

    // The shortest parts there are, in one message.
    memory.add(ID, &[Message::new(Role::User, vec![Content::Text(String::new()); 500_000])]).unwrap();
    let size = fs::metadata(&path).unwrap().len() as usize;
    within_bounds("many parts", size, peak_of(|| _ = quick(&directory).verify(ID).unwrap()));
    memory.clear(ID).unwrap();

    // The shortest frames there are.
    memory.add(ID, &[Message::user("x")]).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let epoch = bytes[16..24].to_vec();
    bytes.truncate(HEADER);
    for ordinal in 0..200_000 {
        let offset = bytes.len() as u64;
        bytes.extend(frame(b"", &epoch, offset, ordinal, 0, 200));
    }
    fs::write(&path, &bytes).unwrap();
    let size = bytes.len();
    drop(bytes);
    within_bounds("many frames", size, peak_of(|| _ = quick(&directory).repair(ID, Repair::DryRun).unwrap()));
}

/// Header and last frame are damaged, and a text in it holds a frame for just that place, of an epoch that its author made up.
#[test]
fn a_frame_inside_a_message_does_not_take_over_a_damaged_file() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add(ID, &[Message::user("one")]).unwrap();
    memory.add(ID, &[Message::user("two")]).unwrap();
    let path = memory.path(ID);
    let len = fs::metadata(&path).unwrap().len();
    // In the payload it stands behind the frame's header, and the rows of the message and of the attachment.
    let forged = (0..60).map(|shift| {
        let offset = len + 72 + shift;
        let fake = frame(b"", &[9; 8], offset, 99, 0, 200);
        (offset, fake)
    });
    let mut hits = 0;
    for (offset, fake) in forged {
        let before = fs::read(&path).unwrap();
        memory.add(ID, &[Message::user("three").with_media(Media::bytes("x", fake.clone()))]).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        hits += usize::from(bytes.get(offset as usize..).is_some_and(|bytes| bytes.starts_with(&fake)));
        let last = bytes.len() - 5;
        bytes[last] ^= 1; // the trailer of the last frame
        bytes[9] ^= 1; // the version in the file header
        fs::write(&path, &bytes).unwrap();
        assert_eq!(texts(&quick(directory.path()).get(ID).unwrap()), ["one", "two"], "at {offset}");
        fs::write(&path, before).unwrap();
    }
    assert_eq!(hits, 1);
}

/// Frames that hold, and in which no message can be read: with right checksums.
#[test]
fn a_conversation_of_which_nothing_can_be_read_is_no_empty_one() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add(ID, &[Message::user("x")]).unwrap();
    let path = memory.path(ID);
    let whole = fs::read(&path).unwrap();
    let (header, first) = whole.split_at(HEADER);
    let epoch = &header[16..24];
    let undecodable = frame(&[9; 6], epoch, HEADER as u64, 0, 1, 1);
    let mut skipped = frame(b"", epoch, HEADER as u64, 0, 0, 200);
    skipped.extend(first); // at another place than it says, so its end is damaged
    for behind in [undecodable, skipped] {
        fs::write(&path, [header, &behind].concat()).unwrap();
        let memory = quick(directory.path());
        assert!(memory.get(ID).unwrap_err().is_corrupt());
        assert!(memory.history(ID, HistoryRange::last(1)).unwrap_err().is_corrupt());
        // Adding goes on behind it.
        memory.add(ID, &[Message::user("new")]).unwrap();
        assert_eq!(texts(&quick(directory.path()).get(ID).unwrap()), ["new"]);
        memory.clear(ID).unwrap();
    }
}

/// A later version may put anything into a frame of a kind that this one skips, records too.
#[test]
fn a_frame_of_a_kind_to_skip_is_skipped_in_a_damaged_file_too() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add(ID, &[Message::user("x")]).unwrap();
    let path = memory.path(ID);
    let mut bytes = fs::read(&path).unwrap();
    let epoch = bytes[16..24].to_vec();
    let payload = bytes[HEADER + 72..bytes.len() - 12].to_vec();
    bytes.extend(frame(&payload, &epoch, bytes.len() as u64, 1, 1, 200));
    bytes[9] ^= 1; // the version in the file header
    fs::write(&path, bytes).unwrap();
    assert_eq!(quick(directory.path()).get(ID).unwrap().len(), 1);
}

/// What was cut off of a creation has the sha256 of its id, and no frame.
#[test]
fn a_conversation_with_a_damaged_length_and_a_damaged_message_is_listed_as_a_problem() {
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add(ID, &[Message::user("x")]).unwrap();
    let path = memory.path(ID);
    let mut bytes = fs::read(&path).unwrap();
    bytes[14] ^= 1; // the header's length
    bytes[HEADER + 75] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let memory = quick(directory.path());
    assert!(memory.get(ID).is_err());
    let page = memory.conversations(&PageRequest::first(9)).unwrap();
    assert_eq!((page.items.len(), page.problems.len()), (0, 1));
    // A creation that was cut off is none.
    bytes[14] ^= 1;
    for len in [1, 9, 14, 20, 40, HEADER - 3, HEADER - 1] {
        fs::write(&path, &bytes[..len]).unwrap();
        let page = memory.conversations(&PageRequest::first(9)).unwrap();
        assert_eq!((page.items.len(), page.problems.len()), (0, 0), "{len}");
    }
}

/// Overlapping frames with right headers at the end, so many that summing them takes longer than a look at the file's end may.
#[test]
fn a_search_that_gives_up_near_the_end_goes_on_before_it() {
    const COUNT: usize = 60;
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    memory.add(ID, &[Message::user("one").with_media(Media::bytes("x", vec![0; 1 << 20]))]).unwrap();
    let path = memory.path(ID);
    let mut bytes = fs::read(&path).unwrap();
    let (epoch, begin) = (bytes[16..24].to_vec(), bytes.len());
    for at in 0..COUNT {
        let payload = (COUNT - at - 1) * 72 + at * 12;
        bytes.extend(frame_header(payload as u32, &epoch, (begin + 72 * at) as u64, at as u32, 1, 1));
    }
    for at in 0..COUNT {
        let payload = (COUNT - at - 1) * 72 + at * 12;
        bytes.extend([0x11; 4]);
        bytes.extend((payload as u32).to_le_bytes());
        bytes.extend(b"\xf6CMe");
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(texts(&quick(directory.path()).get(ID).unwrap()), ["one"]);
}

/// The JSON parser keeps a name to itself; as a key of somebody's metadata it means nothing.
#[test]
fn a_key_that_the_parser_keeps_to_itself_is_a_key() {
    let directory = tempdir().unwrap();
    for text in ["[1]", "no JSON"] {
        let value = serde_json::Map::from_iter([("$serde_json::private::RawValue".to_owned(), text.into())]);
        let message = Message::user("x").with_metadata("a", value.clone());
        let memory = quick(directory.path());
        memory.add(ID, std::slice::from_ref(&message)).unwrap();
        assert_eq!(quick(directory.path()).get(ID).unwrap(), std::slice::from_ref(&message));
        memory.clear(ID).unwrap();
        assert_eq!(
            jsonl::read(&jsonl::write(std::slice::from_ref(&message)).to_json_lines()).unwrap().messages,
            [message]
        );
        let object = serde_json::Value::from(value);
        let theirs = format!(r#"{{"role":"user","content":"x","extra":{object}}}"#);
        assert_eq!(openai::write(&openai::read(&theirs).unwrap().messages).objects, [theirs]);
    }
}

/// A kind that is not known may change what the frames before it mean, so nothing is read past it, wherever a range begins.
#[test]
fn no_range_is_read_past_a_frame_of_a_kind_that_is_not_known() {
    use chat_memory::{ChatHistory, Error, HistoryRange};
    let directory = tempdir().unwrap();
    let memory = quick(directory.path());
    for text in ["one", "two", "three"] {
        memory.add(ID, &[Message::user(text)]).unwrap();
    }
    let path = memory.path(ID);
    let bytes = fs::read(&path).unwrap();
    let len = (bytes.len() - HEADER - 4) / 3; // `three` is two bytes longer than the others
    let (epoch, third) = (bytes[16..24].to_vec(), HEADER + 2 * (bytes.len() - HEADER - 2) / 3);
    assert!(len > 84 && bytes[third..].starts_with(b"\xf5CMf"));
    // Without messages, and with a number that lies before every range.
    let mut harmed = bytes[..third].to_vec();
    harmed.extend(frame(b"", &epoch, third as u64, 2, 0, 2));
    harmed[third + 32..third + 40].fill(0);
    let header = masked(crc32c::crc32c(&harmed[third..third + 68]));
    harmed[third + 68..third + 72].copy_from_slice(&header.to_le_bytes());
    let mut both = header.to_le_bytes().to_vec();
    both.extend(crc32c::crc32c(b"").to_le_bytes());
    harmed[third + 72..third + 76].copy_from_slice(&masked(crc32c::crc32c(&both)).to_le_bytes());
    fs::write(&path, &harmed).unwrap();
    let memory = quick(directory.path());
    let refused = |found: chat_memory::Result<usize>| matches!(found, Err(Error::UnsupportedVersion { .. }));
    assert!(refused(memory.get(ID).map(|found| found.len())));
    for range in [HistoryRange::all(), HistoryRange::last(2), HistoryRange::all().from(1)] {
        assert!(refused(memory.history(ID, range).map(|found| found.len())));
    }
}
