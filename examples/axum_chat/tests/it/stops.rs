//! What is left when the server is killed, and when it is asked to stop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tempfile::tempdir;
use tokio::task::JoinHandle;

use crate::server::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_turn_survives_a_kill() {
    const CHATS: usize = 16;
    let directory = tempdir().unwrap();
    let mut acknowledged: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for round in 0..3 {
        let server = Arc::new(Server::start(directory.path(), 1));
        let count = Arc::new(AtomicUsize::new(0));
        let chats = (0..CHATS).map(|chat| {
            let (server, count) = (Arc::clone(&server), Arc::clone(&count));
            tokio::spawn(async move {
                let id = format!("chat {chat}");
                let mut turns = Vec::new();
                // Until the server is gone.
                for number in 0.. {
                    let question = format!("{round}.{number}");
                    let Ok(turn) = server.begin(&id, json!({ "text": question })).await else { break };
                    let Some((name, data, _)) = turn.last().await else { break };
                    assert_eq!(name, "remembered");
                    turns.push((question, data["text"].as_str().unwrap().to_owned()));
                    count.fetch_add(1, Ordering::Relaxed);
                }
                (id, turns)
            })
        });
        let chats: Vec<_> = chats.collect();
        while count.load(Ordering::Relaxed) < 3 * CHATS && !chats.iter().any(JoinHandle::is_finished) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.send_sigkill();
        for chat in chats {
            let (id, turns) = chat.await.unwrap();
            acknowledged.entry(id).or_default().extend(turns);
        }
        drop(server);

        let server = Server::start(directory.path(), 0);
        for (id, turns) in &mut acknowledged {
            let said = server.said(id).await;
            let found: Vec<(String, String)> = said
                .chunks(2)
                .map(|turn| {
                    assert_eq!((turn[0].0.as_str(), turn[1].0.as_str()), ("user", "assistant"));
                    (turn[0].1.clone(), turn[1].1.clone())
                })
                .collect();
            assert_eq!(found[..turns.len()], turns[..], "{id}");
            // One more may have been stored, whose acknowledgement was on its way.
            assert!(found.len() <= turns.len() + 1, "{id}");
            *turns = found;
        }
    }
}

#[tokio::test]
async fn a_server_that_is_asked_to_stop_takes_no_more_and_remembers_what_runs() {
    let directory = tempdir().unwrap();
    let mut server = Server::start(directory.path(), 40);
    let mut heard = server.begin("heard", json!({ "text": "one" })).await.unwrap();
    // This one takes longer, and nobody waits for it.
    let mut gone = server.begin("gone", json!({ "text": "two ".repeat(30) })).await.unwrap();
    heard.next().await.unwrap();
    gone.next().await.unwrap();
    drop(gone);
    server.send_sigterm();
    // It takes a moment to stop listening, and far longer to say all its words.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(server.begin("late", json!({ "text": "three" })).await.unwrap_err().is_connect());
    let (name, _, _) = heard.last().await.unwrap();
    assert_eq!(name, "remembered");
    assert!(server.ended().await.success());

    let server = Server::start(directory.path(), 0);
    for (id, count) in [("heard", 2), ("gone", 2), ("late", 0)] {
        assert_eq!(server.said(id).await.len(), count, "{id}");
    }
}

#[tokio::test]
async fn a_server_without_work_stops_at_once() {
    let directory = tempdir().unwrap();
    let mut server = Server::start(directory.path(), 0);
    // Its connection stays open, unused.
    server.ask("a", "hello").await;
    let start = std::time::Instant::now();
    server.send_sigterm();
    assert!(server.ended().await.success());
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}
