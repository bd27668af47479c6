//! A chat backend that forgets nothing: streamed answers, and conversations that survive a restart.
//!
//! `cargo run -p axum-chat`; README.md says what to send to it.

mod chat;
mod locks;
mod model;
mod openai;
mod routes;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chat_memory::{FileChatMemory, Offload};
use tokio::net::TcpListener;

use crate::chat::Chat;
use crate::model::Model;

/// How long clients may take to read the end of their answers when the server stops.
const LAST_WORDS: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let memory = FileChatMemory::builder(setting("CHAT_DIRECTORY", "chat-data")).max_messages(50).open()?;
    let chat = Arc::new(Chat::new(Offload::new(memory), Model::from_env()?));

    // Before anyone is told the address: a signal must not find the server without an ear for it.
    let asked_to_stop = signals()?;
    let listener = TcpListener::bind(setting("CHAT_ADDRESS", "127.0.0.1:3000")).await?;
    println!("listening on http://{}", listener.local_addr()?);

    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = axum::serve(listener, routes::routes(Arc::clone(&chat)));
    let mut server = tokio::spawn(server.with_graceful_shutdown(async { _ = stopped.await }).into_future());
    asked_to_stop.await;

    // No new connections; but every turn that runs is remembered, also where nobody listens any more. A client that does
    // not read must not keep the server from ending, and a request that was on its way may have begun one more turn.
    drop(stop);
    tracing::info!("stopping; {} turns run", chat.turns_under_way());
    chat.all_turns().await;
    _ = tokio::time::timeout(LAST_WORDS, &mut server).await;
    chat.all_turns().await;
    Ok(())
}

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

/// Listens from now on for what asks the server to stop: Ctrl-C, or a supervisor's SIGTERM.
#[cfg(unix)]
fn signals() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
    })
}

#[cfg(not(unix))]
fn signals() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async { _ = tokio::signal::ctrl_c().await })
}
