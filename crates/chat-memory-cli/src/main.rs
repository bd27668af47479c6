//! The command line of `chat-memory`.

mod export;
#[allow(dead_code)]
mod import;

fn main() {}
