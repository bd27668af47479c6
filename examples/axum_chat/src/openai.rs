//! Any model behind OpenAI's chat completions, streamed.
//!
//! <https://platform.openai.com/docs/api-reference/chat-streaming>

use std::time::Duration;

use chat_memory::transcript::openai;
use chat_memory::{ModelRequest, Reply, StreamedReply};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

pub struct OpenAi {
    client: reqwest::Client,
    url: String,
    key: Option<String>,
    model: String,
}

impl OpenAi {
    pub fn new(base_url: &str, key: Option<String>, model: String) -> reqwest::Result<Self> {
        // An error means that there is a provider already.
        _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .read_timeout(Duration::from_secs(120)) // between two pieces: a model may think for a while
            .build()?;
        Ok(Self { client, url: format!("{}/chat/completions", base_url.trim_end_matches('/')), key, model })
    }

    /// Asks the model. An error means that it said nothing; what came of an answer that broke off is a reply.
    pub async fn answer(&self, request: ModelRequest, say: impl Fn(&str)) -> reqwest::Result<Reply> {
        let mut response = self.ask(&request).await.map_err(reqwest::Error::without_url)?;
        let mut answer = Answer::default();
        while !answer.is_over {
            match response.chunk().await {
                Ok(Some(bytes)) => answer.take(&bytes, &say),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(error = &error.without_url() as &dyn std::error::Error, "an answer broke off");
                    break;
                }
            }
        }
        // A stream that ends without saying why was cut off too.
        Ok(match answer.is_whole {
            Some(true) => answer.reply.finish(),
            _ => answer.reply.interrupted(),
        })
    }

    async fn ask(&self, request: &ModelRequest) -> reqwest::Result<reqwest::Response> {
        let messages = openai::write(&request.messages).to_json();
        let body = format!(r#"{{"model":{},"stream":true,"messages":{messages}}}"#, json!(self.model));
        let mut post = self.client.post(&self.url).header("content-type", "application/json").body(body);
        if let Some(key) = &self.key {
            post = post.bearer_auth(key);
        }
        post.send().await?.error_for_status()
    }
}

/// An answer while it comes.
#[derive(Default)]
struct Answer {
    reply: StreamedReply,
    /// The begin of a line.
    unread: Vec<u8>,
    /// Known when the model has said why it stopped.
    is_whole: Option<bool>,
    is_over: bool,
}

impl Answer {
    /// Takes what came, which may end anywhere: each event of such a stream is one line of data.
    fn take(&mut self, bytes: &[u8], say: impl Fn(&str)) {
        self.unread.extend_from_slice(bytes);
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            if let Some(data) = line.strip_prefix(b"data:") {
                self.event(data.trim_ascii(), &say);
            }
        }
    }

    fn event(&mut self, data: &[u8], say: impl Fn(&str)) {
        if data == b"[DONE]" {
            return self.end(true);
        }
        let Ok(Chunk { choices, error: None }) = serde_json::from_slice(data) else {
            tracing::warn!("an answer broke off with an error of the model");
            return self.end(false);
        };
        for Choice { delta, finish_reason } in choices {
            self.reply.reasoning(&delta.reasoning_content.unwrap_or_default());
            if let Some(text) = delta.content.or(delta.refusal).filter(|text| !text.is_empty()) {
                self.reply.text(&text);
                say(&text);
            }
            if let Some(reason) = finish_reason {
                self.is_whole.get_or_insert(reason != "length");
            }
        }
    }

    fn end(&mut self, is_whole: bool) {
        self.is_whole.get_or_insert(is_whole);
        self.is_over = true;
    }
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
}
