//! What rig says comes back as it was said.

use chat_memory::{ChatMemory, InMemoryChatMemory, Offload, Window};
use chat_memory_rig::{RigMemory, from_rig, to_rig};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rig_core::completion::Message;
use rig_core::memory::ConversationMemory;
use rig_core::transcript::validate_canonical;

use crate::arbitrary::{conversation, message};
use crate::support::quick;

fn same(said: &[Message], came: &[Message]) -> Result<(), TestCaseError> {
    prop_assert_eq!(said.len(), came.len());
    for (said, came) in said.iter().zip(came) {
        prop_assert_eq!(said, came);
    }
    Ok(())
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Appends the messages, so many at a time.
fn append(memory: &impl ConversationMemory, said: &[Message], at_once: usize) {
    block_on(async {
        for batch in said.chunks(at_once) {
            memory.append(&"c".into(), batch.to_vec()).await.unwrap();
        }
    });
}

pub fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_messages_come_back_from_ours(said in vec(message(), 0..6)) {
        let came = to_rig(&from_rig(said.clone()).unwrap());
        prop_assert_eq!(&came.warnings, &[]);
        same(&said, &came.messages)?;
    }

    #[test]
    fn any_messages_come_back_from_a_store_however_they_were_appended(said in vec(message(), 1..6), at_once in 1..6_usize) {
        let memory = RigMemory::offload(InMemoryChatMemory::new());
        append(&memory, &said, at_once);
        let stored = memory.memory().inner().get("c").unwrap();
        same(&said, &to_rig(&stored).messages)?;

        let directory = tempfile::tempdir().unwrap();
        append(&RigMemory::offload(quick(directory.path())), &said, at_once);
        let stored_in_files = quick(directory.path()).get("c").unwrap();
        prop_assert_eq!(&stored_in_files, &stored);
    }

    #[test]
    fn a_conversation_is_loaded_as_it_was_appended(said in conversation(), at_once in 1..8_usize) {
        prop_assert_eq!(validate_canonical(&said), Ok(()));
        let memory = RigMemory::offload(InMemoryChatMemory::new());
        append(&memory, &said, at_once);
        same(&said, &block_on(memory.load(&"c".into())).unwrap())?;

        let directory = tempfile::tempdir().unwrap();
        append(&RigMemory::offload(quick(directory.path())), &said, at_once);
        let memory = RigMemory::new(Offload::new(quick(directory.path())));
        same(&said, &block_on(memory.load(&"c".into())).unwrap())?;
    }

    #[test]
    fn a_window_of_a_conversation_is_one_that_rig_takes(said in conversation(), count in 1..12_usize) {
        let view = Window::messages(count).view(&from_rig(said).unwrap());
        let memory = InMemoryChatMemory::new();
        memory.add("c", &view).unwrap();
        let loaded = block_on(RigMemory::offload(memory).load(&"c".into())).unwrap();
        prop_assert_eq!(validate_canonical(&loaded), Ok(()));
    }
}
