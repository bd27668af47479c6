//! rig's agents with a memory of ours: what their model is sent.

use std::path::Path;
use std::sync::Arc;

use chat_memory::transcript::openai;
use chat_memory::{
    AsyncChatMemory, BoxFuture, ChatMemory, Error, FileChatMemory, InMemoryChatMemory, Message, Offload, OpenCalls,
    Recovery, Role,
};
use chat_memory_rig::RigMemory;
use rig_core::memory::{ConversationMemory, MemoryError};
use serde_json::{Value, json};

use crate::server::{Server, calls, says};
use crate::support::{agent, agent_at, child_part, quick, run_child};

/// A model that measures before its first answer to each question, and counts what it was asked.
fn model() -> Server {
    Server::start(|request| {
        let messages = request["messages"].as_array().unwrap();
        let questions = messages.iter().filter(|message| message["role"] == "user").count();
        match messages.last().unwrap()["role"].as_str() {
            Some("user") => calls(&format!("call-{questions}"), "thermometer", &json!({"city": "Oslo"})),
            _ => says(&format!("answer {questions}")),
        }
    })
    .unwrap()
}

fn system() -> Value {
    json!({"role": "system", "content": [{"type": "text", "text": "You know the weather."}]})
}

fn asked(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn called(id: &str) -> Value {
    let function = json!({"name": "thermometer", "arguments": "{\"city\":\"Oslo\"}"});
    json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]})
}

fn measured(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "{\"city\":\"Oslo\",\"celsius\":-4}"})
}

fn answered(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// The messages of each request.
fn sent(server: &Server) -> Vec<Vec<Value>> {
    server.received().iter().map(|request| request["messages"].as_array().unwrap().clone()).collect()
}

#[tokio::test]
async fn after_a_restart_the_model_is_sent_what_was_said_before() {
    let directory = tempfile::tempdir().unwrap();
    let server = model();
    for question in ["one?", "two?"] {
        let agent = agent(&server, RigMemory::offload(quick(directory.path())));
        let response = agent.prompt(question).conversation("c").await.unwrap();
        assert!(response.memory_append().unwrap().is_acknowledged());
    }
    let first = [system(), asked("one?"), called("call-1"), measured("call-1"), answered("answer 1")];
    let second = [asked("two?"), called("call-2"), measured("call-2")];
    assert_eq!(
        sent(&server),
        [&first[..2], &first[..4], &[&first[..], &second[..1]].concat(), &[&first[..], &second[..]].concat()]
    );

    // The same by another reader of the files.
    let stored = quick(directory.path()).get("c").unwrap();
    let roles: Vec<_> = stored.iter().map(Message::role).collect();
    assert_eq!(roles[..4], [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    let export = openai::write(&stored);
    let exported: Vec<Value> = export.objects.iter().map(|object| serde_json::from_str(object).unwrap()).collect();
    assert_eq!(exported[0], asked("one?"));
    assert_eq!(exported[1]["tool_calls"], called("call-1")["tool_calls"]);
    assert_eq!(exported[2]["content"], measured("call-1")["content"]);
    assert_eq!(exported[7], answered("answer 2"));
}

#[tokio::test]
async fn after_the_end_of_a_process_the_model_is_sent_what_was_said_before() {
    if let Some(part) = child_part() {
        let (directory, base_url) = part.split_once('\n').unwrap();
        let agent = agent_at(base_url, RigMemory::offload(FileChatMemory::open(directory).unwrap()));
        assert_eq!(agent.prompt("one?").conversation("c").await.unwrap().output(), "answer 1");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let server = model();
    let part = format!("{}\n{}", directory.path().display(), server.base_url());
    run_child("agents::after_the_end_of_a_process_the_model_is_sent_what_was_said_before", &part);

    let agent = agent(&server, RigMemory::offload(FileChatMemory::open(directory.path()).unwrap()));
    assert_eq!(agent.prompt("two?").conversation("c").await.unwrap().output(), "answer 2");
    let before = [system(), asked("one?"), called("call-1"), measured("call-1"), answered("answer 1"), asked("two?")];
    assert_eq!(sent(&server)[2], before);
}

#[tokio::test]
async fn conversations_are_kept_apart_and_cleared_one_by_one() {
    let server = Server::start(|_| says("yes")).unwrap();
    let store: Arc<dyn AsyncChatMemory> = Arc::new(Offload::new(InMemoryChatMemory::new()));
    let memory = RigMemory::new(store);
    let agent = agent(&server, memory.clone());
    for (conversation, question) in [("a", "one?"), ("b", "two?"), ("a", "three?")] {
        agent.prompt(question).conversation(conversation).await.unwrap();
    }
    assert_eq!(sent(&server)[1], [system(), asked("two?")]);
    assert_eq!(sent(&server)[2], [system(), asked("one?"), answered("yes"), asked("three?")]);

    memory.clear(&"a".into()).await.unwrap();
    agent.prompt("four?").conversation("a").await.unwrap();
    agent.prompt("five?").conversation("b").await.unwrap();
    assert_eq!(sent(&server)[3], [system(), asked("four?")]);
    assert_eq!(sent(&server)[4], [system(), asked("two?"), answered("yes"), asked("five?")]);
}

#[tokio::test]
async fn a_conversation_that_cannot_be_read_is_not_answered() {
    let directory = tempfile::tempdir().unwrap();
    let server = model();
    let question = async || {
        let store = FileChatMemory::builder(directory.path()).recovery(Recovery::Strict).open().unwrap();
        agent(&server, RigMemory::offload(store)).prompt("one?").conversation("c").await
    };
    // What is damaged must not look like the end of a write that never finished.
    question().await.unwrap();
    question().await.unwrap();
    let sent_before = server.received().len();

    damage(directory.path());
    let error = question().await.err().unwrap();
    assert!(format!("{error}").contains("is damaged at byte"), "{error}");
    assert_eq!(server.received().len(), sent_before);
}

/// Changes a letter of the first answer, where it is stored.
fn damage(directory: &Path) {
    let answer = b"answer 1";
    let holds_it = |bytes: &[u8]| bytes.windows(answer.len()).position(|window| window == answer);
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let found = files.filter(|path| path.is_file()).find_map(|path| {
        let bytes = std::fs::read(&path).unwrap();
        holds_it(&bytes).map(|at| (path, bytes, at))
    });
    let (path, mut bytes, at) = found.unwrap();
    bytes[at] = b'A';
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_blank_conversation_id_is_refused_as_the_store_refuses_it() {
    let server = model();
    let memory = RigMemory::offload(InMemoryChatMemory::new());
    for failed in [
        memory.load(&" ".into()).await.map(drop),
        memory.append(&" ".into(), vec!["hello".into()]).await,
        memory.clear(&" ".into()).await,
    ] {
        let Err(MemoryError::Backend(source)) = failed else { panic!("{failed:?}") };
        assert!(matches!(source.downcast_ref(), Some(Error::InvalidConversationId)), "{source}");
    }
    assert!(agent(&server, memory).prompt("one?").conversation(" ").await.is_err());
    assert_eq!(server.received().len(), 0);
}

/// Takes nothing.
struct Full;

impl AsyncChatMemory for Full {
    fn add<'a>(&'a self, _: &'a str, _: Vec<Message>) -> BoxFuture<'a, chat_memory::Result<()>> {
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Box::pin(async { Err(Error::Io { operation: "write", path: "c.log".into(), source }) })
    }

    fn get<'a>(&'a self, _: &'a str) -> BoxFuture<'a, chat_memory::Result<Vec<Message>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn clear<'a>(&'a self, _: &'a str) -> BoxFuture<'a, chat_memory::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn an_append_that_fails_is_told_beside_the_answer() {
    let server = model();
    let response = agent(&server, RigMemory::new(Full)).prompt("one?").conversation("c").await.unwrap();
    assert_eq!(response.output(), "answer 1");
    let failure = response.memory_append().unwrap().failure().unwrap();
    assert!(failure.to_string().contains("cannot write c.log"), "{failure}");
}

#[tokio::test]
async fn a_turn_that_fails_leaves_nothing_behind() {
    let store = Arc::new(InMemoryChatMemory::new());
    let server = Server::start(|_| json!({"error": {"message": "overloaded"}})).unwrap();
    let agent = agent(&server, RigMemory::offload(Arc::clone(&store)));
    assert!(agent.prompt("one?").conversation("c").await.is_err());
    assert_eq!(store.get("c").unwrap(), []);
}

#[tokio::test]
async fn a_window_shows_whole_turns_from_a_question_on() {
    let directory = tempfile::tempdir().unwrap();
    let server = model();
    let store = FileChatMemory::builder(directory.path()).max_messages(6).open().unwrap();
    let agent = agent(&server, RigMemory::offload(store));
    for number in 1..=4 {
        let response = agent.prompt(format!("question {number}?")).conversation("c").await.unwrap();
        assert!(response.memory_append().unwrap().is_acknowledged());
    }
    // Of each turn of four messages one fits, and not the half of the one before.
    let last = sent(&server).pop().unwrap();
    let ids: Vec<_> = last.iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
    let expected = [
        system(),
        asked("question 3?"),
        called(ids[0]),
        measured(ids[0]),
        answered("answer 2"),
        asked("question 4?"),
        called(ids[1]),
        measured(ids[1]),
    ];
    assert_eq!(last, expected);
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn call_ids_that_a_server_repeats_are_sent_as_different_ones() {
    let server =
        Server::start(|request| match request["messages"].as_array().unwrap().last().unwrap()["role"].as_str() {
            Some("user") => calls("call-1", "thermometer", &json!({"city": "Oslo"})),
            _ => says("cold"),
        })
        .unwrap();
    let agent = agent(&server, RigMemory::offload(InMemoryChatMemory::new()));
    for question in ["one?", "two?", "three?"] {
        agent.prompt(question).conversation("c").await.unwrap();
    }
    let turn = |question, id| [asked(question), called(id), measured(id), answered("cold")];
    let expected = [&[system()][..], &turn("one?", "call-1"), &turn("two?", "call-1_2"), &[asked("three?")]].concat();
    assert_eq!(sent(&server)[4], expected);
}

#[tokio::test]
async fn a_call_without_a_result_is_closed_before_the_question() {
    let call = Message::new(Role::Assistant, []).with_tool_call("x", "thermometer", "{\"city\":\"Oslo\"}");
    let conversation = [Message::assistant("Hello! Ask me."), Message::user("one?"), call];
    for (open_calls, stored) in [(OpenCalls::Interrupt, 3), (OpenCalls::Drop, 1)] {
        let server = Server::start(|_| says("well")).unwrap();
        let store = InMemoryChatMemory::new();
        store.add("c", &conversation).unwrap();
        let memory = RigMemory::offload(store).with_open_calls(open_calls);
        agent(&server, memory).prompt("two?").conversation("c").await.unwrap();
        let sent = sent(&server).pop().unwrap();
        let interrupted = json!({"role": "tool", "tool_call_id": "x", "content": "interrupted: the tool call has no recorded result"});
        let shown = [asked("one?"), called("x"), interrupted];
        assert_eq!(sent.len(), if stored == 1 { 2 } else { 5 });
        if open_calls == OpenCalls::Interrupt {
            assert_eq!(sent, [&[system()], &shown[..], &[asked("two?")]].concat());
        } else {
            // rig makes one message of two that follow each other.
            let texts = json!([{"type": "text", "text": "one?"}, {"type": "text", "text": "two?"}]);
            assert_eq!(sent, [system(), json!({"role": "user", "content": texts})]);
        }
    }
}

#[tokio::test]
async fn a_conversation_of_another_adapter_goes_on_with_rig() {
    let imported = openai::read(
        r#"[
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "name": "ann", "content": [
            {"type": "text", "text": "Which is colder?"},
            {"type": "image_url", "image_url": {"url": "https://example.com/map.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "thermometer", "arguments": "{\"city\": \"Oslo\"}"}},
            {"id": "b", "type": "function", "function": {"name": "thermometer", "arguments": "{\"city\": "}}]},
        {"role": "tool", "tool_call_id": "a", "content": "-4"},
        {"role": "tool", "tool_call_id": "b", "content": "no such city"},
        {"role": "assistant", "content": "Oslo."}]"#,
    )
    .unwrap();
    let server = Server::start(|_| says("well")).unwrap();
    let store = InMemoryChatMemory::new();
    store.add("c", &imported.messages).unwrap();
    agent(&server, RigMemory::offload(store)).prompt("Sure?").conversation("c").await.unwrap();

    let call = |id, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "thermometer", "arguments": arguments}});
    let image = |url| json!({"type": "image_url", "image_url": {"url": url, "detail": "auto"}});
    let expected = [
        system(),
        json!({"role": "system", "content": [{"type": "text", "text": "Be brief."}]}),
        json!({"role": "user", "content": [
            {"type": "text", "text": "Which is colder?"},
            image("https://example.com/map.png"),
            image("data:image/png;base64,AAEC"),
        ]}),
        // What the model broke off is no object, which rig does not send.
        json!({"role": "assistant", "tool_calls": [call("a", "{\"city\":\"Oslo\"}"), call("b", "{}")]}),
        json!({"role": "tool", "tool_call_id": "a", "content": "-4"}),
        json!({"role": "tool", "tool_call_id": "b", "content": "no such city"}),
        answered("Oslo."),
        asked("Sure?"),
    ];
    assert_eq!(sent(&server).pop().unwrap(), expected);
}
