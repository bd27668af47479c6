//! Datasets of conversations with `from` and `value`, as ShareGPT began them and trainers extended them.
//!
//! `function_call` becomes a call and `observation` its result. A `system` text becomes a message; `tools` and all else beside
//! the lines stays in the first message's metadata. Of preference data the chosen answer is taken, the rejected one is kept in
//! that metadata.

use chat_memory::{Content, Reasoning, ResultPart, Role, ToolCall, ToolResult};
use serde_json::Map;
use serde_json::value::RawValue;

use super::draft::{self, Draft, Line};
use super::json::{self, Fields};
use super::source::{Bad, Source};
use super::{Format, Found, block, time};

const KEY: &str = "sharegpt";

pub(super) fn read<'a>(source: &'a Source<'a>) -> Result<Found, Bad> {
    let mut found = Found::default();
    for (number, item) in source.items()?.values.into_iter().enumerate() {
        let mut draft = Draft::new(source, Format::ShareGpt);
        let read = item.and_then(|raw| conversation(&mut draft, raw));
        found.conversations.push(draft.finish(read, number));
    }
    Ok(found)
}

fn conversation<'a>(draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<(), Bad> {
    let source = draft.source;
    draft.note_mended(raw);
    if raw.get().starts_with('[') {
        return source.list(raw)?.into_iter().try_for_each(|one| line(draft, one));
    }
    let mut fields = source.fields(raw)?;
    (draft.id, draft.title) = (draft::take_own_id(&mut fields), fields.text("title"));
    if let Some(system) = fields.text("system").filter(|system| !system.is_empty()) {
        fields.take("system");
        let mut message = Line::new(Role::System);
        message.push(Content::Text(system));
        draft.say(message);
    }
    let name = ["conversations", "messages", "conversation"].into_iter().find(|name| fields.has_list(name));
    let lines = name.and_then(|name| fields.take(name)).ok_or_else(|| source.bad(raw, "no list of `conversations`"))?;
    for one in source.list(lines)? {
        line(draft, one)?;
    }
    if let Some(chosen) = fields.take("chosen") {
        draft.note(chosen, "the chosen answer was taken; the rejected one is kept in the metadata");
        answer(draft, chosen)?;
    }
    draft.about(fields);
    Ok(())
}

/// The answer that was preferred: a line, several, or the text alone.
fn answer<'a>(draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<(), Bad> {
    match raw.get().as_bytes().first() {
        Some(b'"') => {
            let mut message = Line::new(Role::Assistant);
            message.push(Content::Text(draft.source.string(raw)?));
            draft.say(message);
            Ok(())
        }
        Some(b'[') => draft.source.list(raw)?.into_iter().try_for_each(|one| line(draft, one)),
        _ => line(draft, raw),
    }
}

/// What a speaker says.
enum Kind {
    Said(Role),
    Call,
    Result,
}

fn kind(speaker: &str) -> Option<Kind> {
    Some(match speaker {
        "human" | "user" => Kind::Said(Role::User),
        "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "claude" | "model" | "bot" => Kind::Said(Role::Assistant),
        "system" => Kind::Said(Role::System),
        "function_call" | "tool_call" => Kind::Call,
        "observation" | "tool" | "function" | "function_response" | "tool_response" | "ipython" => Kind::Result,
        _ => return None,
    })
}

fn line<'a>(draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<(), Bad> {
    let source = draft.source;
    let mut fields = source.fields(raw)?;
    let mut first = |names: [&str; 3]| names.into_iter().find_map(|name| fields.take(name));
    let speaker = first(["from", "role", "speaker"]).ok_or_else(|| source.bad(raw, "a line has no `from`"))?;
    let value = first(["value", "content", "text"]);
    let kind = kind(&source.string(speaker)?).ok_or_else(|| {
        source.bad(speaker, "the speaker is none of human, gpt, system, function_call, observation, tool")
    })?;
    let mut message = match kind {
        Kind::Said(role) => {
            if role == Role::User {
                draft.pairs.next_turn();
            }
            let mut message = Line::new(role);
            said(draft, &mut message, value)?;
            message
        }
        Kind::Call => {
            let mut message = Line::new(Role::Assistant);
            for call in value.map(|value| calls(draft, value)).transpose()?.unwrap_or_default() {
                message.push(call);
            }
            message
        }
        Kind::Result => result(draft, &mut fields, value)?,
    };
    message.id = fields.take_text("id");
    message.name = message.name.or_else(|| fields.take_text("name"));
    message.at = time::take(&mut fields, &["created_at", "timestamp", "time"]);
    message.fields = fields.into_values();
    draft.say(message);
    Ok(())
}

/// A text, or a list of parts with `type` and `value`.
fn said<'a>(draft: &mut Draft<'a>, message: &mut Line, value: Option<&'a RawValue>) -> Result<(), Bad> {
    let Some(value) = value else { return Ok(()) };
    if !value.get().starts_with('[') {
        message.push(Content::Text(draft.source.string(value)?));
        return Ok(());
    }
    for part in draft.source.list(value)? {
        match typed(draft, part)? {
            Typed::Parts(parts) => parts.into_iter().for_each(|part| message.push(part)),
            Typed::Other => {
                let (part, more) = block::read(part, KEY);
                message.push_with(part, more);
            }
        }
    }
    Ok(())
}

enum Typed {
    Parts(Vec<Content>),
    Other,
}

/// A part with its text under `value`.
fn typed<'a>(draft: &mut Draft<'a>, part: &'a RawValue) -> Result<Typed, Bad> {
    let Some(mut fields) = draft.source.fields(part).ok().filter(|fields| fields.has("value")) else {
        return Ok(Typed::Other);
    };
    let (kind, value) = (fields.text("type").unwrap_or_default(), fields.take("value"));
    let text = value.and_then(json::text);
    Ok(Typed::Parts(match (kind.as_str(), value, text) {
        ("text", _, Some(text)) => vec![Content::Text(text)],
        ("reasoning", _, Some(text)) => vec![Reasoning::new(text).into()],
        ("tool_call", Some(value), _) => calls(draft, value)?.into_iter().map(Content::ToolCall).collect(),
        _ => return Ok(Typed::Other),
    }))
}

/// The calls that a text, or JSON, holds: one with `name` and `arguments`, or a list of such.
fn calls<'a>(draft: &mut Draft<'a>, value: &'a RawValue) -> Result<Vec<ToolCall>, Bad> {
    let text = json::arguments(value);
    let inner: Option<&RawValue> = serde_json::from_str(&text).ok();
    let list: Vec<&RawValue> = match inner {
        Some(inner) if inner.get().starts_with('[') => serde_json::from_str(inner.get()).unwrap_or_default(),
        Some(inner) => vec![inner],
        None => Vec::new(),
    };
    let read = |raw: &&RawValue| {
        let mut fields: Fields<'_> = serde_json::from_str(raw.get()).ok()?;
        let arguments = fields.take("arguments").or_else(|| fields.take("parameters")).map(json::arguments);
        Some((fields.take_text("id"), fields.take_text("name")?, arguments.unwrap_or_default()))
    };
    let known: Option<Vec<_>> = list.iter().map(read).collect();
    let known = known.filter(|known| !known.is_empty()).unwrap_or_else(|| {
        draft.note(value, "a call that is not written as JSON with a `name` was kept as the text of its arguments");
        vec![(None, String::new(), text.clone())]
    });
    let call = |(id, name, arguments): (Option<String>, String, String)| {
        ToolCall::new(draft.pairs.call(id, &name), name, arguments)
    };
    Ok(known.into_iter().map(call).collect())
}

/// What a tool answered, or several: to several calls at once the answers come as a list in one text.
fn result<'a>(draft: &mut Draft<'a>, fields: &mut Fields<'a>, value: Option<&'a RawValue>) -> Result<Line, Bad> {
    let (id, tool) = (fields.take_text("tool_call_id"), fields.take_text("name"));
    let mut spoken = Line::new(Role::Tool);
    said(draft, &mut spoken, value)?;
    let said = spoken.into_message(KEY);
    let text = said.text().into_owned();
    let answers = serde_json::from_str::<Vec<&RawValue>>(&text).ok();
    let answers = answers.filter(|answers| answers.len() > 1 && answers.len() == draft.pairs.open() && id.is_none());
    let mut message = Line::new(Role::Tool);
    if let (Some(answers), Some(value)) = (answers, value) {
        draft.note(value, "a list of answers was taken apart, one for each call");
        for answer in answers {
            let tool = serde_json::from_str::<Fields<'_>>(answer.get()).ok().and_then(|fields| fields.text("name"));
            let result = ToolResult::new(draft.pairs.result(None, None)).with_text(answer.get());
            message.push(named(result, tool));
        }
        return Ok(message);
    }
    let mut result = named(ToolResult::new(draft.pairs.result(id, tool.as_deref())), tool);
    for part in said.content() {
        result.parts.push(match part {
            Content::Text(text) => ResultPart::Text(text.clone()),
            Content::Media(media) => ResultPart::Media(media.clone()),
            Content::Opaque(opaque) => ResultPart::Opaque(opaque.clone()),
            _ => continue,
        });
    }
    message.push_with(result, Map::new());
    Ok(message)
}

fn named(mut result: ToolResult, tool: Option<String>) -> ToolResult {
    result.name = tool;
    result
}

#[cfg(test)]
mod tests {
    use chat_memory::{Content, Message, Reasoning, Role, ToolResult};

    use crate::import::tests::{conversations, messages, one, refused};
    use crate::import::{Format, read};

    #[test]
    fn calls_and_observations_are_paired_and_texts_kept() {
        let text = r#"[{"id": "d-1", "tools": "[]", "system": "Be brief.", "conversations": [
            {"from": "human", "value": "a"},
            {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\":  1}}"},
            {"from": "observation", "value": "1"},
            {"from": "gpt", "value": "b", "weight": 0},
            {"from": "observation", "value": "nobody asked"}]}]"#;
        let conversation = one(read("d.json", text, None).unwrap(), Format::ShareGpt);
        let all = messages(&conversation);
        assert_eq!((conversation.id.as_str(), all.len()), ("d-1", 6));
        assert_eq!((all[0].role(), all[0].text().as_ref()), (Role::System, "Be brief."));
        let call = all[2].tool_calls().next().unwrap();
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("f", "{\"x\":  1}"));
        assert_eq!(all[3].tool_results().next().unwrap().call_id, call.id);
        assert_eq!(all[4].metadata().get("sharegpt").unwrap()["fields"]["weight"], 0);
        let unasked = all[5].tool_results().next().unwrap();
        assert!(unasked.call_id.starts_with("unasked") && unasked.call_id != call.id);
        assert_eq!(all[0].metadata().get("sharegpt").unwrap()["conversation"]["tools"], "[]");
    }

    #[test]
    fn the_chosen_answer_is_taken_and_the_rejected_one_kept_aside() {
        let text = r#"[{"conversations":[{"from":"human","value":"a"}],
            "chosen":{"from":"gpt","value":"good"},"rejected":{"from":"gpt","value":"bad"}}]"#;
        let conversation = one(read("d.json", text, None).unwrap(), Format::ShareGpt);
        assert_eq!(messages(&conversation).len(), 2);
        assert_eq!(messages(&conversation)[1], Message::assistant("good"));
        let kept = messages(&conversation)[0].metadata().get("sharegpt").unwrap();
        assert_eq!(kept["conversation"]["rejected"]["value"], "bad");
        assert!(conversation.notes[0].contains("chosen") && !conversation.notes[0].contains("good"));
    }

    #[test]
    fn typed_parts_are_known_and_several_answers_in_one_text_are_taken_apart() {
        let text = concat!(
            r#"{"messages":[{"role":"user","content":[{"type":"text","value":"a"}]},"#,
            r#"{"role":"assistant","content":[{"type":"reasoning","value":"hm"},"#,
            r#"{"type":"tool_call","value":"{\"name\":\"f\",\"arguments\":{}}"},"#,
            r#"{"type":"tool_call","value":"{\"name\":\"g\",\"arguments\":{}}"}]},"#,
            r#"{"role":"tool","content":[{"type":"text","value":"[{\"name\":\"f\",\"content\":1}, 2]"}]}]}"#,
            "\n{\"messages\":[{\"role\":\"user\",\"cont"
        );
        let archive = read("d.jsonl", text, None).unwrap();
        assert_eq!((archive.format, refused(&archive)[0].line), (Format::ShareGpt, 2));
        let conversation = &conversations(archive)[0];
        let all = messages(conversation);
        assert_eq!(conversation.id, "d/0");
        assert_eq!(all[1].content()[0], Content::Reasoning(Reasoning::new("hm")));
        let ids: Vec<&str> = all[1].tool_calls().map(|call| call.id.as_str()).collect();
        let answers: Vec<ToolResult> = all[2].tool_results().cloned().collect();
        let first = ToolResult::new(ids[0]).with_name("f").with_text("{\"name\":\"f\",\"content\":1}");
        assert_eq!(answers, [first, ToolResult::new(ids[1]).with_text("2")]);
    }

    #[test]
    fn an_unknown_speaker_is_refused_at_its_place() {
        let text = "[{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"}]},\n{\"conversations\":[{\"from\":\"secret\",\"value\":\"a\"}]}]";
        let archive = read("d.json", text, Some(Format::ShareGpt)).unwrap();
        let lost = refused(&archive);
        assert_eq!((lost[0].name.as_str(), lost[0].line, lost[0].column), ("d/1", 2, 27));
        assert!(!lost[0].to_string().contains("secret"));
        assert_eq!(conversations(archive)[0].id, "d/0");
    }
}
