//! Lists of providers' messages, and what wraps them: requests, responses, recordings, datasets, records of agents.
//!
//! A file is one conversation where it is a list of messages or has a message a line; messages that name their conversation
//! are put together by that. Else each of its objects and lists is one.

use chat_memory::transcript::{anthropic, openai, responses};
use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::draft::{self, Draft};
use super::json::Fields;
use super::recording::{self, Piece};
use super::source::{Bad, Source};
use super::{Format, Found, json, time};

/// Whose messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    OpenAi,
    Anthropic,
}

/// Where wrappers keep their messages, the first that is there.
pub(super) const LISTS: [&str; 5] = ["messages", "history", "traj", "trajectory", "conversation"];

pub(super) fn read<'a>(source: &'a Source<'a>, form: Form) -> Result<Found, Bad> {
    let items = source.items()?;
    let mut reader = Reader { source, form };
    let mut found = Found::default();
    // Messages that stand by themselves, by what they say of their conversation.
    let mut groups: IndexMap<Option<String>, Vec<&'a RawValue>> = IndexMap::new();
    let mut pieces = Vec::new();
    for item in items.values {
        match item {
            Ok(raw) => match source.fields(raw) {
                Ok(fields) if is_message(&fields) || reader.is_item(&fields) => {
                    groups.entry(draft::group_id(&fields)).or_default().push(raw)
                }
                Ok(fields) if reader.has_message(&fields) => {
                    // A row, with the message in one of its fields.
                    let message = fields.get("message").unwrap_or(raw);
                    groups.entry(draft::group_id(&fields)).or_default().push(message);
                }
                Ok(fields) => pieces.push(Ok(reader.conversation(raw, fields))),
                Err(_) if raw.get().starts_with('[') => pieces.push(Ok(reader.list_alone(raw))),
                Err(bad) => found.lines.push(bad.of_line()),
            },
            Err(bad) if groups.is_empty() => pieces.push(Err(bad)),
            Err(bad) => found.lines.push(bad.of_line()),
        }
    }
    let mut all: Vec<_> =
        groups.into_iter().map(|group| Ok(reader.group(group, items.are_lines, &mut found))).collect();
    all.extend(pieces);
    for (number, piece) in recording::join(all).into_iter().enumerate() {
        found.conversations.push(match piece {
            Ok(piece) => piece.draft.finish(piece.read, number),
            Err(bad) => Err(bad.named(format!("{}/{number}", source.stem()))),
        });
    }
    Ok(found)
}

/// Whether an object is a message, and no wrapper of some.
fn is_message(fields: &Fields<'_>) -> bool {
    fields.has("role") && !LISTS.iter().any(|name| fields.has_list(name))
}

struct Reader<'a> {
    source: &'a Source<'a>,
    form: Form,
}

impl<'a> Reader<'a> {
    fn draft(&self) -> Draft<'a> {
        let format = if self.form == Form::OpenAi { Format::OpenAi } else { Format::Anthropic };
        Draft::new(self.source, format)
    }

    fn has_message(&self, fields: &Fields<'a>) -> bool {
        let message = fields.get("message").and_then(|message| self.source.fields(message).ok());
        message.is_some_and(|message| is_message(&message))
    }

    /// Messages that stand in the file by themselves; lines have each its own fate.
    fn group(
        &mut self,
        (id, messages): (Option<String>, Vec<&'a RawValue>),
        are_lines: bool,
        found: &mut Found,
    ) -> Piece<'a> {
        let mut draft = self.draft();
        draft.id = id;
        let read = if !are_lines || self.are_items(&messages) {
            self.messages(&mut draft, &messages)
        } else {
            for message in messages {
                if let Err(bad) = self.message(&mut draft, message) {
                    found.lines.push(bad.of_line());
                }
            }
            Ok(())
        };
        Piece { draft, read, request: None }
    }

    fn list_alone(&mut self, raw: &'a RawValue) -> Piece<'a> {
        let mut draft = self.draft();
        let read = self.list(&mut draft, raw);
        Piece { draft, read, request: None }
    }

    /// An object that is a conversation, or wraps one.
    fn conversation(&mut self, raw: &'a RawValue, mut fields: Fields<'a>) -> Piece<'a> {
        let mut draft = self.draft();
        (draft.id, draft.title) = (draft::take_own_id(&mut fields), fields.text("title"));
        let mut request_length = None;
        let read = if fields.has_object("request") {
            let (request, response) = (fields.take("request"), fields.take("response"));
            request.map_or(Ok(()), |request| self.body(&mut draft, request)).and_then(|()| {
                request_length = Some(draft.messages.len());
                response.map_or(Ok(()), |response| self.body(&mut draft, response))
            })
        } else if fields.has_object("body") {
            fields.take("body").map_or(Ok(()), |body| self.body(&mut draft, body))
        } else if fields.has_object("response") {
            fields.take("response").map_or(Ok(()), |body| self.body(&mut draft, body))
        } else {
            self.inner(&mut draft, raw, &mut fields)
        };
        draft.about(fields);
        Piece { draft, read, request: request_length }
    }

    /// What was sent or answered.
    fn body(&mut self, draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<(), Bad> {
        let outer = self.source.fields(raw)?;
        let raw = outer.get("body").filter(|body| body.get().starts_with('{')).unwrap_or(raw);
        let mut fields = self.source.fields(raw)?;
        if is_message(&fields) {
            return self.message(draft, raw);
        }
        self.inner(draft, raw, &mut fields)?;
        draft.about(fields);
        Ok(())
    }

    /// An object with messages in it, which are taken out of its fields.
    fn inner(&mut self, draft: &mut Draft<'a>, raw: &'a RawValue, fields: &mut Fields<'a>) -> Result<(), Bad> {
        let first = LISTS.iter().find(|name| fields.has_list(name));
        if let Some(messages) = first.and_then(|name| fields.take(name)) {
            if fields.has_list("trajectory") {
                fields.take("trajectory");
                draft.note(raw, "`trajectory` was left out: the messages say the same");
            }
            self.system(draft, fields)?;
            self.list(draft, messages)
        } else if self.form == Form::OpenAi && fields.has_object("input") {
            // A preference, where the request is an object in the object.
            let input = fields.take("input").and_then(|input| self.source.fields(input).ok()?.take("messages"));
            self.list(draft, input.ok_or_else(|| self.source.bad(raw, "the `input` has no `messages`"))?)?;
            fields.take("preferred_output").map_or(Ok(()), |preferred| {
                draft.note(raw, "the preferred output was taken; the other one is kept beside the messages");
                self.list(draft, preferred)
            })
        } else if self.form == Form::OpenAi && ["input", "output"].iter().any(|name| fields.has(name)) {
            draft.note_mended(raw);
            let import = self.source.read_whole_by(responses::read, raw)?;
            draft.take(import, raw);
            let name = if fields.get("output").is_some() { "output" } else { "input" };
            fields.remove(&[name, "instructions"]);
            Ok(())
        } else if let Some(choices) = fields.take("choices") {
            let choices = self.source.list(choices)?;
            if choices.len() > 1 {
                draft.note(raw, "further choices were left out");
            }
            let message = choices.first().and_then(|choice| self.source.fields(choice).ok()?.take("message"));
            self.message(draft, message.ok_or_else(|| self.source.bad(raw, "the response has no `message`"))?)
        } else {
            Err(self.source.bad(raw, "neither a message with a `role`, nor an object with `messages`"))
        }
    }

    fn system(&mut self, draft: &mut Draft<'a>, fields: &mut Fields<'a>) -> Result<(), Bad> {
        let Some(system) = fields.take("system").filter(|system| system.get() != "\"\"") else {
            return Ok(());
        };
        draft.note_mended(system);
        let text = format!("[{{\"role\":\"system\",\"content\":{}}}]", system.get());
        let import = if self.form == Form::OpenAi { openai::read(&text) } else { anthropic::read(&text) };
        draft.take(import.map_err(|error| self.source.bad_for(system, &error))?, system);
        Ok(())
    }

    fn list(&mut self, draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<(), Bad> {
        let messages = self.source.list(raw)?;
        self.messages(draft, &messages)
    }

    fn messages(&mut self, draft: &mut Draft<'a>, messages: &[&'a RawValue]) -> Result<(), Bad> {
        if self.are_items(messages) {
            return self.items(draft, messages);
        }
        messages.iter().try_for_each(|message| self.message(draft, message))
    }

    fn message(&mut self, draft: &mut Draft<'a>, raw: &'a RawValue) -> Result<(), Bad> {
        let mut fields = self.source.fields(raw)?;
        let before = draft.messages.len();
        match self.form {
            Form::OpenAi => super::openai::message(draft, raw)?,
            Form::Anthropic => super::anthropic::message(draft, raw)?,
        }
        draft.note_mended(raw);
        // No part of either form, but what many programs write beside it.
        let id = fields.take_text("id");
        let at = time::take(&mut fields, &["created_at", "createdAt", "create_time", "timestamp", "time"]);
        for (position, message) in draft.messages.iter_mut().skip(before).enumerate() {
            if let Some(id) = id.as_ref().filter(|_| position == 0 && message.id().is_none()) {
                *message = message.clone().with_id(id);
            }
            if let Some(at) = at {
                *message = message.clone().with_created_at(at);
            }
        }
        Ok(())
    }

    /// Whether a list is of items of the Responses API.
    fn are_items(&self, values: &[&'a RawValue]) -> bool {
        values.iter().any(|value| self.source.fields(value).is_ok_and(|fields| self.is_item(&fields)))
    }

    fn is_item(&self, fields: &Fields<'a>) -> bool {
        self.form == Form::OpenAi && is_item(fields) || {
            let parts = fields.get("content").filter(|_| self.form == Form::OpenAi);
            let parts = parts.and_then(|parts| self.source.list(parts).ok()).unwrap_or_default();
            parts.iter().any(|part| {
                let kind = self.source.fields(part).ok().and_then(|fields| fields.text("type"));
                matches!(kind.as_deref(), Some("input_text" | "input_image" | "input_file" | "output_text"))
            })
        }
    }

    /// Items are read together: several of them are one message.
    fn items(&mut self, draft: &mut Draft<'a>, items: &[&'a RawValue]) -> Result<(), Bad> {
        let Some(first) = items.first() else { return Ok(()) };
        let text = items.iter().map(|item| item.get()).collect::<Vec<_>>().join(",");
        items.iter().for_each(|item| draft.note_mended(item));
        match responses::read(&format!("[{text}]")) {
            Ok(import) => draft.take(import, first),
            Err(error) => {
                for item in items {
                    self.source.read_by(responses::read, item)?;
                }
                return Err(self.source.bad_for(first, &error));
            }
        }
        Ok(())
    }
}

/// Whether an object is an item that is no message.
pub(super) fn is_item(fields: &Fields<'_>) -> bool {
    let kind = fields.get("type").and_then(json::text).unwrap_or_default();
    let is_call =
        ["_call", "_call_output", "_call_result"].iter().any(|end| kind.ends_with(end)) && kind != "tool_call";
    is_call && kind != "function_call"
        || match kind.as_str() {
            "function_call" => fields.has("call_id"),
            "reasoning" => fields.has("summary") || fields.has("encrypted_content"),
            "message" => fields.has("role") && fields.has("content"),
            "item_reference" | "compaction" => true,
            _ => false,
        }
}
