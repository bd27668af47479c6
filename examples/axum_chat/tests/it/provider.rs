//! An OpenAI-compatible endpoint that says what it was told to say, and notes what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What the endpoint does when it is asked.
pub enum Script {
    /// Sends these bytes, in these pieces, and ends the answer well.
    Says(Vec<Vec<u8>>),
    /// Sends these bytes, and breaks the connection.
    Breaks(Vec<Vec<u8>>),
    Fails(StatusCode),
}

#[derive(Default)]
struct Notes {
    scripts: VecDeque<Script>,
    asked: Vec<(Option<String>, Value)>,
}

#[derive(Clone)]
pub struct Provider {
    notes: Arc<Mutex<Notes>>,
    pub url: String,
}

impl Provider {
    pub async fn start(scripts: impl IntoIterator<Item = Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let notes = Arc::new(Mutex::new(Notes { scripts: scripts.into_iter().collect(), ..Notes::default() }));
        let app = Router::new().route("/v1/chat/completions", post(complete)).with_state(Arc::clone(&notes));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { notes, url }
    }

    /// The authorization and the body of each request.
    pub fn asked(&self) -> Vec<(Option<String>, Value)> {
        self.notes.lock().unwrap().asked.clone()
    }
}

async fn complete(State(notes): State<Arc<Mutex<Notes>>>, headers: HeaderMap, body: String) -> Response {
    let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
    let script = {
        let mut notes = notes.lock().unwrap();
        notes.asked.push((key, serde_json::from_str(&body).unwrap()));
        notes.scripts.pop_front().expect("the model is asked too often")
    };
    let (pieces, breaks) = match script {
        Script::Says(pieces) => (pieces, false),
        Script::Breaks(pieces) => (pieces, true),
        Script::Fails(status) => return (status, "it failed: canary").into_response(),
    };
    let (sender, receiver) = tokio::sync::mpsc::channel::<std::io::Result<Vec<u8>>>(1);
    tokio::spawn(async move {
        for piece in pieces {
            sender.send(Ok(piece)).await.unwrap();
            // So that each goes over the wire alone.
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        if breaks {
            sender.send(Err(std::io::Error::other("cut"))).await.unwrap();
        }
    });
    let body = Body::from_stream(tokio_stream::wrappers::ReceiverStream::new(receiver));
    ([("content-type", "text/event-stream")], body).into_response()
}

/// An event with this delta of the answer.
pub fn delta(delta: Value, finish_reason: Option<&str>) -> Vec<u8> {
    let chunk = json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]});
    format!("data: {chunk}\n\n").into_bytes()
}

/// An event with a piece of text.
pub fn text(text: &str) -> Vec<u8> {
    delta(json!({ "content": text }), None)
}

/// What ends an answer: the reason, the count of tokens, the mark of the end.
pub fn end(reason: &str) -> Vec<Vec<u8>> {
    let usage = br#"data: {"choices": [], "usage": {"total_tokens": 7}}"#;
    vec![delta(json!({}), Some(reason)), [&usage[..], b"\n\n"].concat(), b"data: [DONE]\n\n".to_vec()]
}
