//! The server and a model behind an OpenAI-compatible endpoint.

use reqwest::StatusCode;
use serde_json::json;
use tempfile::{TempDir, tempdir};

use crate::provider::{Provider, Script, delta, end, text};
use crate::server::Server;

async fn start(scripts: impl IntoIterator<Item = Script>) -> (TempDir, Provider, Server) {
    let directory = tempdir().unwrap();
    let provider = Provider::start(scripts).await;
    let settings = [("OPENAI_BASE_URL", provider.url.as_str()), ("OPENAI_API_KEY", "sk-1"), ("OPENAI_MODEL", "m-1")];
    let server = Server::start_with(directory.path(), &settings);
    (directory, provider, server)
}

fn log(directory: &TempDir) -> String {
    std::fs::read_to_string(directory.path().join("log")).unwrap()
}

#[tokio::test]
async fn the_model_is_sent_the_conversation_and_its_answer_is_streamed_and_remembered() {
    let first =
        [vec![delta(json!({"role": "assistant", "content": ""}), None), text("Grüß "), text("Gott")], end("stop")];
    // The same bytes, three at a time.
    let second: Vec<u8> = [vec![b": comment\n\n".to_vec(), text("Привет")], end("stop")].concat().concat();
    let second: Vec<Vec<u8>> = second.chunks(3).map(<[u8]>::to_vec).collect();
    let (_directory, provider, server) = start([Script::Says(first.concat()), Script::Says(second)]).await;

    let (name, data, pieces) = server.ask("a", "hello").await;
    assert_eq!((name.as_str(), data["text"].as_str(), pieces.as_str()), ("remembered", Some("Grüß Gott"), "Grüß Gott"));
    let (_, _, pieces) = server.ask("a", "again").await;
    assert_eq!(pieces, "Привет");

    let asked = provider.asked();
    assert_eq!(asked[0].0.as_deref(), Some("Bearer sk-1"));
    assert_eq!(asked[0].1, json!({"model": "m-1", "stream": true, "messages": [{"role": "user", "content": "hello"}]}));
    let messages = json!([
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "Grüß Gott"},
        {"role": "user", "content": "again"},
    ]);
    assert_eq!(asked[1].1["messages"], messages);
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_kept_as_far_as_it_came_and_the_next_turn_goes_on() {
    let error = b"data: {\"error\": {\"message\": \"overloaded: canary\"}}\n\n".to_vec();
    let once = || vec![text("Once "), text("upon")];
    let scripts = [
        Script::Breaks(once()),
        Script::Says(once()), // ends without a reason
        Script::Says([once(), vec![error]].concat()),
        Script::Says([once(), end("length")].concat()),
    ];
    let count = scripts.len();
    let last = Script::Says([vec![text("The end.")], end("stop")].concat());
    let (directory, provider, server) = start(scripts.into_iter().chain([last])).await;
    for number in 0..count {
        let (name, data, pieces) = server.ask("a", "A story! canary").await;
        assert_eq!(name, "remembered", "{number}");
        assert_eq!(data, json!({ "text": "Once upon", "interrupted": true }), "{number}");
        assert_eq!(pieces, "Once upon");
    }
    let (_, data, _) = server.ask("a", "Go on.").await;
    assert_eq!(data, json!({ "text": "The end.", "interrupted": false }));
    let history = server.get("/chat/a").await;
    let marks: Vec<bool> =
        history["messages"].as_array().unwrap().iter().map(|message| message["interrupted"] == true).collect();
    assert_eq!(marks, [[false, true].repeat(count), vec![false, false]].concat());
    let sent = provider.asked().pop().unwrap().1["messages"].as_array().unwrap().clone();
    assert_eq!(sent.len(), 2 * count + 1);
    assert_eq!(sent[1], json!({"role": "assistant", "content": "Once upon"}));
    assert!(log(&directory).contains("broke off") && !log(&directory).contains("canary"), "{}", log(&directory));
}

#[tokio::test]
async fn a_model_that_says_nothing_leaves_no_trace_and_a_retry_stores_the_question_once() {
    let scripts = [
        Script::Fails(StatusCode::INTERNAL_SERVER_ERROR),
        Script::Fails(StatusCode::UNAUTHORIZED),
        Script::Breaks(Vec::new()),
        Script::Breaks(vec![delta(json!({"role": "assistant", "content": "", "reasoning_content": "hm"}), None)]),
        Script::Says([vec![text("Here.")], end("stop")].concat()),
    ];
    let failures = scripts.len() - 1;
    let (directory, provider, server) = start(scripts).await;
    let question = json!({ "text": "canary", "id": "q1" });
    for number in 0..failures {
        let (name, data, pieces) = server.begin("a", question.clone()).await.unwrap().last().await.unwrap();
        assert_eq!((name.as_str(), pieces.as_str()), ("error", ""), "{number}: {data}");
        assert!(data["error"].as_str().unwrap().contains("the model"), "{data}");
        assert_eq!(server.said("a").await, [], "{number}");
    }
    let (name, _, _) = server.begin("a", question).await.unwrap().last().await.unwrap();
    assert_eq!(name, "remembered");
    assert_eq!(server.said("a").await.len(), 2);
    assert!(
        provider.asked().iter().all(|(_, body)| body["messages"] == json!([{"role": "user", "content": "canary"}]))
    );
    assert!(log(&directory).contains("500") && !log(&directory).contains("canary"), "{}", log(&directory));
}

#[tokio::test]
async fn reasoning_is_neither_shown_nor_sent_back() {
    let thought = delta(json!({"reasoning_content": "hm"}), None);
    let scripts =
        [vec![thought, text("Yes.")], vec![text("No.")]].map(|says| Script::Says([says, end("stop")].concat()));
    let (_directory, provider, server) = start(scripts).await;
    let (_, data, pieces) = server.ask("a", "look").await;
    assert_eq!((data["text"].as_str(), pieces.as_str()), (Some("Yes."), "Yes."));
    server.ask("a", "and?").await;
    let sent = provider.asked().pop().unwrap().1["messages"].clone();
    assert_eq!(sent[1], json!({"role": "assistant", "content": "Yes."}));
}
