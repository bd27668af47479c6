//! What was acknowledged survives the end of a process, at any moment: real kills.

use std::path::Path;
use std::thread;
use std::time::Duration;

use chat_memory::{ChatMemory, Durability, FileChatMemory};
use tempfile::tempdir;

use crate::ledger::{Crew, Ledger, Worker};
use crate::support::{child_part, full_mode, random, start_child};

const DURABILITIES: [Durability; 2] = [Durability::Disk, Durability::Process];

fn open(durability: &str, directory: &Path) -> FileChatMemory {
    let durability = DURABILITIES.into_iter().find(|known| format!("{known:?}") == durability).unwrap();
    FileChatMemory::builder(directory).durability(durability).open().unwrap()
}

#[test]
fn what_was_acknowledged_survives_kills_in_batches_of_megabytes() {
    let test = "kills::what_was_acknowledged_survives_kills_in_batches_of_megabytes";
    let largest = if full_mode() { 8 << 20 } else { 3 << 20 };
    survives(test, 6, &move |worker, random| worker.add("c", random.usize(1..3), random.usize(1 << 20..largest)));
}

#[test]
fn what_was_acknowledged_survives_kills_in_many_small_batches() {
    let test = "kills::what_was_acknowledged_survives_kills_in_many_small_batches";
    survives(test, 40, &|worker, random| match random.usize(..50) {
        0 => worker.damage_and_repair(&format!("{} alone", worker.name()), random),
        1 => worker.clear(&format!("{} alone", worker.name())),
        2..10 => worker.add(&format!("{} alone", worker.name()), 2, 50),
        _ => worker.add("c", random.usize(1..4), random.usize(..500)),
    });
}

type Work = dyn Fn(&mut Worker<'_>, &mut fastrand::Rng) -> chat_memory::Result<()> + Sync;

/// Two threads of a process work until it is killed, within its first `steps` steps, again and again.
fn survives(test: &str, steps: usize, work: &Work) {
    if let Some((part, directory)) = child_part() {
        let parts: Vec<&str> = part.split(' ').collect();
        let [durability, life, seed] = parts[..] else { unreachable!() };
        let memory = open(durability, &directory);
        thread::scope(|scope| {
            for thread in 0..2 {
                let mut worker = Worker::new(&format!("{life}-{thread}"), &memory);
                let mut random = fastrand::Rng::with_seed(seed.parse::<u64>().unwrap() ^ thread);
                scope.spawn(move || while work(&mut worker, &mut random).is_ok() {});
            }
        });
        return;
    }
    let kills = if full_mode() { 160 } else { 4 };
    let mut random = random();
    for durability in DURABILITIES {
        let directory = tempdir().unwrap();
        let mut ledger = Ledger::default();
        for life in 0..kills {
            let mut crew = Crew::new();
            let part = format!("{durability:?} {life} {}", random.u64(..));
            crew.join(start_child(test, &part, directory.path()));
            crew.listen(&mut ledger, random.usize(..steps));
            thread::sleep(Duration::from_micros(random.u64(..5_000)));
            crew.kill(&mut ledger);
            assert!(ledger.failures.is_empty(), "{:?}", ledger.failures);
            let open = || open(&format!("{durability:?}"), directory.path());
            ledger.check(life, &open);
            if life % 5 == 4 {
                ledger.clear_all(&open());
            }
        }
        println!("{kills} kills with {durability:?}: {:?}", ledger.tally);
        assert!(ledger.tally.acknowledged > 0, "{:?}", ledger.tally);
    }
}

#[test]
fn two_processes_at_work_account_for_every_message_while_one_is_killed() {
    at_work("kills::two_processes_at_work_account_for_every_message_while_one_is_killed", 2);
}

#[test]
fn four_processes_at_work_account_for_every_message_while_one_is_killed() {
    at_work("kills::four_processes_at_work_account_for_every_message_while_one_is_killed", 4);
}

/// Processes on the same conversations. One of them is killed and started again until another has done its work.
fn at_work(test: &str, processes: usize) {
    if let Some((part, directory)) = child_part() {
        let parts: Vec<&str> = part.split(' ').collect();
        let [durability, name, seed] = parts[..] else { unreachable!() };
        return add_read_and_clear(name, seed.parse().unwrap(), &open(durability, &directory));
    }
    let mut random = random();
    for durability in DURABILITIES {
        let directory = tempdir().unwrap();
        let mut ledger = Ledger::default();
        let mut start =
            |name: String| start_child(test, &format!("{durability:?} {name} {}", random.u64(..)), directory.path());
        let mut crew = Crew::new();
        for process in 1..processes {
            crew.join(start(format!("p{process}")));
        }
        let mut lives = 0;
        let mut moments = fastrand::Rng::with_seed(lives);
        while !crew.is_any_done() {
            crew.join(start(format!("killed{lives}")));
            lives += 1;
            crew.listen(&mut ledger, moments.usize(..30));
            thread::sleep(Duration::from_micros(moments.u64(..20_000)));
            crew.kill_last();
        }
        let ends = crew.wait(&mut ledger);
        assert!(ends.iter().all(std::process::ExitStatus::success), "{ends:?}");
        assert!(ledger.failures.is_empty(), "{:?}", ledger.failures);
        ledger.check(0, &|| open(&format!("{durability:?}"), directory.path()));
        println!("{processes} processes with {durability:?}, one killed {lives} times: {:?}", ledger.tally);
        assert!(lives > 1 && ledger.tally.acknowledged > 100, "{:?}", ledger.tally);
    }
}

/// Two threads' work on conversations that all processes share: some are only added to, some are cleared too.
fn add_read_and_clear(name: &str, seed: u64, memory: &FileChatMemory) {
    let rounds = if full_mode() { 1_500 } else { 100 };
    thread::scope(|scope| {
        for thread in 0..2 {
            let mut worker = Worker::new(&format!("{name}-{thread}"), memory);
            let mut random = fastrand::Rng::with_seed(seed ^ thread);
            scope.spawn(move || {
                for _ in 0..rounds {
                    let (count, size) = (random.usize(1..5), random.usize(..300));
                    let (kept, cleared) = (format!("kept {}", count % 2), format!("cleared {}", count % 2));
                    match random.usize(..20) {
                        0..10 => worker.add(&kept, count, size).unwrap(),
                        10..16 => worker.add(&cleared, count, size).unwrap(),
                        16 => worker.clear(&cleared).unwrap(),
                        17 => _ = memory.get(&cleared).unwrap(),
                        _ => worker.read(&kept).unwrap(),
                    }
                }
            });
        }
    });
}
