//! ChatGPT's data export: a tree of messages for each conversation.
//!
//! The branch that ends at `current_node` is taken, or, where that is missing or not in the tree, the one that ends at the newest
//! leaf. What other branches hold is counted in a note, and so is what the program hides from its users, which is left out.

use std::collections::HashSet;
use std::time::SystemTime;

use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::draft::{self, Draft};
use super::json::{self, Fields};
use super::source::{Bad, Source};
use super::{Format, Found, chatgpt_content, time};

pub(super) fn read<'a>(source: &'a Source<'a>) -> Result<Found, Bad> {
    let mut found = Found::default();
    for (number, item) in source.items()?.values.into_iter().enumerate() {
        let mut draft = Draft::new(source, Format::ChatGpt);
        let read = item.and_then(|raw| conversation(&mut draft, raw));
        found.conversations.push(draft.finish(read, number));
    }
    Ok(found)
}

fn conversation<'a>(draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<(), Bad> {
    let source = draft.source;
    let mut fields = source.fields(raw)?;
    (draft.id, draft.title) = (draft::take_own_id(&mut fields), fields.text("title"));
    let mapping = fields.take("mapping").ok_or_else(|| source.bad(raw, "a conversation has no `mapping`"))?;
    let current = fields.take("current_node");
    let tree = Tree::read(source, mapping)?;
    let leaf = current.and_then(json::text).and_then(|current| tree.0.get_index_of(&current));
    if leaf.is_none() && !tree.0.is_empty() {
        draft.note(current.unwrap_or(raw), "`current_node` is missing or not in the tree: the newest branch was taken");
    }
    let path = match leaf.or_else(|| tree.newest_leaf()) {
        Some(leaf) => {
            tree.path_to(leaf).ok_or_else(|| source.bad(mapping, "the parents of messages go round in a circle"))?
        }
        None if tree.0.is_empty() => Vec::new(),
        None => return Err(source.bad(mapping, "the parents of messages go round in a circle")),
    };
    let nodes = path.iter().filter_map(|place| tree.0.get_index(*place));
    if nodes.clone().next().is_some_and(|(_, first)| first.has_lost_parent) {
        draft.note(mapping, "the beginning of the conversation is not in the file");
    }
    let of_path = nodes.clone().filter(|(_, node)| node.message.is_some()).count();
    for (id, node) in nodes {
        if let Some(message) = node.message {
            draft.note_mended(message);
            chatgpt_content::message(draft, message, id)?;
        }
    }
    let others = tree.0.values().filter(|node| node.message.is_some()).count() - of_path;
    if others > 0 {
        draft.notes.add(format!("messages on other branches were left out: {others}"), 0);
    }
    draft.about(fields);
    Ok(())
}

struct Node<'a> {
    message: Option<&'a RawValue>,
    parent: Option<usize>,
    has_lost_parent: bool,
    is_parent: bool,
    at: Option<SystemTime>,
}

/// The nodes by their ids, in the order of the file.
struct Tree<'a>(IndexMap<String, Node<'a>>);

impl<'a> Tree<'a> {
    fn read(source: &'a Source<'a>, mapping: &'a RawValue) -> Result<Self, Bad> {
        let (mut nodes, mut parents, mut children) = (IndexMap::new(), Vec::new(), Vec::new());
        for (id, raw) in source.fields(mapping)?.iter() {
            let mut fields: Fields<'a> = source.fields(raw)?;
            let message = fields.take("message");
            let at = message.map(|message| source.fields(message)).transpose()?;
            let at = at.and_then(|mut message| time::take(&mut message, &["create_time"]));
            nodes.insert(id.to_owned(), Node { message, parent: None, has_lost_parent: false, is_parent: false, at });
            parents.push((id.to_owned(), fields.take("parent").and_then(json::text)));
            let listed = fields.take("children").and_then(|children| source.list(children).ok()).unwrap_or_default();
            children.extend(listed.into_iter().filter_map(json::text).map(|child| (child, id.to_owned())));
        }
        // Where a node does not name its parent, it may be that the parent names the node.
        let orphans: HashSet<String> =
            parents.extract_if(.., |(_, parent)| parent.is_none()).map(|(id, _)| id).collect();
        parents.extend(
            children.into_iter().filter(|(child, _)| orphans.contains(child)).map(|(child, id)| (child, Some(id))),
        );
        for (id, parent) in parents {
            let place = parent.as_ref().and_then(|parent| nodes.get_index_of(parent));
            if let Some(node) = nodes.get_mut(&id) {
                (node.parent, node.has_lost_parent) = (place, place.is_none() && parent.is_some());
            }
            if let Some((_, parent)) = place.and_then(|place| nodes.get_index_mut(place)) {
                parent.is_parent = true;
            }
        }
        Ok(Self(nodes))
    }

    /// The last message that nothing follows, by its time, else by its place in the file.
    fn newest_leaf(&self) -> Option<usize> {
        let leaves = self.0.values().enumerate().filter(|(_, node)| !node.is_parent && node.message.is_some());
        leaves.max_by_key(|(place, node)| (node.at, *place)).map(|(place, _)| place)
    }

    /// The places of the nodes from the root to one; none where they go round in a circle.
    fn path_to(&self, leaf: usize) -> Option<Vec<usize>> {
        let mut path = Vec::new();
        let mut next = Some(leaf);
        while let Some(place) = next {
            if path.len() == self.0.len() {
                return None;
            }
            path.push(place);
            next = self.0.get_index(place)?.1.parent;
        }
        path.reverse();
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::import::tests::{conversations, messages, one, refused};
    use crate::import::{Conversation, Format, read};

    fn node(parent: Option<&str>, role: &str, text: &str) -> Value {
        let content = json!({"content_type": "text", "parts": [text]});
        json!({"parent": parent, "message": {"author": {"role": role}, "content": content}})
    }

    fn imported(conversation: &Value) -> Conversation {
        one(read("c.json", &conversation.to_string(), None).unwrap(), Format::ChatGpt)
    }

    fn texts(conversation: &Conversation) -> Vec<String> {
        messages(conversation).iter().map(|message| message.text().into_owned()).collect()
    }

    #[test]
    fn the_branch_of_the_current_node_is_taken() {
        let root = json!({"id": "r", "message": null, "parent": null, "children": ["a"]});
        let mapping = json!({"r": root, "a": node(Some("r"), "user", "a"), "b": node(Some("a"), "assistant", "b"),
            "c": node(Some("a"), "assistant", "c"), "d": node(Some("c"), "user", "d")});
        let mut export = json!({"title": "T", "conversation_id": "id", "current_node": "b", "mapping": mapping});
        let conversation = imported(&export);
        assert_eq!((conversation.id.as_str(), conversation.title.as_deref()), ("id", Some("T")));
        assert_eq!(texts(&conversation), ["a", "b"]);
        assert_eq!(conversation.notes, ["messages on other branches were left out: 2"]);
        assert_eq!(messages(&conversation)[1].id(), Some("b"));
        // Without it, or where it points nowhere, the newest leaf.
        for current in [json!(null), json!("nowhere"), json!(3)] {
            export["current_node"] = current;
            assert_eq!(texts(&imported(&export)), ["a", "c", "d"]);
        }
        export["mapping"]["b"]["message"]["create_time"] = json!(1_700_000_000.25);
        assert_eq!(texts(&imported(&export)), ["a", "b"]);
    }

    #[test]
    fn a_bad_conversation_is_refused_by_its_title_and_the_others_come_in() {
        let good = json!({"title": "good", "current_node": "a", "mapping": {"a": node(None, "user", "x")}});
        let circle = json!({"a": node(Some("b"), "user", "x"), "b": node(Some("a"), "user", "y")});
        let bad = [json!("oops"), json!({"a": 3}), json!({"a": {"message": "m"}}), circle.clone(), json!(null)];
        let mut export = vec![good];
        export.extend(bad.map(|mapping| json!({"title": "bad", "mapping": mapping})));
        export.push(json!({"title": "bad", "current_node": "a", "mapping": circle}));
        export.push(json!({"title": "empty", "mapping": {}}));
        let archive = read("c.json", &Value::from(export).to_string(), None).unwrap();
        assert_eq!(refused(&archive).iter().map(|refused| refused.name.as_str()).collect::<Vec<_>>(), ["bad"; 6]);
        let all = conversations(archive);
        assert_eq!((texts(&all[0]), all[1].id.as_str()), (vec!["x".to_owned()], "c/7"));
    }

    #[test]
    fn a_tree_without_its_root_is_read_from_where_it_begins() {
        let mapping = json!({"b": node(Some("lost"), "user", "b"), "c": node(Some("b"), "assistant", "c")});
        let conversation = imported(&json!({"title": "T", "current_node": "c", "mapping": mapping}));
        assert_eq!(texts(&conversation), ["b", "c"]);
        assert!(conversation.notes[0].contains("beginning"), "{:?}", conversation.notes);
    }

    #[test]
    fn a_node_may_be_named_by_its_parent_alone() {
        let mut mapping = json!({"a": node(None, "user", "a"), "b": node(None, "assistant", "b")});
        mapping["a"]["children"] = json!(["b", 3, "nowhere"]);
        mapping["b"].as_object_mut().unwrap().remove("parent");
        assert_eq!(texts(&imported(&json!({"title": "T", "current_node": "b", "mapping": mapping}))), ["a", "b"]);
        mapping["b"]["children"] = json!(["a"]);
        let circle = json!({"title": "T", "current_node": "b", "mapping": mapping}).to_string();
        assert_eq!(refused(&read("c.json", &circle, None).unwrap()).len(), 1);
    }

    #[test]
    fn a_long_branch_is_read_in_no_time() {
        let name = |at: usize| format!("n{at}");
        let nodes = (0..20_000).map(|at| (name(at), node(at.checked_sub(1).map(name).as_deref(), "user", "x")));
        let mapping: serde_json::Map<_, _> = nodes.collect();
        assert_eq!(texts(&imported(&json!({"title": "T", "mapping": mapping}))).len(), 20_000);
    }
}
