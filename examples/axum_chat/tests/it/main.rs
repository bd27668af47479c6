//! The server, driven over HTTP as its clients do, killed, and started again.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what must hold by panicking"
)]

mod openai;
mod provider;
mod requests;
mod server;
mod stops;
mod turns;

/// What the README shows is the program that is compiled.
#[test]
fn the_readme_shows_the_small_server() {
    let (readme, small) = (include_str!("../../README.md"), include_str!("../../src/bin/small.rs"));
    let code = small.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
    let code: Vec<&str> = code.collect();
    assert!(code.len() <= 35);
    assert!(readme.contains(&code.join("\n")));
}
