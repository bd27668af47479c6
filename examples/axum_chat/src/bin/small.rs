//! The smallest server that forgets nothing: README.md shows this file.

use std::{error::Error, sync::Arc};

use axum::extract::{Path, State};
use axum::{Router, http::StatusCode, routing::post};
use chat_memory::{AsyncMemoryAdvisor, FileChatMemory, Message, ModelRequest, Offload};
use tokio::net::TcpListener;

type Advisor = AsyncMemoryAdvisor<Offload<FileChatMemory>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let memory = FileChatMemory::builder("chat-data").max_messages(50).open()?;
    let advisor = Arc::new(Advisor::new(Offload::new(memory)));
    let app = Router::new().route("/chat/{conversation}", post(chat)).with_state(advisor);
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, app).await?)
}

/// Answers when question and answer are on disk.
async fn chat(
    State(advisor): State<Arc<Advisor>>,
    Path(conversation): Path<String>,
    text: String,
) -> Result<String, StatusCode> {
    let turn = advisor.turn(&conversation, [Message::user(text)], &model).await;
    let outcome = turn.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(outcome.answer.map(|answer| answer.text().into_owned()).unwrap_or_default())
}

/// Your model's client. It is shown the conversation, and the question last.
async fn model(request: ModelRequest) -> Result<Message, std::io::Error> {
    Ok(Message::assistant(format!("You sent {} messages.", request.messages.len())))
}
