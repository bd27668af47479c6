//! Any model behind OpenAI's chat completions, streamed.
//!
//! <https://platform.openai.com/docs/api-reference/chat-streaming>

use std::io;
use std::time::Duration;

use chat_memory::transcript::openai;
use chat_memory::{ModelRequest, Reply, StreamedReply};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::time::timeout;

/// Between two pieces: a model may think for a while.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct OpenAi {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: Uri,
    key: Option<String>,
    model: String,
}

impl OpenAi {
    pub fn new(base_url: &str, key: Option<String>, model: String) -> Result<Self, Box<dyn std::error::Error>> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(Duration::from_secs(10)));
        let tls = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())?
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new()).build(tls);
        let url = format!("{}/chat/completions", base_url.trim_end_matches('/')).parse()?;
        Ok(Self { client, url, key, model })
    }

    /// Asks the model. An error means that it said nothing; what came of an answer that broke off is a reply.
    pub async fn answer(&self, request: ModelRequest, say: impl Fn(&str)) -> io::Result<Reply> {
        let mut response = timeout(PATIENCE, self.ask(&request)).await??;
        let mut answer = Answer::default();
        while !answer.is_over {
            match timeout(PATIENCE, response.frame()).await {
                Ok(Some(Ok(frame))) => answer.take(frame.data_ref().map_or(&[], |data| data), &say),
                Ok(None) => break,
                Ok(Some(Err(_))) | Err(_) => {
                    tracing::warn!("an answer broke off");
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

    async fn ask(&self, request: &ModelRequest) -> io::Result<Response<Incoming>> {
        let messages = openai::write(&request.messages).to_json();
        let body = format!(r#"{{"model":{},"stream":true,"messages":{messages}}}"#, json!(self.model));
        let mut post = Request::post(&self.url).header(CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            post = post.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        let post = post.body(Full::from(body)).map_err(io::Error::other)?;
        let response = self.client.request(post).await.map_err(io::Error::other)?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(io::Error::other(format!("the model's endpoint answered {status}"))),
        }
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
