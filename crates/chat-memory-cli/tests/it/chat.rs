//! `chat`: with the echo, and with a real endpoint on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use chat_memory::ChatMemory;
use serde_json::Value;

use crate::support::{Place, said};

#[test]
fn a_chat_goes_on_after_a_kill() {
    let place = Place::new();
    let first = place.run_with_input(&["chat", "c"], "one\ntwo\n");
    assert_eq!(first.code, 0, "{first:?}");
    assert!(first.out.contains("You said \"two\". Before that you said \"one\"."), "{first:?}");

    // Killed while it waits for the next line.
    let mut command = place.command(&["chat", "c"]);
    let mut child = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"three\n").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("You said \"three\"")).unwrap().unwrap();
    // The next line of output comes when the turn is remembered.
    child.stdin.as_mut().unwrap().write_all(b"/help\n").unwrap();
    lines.find(|line| line.as_ref().unwrap().contains("/quit")).unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.store().get("c").unwrap().len(), 6);

    let input = "/history 1\n/window 2\nfour\n/window x\n/nonsense\n/clear\n/history\n/quit\nnever read\n";
    let last = place.run_with_input(&["chat", "c"], input);
    for expected in [
        "6 messages so far",
        "three",
        "I was shown 3 messages",
        "/window takes a number",
        "There is no /nonsense",
        "Forgotten.",
        "Nothing was said yet.",
    ] {
        assert!(last.out.contains(expected), "{expected}: {last:?}");
    }
    assert!(!last.out.contains("never read"));
    assert!(place.store().get("c").unwrap().is_empty());
}

/// Answers each request with the next of these bodies, and hands back what it was sent.
fn serve(answers: Vec<String>) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let received = answers.into_iter().map(|answer| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            serde_json::from_slice(&body).unwrap()
        });
        received.collect()
    });
    (base, server)
}

fn events(pieces: &[&str], end: &str) -> String {
    let piece = |text: &&str| {
        format!(
            "data: {}\n\n",
            serde_json::json!({ "choices": [{ "delta": { "content": text }, "finish_reason": null }] })
        )
    };
    let body: String = pieces.iter().map(piece).collect();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}{end}")
}

#[test]
fn an_endpoint_is_sent_the_conversation_and_its_failures_are_told() {
    let place = Place::new();
    let error = "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 43\r\n\r\n{\"error\":{\"message\":\"the key is not right\"}}".to_owned();
    let (base, server) = serve(vec![
        events(&["Hel", "lo\u{1b}[2J!"], "data: [DONE]\n\n"),
        error,
        events(&["Half an ans"], ""),
        events(&["Yes"], "data: [DONE]\n\n"),
    ]);
    let mut command = place.command(&["chat", "c", "--system", "Be brief."]);
    command.env("OPENAI_BASE_URL", &base).env("OPENAI_MODEL", "tiny").env("OPENAI_API_KEY", "k");
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hi\nagain\nthird\nfourth\n").unwrap();
    let said = said(child.wait_with_output().unwrap());
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("Hello␛[2J!"), "{said:?}");
    assert!(said.out.contains("the key is not right"), "{said:?}");
    assert!(said.out.contains("cut off"), "{said:?}");

    let received = server.join().unwrap();
    let texts = |request: &Value| -> Vec<String> {
        request["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(received[0]["model"], "tiny");
    assert_eq!(texts(&received[0]), ["Be brief.", "hi"]);
    assert_eq!(texts(&received[1])[1..], ["hi", "Hello\u{1b}[2J!", "again"]);
    // What failed is not there; what was cut off is.
    assert_eq!(texts(&received[3])[1..], ["hi", "Hello\u{1b}[2J!", "third", "Half an ans", "fourth"]);
    assert_eq!(place.store().get("c").unwrap().len(), 6);
}

#[test]
fn half_an_environment_is_refused() {
    let place = Place::new();
    let output = place.command(&["chat"]).env("OPENAI_API_KEY", "k").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("OPENAI_MODEL"));
}
