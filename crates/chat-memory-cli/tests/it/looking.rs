//! `list`, `show`, `search`, `stats`, `path`, `id`, `verify`, `repair`, `clear`: what the page does not show.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use chat_memory::{ChatHistory, ChatMemory, HistoryRange, Message, Window};
use serde_json::Value;

use crate::support::Place;

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn looking_makes_no_store_and_says_what_is_missing() {
    let place = Place::new();
    for arguments in [&["list"][..], &["show", "x"], &["stats"], &["search", "x"], &["verify"], &["export", "--all"]] {
        let said = place.run(arguments);
        assert_eq!(said.code, 4, "{said:?}");
        assert!(said.err.contains("data/chat-memory") && said.err.contains("--store"), "{said:?}");
        assert!(!place.path("data").exists());
    }
}

#[test]
fn an_unknown_conversation_is_named_and_nothing_is_made_for_it() {
    let place = Place::with_fixture();
    for command in ["show", "stats", "verify", "clear", "export", "path"] {
        let said = place.run(&[command, "nobody"]);
        assert_eq!(said.code, 4, "{command}: {said:?}");
        assert!(said.err.contains("'nobody'"), "{said:?}");
    }
    assert_eq!(place.run(&["copy", "nobody", "x"]).code, 4);
    assert_eq!(place.ok(&["list", "--json"]).lines().count(), 3);
}

#[test]
fn pages_of_a_list_follow_each_other_and_every_order_is_there() {
    let place = Place::new();
    let memory = place.store();
    for n in 0..25_usize {
        memory.add(&format!("c{n:02}"), &vec![Message::user("x".repeat(n)); n + 1]).unwrap();
    }
    let ids = |text: &str| -> Vec<String> {
        json_lines(text).iter().map(|line| line["conversation"].as_str().unwrap().to_owned()).collect()
    };
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut arguments = vec!["list", "--json", "--limit", "10"];
        if let Some(cursor) = &after {
            arguments.extend(["--after", cursor]);
        }
        let said = place.run(&arguments);
        all.extend(ids(&said.out));
        let Some(cursor) = said.err.split("--after ").nth(1) else { break };
        after = Some(cursor.split(' ').next().unwrap().to_owned());
    }
    let expected: Vec<String> = (0..25).rev().map(|n| format!("c{n:02}")).collect();
    assert_eq!(all, expected);
    for (sort, first) in [("last", "c24"), ("created", "c24"), ("size", "c24"), ("messages", "c24"), ("id", "c00")] {
        assert_eq!(ids(&place.ok(&["list", "--json", "--sort", sort]))[0], first, "{sort}");
        assert_ne!(ids(&place.ok(&["list", "--json", "--sort", sort, "--reverse"]))[0], first, "{sort}");
    }
    assert_eq!(ids(&place.ok(&["list", "--json", "--match", "c1"])).len(), 10);
    assert_eq!(ids(&place.ok(&["list", "--json", "--since", "1h"])).len(), 25);
    assert_eq!(ids(&place.ok(&["list", "--json", "--until", "1h"])).len(), 0);
    assert_eq!(place.run(&["list", "--since", "yesterday"]).code, 2);
    assert_eq!(place.run(&["list", "--after", "nonsense"]).code, 1);
}

#[test]
fn a_view_is_what_the_library_shows() {
    let place = Place::with_fixture();
    let memory = place.store();
    for n in 1..9 {
        for at in 0..7 {
            let shown = place.ok(&["show", "support-17", "--view", &n.to_string(), "--at", &at.to_string(), "--json"]);
            let view = memory.view_at("support-17", at, &Window::messages(n)).unwrap();
            let shown = chat_memory::transcript::jsonl::read(&shown).unwrap().messages;
            assert_eq!(shown, view, "{n} at {at}");
        }
    }
    let said = place.run(&["show", "support-17", "--view", "3", "--at", "70"]);
    assert_eq!((said.code, said.err.contains("the newest message has the number 6")), (4, true), "{said:?}");
    assert_eq!(place.run(&["show", "support-17", "--view", "0"]).code, 1);
}

#[test]
fn a_followed_conversation_shows_what_another_process_adds() {
    let place = Place::with_fixture();
    let mut child = place
        .command(&["show", "user-42", "--follow", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        lines.next().unwrap().unwrap();
    }
    place.store().add("user-42", &[Message::user("and now?")]).unwrap();
    assert!(lines.next().unwrap().unwrap().contains("and now?"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let place = Place::new();
    let memory = place.store();
    let long = vec![Message::user("x".repeat(1_000)); 2_000];
    memory.add("long", &long).unwrap();
    for arguments in [&["show", "long"][..], &["export", "long"], &["search", "x"], &["export", "long", "-f", "html"]] {
        let mut child = place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 100]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn nothing_that_was_said_drives_the_terminal() {
    let place = Place::new();
    let hostile = "\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}gone\r";
    let memory = place.store();
    memory
        .add(
            hostile,
            &[
                Message::user(hostile).with_name(hostile),
                Message::assistant("").with_tool_call(hostile, hostile, hostile),
            ],
        )
        .unwrap();
    for arguments in [
        &["list"][..],
        &["show", hostile],
        &["show", hostile, "--full"],
        &["search", "gone"],
        &["stats"],
        &["verify", hostile],
        &["export", hostile, "-f", "html"],
        &["copy", hostile, "copy\u{1b}[2J"],
        &["clear", "copy\u{1b}[2J", "--yes"],
        &["show", "unknown\u{1b}[2J"],
    ] {
        let said = place.run(arguments);
        for text in [&said.out, &said.err] {
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{arguments:?}: {text:?}");
        }
    }
    // Programs get what was said.
    assert!(place.ok(&["show", hostile, "--json"]).contains("\\u001b]0;title"));
}

#[test]
fn colours_come_when_asked_for_and_never_in_a_pipe() {
    let place = Place::with_fixture();
    assert!(!place.ok(&["show", "user-42"]).contains('\u{1b}'));
    assert!(place.ok(&["show", "user-42", "--color", "always"]).contains("\u{1b}["));
    assert!(place.ok(&["search", "chapter", "--color", "always"]).contains("\u{1b}["));
}

#[test]
fn a_search_tells_roles_times_and_cases_apart_and_refuses_bad_patterns() {
    let place = Place::with_fixture();
    let found = |arguments: &[&str]| place.run(&[&["search", "--json"], arguments].concat());
    assert_eq!(found(&["POSTEN"]).out.lines().count(), 3);
    assert_eq!(found(&["POSTEN", "--case-sensitive"]).code, 4);
    assert_eq!(found(&["posten", "--role", "tool"]).out.lines().count(), 1);
    assert_eq!(found(&["posten", "--limit", "1"]).out.lines().count(), 1);
    assert_eq!(found(&["4711", "-c", "user-42"]).code, 4);
    assert_eq!(found(&["the", "--since", "2026-11-29"]).out.lines().count(), 1);
    assert_eq!(found(&["the", "--until", "2026-11-25 10:00:01"]).out.lines().count(), 1);
    assert_eq!(found(&["posten", "--role", "nobody"]).code, 2);
    for pattern in ["(", "(a{1000}){1000}", ""] {
        let begun = Instant::now();
        let said = found(&["--regex", pattern]);
        assert_eq!(said.code, 2, "{pattern}: {said:?}");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    // Linear time, whatever the pattern.
    place.store().add("hard", &[Message::user("a".repeat(100_000) + "b")]).unwrap();
    assert_eq!(found(&["--regex", "(a+)+$"]).code, 4);
    // A long line is cut around the match.
    let text = format!("{}needle{}", "🙏".repeat(4_000), "汉".repeat(4_000));
    place.store().add("long", &[Message::user(text)]).unwrap();
    let shown = place.ok(&["search", "needle"]);
    assert!(shown.len() < 1_000 && shown.contains("🙏needle汉"), "{shown}");
}

#[test]
fn context_lines_are_shown_once() {
    let place = Place::new();
    let lines: Vec<String> = (1..=20).map(|n| format!("line {n}{}", if n % 4 == 0 { " match" } else { "" })).collect();
    place.store().add("c", &[Message::user(lines.join("\n"))]).unwrap();
    let shown = place.ok(&["search", "match", "-C", "2"]);
    assert_eq!(shown.matches("line ").count(), 19, "{shown}");
    assert_eq!(place.ok(&["search", "match"]).matches("line ").count(), 5);
}

#[test]
fn care_says_what_is_lost_and_keeps_the_rest() {
    let place = Place::with_fixture();
    let memory = place.store();
    let path = memory.path("trip-to-oslo");
    let bytes = std::fs::read(&path).unwrap();
    // In the middle, at the end, and the header.
    for at in [200, bytes.len() - 30, 20] {
        let mut harmed = bytes.clone();
        harmed[at] ^= 1;
        std::fs::write(&path, &harmed).unwrap();
        let said = place.run(&["verify"]);
        assert_eq!(said.code, 3, "{at}: {said:?}");
        let file = path.file_name().unwrap().to_str().unwrap();
        assert!(said.out.contains(file), "{at}: {said:?}");
        let listed = place.run(&["list"]);
        assert!(listed.code == 0 && listed.out.lines().count() + listed.err.lines().count() >= 4, "{listed:?}");
        let planned = place.run(&["repair", "trip-to-oslo"]);
        assert_eq!(planned.code, 3, "{planned:?}");
        assert_eq!(std::fs::read(&path).unwrap(), harmed, "a dry run changes nothing");
        let mended = place.run(&["repair", "trip-to-oslo", "--apply", "--json"]);
        assert_eq!(mended.code, 0, "{mended:?}");
        let report = &json_lines(&mended.out)[0];
        let aside = report["set_aside"][0].as_str().unwrap();
        assert!(std::path::Path::new(aside).exists());
        assert_eq!(
            report["messages"].as_u64(),
            Some(memory.history("trip-to-oslo", HistoryRange::all()).unwrap().len() as u64)
        );
        place.ok(&["clear", "trip-to-oslo", "--yes"]);
        assert!(!std::path::Path::new(aside).exists());
    }
}

#[test]
fn a_conversation_is_not_cleared_without_being_sure() {
    let place = Place::with_fixture();
    let said = place.run(&["clear", "user-42"]);
    assert_eq!((said.code, said.err.contains("--yes")), (1, true), "{said:?}");
    assert_eq!(place.store().get("user-42").unwrap().len(), 2);
    // All are known before any is cleared.
    assert_eq!(place.run(&["clear", "user-42", "nobody", "--yes"]).code, 4);
    assert_eq!(place.store().get("user-42").unwrap().len(), 2);
}

#[test]
fn a_rename_over_a_conversation_changes_nothing() {
    let place = Place::with_fixture();
    let before = place.ok(&["export", "--all"]);
    for command in ["copy", "rename"] {
        let said = place.run(&[command, "user-42", "support-17"]);
        assert_eq!((said.code, said.err.contains("holds messages already")), (1, true), "{said:?}");
        assert_eq!(place.run(&[command, "user-42", "user-42"]).code, 1);
    }
    assert_eq!(place.ok(&["export", "--all"]), before);
}

#[test]
fn files_of_a_session_are_listed_shown_searched_and_copied_out() {
    let place = Place::new();
    assert_eq!(place.run(&["files", "list", "s"]).code, 4);
    let files = chat_memory::FileMemory::new(
        chat_memory::LocalFileStore::open(place.path("data").join("file-memory"))
            .or_else(|_| {
                std::fs::create_dir_all(place.path("data")).unwrap();
                chat_memory::LocalFileStore::open(place.path("data/file-memory"))
            })
            .unwrap(),
    );
    files.save("s", "plan.md", b"1. Look\n2. Write\n", Some("What to do")).unwrap();
    files.save("s", "data.bin", &[0, 255, 1], None).unwrap();
    let listed = place.ok(&["files", "list", "s"]);
    assert!(listed.contains("plan.md") && listed.contains("What to do") && listed.contains("data.bin"), "{listed}");
    assert_eq!(json_lines(&place.ok(&["files", "list", "s", "--json"])).len(), 2);
    assert_eq!(place.ok(&["files", "show", "s", "plan.md"]), "1. Look\n2. Write\n");
    assert!(place.ok(&["files", "search", "s", "write"]).contains("plan.md"));
    assert_eq!(place.run(&["files", "search", "s", "("]).code, 2);
    assert_eq!(place.run(&["files", "show", "s", "nothing.md"]).code, 4);
    assert_eq!(place.run(&["files", "show", "s", "../x"]).code, 1);
    assert_eq!(place.run(&["files", "list", "another"]).code, 4);
    place.ok(&["files", "export", "s", "out"]);
    assert_eq!(std::fs::read(place.path("out/data.bin")).unwrap(), [0, 255, 1]);
}

#[test]
fn completions_and_the_manual_name_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(place.ok(&["completions", shell]).contains("verify"), "{shell}");
    }
    let manual = place.ok(&["man"]);
    for command in [
        "list", "show", "stats", "search", "path", "id", "verify", "repair", "clear", "copy", "rename", "export",
        "import", "files", "chat",
    ] {
        assert!(manual.contains(&format!("COMMAND {}", command.to_uppercase())), "{command}");
        let help = place.ok(&[command, "--help"]);
        assert!(help.contains("Example"), "{command}");
    }
    assert_eq!(place.run(&["nonsense"]).code, 2);
}
