//! Recorded conversations of two providers go on with rig, each with its own.

use std::fs;
use std::path::Path;

use chat_memory::transcript::{anthropic, responses};
use chat_memory::{ChatMemory, InMemoryChatMemory, Message, Offload};
use chat_memory_rig::{RigMemory, from_rig, to_rig};
use rig_agent::AgentBuilder;
use rig_core::providers::anthropic::AnthropicConfig;
use rig_core::providers::openai::OpenAIConfig;
use rig_core::transcript::validate_canonical;
use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{Thermometer, real_data};

fn requests(data: &Path, list: &str) -> Vec<Value> {
    let files = fs::read_dir(data.join("provider-recordings")).unwrap().map(|entry| entry.unwrap().path());
    let entries =
        files.flat_map(|path| serde_json::from_str::<Vec<Value>>(&fs::read_to_string(path).unwrap()).unwrap());
    entries.map(|entry| entry["request"].clone()).filter(|request| request.get(list).is_some()).collect()
}

/// A memory with this conversation. It is one that rig takes, and comes back from it.
fn memory(messages: &[Message]) -> RigMemory<Offload<InMemoryChatMemory>> {
    let rig = to_rig(messages).messages;
    assert_eq!(validate_canonical(&rig), Ok(()));
    assert_eq!(to_rig(&from_rig(rig.clone()).unwrap()).messages, rig);
    let store = InMemoryChatMemory::new();
    store.add("c", messages).unwrap();
    RigMemory::offload(store)
}

#[tokio::test]
async fn anthropics_are_sent_on_as_they_were_recorded() {
    let Some(data) = real_data() else { return };
    let mut count = 0;
    for request in requests(&data, "messages") {
        let text = json!({"messages": request["messages"]}).to_string();
        let messages = anthropic::read(&text).unwrap().messages;
        let server = Server::start(|_| {
            json!({"id": "m", "type": "message", "role": "assistant", "model": "scripted", "stop_reason": "end_turn",
                "stop_sequence": null, "content": [{"type": "text", "text": "Well."}],
                "usage": {"input_tokens": 1, "output_tokens": 1}})
        })
        .unwrap();
        let base_url = server.base_url();
        let client = AnthropicConfig::new("none").with_base_url(base_url).client();
        let agent = AgentBuilder::new(client.completion("scripted")).max_tokens(9).tool(Thermometer);
        let agent = agent.memory(memory(&messages)).build();
        assert_eq!(agent.prompt("Go on.").conversation("c").await.unwrap().output(), "Well.");

        // Each ends with the user, and rig sends no two messages of one role.
        let mut expected = request["messages"].clone();
        let last = expected.as_array_mut().unwrap().last_mut().unwrap();
        assert_eq!(last["role"], "user");
        last["content"].as_array_mut().unwrap().push(json!({"type": "text", "text": "Go on."}));
        assert_eq!(server.received()[0]["messages"], expected);
        count += 1;
    }
    assert_eq!(count, 6);
}

#[tokio::test]
async fn openais_items_are_sent_on_but_for_the_sealed_thoughts() {
    let Some(data) = real_data() else { return };
    let mut count = 0;
    for request in requests(&data, "input") {
        let messages = responses::read(&request["input"].to_string()).unwrap().messages;
        let server = Server::start(|_| {
            let said = json!([{"type": "output_text", "text": "Well.", "annotations": []}]);
            json!({"id": "r", "object": "response", "created_at": 0, "status": "completed", "model": "scripted",
                "output": [{"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": said}],
                "usage": null, "tools": []})
        })
        .unwrap();
        let client = OpenAIConfig::new("none").with_base_url(server.base_url()).client();
        let agent = AgentBuilder::new(client.completion("scripted")).tool(Thermometer);
        let agent = agent.memory(memory(&messages)).build();
        assert_eq!(agent.prompt("Go on.").conversation("c").await.unwrap().output(), "Well.");

        let recorded = request["input"].as_array().unwrap().iter();
        let mut expected: Vec<Value> = recorded.filter(|item| item["type"] != "reasoning").map(gist).collect();
        expected.push(json!(["user", "Go on."]));
        let sent: Vec<Value> = server.received()[0]["input"].as_array().unwrap().iter().map(gist).collect();
        assert_eq!(sent, expected);
        count += 1;
    }
    assert_eq!(count, 4);
}

/// What an item says, however it says it.
fn gist(item: &Value) -> Value {
    let arguments = || serde_json::from_str::<Value>(item["arguments"].as_str().unwrap()).unwrap();
    match item["type"].as_str() {
        Some("function_call") => json!([item["call_id"], item["name"], arguments()]),
        Some("function_call_output") => json!([item["call_id"], item["output"]]),
        _ => json!([item["role"], item["content"].get(0).map_or(&item["content"], |part| &part["text"])]),
    }
}
