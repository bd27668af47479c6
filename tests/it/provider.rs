//! What model providers accept, checked without the help of the library's own rules.

use chat_memory::{Message, Role};

/// What is wrong with a list of messages that a memory shows.
///
/// `history` is what it was picked from. Only the newest unit may have open calls.
pub fn check_view(history: &[Message], view: &[Message]) -> Result<(), String> {
    let newest_system = history.iter().rev().find(|message| message.role().is_system());
    let (system, rest) = match view.first() {
        Some(first) if first.role().is_system() => (Some(first), &view[1..]),
        _ => (None, view),
    };
    if system != newest_system {
        return Err("the view does not begin with the newest system message".into());
    }
    if rest.iter().any(|message| message.role().is_system()) {
        return Err("a system message inside".into());
    }
    let question = history.iter().rev().find(|message| message.role() == Role::User);
    if let Some(question) = question {
        if rest.first().map(Message::role) != Some(Role::User) {
            return Err("it does not start with a user message".into());
        }
        if !rest.contains(question) {
            return Err("the newest turn's question is missing".into());
        }
    }
    check_pairs(rest, true)
}

/// What is wrong with a list of messages that is sent.
pub fn check_sent(sent: &[Message]) -> Result<(), String> {
    let said: Vec<Message> = sent.iter().filter(|message| !message.role().is_system()).cloned().collect();
    if said.first().map(Message::role) != Some(Role::User) {
        return Err("it does not start with a user message".into());
    }
    check_pairs(sent, false)?;
    let mut ids: Vec<&str> = sent.iter().flat_map(Message::tool_calls).map(|call| call.id.as_str()).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(_) => Err("a call id comes twice".into()),
        None => Ok(()),
    }
}

/// Every call is followed by its result, with nothing but results between, and every result answers such a call.
fn check_pairs(messages: &[Message], may_end_open: bool) -> Result<(), String> {
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        at += 1;
        match message.role() {
            Role::Tool => return Err(format!("message {} is a result without a call", at - 1)),
            Role::Assistant => {}
            _ => continue,
        }
        let mut open: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
        if open.is_empty() && message.text().trim().is_empty() && message.content().len() <= 1 {
            return Err(format!("message {} says nothing", at - 1));
        }
        while let Some(tool) = messages.get(at).filter(|message| message.role() == Role::Tool) {
            at += 1;
            if tool.tool_results().next().is_none() {
                return Err(format!("message {} has no result", at - 1));
            }
            for result in tool.tool_results() {
                match open.iter().position(|id| *id == result.call_id) {
                    Some(answered) => _ = open.remove(answered),
                    None => return Err(format!("message {} answers no open call", at - 1)),
                }
            }
        }
        let may_be_open = may_end_open && at == messages.len();
        if !open.is_empty() && !may_be_open {
            return Err(format!("{} calls without a result before message {at}", open.len()));
        }
    }
    Ok(())
}
