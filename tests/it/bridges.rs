//! From blocking to async and back: the same promises, nothing half done, no runtime held up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use chat_memory::{
    AsyncChatHistory, AsyncChatMemory, AsyncMemoryAdvisor, BlockOn, ChatMemory, Durability, FileChatMemory,
    HistoryRange, INTERRUPTED, InMemoryChatMemory, Message, ModelRequest, Offload, PageRequest, Result, StreamedReply,
    ToolOutput, Window,
};
use tempfile::tempdir;
use tokio::runtime::{Builder, Runtime};

use crate::support::{quick, texts};

const ID: &str = "user-42";

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

#[cfg(feature = "conformance")]
#[test]
fn both_bridges_keep_every_promise() {
    use chat_memory::conformance::Suite;
    let runtime = runtime();
    let there_and_back = |memory| BlockOn::new(Offload::new(memory), runtime.handle().clone());
    let in_memory = || there_and_back(InMemoryChatMemory::new());
    let windowed = |count| there_and_back(InMemoryChatMemory::builder().max_messages(count).build().unwrap());
    let report = Suite::new(in_memory).windowed(windowed).history(in_memory).run();
    assert!(report.is_passed(), "{report}");

    // Behind a pointer to any store.
    let behind_a_pointer = || {
        let memory: Arc<dyn ChatMemory> = Arc::new(InMemoryChatMemory::new());
        let memory: Arc<dyn AsyncChatMemory> = Arc::new(Offload::new(memory));
        BlockOn::new(memory, runtime.handle().clone())
    };
    let report = Suite::new(behind_a_pointer).run();
    assert!(report.is_passed(), "{report}");

    for durability in [Durability::Disk, Durability::Process] {
        let directory = tempdir().unwrap();
        let stores = AtomicUsize::new(0);
        let open = || {
            let place = directory.path().join(stores.fetch_add(1, Ordering::Relaxed).to_string());
            let memory = FileChatMemory::builder(place).durability(durability).open().unwrap();
            BlockOn::new(Offload::new(memory), runtime.handle().clone())
        };
        let report = Suite::new(open).history(open).run();
        assert!(report.is_passed(), "{report}");
    }
}

#[test]
fn everything_that_was_said_can_be_looked_up() {
    let memory = Offload::new(InMemoryChatMemory::new());
    runtime().block_on(async {
        let history: Arc<dyn AsyncChatHistory> = Arc::new(memory.clone());
        let said = vec![Message::user("a"), Message::assistant("b"), Message::user("c")];
        assert_eq!(history.append(ID, said.clone()).await.unwrap().seqs, 0..3);
        let last = history.history(ID, HistoryRange::last(1)).await.unwrap();
        assert_eq!((last[0].seq, last[0].message.text().into_owned()), (2, "c".to_owned()));
        assert_eq!(texts(&history.view_at(ID, 1, &Window::messages(5)).await.unwrap()), ["a", "b"]);
        assert_eq!(history.conversations(&PageRequest::first(5)).await.unwrap().items[0].messages, 3);
        assert_eq!(history.verify(ID).await.unwrap().messages, 3);
        assert_eq!(memory.inner().get(ID).unwrap(), said);
    });
}

/// A memory in which an `add` waits until it is let go.
struct Slow {
    memory: FileChatMemory,
    begun: Sender<()>,
    may_go: std::sync::Mutex<Receiver<()>>,
}

impl ChatMemory for Slow {
    fn add(&self, id: &str, messages: &[Message]) -> Result<()> {
        self.begun.send(()).unwrap();
        self.may_go.lock().unwrap().recv().unwrap();
        self.memory.add(id, messages)
    }

    fn get(&self, id: &str) -> Result<Vec<Message>> {
        self.memory.get(id)
    }

    fn clear(&self, id: &str) -> Result<()> {
        self.memory.clear(id)
    }
}

#[test]
fn a_future_that_is_dropped_leaves_all_of_an_add_or_nothing() {
    let directory = tempdir().unwrap();
    let ((begun, is_begun), (go, may_go)) = (channel(), channel());
    let memory = Offload::new(Slow { memory: quick(directory.path()), begun, may_go: may_go.into() });
    let runtime = runtime();
    let batch = vec![Message::user("a"), Message::assistant("b")];
    runtime.block_on(async {
        // Never polled: nothing happens.
        drop(memory.add(ID, batch.clone()));
        assert_eq!(memory.get(ID).await.unwrap(), []);
        // Dropped while it is at work: all of it is there when it is done.
        let cut = tokio::time::timeout(Duration::from_millis(50), memory.add(ID, batch.clone())).await;
        assert!(cut.is_err());
        is_begun.recv().unwrap();
        assert_eq!(memory.get(ID).await.unwrap(), []);
        go.send(()).unwrap();
        for _ in 0..1_000 {
            let found = memory.get(ID).await.unwrap();
            if !found.is_empty() {
                assert_eq!(found, batch);
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the add is not there");
    });
}

#[test]
fn a_runtime_that_shuts_down_finishes_what_was_begun() {
    let directory = tempdir().unwrap();
    let ((begun, is_begun), (go, may_go)) = (channel(), channel());
    let memory = Offload::new(Slow { memory: quick(directory.path()), begun, may_go: may_go.into() });
    let runtime = runtime();
    let task = runtime.spawn(async move { memory.add(ID, vec![Message::user("a")]).await });
    is_begun.recv().unwrap();
    let release = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        go.send(()).unwrap();
    });
    drop(runtime); // waits for blocking work
    release.join().unwrap();
    drop(task);
    assert_eq!(texts(&quick(directory.path()).get(ID).unwrap()), ["a"]);
}

#[test]
fn a_thousand_conversations_at_once_lose_nothing() {
    let directory = tempdir().unwrap();
    let memory = Offload::new(quick(directory.path()));
    runtime().block_on(async {
        let chats = (0..1_000).map(|number| {
            let memory = memory.clone();
            tokio::spawn(async move {
                let id = number.to_string();
                for turn in 0..3 {
                    memory.add(&id, vec![Message::user(format!("{turn}")), Message::assistant("yes")]).await.unwrap();
                    assert_eq!(memory.get(&id).await.unwrap().len(), 2 * (turn + 1));
                }
            })
        });
        for chat in chats.collect::<Vec<_>>() {
            chat.await.unwrap();
        }
    });
    let fresh = quick(directory.path());
    assert!((0..1_000).all(|number| fresh.get(&number.to_string()).unwrap().len() == 6));
}

#[test]
fn a_turn_runs_async_with_tools_and_stores_the_same() {
    let model = |request: ModelRequest| async move {
        tokio::task::yield_now().await;
        let last = request.messages.last().unwrap();
        Ok::<_, std::io::Error>(match last.tool_results().next() {
            None => Message::assistant("").with_tool_call("c1", "look", "{}"),
            Some(_) => Message::assistant(format!("{} messages", request.messages.len())),
        })
    };
    let advisor = AsyncMemoryAdvisor::builder(Offload::new(InMemoryChatMemory::new()))
        .instructions("Be brief.")
        .tools(|_, call| (call.name == "look").then_some(std::future::ready(ToolOutput::done("nothing"))))
        .build()
        .unwrap();
    runtime().block_on(async {
        // The future can be sent to another thread.
        let turn = tokio::spawn({
            let advisor = advisor.clone();
            async move { advisor.turn(ID, [Message::user("go")], &model).await.unwrap() }
        });
        let outcome = turn.await.unwrap();
        assert_eq!(outcome.answer.unwrap().text(), "4 messages");
        assert_eq!(advisor.memory().get(ID).await.unwrap(), outcome.messages);
        let mut transcript = outcome.messages;
        transcript.push(Message::user("more"));
        assert_eq!(advisor.sync(ID, &transcript).await.unwrap(), 1);
        advisor.clear(ID).await.unwrap();
        assert_eq!(advisor.memory().get(ID).await.unwrap(), []);
    });
}

#[test]
fn an_async_stream_that_breaks_is_kept_as_far_as_it_came() {
    let directory = tempdir().unwrap();
    let advisor = AsyncMemoryAdvisor::new(Offload::new(quick(directory.path())));
    let model = |request: ModelRequest| async move {
        let mut reply = StreamedReply::new();
        for piece in ["Once ", "upon "] {
            tokio::task::yield_now().await;
            reply.text(piece);
        }
        Ok::<_, std::io::Error>(if request.messages.len() == 1 { reply.interrupted() } else { reply.finish() })
    };
    runtime().block_on(async {
        let first = advisor.turn(ID, [Message::user("A story!")], &model).await.unwrap();
        let second = advisor.turn(ID, [Message::user("Again!")], &model).await.unwrap();
        assert_eq!((first.is_interrupted, second.is_interrupted), (true, false));
    });
    let stored = quick(directory.path()).get(ID).unwrap();
    assert_eq!(texts(&stored), ["A story!", "Once upon ", "Again!", "Once upon "]);
    let marks: Vec<bool> = stored.iter().map(|message| message.metadata().get(INTERRUPTED).is_some()).collect();
    assert_eq!(marks, [false, true, false, false]);
}

#[cfg(feature = "file-memory")]
#[test]
fn a_notebook_goes_with_an_async_turn() {
    use chat_memory::{FileMemory, InMemoryFileStore};
    let files = FileMemory::new(InMemoryFileStore::new());
    files.save(ID, "plan.md", b"1. Look.", Some("What to do")).unwrap();
    let advisor = AsyncMemoryAdvisor::builder(Offload::new(InMemoryChatMemory::new()))
        .context(Offload::new(files.clone()))
        .clear_context(true)
        .build()
        .unwrap();
    let model = |request: ModelRequest| async move {
        assert!(!request.tools.is_empty());
        Ok::<_, std::io::Error>(match request.messages.last().unwrap().tool_results().next() {
            None => Message::assistant("").with_tool_call("c1", "FileMemory_ReadFile", r#"{"fileName":"plan.md"}"#),
            Some(result) => Message::assistant(format!("{:?}", result.is_error)),
        })
    };
    runtime().block_on(async {
        let outcome = advisor.turn(ID, [Message::user("go")], &model).await.unwrap();
        assert_eq!(outcome.answer.unwrap().text(), "false");
        assert_eq!(outcome.messages.len(), 4);
        advisor.clear(ID).await.unwrap();
    });
    assert_eq!(files.list(ID).unwrap(), []);
}
