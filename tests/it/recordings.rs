//! What was recorded of providers and agents, and real conversations of other forms, through the forms of both providers.

use std::fs;
use std::path::Path;

use chat_memory::Message;
use chat_memory::transcript::{anthropic, responses};
use chat_memory::{Content, Role};
use serde_json::{Value, json};

use crate::anthropic as anthropic_form;
use crate::conversations;
use crate::responses as responses_form;
use crate::support::real_data;

#[test]
fn anthropics_requests_and_responses_are_written_as_they_were_read() {
    let Some(data) = real_data() else { return };
    let (mut requests, mut responses, mut blocks) = (0, 0, 0);
    for entry in recordings(&data).iter().filter(|entry| entry["request"].get("messages").is_some()) {
        let (request, response) = (&entry["request"], &entry["response"]);
        let said = json!({"system": request["system"], "messages": request["messages"]});
        assert_eq!(anthropic_form::rewritten(request), said);
        // The same laid out on many lines.
        let wide = anthropic::read(&serde_json::to_string_pretty(request).unwrap()).unwrap();
        let export = anthropic::write(&wide.messages);
        assert!(export.warnings.iter().all(|warning| warning.text.contains("line breaks")), "{:?}", export.warnings);
        assert_eq!(serde_json::from_str::<Value>(&export.to_json()).unwrap(), said);

        let answer = anthropic_form::read(response);
        assert_eq!((answer.len(), answer[0].id()), (1, response["id"].as_str()));
        let written: Value = serde_json::from_str(&anthropic::write(&answer).objects[0]).unwrap();
        assert_eq!(written, json!({"role": "assistant", "content": response["content"]}));
        (requests, responses) = (requests + 1, responses + 1);
        blocks += response["content"].as_array().unwrap().len();
    }
    assert_eq!((requests, responses, blocks), (6, 6, 10));
}

/// Everything that was recorded of providers.
fn recordings(data: &Path) -> Vec<Value> {
    let files = fs::read_dir(data.join("provider-recordings")).unwrap().map(|entry| entry.unwrap().path());
    let entries = |path| serde_json::from_str::<Vec<Value>>(&fs::read_to_string(path).unwrap()).unwrap();
    files.flat_map(entries).collect()
}

#[test]
fn recorded_sessions_of_a_coding_agent_are_written_as_they_were_read() {
    let Some(data) = real_data() else { return };
    let mut count = 0;
    for entry in fs::read_dir(data.join("claude-code")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        for line in lines.filter(|line| line["message"]["role"].is_string()) {
            let message = &line["message"];
            let export = anthropic::write(&anthropic_form::read(message));
            let written: Value = serde_json::from_str(&export.objects[0]).unwrap();
            let content = as_blocks(&message["content"]);
            let mut said = json!({"role": message["role"], "content": content});
            if let Some(slip) = message.get("contenst") {
                said["contenst"] = slip.clone();
            }
            assert_eq!((written, export.objects.len()), (said, 1));
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}

/// A content with a list where the form also takes a string, and nothing for what is not so.
fn as_blocks(content: &Value) -> Value {
    if content.is_string() {
        return json!([{"type": "text", "text": content}]);
    }
    // One of the recorded messages has a slip in the name of its content.
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let block = |block: &Value| {
        if block.is_string() {
            return json!({"type": "text", "text": block});
        }
        let mut block = block.clone();
        if block["type"] == "tool_result" {
            block["content"] = as_blocks(&block["content"]);
            if block["is_error"] == false {
                block.as_object_mut().unwrap().remove("is_error");
            }
        }
        block
    };
    blocks.iter().map(block).collect()
}

#[test]
fn requests_with_items_are_written_as_they_were_read() {
    let Some(data) = real_data() else { return };
    let (mut requests, mut items) = (0, 0);
    for entry in recordings(&data).iter().filter(|entry| entry["request"].get("input").is_some()) {
        let request = &entry["request"];
        let mut said = request["input"].clone();
        for item in said.as_array_mut().unwrap() {
            // What the form has a longer way to say.
            if item.get("type").is_none() {
                item["type"] = "message".into();
                item["content"] = json!([{"type": "input_text", "text": item["content"]}]);
            }
            items += 1;
        }
        assert_eq!(responses_form::rewritten(request), said);
        let wide = responses::read(&serde_json::to_string_pretty(request).unwrap()).unwrap();
        assert_eq!(wide.messages, responses_form::read(request));
        requests += 1;
    }
    assert_eq!((requests, items), (4, 22));
}

#[test]
fn real_conversations_of_other_forms_are_written_and_what_was_not_reported_comes_back() {
    let Some(data) = real_data() else { return };
    let mut whole = [0, 0];
    for conversation in conversations::all(&data) {
        let messages: Vec<Message> = conversation.messages.iter().map(without_names).collect();
        whole[0] += usize::from(anthropic_form::comes_back(&messages));
        whole[1] += usize::from(responses_form::comes_back(&messages));
    }
    // The others think without a signature, or have times and metadata.
    assert_eq!(whole, [1_600, 1_600]);
}

/// A message without the names of the tools in its results, which neither form has.
fn without_names(message: &Message) -> Message {
    let mut content = message.content().to_vec();
    for part in &mut content {
        if let Content::ToolResult(result) = part {
            result.name = None;
        }
    }
    if message.role() == Role::Tool { Message::new(Role::Tool, content) } else { message.clone() }
}
