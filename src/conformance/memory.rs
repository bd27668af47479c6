//! The promises of [`ChatMemory`].

use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use super::{Outcome, Violation, holds, same, samples};
use crate::error::Error;
use crate::memory::ChatMemory;
use crate::message::{Message, Role};
use crate::window::Window;

/// A promise, and the function that checks it.
pub(super) type Promise = (&'static str, fn(&dyn ChatMemory) -> Outcome);

/// All promises that need nothing but an empty store.
pub(super) const PROMISES: &[Promise] = &[
    ("an unknown conversation is empty, and may be cleared", an_unknown_conversation_is_empty),
    ("any id that is not blank works, and is its own", any_id_works),
    ("a blank id is refused", a_blank_id_is_refused),
    ("adding nothing does nothing", adding_nothing_does_nothing),
    ("one by one or as a batch gives the same list", one_by_one_or_as_a_batch),
    ("the order is that of adding, whatever the times say", the_order_is_that_of_adding),
    ("messages of every kind come back whole", messages_come_back_whole),
    ("a message that would not come back is refused with its batch", what_would_not_come_back_is_refused),
    ("clearing removes that conversation alone", clearing_removes_that_conversation_alone),
    ("lists are copies", lists_are_copies),
    ("batches of concurrent writers stay together, and none is lost", batches_stay_together),
    ("conversations do not disturb each other", conversations_do_not_disturb_each_other),
];

fn numbered(count: usize) -> Vec<Message> {
    (0..count).map(|number| Message::user(number.to_string())).collect()
}

/// An unknown conversation is an empty list, and no error; clearing it is fine.
pub fn an_unknown_conversation_is_empty(memory: &dyn ChatMemory) -> Outcome {
    same(&memory.get("unknown")?, &[], "an unknown conversation")?;
    memory.clear("unknown")?;
    same(&memory.get("unknown")?, &[], "an unknown conversation after clearing it")
}

/// Long, odd and similar ids are conversations of their own, compared byte for byte.
pub fn any_id_works(memory: &dyn ChatMemory) -> Outcome {
    let long = "x".repeat(1 << 20);
    let ids = [
        "a.b",
        "a:b",
        "a/b",
        "a_b",
        "a b",
        "A.B",
        "../../etc/passwd",
        ".",
        "..",
        "/abs",
        "C:\\win",
        "CON",
        "a\u{1}b",
        "nul\u{0}byte",
        " lead",
        "trail. ",
        "line\nbreak",
        "🎉",
        "caf\u{e9}",
        "cafe\u{301}",
        "%",
        "'; --",
        &long,
    ];
    for id in ids {
        memory.add(id, &[Message::user(id)])?;
    }
    for (at, id) in ids.into_iter().enumerate() {
        same(&memory.get(id)?, &[Message::user(id)], &format!("the id at position {at}"))?;
    }
    Ok(())
}

/// A blank id is [`Error::InvalidConversationId`] everywhere.
pub fn a_blank_id_is_refused(memory: &dyn ChatMemory) -> Outcome {
    for id in ["", " ", "\t\n", "\u{a0}\u{3000}"] {
        let refused = [
            matches!(memory.add(id, &numbered(1)), Err(Error::InvalidConversationId)),
            matches!(memory.add(id, &[]), Err(Error::InvalidConversationId)),
            matches!(memory.get(id), Err(Error::InvalidConversationId)),
            matches!(memory.clear(id), Err(Error::InvalidConversationId)),
        ];
        holds(refused == [true; 4], || format!("add, add of nothing, get, clear of {id:?} are refused: {refused:?}"))?;
    }
    Ok(())
}

/// Adding an empty list does nothing.
pub fn adding_nothing_does_nothing(memory: &dyn ChatMemory) -> Outcome {
    memory.add("c", &[])?;
    same(&memory.get("c")?, &[], "after adding nothing")?;
    memory.add("c", &numbered(2))?;
    memory.add("c", &[])?;
    same(&memory.get("c")?, &numbered(2), "after adding nothing more")
}

/// Messages added one by one, or all at once, give the same list.
pub fn one_by_one_or_as_a_batch(memory: &dyn ChatMemory) -> Outcome {
    let messages = numbered(20);
    for message in &messages {
        memory.add("one by one", std::slice::from_ref(message))?;
    }
    memory.add("batch", &messages)?;
    same(&memory.get("one by one")?, &messages, "one by one")?;
    same(&memory.get("batch")?, &messages, "as a batch")
}

/// Equal and backward-running times change nothing.
pub fn the_order_is_that_of_adding(memory: &dyn ChatMemory) -> Outcome {
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    let equal: Vec<Message> = numbered(50).into_iter().map(|message| message.with_created_at(at(9))).collect();
    let backward: Vec<Message> =
        numbered(50).into_iter().zip((0..50).rev()).map(|(message, time)| message.with_created_at(at(time))).collect();
    memory.add("equal", &equal)?;
    for message in &backward {
        memory.add("backward", std::slice::from_ref(message))?;
    }
    same(&memory.get("equal")?, &equal, "equal times")?;
    same(&memory.get("backward")?, &backward, "backward times")
}

/// Every kind of content, every field, present and absent.
pub fn messages_come_back_whole(memory: &dyn ChatMemory) -> Outcome {
    let samples = samples();
    memory.add("all", &samples)?;
    same(&memory.get("all")?, &samples, "all kinds in one batch")?;
    for (at, message) in samples.iter().enumerate() {
        let id = format!("alone {at}");
        memory.add(&id, std::slice::from_ref(message))?;
        let found = memory.get(&id)?;
        same(&found, std::slice::from_ref(message), &format!("sample {at}"))?;
        // Equality of JSON objects does not see the order of their keys.
        let texts = |message: &Message| message.metadata().iter().map(|(k, v)| format!("{k}{v}")).collect::<Vec<_>>();
        holds(found.first().map(texts) == Some(texts(message)), || {
            format!("sample {at}: the metadata's order changed")
        })?;
    }
    Ok(())
}

/// JSON that nests too deep to be read again is refused, and nothing of its batch is stored.
pub fn what_would_not_come_back_is_refused(memory: &dyn ChatMemory) -> Outcome {
    let deep = (0..200).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let batch = [Message::user("fine"), Message::user("deep").with_metadata("deep", deep)];
    match memory.add("c", &batch) {
        Err(Error::InvalidMessage { index: 1, .. }) => {}
        Err(other) => return Err(other.into()),
        Ok(()) => return same(&memory.get("c")?, &batch, "deeply nested metadata"),
    }
    same(&memory.get("c")?, &[], "after a refused batch")
}

/// A cleared conversation is gone, the others are not, and it can begin anew.
pub fn clearing_removes_that_conversation_alone(memory: &dyn ChatMemory) -> Outcome {
    memory.add("cleared", &numbered(3))?;
    memory.add("other", &numbered(2))?;
    memory.clear("cleared")?;
    same(&memory.get("cleared")?, &[], "the cleared conversation")?;
    same(&memory.get("other")?, &numbered(2), "the other conversation")?;
    memory.add("cleared", &numbered(1))?;
    same(&memory.get("cleared")?, &numbered(1), "the conversation begun anew")
}

/// What a caller does with a list changes nothing stored.
pub fn lists_are_copies(memory: &dyn ChatMemory) -> Outcome {
    let mut given = numbered(3);
    memory.add("c", &given)?;
    given.clear();
    let mut found = memory.get("c")?;
    found.reverse();
    found.pop();
    same(&memory.get("c")?, &numbered(3), "after its lists were changed")
}

/// Threads that add batches to one conversation leave every batch whole, and each thread's in its order.
pub fn batches_stay_together(memory: &dyn ChatMemory) -> Outcome {
    const WRITERS: usize = 4;
    const BATCHES: usize = 25;
    let message = |writer: usize, batch: usize, part: usize| Message::user(format!("{writer} {batch} {part}"));
    thread::scope(|scope| {
        let write = |writer| {
            move || -> Outcome {
                for batch in 0..BATCHES {
                    memory.add("c", &[0, 1, 2].map(|part| message(writer, batch, part)))?;
                }
                Ok(())
            }
        };
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(write(writer))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().unwrap_or_else(|_| Err(Violation("a panic".into()))))
    })?;
    let found = memory.get("c")?;
    holds(found.len() == WRITERS * BATCHES * 3, || format!("{} of {} messages", found.len(), WRITERS * BATCHES * 3))?;
    let mut next = [0; WRITERS];
    for batch in found.chunks(3) {
        let writer = batch.first().and_then(|first| first.text().split(' ').next()?.parse::<usize>().ok());
        let next = writer.and_then(|writer| Some((writer, next.get_mut(writer)?)));
        let Some((writer, next)) = next else {
            return Err(Violation("a message that nobody added".into()));
        };
        let expected = [0, 1, 2].map(|part| message(writer, *next, part));
        same(batch, &expected, &format!("batch {next} of writer {writer}"))?;
        *next += 1;
    }
    Ok(())
}

/// Threads on conversations of their own find exactly what is theirs.
pub fn conversations_do_not_disturb_each_other(memory: &dyn ChatMemory) -> Outcome {
    thread::scope(|scope| {
        let work = |writer: usize| {
            move || -> Outcome {
                for round in 0..20 {
                    let id = format!("{writer}-{}", round % 3);
                    memory.add(&id, &numbered(2))?;
                    memory.get(&id)?;
                    memory.get("unknown")?;
                    if round % 5 == 4 {
                        memory.clear(&id)?;
                    }
                }
                Ok(())
            }
        };
        let workers: Vec<_> = (0..4).map(|writer| scope.spawn(work(writer))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| Err(Violation("a panic".into()))))
    })?;
    for writer in 0..4 {
        for part in 0..3 {
            let found = memory.get(&format!("{writer}-{part}"))?.len();
            let mut expected = 0;
            for round in (0..20).filter(|round| round % 3 == part) {
                expected = if round % 5 == 4 { 0 } else { expected + 2 };
            }
            holds(found == expected, || format!("conversation {writer}-{part} has {found} messages, not {expected}"))?;
        }
    }
    Ok(())
}

/// `get` returns the view of [`Window`], as the conversation grows.
pub fn windows_follow_the_rules<'a>(windowed: &dyn Fn(usize) -> Box<dyn ChatMemory + 'a>) -> Outcome {
    let call = |id: &str| Message::new(Role::Assistant, []).with_tool_call(id, "f", "{}");
    let result = |id: &str| Message::tool_result(id, "f", "r");
    let history = [
        Message::assistant("hello"),
        Message::system("s1"),
        Message::user("u1"),
        call("a"),
        result("a"),
        result("a"),
        Message::assistant("a1"),
        Message::user("u2"),
        call("b").with_tool_call("c", "f", "{}"),
        result("c"),
        Message::new(Role::Assistant, []),
        result("b"),
        Message::system("s2"),
        call("d"),
        Message::assistant("a2"),
        Message::user("u3"),
        Message::user("u4"),
        call("e"),
    ];
    for count in [1, 2, 3, 5, 8, 100] {
        let memory = windowed(count);
        for (at, message) in history.iter().enumerate() {
            memory.add("c", std::slice::from_ref(message))?;
            let grown = history.get(..=at).unwrap_or_default();
            let what = format!("a window of {count} after message {at}");
            same(&memory.get("c")?, &Window::messages(count).view(grown), &what)?;
        }
    }
    Ok(())
}

/// What was added before a restart is there after it, and what was cleared is not.
pub fn a_restart_loses_nothing<'a>(
    memory: Box<dyn ChatMemory + 'a>,
    reopen: &dyn Fn() -> Box<dyn ChatMemory + 'a>,
) -> Outcome {
    memory.add("all", &samples())?;
    memory.add("cleared", &numbered(3))?;
    memory.clear("cleared")?;
    drop(memory);
    let memory = reopen();
    same(&memory.get("all")?, &samples(), "after a restart")?;
    same(&memory.get("cleared")?, &[], "a cleared conversation after a restart")?;
    memory.add("all", &numbered(1))?;
    drop(memory);
    let expected = [samples(), numbered(1)].concat();
    same(&reopen().get("all")?, &expected, "after a second restart")
}
