//! A rig agent that goes on after a restart where it stopped.
//!
//! `cargo run -p chat-memory-rig --example rig_agent`
//!
//! Two processes, one after the other, each with an agent of its own: what the second knows of the first is in the files alone.
//! They ask a model that is scripted and runs in this program; or, where `OPENAI_BASE_URL`, `OPENAI_MODEL` and perhaps
//! `OPENAI_API_KEY` say so, any that speaks OpenAI's form over plain HTTP. For HTTPS, rig-core needs its feature `rustls`.

#[path = "../tests/it/server.rs"]
mod server;

use std::convert::Infallible;
use std::env;
use std::process::Command;

use chat_memory::FileChatMemory;
use chat_memory_rig::RigMemory;
use rig_agent::AgentBuilder;
use rig_core::providers::openai::OpenAIConfig;
use rig_core::tool::PortableTool;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [directory, base_url, question] = arguments.as_slice() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(ask(directory, base_url, question));
    }

    let directory = tempfile::tempdir()?;
    let scripted = server::Server::start(scripted_model)?;
    let base_url = env::var("OPENAI_BASE_URL").unwrap_or_else(|_| scripted.base_url());
    for question in ["How cold is it in Oslo?", "Do I need a coat there?"] {
        let status = Command::new(env::current_exe()?).arg(directory.path()).args([&base_url, question]).status()?;
        if !status.success() {
            return Err(format!("the process ended with {status}").into());
        }
    }

    // What the first process said is not in the second's question: it comes from the files.
    if let Some(request) = scripted.received().last() {
        println!("\nWith the last question, the model was sent:");
        messages(request).iter().for_each(|message| println!("  {message}"));
    }
    Ok(())
}

/// A process: an agent on the files of a directory, and one question to it.
async fn ask(directory: &str, base_url: &str, question: &str) -> Result<()> {
    let memory = RigMemory::offload(FileChatMemory::builder(directory).max_messages(40).open()?);
    let model = env::var("OPENAI_MODEL").unwrap_or_else(|_| "gpt-4o-mini".to_owned());
    let key = env::var("OPENAI_API_KEY").unwrap_or_default();
    let agent = AgentBuilder::new(OpenAIConfig::new(key).with_base_url(base_url).client().chat(model))
        .preamble("You know the weather.")
        .tool(Thermometer)
        .default_max_turns(8)
        .memory(memory)
        .build();

    println!("process {}", std::process::id());
    println!("  user:  {question}");
    let response = agent.prompt(question).conversation("user-42").await?;
    println!("  agent: {}", response.output());
    if let Some(error) = response.memory_append().and_then(|append| append.failure()) {
        return Err(format!("the turn was not remembered: {error}").into());
    }
    Ok(())
}

struct Thermometer;

impl PortableTool for Thermometer {
    const NAME: &'static str = "thermometer";
    type Args = Value;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "The temperature in a city.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
    }

    async fn call(&self, _arguments: Value) -> std::result::Result<String, Infallible> {
        Ok("-4 °C".to_owned())
    }
}

/// Looks at the thermometer when it is asked for the first time, and then knows what was said.
fn scripted_model(request: &Value) -> Value {
    let text = |message: &Value| message.get("content").and_then(Value::as_str).map(str::to_owned);
    let is_tool = |message: &&Value| message.get("role").is_some_and(|role| role == "tool");
    let messages = messages(request);
    let Some(measured) = messages.iter().find(is_tool).and_then(text) else {
        return server::calls("call-1", "thermometer", &json!({"city": "Oslo"}));
    };
    match messages.last() {
        Some(last) if is_tool(&last) => server::says(&format!("It is {measured} in Oslo.")),
        _ => server::says(&format!("Yes. You asked about Oslo, and there it was {measured}.")),
    }
}

fn messages(request: &Value) -> &[Value] {
    request.get("messages").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
