//! The tools: what a model is told, and what it is answered.

use chat_memory::{FileMemory, InMemoryFileStore, ToolDefinition, ToolNames};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::file_memory::{S, call, done, list, local, on_both, on_disk, read, refused, save};

const SETS: [ToolNames; 3] = [ToolNames::Original, ToolNames::Current, ToolNames::Anthropic];

fn definitions(names: ToolNames) -> Vec<ToolDefinition> {
    FileMemory::builder(InMemoryFileStore::new()).tool_names(names).build().unwrap().tools()
}

#[test]
fn the_definitions_are_json_schemas_of_objects() {
    for tool in SETS.into_iter().flat_map(definitions) {
        assert!(jsonschema::meta::is_valid(&tool.parameters), "{}", tool.name);
        assert_eq!(tool.parameters["type"], "object");
        assert!(tool.parameters["properties"].is_object(), "{}", tool.name);
        assert!(!tool.description.is_empty());
        // What model providers take for a tool's name.
        assert!(tool.name.len() <= 64 && tool.name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_'));
        let required = tool.parameters["required"].as_array().cloned().unwrap_or_default();
        for name in required {
            assert!(tool.parameters["properties"].get(name.as_str().unwrap()).is_some(), "{}: {name}", tool.name);
        }
        assert_eq!(tool.provider_type.is_some(), tool.name == "memory");
    }
}

/// Each property without what is said of it.
fn shape(tool: &ToolDefinition) -> Value {
    let mut properties = tool.parameters["properties"].clone();
    for property in properties.as_object_mut().unwrap().values_mut() {
        property.as_object_mut().unwrap().remove("description").unwrap();
    }
    json!({ "name": tool.name, "properties": properties, "required": tool.parameters.get("required") })
}

#[test]
fn the_original_set_has_the_originals_shape() {
    let text = json!({ "type": "string" });
    let optional = json!({ "type": ["string", "null"], "default": null });
    let shapes: Vec<Value> = definitions(ToolNames::Original).iter().map(shape).collect();
    assert_eq!(
        Value::Array(shapes),
        json!([
            {
                "name": "FileMemory_SaveFile",
                "properties": { "fileName": text, "content": text, "description": optional },
                "required": ["fileName", "content"],
            },
            { "name": "FileMemory_ReadFile", "properties": { "fileName": text }, "required": ["fileName"] },
            { "name": "FileMemory_DeleteFile", "properties": { "fileName": text }, "required": ["fileName"] },
            { "name": "FileMemory_ListFiles", "properties": {}, "required": null },
            {
                "name": "FileMemory_SearchFiles",
                "properties": { "regexPattern": text, "filePattern": optional },
                "required": ["regexPattern"],
            },
        ])
    );
    let current: Vec<String> = definitions(ToolNames::Current).into_iter().map(|tool| tool.name).collect();
    for name in ["write", "read", "delete", "ls", "grep", "replace", "replace_lines", "append", "read_lines"] {
        assert!(current.contains(&format!("file_memory_{name}")), "{name}");
    }
    let anthropic = &definitions(ToolNames::Anthropic)[0];
    assert_eq!((anthropic.name.as_str(), anthropic.provider_type.as_deref()), ("memory", Some("memory_20250818")));
}

#[test]
fn arguments_fit_their_schemas() {
    let examples = [
        ("FileMemory_SaveFile", json!({ "fileName": "a.md", "content": "x", "description": null }), true),
        ("FileMemory_SaveFile", json!({ "fileName": "a.md" }), false),
        ("FileMemory_SearchFiles", json!({ "regexPattern": "x", "filePattern": "*.md" }), true),
        ("FileMemory_ListFiles", json!({}), true),
        (
            "file_memory_replace_lines",
            json!({ "fileName": "a", "edits": [{ "line_number": 1, "new_line": "x" }] }),
            true,
        ),
        (
            "file_memory_replace_lines",
            json!({ "fileName": "a", "edits": [{ "line_number": 0, "new_line": "x" }] }),
            false,
        ),
        ("memory", json!({ "command": "view", "path": "/memories", "view_range": [1, -1] }), true),
        ("memory", json!({ "command": "burn", "path": "/memories" }), false),
    ];
    let all: Vec<ToolDefinition> = SETS.into_iter().flat_map(definitions).collect();
    for (name, arguments, is_valid) in examples {
        let tool = all.iter().find(|tool| tool.name == name).unwrap();
        assert_eq!(jsonschema::is_valid(&tool.parameters, &arguments), is_valid, "{name} {arguments}");
    }
}

#[test]
fn the_five_original_tools() {
    on_both(|files| {
        let saved = done(files, "FileMemory_SaveFile", json!({ "fileName": "x", "content": "one" }));
        assert_eq!(saved, "File 'x' saved.");
        let arguments = json!({ "fileName": "x", "content": "two", "description": "About x." });
        assert_eq!(done(files, "FileMemory_SaveFile", arguments), "File 'x' saved with description.");
        assert_eq!(read(files, "x"), "two");
        assert_eq!(list(files), json!([{ "fileName": "x", "description": "About x." }]));
        // Saved without a description it has none, as in the original.
        for description in [json!(null), json!(""), json!(" \n")] {
            let arguments = json!({ "fileName": "x", "content": "two", "description": description });
            assert_eq!(done(files, "FileMemory_SaveFile", arguments), "File 'x' saved.");
            assert_eq!(list(files), json!([{ "fileName": "x", "description": null }]));
        }
        assert_eq!(done(files, "FileMemory_DeleteFile", json!({ "fileName": "x" })), "File 'x' deleted.");
        assert_eq!(refused(files, "FileMemory_DeleteFile", json!({ "fileName": "x" })), "File 'x' not found.");
        assert_eq!(refused(files, "FileMemory_ReadFile", json!({ "fileName": "x" })), "File 'x' not found.");
        save(files, "x", "three", None);
        assert_eq!(list(files), json!([{ "fileName": "x", "description": null }]));
    });
}

#[test]
fn contents_come_back_byte_for_byte() {
    on_both(|files| {
        for content in
            ["", "\n", "one\r\ntwo\r\nthree\r\n", "\u{feff}bom", "a\u{0}b", "🙏\u{2028}", &"x".repeat(1 << 20)]
        {
            save(files, "w.txt", content, None);
            assert_eq!(read(files, "w.txt"), content);
        }
        save(files, "w.txt", "one\r\ntwo\r\nthree\r\n", None);
        let arguments = json!({ "fileName": "w.txt", "oldString": "one\r\ntwo", "newString": "1\r\n2" });
        assert_eq!(done(files, "file_memory_replace", arguments), "Replaced 1 occurrence(s) in 'w.txt'.");
        assert_eq!(read(files, "w.txt"), "1\r\n2\r\nthree\r\n");
        let arguments = json!({ "fileName": "w.txt", "oldString": "1\n2", "newString": "x" });
        assert!(refused(files, "file_memory_replace", arguments).contains("\\r\\n"));
        let bytes: Vec<u8> = (0..=255).collect();
        files.save(S, "b.bin", &bytes, Some("all bytes")).unwrap();
        assert_eq!(files.read(S, "b.bin").unwrap().unwrap(), bytes);
        for tool in ["FileMemory_ReadFile", "file_memory_append"] {
            let text = refused(files, tool, json!({ "fileName": "b.bin", "content": "x" }));
            assert_eq!(text, "File 'b.bin' is binary, 256 bytes, and cannot be shown or edited as text.");
        }
    });
}

#[test]
fn an_edit_keeps_the_description() {
    on_both(|files| {
        save(files, "a.md", "one\ntwo\nthree\n", Some("numbers"));
        done(files, "file_memory_replace", json!({ "file_name": "a.md", "old_string": "two", "new_string": "2" }));
        let edits = json!([{ "lineNumber": 1, "newLine": "1\n" }, { "line_number": "3", "new_line": "" }]);
        let done_text = done(files, "file_memory_replace_lines", json!({ "fileName": "a.md", "edits": edits }));
        assert_eq!(done_text, "Replaced 2 line(s) in 'a.md'.");
        assert_eq!(
            done(files, "file_memory_append", json!({ "fileName": "a.md", "content": "end" })),
            "Appended to 'a.md'."
        );
        let insert = json!({ "command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "zero" });
        done(files, "memory", insert);
        assert_eq!(read(files, "a.md"), "zero\n1\n2\nend");
        assert_eq!(list(files), json!([{ "fileName": "a.md", "description": "numbers" }]));
        let rename = json!({ "command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.txt" });
        assert_eq!(done(files, "memory", rename), "Renamed /memories/a.md to /memories/b.txt");
        assert_eq!(list(files), json!([{ "fileName": "b.txt", "description": "numbers" }]));
        assert_eq!(read(files, "b.txt"), "zero\n1\n2\nend");
    });
}

#[test]
fn an_edit_that_is_not_clear_changes_nothing() {
    on_both(|files| {
        save(files, "a.md", "one\ntwo\none\n", None);
        let replace = |old: &str, new: &str, all: bool| json!({ "fileName": "a.md", "oldString": old, "newString": new, "replaceAll": all });
        assert!(refused(files, "file_memory_replace", replace("one", "1", false)).contains("2 times"));
        assert!(refused(files, "file_memory_replace", replace("three", "3", true)).contains("does not occur"));
        assert!(refused(files, "file_memory_replace", replace("", "3", true)).contains("empty"));
        for edits in [
            json!([]),
            json!([{ "line_number": 0, "new_line": "x" }]),
            json!([{ "line_number": 4, "new_line": "x" }]),
            json!([{ "line_number": 1, "new_line": "x" }, { "line_number": 1, "new_line": "y" }]),
            json!([{ "line_number": 1.5, "new_line": "x" }]),
            json!([{ "line_number": 1 }]),
            json!(["x"]),
            json!("x"),
        ] {
            refused(files, "file_memory_replace_lines", json!({ "fileName": "a.md", "edits": edits }));
        }
        let edits = json!([{ "line_number": 2, "new_line": "x", "expected_line": "three" }]);
        let text = refused(files, "file_memory_replace_lines", json!({ "fileName": "a.md", "edits": edits }));
        assert_eq!(text, "Line 2 of 'a.md' is not as expected. It is: two");
        assert_eq!(read(files, "a.md"), "one\ntwo\none\n");
        let text = done(files, "file_memory_replace", replace("one", "1", true));
        assert_eq!(text, "Replaced 2 occurrence(s) in 'a.md'.");
        for tool in ["file_memory_replace", "file_memory_replace_lines", "file_memory_read_lines"] {
            let edits = json!([{ "line_number": 1, "new_line": "x" }]);
            let arguments =
                json!({ "fileName": "z.md", "oldString": "x", "newString": "y", "edits": edits, "startLine": 1 });
            assert_eq!(refused(files, tool, arguments), "File 'z.md' not found.");
        }
    });
}

#[test]
fn the_anthropic_tool() {
    on_both(|files| {
        let memory = |arguments: Value| done(files, "memory", arguments);
        let path = "/memories/a.md";
        let create = json!({ "command": "create", "path": path, "file_text": "one\ntwo\n" });
        assert_eq!(memory(create.clone()), "File created: /memories/a.md");
        assert!(refused(files, "memory", create).contains("already exists"));
        for folder in ["/memories", "/memories/"] {
            let text = memory(json!({ "command": "view", "path": folder }));
            assert_eq!(text, "1 file(s) in /memories, with their sizes in bytes:\n       8\t/memories/a.md");
        }
        let text = memory(json!({ "command": "view", "path": path }));
        assert_eq!(text, "/memories/a.md, with line numbers:\n     1\tone\n     2\ttwo");
        let text = memory(json!({ "command": "view", "path": path, "view_range": [2, -1] }));
        assert_eq!(text, "/memories/a.md, with line numbers:\n     2\ttwo");
        refused(files, "memory", json!({ "command": "view", "path": path, "view_range": [3, 4] }));
        refused(files, "memory", json!({ "command": "view", "path": path, "view_range": [1] }));
        memory(json!({ "command": "str_replace", "path": path, "old_str": "two", "new_str": "one" }));
        let twice = json!({ "command": "str_replace", "path": path, "old_str": "one", "new_str": "x" });
        assert!(refused(files, "memory", twice).contains("2 times"));
        memory(json!({ "command": "insert", "path": path, "insert_line": 2, "insert_text": "three" }));
        refused(files, "memory", json!({ "command": "insert", "path": path, "insert_line": 4, "insert_text": "x" }));
        assert_eq!(read(files, "a.md"), "one\none\nthree");
        memory(json!({ "command": "create", "path": "/memories/b.md", "file_text": "b" }));
        let rename = |to: &str| json!({ "command": "rename", "old_path": path, "new_path": to });
        for (to, text) in [
            ("/memories/b.md", "exists"),
            ("/memories/A.md", "exists"),
            ("/memories/x/y", "any of"),
            ("/etc/x", "/memories"),
        ] {
            assert!(refused(files, "memory", rename(to)).contains(text), "{to}");
        }
        memory(rename("/memories/c.md"));
        assert_eq!(memory(json!({ "command": "delete", "path": "/memories/c.md" })), "Deleted /memories/c.md");
        for (command, path) in [
            ("delete", "/memories"),
            ("delete", "/memories/c.md"),
            ("view", "/memories/c.md"),
            ("view", "/etc/passwd"),
            ("view", "/memories/../etc/passwd"),
            ("view", "/memoriesx"),
            ("str_replace", "/memories/c.md"),
            ("rename", "x"),
            ("burn", "/memories/b.md"),
            ("create", "/memories"),
        ] {
            let arguments = json!({ "command": command, "path": path, "old_str": "x", "file_text": "" });
            refused(files, "memory", arguments);
        }
        assert_eq!(read(files, "b.md"), "b");
    });
}

#[test]
fn all_sets_work_on_the_same_files_whichever_is_offered() {
    for names in SETS {
        let files = FileMemory::builder(InMemoryFileStore::new()).tool_names(names).build().unwrap();
        done(&files, "FileMemory_SaveFile", json!({ "file_name": "a.md", "content": "one" }));
        let text = done(&files, "file_memory_write", json!({ "fileName": "a.md", "content": "two" }));
        assert_eq!(text, "File 'a.md' written.");
        let text =
            done(&files, "file_memory_write", json!({ "fileName": "a.md", "content": "two", "description": "d" }));
        assert_eq!(text, "File 'a.md' written with description.");
        done(
            &files,
            "memory",
            json!({ "command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": "three" }),
        );
        let text = done(&files, "file_memory_read_lines", json!({ "file_name": "a.md", "start_line": 2 }));
        assert_eq!(text, "     2\tthree");
        let text = refused(&files, "no_such_tool", json!({}));
        assert!(text.contains(&files.tools()[0].name), "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_call_is_said_to_the_model() {
    on_both(|files| {
        for (tool, arguments, text) in [
            ("FileMemory_SaveFile", json!({ "content": "no name" }), "The argument `fileName` is missing."),
            ("FileMemory_SaveFile", json!({ "fileName": null, "content": "x" }), "The argument `fileName` is missing."),
            (
                "FileMemory_SaveFile",
                json!({ "fileName": 1, "content": "x" }),
                "The argument `fileName` must be a string.",
            ),
            ("FileMemory_SaveFile", json!({ "fileName": "a" }), "The argument `content` is missing."),
            ("FileMemory_ReadFile", json!([]), "The arguments must be a JSON object."),
            ("FileMemory_ReadFile", json!(null), "The argument `fileName` is missing."),
            ("FileMemory_ReadFile", json!("[1]"), "The arguments must be a JSON object."),
            ("FileMemory_ReadFile", json!({ "fileName": "missing.md" }), "File 'missing.md' not found."),
            ("memory", json!({ "path": "/memories" }), "The argument `command` is missing."),
        ] {
            assert_eq!(refused(files, tool, arguments), text);
        }
        assert!(refused(files, "FileMemory_ReadFile", json!("{broken")).contains("not valid JSON"));
        // A model may give its arguments as a text.
        done(files, "FileMemory_SaveFile", json!("{\"fileName\":\"a.md\",\"content\":\"x\"}"));
        done(files, "FileMemory_ListFiles", json!(""));
    });
}

#[test]
fn quotas_are_kept_and_said() {
    let directory = tempfile::tempdir().unwrap();
    let stores: [Box<dyn chat_memory::FileStore>; 2] =
        [Box::new(InMemoryFileStore::new()), Box::new(chat_memory::LocalFileStore::open(directory.path()).unwrap())];
    for store in stores {
        let builder = FileMemory::builder(store).max_file_bytes(10).max_files(3).max_session_bytes(20);
        let files = builder.build().unwrap();
        for name in ["a", "b"] {
            save(&files, name, "0123456789", Some("not counted"));
        }
        let too_much = [("a", "0123456789x", "file in bytes would be 11, and the limit is 10"), ("c", "x", "20")];
        for (name, content, text) in too_much {
            let arguments = json!({ "fileName": name, "content": content });
            assert!(refused(&files, "FileMemory_SaveFile", arguments).contains(text));
        }
        assert!(refused(&files, "file_memory_append", json!({ "fileName": "a", "content": "x" })).contains("limit"));
        save(&files, "a", "", None);
        save(&files, "c", "x", None);
        let text = refused(&files, "FileMemory_SaveFile", json!({ "fileName": "d", "content": "" }));
        assert!(text.contains("number of files would be 4, and the limit is 3"), "{text}");
        let long = json!({ "fileName": "a", "content": "", "description": "x".repeat((16 << 10) + 1) });
        assert!(refused(&files, "FileMemory_SaveFile", long).contains("description"));
        save(&files, "A", "012345678", None);
        assert_eq!(read(&files, "a"), "012345678");
        assert!(matches!(files.save(S, "d", b"", None), Err(chat_memory::Error::TooLarge { .. })));
    }
    let refused = FileMemory::builder(InMemoryFileStore::new()).max_files(0).build();
    assert!(matches!(refused, Err(chat_memory::Error::InvalidOption { option: "max_files", .. })));
}

#[test]
fn a_long_list_is_cut_and_says_so() {
    on_both(|files| {
        let description = "d".repeat(16 << 10);
        for number in 0..20 {
            save(files, &format!("{number:02}"), "", Some(&description));
        }
        let found = list(files);
        let found = found.as_array().unwrap();
        assert_eq!(found.last().unwrap(), &json!(format!("… and {} more", 20 - (found.len() - 1))));
        assert_eq!(files.list(S).unwrap().len(), 20);
    });
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(any_key(), inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Names, patterns, globs and paths that nearly are some.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-c]\\.(md|txt)",
        "/memories/[a-c]\\.md",
        "[\\[\\](){}*?+|\\\\^$a-c.,0-9-]{0,20}",
        "(\\.\\./|/|\\\\|[a-b.\u{301}\u{200b}]){0,6}",
        prop::sample::select(vec!["view", "create", "str_replace", "insert", "delete", "rename", "/memories", "true"])
            .prop_map(str::to_owned),
    ]
}

fn any_key() -> impl Strategy<Value = String> {
    let keys = vec![
        "fileName",
        "file_name",
        "content",
        "description",
        "regexPattern",
        "filePattern",
        "globPattern",
        "oldString",
        "newString",
        "replaceAll",
        "edits",
        "line_number",
        "new_line",
        "expected_line",
        "startLine",
        "endLine",
        "command",
        "path",
        "view_range",
        "file_text",
        "old_str",
        "new_str",
        "insert_line",
        "insert_text",
        "old_path",
        "new_path",
        "x",
    ];
    prop::sample::select(keys).prop_map(str::to_owned)
}

/// Most arguments that a tool asks for, of about the right kind.
fn likely_arguments() -> impl Strategy<Value = Value> {
    let number = prop_oneof![-3..6_i64, any::<i64>()];
    let edit =
        (number.clone(), any_text()).prop_map(|(number, line)| json!({ "line_number": number, "new_line": line }));
    (
        prop::collection::vec(any_text(), 12),
        prop::collection::vec(number, 5),
        prop::collection::vec(edit, 0..4),
        any_json(),
    )
        .prop_map(|(texts, numbers, edits, other)| {
            let keys = [
                "fileName",
                "content",
                "description",
                "regexPattern",
                "filePattern",
                "oldString",
                "newString",
                "command",
                "path",
                "file_text",
                "old_path",
                "new_path",
            ];
            let mut map: Map<String, Value> =
                keys.iter().map(|key| (*key).to_owned()).zip(texts.iter().map(|text| json!(text))).collect();
            for (key, number) in ["startLine", "endLine", "insert_line"].into_iter().zip(&numbers) {
                map.insert(key.into(), json!(number));
            }
            map.insert("view_range".into(), json!([numbers[3], numbers[4]]));
            map.insert("edits".into(), json!(edits));
            for (key, text) in ["old_str", "new_str", "insert_text"].into_iter().zip(&texts) {
                map.insert(key.into(), json!(text));
            }
            if let Value::Object(other) = other {
                map.extend(other);
            }
            Value::Object(map)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if crate::support::full_mode() { 20_000 } else { 150 }, ..ProptestConfig::default() })]

    #[test]
    fn no_json_makes_a_call_panic(calls in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![likely_arguments(), any_json()]), 1..8)) {
        let tools: Vec<ToolDefinition> = SETS.into_iter().flat_map(definitions).collect();
        let files = FileMemory::new(InMemoryFileStore::new());
        for (tool, arguments) in calls {
            let output = files.call(S, &tools[tool.index(tools.len())].name, &arguments).unwrap();
            prop_assert!(!output.text.is_empty() || !output.is_error);
        }
    }
}

/// The same on disk: whatever is called, every path stays where it belongs, and the index is equal to the list.
#[test]
fn no_json_leads_out_of_the_folder() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let (directory, files, folder) = on_disk();
    let mut runner = TestRunner::deterministic();
    let tools: Vec<ToolDefinition> = SETS.into_iter().flat_map(definitions).collect();
    let rounds = if crate::support::full_mode() { 20_000 } else { 200 };
    for round in 0..rounds {
        let arguments = likely_arguments().new_tree(&mut runner).unwrap().current();
        call(&files, &tools[round % tools.len()].name, arguments);
    }
    let inside = folder.strip_prefix(directory.path()).unwrap().to_str().unwrap();
    for path in crate::file_memory::tree(directory.path()) {
        assert!(path == "file-memory" || path.starts_with(inside), "{path:?}");
        let rest = path.strip_prefix(inside).unwrap_or_default().trim_start_matches('/');
        assert!(!rest.contains('/') && !rest.starts_with(".put"), "{path:?}");
    }
    let reopened = local(folder.parent().unwrap());
    assert_eq!(reopened.list(S).unwrap(), files.list(S).unwrap());
    assert_eq!(reopened.context(S).unwrap(), files.context(S).unwrap());
    assert!(!files.list(S).unwrap().is_empty());
}

/// What a search finds in the first line is what an edit of the first line expects, and the mark stays where it is.
#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    on_both(|files| {
        save(files, "a.md", "\u{feff}one\r\ntwo\r\n", None);
        let shown = done(files, "file_memory_read_lines", json!({ "fileName": "a.md", "startLine": 1, "endLine": 1 }));
        assert_eq!(shown, "     1\tone");
        let edits = json!([{ "line_number": 1, "new_line": "1", "expected_line": "one" }]);
        done(files, "file_memory_replace_lines", json!({ "fileName": "a.md", "edits": edits }));
        let top = json!({ "command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "0" });
        done(files, "memory", top);
        assert_eq!(read(files, "a.md"), "\u{feff}0\r\n1\r\ntwo\r\n");
    });
}

/// A few calls could multiply a text beyond any memory.
#[test]
fn replacing_makes_no_text_that_is_too_large_to_be_read() {
    on_both(|files| {
        save(files, "a.md", &"a".repeat(100_000), None);
        let replace = json!({ "fileName": "a.md", "oldString": "a", "newString": "b".repeat(700), "replaceAll": true });
        let text = refused(files, "file_memory_replace", replace);
        assert_eq!(text, "Not replaced: 'a.md' would be 70000000 bytes large, and the limit is 67108864.");
        assert_eq!(read(files, "a.md").len(), 100_000);
    });
}
