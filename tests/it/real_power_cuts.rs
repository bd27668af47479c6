//! What was acknowledged survives the loss of power, on real file systems.
//!
//! A file system in an image file is shut down, without its journal being written, while two processes work in it; then it is
//! mounted again, and its own recovery runs.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use chat_memory::{FileChatMemory, Result};

use crate::ledger::{Crew, Ledger, Worker};
use crate::mounts::{Volume, in_own_mounts};
use crate::support::{child_part, full_mode, has_programs, random, skip, start_child};

/// A file on the volume that opens as long as there is power.
const POWER: &str = "power";

#[test]
fn what_was_acknowledged_survives_on_ext4() {
    survives("real_power_cuts::what_was_acknowledged_survives_on_ext4", "ext4");
}

#[test]
fn what_was_acknowledged_survives_on_xfs() {
    survives("real_power_cuts::what_was_acknowledged_survives_on_xfs", "xfs");
}

fn survives(test: &str, file_system: &str) {
    match child_part() {
        None => in_own_mounts(test),
        Some((part, directory)) if part == "mounts" => cut_again_and_again(test, file_system, &directory),
        Some((part, directory)) => work(&part, &directory),
    }
}

fn cut_again_and_again(test: &str, file_system: &str, directory: &Path) {
    // The shutdown is the same call on both.
    if !has_programs(&[&format!("mkfs.{file_system}"), "xfs_io"]) {
        return;
    }
    let volume = match Volume::new(file_system, 400, "", directory) {
        Ok(volume) => volume,
        Err(reason) => return skip(&reason),
    };
    the_cut_is_real(&volume);

    let cuts = if full_mode() { 200 } else { 5 };
    let mut random = random();
    let mut store = volume.place().join("0/store");
    let mut ledger = Ledger::default();
    let mut longest_restart = Duration::ZERO;
    for cut in 0..cuts {
        if cut > 0 && random.usize(..4) == 0 {
            // A store that is not there yet.
            std::fs::remove_dir_all(&store).unwrap();
            store = volume.place().join(format!("{cut}/store"));
            ledger.begin_anew();
        }
        let mut crew = Crew::new();
        for process in ["a", "b"] {
            crew.join(start_child(test, &format!("{cut}{process} {}", random.u64(..)), &store));
        }
        // Some cuts come before anyone has begun, the others all along.
        let steps = [0, 1, 2, 4, random.usize(3..20), random.usize(10..80)][random.usize(..6)];
        let moment = if steps == 0 { 20_000 } else { 3_000 };
        crew.listen(&mut ledger, steps);
        thread::sleep(Duration::from_micros(random.u64(..moment)));
        assert!(ledger.failures.is_empty(), "before the cut: {:?}", ledger.failures);
        volume.cut_power();
        crew.kill(&mut ledger);
        ledger.failures.clear();

        let start = Instant::now();
        volume.restart();
        longest_restart = longest_restart.max(start.elapsed());
        let open = || FileChatMemory::open(&store).unwrap();
        ledger.check(cut, &open);
        if cut % 5 == 4 {
            // They stay cleared through a cut at once, in which nothing else has synced anything since.
            ledger.clear_all(&open());
            volume.cut_power();
            volume.restart();
            ledger.check(cuts + cut, &open);
        }
    }
    let more = cuts / 5;
    println!(
        "{cuts} power cuts on {file_system} and {more} after a clear, restarted in at most {longest_restart:?}: {:?}",
        ledger.tally
    );
    assert!(ledger.tally.acknowledged > cuts, "{:?}", ledger.tally);
}

/// Else the test would show nothing.
fn the_cut_is_real(volume: &Volume) {
    let files: [PathBuf; 2] = [POWER, "not synced"].map(|name| volume.place().join(name));
    for file in &files {
        std::fs::write(file, "text").unwrap();
        if file.ends_with(POWER) {
            std::fs::File::open(file).unwrap().sync_all().unwrap();
        }
    }
    volume.cut_power();
    std::fs::File::open(&files[0]).unwrap_err();
    volume.restart();
    assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), "text");
    assert!(std::fs::read_to_string(&files[1]).map_or(true, |text| text.is_empty()));
}

/// The child: two threads with one store, until the power is cut.
fn work(part: &str, store: &Path) {
    let (name, seed) = part.split_once(' ').unwrap();
    // Where the power is gone already, there is no store.
    let Ok(memory) = FileChatMemory::open(store) else { return };
    thread::scope(|scope| {
        for thread in 0..2 {
            let power = store.join("../..").join(POWER);
            let mut worker = Worker::new(&format!("{name}{thread}"), &memory).powered_by(power);
            let mut random = fastrand::Rng::with_seed(seed.parse::<u64>().unwrap() ^ thread);
            let own = format!("{name}{thread} alone");
            scope.spawn(move || while work_a_while(&mut worker, &own, &mut random).is_ok() {});
        }
    });
}

/// A conversation of the worker's own, from its creation until it is cleared, and one that all share.
fn work_a_while(worker: &mut Worker<'_>, own: &str, random: &mut fastrand::Rng) -> Result<()> {
    let number = random.u32(..1000);
    let own = format!("{own} {number}");
    for _ in 0..random.usize(1..12) {
        let (count, size) = (random.usize(2..12), random.usize(..2_000));
        match random.usize(..20) {
            0..8 => worker.add(&own, 1, size)?,
            8..11 => worker.add(&own, count, size)?,
            11 => worker.add(&own, 1, random.usize(1 << 20..3 << 20))?,
            12..17 => worker.add("shared", 1 + count / 8, size)?,
            17 => worker.read("shared")?,
            _ => worker.damage_and_repair(&own, random)?,
        }
    }
    if random.bool() { worker.clear(&own) } else { Ok(()) }
}
