//! The promises of [`ChatHistory`](crate::ChatHistory).

use super::{Both, Outcome, holds, same, samples};
use crate::history::{HistoryRange, PageRequest};
use crate::message::Message;
use crate::window::Window;

/// A promise, and the function that checks it.
pub(super) type Promise = (&'static str, fn(&dyn Both) -> Outcome);

/// All promises of the history.
pub(super) const PROMISES: &[Promise] = &[
    ("receipts number the messages without gaps", receipts_number_the_messages),
    ("ranges run from either end, oldest first", ranges_run_from_either_end),
    ("a view of the past is what the window showed then", a_view_of_the_past),
    ("the catalogue lists each conversation once, the one written last first", the_catalogue_lists_each_once),
    ("an intact conversation verifies", an_intact_conversation_verifies),
];

fn numbered(from: u64, to: u64) -> Vec<Message> {
    (from..to).map(|number| Message::user(number.to_string())).collect()
}

/// Numbers begin at 0 and follow each other, also where `add` and `append` are mixed; times do not run backwards here.
pub fn receipts_number_the_messages(store: &dyn Both) -> Outcome {
    let first = store.append("c", &numbered(0, 3))?;
    holds(first.seqs == (0..3), || format!("the first receipt says {:?}", first.seqs))?;
    store.add("c", &numbered(3, 4))?;
    let nothing = store.append("c", &[])?;
    holds(nothing.seqs == (4..4), || format!("the receipt for nothing says {:?}", nothing.seqs))?;
    let last = store.append("c", &numbered(4, 6))?;
    holds(last.seqs == (4..6), || format!("the last receipt says {:?}", last.seqs))?;
    let entries = store.history("c", HistoryRange::all())?;
    let seqs: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
    holds(seqs == [0, 1, 2, 3, 4, 5], || format!("the history's numbers are {seqs:?}"))?;
    let time = entries.last().map(|entry| entry.recorded_at);
    holds(time == Some(last.recorded_at), || "the receipt's time is not the entry's".into())
}

/// `first`, `last`, and bounds by number.
pub fn ranges_run_from_either_end(store: &dyn Both) -> Outcome {
    for batch in [0..1, 1..4, 4..30] {
        store.append("c", &numbered(batch.start, batch.end))?;
    }
    for (range, expected) in [
        (HistoryRange::all(), 0..30),
        (HistoryRange::first(0), 0..0),
        (HistoryRange::first(3), 0..3),
        (HistoryRange::last(3), 27..30),
        (HistoryRange::last(100), 0..30),
        (HistoryRange::last(5).before(10), 5..10),
        (HistoryRange::first(5).from(10), 10..15),
        (HistoryRange::all().from(2).before(6), 2..6),
        (HistoryRange::all().from(40), 0..0),
    ] {
        let found: Vec<u64> = store.history("c", range)?.iter().map(|entry| entry.seq).collect();
        holds(found.iter().copied().eq(expected.clone()), || format!("{range:?} is {found:?}, not {expected:?}"))?;
    }
    holds(store.history("unknown", HistoryRange::all())?.is_empty(), || "an unknown conversation has a history".into())
}

/// `view_at` of each message is the window's view of the list up to it.
pub fn a_view_of_the_past(store: &dyn Both) -> Outcome {
    let history = samples();
    for batch in history.chunks(3) {
        store.append("c", batch)?;
    }
    for count in [1, 3, 100] {
        let window = Window::messages(count);
        for seq in 0..history.len() {
            let past = history.get(..=seq).unwrap_or_default();
            let what = format!("a window of {count} at message {seq}");
            same(&store.view_at("c", seq as u64, &window)?, &window.view(past), &what)?;
        }
    }
    Ok(())
}

/// Pages of any size show each conversation once, by its original id.
pub fn the_catalogue_lists_each_once(store: &dyn Both) -> Outcome {
    let ids: Vec<String> = (0..7).map(|number| format!("../{number} 🎉")).collect();
    for id in ids.iter().chain(ids.first()) {
        store.append(id, &numbered(0, 2))?;
        // A store may know the time of a write no better than this.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    for limit in [1, 3, 7, 100] {
        let mut found = Vec::new();
        let mut request = PageRequest::first(limit);
        loop {
            let page = store.conversations(&request)?;
            holds(page.problems.is_empty(), || format!("{} problems in a whole store", page.problems.len()))?;
            found.extend(page.items.into_iter().map(|item| (item.id, item.messages)));
            match page.next {
                Some(cursor) => request = PageRequest::after(limit, cursor),
                None => break,
            }
        }
        let first = ids.first().map(|id| (id.clone(), 4));
        let others = ids.iter().skip(1).rev().map(|id| (id.clone(), 2));
        let expected: Vec<(String, u64)> = first.into_iter().chain(others).collect();
        holds(found == expected, || format!("pages of {limit} show {} conversations in another order", found.len()))?;
    }
    Ok(())
}

/// Nothing is damaged where nothing was harmed.
pub fn an_intact_conversation_verifies(store: &dyn Both) -> Outcome {
    store.append("c", &samples())?;
    let verification = store.verify("c")?;
    holds(verification.is_whole(), || format!("{verification:?}"))?;
    holds(verification.messages == samples().len() as u64, || format!("{} messages", verification.messages))
}
