//! Where tests find what they need from outside, this program again, and agents.

use std::path::{Path, PathBuf};
use std::process::Command;

use chat_memory::{Durability, FileChatMemory};
use rig_agent::{Agent, AgentBuilder};
use rig_core::memory::ConversationMemory;
use rig_core::providers::openai::OpenAIConfig;
use rig_core::tool::PortableTool;
use serde_json::{Value, json};

use crate::server::Server;

/// Where real conversations are: `CHAT_MEMORY_TEST_DATA`, else `../shared/data` beside the workspace. Without them a test prints
/// that it skips, and fails where `CHAT_MEMORY_TEST_REQUIRE` is set.
pub fn real_data() -> Option<PathBuf> {
    let place = std::env::var_os("CHAT_MEMORY_TEST_DATA").map(PathBuf::from);
    let place = place.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    if place.is_dir() {
        return Some(place);
    }
    let reason = "no real conversations; name their folder in CHAT_MEMORY_TEST_DATA";
    assert!(std::env::var_os("CHAT_MEMORY_TEST_REQUIRE").is_none(), "nothing may be skipped here: {reason}");
    println!("skipped: {reason}");
    None
}

const PART: &str = "CHAT_MEMORY_TEST_CHILD";

/// In a child process: what it was started with.
pub fn child_part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Runs one test of this program in a process of its own, to its good end.
pub fn run_child(test: &str, part: &str) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(PART, part)
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

/// A store that does not wait for the disk.
pub fn quick(directory: &Path) -> FileChatMemory {
    FileChatMemory::builder(directory).durability(Durability::Process).open().unwrap()
}

/// An agent with a tool, which remembers.
pub fn agent(server: &Server, memory: impl ConversationMemory + 'static) -> Agent {
    agent_at(&server.base_url(), memory)
}

pub fn agent_at(base_url: &str, memory: impl ConversationMemory + 'static) -> Agent {
    AgentBuilder::new(OpenAIConfig::new("none").with_base_url(base_url).client().chat("scripted"))
        .preamble("You know the weather.")
        .default_max_turns(8)
        .tool(Thermometer)
        .memory(memory)
        .build()
}

pub struct Thermometer;

impl PortableTool for Thermometer {
    const NAME: &'static str = "thermometer";
    type Args = Value;
    type Output = Value;
    type Error = std::convert::Infallible;

    fn description(&self) -> String {
        "The temperature in a city.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"city": {"type": "string"}}})
    }

    async fn call(&self, arguments: Value) -> Result<Value, Self::Error> {
        Ok(json!({"city": arguments["city"], "celsius": -4}))
    }
}
