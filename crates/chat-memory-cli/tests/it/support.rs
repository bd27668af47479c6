//! Running the command.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub const BINARY: &str = env!("CARGO_BIN_EXE_chat-memory");

/// The conversations of the documentation.
pub const FIXTURE: &str = include_str!("fixtures/conversations.jsonl");

/// A directory to run the command in.
pub struct Place(pub TempDir);

/// What a run said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One in memory, where there is such a place, for a test that would wait for a disk most of the time.
    pub fn in_memory() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    /// One whose store holds the conversations of the documentation.
    pub fn with_fixture() -> Self {
        let place = Self::new();
        place.write("conversations.jsonl", FIXTURE);
        place.ok(&["import", "conversations.jsonl"]);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn store(&self) -> chat_memory::FileChatMemory {
        chat_memory::FileChatMemory::open(self.path("data/chat-memory")).unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments);
        in_place(&mut command, self.0.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Said {
        said(self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Said {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let feed = std::thread::spawn(move || _ = stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        feed.join().unwrap();
        said(output)
    }

    /// The output of a run that has to succeed.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {said:?}");
        said.out
    }
}

/// The same surroundings for every run.
pub fn in_place(command: &mut Command, directory: &Path) {
    command.current_dir(directory).env("TZ", "UTC");
    for name in
        ["CHAT_MEMORY_STORE", "CHAT_MEMORY_FILES", "OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "COLUMNS"]
    {
        command.env_remove(name);
    }
}

pub fn said(output: Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The folder with real conversations, or a printed reason why there is none.
pub fn real_data() -> Option<PathBuf> {
    let given = std::env::var_os("CHAT_MEMORY_TEST_DATA").map(PathBuf::from);
    let data = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    if data.is_dir() {
        return Some(data);
    }
    skip("there are no real conversations: name their folder in CHAT_MEMORY_TEST_DATA");
    None
}

/// Says that a test does not run, and why; a failure where everything is required.
pub fn skip(reason: &str) {
    assert!(std::env::var_os("CHAT_MEMORY_TEST_REQUIRE").is_none(), "required: {reason}");
    println!("skipped: {reason}");
}
