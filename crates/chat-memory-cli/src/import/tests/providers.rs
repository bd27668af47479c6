//! Messages of OpenAI and Anthropic in all that is wrapped around them.

use chat_memory::{Message, Role};
use serde_json::{Value, json};

use super::{conversations, messages, one, refused};
use crate::import::{Format, read};

fn said(name: &str, text: &str, format: Format) -> Vec<Message> {
    messages(&one(read(name, text, None).unwrap(), format)).to_vec()
}

#[test]
fn a_list_and_what_wraps_it_hold_the_same_messages() {
    let list = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{ }"}}]},
        {"role": "tool", "tool_call_id": "c", "name": "f", "content": "r"}
    ]);
    let lines: String = list.as_array().unwrap().iter().map(|message| format!("{message}\n")).collect();
    let bare = said("x.json", &list.to_string(), Format::OpenAi);
    assert_eq!((bare.len(), bare[1].tool_calls().next().unwrap().arguments.as_str()), (3, "{ }"));
    assert_eq!(said("x.jsonl", &lines, Format::OpenAi), bare);
    let request = json!({"model": "m", "messages": list, "tools": [{"type": "function"}]});
    for wrapped in [
        json!({"messages": list}),
        request.clone(),
        json!([request]),
        json!([list]),
        json!({"traj": list, "reward": 1.0}),
        json!({"history": list, "trajectory": [{"action": "x"}], "environment": "e"}),
        json!({"trajectory": list}),
        json!({"custom_id": "i", "method": "POST", "body": {"messages": list}}),
        json!({"request": {"body": request}, "response": null}),
    ] {
        let all = said("x.json", &wrapped.to_string(), Format::OpenAi);
        assert_eq!(all[1..], bare[1..], "{wrapped}");
        assert_eq!(all[0].text(), bare[0].text());
    }
    let all = said("x.json", &request.to_string(), Format::OpenAi);
    assert_eq!(all[0].metadata().get("openai").unwrap()["conversation"]["model"], "m");
    // The id is that of the conversation, and nothing more is known of it.
    let named = json!({"id": "i", "messages": list});
    assert_eq!(said("x.json", &named.to_string(), Format::OpenAi), bare);
    // An export gives what came in.
    let written = chat_memory::transcript::openai::write(&all);
    assert_eq!(serde_json::from_str::<Value>(&written.objects[0]).unwrap(), list[0]);
}

#[test]
fn calls_and_results_without_ids_find_each_other() {
    let call = |name: &str| json!({"type": "function", "function": {"name": name, "arguments": ""}});
    let list = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "t", "tool_calls": [call("f"), call("g")]},
        {"role": "tool", "name": "g", "content": "1"},
        {"role": "tool", "content": "2"},
        {"role": "assistant", "content": null, "function_call": {"name": "h", "arguments": "{\"x\":  1}"}},
        {"role": "function", "name": "h", "content": "3"},
        {"role": "tool", "tool_call_ids": ["z"], "content": "4", "agent": "main"},
        {"role": "tool", "content": "5"}
    ]);
    let conversation = one(read("x.json", &list.to_string(), None).unwrap(), Format::OpenAi);
    let all = messages(&conversation);
    let calls: Vec<_> = all.iter().flat_map(Message::tool_calls).map(|call| call.id.as_str()).collect();
    let results: Vec<_> = all.iter().flat_map(Message::tool_results).map(|result| result.call_id.as_str()).collect();
    assert_eq!(calls, ["call-1", "call-2", "call-3"]);
    assert_eq!(results, ["call-2", "call-1", "call-3", "z", "unasked-4"]);
    assert_eq!(all[4].tool_calls().next().unwrap().arguments, "{\"x\":  1}");
    assert_eq!(all[6].metadata().get("openai").unwrap()["fields"]["agent"], "main");
    assert_eq!(conversation.notes.len(), 2, "{:?}", conversation.notes);
    assert_eq!(messages(&one(read("x.json", &list.to_string(), None).unwrap(), Format::OpenAi)), all);
}

#[test]
fn ids_and_times_beside_the_form_are_taken() {
    let text = r#"[{"role":"user","content":"a","id":"m-1","created_at":1700000000},
        {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}],"timestamp":"2025-01-01T00:00:00Z"}]"#;
    for format in [Format::OpenAi, Format::Anthropic] {
        let all = conversations(read("x.json", text, Some(format)).unwrap());
        assert_eq!(messages(&all[0])[0].id(), Some("m-1"));
        assert!(messages(&all[0]).iter().all(|message| message.created_at().is_some()));
    }
}

#[test]
fn messages_that_name_their_conversation_are_put_together() {
    let line = |id: &str, text: &str| format!("{}\n", json!({"session_id": id, "role": "user", "content": text}));
    let text = line("b", "1") + &line("a", "2") + &line("b", "3");
    let row = |id: &str| format!("{}\n", json!({"session_id": id, "message": {"role": "user", "content": "x"}}));
    for text in [text, row("b") + &row("a") + &row("b")] {
        let all = conversations(read("x.jsonl", &text, None).unwrap());
        let shape: Vec<_> = all.iter().map(|one| (one.id.as_str(), messages(one).len())).collect();
        assert_eq!(shape, [("b", 2), ("a", 1)]);
    }
}

#[test]
fn a_bad_message_is_refused_at_its_place_in_the_file() {
    let text = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n  {\"id\":\"i\",\"messages\":[{\"role\":\"user\",\"content\":3}]}\n";
    let archive = read("x.jsonl", text, None).unwrap();
    let lost = refused(&archive);
    assert_eq!((lost[0].name.as_str(), lost[0].line, lost[0].column), ("i", 2, 50));
    assert_eq!(conversations(archive)[0].id, "x/0");
    // A line of a conversation does not touch the others; a list is one thing.
    let lines = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":3}\n{\"role\":\"user\",\"content\":\"b\"}\n";
    let archive = read("x.jsonl", lines, None).unwrap();
    assert_eq!((refused(&archive)[0].line, refused(&archive)[0].column), (2, 26));
    assert_eq!(messages(&conversations(archive)[0]).len(), 2);
    let list = format!("[\n{}]", lines.trim_end().replace('\n', ",\n"));
    let archive = read("x.json", &list, None).unwrap();
    assert_eq!((archive.conversations.len(), refused(&archive)[0].line, refused(&archive)[0].column), (1, 3, 26));
}

#[test]
fn items_and_responses_of_the_responses_api() {
    let items = json!([
        {"role": "user", "content": "a"},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "r"}
    ]);
    let lines: String = items.as_array().unwrap().iter().map(|item| format!("{item}\n")).collect();
    for text in [items.to_string(), json!({"model": "m", "input": items}).to_string(), lines] {
        let all = said("x.json", &text, Format::OpenAi);
        assert_eq!(
            all.iter().map(Message::role).collect::<Vec<_>>(),
            [Role::User, Role::Assistant, Role::Tool],
            "{text}"
        );
    }
    let output = json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]}]);
    let recording = json!([{"request": {"input": items}, "response": {"object": "response", "output": output}}]);
    assert_eq!(said("x.json", &recording.to_string(), Format::OpenAi).len(), 4);
}

#[test]
fn recordings_that_go_on_are_one_conversation() {
    let message = |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let answer = |text: &str| {
        json!({"type": "message", "role": "assistant", "id": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": text}]})
    };
    let request = |said: &[Value]| json!({"system": "s", "max_tokens": 1, "messages": said});
    let (a, b, c) = (message("user", "a"), message("assistant", "b"), message("user", "c"));
    let recordings = json!([
        {"request": request(std::slice::from_ref(&a)), "response": answer("b")},
        {"request": request(&[a.clone(), b.clone(), c.clone()]), "response": answer("d")},
        {"request": request(std::slice::from_ref(&a)), "response": answer("b")},
        {"request": request(&[a.clone(), message("assistant", "another"), c]), "response": null},
        {"request": request(&[a]), "response": answer("b")},
    ]);
    let archive = read("x.json", &recordings.to_string(), None).unwrap();
    assert_eq!(archive.format, Format::Anthropic);
    let all = conversations(archive);
    assert_eq!(all.iter().map(|one| messages(one).len()).collect::<Vec<_>>(), [5, 3, 4, 3]);
    assert_eq!(messages(&all[0])[4].id(), Some("m"));
    assert_eq!(all[0].notes, ["an earlier request of the same conversation is part of this one"]);
}

#[test]
fn results_and_texts_of_a_user_of_anthropic_are_messages_of_their_own() {
    let text = r#"{"system": [{"type": "text", "text": "s"}], "messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"x":  1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r", "is_error": true},
            {"type": "text", "text": "b"}]}]}"#;
    let all = said("x.json", text, Format::Anthropic);
    let roles: Vec<Role> = all.iter().map(Message::role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::User]);
    assert_eq!(all[2].tool_calls().next().unwrap().arguments, "{\"x\":  1}");
    assert!(all[3].tool_results().next().unwrap().is_error);
}
