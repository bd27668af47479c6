//! Rows of the table in which Spring AI's JDBC repository keeps a chat memory: `conversation_id`, `content`, `type`,
//! `timestamp`, and in newer versions `sequence_id`.
//!
//! A conversation is ordered by `timestamp`, then `sequence_id`, then as the rows stand in the file, which is all there is where a
//! row has no time that can be read. The table holds no calls and no results: its TOOL rows are empty, and are left out.

use std::time::SystemTime;

use chat_memory::{Content, Role, ToolResult};
use indexmap::IndexMap;

use super::draft::{Draft, Line};
use super::rows::{self, Row};
use super::source::{Bad, Source};
use super::{Format, Found, time};

pub(super) fn read<'a>(source: &'a Source<'a>) -> Result<Found, Bad> {
    let mut found = Found::default();
    let mut conversations: IndexMap<String, Vec<Saved>> = IndexMap::new();
    for row in rows::read(source)? {
        match row.and_then(|row| saved(source, row)) {
            Ok((id, saved)) => conversations.entry(id).or_default().push(saved),
            Err(bad) => found.lines.push(bad.of_line()),
        }
    }
    for (id, rows) in conversations {
        let mut draft = Draft::new(source, Format::SpringAi);
        draft.id = Some(id);
        conversation(&mut draft, rows);
        found.conversations.push(Ok(draft.into_conversation()));
    }
    Ok(found)
}

/// Whether a table with these columns is one of Spring AI's.
pub(super) fn has_columns<'s>(names: impl Iterator<Item = &'s str> + Clone) -> bool {
    let has = |wanted: &&str| names.clone().any(|name| name.eq_ignore_ascii_case(wanted));
    ["conversation_id", "content", "type"].iter().all(has)
}

struct Saved {
    role: Role,
    content: Option<String>,
    at: Option<SystemTime>,
    sequence: Option<i128>,
    row: Row,
}

fn saved(source: &Source<'_>, mut row: Row) -> Result<(String, Saved), Bad> {
    let id = row.take("conversation_id").filter(|id| !id.trim().is_empty());
    let id = id.ok_or_else(|| row.bad(source, "a row has no `conversation_id`"))?;
    let kind = row.take("type").ok_or_else(|| row.bad(source, "a row has no `type`"))?;
    let role = match kind.trim().to_ascii_uppercase().as_str() {
        "USER" => Role::User,
        "ASSISTANT" => Role::Assistant,
        "SYSTEM" => Role::System,
        "TOOL" => Role::Tool,
        _ => return Err(row.bad(source, "the `type` is none of USER, ASSISTANT, SYSTEM, TOOL")),
    };
    let (timestamp, content) = (row.take("timestamp"), row.take("content"));
    let sequence = row.take("sequence_id").and_then(|number| number.trim().parse().ok());
    let at = timestamp.and_then(|text| time::of_text(&text));
    Ok((id, Saved { role, content, at, sequence, row }))
}

fn conversation(draft: &mut Draft<'_>, mut rows: Vec<Saved>) {
    if rows.iter().all(|row| row.at.is_some()) {
        rows.sort_by_key(|row| (row.at, row.sequence));
    } else {
        draft.notes.add("a row has no `timestamp` that can be read: the rows stay as they stand in the file", 0);
    }
    for Saved { role, content, at, sequence, row } in rows {
        let mut line = Line::new(role);
        match (role, content.filter(|text| !text.is_empty())) {
            (Role::Tool, text) => match text.filter(|text| text != "NULL") {
                Some(text) => line.push(ToolResult::new(draft.pairs.result(None, None)).with_text(text)),
                None => {
                    draft.notes.add("a TOOL row was left out: Spring AI stores no results of tools", row.line);
                    continue;
                }
            },
            (_, Some(text)) => line.push(Content::Text(text)),
            (Role::Assistant, None) => {
                draft.notes.add("an ASSISTANT row has no text: Spring AI stores no calls of tools", row.line);
            }
            (_, None) => {}
        }
        line.at = at;
        line.fields = row.into_values();
        line.fields
            .extend(sequence.and_then(|number| Some(("sequence_id".to_owned(), i64::try_from(number).ok()?.into()))));
        draft.say(line);
    }
}

#[cfg(test)]
mod tests {
    use chat_memory::Role;

    use crate::import::tests::{conversations, messages, one, refused};
    use crate::import::{Conversation, Format, read};

    fn texts(conversation: &Conversation) -> Vec<String> {
        messages(conversation).iter().map(|message| message.text().into_owned()).collect()
    }

    #[test]
    fn rows_of_csv_are_put_in_order_by_conversation() {
        let text = "\u{feff}CONVERSATION_ID,CONTENT,TYPE,\"TIMESTAMP\"\r\n\
            a,\"two, \"\"quoted\"\"\nand a line \\ud83d\",ASSISTANT,2025-01-01 00:00:01.5\r\n\
            b,x,USER,2025-01-01 00:00:00\r\n\
            a,NULL,USER,2025-01-01 00:00:00\r\n\
            a,,TOOL,2025-01-01 00:00:02\r\n\
            a,,ASSISTANT,2025-01-01 00:00:03\r\n";
        let archive = read("rows.csv", text, None).unwrap();
        assert_eq!(archive.format, Format::SpringAi);
        let all = conversations(archive);
        assert_eq!((all[0].id.as_str(), all[1].id.as_str()), ("a", "b"));
        assert_eq!(texts(&all[0]), ["NULL", "two, \"quoted\"\nand a line \\ud83d", ""]);
        assert_eq!(all[0].notes.len(), 2, "{:?}", all[0].notes);
        assert!(all[0].notes[0].contains("TOOL") && all[0].notes[0].contains("line 6"), "{:?}", all[0].notes);
        assert!(messages(&all[0]).iter().all(|message| message.created_at().is_some()));
    }

    #[test]
    fn rows_of_json_have_columns_in_any_case_and_a_number() {
        let text = r#"[{"Conversation_Id": "a", "content": "2", "TYPE": "user", "timestamp": 1700000000000, "sequence_id": 10},
            {"conversation_id": "a", "content": "1", "type": "SYSTEM", "timestamp": 1700000000000, "sequence_id": 9, "x": true}]"#;
        let conversation = one(read("rows.json", text, None).unwrap(), Format::SpringAi);
        assert_eq!(texts(&conversation), ["1", "2"]);
        let first = &messages(&conversation)[0];
        assert_eq!(first.role(), Role::System);
        assert_eq!(first.metadata().get("spring-ai").unwrap()["fields"]["x"], true);
    }

    #[test]
    fn rows_without_a_time_stay_as_they_stand() {
        let text = "conversation_id;content;type;timestamp\na;1;USER;later\na;2;ASSISTANT;2020-01-01 00:00:00\n";
        let conversation = one(read("rows.csv", text, None).unwrap(), Format::SpringAi);
        assert_eq!((texts(&conversation).len(), conversation.notes.len()), (2, 1));
    }

    #[test]
    fn rows_that_are_none_are_refused_with_their_line() {
        let text = "conversation_id,content,type,timestamp\na,x,USER,2020-01-01 00:00:00\n\na,secret,NOBODY,\n\
            a,x\n,x,USER,\na,\"cut o";
        let archive = read("rows.csv", text, None).unwrap();
        let lost = refused(&archive);
        assert_eq!(lost.iter().map(|lost| lost.line).collect::<Vec<_>>(), [4, 5, 6, 7]);
        assert!(lost.iter().all(|lost| lost.column == 1 && !lost.to_string().contains("secret")), "{lost:?}");
        assert_eq!(conversations(archive).len(), 1);
    }
}
