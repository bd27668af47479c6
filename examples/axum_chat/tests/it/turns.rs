//! What a client can rely on while the server runs.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use tempfile::tempdir;

use crate::server::Server;

#[tokio::test]
async fn an_answer_streams_and_is_acknowledged_and_the_next_turn_knows_it() {
    let directory = tempdir().unwrap();
    let server = Server::start(directory.path(), 0);
    let (name, data, pieces) = server.ask("a", "hello\n\n  you").await;
    assert_eq!(name, "remembered");
    assert_eq!(data, json!({ "text": pieces, "interrupted": false }));
    assert!(pieces.contains("sent 1 messages") && pieces.ends_with("hello\n\n  you"), "{pieces}");
    let (_, _, second) = server.ask("a", "and?").await;
    assert!(second.contains("sent 3 messages"), "{second}");
    let said = server.said("a").await;
    assert_eq!(said.iter().map(|(role, _)| role.as_str()).collect::<Vec<_>>(), ["user", "assistant"].repeat(2));
    assert_eq!((said[0].1.as_str(), said[1].1.as_str()), ("hello\n\n  you", pieces.as_str()));
}

#[tokio::test]
async fn turns_of_one_conversation_come_one_after_the_other_and_others_do_not_wait() {
    let directory = tempdir().unwrap();
    let server = Server::start(directory.path(), 30);
    let mut first = server.begin("a", json!({ "text": "one" })).await.unwrap();
    first.next().await.unwrap();
    let second = server.begin("a", json!({ "text": "two" })).await.unwrap();
    let (_, other, _) = server.ask("b", "three").await;
    assert!(other["text"].as_str().unwrap().contains("sent 1 messages"));
    let (first, second) = (first.last().await.unwrap().1, second.last().await.unwrap().1);
    assert!(first["text"].as_str().unwrap().contains("sent 1 messages"), "{first}");
    assert!(second["text"].as_str().unwrap().contains("sent 3 messages"), "{second}");
}

#[tokio::test]
async fn the_turn_of_a_client_that_is_gone_is_remembered() {
    let directory = tempdir().unwrap();
    let server = Server::start(directory.path(), 10);
    let mut turn = server.begin("a", json!({ "text": "hello" })).await.unwrap();
    turn.next().await.unwrap();
    drop(turn);
    assert_eq!(server.said("a").await, []);
    for _ in 0..1_000 {
        let said = server.said("a").await;
        if !said.is_empty() {
            assert_eq!(said.len(), 2);
            assert!(said[1].1.ends_with("hello"));
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the turn is not there");
}

#[tokio::test]
async fn a_retry_with_the_same_id_stores_nothing_twice_and_gives_the_stored_answer_again() {
    let directory = tempdir().unwrap();
    let server = Server::start(directory.path(), 10);
    let question = json!({ "text": "hello", "id": "q1" });
    // While the first try still runs.
    let mut lost = server.begin("a", question.clone()).await.unwrap();
    lost.next().await.unwrap();
    drop(lost);
    let (name, first, pieces) = server.begin("a", question.clone()).await.unwrap().last().await.unwrap();
    assert_eq!((name.as_str(), first["text"].as_str()), ("remembered", Some(pieces.as_str())));
    let said = server.said("a").await;
    assert_eq!((said.len(), &said[1].1), (2, &pieces));
    // After a restart.
    server.kill();
    let server = Server::start(directory.path(), 0);
    let (_, again, pieces_again) = server.begin("a", question).await.unwrap().last().await.unwrap();
    assert_eq!((again, pieces_again), (first, pieces));
    assert_eq!(server.said("a").await.len(), 2);
    // Another id is another message.
    server.begin("a", json!({ "text": "hello", "id": "q2" })).await.unwrap().last().await.unwrap();
    assert_eq!(server.said("a").await.len(), 4);
}

#[tokio::test]
async fn a_conversation_is_forgotten_when_its_turn_has_ended_and_no_other_with_it() {
    let directory = tempdir().unwrap();
    let server = Server::start(directory.path(), 20);
    server.ask("b", "keep").await;
    let mut turn = server.begin("a", json!({ "text": "forget" })).await.unwrap();
    turn.next().await.unwrap();
    let response = server.request(Method::DELETE, "/chat/a").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(turn.last().await.unwrap().0, "remembered");
    assert_eq!(server.said("a").await, []);
    assert_eq!(server.said("b").await.len(), 2);
    assert_eq!(server.get("/chats").await["chats"], json!([{ "id": "b", "messages": 2 }]));
    server.kill();
    assert_eq!(Server::start(directory.path(), 0).said("a").await, []);
}
