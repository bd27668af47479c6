//! Where tests find what they need from outside, and other processes.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use chat_memory::{Durability, FileChatMemory, Message};

/// Where real conversations are: `CHAT_MEMORY_TEST_DATA`, else `../shared/data`. Without them a test prints that it skips,
/// and fails where `CHAT_MEMORY_TEST_REQUIRE` is set.
pub fn real_data() -> Option<PathBuf> {
    let place = std::env::var_os("CHAT_MEMORY_TEST_DATA").map(PathBuf::from);
    let place = place.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"));
    if place.is_dir() {
        return Some(place);
    }
    skip("no real conversations; name their folder in CHAT_MEMORY_TEST_DATA");
    None
}

/// Says that a test is skipped, and why.
pub fn skip(reason: &str) {
    assert!(std::env::var_os("CHAT_MEMORY_TEST_REQUIRE").is_none(), "nothing may be skipped here: {reason}");
    println!("skipped: {reason}");
}

/// Whether tests are to try as much as they can, rather than what takes seconds.
#[cfg_attr(not(feature = "file-memory"), allow(dead_code, reason = "the notebook's tests alone use it"))]
pub fn full_mode() -> bool {
    std::env::var_os("CHAT_MEMORY_TEST_FULL").is_some()
}

const ROLE: &str = "CHAT_MEMORY_TEST_CHILD";

/// In a child process: the part that it was started for.
pub fn child_part() -> Option<(String, PathBuf)> {
    let part = std::env::var(ROLE).ok()?;
    let (name, directory) = part.split_once('=')?;
    Some((name.to_owned(), PathBuf::from(directory)))
}

/// Starts this test program again, to run one test in another part.
pub fn start_child(test: &str, part: &str, directory: &std::path::Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ROLE, format!("{part}={}", directory.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A store that does not wait for the disk: most tests are not about the loss of power.
pub fn quick(directory: &std::path::Path) -> FileChatMemory {
    FileChatMemory::builder(directory).durability(Durability::Process).open().unwrap()
}

pub fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.text().into_owned()).collect()
}
