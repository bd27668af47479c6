//! What others ran into when they moved conversations from one program to another.

use chat_memory::Message;
use chat_memory::transcript::{jsonl, openai};

use super::{conversations, messages, refused};
use crate::import::{Format, read};

#[test]
fn newer_exports_lack_metadata_and_one_bad_conversation_does_not_throw_away_the_file() {
    let text = r#"[
        {"title": "good", "current_node": "1", "mapping": {"1": {"id": "1", "parent": null, "children": [],
            "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["x"]}}}}},
        {"title": "bad", "mapping": "oops"},
        {"title": "hidden", "current_node": "2", "mapping": {
            "1": {"id": "1", "parent": null, "children": ["2"], "message": {"author": {"role": "system"},
                "metadata": {"is_visually_hidden_from_conversation": true},
                "content": {"content_type": "user_editable_context", "user_profile": "p"}}},
            "2": {"id": "2", "parent": "1", "children": [],
                "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["y"]}}}}}]"#;
    for format in [None, Some(Format::ChatGpt)] {
        let archive = read("conversations.json", text, format).unwrap();
        assert_eq!(archive.format, Format::ChatGpt);
        let lost = refused(&archive);
        assert_eq!((lost.len(), lost[0].name.as_str(), lost[0].line, lost[0].column), (1, "bad", 4, 37));
        let said: Vec<_> = conversations(archive)
            .into_iter()
            .map(|one| {
                (one.title.clone().unwrap(), messages(&one).iter().map(|said| said.text().into_owned()).collect())
            })
            .collect();
        let expected = [("good", "x"), ("hidden", "y")].map(|(title, text)| (title.to_owned(), vec![text.to_owned()]));
        assert_eq!(said, expected);
    }
}

#[test]
fn a_form_has_the_same_name_on_the_command_line_and_in_the_metadata() {
    use clap::ValueEnum;
    let names: Vec<_> = Format::value_variants().iter().map(|format| format.to_possible_value().unwrap()).collect();
    assert!(names.iter().all(|value| value.get_help().is_some()));
    assert_eq!(names.iter().map(|value| value.get_name()).collect::<Vec<_>>(), Format::ALL.map(Format::name));
}

#[test]
fn broken_json_is_refused_with_its_place_whatever_form_it_should_be() {
    let formats = Format::ALL.map(Some).into_iter().chain([None]);
    for format in formats.filter(|format| *format != Some(Format::SpringAi)) {
        let refused = read("conversations.json", "[{\"title\":\"t\",}]", format).err().unwrap();
        assert_eq!((refused.name.as_str(), refused.line, refused.column), ("conversations.json", 1, 15), "{format:?}");
    }
}

#[test]
fn half_of_a_surrogate_pair_is_mended_with_a_note() {
    let text = concat!(
        "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"cut here \\ud83d\"}\n",
        "{\"role\":\"user\",\"content\":\"next\"}\n"
    );
    let archive = read("x.jsonl", text, None).unwrap();
    assert!(refused(&archive).is_empty());
    let all = conversations(archive);
    assert_eq!((messages(&all[0])[0].text().as_ref(), messages(&all[0]).len()), ("cut here \u{fffd}", 2));
    assert_eq!(all[0].notes, ["half of a surrogate pair became U+FFFD (line 1)"]);
    for object in openai::write(messages(&all[0])).objects {
        serde_json::from_str::<serde_json::Value>(&object).unwrap();
    }
}

#[test]
fn emoji_at_any_place_come_through_every_form_of_names_and_titles() {
    for length in 50..=64 {
        let text = "t".repeat(length) + "🎉🎉🎉👩‍👩‍👧‍👦→→";
        let export = serde_json::json!([{"title": text, "mapping": text}, {"title": text, "current_node": "a", "mapping":
            {"a": {"message": {"author": {"role": "user"}, "content": {"parts": [text]}}}}}]);
        let archive = read("🎉.json", &export.to_string(), None).unwrap();
        assert_eq!(refused(&archive)[0].name, text);
        assert_eq!(messages(&conversations(archive)[0])[0].text(), text);
    }
}

#[test]
fn separators_inside_of_a_text_do_not_end_a_line() {
    let said = [Message::user("one\u{2028}two\u{2029}three\r\nfour\u{202e}abc\u{200d}\n\u{85}\u{b}\u{c}")];
    let text = jsonl::write(&said).to_json_lines();
    assert_eq!(text.matches('\n').count(), 1);
    for text in [text.clone(), text.trim_end().to_owned(), text.replace('\n', "\r\n")] {
        let all = conversations(read("x.jsonl", &text, Some(Format::Jsonl)).unwrap());
        assert_eq!(messages(&all[0]), said);
    }
    let raw = serde_json::json!({"role": "user", "content": said[0].text()}).to_string();
    let all = conversations(read("x.jsonl", &(raw.clone() + "\n" + &raw), None).unwrap());
    assert_eq!(messages(&all[0])[1].text(), said[0].text());
}

#[test]
fn an_id_that_comes_again_is_another_conversation() {
    let one = |id: &str| format!("{{\"id\":\"{id}\",\"messages\":[{{\"role\":\"user\",\"content\":\"x\"}}]}}\n");
    let text = one("a") + &one("a") + &one("a#2") + &one("a") + &one(" ");
    let all = conversations(read("dir/x.jsonl", &text, None).unwrap());
    let ids: Vec<&str> = all.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["a", "a#2", "a#2#2", "a#3", "x/4"]);
    assert_eq!(all[1].notes, ["its id is there before in the file: number 2 of that id"]);
}

#[test]
fn errors_and_notes_show_nothing_of_what_was_said() {
    let texts = [
        r#"[{"role":"secret","content":"secret"}]"#,
        r#"[{"role":"user","content":{"secret":"secret"}}]"#,
        r#"[{"role":"user","content":[{"type":"text","text":["secret"]}]}]"#,
        r#"[{"role":"user","content":"secret"},{"role":"assistant","content":"secret","tool_calls":"secret"}]"#,
        r#"{"messages":["secret"]}"#,
        r#"{"messages":{"secret":"secret"}}"#,
        "{\"role\":\"user\",\"content\":\"secret\"}\n{\"role\":\"user\",\"content\":\"secret\" secret}",
        "{\"conversation\":\"x\",\"seq\":\"secret\",\"recorded_at\":\"secret\",\"message\":\"secret\"}",
        "conversation_id,content,type\nsecret,secret,secret\n",
        r#"[{"type":"human","data":"secret"},{"type":"secret","data":{"content":"secret"}}]"#,
        r#"[{"conversations":[{"from":"secret","value":"secret"}]},{"conversations":["secret"]}]"#,
    ];
    for text in texts {
        for format in Format::ALL.map(Some).into_iter().chain([None]) {
            let archive = match read("x.json", text, format) {
                Ok(archive) => archive,
                Err(refused) => {
                    assert!(!refused.to_string().contains("secret"), "{format:?}: {refused}");
                    continue;
                }
            };
            for refused in refused(&archive) {
                assert!(!refused.reason.contains("secret"), "{format:?}: {refused}");
            }
            let all = conversations(archive);
            let notes: Vec<&String> = all.iter().flat_map(|one| &one.notes).collect();
            assert!(notes.iter().all(|note| !note.contains("secret")), "{format:?}: {notes:?}");
        }
    }
}
