//! What a provider wants back word for word, it gets back after a restart: signed and sealed thoughts, ids of its items.

use std::path::Path;

use chat_memory_rig::RigMemory;
use rig_agent::{Agent, AgentBuilder};
use rig_core::providers::anthropic::AnthropicConfig;
use rig_core::providers::openai::OpenAIConfig;
use serde_json::{Value, json};

use crate::server::Server;
use crate::support::quick;

/// Asks twice, each time with an agent and a store of its own.
async fn ask_twice(
    directory: &Path,
    agent: impl Fn(RigMemory<chat_memory::Offload<chat_memory::FileChatMemory>>) -> Agent,
) {
    for question in ["one?", "two?"] {
        let agent = agent(RigMemory::offload(quick(directory)));
        let response = agent.prompt(question).conversation("c").await.unwrap();
        assert!(response.memory_append().unwrap().is_acknowledged());
    }
}

#[tokio::test]
async fn signed_thoughts_go_back_to_anthropic() {
    let said = json!([
        {"type": "thinking", "thinking": "hm", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "sealed=="},
        {"type": "text", "text": "Well."}]);
    let content = said.clone();
    let server = Server::start(move |_| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "stop_reason": "end_turn",
            "stop_sequence": null, "content": content, "usage": {"input_tokens": 1, "output_tokens": 1}})
    })
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    ask_twice(directory.path(), |memory| {
        let client = AnthropicConfig::new("none").with_base_url(server.base_url()).client();
        AgentBuilder::new(client.completion("scripted")).max_tokens(9).memory(memory).build()
    })
    .await;
    let text = |text| json!([{"type": "text", "text": text}]);
    let expected = json!([
        {"role": "user", "content": text("one?")},
        {"role": "assistant", "content": said},
        {"role": "user", "content": text("two?")}]);
    assert_eq!(server.received()[1]["messages"], expected);
}

#[tokio::test]
async fn sealed_thoughts_go_back_to_openai() {
    let said = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA=="},
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "Well.", "annotations": []}]}]);
    let output = said.clone();
    let server = Server::start(move |_| {
        json!({"id": "resp_1", "object": "response", "created_at": 0, "status": "completed", "model": "scripted",
            "output": output, "usage": null, "tools": []})
    })
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    ask_twice(directory.path(), |memory| {
        let client = OpenAIConfig::new("none").with_base_url(server.base_url()).client();
        AgentBuilder::new(client.completion("scripted")).memory(memory).build()
    })
    .await;
    let sent: Vec<Value> = server.received()[1]["input"].as_array().unwrap().clone();
    assert_eq!(sent[1..3], *said.as_array().unwrap());
    assert_eq!(sent.len(), 4);
}
