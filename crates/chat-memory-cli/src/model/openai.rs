//! Any endpoint that speaks OpenAI's chat completions, streamed as server-sent events.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use chat_memory::transcript::openai;
use chat_memory::{Message, ModelRequest, Reply, StreamedReply};
use serde_json::{Value, json};

use super::Show;
use crate::failure::{Failure, in_full};

pub struct OpenAi {
    pub base: String,
    pub model: String,
    key: Option<String>,
    agent: ureq::Agent,
}

impl OpenAi {
    pub fn new(base: Option<String>, key: Option<String>, model: String) -> Self {
        let base = base.unwrap_or_else(|| "https://api.openai.com/v1".to_owned());
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_recv_response(Some(Duration::from_secs(300)))
            .build();
        Self { base: base.trim_end_matches('/').to_owned(), model, key, agent: config.into() }
    }

    /// Asks, and shows the answer as it comes. One that breaks off is kept as far as it came.
    pub fn call(&self, request: &ModelRequest, show: Show<'_>) -> Result<Reply, Failure> {
        let url = format!("{}/chat/completions", self.base);
        let messages = openai::write(&request.messages).to_json();
        let messages: Value = serde_json::from_str(&messages).map_err(|error| Failure::Other(error.to_string()))?;
        let mut post = self.agent.post(&url).header("accept", "text/event-stream");
        if let Some(key) = &self.key {
            post = post.header("authorization", format!("Bearer {key}"));
        }
        let failed = |error: ureq::Error| Failure::Other(format!("{url} did not answer: {}", in_full(&error)));
        let body = json!({ "model": self.model, "messages": messages, "stream": true });
        let mut response = post.send_json(&body).map_err(failed)?;
        if !response.status().is_success() {
            let status = response.status();
            let body = response.body_mut().with_config().limit(1 << 20).read_to_string().unwrap_or_default();
            return Err(Failure::Other(format!("{url} answered {status}: {}", reason(&body))));
        }
        // Some endpoints answer in one piece, whatever they are asked.
        if response.body().mime_type().is_some_and(|kind| kind == "application/json") {
            let body: Value = response.body_mut().read_json().map_err(failed)?;
            let text = body.pointer("/choices/0/message/content").and_then(Value::as_str);
            let text = text.ok_or_else(|| Failure::Other(format!("{url} answered without a text")))?;
            show(text);
            return Ok(Message::assistant(text).into());
        }
        let lines = BufReader::new(response.body_mut().as_reader()).lines();
        let mut reply = StreamedReply::new();
        for line in lines {
            // Broken off.
            let Ok(line) = line else { return Ok(reply.interrupted()) };
            let Some(data) = line.strip_prefix("data:").map(str::trim) else { continue };
            if data == "[DONE]" {
                return Ok(reply.finish());
            }
            let Ok(event) = serde_json::from_str::<Value>(data) else { return Ok(reply.interrupted()) };
            if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
                return Err(Failure::Other(format!("{url} broke off: {}", reason(&error.to_string()))));
            }
            let delta = event.pointer("/choices/0/delta").unwrap_or(&Value::Null);
            if let Some(text) = delta.get("content").and_then(Value::as_str) {
                show(text);
                reply.text(text);
            }
            if event.pointer("/choices/0/finish_reason").is_some_and(Value::is_string) {
                return Ok(reply.finish());
            }
        }
        Ok(reply.interrupted())
    }
}

/// What an endpoint says is wrong, in its usual form or as it stands.
fn reason(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let message = value.pointer("/error/message").or_else(|| value.get("message")).and_then(Value::as_str);
    crate::text::on_a_line(crate::text::cut(message.unwrap_or(body), Some(500)).0)
}
