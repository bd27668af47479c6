//! The turn: recall, ask the model, remember.

use std::cell::RefCell;
use std::sync::Mutex;

use chat_memory::{
    ChatMemory, Error, FileChatMemory, INTERRUPTED, InMemoryChatMemory, Interrupted, MemoryAdvisor, Message,
    ModelRequest, OnFailure, OpenCalls, Remember, Reply, Role, StreamedReply, ToolOutput, TurnError, UNANSWERED,
};
use tempfile::tempdir;

use crate::provider::check_sent;
use crate::support::{quick, texts};

const ID: &str = "user-42";

#[derive(Debug, PartialEq)]
struct ModelIsDown;

/// A model that gives these replies one after the other, and notes what it was sent.
struct Scripted {
    replies: RefCell<Vec<Result<Reply, ModelIsDown>>>,
    sent: RefCell<Vec<ModelRequest>>,
}

impl Scripted {
    fn new(replies: impl IntoIterator<Item = Result<Reply, ModelIsDown>>) -> Self {
        let mut replies: Vec<_> = replies.into_iter().collect();
        replies.reverse();
        Self { replies: RefCell::new(replies), sent: RefCell::default() }
    }

    fn sent(&self) -> Vec<ModelRequest> {
        self.sent.borrow().clone()
    }
}

impl chat_memory::Model for Scripted {
    type Error = ModelIsDown;

    fn call(&self, request: &ModelRequest) -> Result<Reply, ModelIsDown> {
        check_sent(&request.messages).unwrap();
        self.sent.borrow_mut().push(request.clone());
        self.replies.borrow_mut().pop().expect("the model is asked too often")
    }
}

fn says(text: &str) -> Result<Reply, ModelIsDown> {
    Ok(Message::assistant(text).into())
}

fn calls(id: &str, name: &str, arguments: &str) -> Result<Reply, ModelIsDown> {
    Ok(Message::assistant("").with_tool_call(id, name, arguments).into())
}

#[test]
fn question_and_answer_are_sent_in_order_and_remembered_together() {
    let directory = tempdir().unwrap();
    let advisor = MemoryAdvisor::new(FileChatMemory::builder(directory.path()).max_messages(2).open().unwrap());
    let model = Scripted::new([says("hi"), says("fine")]);
    let outcome = advisor.turn(ID, [Message::user("hello")], &model).unwrap();
    assert_eq!(outcome.answer.unwrap().text(), "hi");
    assert_eq!(texts(&outcome.messages), ["hello", "hi"]);
    advisor.turn(ID, [Message::user("how are you?")], &model).unwrap();
    assert_eq!(texts(&model.sent()[1].messages), ["hello", "hi", "how are you?"]);
    assert_eq!(texts(&quick(directory.path()).get(ID).unwrap()), ["hello", "hi", "how are you?", "fine"]);
    // In one piece each: a cut anywhere leaves question and answer, or neither.
    let bytes = std::fs::read(advisor.memory().path(ID)).unwrap();
    assert_eq!(bytes.windows(4).filter(|window| window == b"\xf5CMf").count(), 2);
}

#[test]
fn a_model_that_fails_leaves_no_trace_and_a_retry_stores_the_question_once() {
    let advisor = MemoryAdvisor::new(InMemoryChatMemory::new());
    let model = Scripted::new([Err(ModelIsDown), says("hi")]);
    let failed = advisor.turn(ID, [Message::user("hello")], &model).unwrap_err();
    assert!(matches!(failed, TurnError::Model(ModelIsDown)));
    assert_eq!(advisor.memory().get(ID).unwrap(), []);
    advisor.turn(ID, [Message::user("hello")], &model).unwrap();
    assert_eq!(texts(&advisor.memory().get(ID).unwrap()), ["hello", "hi"]);
}

#[test]
fn a_question_that_is_kept_is_marked_and_a_retry_stores_it_once() {
    for question in [Message::user("hello"), Message::user("hello").with_id("q1")] {
        let memory = InMemoryChatMemory::new();
        memory.add(ID, &[Message::user("before"), Message::assistant("yes")]).unwrap();
        let advisor = MemoryAdvisor::builder(memory).on_failure(OnFailure::Keep).build().unwrap();
        let model = Scripted::new([Err(ModelIsDown), Err(ModelIsDown), says("hi"), says("again")]);
        for _ in 0..2 {
            advisor.turn(ID, [question.clone()], &model).unwrap_err();
            let kept = advisor.memory().get(ID).unwrap();
            assert_eq!(texts(&kept), ["before", "yes", "hello"]);
            assert_eq!(kept[2].metadata().get(UNANSWERED), Some(&true.into()));
        }
        let outcome = advisor.turn(ID, [question.clone()], &model).unwrap();
        assert_eq!(texts(&outcome.messages), ["hi"]);
        assert_eq!(texts(&model.sent()[2].messages), ["before", "yes", "hello"]);
        assert_eq!(texts(&advisor.memory().get(ID).unwrap()), ["before", "yes", "hello", "hi"]);
        // The same words again are a new question, once the first was answered.
        if question.id().is_none() {
            advisor.turn(ID, [question], &model).unwrap();
            assert_eq!(advisor.memory().get(ID).unwrap().len(), 6);
        }
    }
}

#[test]
fn a_message_with_an_id_is_stored_once_and_its_answer_comes_back_without_asking_again() {
    let advisor = MemoryAdvisor::new(InMemoryChatMemory::new());
    let model = Scripted::new([says("hi"), says("more")]);
    let question = Message::user("hello").with_id("q1");
    let first = advisor.turn(ID, [question.clone()], &model).unwrap();
    let again = advisor.turn(ID, [question.clone()], &model).unwrap();
    assert_eq!((again.answer, again.messages), (first.answer, vec![]));
    assert_eq!(advisor.memory().get(ID).unwrap().len(), 2);
    // In an older turn an id says nothing.
    advisor.turn(ID, [Message::user("next").with_id("q2")], &model).unwrap();
    assert_eq!(model.sent().len(), 2);
}

#[test]
fn tools_are_run_and_their_rounds_remembered_whole() {
    for (remember, batches) in [(Remember::Turn, 1), (Remember::Step, 5)] {
        let directory = tempdir().unwrap();
        let advisor = MemoryAdvisor::builder(quick(directory.path()))
            .tools(|id, call| {
                assert_eq!(id, ID);
                (call.name == "double").then(|| ToolOutput::done(call.arguments.repeat(2)))
            })
            .remember(remember)
            .build()
            .unwrap();
        let model = Scripted::new([calls("c1", "double", "ab"), calls("c2", "double", "cd"), says("done")]);
        let outcome = advisor.turn(ID, [Message::user("go")], &model).unwrap();
        assert_eq!(outcome.messages.len(), 6);
        let stored = advisor.memory().get(ID).unwrap();
        assert_eq!(stored, outcome.messages);
        let results: Vec<_> = stored.iter().flat_map(Message::tool_results).collect();
        assert_eq!(results[0].call_id, "c1");
        assert_eq!(texts(&model.sent()[2].messages).len(), 5);
        let bytes = std::fs::read(advisor.memory().path(ID)).unwrap();
        assert_eq!(bytes.windows(4).filter(|window| window == b"\xf5CMf").count(), batches);
    }
}

#[test]
fn calls_that_nobody_knows_are_handed_back_and_answered_in_a_next_turn() {
    let advisor = MemoryAdvisor::builder(InMemoryChatMemory::new())
        .tools(|_, call| (call.name == "known").then(|| ToolOutput::refused("no")))
        .build()
        .unwrap();
    let both = Message::assistant("").with_tool_call("c1", "known", "{}").with_tool_call("c2", "mine", "{}");
    let model = Scripted::new([Ok(both.into()), says("done")]);
    let outcome = advisor.turn(ID, [Message::user("go")], &model).unwrap();
    assert_eq!(outcome.open_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["c2"]);
    assert_eq!(advisor.memory().get(ID).unwrap().len(), 3);
    let done = advisor.turn(ID, [Message::tool_result("c2", "mine", "42")], &model).unwrap();
    assert_eq!(done.answer.unwrap().text(), "done");
    let sent = &model.sent()[1].messages;
    let results: Vec<(&str, bool)> =
        sent.iter().flat_map(Message::tool_results).map(|result| (result.call_id.as_str(), result.is_error)).collect();
    assert_eq!(results, [("c1", true), ("c2", false)]);
}

#[test]
fn a_caller_that_runs_the_tools_itself_hands_over_all_rounds() {
    let advisor = MemoryAdvisor::new(InMemoryChatMemory::new());
    let rounds = vec![
        Message::assistant("").with_tool_call("c1", "look", "{}"),
        Message::tool_result("c1", "look", "nothing"),
        Message::assistant("There is nothing."),
    ];
    let model = Scripted::new([Ok(rounds.clone().into())]);
    let outcome = advisor.turn(ID, [Message::user("go")], &model).unwrap();
    assert_eq!(outcome.messages[1..], rounds);
    assert_eq!(outcome.open_calls, []);
    assert_eq!(advisor.memory().get(ID).unwrap().len(), 4);
}

#[test]
fn a_model_that_calls_tools_for_ever_is_stopped_and_nothing_said_is_lost() {
    let advisor = MemoryAdvisor::builder(InMemoryChatMemory::new())
        .tools(|_, _| Some(ToolOutput::done("again")))
        .max_rounds(3)
        .build()
        .unwrap();
    let model = Scripted::new((0..3).map(|number| calls(&format!("c{number}"), "loop", "{}")));
    let stopped = advisor.turn(ID, [Message::user("go")], &model).unwrap_err();
    assert!(matches!(stopped, TurnError::TooManyRounds { rounds: 3 }));
    assert_eq!(advisor.memory().get(ID).unwrap().len(), 7);
    let error = MemoryAdvisor::builder(InMemoryChatMemory::new()).max_rounds(0).build().unwrap_err();
    assert!(matches!(error, Error::InvalidOption { option: "max_rounds", .. }));
}

#[test]
fn an_answer_that_was_cut_off_is_kept_and_marked_or_left_out() {
    let cut = || Ok(Reply::interrupted(Message::assistant("Once upon").with_tool_call("c1", "loo", "{\"a")));
    let advisor = MemoryAdvisor::builder(InMemoryChatMemory::new())
        .tools(|_, _| panic!("a call that was cut off is not run"))
        .build()
        .unwrap();
    let model = Scripted::new([cut(), says("a time.")]);
    let outcome = advisor.turn(ID, [Message::user("A story!")], &model).unwrap();
    assert!(outcome.is_interrupted && outcome.open_calls.is_empty());
    assert_eq!(outcome.answer.as_ref(), outcome.messages.last(), "marked as it is remembered");
    let stored = advisor.memory().get(ID).unwrap();
    assert_eq!(texts(&stored), ["A story!", "Once upon"]);
    assert_eq!(stored[1].metadata().get(INTERRUPTED), Some(&true.into()));
    advisor.turn(ID, [Message::user("Go on.")], &model).unwrap();

    for (on_failure, stored) in [(OnFailure::Forget, 0), (OnFailure::Keep, 1)] {
        let builder = MemoryAdvisor::builder(InMemoryChatMemory::new()).interrupted(Interrupted::Forget);
        let advisor = builder.on_failure(on_failure).build().unwrap();
        let outcome = advisor.turn(ID, [Message::user("A story!")], &Scripted::new([cut()])).unwrap();
        assert_eq!(outcome.answer.unwrap().text(), "Once upon");
        assert_eq!((outcome.messages.len(), advisor.memory().get(ID).unwrap().len()), (stored, stored));
    }
}

/// A stream that broke off after these pieces of text, with one call that was whole and one that was not.
fn broken_stream(pieces: &[&str]) -> Result<Reply, ModelIsDown> {
    let mut reply = StreamedReply::new();
    reply.reasoning("hm");
    pieces.iter().for_each(|piece| reply.text(piece));
    if !pieces.is_empty() {
        reply.tool_call(0, Some("c1"), Some("look"), "{\"at\":1}");
        reply.tool_call(1, Some("c2"), Some("look"), "{\"a");
    }
    Ok(reply.interrupted())
}

#[test]
fn of_a_stream_that_breaks_what_came_is_kept_and_the_next_turn_is_valid() {
    for open_calls in [OpenCalls::Interrupt, OpenCalls::Drop] {
        let memory = InMemoryChatMemory::builder().max_messages(4).build().unwrap();
        let builder = MemoryAdvisor::builder(memory).open_calls(open_calls);
        let advisor = builder.tools(|_, _| panic!("nobody waits for a call that was cut off")).build().unwrap();
        // Whatever is sent is checked by the model.
        let model = Scripted::new([broken_stream(&["Once ", "upon "]), says("a time."), says("The end.")]);
        let outcome = advisor.turn(ID, [Message::user("A story!")], &model).unwrap();
        assert!(outcome.is_interrupted && outcome.open_calls.is_empty());
        let stored = advisor.memory().get(ID).unwrap();
        assert_eq!(texts(&stored), ["A story!", "Once upon "]);
        assert_eq!(stored[1].metadata().get(INTERRUPTED), Some(&true.into()));
        assert_eq!(stored[1].tool_calls().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["c1"]);
        advisor.turn(ID, [Message::user("Go on.")], &model).unwrap();
        advisor.turn(ID, [Message::user("And?")], &model).unwrap();
        let results = model.sent()[1].messages.iter().flat_map(Message::tool_results).count();
        assert_eq!(results, if open_calls == OpenCalls::Interrupt { 1 } else { 0 });
    }
}

#[test]
fn a_stream_that_is_to_be_forgotten_or_broke_before_its_first_word_is_a_failure() {
    for (on_failure, interrupted, pieces) in [
        (OnFailure::Forget, Interrupted::Forget, &["Once "][..]),
        (OnFailure::Keep, Interrupted::Forget, &["Once "]),
        (OnFailure::Forget, Interrupted::Keep, &[]),
        (OnFailure::Keep, Interrupted::Keep, &[]),
    ] {
        let builder = MemoryAdvisor::builder(InMemoryChatMemory::new()).interrupted(interrupted);
        let advisor = builder.on_failure(on_failure).build().unwrap();
        let model = Scripted::new([broken_stream(pieces), says("Once upon a time.")]);
        let outcome = advisor.turn(ID, [Message::user("A story!")], &model).unwrap();
        assert!(outcome.is_interrupted);
        assert_eq!(
            outcome.answer.map(|answer| answer.text().into_owned()),
            pieces.first().map(|text| (*text).to_owned())
        );
        let stored = advisor.memory().get(ID).unwrap();
        match on_failure {
            OnFailure::Keep => assert_eq!(stored[0].metadata().get(UNANSWERED), Some(&true.into())),
            _ => assert_eq!(stored, []),
        }
        // Asked again, it is stored once, and so is the answer.
        advisor.turn(ID, [Message::user("A story!")], &model).unwrap();
        assert_eq!(texts(&advisor.memory().get(ID).unwrap()), ["A story!", "Once upon a time."]);
    }
}

#[test]
fn instructions_are_sent_at_every_call_and_never_stored() {
    let builder = MemoryAdvisor::builder(InMemoryChatMemory::new()).instructions("You are kind.");
    let advisor = builder.build().unwrap();
    let model = Scripted::new([says("hi"), says("fine")]);
    advisor.turn(ID, [Message::system("Be brief."), Message::user("hello")], &model).unwrap();
    advisor.turn(ID, [Message::user("and?")], &model).unwrap();
    assert_eq!(texts(&model.sent()[1].messages), ["You are kind.", "Be brief.", "hello", "hi", "and?"]);
    assert_eq!(texts(&advisor.memory().get(ID).unwrap()), ["Be brief.", "hello", "hi", "and?", "fine"]);
    assert!(!format!("{advisor:?}").contains("kind"));
}

#[test]
fn an_answer_without_content_is_not_stored_and_the_question_is() {
    for blank in ["", " \n"] {
        let advisor = MemoryAdvisor::new(InMemoryChatMemory::new());
        let outcome = advisor.turn(ID, [Message::user("hello")], &Scripted::new([says(blank)])).unwrap();
        assert_eq!(outcome.answer, None);
        assert_eq!(texts(&advisor.memory().get(ID).unwrap()), ["hello"]);
    }
}

/// A memory in which one method fails.
struct Failing {
    memory: InMemoryChatMemory,
    fails: Mutex<&'static str>,
}

impl Failing {
    fn check(&self, method: &str) -> chat_memory::Result<()> {
        let fails = *self.fails.lock().unwrap() == method;
        if fails { Err(Error::Backend { backend: "test", source: "it fails".into() }) } else { Ok(()) }
    }
}

impl ChatMemory for Failing {
    fn add(&self, id: &str, messages: &[Message]) -> chat_memory::Result<()> {
        self.check("add")?;
        self.memory.add(id, messages)
    }

    fn get(&self, id: &str) -> chat_memory::Result<Vec<Message>> {
        self.check("get")?;
        self.memory.get(id)
    }

    fn clear(&self, id: &str) -> chat_memory::Result<()> {
        self.memory.clear(id)
    }
}

#[test]
fn a_memory_that_fails_costs_no_answer_and_no_call() {
    let advisor = MemoryAdvisor::new(Failing { memory: InMemoryChatMemory::new(), fails: Mutex::new("get") });
    let failed = advisor.turn(ID, [Message::user("hello")], &Scripted::new([])).unwrap_err();
    assert!(matches!(failed, TurnError::Recall(_)));
    *advisor.memory().fails.lock().unwrap() = "add";
    let failed = advisor.turn(ID, [Message::user("hello")], &Scripted::new([says("hi")])).unwrap_err();
    match failed {
        TurnError::Remember { messages, source } => {
            assert_eq!(texts(&messages), ["hello", "hi"]);
            assert!(matches!(source, Error::Backend { .. }));
        }
        other => panic!("{other:?}"),
    }
    let error = advisor.turn(ID, [Message::user("hello")], &|_: &ModelRequest| -> Result<Message, std::io::Error> {
        Ok(Message::assistant("hi"))
    });
    assert_eq!(error.unwrap_err().to_string(), "the model answered, and 2 messages could not be remembered");
}

#[test]
fn what_a_killed_process_left_open_is_sent_as_interrupted_and_the_turn_goes_on() {
    let memory = InMemoryChatMemory::new();
    memory.add(ID, &[Message::user("build"), Message::assistant("").with_tool_call("t", "make", "{}")]).unwrap();
    for (open_calls, count) in [(OpenCalls::Interrupt, 4), (OpenCalls::Drop, 2)] {
        let advisor = MemoryAdvisor::builder(&memory).open_calls(open_calls).build().unwrap();
        let model = Scripted::new([Err(ModelIsDown)]);
        advisor.turn(ID, [Message::user("and?")], &model).unwrap_err();
        assert_eq!(model.sent()[0].messages.len(), count);
    }
}

#[test]
fn a_whole_transcript_stores_what_is_new_and_one_that_went_another_way_is_a_conflict() {
    let advisor = MemoryAdvisor::new(InMemoryChatMemory::builder().max_messages(2).build().unwrap());
    let transcript: Vec<Message> = std::iter::once(Message::system("Be brief."))
        .chain((0..10).flat_map(|n| [Message::user(format!("q{n}")), Message::assistant(format!("a{n}"))]))
        .collect();
    assert_eq!(advisor.sync(ID, &[]).unwrap(), 0);
    for end in 1..=transcript.len() {
        assert_eq!(advisor.sync(ID, &transcript[..end]).unwrap(), 1, "{end}");
        assert_eq!(advisor.sync(ID, &transcript[..end]).unwrap(), 0, "{end}");
    }
    // The head was cut off by the caller; ids and times of a client say nothing.
    let tail = [
        Message::assistant("a8").with_id("x"),
        Message::user("q9").with_metadata("m", 1),
        Message::assistant("a9"),
        Message::user("new"),
    ];
    assert_eq!(advisor.sync(ID, &tail).unwrap(), 1);
    let mut other = transcript.clone();
    other[20] = Message::assistant("another answer");
    other.push(Message::user("new"));
    assert!(matches!(advisor.sync(ID, &other), Err(Error::Conflict { .. })));
    use chat_memory::{ChatHistory, HistoryRange};
    assert_eq!(advisor.memory().history(ID, HistoryRange::all()).unwrap().len(), 22);
}

#[cfg(feature = "file-memory")]
mod notebook {
    use super::*;
    use chat_memory::{FileMemory, InMemoryFileStore};

    #[test]
    fn a_notebook_goes_before_the_conversation_and_is_never_stored_in_it() {
        let files = FileMemory::new(InMemoryFileStore::new());
        files.save(ID, "plan.md", b"1. Look.", Some("What to do")).unwrap();
        let memory = InMemoryChatMemory::new();
        memory.add(ID, &[Message::system("Be brief.")]).unwrap();
        let advisor = MemoryAdvisor::builder(memory).context(files.clone()).clear_context(true).build().unwrap();
        let model = Scripted::new([
            calls("c1", "FileMemory_ReadFile", r#"{"fileName":"plan.md"}"#),
            calls("c2", "FileMemory_SaveFile", r#"{"fileName":"done.md","content":"yes"}"#),
            calls("c3", "FileMemory_ReadFile", "not JSON"),
            says("I looked."),
            says("Again."),
        ]);
        let outcome = advisor.turn(ID, [Message::user("Go on.")], &model).unwrap();
        assert_eq!(outcome.answer.unwrap().text(), "I looked.");
        let sent = model.sent();
        let roles: Vec<Role> = sent[0].messages.iter().map(Message::role).collect();
        assert_eq!(roles, [Role::System, Role::System, Role::User, Role::User]);
        assert!(sent[0].messages[2].text().contains("plan.md"));
        assert_eq!(sent[0].tools.len(), files.tools().len());
        let results: Vec<bool> = sent[3].messages.iter().flat_map(Message::tool_results).map(|r| r.is_error).collect();
        assert_eq!(results, [false, false, true]);
        // What was stored: the system message, the question, three rounds and the answer.
        let stored = advisor.memory().get(ID).unwrap();
        assert_eq!(stored.len(), 9);
        assert!(stored.iter().all(|message| !message.text().contains("Memory Index")));
        advisor.turn(ID, [Message::user("And?")], &model).unwrap();
        assert_eq!(files.read(ID, "done.md").unwrap().unwrap(), b"yes");

        advisor.clear(ID).unwrap();
        assert_eq!(files.list(ID).unwrap(), []);
        assert_eq!(advisor.memory().get(ID).unwrap(), []);
        // By default a notebook outlives its conversation.
        let advisor = MemoryAdvisor::builder(InMemoryChatMemory::new()).context(files.clone()).build().unwrap();
        files.save(ID, "kept.md", b"x", None).unwrap();
        advisor.clear(ID).unwrap();
        assert_eq!(files.list(ID).unwrap().len(), 1);
    }
}
