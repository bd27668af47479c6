//! One message of LangChain's.
//!
//! Arguments of a call are the text that the provider sent, where the message still has it, else the JSON of `args`. A call that
//! LangChain could not parse is a call too.

use std::collections::HashSet;

use chat_memory::{Content, Role, ToolCall, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::block;
use super::draft::{Draft, Line};
use super::json::{self, Fields};
use super::source::{Bad, Source};

const KEY: &str = "langchain";

/// The class of a message and its fields, in each of the three forms.
fn unwrapped<'a>(source: &'a Source<'a>, raw: &'a RawValue) -> Result<(String, Fields<'a>), Bad> {
    let mut fields = source.fields(raw)?;
    let kind = fields.take_text("type").ok_or_else(|| source.bad(raw, "a message has no `type`"))?;
    if kind == "constructor" {
        let path = fields.take("id").map(|path| source.list(path)).transpose()?.unwrap_or_default();
        let class = path.last().and_then(|name| json::text(name)).unwrap_or_default();
        let kwargs = fields.take("kwargs").ok_or_else(|| source.bad(raw, "a message has no `kwargs`"))?;
        let mut kwargs = source.fields(kwargs)?;
        kwargs.take("type");
        return Ok((class, kwargs));
    }
    match fields.take("data") {
        Some(data) => {
            let mut data = source.fields(data)?;
            data.take("type");
            Ok((kind, data))
        }
        None => Ok((kind, fields)),
    }
}

/// The role of a class, by any of its names.
pub(super) fn role_of(kind: &str) -> Option<Role> {
    let kind = kind.strip_suffix("Chunk").unwrap_or(kind);
    Some(match kind.strip_suffix("Message").unwrap_or(kind).to_ascii_lowercase().as_str() {
        "human" => Role::User,
        "ai" => Role::Assistant,
        "system" => Role::System,
        "tool" | "function" => Role::Tool,
        _ => return None,
    })
}

/// A message; none is left of one that only removes another.
pub(super) fn line<'a>(draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<Option<Line>, Bad> {
    let source = draft.source;
    let (kind, mut fields) = unwrapped(source, raw)?;
    let role = role_of(&kind).or_else(|| {
        let is_chat = kind.to_ascii_lowercase().starts_with("chat");
        is_chat.then(|| match fields.text("role").unwrap_or_default().as_str() {
            "assistant" | "ai" => Role::Assistant,
            "system" => Role::System,
            "developer" => Role::Developer,
            _ => Role::User,
        })
    });
    let Some(role) = role else {
        if kind.to_ascii_lowercase().starts_with("remove") {
            draft.note(raw, "a message that only removes another was left out");
            return Ok(None);
        }
        return Err(source.bad(raw, "the `type` is none of human, ai, system, tool, function, chat"));
    };
    let mut line = Line::new(role);
    let content = fields.take("content").map(|content| blocks(source, content)).transpose()?.unwrap_or_default();
    if role == Role::Tool {
        result(draft, &mut line, &mut fields, content);
    } else {
        if role == Role::User {
            draft.pairs.next_turn();
        }
        let calls = calls(draft, &mut fields)?;
        let called: HashSet<String> = calls.iter().map(|(call, _)| call.id.clone()).collect();
        for block in content {
            // Anthropic's calls stand among the blocks once more.
            if !block.tool_use.is_some_and(|id| called.contains(&id)) {
                line.push_with(block.content, block.more);
            }
        }
        calls.into_iter().for_each(|(call, more)| line.push_with(call, more));
        line.name = fields.take_text("name");
    }
    line.id = fields.take_text("id");
    line.fields = fields.into_values();
    Ok(Some(line))
}

struct Block<'a> {
    content: Content,
    more: Map<String, Value>,
    raw: &'a RawValue,
    /// The id of a call that is a block.
    tool_use: Option<String>,
}

fn blocks<'a>(source: &'a Source<'a>, content: &'a RawValue) -> Result<Vec<Block<'a>>, Bad> {
    let list = if content.get().starts_with('[') { source.list(content)? } else { vec![content] };
    let block = |raw: &'a RawValue| {
        let fields = source.fields(raw).ok();
        let is_call = |fields: &Fields<'a>| matches!(fields.text("type").as_deref(), Some("tool_use" | "tool_call"));
        let tool_use = fields.filter(is_call).and_then(|fields| fields.text("id"));
        let (content, more) = block::read(raw, KEY);
        Block { content, more, raw, tool_use }
    };
    Ok(list.into_iter().map(block).collect())
}

fn result<'a>(draft: &mut Draft<'a>, line: &mut Line, fields: &mut Fields<'a>, content: Vec<Block<'a>>) {
    let (id, name) = (fields.take_text("tool_call_id"), fields.take_text("name"));
    let mut result = ToolResult::new(draft.pairs.result(id, name.as_deref()));
    result.name = name;
    result.is_error = fields.take_text("status").is_some_and(|status| status == "error");
    let mut more = Map::new();
    for block in content {
        if !block.more.is_empty() {
            more.insert(result.parts.len().to_string(), block.more.into());
        }
        result.parts.push(block::in_result(block.content, block.raw, KEY));
    }
    line.push_with(result, more);
}

/// A call, and what is said beside it.
type Call = (ToolCall, Map<String, Value>);

/// The calls of a message.
fn calls<'a>(draft: &mut Draft<'a>, fields: &mut Fields<'a>) -> Result<Vec<Call>, Bad> {
    let source = draft.source;
    let mut list = |name: &str| fields.take(name).map(|calls| source.list(calls)).transpose();
    let parsed = list("tool_calls")?.unwrap_or_default();
    let invalid = list("invalid_tool_calls")?.unwrap_or_default();
    list("tool_call_chunks").ok();
    let sent = sent(source, fields);
    let mut calls = Vec::new();
    for raw in parsed.into_iter().chain(invalid) {
        let mut call = source.fields(raw)?;
        call.take("type");
        let (id, name) = (call.take_text("id"), call.take_text("name").unwrap_or_default());
        let args = call.take("args").map(json::arguments).unwrap_or_default();
        let args =
            id.as_ref().and_then(|id| sent.iter().find(|sent| sent.0 == *id)).map_or(args, |sent| sent.2.clone());
        calls.push((ToolCall::new(draft.pairs.call(id, &name), name, args), call.into_values()));
    }
    if calls.is_empty() {
        for (id, name, arguments) in sent {
            calls.push((ToolCall::new(draft.pairs.call(Some(id), &name), name, arguments), Map::new()));
        }
    }
    Ok(calls)
}

/// The calls as the provider sent them: id, tool, and the text of the arguments.
fn sent<'a>(source: &'a Source<'a>, fields: &Fields<'a>) -> Vec<(String, String, String)> {
    let of_object = |raw: Option<&'a RawValue>| raw.and_then(|raw| source.fields(raw).ok());
    let Some(more) = of_object(fields.get("additional_kwargs")) else { return Vec::new() };
    let calls = more.get("tool_calls").and_then(|calls| source.list(calls).ok()).unwrap_or_default();
    let function = |id: String, raw: Option<&'a RawValue>| {
        let function = of_object(raw)?;
        Some((id, function.text("name")?, function.get("arguments").map(json::arguments).unwrap_or_default()))
    };
    let calls = calls.into_iter().filter_map(|call| of_object(Some(call)));
    let calls = calls.filter_map(|call| function(call.text("id").unwrap_or_default(), call.get("function")));
    calls.chain(function(String::new(), more.get("function_call"))).collect()
}
