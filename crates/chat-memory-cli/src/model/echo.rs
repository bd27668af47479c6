//! An answer without a model.

use std::io::IsTerminal;
use std::time::Duration;

use chat_memory::{ModelRequest, Reply, Role, StreamedReply};

use super::Show;
use crate::text::count;

pub fn call(request: &ModelRequest, show: Show<'_>) -> Reply {
    let question = request.messages.last().map(|message| message.text().into_owned()).unwrap_or_default();
    let earlier = request.messages.iter().rev().skip(1).filter(|message| message.role() == Role::User);
    let before = match earlier.map(|message| message.text().into_owned()).next() {
        Some(last) => format!(" Before that you said \"{last}\"."),
        None => String::new(),
    };
    let shown = count(request.messages.len() as u64, "message");
    let answer = format!("You said \"{question}\".{before} I was shown {shown}. (I am an echo, not a model.)");
    let mut reply = StreamedReply::new();
    for word in answer.split_inclusive(' ') {
        show(word);
        reply.text(word);
        if std::io::stdout().is_terminal() {
            std::thread::sleep(PAUSE);
        }
    }
    reply.finish()
}

/// So that it looks like one who speaks.
const PAUSE: Duration = Duration::from_millis(15);
