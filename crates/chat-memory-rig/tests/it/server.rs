//! A model's server on loopback that answers what it was told to answer, and keeps what it was sent.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

/// Such a server, for as long as the process lives.
pub struct Server {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Starts it on a free port. `answer` makes the body of a response from that of a request.
    pub fn start(answer: impl Fn(&Value) -> Value + Send + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Err(error) = serve(stream, &answer, &requests) {
                    eprintln!("the model's server: {error}");
                }
            }
        });
        Ok(Self { address, received })
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of all requests so far.
    pub fn received(&self) -> Vec<Value> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A chat completion that says a text.
pub fn says(text: &str) -> Value {
    completion(json!({"role": "assistant", "content": text}), "stop")
}

/// A chat completion that calls a tool.
pub fn calls(id: &str, name: &str, arguments: &Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let calls = json!([{"id": id, "type": "function", "function": function}]);
    completion(json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
}

fn completion(message: Value, finish_reason: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
}

/// Answers one request, and closes the connection.
fn serve(stream: TcpStream, answer: impl Fn(&Value) -> Value, received: &Mutex<Vec<Value>>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body)?;

    let response = answer(&request).to_string();
    received.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    write!(reader.get_mut(), "{head}\r\ncontent-length: {}\r\n\r\n{response}", response.len())
}
