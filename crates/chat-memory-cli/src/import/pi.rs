//! Session files of the coding agent pi: a line that begins the session, lines with a message each, and lines of other kinds,
//! which are counted in a note.
//!
//! Newer files are trees, in which each line names the one before it. The branch of the last line is taken.

use std::collections::{HashMap, HashSet};

use chat_memory::{Content, Opaque, Reasoning, Role, ToolCall, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::draft::{Draft, Line};
use super::json::{self, Fields};
use super::source::{Bad, Source};
use super::{Format, Found, block, time};

const KEY: &str = "pi";

pub(super) fn read<'a>(source: &'a Source<'a>) -> Result<Found, Bad> {
    let mut found = Found::default();
    let mut sessions: Vec<Session<'a>> = Vec::new();
    for item in source.items()?.values {
        let read = item.and_then(|raw| {
            let fields = source.fields(raw)?;
            let kind = fields.text("type").ok_or_else(|| source.bad(raw, "a line has no `type`"))?;
            if kind == "session" || sessions.is_empty() {
                sessions.push(Session::new(source));
            }
            match sessions.last_mut() {
                Some(session) if kind == "session" => session.begin(fields),
                Some(session) => session.lines.push((raw, fields, kind == "message")),
                None => {}
            }
            Ok(())
        });
        if let Err(bad) = read {
            found.lines.push(bad.of_line());
        }
    }
    for session in sessions {
        let draft = session.read(&mut found);
        found.conversations.push(Ok(draft.into_conversation()));
    }
    Ok(found)
}

struct Session<'a> {
    draft: Draft<'a>,
    /// The lines after the first, and whether they are messages.
    lines: Vec<(&'a RawValue, Fields<'a>, bool)>,
}

impl<'a> Session<'a> {
    fn new(source: &'a Source<'a>) -> Self {
        Self { draft: Draft::new(source, Format::Pi), lines: Vec::new() }
    }

    fn begin(&mut self, mut fields: Fields<'a>) {
        self.draft.id = fields.take_text("id");
        fields.take("type");
        self.draft.about(fields);
    }

    fn read(self, found: &mut Found) -> Draft<'a> {
        let Session { mut draft, lines } = self;
        let branch = branch(&lines);
        for (raw, fields, is_message) in lines {
            let is_aside = branch.as_ref().zip(fields.text("id")).is_some_and(|(branch, id)| !branch.contains(&id));
            if !is_message {
                draft.note(raw, "a line that is no message was left out");
            } else if is_aside {
                draft.note(raw, "a message on another branch was left out");
            } else if let Err(bad) = message(&mut draft, raw, fields) {
                found.lines.push(bad.of_line());
            }
        }
        draft
    }
}

/// The ids of the lines from the first to the last, where lines name the one before them.
fn branch(lines: &[(&RawValue, Fields<'_>, bool)]) -> Option<HashSet<String>> {
    let parent = |(_, fields, _): &(&RawValue, Fields<'_>, bool)| Some((fields.text("id")?, fields.text("parentId")));
    let parents: HashMap<String, Option<String>> = lines.iter().filter_map(parent).collect();
    let mut next = Some(lines.iter().rev().find_map(|(_, fields, _)| fields.text("id"))?);
    let mut branch = HashSet::new();
    while let Some(id) = next {
        next = parents.get(&id).cloned().flatten();
        if !branch.insert(id) {
            break;
        }
    }
    // A tree has a line that is the parent of another.
    (branch.len() > 1).then_some(branch)
}

fn message<'a>(draft: &mut Draft<'a>, raw: &'a RawValue, mut outer: Fields<'a>) -> Result<(), Bad> {
    let source = draft.source;
    let message = outer.take("message").ok_or_else(|| source.bad(raw, "a line has no `message`"))?;
    let mut fields = source.fields(message)?;
    let role = fields.take_text("role").ok_or_else(|| source.bad(message, "a message has no `role`"))?;
    draft.note_mended(raw);
    let mut parts = fields.take("content").map(|content| parts(draft, content)).transpose()?.unwrap_or_default();
    let mut line = match role.as_str() {
        "user" => {
            draft.pairs.next_turn();
            Line::new(Role::User)
        }
        "assistant" => Line::new(Role::Assistant),
        "system" => Line::new(Role::System),
        "toolResult" => {
            let name = fields.take_text("toolName");
            let mut result = ToolResult::new(draft.pairs.result(fields.take_text("toolCallId"), name.as_deref()));
            result.name = name;
            result.is_error = fields.take("isError").is_some_and(|value| value.get() == "true");
            let mut more = Map::new();
            for (position, (part, beside, raw)) in std::mem::take(&mut parts).into_iter().enumerate() {
                if !beside.is_empty() {
                    more.insert(position.to_string(), beside.into());
                }
                result.parts.push(block::in_result(part, raw, KEY));
            }
            let mut line = Line::new(Role::Tool);
            line.push_with(result, more);
            line
        }
        _ => {
            draft.note(message, "a message of another role than user, assistant and toolResult was kept as it stands");
            let mut line = Line::new(Role::User);
            line.push(Opaque::new(KEY, message.get()));
            draft.say(line);
            return Ok(());
        }
    };
    parts.into_iter().for_each(|(part, more, _)| line.push_with(part, more));
    line.id = outer.take_text("id");
    let at = time::take(&mut outer, &["timestamp"]);
    line.at = time::take(&mut fields, &["timestamp"]).or(at);
    line.fields = fields.into_values();
    draft.say(line);
    Ok(())
}

type Part<'a> = (Content, Map<String, Value>, &'a RawValue);

fn parts<'a>(draft: &mut Draft<'a>, content: &'a RawValue) -> Result<Vec<Part<'a>>, Bad> {
    let source = draft.source;
    if content.get().starts_with('"') {
        return Ok(vec![(Content::Text(source.string(content)?), Map::new(), content)]);
    }
    let part = |raw| {
        let known = source.fields(raw).ok().and_then(|fields| part(draft, fields));
        let (content, more) = known.unwrap_or_else(|| block::read(raw, KEY));
        (content, more, raw)
    };
    Ok(source.list(content)?.into_iter().map(part).collect())
}

/// A part of this form's own.
fn part(draft: &mut Draft<'_>, mut fields: Fields<'_>) -> Option<(Content, Map<String, Value>)> {
    let content = match fields.take_text("type")?.as_str() {
        "thinking" => {
            let mut thought = Reasoning::new(fields.take_text("thinking")?);
            thought.signature = fields.take_text("thinkingSignature");
            Content::Reasoning(thought)
        }
        "toolCall" => {
            let (id, name) = (fields.take_text("id"), fields.take_text("name")?);
            let arguments = fields.take("arguments").map(json::arguments).unwrap_or_default();
            Content::ToolCall(ToolCall::new(draft.pairs.call(id, &name), name, arguments))
        }
        "image" => block::image(&fields.take_text("mimeType")?, &fields.take_text("data")?)?.into(),
        _ => return None,
    };
    Some((content, fields.into_values()))
}

#[cfg(test)]
mod tests {
    use chat_memory::{Content, Media, Reasoning, Role};
    use serde_json::{Value, json};

    use crate::import::tests::{conversations, messages, one, refused};
    use crate::import::{Format, read};

    fn text(lines: &[Value]) -> String {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn a_session_with_calls_side_by_side_and_thoughts() {
        let message =
            |message: Value| json!({"type": "message", "timestamp": "2025-01-01T00:00:00Z", "message": message});
        let call =
            |id: &str| json!({"type": "toolCall", "id": id, "name": "f", "arguments": {"x": 1.0}, "partialJson": ""});
        let result = |id: &str, is_error: bool| {
            json!({"role": "toolResult", "toolCallId": id, "toolName": "f", "isError": is_error, "details": {"d": 1},
                "content": [{"type": "text", "text": "r"}], "timestamp": 1_700_000_000_250_u64})
        };
        let thought = json!({"type": "thinking", "thinking": "t", "thinkingSignature": "s"});
        let image = json!({"type": "image", "mimeType": "image/png", "data": "AAEC"});
        let lines = [
            json!({"type": "session", "id": "s-1", "timestamp": "2025-01-01T00:00:00Z", "cwd": "/x"}),
            message(json!({"role": "user", "content": [{"type": "text", "text": "a"}, image]})),
            json!({"type": "model_change", "modelId": "m"}),
            message(json!({"role": "assistant", "content": [thought, call("a"), call("b")], "usage": {"input": 1}})),
            message(result("b", true)),
            message(result("a", false)),
            message(json!({"role": "assistant", "content": []})),
            message(json!({"role": "bashExecution", "command": "ls"})),
        ];
        let conversation = one(read("x.jsonl", &text(&lines), None).unwrap(), Format::Pi);
        let all = messages(&conversation);
        assert_eq!((conversation.id.as_str(), all.len(), conversation.notes.len()), ("s-1", 6, 2));
        assert_eq!(all[0].content()[1], Content::Media(Media::bytes("image/png", [0, 1, 2])));
        assert_eq!(all[0].metadata().get("pi").unwrap()["conversation"]["cwd"], "/x");
        assert_eq!(all[1].content()[0], Reasoning::new("t").with_signature("s").into());
        assert_eq!(all[1].tool_calls().next().unwrap().arguments, r#"{"x":1.0}"#);
        assert!(all[2].tool_results().next().unwrap().is_error);
        assert_eq!(
            all[2].created_at().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis(),
            1_700_000_000_250
        );
        assert!(all[4].content().is_empty() && all[4].created_at().is_some());
        assert_eq!(all[5].role(), Role::User);
    }

    #[test]
    fn the_branch_of_the_last_line_is_taken() {
        let line = |id: &str, parent: Option<&str>| json!({"type": "message", "id": id, "parentId": parent, "message": {"role": "user", "content": id}});
        let lines = [
            json!({"type": "session", "id": "s", "cwd": "/"}),
            line("a", None),
            line("b", Some("a")),
            line("c", Some("a")),
            line("d", Some("c")),
        ];
        let cut = text(&lines) + "{\"type\":\"mess";
        let archive = read("x.jsonl", &cut, None).unwrap();
        assert_eq!(refused(&archive)[0].line, 6);
        let all = conversations(archive);
        assert_eq!(messages(&all[0]).iter().map(|said| said.text().into_owned()).collect::<Vec<_>>(), ["a", "c", "d"]);
        assert_eq!(all[0].notes, ["a message on another branch was left out (line 3)"]);
    }
}
