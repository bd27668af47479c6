//! Where tests find what they need from outside, and other processes.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
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

/// Whether everything is to be gone through, which takes an hour, or a part of it, which takes a minute: all where
/// `CHAT_MEMORY_TEST_FULL` is set.
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
pub fn start_child(test: &str, part: &str, directory: &Path) -> Child {
    start_child_under(&[], test, part, directory)
}

/// The same under a program that runs another one, given with its own arguments: `["prlimit", "--nofile=20"]`.
pub fn start_child_under(runner: &[&str], test: &str, part: &str, directory: &Path) -> Child {
    let this = std::env::current_exe().unwrap();
    let this = this.to_str().unwrap();
    let arguments = [this, "--exact", test, "--nocapture", "--test-threads=1"];
    let mut command = runner.iter().chain(&arguments);
    Command::new(command.next().unwrap())
        .args(command)
        .env(ROLE, format!("{part}={}", directory.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs such a child to its end, which has to be a good one. What it printed, which is printed here too.
pub fn run_child_under(runner: &[&str], test: &str, part: &str, directory: &Path) -> String {
    let output = start_child_under(runner, test, part, directory).wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{printed}");
    assert!(output.status.success(), "{runner:?} {part}: {}", output.status);
    printed
}

/// Whether these programs can be started; skips where one cannot.
pub fn has_programs(programs: &[&str]) -> bool {
    let is_missing = |program: &&&str| Command::new(program).arg("-V").output().is_err();
    match programs.iter().find(is_missing) {
        Some(program) => skip(&format!("there is no `{program}`")),
        None => return true,
    }
    false
}

/// Random numbers, another series each time unless `CHAT_MEMORY_TEST_SEED` names one; the seed is printed.
pub fn random() -> fastrand::Rng {
    let seed = std::env::var("CHAT_MEMORY_TEST_SEED").ok().map(|seed| seed.parse().unwrap());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("CHAT_MEMORY_TEST_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// Flips a bit of the byte at `offset`, in place and durably, as a bad sector would.
pub fn flip_a_bit(path: &Path, offset: u64) -> std::io::Result<()> {
    let mut file = std::fs::File::options().read(true).write(true).open(path)?;
    let mut byte = [0];
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut byte)?;
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(&[byte[0] ^ 4])?;
    file.sync_all()
}

/// A store that does not wait for the disk: most tests are not about the loss of power.
pub fn quick(directory: &Path) -> FileChatMemory {
    FileChatMemory::builder(directory).durability(Durability::Process).open().unwrap()
}

pub fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.text().into_owned()).collect()
}
