//! A file system that is full.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use chat_memory::{ChatMemory, Durability, FileChatMemory, Message, Repair};

use super::{Acknowledged, refused};
use crate::mounts::{Volume, in_own_mounts, run};
use crate::support::{child_part, flip_a_bit, has_programs, skip};

#[test]
fn a_full_tmpfs_refuses_and_takes_again() {
    let Some((_, directory)) = child_part() else {
        return in_own_mounts("faults::no_space::a_full_tmpfs_refuses_and_takes_again");
    };
    match run(&["mount", "-t", "tmpfs", "-o", "size=1m", "none", directory.to_str().unwrap()]) {
        Ok(_) => fill_up(&directory),
        Err(reason) => skip(&reason),
    }
}

#[test]
fn a_full_ext4_refuses_and_takes_again() {
    let Some((_, directory)) = child_part() else {
        return in_own_mounts("faults::no_space::a_full_ext4_refuses_and_takes_again");
    };
    if !has_programs(&["mkfs.ext4"]) {
        return;
    }
    match Volume::new("ext4", 3, "", &directory) {
        Ok(volume) => fill_up(volume.place()),
        Err(reason) => skip(&reason),
    }
}

fn fill_up(place: &Path) {
    for durability in [Durability::Disk, Durability::Process] {
        let store = place.join(format!("{durability:?}"));
        let open = || FileChatMemory::builder(&store).durability(durability).open().unwrap();
        let filler = place.join("filler");
        fs::write(&filler, vec![7; 300 << 10]).unwrap();
        let memory = open();
        let mut damaged = Acknowledged::new(&memory, "damaged");
        (0..3).for_each(|_| damaged.add(1, 30_000).unwrap());
        let mut c = Acknowledged::new(&memory, "c");
        let mut added = 0;
        let error = loop {
            match c.add(1 + added % 3, 10_000) {
                Ok(()) => added += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error:?}");
        assert!(added > 3, "{added}");
        // Smaller ones may still fit; each is there or refused.
        for size in [3_000, 300, 30] {
            while c.add(2, size).is_ok() {}
        }
        let mut new = Acknowledged::new(&memory, "new");
        while new.add(1, 100).is_ok() {}
        c.check_in(&open());
        new.check_in(&open());

        // There is no room for a repair. Nothing is lost by trying.
        flip_a_bit(&memory.path("damaged"), 40_000).unwrap();
        let intact = [&damaged.messages[..1], &damaged.messages[2..]].concat();
        assert_eq!(refused(memory.repair("damaged", Repair::Apply)).kind(), ErrorKind::StorageFull);
        for memory in [&memory, &open()] {
            assert!(memory.get("damaged").unwrap() == intact);
        }

        // The cause is gone, and so is the trouble.
        fs::remove_file(&filler).unwrap();
        give_back(place);
        for conversation in [&mut c, &mut new] {
            conversation.add(3, 5_000).unwrap();
            conversation.check_in(&open());
            assert_eq!(memory.repair(&conversation.id, Repair::DryRun).unwrap().damage, []);
        }
        assert_eq!(memory.repair("damaged", Repair::Apply).unwrap().damage.len(), 1);
        assert!(open().get("damaged").unwrap() == intact);

        // A conversation can be cleared where nothing can be added, which makes room.
        while c.add(1, 10_000).is_ok() {}
        while c.add(1, 10).is_ok() {}
        memory.clear("c").unwrap();
        new.add(1, 10_000).unwrap();
        assert_eq!(memory.get("c").unwrap(), []);
        memory.add("c", &[Message::user("again")]).unwrap();
        drop(memory);
        fs::remove_dir_all(&store).unwrap();
        give_back(place);
    }
}

/// A journaling file system gives the room of a removed file to others only when the removal is on the disk.
fn give_back(place: &Path) {
    fs::File::open(place).unwrap().sync_all().unwrap();
}
