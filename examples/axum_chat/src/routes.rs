//! What the server answers. There is no login here: put yours in front, and take the conversation's id from it.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chat_memory::{AsyncChatHistory, Cursor, Entry, Error, HistoryRange, INTERRUPTED, Message, PageRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_stream::{Stream, StreamExt};

use crate::chat::{Chat, Event};

/// The largest message that is taken, in bytes of JSON.
const LARGEST_BODY: usize = 256 << 10;

pub fn routes(chat: Arc<Chat>) -> Router {
    Router::new()
        .route("/health", get(|| async { "ok\n" }))
        .route("/chats", get(conversations))
        .route("/chat/{conversation}", get(history).post(ask).delete(forget))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(chat)
}

#[derive(Deserialize)]
struct Question {
    text: String,
    /// The message's own, chosen by the client: the same message sent again is a retry.
    id: Option<String>,
}

/// Asks, and streams what the model says: `piece` events, then `remembered` or `error`.
async fn ask(
    State(chat): State<Arc<Chat>>,
    Path(conversation): Path<String>,
    question: Result<Json<Question>, JsonRejection>,
) -> Result<Sse<impl Stream<Item = Result<SseEvent, axum::Error>>>, Failure> {
    let Json(Question { text, id }) = question?;
    let is_blank = |text: &str| text.trim().is_empty();
    if is_blank(&conversation) || is_blank(&text) || id.as_deref().is_some_and(is_blank) {
        return Err(Failure(
            StatusCode::UNPROCESSABLE_ENTITY,
            "the conversation, the text and the id must not be blank",
        ));
    }
    let mut question = Message::user(text);
    if let Some(id) = id {
        question = question.with_id(id);
    }
    let events = UnboundedReceiverStream::new(chat.turn(conversation, question)).map(|event| {
        let name = match event {
            Event::Piece { .. } => "piece",
            Event::Remembered { .. } => "remembered",
            Event::Error { .. } => "error",
        };
        SseEvent::default().event(name).json_data(event)
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

#[derive(Deserialize)]
struct Part {
    last: Option<usize>,
    before: Option<u64>,
}

/// The newest messages, oldest first; those before with `?before=` and the smallest `seq` that is known.
async fn history(
    State(chat): State<Arc<Chat>>,
    Path(conversation): Path<String>,
    Query(Part { last, before }): Query<Part>,
) -> Result<Json<Value>, Failure> {
    let range = HistoryRange::last(last.unwrap_or(50).clamp(1, 500)).before(before.unwrap_or(u64::MAX));
    let entries = chat.memory().history(&conversation, range).await?;
    let messages = entries.iter().map(|Entry { seq, recorded_at, message, .. }| {
        json!({
            "seq": seq,
            "at": recorded_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            "id": message.id(),
            "role": message.role().as_str(),
            "text": message.text(),
            "interrupted": message.metadata().get(INTERRUPTED).is_some(),
        })
    });
    Ok(Json(json!({ "messages": Value::from_iter(messages) })))
}

async fn forget(State(chat): State<Arc<Chat>>, Path(conversation): Path<String>) -> Result<StatusCode, Failure> {
    chat.forget(&conversation).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct After {
    after: Option<String>,
}

/// A page of the catalogue, the conversation written last first. It is everybody's: not for everybody to see.
async fn conversations(
    State(chat): State<Arc<Chat>>,
    Query(After { after }): Query<After>,
) -> Result<Json<Value>, Failure> {
    let page = match after {
        None => PageRequest::first(50),
        Some(after) => PageRequest::after(50, after.parse::<Cursor>()?),
    };
    let page = chat.memory().conversations(&page).await?;
    let chats = page.items.iter().map(|chat| json!({ "id": chat.id, "messages": chat.messages }));
    let next = page.next.map(|cursor| cursor.to_string());
    Ok(Json(json!({ "chats": Value::from_iter(chats), "next": next })))
}

/// A status, and what the client is told. What a store says of files is for the log alone.
struct Failure(StatusCode, &'static str);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

impl From<JsonRejection> for Failure {
    fn from(rejection: JsonRejection) -> Self {
        match rejection.status() {
            status @ StatusCode::PAYLOAD_TOO_LARGE => Self(status, "the message is larger than 256 KiB"),
            status => Self(
                status,
                "the body has to be JSON: {\"text\": \"...\", \"id\": \"...\"}, where the id may be missing",
            ),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidConversationId => {
                Self(StatusCode::UNPROCESSABLE_ENTITY, "the conversation must not be blank")
            }
            Error::InvalidOption { .. } => Self(StatusCode::UNPROCESSABLE_ENTITY, "`after` is none of our cursors"),
            error => {
                tracing::error!(error = &error as &dyn std::error::Error, "the store failed");
                Self(StatusCode::INTERNAL_SERVER_ERROR, "the conversation could not be read or changed")
            }
        }
    }
}
