//! Reply trees of Open Assistant.
//!
//! A tree branches at every message, and no branch is the right one. So each path from the prompt to a reply that nobody replied
//! to is a conversation, `<tree>/0`, `<tree>/1`, … in the order of the file. A message on several paths is in several conversations,
//! with the same id; the notes say how many different ones the tree has.

use chat_memory::{Content, Message, Role};
use serde_json::value::RawValue;

use super::draft::{Draft, Line, Notes};
use super::source::{Bad, Source};
use super::{Conversation, Format, Found, Said, json, time};

const KEY: &str = "oasst";

/// A tree with longer paths is refused: reading one takes a time that grows with depth times size.
const DEEPEST: usize = 200;

pub(super) fn read<'a>(source: &'a Source<'a>) -> Result<Found, Bad> {
    let mut found = Found::default();
    for (number, item) in source.items()?.values.into_iter().enumerate() {
        let mut draft = Draft::new(source, Format::Oasst);
        match item.and_then(|raw| tree(&mut draft, raw)) {
            Ok(paths) => found.conversations.extend(conversations(&draft, paths, number).into_iter().map(Ok)),
            Err(bad) => found.conversations.push(Err(bad.named(draft.name(number)))),
        }
    }
    Ok(found)
}

/// The paths of a tree, each with its messages.
struct Paths {
    paths: Vec<Vec<Message>>,
    /// How many different messages there are.
    messages: usize,
    /// How many halves of surrogate pairs were replaced.
    mended: usize,
}

fn conversations(draft: &Draft<'_>, tree: Paths, number: usize) -> Vec<Conversation> {
    let Paths { paths, messages, mended } = tree;
    let (count, name) = (paths.len(), draft.name(number));
    let conversation = |(path, said): (usize, Vec<Message>)| {
        let mut notes = Notes::default();
        notes.add(format!("path {} of {count} of a tree of {messages} messages", path + 1), 0);
        (0..mended).for_each(|_| notes.add("in the tree half of a surrogate pair became U+FFFD", 0));
        let (said, notes) = (Said::Messages(said), notes.into_texts());
        Conversation { id: format!("{name}/{path}"), title: None, said, notes }
    };
    paths.into_iter().enumerate().map(conversation).collect()
}

fn tree<'a>(draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<Paths, Bad> {
    let source = draft.source;
    let mut fields = source.fields(raw)?;
    draft.id = fields.take_text("message_tree_id");
    // An object in a list for each message, and the tree's own object.
    if json::depth(raw) > 2 * DEEPEST + 1 {
        return Err(source.bad(raw, format!("a path has more than {DEEPEST} messages")));
    }
    let prompt = fields.take("prompt").ok_or_else(|| source.bad(raw, "a tree has no `prompt`"))?;
    let mut tree = Paths { paths: Vec::new(), messages: 0, mended: source.mended_in(raw) };
    let mut path: Vec<Message> = Vec::new();
    // What is still to be read: a message, and how many are before it on its path.
    let mut waiting = vec![(prompt, 0)];
    while let Some((raw, before)) = waiting.pop() {
        path.truncate(before);
        let (message, replies) = message(source, raw)?;
        path.push(message);
        tree.messages += 1;
        if replies.is_empty() {
            tree.paths.push(path.clone());
        }
        waiting.extend(replies.into_iter().rev().map(|reply| (reply, before + 1)));
    }
    Ok(tree)
}

fn message<'a>(source: &'a Source<'a>, raw: &'a RawValue) -> Result<(Message, Vec<&'a RawValue>), Bad> {
    let mut fields = source.fields(raw)?;
    let replies = fields.take("replies").map(|replies| source.list(replies)).transpose()?.unwrap_or_default();
    let role = fields.take("role").ok_or_else(|| source.bad(raw, "a message has no `role`"))?;
    let role = match source.string(role)?.as_str() {
        "prompter" | "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => return Err(source.bad(role, "the role is none of prompter, assistant, system")),
    };
    let mut line = Line::new(role);
    if let Some(text) = fields.take("text") {
        line.push(Content::Text(source.string(text)?));
    }
    line.id = fields.take_text("message_id");
    line.at = time::take(&mut fields, &["created_date"]);
    line.fields = fields.into_values();
    Ok((line.into_message(KEY), replies))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::import::tests::{conversations, messages, refused};
    use crate::import::{Format, read};

    fn message(id: &str, role: &str, replies: &[Value]) -> Value {
        json!({"message_id": id, "text": id, "role": role, "rank": 0, "replies": replies})
    }

    #[test]
    fn each_path_is_a_conversation() {
        let replies = [message("b", "assistant", &[message("c", "prompter", &[])]), message("d", "assistant", &[])];
        let tree = json!({"message_tree_id": "t", "tree_state": "x", "prompt": message("a", "prompter", &replies)});
        let text = format!("{tree}\n{{\"message_tree_id\":\"u\",\"prompt\":{{\"role\":\"x\"}}}}\n");
        let archive = read("x.jsonl", &text, None).unwrap();
        assert_eq!((archive.format, refused(&archive)[0].name.as_str()), (Format::Oasst, "u"));
        let all = conversations(archive);
        let ids = |at: usize| messages(&all[at]).iter().map(|said| said.id().unwrap().to_owned()).collect::<String>();
        assert_eq!([ids(0), ids(1)], ["abc", "ad"]);
        assert_eq!((all[0].id.as_str(), all[1].id.as_str()), ("t/0", "t/1"));
        assert_eq!(all[1].notes, ["path 2 of 2 of a tree of 4 messages"]);
        assert_eq!(messages(&all[0])[1].metadata().get("oasst").unwrap()["fields"]["rank"], 0);
    }

    #[test]
    fn a_tree_that_is_too_deep_is_refused_soon() {
        let one = |depth: usize| {
            let begin = "{\"role\":\"prompter\",\"text\":\"x\",\"replies\":[".repeat(depth);
            format!("{{\"message_tree_id\":\"t\",\"prompt\":{begin}{}}}", "]}".repeat(depth))
        };
        let archive = read("x.jsonl", &one(200), Some(Format::Oasst)).unwrap();
        assert_eq!(conversations(archive).len(), 1);
        assert_eq!(refused(&read("x.jsonl", &one(201), Some(Format::Oasst)).unwrap()).len(), 1);
        assert_eq!(refused(&read("x.jsonl", &one(50_000), None).unwrap()).len(), 1);
    }
}
