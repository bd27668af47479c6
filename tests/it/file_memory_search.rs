//! Search: any pattern of a model's, in linear time, with numbers that editing understands.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::file_memory::{S, call, done, names, on_both, on_disk, refused, save, search};

#[test]
fn no_pattern_hangs_or_panics() {
    on_both(|files| {
        save(files, "a.md", &format!("{}b", "a".repeat(40)), None);
        let long = "x".repeat(100_000);
        for (pattern, is_refused) in [
            ("(a+)+$", false),
            ("(a|a)*c", false),
            ("(", true),
            ("(a{1000}){1000}", true),
            ("((a{100}){100}){100}", true),
            ("\\w{1000}\\d{1000}", true),
            ("", false),
            (long.as_str(), true),
            ("(?=a)", true),
            ("(a)\\1", true),
            ("[z-a]", true),
            ("\\p{Nonsense}", true),
            ("(?-u)\\xff", true),
            ("(?x) a # comment", false),
        ] {
            let started = Instant::now();
            let output = call(files, "FileMemory_SearchFiles", json!({ "regexPattern": pattern }));
            assert_eq!(output.is_error, is_refused, "{}", output.text);
            // The promise is 200 ms of optimized code; this only tells a search that hangs.
            assert!(started.elapsed() < Duration::from_secs(5), "{pattern:.20}");
            assert!(output.text.len() < 1_000, "{}", output.text);
        }
    });
}

#[test]
fn a_pattern_of_exactly_one_kibibyte_is_searched_for() {
    on_both(|files| {
        save(files, "a.md", &"x".repeat(2000), None);
        assert_eq!(names(&search(files, &"x".repeat(1024), None)), ["a.md"]);
        refused(files, "FileMemory_SearchFiles", json!({ "regexPattern": "x".repeat(1025) }));
        refused(files, "FileMemory_SearchFiles", json!({ "regexPattern": "x", "filePattern": "x".repeat(1025) }));
    });
}

#[test]
fn snippets_are_cut_between_characters() {
    on_both(|files| {
        save(files, "e.md", &format!("{}needle{}", "🙏".repeat(60), "汉".repeat(60)), None);
        let expected = format!("{}needle{}", "🙏".repeat(50), "汉".repeat(50));
        assert_eq!(search(files, "needle", None)[0]["snippet"], expected);
        for (pattern, holds) in [("🙏", "🙏"), ("汉$", "汉")] {
            let found = search(files, pattern, None);
            assert!(found[0]["snippet"].as_str().unwrap().contains(holds), "{found}");
        }
    });
}

#[test]
fn lines_have_no_ends_and_the_numbers_of_editing() {
    on_both(|files| {
        save(files, "w.txt", "one\r\ntwo\r\nthree\r\n", None);
        let found = search(files, "two$", None);
        assert_eq!(
            found,
            json!([{ "fileName": "w.txt", "snippet": "one\r\ntwo\r\nthree\r\n", "matchingLines": [{ "lineNumber": 2, "line": "two" }] }])
        );
        let edits = json!([{ "line_number": 2, "new_line": "2", "expected_line": "two" }]);
        done(files, "file_memory_replace_lines", json!({ "fileName": "w.txt", "edits": edits }));
        assert_eq!(files.read(S, "w.txt").unwrap().unwrap(), b"one\r\n2\r\nthree\r\n");
        // Nothing matches over the end of a line, and case does not matter.
        assert_eq!(search(files, "one\\s+2", None), json!([]));
        assert_eq!(names(&search(files, "THREE", None)), ["w.txt"]);
        save(files, "lone.txt", "a\rneedle\rb", None);
        assert_eq!(search(files, "^needle$", None)[0]["matchingLines"], json!([{ "lineNumber": 2, "line": "needle" }]));
    });
}

#[test]
fn globs_mean_the_same_everywhere() {
    on_both(|files| {
        for (name, content) in
            [("a.md", "import x"), ("b.txt", "import y"), ("research-1.md", "import z"), ("café.csv", "import")]
        {
            save(files, name, content, None);
        }
        for (glob, expected) in [
            ("*.md", vec!["a.md", "research-1.md"]),
            ("**/*.md", vec!["a.md", "research-1.md"]),
            ("*.MD", vec!["a.md", "research-1.md"]),
            ("research*", vec!["research-1.md"]),
            ("cafe\u{301}*", vec!["café.csv"]),
            ("?.{md,txt}", vec!["a.md", "b.txt"]),
            ("[ab].*", vec!["a.md", "b.txt"]),
            ("nothing", vec![]),
            ("", vec!["a.md", "b.txt", "café.csv", "research-1.md"]),
            ("  ", vec!["a.md", "b.txt", "café.csv", "research-1.md"]),
        ] {
            assert_eq!(names(&search(files, "import", Some(glob))), expected, "{glob}");
        }
        for glob in ["[", "{a", "a\\"] {
            let text = refused(files, "FileMemory_SearchFiles", json!({ "regexPattern": "x", "filePattern": glob }));
            assert!(text.contains("glob"), "{text}");
        }
        let listed = done(files, "file_memory_ls", json!({ "globPattern": "*.md" }));
        assert_eq!(names(&serde_json::from_str(&listed).unwrap()), ["a.md", "research-1.md"]);
    });
}

#[test]
fn what_is_left_out_is_said() {
    on_both(|files| {
        save(files, "many.txt", &"needle\n".repeat(1000), None);
        save(files, "wide.txt", &format!("{}needle{}", "x".repeat(1 << 20), "y".repeat(1 << 20)), None);
        let found = search(files, "needle", None);
        let lines = found[0]["matchingLines"].as_array().unwrap();
        assert_eq!((lines.len(), lines.last().unwrap()), (51, &json!("… and 950 more")));
        assert!(found[1]["matchingLines"][0]["line"].as_str().unwrap().len() < 1_000);
        assert!(found.to_string().len() < 10_000);
        // A match of a megabyte does not fill the snippet.
        assert!(search(files, "x+", Some("wide*")).to_string().len() < 5_000);
        for number in 0..70 {
            save(files, &format!("file {number:02}"), "needle", None);
        }
        let found = search(files, "needle", Some("file*"));
        assert_eq!((names(&found).len(), found.as_array().unwrap().last().unwrap()), (50, &json!("… and 20 more")));
    });
}

#[test]
fn a_file_that_is_not_text_is_named() {
    on_both(|files| {
        save(files, "a.md", "needle", None);
        files.save(S, "b.bin", b"needle \xff", None).unwrap();
        let found = search(files, "needle", None);
        assert_eq!(names(&found), ["a.md"]);
        assert_eq!(found[1], json!("Not searched, because binary or too large: 'b.bin'"));
        assert_eq!(search(files, "needle", Some("*.md")).as_array().unwrap().len(), 1);
    });
}

#[test]
fn descriptions_and_the_index_are_not_searched() {
    let (_directory, files, _) = on_disk();
    save(&files, "a.md", "content", Some("needle"));
    assert_eq!(search(&files, "needle|Memory Index", None), json!([]));
    assert!(!search(&files, ".", None).to_string().contains("_description"));
    assert!(matches!(search(&files, "content", None), Value::Array(found) if found.len() == 1));
}
