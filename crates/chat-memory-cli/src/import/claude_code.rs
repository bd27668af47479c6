//! Session files of Claude Code: a line for each message of Anthropic's form, and lines of the program's own.
//!
//! A conversation for each `sessionId`, in the order of the lines, and one of its own, `<session>/agent-<n>`, for what each helper
//! of a session said. An answer that the program wrote as several lines, one for each block, is one message again. The title is
//! that of the `summary` line which names one of its messages. Lines of other kinds are counted in a note; what is no line of a
//! session is refused by its number.

use std::collections::HashMap;

use chat_memory::transcript::anthropic;
use chat_memory::{Content, Role};
use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::RawValue;

use super::draft::{Draft, Line};
use super::json::Fields;
use super::source::{Bad, Source};
use super::{Format, Found, time};

const KEY: &str = "claude-code";

pub(super) fn read<'a>(source: &'a Source<'a>) -> Result<Found, Bad> {
    let mut reader = Reader { source, sessions: IndexMap::new(), threads: HashMap::new(), others: 0 };
    let mut found = Found::default();
    let mut titles = Vec::new();
    for item in source.items()?.values {
        let read = item.and_then(|raw| reader.line(raw, &mut titles));
        if let Err(bad) = read {
            found.lines.push(bad.of_line());
        }
    }
    for session in 0..reader.sessions.len() {
        if let Err(bad) = reader.flush(session) {
            found.lines.push(bad.of_line());
        }
    }
    for (named, title) in titles {
        let session = match &named {
            Named::Message(id) => reader.threads.get(id).copied(),
            Named::Session(id) => reader.sessions.get_index_of(id),
        };
        if let Some((_, session)) = session.and_then(|session| reader.sessions.get_index_mut(session)) {
            session.draft.title = Some(title);
        }
    }
    if reader.others > 0
        && let Some((_, first)) = reader.sessions.first_mut()
    {
        let text = format!("lines of the file that are no messages were left out: {}", reader.others);
        first.draft.notes.add(text, 0);
    }
    found.conversations.extend(reader.sessions.into_values().map(|session| Ok(session.draft.into_conversation())));
    Ok(found)
}

/// Which session a title is of.
enum Named {
    /// The one with this message.
    Message(String),
    Session(String),
}

struct Session<'a> {
    draft: Draft<'a>,
    /// The answer that the next line may go on with.
    open: Option<Answer<'a>>,
    helpers: usize,
}

/// An answer that came in one or several lines.
struct Answer<'a> {
    /// The provider's id of it.
    id: String,
    first: Fields<'a>,
    place: &'a RawValue,
    /// Its message without the content.
    message: Fields<'a>,
    blocks: Vec<&'a RawValue>,
    /// The further lines.
    more: Vec<Value>,
}

struct Reader<'a> {
    source: &'a Source<'a>,
    /// By their ids; a helper's has its own behind that of the session.
    sessions: IndexMap<String, Session<'a>>,
    /// In which session each line is.
    threads: HashMap<String, usize>,
    /// How many lines are no messages.
    others: usize,
}

impl<'a> Reader<'a> {
    fn line(&mut self, raw: &'a RawValue, titles: &mut Vec<(Named, String)>) -> Result<(), Bad> {
        let mut fields = self.source.fields(raw)?;
        let kind = fields.text("type").ok_or_else(|| self.source.bad(raw, "a line has no `type`"))?;
        match kind.as_str() {
            "user" | "assistant" => self.message(raw, fields),
            "system" => self.system(raw, fields),
            "summary" => {
                let named = fields.take_text("leafUuid").map(Named::Message);
                titles.extend(named.zip(fields.take_text("summary")));
                Ok(())
            }
            "custom-title" | "ai-title" => {
                let title = fields.take_text("customTitle").or_else(|| fields.take_text("aiTitle"));
                titles.extend(fields.take_text("sessionId").map(Named::Session).zip(title));
                Ok(())
            }
            _ => {
                self.others += 1;
                Ok(())
            }
        }
    }

    fn message(&mut self, raw: &'a RawValue, mut fields: Fields<'a>) -> Result<(), Bad> {
        let message = fields.take("message").ok_or_else(|| self.source.bad(raw, "a line has no `message`"))?;
        let mut inner = self.source.fields(message)?;
        if inner.get("role").is_none() {
            return Err(self.source.bad(message, "a message has no `role`"));
        }
        let session = self.session(&fields);
        if let Some(session) = self.get(session) {
            session.draft.note_mended(raw);
            if inner.get("content").is_none() {
                session.draft.note(message, "a message has no `content`");
            }
        }
        // Only lists can go on in another line.
        let blocks = inner.get("content").and_then(|content| self.source.list(content).ok());
        let (Some(id), Some(blocks)) = (inner.text("id"), blocks) else {
            self.flush(session)?;
            let text = format!("[{}]", message.get());
            return self.say(session, &text, message, fields, Vec::new());
        };
        let open = self.get(session).and_then(|session| session.open.as_mut());
        if let Some(open) = open.filter(|open| open.id == id) {
            open.blocks.extend(blocks);
            open.more.push(fields.into_values().into());
            return Ok(());
        }
        self.flush(session)?;
        inner.take("content");
        if let Some(session) = self.get(session) {
            session.open = Some(Answer { id, first: fields, place: message, message: inner, blocks, more: Vec::new() });
        }
        Ok(())
    }

    /// Adds the answer that was open.
    fn flush(&mut self, session: usize) -> Result<(), Bad> {
        let open = self.get(session).and_then(|session| session.open.take());
        let Some(Answer { first, place, message, blocks, more, .. }) = open else { return Ok(()) };
        if more.is_empty() {
            // As it stands in the file, with exact places for what is wrong in it.
            return self.say(session, &format!("[{}]", place.get()), place, first, more);
        }
        let blocks = blocks.iter().map(|block| block.get()).collect::<Vec<_>>().join(",");
        let text = format!("[{}]", message.to_json_with(&[("content", format!("[{blocks}]"))]));
        self.say(session, &text, place, first, more)
    }

    /// Adds a line's message, which is several where a user's has results and other blocks.
    fn say(
        &mut self,
        session: usize,
        text: &str,
        place: &'a RawValue,
        mut fields: Fields<'a>,
        more: Vec<Value>,
    ) -> Result<(), Bad> {
        let import = match anthropic::read(text) {
            Ok(import) => import,
            Err(error) => {
                // Of what stands in the file the place is known.
                self.source.read_by(anthropic::read, place)?;
                return Err(self.source.bad_for(place, &error));
            }
        };
        let (id, at) = (fields.take_text("uuid"), time::take(&mut fields, &["timestamp"]));
        fields.remove(&["sessionId", "type"]);
        let mut entry = serde_json::Map::from_iter([("fields".to_owned(), fields.into_values().into())]);
        let Some(Session { draft, .. }) = self.get(session) else { return Ok(()) };
        if !more.is_empty() {
            draft.note(place, "an answer in several lines became one message");
            entry.insert("lines".to_owned(), more.into());
        }
        let before = draft.messages.len();
        draft.take(import, place);
        for (position, message) in draft.messages.iter_mut().skip(before).enumerate() {
            if position == 0 {
                if let Some(provider_id) = message.id() {
                    entry.insert("message_id".to_owned(), provider_id.into());
                }
                *message = message.clone().with_metadata(KEY, std::mem::take(&mut entry));
            }
            if let Some(id) = &id {
                let id = if position == 0 { id.clone() } else { format!("{id}/{position}") };
                *message = message.clone().with_id(id);
            }
            if let Some(at) = at {
                *message = message.clone().with_created_at(at);
            }
        }
        Ok(())
    }

    /// What the program itself tells the user.
    fn system(&mut self, raw: &'a RawValue, mut fields: Fields<'a>) -> Result<(), Bad> {
        let place = self.session(&fields);
        self.flush(place)?;
        let Some(Session { draft, .. }) = self.get(place) else { return Ok(()) };
        draft.note_mended(raw);
        let mut line = Line::new(Role::System);
        (line.id, line.at) = (fields.take_text("uuid"), time::take(&mut fields, &["timestamp"]));
        if let Some(text) = fields.take_text("content") {
            line.push(Content::Text(text));
        }
        fields.remove(&["sessionId", "type"]);
        line.fields = fields.into_values();
        draft.say(line);
        Ok(())
    }

    /// The session that a line belongs to, or the helper of one.
    fn session(&mut self, fields: &Fields<'a>) -> usize {
        let id = fields.text("sessionId").unwrap_or_else(|| self.source.stem().to_owned());
        let main = self.place(id.clone());
        let parent = fields.text("parentUuid").and_then(|parent| self.threads.get(&parent).copied());
        let is_helper = fields.get("isSidechain").is_some_and(|value| value.get() == "true");
        let place = match (is_helper, fields.text("agentId"), parent) {
            (false, ..) => main,
            (true, Some(agent), _) => self.place(format!("{id}/agent-{agent}")),
            (true, None, Some(parent)) if parent != main => parent,
            _ => {
                let helpers = self.get(main).map(|main| {
                    main.helpers += 1;
                    main.helpers
                });
                self.place(format!("{id}/agent-{}", helpers.unwrap_or(1) - 1))
            }
        };
        if let Some(line) = fields.text("uuid") {
            self.threads.insert(line, place);
        }
        place
    }

    fn place(&mut self, id: String) -> usize {
        let entry = self.sessions.entry(id);
        let place = entry.index();
        let mut draft = Draft::new(self.source, Format::ClaudeCode);
        draft.id = Some(entry.key().clone());
        entry.or_insert(Session { draft, open: None, helpers: 0 });
        place
    }

    fn get(&mut self, place: usize) -> Option<&mut Session<'a>> {
        self.sessions.get_index_mut(place).map(|(_, session)| session)
    }
}
