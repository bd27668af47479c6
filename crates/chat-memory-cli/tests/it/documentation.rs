//! `docs/command-line.md`: what it shows is what the command says.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::{BINARY, FIXTURE, Place, in_place, said};

/// Each line behind `$ ` in a block of `console` is run, in one directory, in the order of the page; what stands below is what it
/// says. `[..]` stands for anything in a line. `CHAT_MEMORY_TEST_UPDATE=1` writes what is said now into the page.
#[test]
fn the_page_shows_what_the_command_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let place = Place::new();
    std::fs::create_dir(place.path("bin")).unwrap();
    symlink(BINARY, place.path("bin/chat-memory")).unwrap();
    place.write("conversations.jsonl", FIXTURE);

    let mut replayed = String::new();
    let mut commands = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        replayed += &format!("{line}\n");
        if line != "```console" {
            continue;
        }
        while let Some(line) = lines.next_if(|line| *line != "```") {
            let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("no command: {line}"));
            let mut expected = Vec::new();
            while let Some(line) = lines.next_if(|line| *line != "```" && !line.starts_with("$ ")) {
                expected.push(line);
            }
            let found = run(&place, command);
            let found: Vec<&str> = found.trim_end().lines().map(str::trim_end).collect();
            commands += 1;
            replayed += &format!("{line}\n");
            let fits =
                found.len() == expected.len() && found.iter().zip(&expected).all(|(found, line)| fits(found, line));
            let shown = if fits { &expected } else { &found };
            shown.iter().for_each(|line| replayed += &format!("{line}\n"));
        }
    }
    assert!(commands > 30, "{commands} commands");
    if std::env::var_os("CHAT_MEMORY_TEST_UPDATE").is_some() {
        std::fs::write(&page, &replayed).unwrap();
    }
    for (at, (now, shown)) in replayed.lines().zip(text.lines()).enumerate() {
        assert_eq!(now, shown, "line {} of {}; see CHAT_MEMORY_TEST_UPDATE", at + 1, page.display());
    }
    assert_eq!(replayed.lines().count(), text.lines().count());
}

fn run(place: &Place, line: &str) -> String {
    let mut shell = Command::new("sh");
    in_place(&mut shell, place.0.path());
    let path = std::env::var("PATH").unwrap_or_default();
    shell.env("PATH", format!("{}:{path}", place.path("bin").display()));
    said(shell.args(["-c", &format!("exec 2>&1; {line}")]).output().unwrap()).out
}

/// Whether a line is as it is shown.
fn fits(line: &str, shown: &str) -> bool {
    let mut parts = shown.split("[..]");
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    for part in parts {
        match rest.rfind(part).filter(|_| !part.is_empty()) {
            Some(at) => rest = &rest[at + part.len()..],
            None => rest = "",
        }
    }
    rest.is_empty()
}
