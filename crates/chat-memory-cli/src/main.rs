//! The command line of `chat-memory`: looks into a store of conversations, cares for it, and moves conversations in and out.

mod cli;
mod commands;
mod export;
mod failure;
mod import;
mod model;
mod out;
mod progress;
mod show;
mod store;
mod text;
mod time;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::out::Out;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = Out::new(cli.global.color, cli.global.json);
    let done = run(&cli, &mut out).and_then(|()| out.flush());
    match done {
        // Whoever reads has seen enough.
        Err(Failure::ClosedPipe) | Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // What was written before belongs before the error.
            let _ = out.flush();
            out::note(format_args!("{}: {}", out::error_style("error"), text::harmless(&failure.to_string())));
            failure.exit_code()
        }
    }
}

fn run(cli: &Cli, out: &mut Out) -> Result<(), Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::List(args) => commands::list::run(global, args, out),
        Command::Show(args) => commands::show::run(global, args, out),
        Command::Stats(args) => commands::stats::run(global, args, out),
        Command::Search(args) => commands::search::run(global, args, out),
        Command::Path(args) => commands::names::path(global, args, out),
        Command::Id(args) => commands::names::id(global, args, out),
        Command::Verify(args) => commands::care::verify(global, args, out),
        Command::Repair(args) => commands::care::repair(global, args, out),
        Command::Clear(args) => commands::care::clear(global, args, out),
        Command::Copy(args) => commands::care::copy(global, args, out),
        Command::Rename(args) => commands::care::rename(global, args, out),
        Command::Export(args) => commands::export::run(global, args, out),
        Command::Import(args) => commands::import::run(global, args, out),
        Command::Files(args) => commands::files::run(args, out),
        Command::Chat(args) => commands::chat::run(global, args, out),
        Command::Completions(args) => commands::generate::completions(args, out),
        Command::Man => commands::generate::man(out),
    }
}
