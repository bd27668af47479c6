//! One message of OpenAI's form.
//!
//! The library reads it. What is done here before: calls and results without an id get one, `tool_call_ids` stands in for
//! `tool_call_id`, and the ancestor `function_call` becomes a call like any other.

use chat_memory::transcript::openai;
use serde_json::Value;
use serde_json::value::RawValue;

use super::draft::Draft;
use super::json::Fields;
use super::source::Bad;

/// Adds a message.
pub(super) fn message<'a>(draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<(), Bad> {
    let source = draft.source;
    let fields = source.fields(raw)?;
    let changes = match fields.text("role").as_deref() {
        Some("assistant") => calls(draft, raw, &fields)?,
        Some("tool" | "function") => call_id(draft, raw, &fields),
        Some("user") => {
            draft.pairs.next_turn();
            Vec::new()
        }
        _ => Vec::new(),
    };
    let import = if changes.is_empty() {
        source.read_by(openai::read, raw)?
    } else {
        let text = format!("[{}]", fields.to_json_with(&changes));
        openai::read(&text).map_err(|error| source.bad_for(raw, &error))?
    };
    draft.take(import, raw);
    Ok(())
}

/// What a field is changed to.
type Changes = Vec<(&'static str, String)>;

/// Gives ids to calls without one.
fn calls<'a>(draft: &mut Draft<'a>, raw: &'a RawValue, fields: &Fields<'a>) -> Result<Changes, Bad> {
    let source = draft.source;
    let (mut calls, mut are_changed) = (Vec::new(), false);
    for call in fields.get("tool_calls").map(|calls| source.list(calls)).transpose()?.unwrap_or_default() {
        let call_fields = source.fields(call)?;
        let function = call_fields.get("function").or_else(|| call_fields.get("custom"));
        let tool = function.and_then(|function| source.fields(function).ok()?.text("name")).unwrap_or_default();
        let own = call_fields.text("id").filter(|id| !id.is_empty());
        let id = draft.pairs.call(own.clone(), &tool);
        if own.is_some() && call_fields.get("id").is_some_and(|id| id.get().starts_with('"')) {
            calls.push(call.get().to_owned());
        } else {
            calls.push(call_fields.to_json_with(&[("id", Value::from(id).to_string())]));
            are_changed = true;
        }
    }
    if let Some(function) = fields.get("function_call").filter(|function| function.get().starts_with('{')) {
        let tool = source.fields(function)?.text("name").unwrap_or_default();
        let id = Value::from(draft.pairs.call(None, &tool));
        calls.push(format!("{{\"id\":{id},\"type\":\"function\",\"function\":{}}}", function.get()));
        are_changed = true;
    }
    if !are_changed {
        return Ok(Changes::new());
    }
    draft.note(raw, "a call without an id got one");
    Ok(vec![("function_call", "null".to_owned()), ("tool_calls", format!("[{}]", calls.join(",")))])
}

/// Names the call that a result answers.
fn call_id<'a>(draft: &mut Draft<'a>, raw: &'a RawValue, fields: &Fields<'a>) -> Changes {
    let own = fields.text("tool_call_id").filter(|id| !id.is_empty());
    let first_of_many = || {
        let ids = draft.source.list(fields.get("tool_call_ids")?).ok()?;
        super::json::text(ids.first()?)
    };
    let given = own.clone().or_else(first_of_many);
    let id = draft.pairs.result(given.clone(), fields.text("name").as_deref());
    if own.is_some() {
        return Changes::new();
    }
    if given.is_none() {
        draft.note(raw, "a result without the id of its call got one, by the tool's name or its place");
    }
    vec![("tool_call_id", Value::from(id).to_string())]
}
