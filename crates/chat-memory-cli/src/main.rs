//! The command line of `chat-memory`.

mod export;
mod import;

fn main() {}
