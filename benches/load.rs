//! A thousand conversations at once in an async program: `Offload<FileChatMemory>` on a runtime of two workers. Each conversation
//! recalls a window of 20 messages and adds a turn of two messages of 1 KiB, again and again. Beside it, as the baseline of the
//! same run, the same through `Offload<InMemoryChatMemory>`, for a tenth of the time, for it keeps all in memory.
//!
//! `cargo bench --bench load --features tokio`; in the environment `LOAD_SECONDS` for each durability (5), `LOAD_CHATS` (1,000),
//! `LOAD_THREADS`, a list of bounds for the threads that may block (512, tokio's default), and `LOAD_OPEN_FILES`, a list of
//! bounds for the files that stay open (256, the store's default). `-- --test` runs a fraction of a second.
//!
//! Times are those that a caller waits, from asking to the answer. Each row is a process of its own, so that its peak of
//! memory is its own. At its end each message is read again: none may be missing, none may be there that was not added.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench says what must hold by panicking"
)]

use std::fmt;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chat_memory::{
    AsyncChatMemory, ChatHistory, ChatMemory, Durability, FileChatMemory, InMemoryChatMemory, Message, Offload,
};
use hdrhistogram::Histogram;
use tokio::runtime::Builder;

const WINDOW: usize = 20;
/// In a child process: which row it measures.
const ROW: &str = "LOAD_ROW";

fn main() {
    match std::env::var(ROW) {
        Ok(row) => measure(&row.parse().unwrap()),
        Err(_) => table(),
    }
}

/// One row of the table.
struct Row {
    store: String,
    seconds: f64,
    chats: usize,
    threads: usize,
    open_files: usize,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, seconds, chats, threads, open_files } = self;
        write!(f, "{store},{seconds},{chats},{threads},{open_files}")
    }
}

impl FromStr for Row {
    type Err = Box<dyn std::error::Error>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut fields = text.split(',');
        let mut next = || fields.next().ok_or("a field is missing");
        Ok(Self {
            store: next()?.to_owned(),
            seconds: next()?.parse()?,
            chats: next()?.parse()?,
            threads: next()?.parse()?,
            open_files: next()?.parse()?,
        })
    }
}

/// Runs every row in a process of its own.
fn table() {
    let setting = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let numbers =
        |text: String| -> Vec<usize> { text.split(',').map(|number| number.trim().parse().unwrap()).collect() };
    let is_test = std::env::args().any(|argument| argument == "--test");
    let seconds: f64 = if is_test { 0.3 } else { setting("LOAD_SECONDS", "5").parse().unwrap() };
    let chats = setting("LOAD_CHATS", "1000").parse().unwrap();

    println!("{chats} conversations, {seconds} s for each durability, load of the machine {}", load());
    println!(
        "| store | threads | open files | turns/s | / in memory | add p50 / p99 / max, ms | get p50 / p99 / max, ms | peak, MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for threads in numbers(setting("LOAD_THREADS", "512")) {
        let run = |store: &str, seconds: f64, open_files: usize| {
            let row = Row { store: store.to_owned(), seconds, chats, threads, open_files };
            let mut child = Command::new(std::env::current_exe().unwrap());
            let output = child.env(ROW, row.to_string()).stderr(Stdio::inherit()).output().unwrap();
            assert!(output.status.success(), "{row}");
            let printed = String::from_utf8(output.stdout).unwrap();
            let (rate, rest) = printed.trim().split_once('|').unwrap();
            (rate.parse::<f64>().unwrap(), rest.to_owned())
        };
        let (baseline, rest) = run("memory", seconds / 10.0, 0);
        println!("| in memory | {threads} | | {baseline:.0} | 1 |{rest}");
        for open_files in numbers(setting("LOAD_OPEN_FILES", "256")) {
            for store in ["Process", "Disk"] {
                let (rate, rest) = run(store, seconds, open_files);
                println!("| `{store}` | {threads} | {open_files} | {rate:.0} | {:.3} |{rest}", rate / baseline);
            }
        }
    }
    println!("Every message was found again. Load of the machine at the end {}", load());
}

/// The load of the machine, where it says so.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn measure(row: &Row) {
    // On a real disk: the folder for temporary files may be in memory.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let open = |durability| {
        let builder = FileChatMemory::builder(directory.path().join("chats")).max_messages(WINDOW);
        builder.durability(durability).max_open_files(row.open_files).open().unwrap()
    };
    match row.store.as_str() {
        "memory" => {
            let memory = InMemoryChatMemory::builder().max_messages(WINDOW).build().unwrap();
            run(row, memory, |memory| count(memory, row.chats));
        }
        store => {
            let durability = if store == "Disk" { Durability::Disk } else { Durability::Process };
            // Counted by a store that never saw them.
            run(row, open(durability), |_| count(&open(durability), row.chats));
        }
    }
}

/// Runs the load, and prints what came of it.
fn run<M: ChatMemory + ChatHistory + 'static>(row: &Row, memory: M, count: impl FnOnce(&M) -> u64) {
    let runtime = Builder::new_multi_thread().worker_threads(2).max_blocking_threads(row.threads).build().unwrap();
    let memory = Offload::new(memory);
    let (adds, gets) = (Arc::new(Times::new()), Arc::new(Times::new()));
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(row.seconds);
    let chats = (0..row.chats)
        .map(|chat| runtime.spawn(converse(memory.clone(), chat, end, Arc::clone(&adds), Arc::clone(&gets))));
    let chats: Vec<_> = chats.collect();
    let turns: u64 = chats.into_iter().map(|chat| runtime.block_on(chat).unwrap()).sum();
    let rate = turns as f64 / start.elapsed().as_secs_f64();
    let peak = peak_mib();

    assert_eq!(count(memory.inner()), 2 * turns, "messages were lost, or came from nowhere");
    println!("{rate}| {adds} | {gets} | {peak} |");
}

/// One conversation, until the end: how many turns it had.
async fn converse<M: ChatMemory + 'static>(
    memory: Offload<M>,
    chat: usize,
    end: Instant,
    adds: Arc<Times>,
    gets: Arc<Times>,
) -> u64 {
    let id = format!("conversation {chat}");
    let mut turns = 0;
    while Instant::now() < end {
        let view = gets.of(memory.get(&id)).await.unwrap();
        assert_eq!(view.len(), WINDOW.min(2 * turns as usize));
        let text = |who: &str| format!("{who} {turns:>10} {}", "x".repeat(1_000));
        adds.of(memory.add(&id, vec![Message::user(text("user")), Message::assistant(text("model"))])).await.unwrap();
        turns += 1;
    }
    turns
}

/// All messages that are there, each read and checked.
fn count(memory: &impl ChatHistory, chats: usize) -> u64 {
    (0..chats)
        .map(|chat| {
            let found = memory.verify(&format!("conversation {chat}")).unwrap();
            assert!(found.damage.is_empty());
            found.messages
        })
        .sum()
}

/// How long calls took.
struct Times(Mutex<Histogram<u64>>);

impl Times {
    fn new() -> Self {
        Self(Mutex::new(Histogram::new(3).unwrap()))
    }

    async fn of<T>(&self, call: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let result = call.await;
        self.0.lock().unwrap().record(start.elapsed().as_micros() as u64).unwrap();
        result
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = self.0.lock().unwrap();
        let ms = |micros: u64| micros as f64 / 1_000.0;
        let (p50, p99) = (times.value_at_quantile(0.5), times.value_at_quantile(0.99));
        write!(f, "{:.2} / {:.2} / {:.1}", ms(p50), ms(p99), ms(times.max()))
    }
}

/// The most memory that this process had at once, where the system says so.
fn peak_mib() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or_else(|| "?".to_owned(), |kib| (kib / 1024).to_string())
}
