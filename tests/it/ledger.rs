//! Processes that may die at any moment, what they said of their work, and whether a store agrees with it.
//!
//! A worker says through its standard output what it begins and what is done. The test that started it writes that into a
//! ledger, and after the crash compares the ledger with what a fresh store finds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use chat_memory::{ChatMemory, Error, FileChatMemory, Message, Repair, Result};
use serde::{Deserialize, Serialize};

use crate::support::flip_a_bit;

/// What a worker does to a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    Add(Batch),
    Clear,
    /// Flips a bit in the batch that begins with this number, as a bad sector would.
    Damage(usize),
    Repair,
}

/// Messages that one worker adds together: their numbers, and the size of each in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    first: usize,
    count: usize,
    size: usize,
}

impl Batch {
    /// Of each message it can be told who wrote it, and whether all of it is there.
    fn messages(&self, worker: &str) -> Vec<Message> {
        let message = |number| {
            let beginning = beginning(worker, number);
            let text = beginning.repeat(self.size.div_ceil(beginning.len()).max(1));
            if number % 2 == 0 { Message::user(text) } else { Message::assistant(text) }
        };
        (self.first..self.first + self.count).map(message).collect()
    }
}

fn beginning(worker: &str, number: usize) -> String {
    format!("{worker} {number} ")
}

#[derive(Debug, Serialize, Deserialize)]
enum Word {
    Begins { conversation: String, step: Step },
    Done,
    Failed(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct Said {
    worker: String,
    word: Word,
}

/// One thread of a child process at work.
pub struct Worker<'a> {
    name: String,
    memory: &'a FileChatMemory,
    next: usize,
    /// What it has added since it cleared last, by conversation.
    own: BTreeMap<String, Vec<Batch>>,
    /// A file that cannot be opened any more when the power is gone.
    power: Option<PathBuf>,
}

impl<'a> Worker<'a> {
    /// No two workers of a test have the same name.
    pub fn new(name: &str, memory: &'a FileChatMemory) -> Self {
        Self { name: name.to_owned(), memory, next: 0, own: BTreeMap::new(), power: None }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes no acknowledgement for one that came when the power was gone, which this file tells by not opening. A file system
    /// that is shut down may let a sync that had begun before return without an error; without power it would not return.
    pub fn powered_by(self, file: PathBuf) -> Self {
        Self { power: Some(file), ..self }
    }

    pub fn add(&mut self, conversation: &str, count: usize, size: usize) -> Result<()> {
        let batch = Batch { first: self.next, count, size };
        self.next += count;
        self.perform(conversation, Step::Add(batch))
    }

    pub fn clear(&mut self, conversation: &str) -> Result<()> {
        self.perform(conversation, Step::Clear)
    }

    /// Damages a batch that is not the last, and repairs the conversation; with too few batches it does nothing. For a
    /// conversation that nobody else writes to.
    pub fn damage_and_repair(&mut self, conversation: &str, random: &mut fastrand::Rng) -> Result<()> {
        let batches = self.own.get(conversation).map_or(&[][..], Vec::as_slice);
        if batches.len() < 2 {
            return Ok(());
        }
        let first = batches[random.usize(..batches.len() - 1)].first;
        self.perform(conversation, Step::Damage(first))?;
        self.perform(conversation, Step::Repair)
    }

    /// Reads a conversation that nobody clears, and finds everything of its own there, in order.
    pub fn read(&self, conversation: &str) -> Result<()> {
        let found = self.memory.get(conversation)?;
        let own: Vec<&Message> = found.iter().filter(|message| writer(message) == self.name).collect();
        let batches = self.own.get(conversation).into_iter().flatten();
        let expected: Vec<Message> = batches.flat_map(|batch| batch.messages(&self.name)).collect();
        assert!(own == expected.iter().collect::<Vec<_>>(), "{}: {} of {}", self.name, own.len(), expected.len());
        Ok(())
    }

    fn perform(&mut self, conversation: &str, step: Step) -> Result<()> {
        self.say(Word::Begins { conversation: conversation.to_owned(), step: step.clone() });
        let done = self.take(conversation, &step).and_then(|()| self.check_power());
        self.say(match &done {
            Ok(()) => Word::Done,
            Err(error) => Word::Failed(format!("{error:?}")),
        });
        done?;
        apply(&step, self.own.entry(conversation.to_owned()).or_default());
        Ok(())
    }

    fn take(&self, conversation: &str, step: &Step) -> Result<()> {
        match step {
            Step::Add(batch) => self.memory.add(conversation, &batch.messages(&self.name)),
            Step::Clear => self.memory.clear(conversation),
            Step::Damage(first) => {
                let path = self.memory.path(conversation);
                let io = |source| Error::Io { operation: "damage", path: path.clone(), source };
                let (bytes, wanted) = (fs::read(&path).map_err(io)?, beginning(&self.name, *first));
                let at = bytes.windows(wanted.len()).position(|found| found == wanted.as_bytes());
                flip_a_bit(&path, at.expect("the batch is in the file") as u64).map_err(io)
            }
            Step::Repair => self.memory.repair(conversation, Repair::Apply).map(drop),
        }
    }

    fn check_power(&self) -> Result<()> {
        let Some(path) = &self.power else { return Ok(()) };
        let gone =
            |source| Error::Io { operation: "find power after an acknowledgement at", path: path.clone(), source };
        fs::File::open(path).map(drop).map_err(gone)
    }

    fn say(&self, word: Word) {
        println!("{}", serde_json::to_string(&Said { worker: self.name.clone(), word }).unwrap());
    }
}

/// What is left of a worker's batches after a step.
fn apply(step: &Step, batches: &mut Vec<Batch>) {
    match step {
        Step::Add(batch) => batches.push(*batch),
        Step::Clear => batches.clear(),
        Step::Damage(first) => batches.retain(|batch| batch.first != *first),
        Step::Repair => {}
    }
}

/// Who wrote a message.
fn writer(message: &Message) -> String {
    message.text().split(' ').next().unwrap_or_default().to_owned()
}

/// Child processes at work, and what they say. They are killed when this goes.
pub struct Crew {
    children: Vec<Child>,
    said: Receiver<Said>,
    speaker: Sender<Said>,
    readers: Vec<thread::JoinHandle<()>>,
}

impl Crew {
    pub fn new() -> Self {
        let (speaker, said) = channel();
        Self { children: Vec::new(), said, speaker, readers: Vec::new() }
    }

    /// Takes in a child that was started with its output in a pipe.
    pub fn join(&mut self, mut child: Child) {
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let speaker = self.speaker.clone();
        self.readers.push(thread::spawn(move || {
            let mut line = String::new();
            while output.read_line(&mut line).is_ok_and(|length| length > 0) {
                // The first may stand behind the test's name; the last may be cut off.
                if let Some(at) = line.find('{').filter(|_| line.ends_with('\n')) {
                    _ = speaker.send(serde_json::from_str(&line[at..]).unwrap());
                }
                line.clear();
            }
        }));
        self.children.push(child);
    }

    /// Listens until so many steps were begun.
    pub fn listen(&mut self, ledger: &mut Ledger, steps: usize) {
        let mut begun = 0;
        while begun < steps {
            match self.said.recv_timeout(Duration::from_millis(100)) {
                Ok(said) => {
                    begun += usize::from(matches!(said.word, Word::Begins { .. }));
                    ledger.note(said);
                }
                // Where all are gone there is nothing to wait for.
                Err(_) if self.children.iter_mut().all(|child| child.try_wait().unwrap().is_some()) => return,
                Err(_) => {}
            }
        }
    }

    /// Kills the child that was taken in last.
    pub fn kill_last(&mut self) {
        if let Some(mut child) = self.children.pop() {
            child.kill().unwrap();
            assert_well(child.wait().unwrap());
        }
    }

    /// Whether a child has come to its end by itself.
    pub fn is_any_done(&mut self) -> bool {
        self.children.iter_mut().any(|child| child.try_wait().unwrap().is_some())
    }

    /// Kills them all, and hears what they had still said.
    pub fn kill(mut self, ledger: &mut Ledger) {
        for child in &mut self.children {
            child.kill().unwrap();
        }
        self.wait(ledger).into_iter().for_each(assert_well);
    }

    /// Waits until they have come to their ends.
    pub fn wait(mut self, ledger: &mut Ledger) -> Vec<ExitStatus> {
        let ends = self.children.iter_mut().map(|child| child.wait().unwrap()).collect();
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        for said in self.said.try_iter() {
            ledger.note(said);
        }
        ends
    }
}

/// A child that ended by itself before it could be killed found nothing wrong.
fn assert_well(end: ExitStatus) {
    #[cfg(unix)]
    let was_killed = std::os::unix::process::ExitStatusExt::signal(&end) == Some(9);
    #[cfg(not(unix))]
    let was_killed = end.code() == Some(1); // with which `Child::kill` ends it
    assert!(end.success() || was_killed, "a child ended with {end}");
}

impl Drop for Crew {
    fn drop(&mut self) {
        for child in &mut self.children {
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// What was acknowledged, and what was in flight, by conversation and worker.
#[derive(Debug, Default)]
pub struct Ledger {
    conversations: BTreeMap<String, BTreeMap<String, Account>>,
    /// Who has ever begun to clear a conversation.
    clearers: BTreeMap<String, BTreeSet<String>>,
    /// The conversation that a worker is at.
    at_work: BTreeMap<String, String>,
    /// Conversations with damage that no acknowledged repair has mended.
    damaged: BTreeSet<String>,
    pub failures: Vec<String>,
    pub tally: Tally,
}

/// One worker's part of one conversation.
#[derive(Debug, Default)]
struct Account {
    batches: Vec<Batch>,
    /// What was begun, and not acknowledged.
    in_flight: Option<Step>,
}

impl Account {
    /// The worker's batches that may be there.
    fn allowed(&self) -> [Vec<Batch>; 2] {
        let mut after = self.batches.clone();
        if let Some(step) = &self.in_flight {
            apply(step, &mut after);
        }
        [self.batches.clone(), after]
    }
}

/// What was seen, to be printed.
#[derive(Debug, Default)]
pub struct Tally {
    /// Steps that were acknowledged.
    pub acknowledged: usize,
    /// Steps in flight at a crash, by kind, and of these how many had happened (a repair changes no message).
    pub in_flight: BTreeMap<&'static str, (usize, usize)>,
    /// Conversations that a crash left with an unfinished end.
    pub unfinished_ends: usize,
    /// Conversations whose first batch a crash left unreadable.
    pub unreadable_creations: usize,
}

impl Ledger {
    /// Begins a new one, for a new store. The tally goes on.
    pub fn begin_anew(&mut self) {
        *self = Self { tally: std::mem::take(&mut self.tally), ..Self::default() };
    }

    fn note(&mut self, Said { worker, word }: Said) {
        match word {
            Word::Begins { conversation, step } => self.begin(worker, conversation, step),
            Word::Done => self.acknowledge(&worker),
            // It stays in flight: whether it happened is not known.
            Word::Failed(error) => self.failures.push(format!("{worker}: {error}")),
        }
    }

    fn begin(&mut self, worker: String, conversation: String, step: Step) {
        match step {
            Step::Clear => _ = self.clearers.entry(conversation.clone()).or_default().insert(worker.clone()),
            Step::Damage(_) => _ = self.damaged.insert(conversation.clone()),
            Step::Add(_) | Step::Repair => {}
        }
        let accounts = self.conversations.entry(conversation.clone()).or_default();
        accounts.entry(worker.clone()).or_default().in_flight = Some(step);
        self.at_work.insert(worker, conversation);
    }

    fn acknowledge(&mut self, worker: &str) {
        let conversation = &self.at_work[worker];
        let account = self.conversations.get_mut(conversation).unwrap().get_mut(worker).unwrap();
        let step = account.in_flight.take().unwrap();
        apply(&step, &mut account.batches);
        if matches!(step, Step::Repair | Step::Clear) {
            self.damaged.remove(conversation);
        }
        self.tally.acknowledged += 1;
    }

    /// After a crash: everything acknowledged is there and at most what was in flight beyond, by what fresh stores find; and
    /// every conversation goes on. `round` has not been given before.
    pub fn check(&mut self, round: usize, open: &dyn Fn() -> FileChatMemory) {
        let memory = open();
        let names: Vec<String> = self.conversations.keys().cloned().collect();
        for conversation in &names {
            self.check_damage(conversation, &memory);
            self.compare(conversation, &memory);
        }
        // They go on, half of them after a repair.
        let worker = format!("after{round}");
        for (number, conversation) in names.iter().enumerate() {
            if (number + round).is_multiple_of(2) {
                self.repair(conversation, &memory);
            }
            let batch = Batch { first: number, count: 1, size: 10 };
            self.begin(worker.clone(), conversation.clone(), Step::Add(batch));
            memory.add(conversation, &batch.messages(&worker)).unwrap();
            self.acknowledge(&worker);
            self.compare(conversation, &memory);
        }
        let memory = open();
        for conversation in &names {
            self.compare(conversation, &memory);
            self.repair(conversation, &memory);
            assert_eq!(memory.repair(conversation, Repair::DryRun).unwrap().damage, []);
            self.compare(conversation, &memory);
        }
    }

    fn repair(&mut self, conversation: &str, memory: &FileChatMemory) {
        memory.repair(conversation, Repair::Apply).unwrap();
        self.damaged.remove(conversation);
    }

    /// A crash damages nothing.
    fn check_damage(&mut self, conversation: &str, memory: &FileChatMemory) {
        use chat_memory::{ChatHistory, DamageKind};
        for damage in memory.verify(conversation).unwrap().damage {
            match damage.kind {
                DamageKind::UnfinishedEnd => self.tally.unfinished_ends += 1,
                DamageKind::Middle if self.damaged.contains(conversation) => {}
                DamageKind::Everything if self.is_in_creation(conversation) => self.tally.unreadable_creations += 1,
                kind => panic!("{conversation}: {kind:?}\n{self:#?}"),
            }
        }
    }

    /// Whether nothing is acknowledged, and a first batch is in flight: what a power cut leaves of it may not be told from damage.
    fn is_in_creation(&self, conversation: &str) -> bool {
        let accounts = || self.conversations[conversation].values();
        let adds = |account: &Account| matches!(account.in_flight, Some(Step::Add(_)));
        accounts().all(|account| account.allowed().iter().any(Vec::is_empty)) && accounts().any(adds)
    }

    /// Compares a conversation with the ledger, and takes what is there as known from now on.
    fn compare(&mut self, conversation: &str, memory: &FileChatMemory) {
        let messages = match memory.get(conversation) {
            Ok(messages) => messages,
            Err(Error::Corrupt { .. }) if self.is_in_creation(conversation) => Vec::new(),
            Err(error) => panic!("{conversation}: {error:?}\n{self:#?}"),
        };
        let mut found = self.batches_in(conversation, &messages);
        let clearers = self.clearers.get(conversation).cloned().unwrap_or_default();
        for (worker, account) in self.conversations.get_mut(conversation).unwrap() {
            let found = found.remove(worker).unwrap_or_default();
            let allowed = account.allowed();
            // Where others clear too, they may have taken what was there up to some moment.
            let others_clear = clearers.iter().any(|clearer| clearer != worker);
            let is_allowed = allowed.iter().any(|all| if others_clear { all.ends_with(&found) } else { *all == found });
            assert!(is_allowed, "{conversation}, {worker}: found {found:?}\naccount {account:?}");
            if let Some(step) = account.in_flight.take() {
                let kind = match step {
                    Step::Add(_) => "add",
                    Step::Clear => "clear",
                    Step::Damage(_) => "damage",
                    Step::Repair => "repair",
                };
                let (all, happened) = self.tally.in_flight.entry(kind).or_default();
                *all += 1;
                *happened += usize::from(found == allowed[1] && allowed[0] != allowed[1]);
            }
            account.batches = found;
        }
    }

    /// The batches in a conversation by worker, each of them whole and together.
    fn batches_in(&self, conversation: &str, messages: &[Message]) -> BTreeMap<String, Vec<Batch>> {
        let accounts = &self.conversations[conversation];
        let mut found: BTreeMap<String, Vec<Batch>> = BTreeMap::new();
        let mut rest = messages;
        while let Some(message) = rest.first() {
            let worker = writer(message);
            let known = accounts.get(&worker).unwrap_or_else(|| panic!("nobody of the name {worker}"));
            let number: usize = message.text().split(' ').nth(1).unwrap().parse().unwrap();
            let [_, all] = known.allowed();
            let batch = all.iter().chain(&known.batches).find(|batch| batch.first == number);
            let batch = batch.unwrap_or_else(|| panic!("{conversation}: nobody knows of {worker} {number}\n{known:?}"));
            let expected = batch.messages(&worker);
            assert!(rest.starts_with(&expected), "{conversation}: {worker} {batch:?} is not whole");
            rest = &rest[expected.len()..];
            found.entry(worker).or_default().push(*batch);
        }
        found
    }

    /// Clears every conversation, which then stays empty.
    pub fn clear_all(&mut self, memory: &FileChatMemory) {
        for (conversation, accounts) in &mut self.conversations {
            memory.clear(conversation).unwrap();
            accounts.clear();
        }
        self.damaged.clear();
        self.clearers.clear();
    }
}
