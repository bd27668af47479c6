//! The server as a child process, and a client of it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

pub struct Server {
    child: Child,
    url: String,
    client: Client,
}

impl Server {
    /// Starts the server with an echo for a model, which takes this many milliseconds for each word.
    pub fn start(directory: &Path, delay_ms: u64) -> Self {
        Self::start_with(directory, &[("CHAT_ECHO_DELAY_MS", &delay_ms.to_string())])
    }

    /// Starts the server with these settings; what it logs is in `log` of the directory.
    pub fn start_with(directory: &Path, settings: &[(&str, &str)]) -> Self {
        _ = rustls::crypto::ring::default_provider().install_default();
        let log = File::options().create(true).append(true).open(directory.join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_axum-chat"));
        for name in ["OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"] {
            command.env_remove(name);
        }
        command.env("CHAT_ADDRESS", "127.0.0.1:0").env("CHAT_DIRECTORY", directory.join("chats"));
        command.envs(settings.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").expect("the server does not start").to_owned();
        Self { child, url, client: Client::builder().no_proxy().build().unwrap() }
    }

    /// Kills the server, and waits for its end.
    pub fn kill(mut self) {
        self.send_sigkill();
        self.child.wait().unwrap();
    }

    pub fn send_sigkill(&self) {
        self.signal(Signal::KILL);
    }

    pub fn send_sigterm(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the server to end by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server does not end");
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub async fn get(&self, path: &str) -> Value {
        let response = self.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    }

    /// What is remembered of a conversation: role and text.
    pub async fn said(&self, conversation: &str) -> Vec<(String, String)> {
        let history = self.get(&format!("/chat/{conversation}?last=500")).await;
        let field = |message: &Value, name: &str| message[name].as_str().unwrap().to_owned();
        let messages = history["messages"].as_array().unwrap().iter();
        messages.map(|message| (field(message, "role"), field(message, "text"))).collect()
    }

    /// Asks, and gives the answer's stream back. An error where the server is gone.
    pub async fn begin(&self, conversation: &str, question: Value) -> reqwest::Result<Turn> {
        let request = self.request(Method::POST, &format!("/chat/{conversation}"));
        let request = request.header("content-type", "application/json").body(question.to_string());
        Ok(Turn { response: request.send().await?.error_for_status()?, unread: String::new() })
    }

    /// Asks, and waits for the last event: its name, its data, and all pieces before it.
    pub async fn ask(&self, conversation: &str, text: &str) -> (String, Value, String) {
        self.begin(conversation, json!({ "text": text })).await.unwrap().last().await.expect("the stream broke off")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A turn as its client hears it.
#[derive(Debug)]
pub struct Turn {
    response: Response,
    unread: String,
}

impl Turn {
    /// The next event; `None` where the stream broke off, or ended.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.unread.split_once("\n\n") {
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let event = field("event: ")
                    .map(|name| (name.to_owned(), serde_json::from_str(field("data: ").unwrap()).unwrap()));
                self.unread = rest.to_owned();
                // Without a name it is a comment, which keeps the connection alive.
                if event.is_some() {
                    return event;
                }
                continue;
            }
            let bytes = self.response.chunk().await.ok()??;
            // The server writes each event at once, and its JSON is whole in it.
            self.unread.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    /// The last event, and the pieces until then; `None` where the stream broke off before.
    pub async fn last(mut self) -> Option<(String, Value, String)> {
        let mut pieces = String::new();
        while let Some((name, data)) = self.next().await {
            if name != "piece" {
                assert!(self.next().await.is_none(), "something comes behind the last event");
                return Some((name, data, pieces));
            }
            pieces += data["text"].as_str().unwrap();
        }
        None
    }
}
