//! Every short script of calls, with the power cut or the process killed at each operation of the disk, and with each
//! operation failing: what was acknowledged is there, and nothing else is.
//!
//! A part of it runs by default; all of it where `CHAT_MEMORY_TEST_FULL` is set.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use chat_memory::{
    ChatHistory, ChatMemory, Damage, DamageKind, Durability, Error, FileChatMemory, Message, Repair, Result,
};

use crate::sim_disk::{Image, SimDisk, Trouble};
use crate::support::full_mode;

const ROOT: &str = "/store";
const ID: &str = "c";

/// One call. The other store is open, and has read the conversation, before the script begins.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Add,
    AddBatch,
    AddByTheOther,
    Clear,
    Reopen,
    Verify,
    Repair,
}

const STEPS: [Step; 7] =
    [Step::Add, Step::AddBatch, Step::AddByTheOther, Step::Clear, Step::Reopen, Step::Verify, Step::Repair];

/// All scripts of so many steps.
fn scripts(len: usize) -> Vec<Vec<Step>> {
    (0..len).fold(vec![Vec::new()], |scripts, _| {
        let longer = |script: &Vec<Step>| STEPS.map(|step| [&script[..], &[step]].concat());
        scripts.iter().flat_map(longer).collect()
    })
}

/// What is on the disk before a script begins.
#[derive(Debug, Clone, Default)]
struct Start {
    name: &'static str,
    image: Image,
    messages: Vec<Message>,
    /// Bytes that do not hold, which nothing but a clear may take from the disk.
    harmed: Vec<u8>,
}

fn open(disk: &SimDisk, durability: Durability) -> FileChatMemory {
    FileChatMemory::builder(ROOT).durability(durability).disk(Arc::new(disk.clone())).open().unwrap()
}

/// No file at all, and files with each kind of damage.
fn starts() -> Vec<Start> {
    let disk = SimDisk::default();
    let memory = open(&disk, Durability::Process);
    let messages = [Message::user("one"), Message::assistant("two"), Message::user("three")];
    let path = memory.path(ID);
    let mut ends = Vec::new();
    for message in &messages {
        memory.add(ID, std::slice::from_ref(message)).unwrap();
        ends.push(disk.live()[&path].len());
    }
    let whole = disk.live()[&path].clone();
    let damaged = |name, kept: &[usize], harmed: std::ops::Range<usize>, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        let harmed = bytes[harmed.start..harmed.end.min(bytes.len())].to_vec();
        let messages = kept.iter().map(|at| messages[*at].clone()).collect();
        Start { name, image: Image::from([(path.clone(), bytes)]), messages, harmed }
    };
    vec![
        Start { name: "nothing", ..Start::default() },
        damaged("a damaged middle", &[0, 2], ends[0]..ends[1], &|bytes| bytes[ends[0] + 80] ^= 1),
        damaged("a damaged end", &[0, 1], ends[1]..ends[2], &|bytes| bytes[ends[1] + 80] ^= 1),
        damaged("a torn end", &[0, 1], ends[1]..ends[2], &|bytes| bytes.truncate(ends[2] - 7)),
        damaged("a damaged header", &[0, 1, 2], 0..61, &|bytes| bytes[20] ^= 1),
    ]
}

/// What a conversation may hold: one of these, and more than one only where a call failed.
#[derive(Debug, Clone)]
struct Allowed {
    messages: Vec<Vec<Message>>,
    /// The first frame may have been under way when the power went: zeros of it look like damage.
    in_creation: bool,
}

impl Allowed {
    fn also(&mut self, messages: impl IntoIterator<Item = Vec<Message>>) {
        for messages in messages {
            if !self.messages.contains(&messages) {
                self.messages.push(messages);
            }
        }
    }
}

/// A script at work.
struct Run {
    disk: SimDisk,
    durability: Durability,
    memory: FileChatMemory,
    other: FileChatMemory,
    allowed: Allowed,
    /// Numbers the messages.
    count: usize,
}

impl Run {
    fn new(start: &Start, durability: Durability) -> Self {
        let disk = SimDisk::with_image(&start.image);
        let (memory, other) = (open(&disk, durability), open(&disk, durability));
        other.get(ID).unwrap();
        let allowed = Allowed { messages: vec![start.messages.clone()], in_creation: false };
        Self { disk, durability, memory, other, allowed, count: 0 }
    }

    fn message(&mut self, text: &str) -> Message {
        self.count += 1;
        Message::user(format!("{} {text}", self.count))
    }

    /// Makes one call, and notes what the conversation may hold after it.
    fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Add => {
                let batch = [self.message("")];
                let result = self.memory.add(ID, &batch);
                self.added(&batch, result)
            }
            Step::AddBatch => {
                // Some sectors long.
                let batch = [self.message("short"), self.message(&"long ".repeat(250)), self.message("short")];
                let result = self.memory.add(ID, &batch);
                self.added(&batch, result)
            }
            Step::AddByTheOther => {
                let batch = [self.message("by the other")];
                let result = self.other.add(ID, &batch);
                self.added(&batch, result)
            }
            Step::Clear => {
                let result = self.memory.clear(ID);
                match result {
                    Ok(()) => self.allowed = Allowed { messages: vec![Vec::new()], in_creation: false },
                    Err(_) => self.allowed.also([Vec::new()]),
                }
                result
            }
            Step::Reopen => {
                self.memory = open(&self.disk, self.durability);
                Ok(())
            }
            Step::Verify => self.memory.verify(ID).map(|found| {
                let is_allowed = |messages: &Vec<Message>| messages.len() as u64 == found.messages;
                assert!(self.allowed.messages.iter().any(is_allowed), "{found:?} {:?}", self.allowed);
            }),
            Step::Repair => self.memory.repair(ID, Repair::Apply).map(drop),
        }
    }

    fn added(&mut self, batch: &[Message], result: Result<()>) -> Result<()> {
        let with: Vec<Vec<Message>> =
            self.allowed.messages.iter().map(|messages| [&messages[..], batch].concat()).collect();
        match &result {
            Ok(()) => self.allowed = Allowed { messages: with, in_creation: false },
            Err(error) => {
                self.allowed.in_creation |= self.allowed.messages.contains(&Vec::new());
                // An add that failed stored nothing, unless nobody can say so.
                if self.disk.power_is_off() || matches!(error, Error::Poisoned { .. }) {
                    self.allowed.also(with);
                }
            }
        }
        result
    }
}

/// After a crash: what is allowed is there, the conversation goes on, damage is mended without loss, and a clear leaves nothing.
fn check(image: &Image, start: &Start, allowed: &Allowed, context: &dyn Fn() -> String) {
    let disk = SimDisk::with_image(image);
    let memory = open(&disk, Durability::Disk);
    let is_on_disk = |disk: &SimDisk| {
        let len = start.harmed.len().max(1);
        disk.live().values().any(|bytes| start.harmed.is_empty() || bytes.windows(len).any(|w| w == start.harmed))
    };
    // What does not hold is there for as long as nobody cleared, in its place or set aside.
    let never_cleared =
        !start.harmed.is_empty() && allowed.messages.iter().all(|messages| messages.starts_with(&start.messages[..1]));
    assert!(!never_cleared || is_on_disk(&disk), "{}", context());
    if start.harmed.is_empty() {
        // What a crash leaves is not taken for damage.
        let is_of_a_crash = |damage: &Damage| {
            damage.kind == DamageKind::UnfinishedEnd || (damage.kind == DamageKind::Everything && allowed.in_creation)
        };
        let damage = memory.verify(ID).unwrap().damage;
        assert!(damage.iter().all(is_of_a_crash), "{damage:?}\n{}", context());
    }
    let found = match memory.get(ID) {
        Ok(found) => found,
        Err(Error::Corrupt { .. }) if allowed.in_creation => Vec::new(),
        Err(error) => panic!("{error:?}\n{}", context()),
    };
    assert!(allowed.messages.contains(&found), "found {found:?}\nallowed {allowed:?}\n{}", context());

    let next = Message::assistant("after the crash");
    memory.add(ID, std::slice::from_ref(&next)).unwrap();
    let expected = [&found[..], std::slice::from_ref(&next)].concat();
    assert_eq!(memory.get(ID).unwrap(), expected, "{}", context());
    let memory = open(&disk, Durability::Disk);
    assert_eq!(memory.get(ID).unwrap(), expected, "{}", context());
    memory.repair(ID, Repair::Apply).unwrap();
    assert!(!never_cleared || is_on_disk(&disk), "{}", context());
    assert_eq!(memory.get(ID).unwrap(), expected, "{}", context());
    assert!(memory.repair(ID, Repair::DryRun).unwrap().damage.is_empty(), "{}", context());
    memory.clear(ID).unwrap();
    assert!(disk.live().keys().all(|path| path.parent() != Some(Path::new(ROOT))), "{:?}", disk.live().keys());
}

/// Runs a script with trouble at an operation of its last step, for each of them: trouble in an earlier step is another script's.
/// The last time no trouble comes.
fn runs(
    start: &Start,
    script: &[Step],
    durability: Durability,
    trouble: impl Fn(usize) -> Trouble,
    mut each: impl FnMut(Run, Result<()>, usize),
) {
    let (last, before) = script.split_last().unwrap();
    for at in 0.. {
        let mut run = Run::new(start, durability);
        before.iter().for_each(|step| run.step(*step).unwrap());
        run.disk.trouble(trouble(at));
        let result = run.step(*last);
        let ended = run.disk.operations() <= at;
        assert!(!ended || result.is_ok(), "{result:?} {script:?}");
        each(run, result, at);
        if ended {
            return;
        }
    }
}

fn power_cut(at: usize) -> Trouble {
    Trouble::PowerCut { at }
}

/// Does the work for each item, on all cores; the sum of what it returns.
fn for_each<T: Sync>(items: &[T], work: impl Fn(&T) -> usize + Sync) -> usize {
    let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    sum.fetch_add(work(item), Ordering::Relaxed);
                }
            });
        }
    });
    sum.into_inner()
}

/// Scripts with where they begin: all of up to `all` steps, and of those with more, up to four, one in `of`.
fn cases(all: usize, of: usize) -> Vec<(Start, Vec<Step>)> {
    let (all, of) = if full_mode() { (4, 1) } else { (all, of) };
    let mut cases = Vec::new();
    for start in starts() {
        for len in 1..=4 {
            // A prime step, so that all steps are met in all places.
            let of = if len <= all { 1 } else { of };
            cases.extend(scripts(len).into_iter().step_by(of).map(|script| (start.clone(), script)));
        }
    }
    cases
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_at_every_operation() {
    let cases = cases(2, 157);
    let states = for_each(&cases, |(start, script)| {
        let mut states = 0;
        runs(start, script, Durability::Disk, power_cut, |run, _, at| {
            for image in &run.disk.after_power_cut() {
                states += 1;
                check(image, start, &run.allowed, &|| {
                    format!("{}, {script:?}, cut at {at}, {:?}", start.name, sizes(image))
                });
            }
        });
        states
    });
    println!("{} scripts, {states} states after a power cut", cases.len());
    assert!(states > 100_000, "{states}");
}

#[test]
fn what_was_acknowledged_survives_a_kill_at_every_operation() {
    let cases = cases(2, 157);
    for durability in [Durability::Disk, Durability::Process] {
        let states = for_each(&cases, |(start, script)| {
            let mut states = 0;
            runs(start, script, durability, power_cut, |run, _, at| {
                for image in &run.disk.after_kill() {
                    states += 1;
                    let context = || format!("{}, {script:?} {durability:?}, killed at {at}", start.name);
                    check(image, start, &run.allowed, &context);
                }
            });
            states
        });
        println!("{} scripts with {durability:?}, {states} states after a kill", cases.len());
        assert!(states > 3_000, "{states}");
    }
}

/// A second power cut, while the traces of the first are being mended.
#[test]
fn what_was_acknowledged_survives_a_second_power_cut_during_recovery() {
    // Of the images after the first cut, one in so many: those of a cut anywhere in a write look much alike. Each script
    // begins to count elsewhere, since few have as many images, and the first is that of a cut before anything was done.
    let of = 1_999;
    let cases: Vec<_> = cases(1, 61).into_iter().enumerate().collect();
    let states = for_each(&cases, |(index, (start, script))| {
        let mut states = 0;
        let mut seen = index * 443;
        runs(start, script, Durability::Disk, power_cut, |run, _, at| {
            for image in &run.disk.after_power_cut() {
                seen += 1;
                if seen % of == 0 {
                    let context = format!("{}, {script:?}, first cut at {at}", start.name);
                    states += second_cut(image, start, &run.allowed, &context);
                }
            }
        });
        states
    });
    println!("{} scripts, {states} states after a second power cut", cases.len());
    assert!(states > 50_000, "{states}");
}

fn second_cut(image: &Image, start: &Start, allowed: &Allowed, context: &str) -> usize {
    let mut states = 0;
    let damaged = Start { image: image.clone(), ..start.clone() };
    for step in [Step::Add, Step::Repair, Step::Clear] {
        for at in 0.. {
            let disk = SimDisk::with_image(image);
            let memory = open(&disk, Durability::Disk);
            let found = match memory.get(ID) {
                Ok(found) => found,
                Err(Error::Corrupt { .. }) if allowed.in_creation => Vec::new(),
                Err(error) => panic!("{error:?} {context}"),
            };
            // What was read after the first cut is not lost in the second.
            let allowed = Allowed { messages: vec![found], in_creation: allowed.in_creation };
            let other = open(&disk, Durability::Disk);
            let mut run = Run { disk, durability: Durability::Disk, memory, other, allowed, count: 1_000 };
            run.disk.trouble(Trouble::PowerCut { at });
            let done = run.step(step);
            let ended = run.disk.operations() <= at;
            assert!(!ended || done.is_ok(), "{done:?} {context}");
            for image in run.disk.after_power_cut() {
                states += 1;
                let context = || format!("{context}, {step:?}, second cut at {at}, {:?}", sizes(&image));
                check(&image, &damaged, &run.allowed, &context);
            }
            if ended {
                break;
            }
        }
    }
    states
}

fn sizes(image: &Image) -> Vec<(String, usize)> {
    image.iter().map(|(path, bytes)| (path.display().to_string(), bytes.len())).collect()
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// One operation of a script fails, or all from it on; a write that fails may have done a half.
#[test]
fn a_failing_disk_loses_nothing_and_the_store_goes_on() {
    let cases = cases(2, 157);
    let states = for_each(&cases, |(start, script)| {
        let mut states = 0;
        let failures = [
            (Durability::Disk, EIO, false),
            (Durability::Disk, EIO, true),
            (Durability::Disk, ENOSPC, false),
            (Durability::Disk, ENOSPC, true),
            (Durability::Process, EIO, false),
            (Durability::Process, EIO, true),
        ];
        for (durability, errno, short) in failures {
            for for_good in [false, true] {
                // What a power cut leaves does not depend on the error code.
                let power_goes_too =
                    durability == Durability::Disk && errno == EIO && script.len() <= if full_mode() { 2 } else { 1 };
                let trouble = |at| Trouble::Fails { at, errno, short, for_good };
                runs(start, script, durability, trouble, |run, result, at| {
                    let context = || format!("{}, {script:?}, {durability:?}, {:?}", start.name, trouble(at));
                    states += after_a_failure(run, &result, start, power_goes_too, &context);
                });
            }
        }
        states
    });
    println!("{} scripts, {states} states after a failure", cases.len());
    assert!(states > 10_000, "{states}");
}

fn after_a_failure(
    mut run: Run,
    result: &Result<()>,
    start: &Start,
    power_goes_too: bool,
    context: &dyn Fn() -> String,
) -> usize {
    let is_poisoned = matches!(result, Err(Error::Poisoned { .. }));
    if let Err(error) = result {
        assert!(is_poisoned || matches!(error, Error::Io { .. }), "{error:?} {}", context());
    }
    let mut states = 1;
    if power_goes_too {
        for image in run.disk.after_power_cut().iter().step_by(7) {
            states += 1;
            check(image, start, &run.allowed, context);
        }
    }
    run.disk.no_trouble();
    if is_poisoned {
        for memory in [&run.memory, &run.other] {
            // The store that could not take its write back says so until it is opened again; the other reads the file.
            assert!(matches!(memory.get(ID), Err(Error::Poisoned { .. }) | Ok(_)), "{}", context());
        }
        (run.memory, run.other) = (open(&run.disk, Durability::Disk), open(&run.disk, Durability::Disk));
    }
    // The cause is gone: the same store goes on, and so does the other one.
    let found = match run.memory.get(ID) {
        Ok(found) => found,
        Err(Error::Corrupt { .. }) if run.allowed.in_creation && is_poisoned => Vec::new(),
        Err(error) => panic!("{error:?} {}", context()),
    };
    assert!(run.allowed.messages.contains(&found), "found {found:?}\nallowed {:?}\n{}", run.allowed, context());
    run.allowed.messages = vec![found];
    for step in [Step::Add, Step::AddByTheOther, Step::AddBatch] {
        run.step(step).unwrap_or_else(|error| panic!("{error:?} {}", context()));
        for memory in [&run.memory, &run.other, &open(&run.disk, Durability::Disk)] {
            assert_eq!(memory.get(ID).unwrap(), run.allowed.messages[0], "{}", context());
        }
        // What was acknowledged since does not rest on pages that the failure left unwritten.
        if power_goes_too {
            for image in run.disk.after_power_cut().iter().step_by(11) {
                states += 1;
                check(image, start, &run.allowed, &|| format!("{step:?} after {}", context()));
            }
        }
    }
    states
}
