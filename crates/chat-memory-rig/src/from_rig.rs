//! From rig's messages to ours.

use chat_memory::{Content, Message, Reasoning, Result, ResultPart, Role, ToolCall, ToolResult};
use rig_core::completion::Message as RigMessage;
use rig_core::completion::message::{
    AssistantContent, AssistantMessage, Native, Reasoning as RigReasoning, Text, ToolCall as RigCall, ToolFunction,
    ToolResult as RigResult, ToolResultContent, UserContent,
};
use serde_json::Value;

use crate::extra::{BEGINS, Draft, FIELDS, JOINS, Numbered, Rest, rest_of, value_of};
use crate::media::{Part, TYPE, from_media, from_whole};

/// Messages of rig's as messages of ours, nothing left out: [`to_rig`](crate::to_rig) gives them back equal, also when they went through
/// a store.
///
/// Text, tool calls, results, images and the like become what they are here, so that every other reader sees them as such. What
/// rig says beside them (where a turn came from, a provider's own item, citations) is kept in the metadata under `rig`; a part
/// that has no counterpart, such as a provider's file id, is an [`Opaque`](chat_memory::Opaque) of that name.
///
/// A user message of rig's that holds tool results becomes a tool message with all of them, and, where it says more, a user message
/// behind it. So a window finds the results behind their calls.
///
/// ```
/// use chat_memory::Role;
/// use chat_memory_rig::{from_rig, to_rig};
/// use rig_core::completion::Message;
///
/// let said = vec![Message::user("What is 2 + 2?"), Message::assistant("Four.")];
/// let messages = from_rig(said.clone())?;
/// assert_eq!((messages[1].role(), &*messages[1].text()), (Role::Assistant, "Four."));
/// assert_eq!(to_rig(&messages).messages, said);
/// # Ok::<(), chat_memory::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Backend`](chat_memory::Error::Backend) where something of rig's cannot be written as JSON; with rig's own types that does not
/// happen.
pub fn from_rig(messages: impl IntoIterator<Item = RigMessage>) -> Result<Vec<Message>> {
    let mut made = Vec::new();
    for message in messages {
        match message {
            RigMessage::System { content } => made.push(Message::system(content)),
            RigMessage::User { content } => user(content, &mut made)?,
            RigMessage::Assistant(turn) => made.push(assistant(turn)?),
        }
    }
    Ok(made)
}

/// All results first, in one tool message, whatever their order: only there a window takes them for answers.
fn user(content: Vec<UserContent>, made: &mut Vec<Message>) -> Result<()> {
    let (mut tool, mut user) = (Draft::new(Role::Tool), Draft::new(Role::User));
    let mut results = 0_usize;
    let mut before = Vec::new();
    for part in content {
        if let UserContent::ToolResult(result) = part {
            let (result, rest) = tool_result(result)?;
            tool.push(result.into(), rest);
            results += 1;
        } else {
            let (part, rest) = user_part(part)?;
            user.push(part, rest);
            before.push(results);
        }
    }

    let has_results = !tool.is_empty();
    if has_results {
        // Behind another tool message it would be taken for a part of the same message of rig's.
        if made.last().is_none_or(|last| last.role() != Role::Assistant) {
            tool.entry.insert(BEGINS.to_owned(), true.into());
        }
        made.push(tool.finish());
    }
    if has_results && !user.is_empty() {
        let in_order = before.iter().all(|before| *before == results);
        user.entry.insert(JOINS.to_owned(), if in_order { true.into() } else { before.into() });
    }
    if !has_results || !user.is_empty() {
        made.push(user.finish());
    }
    Ok(())
}

fn user_part(part: UserContent) -> Result<(Content, Rest)> {
    let (part, rest) = match part {
        UserContent::Text(text) => return of_text(text).map(|(text, rest)| (Content::Text(text), rest)),
        UserContent::ToolResult(result) => return tool_result(result).map(|(result, rest)| (result.into(), rest)),
        UserContent::Image(image) => from_media(image, UserContent::Image)?,
        UserContent::Audio(audio) => from_media(audio, UserContent::Audio)?,
        UserContent::Video(video) => from_media(video, UserContent::Video)?,
        UserContent::Document(document) => from_media(document, UserContent::Document)?,
    };
    Ok((part.into(), rest))
}

fn of_text(mut text: Text) -> Result<(String, Rest)> {
    let said = std::mem::take(&mut text.text);
    Ok((said, rest_of(&text, &["text"])?))
}

fn tool_result(result: RigResult) -> Result<(ToolResult, Rest)> {
    let RigResult { call, name, content, is_error } = result;
    let mut rest = Rest::new();
    if call.is_local() {
        rest.insert("call".to_owned(), value_of(&call)?);
    }
    let mut result = ToolResult::new(call.wire()).with_name(name);
    result.is_error = is_error;
    let mut parts = Numbered::default();
    for part in content {
        let (part, rest) = result_part(part)?;
        result.parts.push(part);
        parts.push(rest);
    }
    parts.insert_into(&mut rest);
    Ok((result, rest))
}

fn result_part(part: ToolResultContent) -> Result<(ResultPart, Rest)> {
    match part {
        ToolResultContent::Text(text) => of_text(text).map(|(text, rest)| (ResultPart::Text(text), rest)),
        ToolResultContent::Image(image) => {
            from_media(image, ToolResultContent::Image).map(|(part, rest)| (part.into(), rest))
        }
        // Its text is what a model reads of it.
        ToolResultContent::Json { value } => {
            let text = value.to_string();
            let mut rest = Rest::from_iter([(TYPE.to_owned(), "json".into())]);
            if !serde_json::from_str::<Value>(&text).is_ok_and(|read| read == value) {
                rest.insert("value".to_owned(), value);
            }
            Ok((ResultPart::Text(text), rest))
        }
    }
}

fn assistant(mut turn: AssistantMessage) -> Result<Message> {
    let mut draft = Draft::new(Role::Assistant);
    for part in std::mem::take(&mut turn.content) {
        let (part, rest) = assistant_part(part)?;
        draft.push(part, rest);
    }
    let fields = rest_of(&turn, &["content"])?;
    if !fields.is_empty() {
        draft.entry.insert(FIELDS.to_owned(), fields.into());
    }
    Ok(draft.finish())
}

fn assistant_part(part: AssistantContent) -> Result<(Content, Rest)> {
    let (part, rest): (Part, Rest) = match part {
        AssistantContent::Text(text) => return of_text(text).map(|(text, rest)| (Content::Text(text), rest)),
        AssistantContent::ToolCall(call) => return tool_call(call),
        AssistantContent::Reasoning(thought) => return reasoning(thought),
        AssistantContent::Image(image) => from_media(image, AssistantContent::Image)?,
        // An item of a provider's own, and whatever a later rig may have.
        other => from_whole(&other)?,
    };
    Ok((part.into(), rest))
}

fn tool_call(call: RigCall) -> Result<(Content, Rest)> {
    let said: &[&str] = if call.id.is_local() { &["function"] } else { &["id", "function"] };
    let mut rest = rest_of(&call, said)?;
    let RigCall { id, function, native: _ } = call;
    let ToolFunction { name, arguments, invalid_arguments } = &function;
    // What the model wrote, where rig kept it; else its values again.
    let text = match invalid_arguments {
        Some(text) => text.clone(),
        None => value_of(arguments)?.to_string(),
    };
    if ToolFunction::parse(name.clone(), &text) != function {
        rest.insert("function".to_owned(), value_of(&function)?);
    }
    Ok((ToolCall::new(id.wire(), name.as_str(), text).into(), rest))
}

/// The signature, or the sealed stand-in, is in the provider's item; it is said here too, where other readers look for it.
fn reasoning(thought: RigReasoning) -> Result<(Content, Rest)> {
    let rest = rest_of(&thought, &["text"])?;
    let RigReasoning { text, redacted: _, native } = thought;
    let mut reasoning = Reasoning::new(text);
    if let Some(Native { item, .. }) = &native {
        let field = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
        match item.get(TYPE).and_then(Value::as_str) {
            Some("thinking") => reasoning.signature = field("signature"),
            Some("redacted_thinking") => reasoning.redacted = field("data"),
            Some("reasoning") => reasoning.redacted = field("encrypted_content"),
            _ => {}
        }
    }
    Ok((reasoning.into(), rest))
}
