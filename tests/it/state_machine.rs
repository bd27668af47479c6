//! Any sequence of calls on several conversations through several stores, beside a model that is a list per conversation.
//!
//! 500 cases by default, 10,000 where `CHAT_MEMORY_TEST_FULL` is set; what once failed is kept in `state_machine.regressions` and
//! run first.

use std::collections::BTreeMap;
use std::sync::Arc;

use chat_memory::{
    ChatHistory, ChatMemory, Durability, FileChatMemory, HistoryRange, Message, PageRequest, Repair, Window,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::sim_disk::SimDisk;
use crate::support::full_mode;

const IDS: [&str; 3] = ["one", "two", "three"];

/// One call, through one of the stores, about one of the conversations.
#[derive(Debug, Clone)]
enum Call {
    Add(Vec<Message>),
    Get,
    Clear,
    Reopen,
    History {
        last: bool,
        from: u64,
        count: usize,
    },
    ViewAt {
        seq: u64,
        window: usize,
    },
    Conversations {
        limit: usize,
    },
    Verify,
    Repair,
    /// The store goes, and whatever was not synced with it.
    PowerCut {
        outcome: usize,
    },
}

/// The windows of the stores; the first has none.
const WINDOWS: [Option<(usize, usize)>; 3] = [None, Some((4, 1)), Some((9, 3))];

fn open(disk: &SimDisk, store: usize, durability: Durability) -> FileChatMemory {
    let builder = FileChatMemory::builder("/store").durability(durability).disk(Arc::new(disk.clone()));
    // So few open files that slots come and go.
    let builder = builder.max_open_files(store);
    match WINDOWS[store] {
        None => builder.open().unwrap(),
        Some((count, step)) => builder.max_messages(count).window_step(step).open().unwrap(),
    }
}

fn message() -> impl Strategy<Value = Message> {
    let text = prop_oneof![4 => "[a-z ]{0,12}", 1 => "[a-z]{1,40}".prop_map(|text| text.repeat(60))];
    (0..8_u8, text, 0..4_u8).prop_map(|(kind, text, call)| match kind {
        0 => Message::system(text),
        1..=3 => Message::user(text),
        4 => Message::assistant(text).with_tool_call(format!("t{call}"), "look", "{}"),
        5 => Message::tool_result(format!("t{call}"), "look", text),
        _ => Message::assistant(text),
    })
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        8 => vec(message(), 1..6).prop_map(Call::Add),
        4 => Just(Call::Get),
        1 => Just(Call::Clear),
        1 => Just(Call::Reopen),
        2 => (any::<bool>(), 0..20_u64, 0..12_usize)
            .prop_map(|(last, from, count)| Call::History { last, from, count }),
        1 => (0..30_u64, 1..8_usize).prop_map(|(seq, window)| Call::ViewAt { seq, window }),
        1 => (1..4_usize).prop_map(|limit| Call::Conversations { limit }),
        1 => Just(Call::Verify),
        1 => Just(Call::Repair),
        1 => any::<usize>().prop_map(|outcome| Call::PowerCut { outcome }),
    ]
}

type Model = BTreeMap<&'static str, Vec<Message>>;

struct World {
    disk: SimDisk,
    durability: Durability,
    stores: Vec<FileChatMemory>,
    model: Model,
}

impl World {
    fn new(disk: SimDisk, durability: Durability, model: Model) -> Self {
        let stores = (0..WINDOWS.len()).map(|store| open(&disk, store, durability)).collect();
        Self { disk, durability, stores, model }
    }

    /// Makes a call, and compares what it returns with the model.
    fn call(&mut self, store: usize, id: &'static str, call: &Call) {
        let memory = &self.stores[store];
        let messages = self.model.get(id).cloned().unwrap_or_default();
        match call {
            Call::Add(batch) => {
                let first = messages.len() as u64;
                let appended = memory.append(id, batch).unwrap();
                assert_eq!(appended.seqs, first..first + batch.len() as u64);
                self.model.entry(id).or_default().extend(batch.iter().cloned());
            }
            Call::Get => {
                let expected = match WINDOWS[store] {
                    None => messages,
                    Some((count, step)) => Window::messages(count).with_step(step).view(&messages),
                };
                assert_eq!(memory.get(id).unwrap(), expected);
            }
            Call::Clear => {
                memory.clear(id).unwrap();
                self.model.remove(id);
            }
            Call::Reopen => self.stores[store] = open(&self.disk, store, self.durability),
            Call::History { last, from, count } => {
                let numbered: Vec<(u64, Message)> = (0..).zip(messages).collect();
                let (range, expected) = match last {
                    true => {
                        let skipped = numbered.len().saturating_sub(*count);
                        (HistoryRange::last(*count), numbered[skipped..].to_vec())
                    }
                    false => {
                        let range = HistoryRange::first(*count).from(*from);
                        (range, numbered.into_iter().filter(|(seq, _)| seq >= from).take(*count).collect())
                    }
                };
                let found = memory.history(id, range).unwrap();
                let found: Vec<(u64, Message)> = found.into_iter().map(|entry| (entry.seq, entry.message)).collect();
                assert_eq!(found, expected);
            }
            Call::ViewAt { seq, window } => {
                let window = Window::messages(*window);
                let past = &messages[..messages.len().min(*seq as usize + 1)];
                assert_eq!(memory.view_at(id, *seq, &window).unwrap(), window.view(past));
            }
            Call::Conversations { limit } => {
                let mut request = PageRequest::first(*limit);
                let mut found = BTreeMap::new();
                loop {
                    let page = memory.conversations(&request).unwrap();
                    assert!(page.problems.is_empty(), "{:?}", page.problems);
                    found.extend(page.items.into_iter().map(|item| (item.id, item.messages)));
                    match page.next {
                        Some(next) => request = PageRequest::after(*limit, next),
                        None => break,
                    }
                }
                let expected = self.model.iter().map(|(id, messages)| ((*id).to_owned(), messages.len() as u64));
                assert_eq!(found, expected.collect());
            }
            Call::Verify => {
                let verification = memory.verify(id).unwrap();
                assert_eq!((verification.messages, verification.damage.len()), (messages.len() as u64, 0));
            }
            Call::Repair => assert!(memory.repair(id, Repair::Apply).unwrap().set_aside.is_empty()),
            // What was not synced is gone, or not: with `Disk` all that was acknowledged is there, whatever of the rest.
            Call::PowerCut { outcome } => {
                if self.durability == Durability::Disk {
                    let images = self.disk.after_power_cut();
                    let disk = SimDisk::with_image(&images[outcome % images.len()]);
                    *self = Self::new(disk, self.durability, std::mem::take(&mut self.model));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if full_mode() { 10_000 } else { 500 },
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_sequence_of_calls_agrees_with_a_plain_list(
        durable in any::<bool>(),
        calls in vec((0..WINDOWS.len(), 0..IDS.len(), call()), 1..60),
    ) {
        let durability = if durable { Durability::Disk } else { Durability::Process };
        let mut world = World::new(SimDisk::default(), durability, Model::new());
        for (store, id, call) in &calls {
            world.call(*store, IDS[*id], call);
        }
        for id in IDS {
            for store in 0..WINDOWS.len() {
                world.call(store, id, &Call::Get);
            }
        }
    }
}
