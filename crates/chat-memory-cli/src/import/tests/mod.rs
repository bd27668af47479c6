//! Tests of all forms together, and what the tests beside the code share.

mod cases;
mod claude_code;
mod providers;
mod real_data;
mod robustness;

use chat_memory::Message;

use super::{Archive, Conversation, Format, Refused, Said};

/// The conversations that came in.
pub fn conversations(archive: Archive) -> Vec<Conversation> {
    archive.conversations.into_iter().flatten().collect()
}

/// What did not.
pub fn refused(archive: &Archive) -> Vec<&Refused> {
    archive.conversations.iter().filter_map(|conversation| conversation.as_ref().err()).collect()
}

/// The only conversation of an archive of this form, of which nothing was refused.
pub fn one(archive: Archive, format: Format) -> Conversation {
    assert_eq!((archive.format, archive.conversations.len()), (format, 1), "{:?}", refused(&archive));
    archive.conversations.into_iter().next().unwrap().unwrap()
}

/// What was said in a conversation of another program.
pub fn messages(conversation: &Conversation) -> &[Message] {
    match &conversation.said {
        Said::Messages(messages) => messages,
        Said::Entries(_) => panic!("entries"),
    }
}
