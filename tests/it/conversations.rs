//! Real conversations as messages.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use chat_memory::transcript::openai;
use chat_memory::{Content, Message, Opaque, Reasoning, Role, ToolCall, ToolResult};
use serde_json::Value;

pub struct Conversation {
    pub id: String,
    pub messages: Vec<Message>,
}

/// All conversations of the folder that the tests use.
pub fn all(data: &Path) -> Vec<Conversation> {
    let mut all = airline(data);
    for name in ["fastchat-dummy_conversation", "glaive_toolcall_en_demo", "glaive_toolcall_zh_demo", "dpo_zh_demo"] {
        all.extend(sharegpt(data, name));
    }
    all.extend(reasoning(data));
    all.push(agent(data));
    all
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn json_lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// OpenAI's own form.
pub fn airline(data: &Path) -> Vec<Conversation> {
    let file = json(&data.join("openai-chat/airline.json"));
    let conversation = |(at, entry): (usize, &Value)| {
        let import = openai::read(&entry["traj"].to_string()).unwrap();
        assert!(import.warnings.is_empty());
        Conversation { id: format!("airline/{at}"), messages: import.messages }
    };
    array(&file).iter().enumerate().map(conversation).collect()
}

fn sharegpt(data: &Path, name: &str) -> Vec<Conversation> {
    let file = json(&data.join(format!("sharegpt/{name}.json")));
    array(&file)
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            let mut open = None;
            let messages = array(&entry["conversations"]).iter().enumerate().map(|(position, line)| {
                let said = text(&line["value"]);
                match text(&line["from"]) {
                    "human" => Message::user(said),
                    "gpt" => Message::assistant(said),
                    "system" => Message::system(said),
                    "function_call" => {
                        let call: Value = serde_json::from_str(said).unwrap_or_default();
                        let id = format!("call-{position}");
                        open = Some(id.clone());
                        let arguments = call.get("arguments").map_or(said.to_owned(), Value::to_string);
                        Message::new(Role::Assistant, []).with_tool_call(id, text(&call["name"]), arguments)
                    }
                    "observation" => {
                        let id = open.take().unwrap_or_else(|| format!("unasked-{position}"));
                        Message::new(Role::Tool, [ToolResult::new(id).with_text(said).into()])
                    }
                    other => panic!("unknown speaker {other}"),
                }
            });
            Conversation { id: format!("{name}/{at}"), messages: messages.collect() }
        })
        .collect()
}

fn reasoning(data: &Path) -> Vec<Conversation> {
    let lines = json_lines(&data.join("sharegpt/reason_tool_use_demo_50.jsonl"));
    let message = |line: &Value| {
        let role = match text(&line["role"]) {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => panic!("unknown role {other}"),
        };
        let parts = array(&line["content"]).iter().map(|part| match text(&part["type"]) {
            "text" if role == Role::Tool => ToolResult::new("").with_text(text(&part["value"])).into(),
            "text" => Content::Text(text(&part["value"]).to_owned()),
            "reasoning" => Reasoning::new(text(&part["value"])).into(),
            "tool_call" => ToolCall::new("", "", part["value"].to_string()).into(),
            _ => Opaque::new("demo", part.to_string()).into(),
        });
        Message::new(role, parts)
    };
    let conversation = |(at, entry): (usize, &Value)| Conversation {
        id: format!("reasoning/{at}"),
        messages: array(&entry["messages"]).iter().map(message).collect(),
    };
    lines.iter().enumerate().map(conversation).collect()
}

/// One long session of a coding agent.
pub fn agent(data: &Path) -> Conversation {
    let lines = json_lines(&data.join("agent-jsonl/large-session.jsonl"));
    let messages = lines.iter().filter(|line| line["type"] == "message").map(|line| {
        let message = &line["message"];
        let parts = array(&message["content"]);
        let part = |part: &Value| match text(&part["type"]) {
            "text" => Content::Text(text(&part["text"]).to_owned()),
            "thinking" => {
                Reasoning::new(text(&part["thinking"])).with_signature(text(&part["thinkingSignature"])).into()
            }
            "toolCall" => ToolCall::new(text(&part["id"]), text(&part["name"]), part["arguments"].to_string()).into(),
            _ => Opaque::new("pi", part.to_string()).into(),
        };
        let converted = match text(&message["role"]) {
            "user" => Message::new(Role::User, parts.iter().map(part)),
            "assistant" => Message::new(Role::Assistant, parts.iter().map(part)),
            "toolResult" => {
                let mut result = ToolResult::new(text(&message["toolCallId"])).with_name(text(&message["toolName"]));
                for part in parts {
                    result = result.with_text(text(&part["text"]));
                }
                result.is_error = message["isError"] == true;
                Message::new(Role::Tool, [result.into()])
            }
            other => panic!("unknown role {other}"),
        };
        let time = message["timestamp"].as_u64().map(|ms| UNIX_EPOCH + Duration::from_millis(ms));
        let converted = time.map_or(converted.clone(), |time| converted.with_created_at(time));
        ["usage", "model", "stopReason"].iter().fold(converted, |converted, key| match message.get(key) {
            Some(value) => converted.with_metadata(*key, value.clone()),
            None => converted,
        })
    });
    Conversation { id: "agent/large-session".into(), messages: messages.collect() }
}
