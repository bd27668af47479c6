//! Which form a text is in, by what it says, whatever the file is called.
//!
//! The first value that only one form can have decides. Messages that two forms could have, such as those of texts alone, are
//! taken for OpenAI's: they mean the same in all of them.

use serde_json::value::RawValue;

use super::json::Fields;
use super::source::{Bad, Source};
use super::{Format, chat, jsonl, langchain_message, rows, spring_ai};

/// How deep messages may be wrapped.
const DEEPEST: usize = 4;

/// The form of a file.
pub(super) fn format<'a>(source: &'a Source<'a>) -> Result<Format, Bad> {
    let unknown = || {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        let reason = format!("this is in no known form of conversations; looked for: {}", names.join(", "));
        Err(source.bad_at(0, reason))
    };
    if !source.text().trim_start().starts_with(['[', '{']) {
        let header = rows::header(source);
        let names = header.iter().map(String::as_str);
        if spring_ai::has_columns(names.clone()) {
            return Ok(Format::SpringAi);
        }
        if names.clone().any(|name| name == "session_id") && names.clone().any(|name| name == "message") {
            return Ok(Format::LangChain);
        }
        if source.items().is_err() {
            return unknown();
        }
    }
    let mut has_messages = false;
    for raw in source.items()?.values.into_iter().flatten() {
        match of_value(source, raw, DEEPEST) {
            Seen::Format(format) => return Ok(format),
            Seen::Messages => has_messages = true,
            Seen::Nothing => {}
        }
    }
    if has_messages { Ok(Format::OpenAi) } else { unknown() }
}

/// What a value tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Format(Format),
    /// Messages, of OpenAI or whom else.
    Messages,
    Nothing,
}

impl Seen {
    fn or(self, other: impl FnOnce() -> Seen) -> Seen {
        match self {
            Seen::Format(_) => self,
            Seen::Messages => match other() {
                Seen::Nothing => self,
                more => more,
            },
            Seen::Nothing => other(),
        }
    }
}

fn of_value<'a>(source: &'a Source<'a>, raw: &'a RawValue, deep: usize) -> Seen {
    let Some(deep) = deep.checked_sub(1) else { return Seen::Nothing };
    if let Ok(list) = source.list(raw) {
        let mut seen = Seen::Nothing;
        for element in list {
            seen = seen.or(|| of_value(source, element, deep));
            if matches!(seen, Seen::Format(_)) {
                break;
            }
        }
        return seen;
    }
    let Ok(fields) = source.fields(raw) else { return Seen::Nothing };
    match of_keys(source, &fields) {
        Some(format) => Seen::Format(format),
        None if fields.get("role").is_some() && !fields.has_list("messages") => of_message(source, &fields),
        None => of_wrapper(source, &fields, deep),
    }
}

/// A form that an object's keys alone decide.
fn of_keys<'a>(source: &'a Source<'a>, fields: &Fields<'a>) -> Option<Format> {
    let kind = fields.text("type").unwrap_or_default();
    let has = |name: &str| fields.get(name).is_some();
    let has_message = fields.has_object("message");
    Some(match () {
        () if jsonl::is_archived(fields) && (has("seq") || has("recorded_at")) => Format::Jsonl,
        () if has("mapping") && (has("title") || has("current_node") || fields.has_object("mapping")) => {
            Format::ChatGpt
        }
        () if has("message_tree_id") || has("prompt") && has("tree_state") => Format::Oasst,
        () if kind == "session" && (has("cwd") || has("id")) => Format::Pi,
        () if kind == "message" && has_message => Format::Pi,
        () if kind == "summary" && has("leafUuid") => Format::ClaudeCode,
        () if has("sessionId") && (has_message || has("uuid")) => Format::ClaudeCode,
        () if matches!(kind.as_str(), "user" | "assistant") && has_message => Format::ClaudeCode,
        () if has("lc") && kind == "constructor" => Format::LangChain,
        () if fields.has_object("data") && (langchain_message::role_of(&kind).is_some() || kind == "chat") => {
            Format::LangChain
        }
        () if langchain_message::role_of(&kind).is_some() && has("content") && !has("role") => Format::LangChain,
        () if has("session_id") && is_message_in_text(fields) => Format::LangChain,
        () if fields.has_list("conversations") && is_of_sharegpt(source, fields, "conversations") => Format::ShareGpt,
        () if has("from") && has("value") => Format::ShareGpt,
        () if spring_ai::has_columns(fields.iter().map(|(name, _)| name)) && !has("role") => Format::SpringAi,
        () if chat::is_item(fields) => Format::OpenAi,
        () => return None,
    })
}

/// Whether a text is that of an object.
fn is_message_in_text(fields: &Fields<'_>) -> bool {
    fields.text("message").is_some_and(|text| text.trim_start().starts_with('{'))
}

fn is_of_sharegpt<'a>(source: &'a Source<'a>, fields: &Fields<'a>, name: &str) -> bool {
    let lines = fields.get(name).and_then(|lines| source.list(lines).ok()).unwrap_or_default();
    lines.first().is_none_or(|line| source.fields(line).is_ok_and(|line| line.has("from") || line.has("role")))
}

/// An object around messages.
fn of_wrapper<'a>(source: &'a Source<'a>, fields: &Fields<'a>, deep: usize) -> Seen {
    let wrapped = ["request", "response", "body", "message", "kwargs", "preferred_output"];
    let inside = chat::LISTS.iter().chain(&wrapped).filter_map(|name| fields.get(name));
    let mut seen = Seen::Nothing;
    for raw in inside {
        seen = seen.or(|| of_value(source, raw, deep));
    }
    let input = || fields.get("input").map_or(Seen::Nothing, |input| of_value(source, input, deep));
    if seen == Seen::Messages && (fields.has("system") || fields.has("anthropic_version")) {
        return Seen::Format(Format::Anthropic);
    }
    if fields.has_list("choices") || fields.has_list("output") || fields.has("input") && fields.has("model") {
        return Seen::Format(Format::OpenAi);
    }
    if seen == Seen::Nothing && fields.has_list("messages") {
        return Seen::Messages;
    }
    seen.or(input)
}

fn of_message<'a>(source: &'a Source<'a>, fields: &Fields<'a>) -> Seen {
    let role = fields.text("role").unwrap_or_default();
    let is_openai =
        ["tool_calls", "function_call", "tool_call_id", "tool_call_ids"].iter().any(|name| fields.has(name));
    if is_openai || matches!(role.as_str(), "developer" | "function") {
        return Seen::Format(Format::OpenAi);
    }
    if fields.has("stop_reason") {
        return Seen::Format(Format::Anthropic);
    }
    let Some(parts) = fields.get("content").and_then(|content| source.list(content).ok()) else {
        return Seen::Messages;
    };
    let mut parts = parts.into_iter().filter_map(|part| source.fields(part).ok());
    if let Some(format) = parts.find_map(|part| of_part(&part)) {
        return Seen::Format(format);
    }
    let ours = ["role", "id", "name", "created_at", "content", "metadata"];
    let has_more = ["id", "created_at", "metadata"].iter().any(|name| fields.has(name));
    if has_more && fields.iter().all(|(name, _)| ours.contains(&name)) {
        return Seen::Format(Format::Jsonl);
    }
    if role == "tool" { Seen::Format(Format::OpenAi) } else { Seen::Messages }
}

/// A form that alone has such a part.
fn of_part(part: &Fields<'_>) -> Option<Format> {
    Some(match part.text("type")?.as_str() {
        _ if part.has("value") => Format::ShareGpt,
        "tool_use" | "thinking" | "redacted_thinking" => Format::Anthropic,
        "tool_result" if part.has("tool_use_id") => Format::Anthropic,
        "image" | "document" if part.has("source") => Format::Anthropic,
        "media" | "opaque" => Format::Jsonl,
        "tool_call" if part.has("arguments") => Format::Jsonl,
        "tool_result" if part.has("call_id") => Format::Jsonl,
        "reasoning" if part.has("text") => Format::Jsonl,
        "image_url" | "input_audio" | "file" | "refusal" => Format::OpenAi,
        "input_text" | "input_image" | "input_file" | "output_text" => Format::OpenAi,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<&'static str> {
        format(&Source::new("x", text)).ok().map(Format::name)
    }

    #[test]
    fn a_form_is_known_by_what_the_text_says() {
        let cases = [
            (r#"[{"role":"user","content":"x"}]"#, "openai"),
            (r#"{"role":"user","content":[{"type":"text","text":"x"}]}"#, "openai"),
            (r#"{"messages":[]}"#, "openai"),
            (r#"{"model":"m","input":"x"}"#, "openai"),
            (r#"{"choices":[{"message":{"role":"assistant","content":"x"}}]}"#, "openai"),
            (r#"{"custom_id":"a","body":{"messages":[{"role":"user","content":"x"}]}}"#, "openai"),
            (r#"[[{"role":"user","content":"x"}]]"#, "openai"),
            (r#"[{"type":"function_call","call_id":"c","name":"f","arguments":""}]"#, "openai"),
            (r#"{"system":"s","messages":[{"role":"user","content":"x"}]}"#, "anthropic"),
            (
                r#"[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":""}]}]"#,
                "anthropic",
            ),
            (
                r#"[{"request":{"messages":[{"role":"user","content":[]}]},"response":{"role":"assistant","stop_reason":"x"}}]"#,
                "anthropic",
            ),
            (r#"{"role":"user","content":[],"created_at":"1.000000000"}"#, "jsonl"),
            (r#"{"role":"tool","content":[{"type":"tool_result","call_id":"c","parts":[]}]}"#, "jsonl"),
            (r#"{"messages":[{"type":"human","content":"x"}]}"#, "langchain"),
            (r#"{"session_id":"s","message":{"type":"ai","content":"x"}}"#, "langchain"),
            (r#"{"session_id":"s","message":{"role":"user","content":"x"}}"#, "openai"),
            ("\"junk\"\n{\"type\":\"summary\",\"summary\":\"s\",\"leafUuid\":\"u\"}", "claude-code"),
            ("15\n{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/\"}", "pi"),
            ("Conversation_ID\tcontent\ttype\ttimestamp\n", "spring-ai"),
            (r#"{"title":"t","mapping":"oops"}"#, "chatgpt"),
            (r#"[{"conversations":[{"from":"human","value":"x"}]}]"#, "sharegpt"),
            (r#"{"message_tree_id":"t"}"#, "oasst"),
        ];
        for (text, format) in cases {
            assert_eq!(found(text), Some(format), "{text}");
        }
    }

    #[test]
    fn what_is_in_no_form_is_refused_with_what_was_looked_for() {
        for text in ["", " \n", "hello, world", "{}", "[]", "[1]", r#"{"a":[{"b":1}]}"#, "null", "a,b\n1,2\n"] {
            let bad = format(&Source::new("x", text)).unwrap_err();
            assert!(Format::ALL.iter().all(|format| bad.reason.contains(format.name())), "{}", bad.reason);
        }
        let bad = format(&Source::new("x", "[{\"title\":\"t\",}]")).unwrap_err();
        assert!(bad.reason.contains("broken JSON"), "{}", bad.reason);
    }
}
