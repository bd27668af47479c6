//! What the server takes, and what it says to what it does not.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::server::Server;

#[tokio::test]
async fn what_cannot_be_a_message_is_refused_with_a_reason_and_leaves_no_trace() {
    let directory = tempdir().unwrap();
    let server = Server::start(directory.path(), 0);
    let large = json!({ "text": "x".repeat(300 << 10) }).to_string();
    let json = "application/json";
    for (path, kind, body, status) in [
        ("/chat/a", json, r#"{"text": " \n"}"#, StatusCode::UNPROCESSABLE_ENTITY),
        ("/chat/a", json, r#"{"text": "x", "id": ""}"#, StatusCode::UNPROCESSABLE_ENTITY),
        ("/chat/%20", json, r#"{"text": "x"}"#, StatusCode::UNPROCESSABLE_ENTITY),
        ("/chat/a", json, r#"{"words": "x"}"#, StatusCode::UNPROCESSABLE_ENTITY),
        ("/chat/a", json, r#"{"text": "#, StatusCode::BAD_REQUEST),
        ("/chat/a", "text/plain", "x", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("/chat/a", json, &large, StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let request = server.request(Method::POST, path).header("content-type", kind).body(body.to_owned());
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{path} {kind}");
        let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert!(answer["error"].as_str().is_some_and(|reason| reason.len() > 10), "{answer}");
    }
    assert_eq!(server.get("/chats").await, json!({ "chats": [], "next": null }));
    let response = server.request(Method::GET, "/chats?after=x").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let response = server.request(Method::GET, "/chat/%20").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let response = server.request(Method::GET, "/health").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_history_is_read_page_by_page_from_its_end() {
    let directory = tempdir().unwrap();
    let server = Server::start(directory.path(), 0);
    for number in 0..4 {
        server.ask("a", &format!("question {number}")).await;
    }
    let mut seqs = Vec::new();
    let mut path = "/chat/a?last=3".to_owned();
    loop {
        let page = server.get(&path).await;
        let page = page["messages"].as_array().unwrap();
        let Some(first) = page.first() else { break };
        assert!(page.len() <= 3 && page[0]["at"].as_u64().unwrap() > 1_700_000_000);
        seqs.splice(0..0, page.iter().map(|message| message["seq"].as_u64().unwrap()));
        path = format!("/chat/a?last=3&before={}", first["seq"]);
    }
    assert_eq!(seqs, (0..8).collect::<Vec<_>>());
    assert_eq!(server.said("nobody").await, []);
}

#[tokio::test]
async fn any_conversation_id_works_and_the_catalogue_has_pages() {
    let directory = tempdir().unwrap();
    let server = Server::start(directory.path(), 0);
    let odd = ["..%2F..%2Fetc%2Fpasswd", "%F0%9F%A6%80", "a%20b", "a%00b"];
    for id in odd {
        server.ask(id, "hello").await;
        assert_eq!(server.said(id).await.len(), 2);
    }
    for number in 0..50 {
        server.ask(&number.to_string(), "hello").await;
    }
    let first = server.get("/chats").await;
    let second = server.get(&format!("/chats?after={}", first["next"].as_str().unwrap())).await;
    let ids = |page: &Value| -> Vec<String> {
        page["chats"].as_array().unwrap().iter().map(|chat| chat["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((ids(&first).len(), second["next"].is_null()), (50, true));
    assert_eq!(ids(&second), ["a\0b", "a b", "🦀", "../../etc/passwd"]);
}
