//! `export` and `import`: what the page does not show.

use chat_memory::{
    ChatHistory, ChatMemory, Content, HistoryRange, Media, Message, Opaque, Reasoning, Role, ToolResult,
};
use serde_json::Value;

use crate::support::{FIXTURE, Place};

/// Messages with everything that there is.
fn of_every_kind() -> Vec<Message> {
    vec![
        Message::system("rules")
            .with_id("s-1")
            .with_created_at(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(17)),
        Message::user("one\u{2028}two\u{2029}three\r\nfour\u{202e}abc\u{200d}\n").with_name("Ann"),
        Message::user("look")
            .with_media(Media::bytes("image/png", [0, 1, 2, 255]))
            .with_media(Media::url("https://example.com/a.png")),
        Message::new(Role::Assistant, [Reasoning::new("hm").with_signature("sig").into()])
            .with_content(Content::Text(String::new()))
            .with_tool_call("c1", "look", "{not json")
            .with_metadata("n", u64::MAX),
        Message::new(Role::Tool, [ToolResult::new("c1").with_text("\u{0}").with_error().into()]),
        Message::new(Role::Assistant, [Opaque::new("acme", "{\"a\": 1}").into()]),
        Message::new(Role::Assistant, []),
        Message::user("👩‍👩‍👧‍👦 سلام 汉字 \u{fffd}"),
    ]
}

#[test]
fn our_own_form_loses_nothing() {
    let place = Place::new();
    let id = "odd id\n\u{1b} \u{202e} 🎉";
    place.store().add(id, &of_every_kind()).unwrap();
    place.store().add(id, &[Message::user("later")]).unwrap();
    place.store().add("b", &[Message::user("b")]).unwrap();
    let exported = place.ok(&["export", "--all"]);
    assert_eq!(exported.lines().count(), of_every_kind().len() + 2, "a message is a line");
    place.write("all.jsonl", &exported);
    let report = place.ok(&["--store", "other", "import", "all.jsonl"]);
    assert!(report.contains("2 conversations with 10 messages imported"), "{report}");
    assert_eq!(place.ok(&["--store", "other", "export", "--all"]), exported);
    let other = chat_memory::FileChatMemory::open(place.path("other")).unwrap();
    assert_eq!(
        other.history(id, HistoryRange::all()).unwrap(),
        place.store().history(id, HistoryRange::all()).unwrap()
    );
    // Again: nothing new. Grown: the rest.
    let again = place.ok(&["--store", "other", "import", "all.jsonl"]);
    assert!(again.contains("0 conversations with 0 messages imported, 2 unchanged"), "{again}");
    place.store().add("b", &[Message::assistant("c")]).unwrap();
    place.write("all.jsonl", place.ok(&["export", "--all"]));
    let grown = place.ok(&["--store", "other", "import", "all.jsonl"]);
    assert!(grown.contains("1 conversation with 1 message imported, 1 unchanged"), "{grown}");
    assert_eq!(other.get("b").unwrap().len(), 2);
}

#[test]
fn a_conversation_is_never_mixed_with_another() {
    let place = Place::with_fixture();
    place.store().add("user-43", &[Message::user("mine")]).unwrap();
    place.write("theirs.jsonl", FIXTURE.replace("trip-to-oslo", "user-43"));
    let said = place.run(&["import", "theirs.jsonl"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("refused user-43") && said.out.contains("--prefix"), "{said:?}");
    assert_eq!(place.store().get("user-43").unwrap(), [Message::user("mine")]);
    let said = place.ok(&["import", "theirs.jsonl", "--prefix", "theirs/"]);
    assert!(said.contains("3 conversations with 13 messages imported"), "{said}");
    assert_eq!(place.store().get("theirs/user-43").unwrap().len(), 4);
}

#[test]
fn a_dry_run_changes_nothing_and_says_the_same() {
    let place = Place::new();
    place.write("a.jsonl", FIXTURE);
    let planned = place.ok(&["import", "a.jsonl", "--dry-run"]);
    assert!(planned.contains("3 conversations with 13 messages would be imported"), "{planned}");
    assert!(!place.path("data").exists());
    place.ok(&["import", "a.jsonl"]);
    let before = place.ok(&["export", "--all"]);
    place.write("b.jsonl", FIXTURE.replace("trip-to-oslo", "new"));
    let planned = place.ok(&["import", "b.jsonl", "--dry-run"]);
    assert!(planned.contains("1 conversation with 4 messages would be imported, 2 unchanged"), "{planned}");
    assert_eq!(place.ok(&["export", "--all"]), before);
}

#[test]
fn one_conversation_goes_where_it_is_sent_and_several_do_not() {
    let place = Place::new();
    place.write("one.json", r#"[{"role":"user","content":"hi"}]"#);
    place.write("many.jsonl", FIXTURE);
    place.ok(&["import", "one.json", "--into", "user-1"]);
    assert_eq!(place.store().get("user-1").unwrap().len(), 1);
    for files in [&["many.jsonl"][..], &["one.json", "one.json"]] {
        let said = place.run(&[&["import", "--into", "x"], files].concat());
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.out.contains("--prefix"), "{said:?}");
    }
    let piped = place.run_with_input(&["import", "-", "--into", "user-2"], r#"[{"role":"user","content":"hi"}]"#);
    assert_eq!(piped.code, 0, "{piped:?}");
    assert!(place.store().get("x").unwrap().is_empty());
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place_and_the_rest_comes_in() {
    let place = Place::new();
    place.write("good.json", r#"[{"role":"user","content":"hi"}]"#);
    place.write("broken.json", "[{\"role\":\"user\",\n\"content\":}]");
    place.write("latin1.json", b"[{\"role\":\"user\",\n\"content\":\"\xe9\"}]");
    let said = place.run(&["import", "broken.json", "latin1.json", "missing.json", "good.json", "--json"]);
    assert_eq!(said.code, 3, "{said:?}");
    let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let place_of = |at: usize| (lines[at]["line"].as_u64().unwrap(), lines[at]["column"].as_u64().unwrap());
    assert_eq!((place_of(0), place_of(1)), ((2, 11), (2, 12)), "{lines:?}");
    assert_eq!(lines[2]["status"], "refused");
    assert_eq!(lines[3]["status"], "imported");
    assert_eq!(place.run(&["import", "broken.json"]).code, 1);
}

#[test]
fn every_form_comes_out_into_a_file_each_and_odd_ids_get_names_that_any_disk_takes() {
    let place = Place::with_fixture();
    for id in ["../../up", ".hidden", "A", "a", "x".repeat(300).as_str(), "CON", "emoji 🎉"] {
        place.store().add(id, &[Message::user("x")]).unwrap();
    }
    for (format, extension) in [("openai", "json"), ("anthropic", "json"), ("markdown", "md"), ("html", "html")] {
        let directory = format!("out-{format}");
        place.ok(&["export", "--all", "-f", format, "-o", &directory]);
        let mut names: Vec<String> = std::fs::read_dir(place.path(&directory))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap().to_lowercase())
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 10, "{names:?}");
        assert!(
            names.iter().all(|name| name.ends_with(extension) && name.len() < 100 && !name.starts_with('.')),
            "{names:?}"
        );
    }
    assert_eq!(place.run(&["export", "--all", "-f", "html"]).code, 2);
    assert_eq!(place.run(&["export", "user-42", "-o", "out-html"]).code, 2);
    let said = place.run(&["export", "user-42", "nobody", "-f", "html", "-o", "some"]);
    assert_eq!((said.code, said.err.contains("'nobody'")), (3, true), "{said:?}");
}

#[test]
fn an_export_that_fails_leaves_the_old_file() {
    let place = Place::with_fixture();
    place.write("backup.jsonl", "old");
    assert_eq!(place.run(&["export", "nobody", "-o", "backup.jsonl"]).code, 4);
    assert_eq!(std::fs::read_to_string(place.path("backup.jsonl")).unwrap(), "old");
    assert!(!place.path("backup.jsonl.part").exists());
    place.ok(&["export", "--all", "-o", "backup.jsonl"]);
    assert_eq!(std::fs::read_to_string(place.path("backup.jsonl")).unwrap(), FIXTURE);
}

#[test]
fn what_a_form_cannot_say_is_told() {
    let place = Place::new();
    place.store().add("c", &of_every_kind()).unwrap();
    let said = place.run(&["export", "c", "-f", "anthropic"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("left out: c, message"), "{said:?}");
    let _: Value = serde_json::from_str(&said.out).unwrap();
    // Importing it again is valid, and the texts are there.
    place.write("c.json", &said.out);
    place.ok(&["import", "c.json", "--into", "again"]);
    assert!(place.store().get("again").unwrap().iter().any(|message| message.text().contains("👩‍👩‍👧‍👦")));
}
