//! LangChain's messages: as `messages_to_dict` and `dumps` write them, as plain fields, or as rows of its history tables.
//!
//! A list is a conversation, and so is an object with `messages`. Lines and rows are put together by their `session_id`.

use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::draft::{self, Draft};
use super::json::Fields;
use super::langchain_message::line;
use super::source::{Bad, Source};
use super::{Format, Found, rows, time};

pub(super) fn read<'a>(source: &'a Source<'a>) -> Result<Found, Bad> {
    let mut reader = Reader { source, lines: IndexMap::new(), lists: Vec::new() };
    let mut found = Found::default();
    if source.text().trim_start().starts_with(['[', '{']) {
        let items = source.items()?.values.into_iter();
        found.lines.extend(items.filter_map(|item| item.and_then(|raw| reader.item(raw)).err()).map(Bad::of_line));
    } else {
        let rows = rows::read(source)?.into_iter();
        found.lines.extend(rows.filter_map(|row| row.and_then(|row| reader.row(row)).err()).map(Bad::of_line));
    }
    found.conversations.extend(reader.lines.into_values().map(|draft| Ok(draft.into_conversation())));
    for (about, list) in reader.lists {
        let mut draft = Draft::new(source, Format::LangChain);
        if let Some(mut about) = about {
            (draft.id, draft.title) = (draft::take_own_id(&mut about), about.text("title"));
            about.remove(&["messages", "kwargs"]);
            draft.about(about);
        }
        let read = source.list(list).and_then(|list| list.into_iter().try_for_each(|raw| message(&mut draft, raw)));
        found.conversations.push(draft.finish(read, found.conversations.len()));
    }
    Ok(found)
}

struct Reader<'a> {
    source: &'a Source<'a>,
    /// Messages that stand by themselves, by the session that they name.
    lines: IndexMap<Option<String>, Draft<'a>>,
    /// Lists of messages, and what stands beside them.
    lists: Vec<(Option<Fields<'a>>, &'a RawValue)>,
}

impl<'a> Reader<'a> {
    /// The conversation of a session.
    fn session(&mut self, id: Option<String>) -> &mut Draft<'a> {
        self.lines.entry(id.clone()).or_insert_with(|| {
            let mut draft = Draft::new(self.source, Format::LangChain);
            draft.id = id;
            draft
        })
    }

    /// A message, a row with one, or a list of messages.
    fn item(&mut self, raw: &'a RawValue) -> Result<(), Bad> {
        let source = self.source;
        if raw.get().starts_with('[') {
            self.lists.push((None, raw));
            return Ok(());
        }
        let mut fields = source.fields(raw)?;
        let inner = fields.get("kwargs").and_then(|kwargs| source.fields(kwargs).ok()?.get("messages"));
        if let Some(list) = inner.or_else(|| fields.get("messages")).filter(|list| list.get().starts_with('[')) {
            self.lists.push((Some(fields), list));
            return Ok(());
        }
        let Some(inner) = fields.take("message") else {
            return message(self.session(None), raw);
        };
        let draft = self.session(draft::group_id(&fields));
        let before = draft.messages.len();
        if inner.get().starts_with('"') {
            stored(draft, &source.string(inner)?).map_err(|bad| source.bad(inner, bad.reason))?;
        } else {
            message(draft, inner)?;
        }
        if let Some(at) = time::take(&mut fields, &["created_at", "timestamp"])
            && let Some(added) = draft.messages.get_mut(before)
        {
            *added = added.clone().with_created_at(at);
        }
        Ok(())
    }

    /// A row of CSV with a `session_id`, and a `message` as JSON.
    fn row(&mut self, mut row: rows::Row) -> Result<(), Bad> {
        let (id, text) = (row.take("session_id"), row.take("message"));
        let (id, text) = id.zip(text).ok_or_else(|| row.bad(self.source, "a row has no `session_id` and `message`"))?;
        let source = self.source;
        stored(self.session(Some(id)), &text).map_err(|bad| row.bad(source, &bad.reason))
    }
}

fn message<'a>(draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<(), Bad> {
    draft.note_mended(raw);
    if let Some(line) = line(draft, raw)? {
        draft.say(line);
    }
    Ok(())
}

/// Adds a message that is JSON in a text; an error counts from that text.
fn stored(draft: &mut Draft<'_>, text: &str) -> Result<(), Bad> {
    // Halves of surrogate pairs are escaped in it once more.
    let inner = Source::new("", text);
    let items = inner.items()?.values;
    let [Ok(raw)] = items.as_slice() else {
        return Err(inner.bad_at(0, "the `message` is not the JSON of one message"));
    };
    let mut one = Draft::new(&inner, Format::LangChain);
    std::mem::swap(&mut one.pairs, &mut draft.pairs);
    let read = message(&mut one, raw);
    std::mem::swap(&mut one.pairs, &mut draft.pairs);
    draft.notes.extend(one.notes);
    draft.messages.extend(one.messages);
    read
}

#[cfg(test)]
mod tests {
    use chat_memory::{Content, Media, Message, Role};
    use serde_json::{Value, json};

    use crate::import::tests::{conversations, messages, one, refused};
    use crate::import::{Format, read};

    fn imported(value: &Value) -> Vec<Message> {
        messages(&one(read("l.json", &value.to_string(), None).unwrap(), Format::LangChain)).to_vec()
    }

    #[test]
    fn dicts_with_calls_and_results() {
        let sent = json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":  1}"}}]);
        let all = imported(&json!([
            {"type": "system", "data": {"content": "s", "additional_kwargs": {}}},
            {"type": "human", "data": {"content": "h", "id": "m-1", "name": "Ann", "type": "human", "example": false}},
            {"type": "ai", "data": {"content": "", "additional_kwargs": {"tool_calls": sent},
                "tool_calls": [{"name": "f", "args": {"x": 1}, "id": "a", "type": "tool_call"},
                    {"name": "g", "args": {"y": [1, 2]}, "id": null}],
                "invalid_tool_calls": [{"name": "h", "args": "{broken", "id": "c", "error": "e"}]}},
            {"type": "tool", "data": {"content": "r", "tool_call_id": "a", "name": "f", "status": "error", "artifact": [1]}},
            {"type": "function", "data": {"content": "q", "name": "g"}},
            {"type": "AIMessageChunk", "data": {"content": "x"}},
            {"type": "chat", "data": {"content": "y", "role": "assistant"}},
            {"type": "remove", "data": {"id": "m-1"}}
        ]));
        assert_eq!(all.len(), 7);
        assert_eq!((all[1].id(), all[1].name()), (Some("m-1"), Some("Ann")));
        let calls: Vec<_> = all[2].tool_calls().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("a", "{\"x\":  1}"), ("call-1", "{\"y\":[1,2]}"), ("c", "{broken")]);
        let result = all[3].tool_results().next().unwrap();
        assert!(result.is_error && result.call_id == "a");
        assert_eq!(all[3].metadata().get("langchain").unwrap()["fields"]["artifact"], json!([1]));
        assert_eq!(all[4].tool_results().next().unwrap().call_id, "call-1");
        assert_eq!((all[5].role(), all[6].role()), (Role::Assistant, Role::Assistant));
    }

    #[test]
    fn blocks_are_parts_and_calls_among_them_come_once() {
        let image = json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}});
        let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
        let all = imported(&json!({"messages": [
            {"type": "human", "content": ["t", image], "id": null},
            {"type": "ai", "content": [{"type": "text", "text": "u"}, call], "tool_calls": [{"name": "f", "args": {}, "id": "a"}]}
        ]}));
        assert_eq!(all[0].content(), [Content::Text("t".into()), Media::url("https://example.com/a.png").into()]);
        assert_eq!((all[1].content().len(), all[1].tool_calls().count()), (2, 1));
    }

    #[test]
    fn constructors_of_dumps() {
        let message = |class: &str, kwargs: Value| json!({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", class], "kwargs": kwargs});
        let list = json!([
            message("HumanMessage", json!({"content": "h", "type": "human"})),
            message("AIMessage", json!({"content": "a", "tool_calls": [{"name": "f", "args": {}, "id": "a"}]})),
            message("ToolMessage", json!({"content": "r", "tool_call_id": "a"})),
        ]);
        let roles = |all: &[Message]| all.iter().map(Message::role).collect::<Vec<_>>();
        assert_eq!(roles(&imported(&list)), [Role::User, Role::Assistant, Role::Tool]);
        assert_eq!(imported(&message("ChatPromptValue", json!({"messages": list}))).len(), 3);
    }

    #[test]
    fn rows_of_a_history_hold_json() {
        let message = |text: &str| json!({"type": "human", "data": {"content": text}}).to_string();
        let rows = json!([{"id": 1, "session_id": "a", "message": message("x")},
            {"id": 2, "session_id": "b", "message": message("y")},
            {"id": 3, "session_id": "a", "message": "{\"type\":\"human\",\"data\":{\"content\":\"\\ud83d\"}}"},
            {"id": 4, "session_id": "a", "message": "secret"}]);
        let archive = read("h.json", &rows.to_string(), None).unwrap();
        assert_eq!(refused(&archive).len(), 1);
        assert!(!refused(&archive)[0].to_string().contains("secret"));
        let all = conversations(archive);
        assert_eq!((all[0].id.as_str(), messages(&all[0]).len(), all[1].id.as_str()), ("a", 2, "b"));
        assert_eq!((messages(&all[0])[1].text().as_ref(), all[0].notes.len()), ("\u{fffd}", 1));

        let quoted = message("x").replace('"', "\"\"");
        let csv = format!("id,session_id,message\n1,a,\"{quoted}\"\n2,a,secret\n");
        let archive = read("h.csv", &csv, None).unwrap();
        assert_eq!((archive.format, refused(&archive)[0].line), (Format::LangChain, 3));
        assert_eq!(messages(&conversations(archive)[0]), [Message::user("x")]);
    }
}
