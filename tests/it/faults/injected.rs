//! System calls that fail: `strace` answers the n-th one with an error, in a real process, for every n.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use chat_memory::{ChatMemory, Error, FileChatMemory, Message};
use tempfile::tempdir;

use crate::support::{child_part, full_mode, has_programs, run_child_under, skip, texts};

const TEST: &str = "faults::injected::a_failed_call_is_an_error_and_stores_nothing";

/// What a child prints of a message that has to be there afterwards, and of one that may be.
const STORED: &str = "stored: ";
const IN_DOUBT: &str = "in doubt: ";

#[test]
fn a_failed_call_is_an_error_and_stores_nothing() {
    if let Some((part, directory)) = child_part() {
        return script(&directory, part == "once");
    }
    if !has_programs(&["strace"]) {
        return;
    }
    let tried =
        Command::new("strace").args(["-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "true"]).output().unwrap();
    if !tried.status.success() {
        return skip(&format!("strace may not trace: {}", String::from_utf8_lossy(&tried.stderr).trim()));
    }
    let writing = [("fdatasync", "EIO"), ("pwrite64", "EIO"), ("pwrite64", "ENOSPC")];
    let others = [("fsync", "EIO"), ("unlink", "EIO"), ("flock", "ENOLCK"), ("pread64", "EIO"), ("statx", "EIO")];
    let others = &others[..if full_mode() { others.len() } else { 2 }];
    let every = |call: &str, error: &str, times: &str| {
        let fault = format!("{call}:error={error}");
        let met = (1..).take_while(|nth| run_with_fault(call, &fault, times, *nth)).count();
        println!("{call} failed with {error} {times}, each of {met} times");
        assert!(met > 0, "{call} is never called");
    };
    thread::scope(|scope| {
        for (call, error) in writing.iter().chain(others) {
            for times in ["once", "for good"] {
                scope.spawn(move || every(call, error, times));
            }
        }
    });
    // The first write that fails cannot be taken back either.
    for call in ["ftruncate:error=EIO:when=1", "fdatasync:error=EIO:when=2"] {
        assert!(run_with_fault("pwrite64", &format!("pwrite64:error=EIO:when=3 {call}"), "for good", 0));
    }
}

/// Runs the script with a fault; whether the script was long enough to meet it.
fn run_with_fault(call: &str, fault: &str, times: &str, nth: usize) -> bool {
    let directory = tempdir().unwrap();
    let store = directory.path().join("store");
    let trace = directory.path().join("trace");
    let when = match (nth, times) {
        (0, _) => String::new(),
        (nth, "once") => format!(":when={nth}"),
        (nth, _) => format!(":when={nth}+"),
    };
    let mut runner = vec!["strace", "-f", "--seccomp-bpf", "-qq", "-o", trace.to_str().unwrap()];
    let faults: Vec<String> = fault.split(' ').map(|fault| format!("inject={fault}{when}")).collect();
    runner.extend(faults.iter().flat_map(|fault| ["-e", fault]));
    // Calls on the store's files only: others fail when the program is loaded.
    let memory = FileChatMemory::open(&store).unwrap();
    let files = ["c", "d"].map(|id| memory.path(id));
    for path in files.iter().map(PathBuf::as_path).chain([&store, directory.path()]) {
        runner.extend(["-P", path.to_str().unwrap()]);
    }
    let printed = run_child_under(&runner, TEST, times, &store);

    let lines = |before: &str| -> Vec<String> {
        printed.lines().filter_map(|line| Some(line.split_once(before)?.1.to_owned())).collect()
    };
    let (stored, in_doubt) = (lines(STORED), lines(IN_DOUBT));
    let mut found = texts(&memory.get("c").unwrap());
    found.extend(texts(&memory.get("d").unwrap()));
    let found: Vec<&str> = found.iter().map(|text| shortened(text)).collect();
    let without_doubt = || found.iter().filter(|text| !in_doubt.iter().any(|doubt| doubt == *text));
    assert!(without_doubt().eq(&stored), "{call} {when}: found {found:?}, stored {stored:?}, in doubt {in_doubt:?}");
    for id in ["c", "d"] {
        memory.add(id, &[Message::user("next")]).unwrap();
        assert!(memory.repair(id, chat_memory::Repair::DryRun).unwrap().damage.is_empty());
    }
    fs::read_to_string(&trace).unwrap().contains("(INJECTED)")
}

/// The child's work. It finds out by itself what has failed.
fn script(directory: &Path, once: bool) {
    let open = || FileChatMemory::open(directory).inspect_err(|error| assert!(!once, "{error:?}")).ok();
    let Some(memory) = open() else { return };
    let mut script = Script { once, has_failed: false, stored: BTreeMap::new(), in_doubt: Vec::new() };
    script.add(&memory, "c", &["a"]);
    script.add(&memory, "c", &["b", "c", "d"]);
    script.add(&memory, "c", &[&"long ".repeat(20_000)]);
    script.add(&memory, "d", &["e"]);
    script.clear(&memory, "d");
    script.add(&memory, "d", &["f", "g"]);
    script.add(&memory, "c", &["h"]);
    if let Some(reopened) = open() {
        script.add(&reopened, "c", &["i"]);
    }
    script.stored.values().flatten().for_each(|text| println!("\n{STORED}{}", shortened(text)));
    script.in_doubt.iter().for_each(|text| println!("\n{IN_DOUBT}{}", shortened(text)));
}

fn shortened(text: &str) -> &str {
    &text[..text.len().min(20)]
}

struct Script {
    /// Whether one call fails and no other, and whether it has.
    once: bool,
    has_failed: bool,
    /// What was acknowledged, by conversation.
    stored: BTreeMap<&'static str, Vec<String>>,
    /// What failed and could not be taken back.
    in_doubt: Vec<String>,
}

impl Script {
    fn add(&mut self, memory: &FileChatMemory, id: &'static str, batch: &[&str]) {
        let messages: Vec<Message> = batch.iter().map(|text| Message::user(*text)).collect();
        let mut added = memory.add(id, &messages);
        if added.is_err() && self.may_try_again() {
            self.check(memory, id);
            added = memory.add(id, &messages);
        }
        let texts = batch.iter().map(|text| text.to_string());
        match added {
            Ok(()) => self.stored.entry(id).or_default().extend(texts),
            Err(error) => {
                assert!(!self.once, "{error:?}");
                self.in_doubt.extend(texts.filter(|_| matches!(error, Error::Poisoned { .. })));
            }
        }
        self.check(memory, id);
    }

    fn clear(&mut self, memory: &FileChatMemory, id: &'static str) {
        let mut cleared = memory.clear(id);
        if cleared.is_err() && self.may_try_again() {
            cleared = memory.clear(id);
        }
        let stored = self.stored.remove(id).unwrap_or_default();
        if cleared.is_err() {
            assert!(!self.once, "{cleared:?}");
            // It may have happened, and it may not.
            self.in_doubt.extend(stored);
        }
        self.check(memory, id);
    }

    /// What was acknowledged is there, and nothing else that is not in doubt.
    fn check(&mut self, memory: &FileChatMemory, id: &'static str) {
        let mut found = memory.get(id);
        if found.is_err() && self.may_try_again() {
            found = memory.get(id);
        }
        match found {
            Ok(found) => {
                let found = texts(&found).into_iter().filter(|text| !self.in_doubt.contains(text));
                assert_eq!(found.collect::<Vec<_>>(), *self.stored.entry(id).or_default());
            }
            Err(Error::Io { .. } | Error::Poisoned { .. }) if !self.once => {}
            Err(error) => panic!("{error:?}"),
        }
    }

    /// One fault is one error: where it has been met, the same call works.
    fn may_try_again(&mut self) -> bool {
        self.once && !std::mem::replace(&mut self.has_failed, true)
    }
}
