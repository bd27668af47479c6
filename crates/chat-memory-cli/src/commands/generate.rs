//! `completions` and `man`.

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs};
use crate::failure::Failure;
use crate::out::Out;

pub fn completions(args: &CompletionsArgs, out: &mut Out) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "chat-memory", &mut script);
    out.bytes(&script)
}

/// The pages of all commands in one.
pub fn man(out: &mut Out) -> Result<(), Failure> {
    let mut page = Vec::new();
    let mut command = Cli::command();
    command.build();
    let failed = |error: std::io::Error| Failure::Other(error.to_string());
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(failed)?;
    out.bytes(&page)?;
    for subcommand in
        command.get_subcommands().flat_map(|command| [command].into_iter().chain(command.get_subcommands()))
    {
        if subcommand.get_name() == "help" {
            continue;
        }
        // With the name of the command above it, as it is typed.
        let name = subcommand.get_bin_name().unwrap_or_default().trim_start_matches("chat-memory ").to_owned();
        let man = clap_mangen::Man::new(subcommand.clone());
        let mut page = Vec::new();
        man.render_synopsis_section(&mut page).map_err(failed)?;
        man.render_description_section(&mut page).map_err(failed)?;
        man.render_options_section(&mut page).map_err(failed)?;
        man.render_extra_section(&mut page).map_err(failed)?;
        out.text(format_args!(".SH \"COMMAND {}\"\n", name.to_uppercase()))?;
        // Below the heading of the command.
        out.text(String::from_utf8_lossy(&page).replace(".SH ", ".SS "))?;
    }
    Ok(())
}
