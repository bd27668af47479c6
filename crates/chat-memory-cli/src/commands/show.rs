//! `show`: a conversation as a transcript, or as a model was shown it.

use std::time::Duration;

use chat_memory::{ChatHistory, Entry, HistoryRange, Window};

use crate::cli::{Global, ShowArgs};
use crate::export::archive;
use crate::failure::Failure;
use crate::out::{self, DIM, Out, Styled};
use crate::show::{self, Detail};
use crate::store::{self, Store};
use crate::text::{count, harmless};

pub fn run(global: &Global, args: &ShowArgs, out: &mut Out) -> Result<(), Failure> {
    let store = Store::open(global)?;
    let detail = Detail { is_full: args.full, max_chars: args.max_chars, ..Detail::new(out) };
    match args.view {
        Some(messages) => view(&store, args, messages, detail, out)?,
        None => transcript(&store, args, detail, out)?,
    }
    store.verdict()
}

/// What the window shows, now or at some point of the past.
fn view(store: &Store, args: &ShowArgs, messages: usize, detail: Detail, out: &mut Out) -> Result<(), Failure> {
    let id = &args.conversation;
    let newest = store.history(id, HistoryRange::last(1))?;
    let Some(newest) = newest.last() else {
        return Err(store::unknown(id));
    };
    let at = args.at.unwrap_or(newest.seq);
    if at > newest.seq {
        return Err(Failure::Nothing(format!("the newest message has the number {}, so there is no {at}", newest.seq)));
    }
    let view = store.read(id, |memory| memory.view_at(id, at, &Window::messages(messages)))?;
    if out.is_json() {
        return view.iter().try_for_each(|message| out.data(&archive::message(message)));
    }
    let text = format!("what a window of {} shows when message {at} is the newest", count(messages as u64, "message"));
    out.line(Styled(DIM, text))?;
    out.line("")?;
    view.iter().try_for_each(|message| show::message(out, message, detail))
}

fn transcript(store: &Store, args: &ShowArgs, detail: Detail, out: &mut Out) -> Result<(), Failure> {
    let id = &args.conversation;
    let show = |entry: &Entry, out: &mut Out| match out.is_json() {
        true => out.data(&archive::line(id, entry)),
        false => show::entry(out, entry, detail),
    };
    let mut next = 0;
    match args.last {
        Some(last) => {
            for entry in store.history(id, HistoryRange::last(last))? {
                show(&entry, out)?;
                next = entry.seq + 1;
            }
        }
        None => {
            store.for_each_chunk(id, |chunk| {
                for entry in &chunk {
                    show(entry, out)?;
                    next = entry.seq + 1;
                }
                Ok(true)
            })?;
        }
    }
    if next == 0 && !args.follow {
        if store.history(id, HistoryRange::last(1))?.is_empty() {
            return Err(store::unknown(id));
        }
        return Ok(()); // --last 0
    }
    if !args.follow {
        return Ok(());
    }
    out::note(Styled(DIM, format_args!("-- {}: waiting for more, Ctrl-C ends it --", harmless(id))));
    loop {
        out.flush()?;
        std::thread::sleep(PAUSE);
        let newest = store.history(id, HistoryRange::last(1))?;
        if newest.last().is_none_or(|newest| newest.seq + 1 < next) {
            next = 0; // it was cleared, and begins anew
        }
        for entry in store.history(id, HistoryRange::all().from(next))? {
            show(&entry, out)?;
            next = entry.seq + 1;
        }
    }
}

/// How often a followed conversation is looked at.
const PAUSE: Duration = Duration::from_millis(250);
