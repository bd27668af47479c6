//! One message of ChatGPT's data export.
//!
//! | `content_type` | here |
//! |---|---|
//! | `text`, `multimodal_text` | a text for each string; images and sound, which are in other files, opaque |
//! | any, from the assistant to a tool | a call of the tool with the text as its arguments |
//! | any, from a tool | a result of the call before it |
//! | `code`, `execution_output`, `tether_quote`, `tether_browsing_display` | the text |
//! | `thoughts` | reasoning |
//! | `user_editable_context`, `model_editable_context` | left out |
//! | any other | opaque |

use chat_memory::{Content, Opaque, Reasoning, Role, ToolCall, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::draft::{Draft, Line};
use super::json::{self, Fields};
use super::source::{Bad, Source};
use super::{block, time};

const KEY: &str = "chatgpt";

/// Adds a message, if it is one that its program shows.
pub(super) fn message<'a>(draft: &mut Draft<'a>, raw: &'a RawValue, node: &str) -> Result<(), Bad> {
    let source = draft.source;
    let mut fields = source.fields(raw)?;
    let author = fields.take("author").map(|author| source.fields(author)).transpose()?;
    let mut author = author.ok_or_else(|| source.bad(raw, "a message has no `author`"))?;
    let (role, name) = (author.take_text("role").unwrap_or_default(), author.take_text("name"));
    let content = fields.take("content");
    if is_hidden(source, &fields, content) {
        draft.note(raw, "a message that the program does not show was left out");
        return Ok(());
    }
    let role = match role.as_str() {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => {
            draft.note(raw, "a message of an unknown role was left out");
            return Ok(());
        }
    };
    let mut line = Line::new(role);
    line.id = fields.take_text("id").or_else(|| Some(node.to_owned()));
    line.at = time::take(&mut fields, &["create_time"]);
    let parts = content.map(|content| parts(source, content)).transpose()?.unwrap_or_default();
    let recipient = fields.text("recipient").filter(|recipient| recipient != "all");
    match (role, recipient) {
        (Role::Tool, _) => {
            let tool = name.as_deref();
            let further = (draft.pairs.open() == 0).then(|| draft.pairs.further_result(tool)).flatten();
            let mut result = ToolResult::new(further.unwrap_or_else(|| draft.pairs.result(None, tool)));
            result.name = name;
            let mut more = Map::new();
            for Part { content, more: beside, raw, is_error } in parts {
                if !beside.is_empty() {
                    more.insert(result.parts.len().to_string(), beside.into());
                }
                result.is_error |= is_error;
                result.parts.push(block::in_result(content, raw, KEY));
            }
            line.push_with(result, more);
        }
        (Role::Assistant, Some(tool)) => {
            let (texts, others): (Vec<_>, Vec<_>) =
                parts.into_iter().partition(|part| matches!(part.content, Content::Text(_)));
            let mut more = Map::new();
            let text = |part: &Part<'_>| match &part.content {
                Content::Text(text) => text.clone(),
                _ => String::new(),
            };
            let arguments: Vec<String> = texts.iter().map(text).collect();
            texts.into_iter().for_each(|part| more.extend(part.more));
            others.into_iter().for_each(|part| line.push_with(part.content, part.more));
            let call = ToolCall::new(draft.pairs.call(None, &tool), tool, arguments.join("\n"));
            line.push_with(call, more);
        }
        _ => {
            if role == Role::User {
                draft.pairs.next_turn();
            }
            line.name = name;
            parts.into_iter().for_each(|part| line.push_with(part.content, part.more));
        }
    }
    line.fields = fields.into_values();
    let author: Map<String, Value> = author
        .into_values()
        .into_iter()
        .filter(|(_, value)| value.as_object().is_none_or(|map| !map.is_empty()))
        .collect();
    if !author.is_empty() {
        line.fields.insert("author".to_owned(), author.into());
    }
    draft.say(line);
    Ok(())
}

fn is_hidden<'a>(source: &'a Source<'a>, fields: &Fields<'a>, content: Option<&'a RawValue>) -> bool {
    let of_object = |raw: Option<&'a RawValue>| raw.and_then(|raw| source.fields(raw).ok());
    let mark =
        of_object(fields.get("metadata")).and_then(|metadata| metadata.get("is_visually_hidden_from_conversation"));
    let kind = of_object(content).and_then(|content| content.text("content_type"));
    mark.is_some_and(|mark| mark.get() == "true")
        || matches!(kind.as_deref(), Some("user_editable_context" | "model_editable_context"))
}

struct Part<'a> {
    content: Content,
    /// What the part says beside it.
    more: Map<String, Value>,
    raw: &'a RawValue,
    is_error: bool,
}

fn parts<'a>(source: &'a Source<'a>, raw: &'a RawValue) -> Result<Vec<Part<'a>>, Bad> {
    if raw.get().starts_with('"') {
        return Ok(vec![Part { content: Content::Text(source.string(raw)?), more: Map::new(), raw, is_error: false }]);
    }
    let mut fields = source.fields(raw)?;
    let kind = fields.take_text("content_type").unwrap_or_default();
    let opaque = |raw: &'a RawValue| {
        let content = Opaque::new(KEY, raw.get()).into();
        Part { content, more: Map::new(), raw, is_error: false }
    };
    let list = |raw: &'a RawValue| if raw.get().starts_with('[') { source.list(raw) } else { Ok(vec![raw]) };
    let texts: &[&str] = match kind.as_str() {
        "text" | "multimodal_text" | "" => {
            let parts = fields.take("parts").or_else(|| fields.take("text")).map(list).transpose()?.unwrap_or_default();
            let spoken = |raw: &'a RawValue| {
                let text = if raw.get().starts_with('"') { json::text(raw) } else { transcription(source, raw) };
                let more = Map::new();
                text.map(|text| Part { content: Content::Text(text), more, raw, is_error: false })
                    .unwrap_or_else(|| opaque(raw))
            };
            return Ok(parts.into_iter().filter(|raw| raw.get() != "null").map(spoken).collect());
        }
        "thoughts" => {
            let thoughts = fields.take("thoughts").map(list).transpose()?.unwrap_or_default();
            return Ok(thoughts.into_iter().map(|raw| thought(source, raw).unwrap_or_else(|| opaque(raw))).collect());
        }
        "code" | "execution_output" | "tether_quote" | "system_error" => &["text"],
        "tether_browsing_display" => &["result", "summary"],
        _ => &[],
    };
    match texts.iter().find_map(|name| fields.take_text(name)) {
        Some(text) => {
            let is_error = kind == "system_error";
            Ok(vec![Part { content: Content::Text(text), more: fields.into_values(), raw, is_error }])
        }
        None => Ok(vec![opaque(raw)]),
    }
}

/// What was spoken, of a part that is speech as text.
fn transcription<'a>(source: &'a Source<'a>, raw: &'a RawValue) -> Option<String> {
    let fields = source.fields(raw).ok()?;
    (fields.text("content_type")? == "audio_transcription").then(|| fields.text("text")).flatten()
}

/// A thought, and its summary beside it.
fn thought<'a>(source: &'a Source<'a>, raw: &'a RawValue) -> Option<Part<'a>> {
    let mut fields = source.fields(raw).ok()?;
    let text = fields.take_text("content").filter(|text| !text.is_empty()).or_else(|| fields.take_text("summary"))?;
    Some(Part { content: Reasoning::new(text).into(), more: fields.into_values(), raw, is_error: false })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use chat_memory::{Content, Message, Opaque, Reasoning, ResultPart};
    use serde_json::{Value, json};

    use crate::import::tests::{messages, one};
    use crate::import::{Format, read};

    /// Messages one behind the other.
    fn imported(said: &[Value]) -> (Vec<Message>, Vec<String>) {
        let node = |(at, message): (usize, &Value)| {
            let parent = at.checked_sub(1).map(|at| at.to_string());
            (at.to_string(), json!({"parent": parent, "message": message}))
        };
        let mapping: serde_json::Map<_, _> = said.iter().enumerate().map(node).collect();
        let export = json!([{"title": "T", "current_node": (said.len() - 1).to_string(), "mapping": mapping}]);
        let conversation = one(read("c.json", &export.to_string(), None).unwrap(), Format::ChatGpt);
        (messages(&conversation).to_vec(), conversation.notes)
    }

    #[test]
    fn a_tool_is_called_and_answers_in_several_messages() {
        let (all, _) = imported(&[
            json!({"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["a"]}, "create_time": 1.5}),
            json!({"author": {"role": "assistant"}, "recipient": "browser",
                "content": {"content_type": "code", "language": "unknown", "text": "search(\"x\")"}}),
            json!({"author": {"role": "tool", "name": "browser"},
                "content": {"content_type": "tether_browsing_display", "result": "r", "summary": null}}),
            json!({"author": {"role": "tool", "name": "browser", "metadata": {}},
                "content": {"content_type": "tether_quote", "url": "u", "text": "q"}}),
            json!({"author": {"role": "tool", "name": "python"}, "content": {"content_type": "system_error", "text": "e"}}),
            json!({"author": {"role": "assistant"}, "recipient": "all", "content": {"content_type": "code", "text": "c"}}),
        ]);
        assert_eq!(all[0].created_at(), Some(UNIX_EPOCH + Duration::from_millis(1_500)));
        let call = all[1].tool_calls().next().unwrap();
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("browser", "search(\"x\")"));
        let results: Vec<_> = all[2..5].iter().flat_map(Message::tool_results).collect();
        assert_eq!(results.iter().map(|result| result.is_error).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!((&results[0].call_id, &results[1].call_id), (&call.id, &call.id));
        assert_ne!(results[2].call_id, call.id);
        assert_eq!(results[1].parts, [ResultPart::Text("q".into())]);
        assert_eq!(all[3].metadata().get("chatgpt").unwrap()["parts"]["0"]["0"]["url"], "u");
        assert_eq!(all[5].text(), "c");
    }

    #[test]
    fn parts_that_are_no_text_are_kept_word_for_word() {
        let image = json!({"content_type": "image_asset_pointer", "asset_pointer": "file-service://a", "width": 2});
        let speech = json!({"content_type": "audio_transcription", "text": "spoken"});
        let parts = json!(["a", image, null, speech]);
        let recap = json!({"content_type": "reasoning_recap", "content": "for 3 s"});
        let thoughts = json!([{"summary": "s", "content": "t"}, {"summary": "u"}]);
        let (all, _) = imported(&[
            json!({"author": {"role": "user"}, "content": {"content_type": "multimodal_text", "parts": parts}}),
            json!({"author": {"role": "assistant"}, "content": {"content_type": "thoughts", "thoughts": thoughts}}),
            json!({"author": {"role": "assistant"}, "content": recap}),
            json!({"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": null}}),
            json!({"author": {"role": "assistant"}, "content": null, "metadata": null}),
            json!({"author": {"role": "assistant"}}),
        ]);
        let opaque = |json: &Value| Content::Opaque(Opaque::new("chatgpt", json.to_string()));
        let text = |text: &str| Content::Text(text.to_owned());
        assert_eq!(all[0].content(), [text("a"), opaque(&image), text("spoken")]);
        assert_eq!(all[1].content(), [Reasoning::new("t").into(), Reasoning::new("u").into()]);
        assert_eq!(all[1].metadata().get("chatgpt").unwrap()["parts"]["0"]["summary"], "s");
        assert_eq!(all[2].content(), [opaque(&recap)]);
        assert!(all[3..].iter().all(|message| message.content().is_empty()));
    }

    #[test]
    fn what_is_hidden_is_left_out_and_counted() {
        let (all, notes) = imported(&[
            json!({"author": {"role": "system"}, "metadata": {"is_visually_hidden_from_conversation": true},
                "content": {"content_type": "text", "parts": ["secret"]}}),
            json!({"author": {"role": "user"}, "content": {"content_type": "user_editable_context", "user_profile": "secret"}}),
            json!({"author": {"role": "critic"}, "content": {"content_type": "text", "parts": ["secret"]}}),
            json!({"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["y"]}}),
        ]);
        assert_eq!((all.len(), all[0].text().as_ref()), (1, "y"));
        assert!(notes[0].contains("does not show") && notes[0].contains("2 times"), "{notes:?}");
        assert!(notes.iter().all(|note| !note.contains("secret")));
    }
}
