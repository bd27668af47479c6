//! Threads in thousands of orders: nobody waits for ever, nothing acknowledged is lost, an error reaches everyone it is about, and
//! nobody touches a file without the lock that it needs (the disk in memory checks that).

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use chat_memory::{ChatHistory, ChatMemory, Entry, Error, FileChatMemory, Message, PageRequest, Repair};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};

#[allow(dead_code, reason = "shared with the other tests")]
#[path = "../../tests/it/sim_disk.rs"]
mod sim_disk;

use sim_disk::{SimDisk, Trouble};

const ID: &str = "c";
const EIO: i32 = 5;

/// Runs a scenario in many orders of its threads: any order, and few switches in places chosen at random. How many:
/// `CHAT_MEMORY_SHUTTLE_ORDERS`, default 1,000 of each.
fn in_many_orders(scenario: impl Fn() + Send + Sync + Clone + 'static) {
    let orders = std::env::var("CHAT_MEMORY_SHUTTLE_ORDERS").map_or(1_000, |orders| orders.parse().unwrap());
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    Runner::new(RandomScheduler::new(orders), config.clone()).run(scenario.clone());
    Runner::new(PctScheduler::new(3, orders), config).run(scenario);
}

fn open(disk: &SimDisk) -> Arc<FileChatMemory> {
    Arc::new(FileChatMemory::builder("/store").disk(Arc::new(disk.clone())).open().unwrap())
}

fn say(text: impl Into<String>) -> [Message; 1] {
    [Message::user(text)]
}

fn texts(memory: &FileChatMemory, id: &str) -> Vec<String> {
    memory.get(id).unwrap().iter().map(|message| message.text().into_owned()).collect()
}

/// Adds by several threads, two batches each; the texts of those that were acknowledged, in each thread's order.
fn add_in_threads(stores: Vec<Arc<FileChatMemory>>) -> Vec<Vec<(String, bool)>> {
    let adds = stores.into_iter().enumerate().map(|(number, memory)| {
        thread::spawn(move || {
            let texts = (0..2).map(|batch| format!("{number}.{batch}"));
            texts.map(|text| (text.clone(), memory.add(ID, &say(text)).is_ok())).collect::<Vec<_>>()
        })
    });
    adds.collect::<Vec<_>>().into_iter().map(|add| add.join().unwrap()).collect()
}

/// What was acknowledged is there, once, and in its thread's order, and nothing else is.
fn check_acknowledged(found: &[String], added: &[Vec<(String, bool)>]) {
    let acknowledged = |adds: &[(String, bool)]| -> Vec<String> {
        adds.iter().filter(|(_, ok)| *ok).map(|(text, _)| text.clone()).collect()
    };
    for adds in added {
        let own: Vec<String> =
            found.iter().filter(|text| adds.iter().any(|(added, _)| added == *text)).cloned().collect();
        assert_eq!(own, acknowledged(adds));
    }
    assert_eq!(found.len(), added.iter().map(|adds| acknowledged(adds).len()).sum::<usize>());
}

#[test]
fn adds_to_one_conversation_are_all_acknowledged_and_all_there() {
    in_many_orders(|| {
        let disk = SimDisk::default();
        let memory = open(&disk);
        let added = add_in_threads(vec![Arc::clone(&memory), Arc::clone(&memory), Arc::clone(&memory)]);
        assert!(added.iter().flatten().all(|(_, ok)| *ok));
        check_acknowledged(&texts(&memory, ID), &added);
        check_acknowledged(&texts(&open(&disk), ID), &added);
    });
}

#[test]
fn adds_through_several_stores_are_all_acknowledged_and_all_there() {
    in_many_orders(|| {
        let disk = SimDisk::default();
        let (one, two) = (open(&disk), open(&disk));
        let added = add_in_threads(vec![Arc::clone(&one), one, Arc::clone(&two), two]);
        assert!(added.iter().flatten().all(|(_, ok)| *ok));
        check_acknowledged(&texts(&open(&disk), ID), &added);
    });
}

#[test]
fn an_error_reaches_everyone_whose_messages_it_is_about_and_nobody_else() {
    for at in 0..10 {
        in_many_orders(move || {
            let disk = SimDisk::default();
            let memory = open(&disk);
            disk.trouble(Trouble::Fails { at, errno: EIO, short: at % 2 == 0, for_good: false });
            let added = add_in_threads(vec![Arc::clone(&memory), Arc::clone(&memory), Arc::clone(&memory)]);
            check_acknowledged(&texts(&memory, ID), &added);
            check_acknowledged(&texts(&open(&disk), ID), &added);
        });
    }
}

#[test]
fn a_conversation_out_of_use_is_so_for_everyone_and_loses_nothing() {
    in_many_orders(|| {
        let disk = SimDisk::default();
        let memory = open(&disk);
        disk.trouble(Trouble::Fails { at: 7, errno: EIO, short: true, for_good: true });
        let added = add_in_threads(vec![Arc::clone(&memory), Arc::clone(&memory), Arc::clone(&memory)]);
        disk.no_trouble();
        let failed = added.iter().flatten().any(|(_, ok)| !ok);
        assert_eq!(failed, matches!(memory.add(ID, &say("more")), Err(Error::Poisoned { .. })));
        let found = texts(&open(&disk), ID);
        for (text, ok) in added.iter().flatten() {
            assert!(!ok || found.contains(text), "{text} is not in {found:?}");
        }
    });
}

/// Readers, writers, a clear and a repair, through two stores.
#[test]
fn readers_and_writers_take_turns_and_see_whole_batches() {
    in_many_orders(|| {
        let disk = SimDisk::default();
        let (one, two) = (open(&disk), open(&disk));
        let pair = |text: &str| [Message::user(text), Message::assistant(text)];
        one.add(ID, &pair("first")).unwrap();
        let reader = |memory: &Arc<FileChatMemory>| {
            let memory = Arc::clone(memory);
            thread::spawn(move || {
                for _ in 0..2 {
                    for pair in memory.get(ID).unwrap().chunks(2) {
                        assert_eq!(pair[0].text(), pair[1].text());
                    }
                }
            })
        };
        let readers = [reader(&one), reader(&one), reader(&two)];
        let writer = {
            let one = Arc::clone(&one);
            thread::spawn(move || {
                one.add(ID, &[Message::user("second"), Message::assistant("second")]).unwrap();
                one.repair(ID, Repair::Apply).unwrap();
            })
        };
        let clearer = {
            let two = Arc::clone(&two);
            thread::spawn(move || {
                two.clear(ID).unwrap();
                two.add(ID, &[Message::user("third"), Message::assistant("third")]).unwrap();
            })
        };
        readers.into_iter().chain([writer, clearer]).for_each(|thread| thread.join().unwrap());
        let found = texts(&open(&disk), ID);
        assert!(found.contains(&"third".to_owned()) && !found.contains(&"first".to_owned()), "{found:?}");
    });
}

/// A rewriting repair beside adds: an add that was acknowledged is in the new file.
#[test]
fn adds_beside_a_repair_that_rewrites_are_in_the_new_file() {
    in_many_orders(|| {
        let disk = SimDisk::default();
        let (one, two) = (open(&disk), open(&disk));
        for text in ["a", "b", "c"] {
            one.add(ID, &say(text)).unwrap();
        }
        let header = 60 + ID.len();
        disk.tamper(&one.path(ID), |bytes| bytes[header + 80] ^= 1);
        let repair = {
            let two = Arc::clone(&two);
            thread::spawn(move || _ = two.repair(ID, Repair::Apply).unwrap())
        };
        let added = add_in_threads(vec![one, Arc::clone(&two)]);
        repair.join().unwrap();
        let found = texts(&open(&disk), ID);
        let found: Vec<String> = found.into_iter().filter(|text| text.contains('.')).collect();
        check_acknowledged(&found, &added);
        assert!(two.verify(ID).unwrap().damage.is_empty());
    });
}

/// Three stores: what is added after a clear is there, whatever a restore beside them does.
#[test]
fn a_restore_beside_a_clear_costs_no_add() {
    in_many_orders(|| {
        let disk = SimDisk::default();
        let (clearing, restoring, adding) = (open(&disk), open(&disk), open(&disk));
        let restore = thread::spawn(move || {
            let entries = [Entry::new(0, UNIX_EPOCH, Message::user("restored"))];
            restoring
                .restore(ID, None, &entries)
                .map_err(|error| assert!(matches!(error, Error::Conflict { .. }), "{error:?}"))
        });
        clearing.clear(ID).unwrap();
        adding.add(ID, &say("acknowledged")).unwrap();
        let restored = restore.join().unwrap();
        let found = texts(&open(&disk), ID);
        let is_in_order = found == ["acknowledged"] || (restored.is_ok() && found == ["restored", "acknowledged"]);
        assert!(is_in_order, "{found:?} {restored:?}");
    });
}

#[test]
fn slots_follow_use() {
    for capacity in [0, 1] {
        in_many_orders(move || {
            let disk = SimDisk::default();
            let builder = FileChatMemory::builder("/store").disk(Arc::new(disk.clone())).max_open_files(capacity);
            let memory = Arc::new(builder.open().unwrap());
            let users: Vec<_> = (0..3)
                .map(|number| {
                    let memory = Arc::clone(&memory);
                    thread::spawn(move || {
                        let own = format!("own {number}");
                        memory.add(&own, &say("x")).unwrap();
                        memory.add("shared", &say(&own)).unwrap();
                        memory.get("never seen").unwrap();
                        assert_eq!(memory.get(&own).unwrap().len(), 1);
                        memory.conversations(&PageRequest::first(2)).unwrap();
                    })
                })
                .collect();
            users.into_iter().for_each(|user| user.join().unwrap());
            assert!(memory.conversations_in_use() <= capacity);
            assert_eq!(texts(&memory, "shared").len(), 3);
        });
    }
}
