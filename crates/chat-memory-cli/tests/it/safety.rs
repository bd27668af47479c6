//! Nothing is lost, mixed or passed over in silence.

use std::fs::File;
use std::process::Stdio;

use chat_memory::{ChatHistory, ChatMemory, HistoryRange, Message};
use serde_json::{Value, json};

use crate::support::{FIXTURE, Place};

/// Own archive lines of a conversation.
fn lines(id: &str, seqs: impl IntoIterator<Item = u64>) -> String {
    let line = |seq: u64| {
        let message = json!({ "role": "user", "content": [{ "type": "text", "text": format!("number {seq}") }] });
        let recorded_at = format!("{}.000000000", 1_796_000_000 + seq);
        json!({ "conversation": id, "seq": seq, "recorded_at": recorded_at, "message": message }).to_string() + "\n"
    };
    seqs.into_iter().map(line).collect()
}

#[test]
fn what_goes_to_a_pipe_is_what_goes_to_a_file() {
    let place = Place::new();
    let odd = "a\u{7f}b\u{1b}[31mred\u{1b}[0m\u{9b}\u{0}\u{202e}";
    place.store().add("id \u{1b}[1m\u{7f}", &[Message::user(odd)]).unwrap();
    for format in ["jsonl", "openai", "anthropic", "markdown", "html"] {
        let file = format!("file.{format}");
        place.ok(&["export", "id \u{1b}[1m\u{7f}", "-f", format, "-o", &file]);
        let piped = place.ok(&["export", "id \u{1b}[1m\u{7f}", "-f", format]);
        assert!(piped.as_bytes() == std::fs::read(place.path(&file)).unwrap(), "{format}");
    }
    place.ok(&["--store", "other", "import", "file.jsonl"]);
    let other = chat_memory::FileChatMemory::open(place.path("other")).unwrap();
    assert_eq!(other.get("id \u{1b}[1m\u{7f}").unwrap()[0].text(), odd);
    let path = place.ok(&["path", "id \u{1b}[1m\u{7f}"]);
    assert_eq!(place.ok(&["id", path.trim_end()]), "id \u{1b}[1m\u{7f}\n");
}

#[test]
fn many_imports_at_once_store_once() {
    let place = Place::new();
    place.write("begin.jsonl", lines("c", 0..10));
    place.ok(&["import", "begin.jsonl"]);
    place.write("all.jsonl", lines("c", 0..1_500));
    let start = |_| {
        let mut command = place.command(&["import", "all.jsonl"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let imports: Vec<_> = (0..6).map(start).collect();
    for mut import in imports {
        import.wait().unwrap();
    }
    assert_eq!(place.ok(&["export", "c"]), lines("c", 0..1_500));
}

#[test]
fn a_conversation_that_grew_keeps_its_numbers_and_times() {
    let place = Place::new();
    for seqs in [&[0, 5][..], &[0, 5, 9, 12]] {
        place.write("g.jsonl", lines("g", seqs.iter().copied()));
        place.ok(&["import", "g.jsonl"]);
    }
    assert_eq!(place.ok(&["export", "g"]), lines("g", [0, 5, 9, 12]));
}

#[test]
fn damage_is_told_by_whatever_reads() {
    let place = Place::new();
    let memory = place.store();
    for n in 0..30 {
        memory.add("c", &[Message::user(format!("number {n}"))]).unwrap();
    }
    let path = memory.path("c");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[900] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    for arguments in [
        &["export", "c"][..],
        &["export", "--all", "-f", "html", "-o", "pages"],
        &["show", "c"],
        &["show", "c", "--json"],
        &["search", "number"],
        &["stats"],
    ] {
        let said = place.run(arguments);
        assert_eq!((said.code, said.err.matches("not whole: c").count()), (3, 1), "{arguments:?}: {said:?}");
    }
    // What is intact is there all the same.
    assert_eq!(place.run(&["export", "c"]).out.lines().count(), 29);
    assert_eq!(place.run(&["show", "c", "--last", "2"]).code, 0, "no damage in what was read");
}

#[test]
fn a_conversation_of_which_only_a_torn_batch_is_there_is_not_passed_over() {
    let place = Place::new();
    place.write("c.json", r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"there"}]"#);
    place.ok(&["import", "c.json"]);
    let path = place.store().path("c");
    let length = std::fs::metadata(&path).unwrap().len();
    File::options().write(true).open(&path).unwrap().set_len(length - 3).unwrap();
    let said = place.run(&["verify"]);
    assert_eq!((said.code, said.out.contains("damaged c: 0 messages intact")), (3, true), "{said:?}");
    place.ok(&["repair", "--all", "--apply"]);
    let aside = std::fs::read_dir(place.path("data/chat-memory")).unwrap();
    assert_eq!(aside.filter(|entry| entry.as_ref().unwrap().path().to_string_lossy().contains(".aside-")).count(), 1);
}

#[test]
fn a_good_backup_is_not_replaced_by_nothing() {
    let place = Place::with_fixture();
    place.ok(&["export", "--all", "-o", "backup.jsonl"]);
    place.write("backup.jsonl.part", "mine");
    assert_eq!(place.run(&["export", "no-1", "no-2", "-o", "backup.jsonl"]).code, 1);
    assert_eq!(std::fs::read_to_string(place.path("backup.jsonl")).unwrap(), FIXTURE);
    std::os::unix::fs::symlink("backup.jsonl", place.path("link.jsonl")).unwrap();
    place.ok(&["export", "user-42", "-o", "link.jsonl"]);
    assert!(place.path("link.jsonl").is_symlink());
    assert_eq!(std::fs::read_to_string(place.path("backup.jsonl")).unwrap().lines().count(), 2);
    assert_eq!(std::fs::read_to_string(place.path("backup.jsonl.part")).unwrap(), "mine");
    // Nothing is left behind beside them.
    assert_eq!(std::fs::read_dir(place.0.path()).unwrap().count(), 5);
}

#[test]
fn files_that_are_only_named_alike_do_not_become_one_conversation() {
    let place = Place::new();
    for (folder, text) in [
        ("a", r#"[{"role":"user","content":"hi"}]"#),
        ("b", r#"[{"role":"user","content":"hi"},{"role":"user","content":"x"}]"#),
    ] {
        std::fs::create_dir(place.path(folder)).unwrap();
        place.write(&format!("{folder}/messages.json"), text);
    }
    let files = ["a/messages.json", "b/messages.json"];
    let planned = place.run(&[&["import", "--dry-run"][..], &files].concat());
    let done = place.run(&[&["import"][..], &files].concat());
    for said in [planned, done] {
        assert_eq!((said.code, said.out.contains("an earlier file of this import")), (3, true), "{said:?}");
    }
    assert_eq!(place.store().history("messages", HistoryRange::all()).unwrap().len(), 1);
    let said = place.run_with_input(&["import", "-"], r#"[{"role":"user","content":"hi"}]"#);
    assert_eq!((said.code, said.out.contains("--into")), (1, true), "{said:?}");
}

#[test]
fn what_is_no_text_is_named() {
    let place = Place::new();
    for (bytes, named) in
        [(&b""[..], "empty"), (b" \n", "empty"), (b"\x1f\x8b\x08\0", "gzip"), (b"\xff\xfe[\0]\0", "UTF-16")]
    {
        place.write("x", bytes);
        let said = place.run(&["import", "x"]);
        assert_eq!((said.code, said.out.contains(named)), (1, true), "{said:?}");
    }
}

#[test]
fn nothing_panics_on_odd_paths_and_full_outputs() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let place = Place::with_fixture();
    let odd = place.0.path().join(OsStr::from_bytes(b"bad\xff\x1b[31m"));
    std::fs::rename(place.path("data/chat-memory"), &odd).unwrap();
    for arguments in [&["list", "--json"][..], &["path", "user-42", "--json"], &["verify", "--json"], &["stats"]] {
        let output = place.command(arguments).arg("--store").arg(&odd).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let output = place.command(&["path", "nobody"]).arg("--store").arg(&odd).output().unwrap();
    assert!(!output.stderr.contains(&0x1b));
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let status = place.command(&["show", "nobody"]).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(4));
    let status = place.command(&["list"]).arg("--store").arg(&odd).stdout(full()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_list_of_problems_is_beside_the_matches() {
    let place = Place::with_fixture();
    place.write("data/chat-memory/foreign.bin", "x");
    for arguments in [&["search", "posten"][..], &["export", "--all"], &["stats"], &["verify"]] {
        let said = place.run(arguments);
        assert_eq!(said.code, 3, "{said:?}");
        assert!((said.out + &said.err).contains("foreign.bin"), "{arguments:?}");
    }
    let value: Vec<Value> = place
        .run(&["search", "posten", "--json"])
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(value.len(), 3);
    // A repair has nothing to do with it.
    assert_eq!(place.run(&["repair", "--all"]).code, 0);
}
