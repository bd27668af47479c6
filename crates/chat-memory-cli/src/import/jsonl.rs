//! Our own forms: lines of an archive, each with its conversation, number and time of recording; or the bare messages of
//! `chat_memory::transcript::jsonl`.
//!
//! The lines of a conversation need not be one behind the other, but their numbers must ascend.

use std::time::SystemTime;

use chat_memory::transcript::jsonl;
use chat_memory::{Entry, Message};
use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::draft::{Draft, Notes};
use super::json::{self, Fields};
use super::source::{Bad, Source};
use super::{Conversation, Format, Found, Refused, Said};

pub(super) fn read<'a>(source: &'a Source<'a>) -> Result<Found, Bad> {
    let mut found = Found::default();
    let mut bare = Draft::new(source, Format::Jsonl);
    let mut archive = Archive::default();
    for item in source.items()?.values {
        let read = item.and_then(|raw| {
            let fields = source.fields(raw)?;
            if is_archived(&fields) {
                archive.line(source, raw, fields)
            } else {
                let import = source.read_by(jsonl::read, raw)?;
                bare.take(import, raw);
                bare.note_mended(raw);
                Ok(())
            }
        });
        if let Err(bad) = read {
            found.lines.push(bad.of_line());
        }
    }
    if !bare.messages.is_empty() {
        found.conversations.push(Ok(bare.into_conversation()));
    }
    found.conversations.extend(archive.0.into_iter().map(|(id, kept)| kept.finish(id)));
    Ok(found)
}

/// Whether an object is a line of an archive.
pub(super) fn is_archived(fields: &Fields<'_>) -> bool {
    fields.has("conversation") && fields.has("message")
}

/// The conversations of an archive by their ids, in order of first appearance.
#[derive(Default)]
struct Archive(IndexMap<String, Kept>);

#[derive(Default)]
struct Kept {
    entries: Vec<Entry>,
    notes: Notes,
    refused: Option<Refused>,
}

impl Archive {
    /// Adds a line; the error is for one that is of no conversation, or whose message cannot be read.
    fn line<'a>(&mut self, source: &'a Source<'a>, raw: &'a RawValue, mut fields: Fields<'a>) -> Result<(), Bad> {
        let mut required =
            |name: &str| fields.take(name).ok_or_else(|| source.bad(raw, format!("a line has no `{name}`")));
        let (id, seq) = (source.string(required("conversation")?)?, required("seq")?);
        let (recorded_at, message) = (required("recorded_at")?, required("message")?);
        let number = seq.get().parse::<u64>().map_err(|_| source.bad(seq, "`seq` is no number from 0"))?;
        let recorded_at = time(recorded_at).ok_or_else(|| {
            source.bad(recorded_at, "`recorded_at` is no text of seconds since 1970 with nine decimals")
        })?;
        let import = source.read_by(jsonl::read, message)?;
        let [message] = <[Message; 1]>::try_from(import.messages)
            .map_err(|_| source.bad(message, "`message` is not one message"))?;

        let kept = self.0.entry(id.clone()).or_default();
        if kept.entries.last().is_some_and(|last| last.seq >= number) && kept.refused.is_none() {
            let reason = "`seq` does not ascend: each line of a conversation has a greater one than the line before";
            kept.refused = Some(source.bad(seq, reason).named(id));
        }
        let line = source.line(raw);
        (0..source.mended_in(raw)).for_each(|_| kept.notes.add("half of a surrogate pair became U+FFFD", line));
        if fields.iter().next().is_some() {
            kept.notes.add("further fields of a line were left out", line);
        }
        kept.entries.push(Entry::new(number, recorded_at, message));
        Ok(())
    }
}

impl Kept {
    fn finish(self, id: String) -> Result<Conversation, Refused> {
        let Kept { entries, notes, refused } = self;
        match refused {
            Some(refused) => Err(refused),
            None => Ok(Conversation { id, title: None, said: Said::Entries(entries), notes: notes.into_texts() }),
        }
    }
}

/// A time as the library writes it, so the library reads it.
fn time(raw: &RawValue) -> Option<SystemTime> {
    json::text(raw).filter(|_| raw.get().starts_with('"'))?;
    let message = format!(r#"{{"role":"user","created_at":{},"content":[]}}"#, raw.get());
    jsonl::read(&message).ok()?.messages.first()?.created_at()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use chat_memory::transcript::jsonl;

    use crate::import::tests::{conversations, messages, refused};
    use crate::import::{Format, Said, read};
    use chat_memory::Message;

    fn line(id: &str, seq: u64, message: &Message) -> String {
        let message = &jsonl::write(std::slice::from_ref(message)).objects[0];
        format!(
            "{{\"conversation\":\"{id}\",\"seq\":{seq},\"recorded_at\":\"{seq}.000000005\",\"message\":{message}}}\n"
        )
    }

    #[test]
    fn lines_of_an_archive_come_back_with_their_numbers_and_times() {
        let said = [Message::user("one"), Message::assistant("two").with_id("m"), Message::user("three")];
        let text = line("b", 4, &said[0]) + &line("a", 0, &said[1]) + &line("b", 9, &said[2]);
        let archive = read("x.jsonl", &text, None).unwrap();
        assert_eq!(archive.format, Format::Jsonl);
        let all = conversations(archive);
        assert_eq!(all.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        let Said::Entries(entries) = &all[0].said else { panic!("no entries") };
        assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [4, 9]);
        assert_eq!(entries[1].recorded_at, UNIX_EPOCH + Duration::new(9, 5));
        assert_eq!(entries[1].message, said[2]);
    }

    #[test]
    fn a_conversation_whose_numbers_do_not_ascend_is_refused_and_others_are_not() {
        let hello = Message::user("hello");
        let text = line("a", 1, &hello) + &line("b", 1, &hello) + &line("a", 1, &hello);
        let archive = read("x.jsonl", &text, None).unwrap();
        let lost = refused(&archive);
        assert_eq!((lost.len(), lost[0].name.as_str(), lost[0].line, lost[0].column), (1, "a", 3, 27));
        assert_eq!(conversations(archive)[0].id, "b");
    }

    #[test]
    fn a_line_that_was_cut_off_is_refused_with_its_place_and_the_others_come_in() {
        let whole = line("a", 0, &Message::user("one")) + &line("a", 1, &Message::user("two"));
        let archive = read("x.jsonl", &whole[..whole.len() - 9], None).unwrap();
        let lost = refused(&archive);
        assert_eq!((lost.len(), lost[0].name.as_str(), lost[0].line), (1, "line 2", 2));
        assert_eq!(conversations(archive).len(), 1);
        for (from, to) in [("\"seq\":1", "\"seq\":-1"), ("1.000000005", "1"), ("\"user\"", "\"no role\"")] {
            let broken = whole.replace(from, to);
            assert_ne!(broken, whole);
            let lost = read("x.jsonl", &broken, Some(Format::Jsonl)).unwrap();
            assert!(refused(&lost).iter().any(|refused| refused.line == 2), "{from}");
        }
    }

    #[test]
    fn bare_messages_are_one_conversation_by_the_name_of_the_file() {
        let said = [Message::user("x").with_id("m-1").with_metadata("a", 1), Message::assistant("y")];
        let text = jsonl::write(&said).to_json_lines();
        for format in [None, Some(Format::Jsonl)] {
            let archive = read("dir/talk.jsonl", &text, format).unwrap();
            assert_eq!(archive.format, Format::Jsonl);
            let all = conversations(archive);
            assert_eq!((all[0].id.as_str(), messages(&all[0])), ("talk", &said[..]));
        }
        let lost = read("talk.jsonl", "{\"role\":\"user\",\"content\":[],\"more\":1}", Some(Format::Jsonl)).unwrap();
        assert_eq!(refused(&lost).len(), 1);
    }
}
