//! The window through a memory: its rules in words, and what it does to the head of the view.

use chat_memory::{
    ChatMemory, Durability, Error, FileChatMemory, InMemoryChatMemory, Message, OpenCalls, Role, TokenEstimate, Window,
    model_ready,
};

use crate::support::texts;

/// `s`, `u`, `a`: system, user, assistant; `A1`: a call with id 1, `A12`: calls 1 and 2; `t1`: the result of call 1.
fn message(word: &str) -> Message {
    let (role, rest) = word.split_at(1);
    let message = match role {
        "s" => Message::system(word),
        "u" => Message::user(word),
        "a" => Message::assistant(word),
        "A" => rest.chars().fold(Message::new(Role::Assistant, []), |m, id| m.with_tool_call(id, "f", "{}")),
        "t" => Message::tool_result(rest, "f", "r"),
        other => panic!("unknown word {other}"),
    };
    message.with_id(word)
}

fn view(window: &Window, words: &str) -> String {
    let messages: Vec<Message> = words.split(' ').map(message).collect();
    let view = window.view(&messages);
    view.iter().filter_map(Message::id).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_tool_round_is_shown_whole_or_not_at_all() {
    let words = "s u1 a1 u2 A12 t1 t2 a2 u3";
    for (counts, expected) in [(1..=6, "s u3"), (7..=8, "s u2 A12 t1 t2 a2 u3"), (9..=20, words)] {
        for count in counts {
            assert_eq!(view(&Window::messages(count), words), expected, "{count}");
        }
    }
}

#[test]
fn a_turn_that_does_not_fit_keeps_its_question_and_its_newest_rounds() {
    let words = "u1 A1 t1 A2 t2 A3 t3";
    for (counts, expected) in [(1..=4, "u1 A3 t3"), (5..=6, "u1 A2 t2 A3 t3"), (7..=9, words)] {
        for count in counts {
            assert_eq!(view(&Window::messages(count), words), expected, "{count}");
        }
    }
    assert_eq!(view(&Window::messages(4), "u1 A1 t1 A2 t2 A3 t3 a u2"), "u2");
}

#[test]
fn a_view_starts_at_a_user_message_behind_the_newest_system_message() {
    for count in 1..5 {
        assert_eq!(view(&Window::messages(count), "a0 u1"), "u1");
        assert_eq!(view(&Window::messages(count), "t9 u1 a1"), "u1 a1");
    }
    assert_eq!(view(&Window::messages(2), "s1 u1 a1 s2 u2"), "s2 u2");
    assert_eq!(view(&Window::messages(3), "s1 u1 a1 s2 u2"), "s2 u2");
}

#[test]
fn a_window_or_step_of_zero_is_refused() {
    let refused = |memory: chat_memory::Result<InMemoryChatMemory>| match memory {
        Err(Error::InvalidOption { option, .. }) => option,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(InMemoryChatMemory::builder().max_messages(0).build()), "max_messages");
    assert_eq!(refused(InMemoryChatMemory::builder().window_step(0).build()), "window_step");
    let tokens = Window::tokens(0, TokenEstimate);
    assert_eq!(refused(InMemoryChatMemory::builder().window(tokens).build()), "window");
}

#[test]
fn a_token_budget_obeys_the_same_rules() {
    // A token a byte.
    let window = |budget| Window::tokens(budget, |message: &Message| message.text().len());
    let conversation = [
        Message::system("sss"),
        Message::user("a long question"),
        Message::assistant("short"),
        Message::user("q"),
        Message::assistant("answer"),
    ];
    assert_eq!(texts(&window(10).view(&conversation)), ["sss", "q", "answer"]);
    assert_eq!(texts(&window(29).view(&conversation)), ["sss", "q", "answer"]);
    assert_eq!(texts(&window(30).view(&conversation)).len(), 5);
    // Never unusable: system, question and newest unit are shown even where that is more.
    assert_eq!(texts(&window(1).view(&conversation)), ["sss", "q", "answer"]);
    // A message without any cost does not get in where nothing fits.
    let free = |message: &Message| if message.role() == Role::Assistant { 0 } else { 5 };
    assert_eq!(view(&Window::tokens(4, free), "u1 a1 u2 a2 a3"), "u2 a3");
    assert_eq!(view(&Window::tokens(9, free), "u1 a1 u2 a2 a3"), "u2 a2 a3");
}

/// A chat of turns of two, as it grows: the first message behind the system message of each call's view.
fn heads(window: &Window, turns: usize) -> Vec<String> {
    let mut conversation = vec![Message::system("s")];
    let mut heads = Vec::new();
    for turn in 0..turns {
        conversation.push(Message::user(format!("u{turn}")));
        let view = window.view(&conversation);
        assert_eq!(view[0].role(), Role::System);
        assert_eq!(view[1].role(), Role::User);
        assert_eq!(view.last(), conversation.last());
        heads.push(view[1].text().into_owned());
        conversation.push(Message::assistant(format!("a{turn}")));
    }
    heads
}

#[test]
fn a_larger_step_keeps_the_head_of_the_view_for_several_calls() {
    let breaks = |heads: &[String]| heads.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let turns = 400;
    let by_one = breaks(&heads(&Window::messages(50), turns));
    let by_twelve = breaks(&heads(&Window::messages(50).with_step(12), turns));
    // One step of twelve messages lasts for six turns of two.
    assert!(by_one * 100 > turns * 90, "{by_one}");
    assert!(by_twelve * 100 < turns * 18, "{by_twelve}");
}

#[test]
fn a_step_moves_the_start_on_to_a_multiple_and_never_past_the_newest_turn() {
    let words = "u0 a1 u2 a3 u4 a5 u6 a7 u8";
    // Without a step five messages start at u4, a multiple of 4; the next multiple of 3 is 6.
    assert_eq!(view(&Window::messages(5), words), "u4 a5 u6 a7 u8");
    assert_eq!(view(&Window::messages(5).with_step(4), words), "u4 a5 u6 a7 u8");
    assert_eq!(view(&Window::messages(5).with_step(3), words), "u6 a7 u8");
    assert_eq!(view(&Window::messages(5).with_step(100), words), "u8");
    // Where nothing is left out, nothing moves.
    assert_eq!(view(&Window::messages(9).with_step(100), words), words);
    assert_eq!(view(&Window::messages(9).with_step(7), "s u1 a2"), "s u1 a2");
    assert_eq!(view(&Window::messages(9).with_step(7), "a0 u1 a2 u3"), "u1 a2 u3");
    // Inside a turn that does not fit it moves by units, and never past the newest.
    let turn = "u0 A1 t1 A2 t2 A3 t3 A4 t4";
    assert_eq!(view(&Window::messages(7), turn), "u0 A2 t2 A3 t3 A4 t4");
    assert_eq!(view(&Window::messages(7).with_step(5), turn), "u0 A3 t3 A4 t4");
    assert_eq!(view(&Window::messages(7).with_step(100), turn), "u0 A4 t4");
    // Without any user message too.
    assert_eq!(view(&Window::messages(3).with_step(4), "a0 a1 a2 a3 a4 a5"), "a4 a5");
}

#[test]
fn a_window_never_changes_what_is_stored() {
    let memory = InMemoryChatMemory::builder().max_messages(2).window_step(3).build().unwrap();
    let all: Vec<Message> = "s u1 a1 u2 a2".split(' ').map(message).collect();
    memory.add("c", &all).unwrap();
    assert_eq!(memory.get("c").unwrap(), [all[0].clone(), all[3].clone(), all[4].clone()]);
}

/// The view of a file-backed memory, and of an in-memory one, which are the same; and everything without a window.
fn views(count: usize, messages: &[Message]) -> (Vec<Message>, Vec<Message>) {
    let directory = tempfile::tempdir().unwrap();
    let file = FileChatMemory::builder(directory.path()).max_messages(count).durability(Durability::Process);
    let file = file.open().unwrap();
    let in_memory = InMemoryChatMemory::builder().max_messages(count).build().unwrap();
    for message in messages {
        file.add("c", std::slice::from_ref(message)).unwrap();
        in_memory.add("c", std::slice::from_ref(message)).unwrap();
    }
    let view = file.get("c").unwrap();
    assert_eq!(in_memory.get("c").unwrap(), view);
    let everything = FileChatMemory::open(directory.path()).unwrap().get("c").unwrap();
    assert_eq!(everything, messages);
    (view, everything)
}

fn call(ids: &[&str]) -> Message {
    ids.iter().fold(Message::new(Role::Assistant, []), |message, id| message.with_tool_call(*id, "f", "{}"))
}

#[test]
fn a_tool_result_is_never_shown_without_its_call() {
    let messages = [
        Message::user("weather in Oslo?"),
        call(&["c1"]),
        Message::tool_result("c1", "weather", "-4 C"),
        Message::assistant("Minus four."),
        Message::user("and Bergen?"),
    ];
    let (view, everything) = views(3, &messages);
    assert_eq!(texts(&view), ["and Bergen?"]);
    assert_eq!(everything.len(), 5);
}

#[test]
fn many_parallel_calls_are_kept_or_left_out_as_one() {
    let ids = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];
    let mut messages = vec![Message::user("check eight hosts"), call(&ids)];
    messages.extend(ids.map(|id| Message::tool_result(id, "ping", "ok")));
    messages.push(Message::assistant("all up"));
    let (view, _) = views(5, &messages);
    assert_eq!(texts(&view), ["check eight hosts", "all up"]);
    let (view, _) = views(11, &messages);
    assert_eq!(view, messages);
}

#[test]
fn what_an_orphan_uncovers_is_left_out_too() {
    let messages =
        [call(&["z1"]), Message::tool_result("z1", "f", "r"), call(&["z2"]), Message::user("are you there?")];
    let (view, everything) = views(3, &messages);
    for open_calls in [OpenCalls::Interrupt, OpenCalls::Drop] {
        assert_eq!(texts(&model_ready(&view, open_calls)), ["are you there?"]);
        assert_eq!(texts(&model_ready(&everything, open_calls)), ["are you there?"]);
    }
}

#[test]
fn a_result_behind_a_user_message_answers_nothing() {
    let messages = [
        Message::user("begin"),
        call(&["q1"]),
        Message::user("never mind"),
        Message::tool_result("q1", "slow", "late result"),
        Message::assistant("ok"),
    ];
    let (view, everything) = views(10, &messages);
    assert_eq!(texts(&view), ["begin", "never mind", "ok"]);
    assert_eq!(texts(&model_ready(&everything, OpenCalls::Drop)), ["begin", "never mind", "ok"]);
    let interrupted = model_ready(&everything, OpenCalls::Interrupt);
    crate::provider::check_sent(&interrupted).unwrap();
    assert_eq!(interrupted.len(), 5);
    // Without a question before it the broken pair goes too.
    let ready = model_ready(&messages[1..], OpenCalls::Interrupt);
    assert_eq!(texts(&ready), ["never mind", "ok"]);
}

#[test]
fn the_system_message_stays_and_counts() {
    let messages = ["s", "u1", "a1", "u2", "a2"].map(message);
    assert_eq!(texts(&views(3, &messages).0), ["s", "u2", "a2"]);
}

#[test]
fn a_view_does_not_open_on_an_answer() {
    let messages = ["u1", "a1", "u2", "a2", "u3"].map(message);
    assert_eq!(texts(&views(2, &messages).0), ["u3"]);
}

#[test]
fn a_window_shows_the_newest_in_their_order() {
    let messages: Vec<Message> = (1..=20).map(|number| Message::user(number.to_string())).collect();
    assert_eq!(texts(&views(5, &messages).0), ["16", "17", "18", "19", "20"]);
}

#[test]
fn a_step_takes_nothing_from_a_conversation_that_fits() {
    let messages = [Message::system("s"), Message::user("u"), Message::assistant("a"), Message::user("u2")];
    for step in 1..6 {
        for count in [4, 10] {
            assert_eq!(Window::messages(count).with_step(step).view(&messages), messages);
        }
    }
}
