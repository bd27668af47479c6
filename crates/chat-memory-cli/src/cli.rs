//! What can be asked for.

use std::path::PathBuf;

use chat_memory::Role;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::time::Moment;
use crate::{export, import};

/// Look into the memory of a chat backend: read, search, check, mend, export and import its conversations.
///
/// A store is a directory with one file per conversation, as the Rust library chat-memory writes it. Every command works beside a running
/// backend.
#[derive(Debug, Parser)]
#[command(name = "chat-memory", version, propagate_version = true, max_term_width = 100, after_help = TOUR)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const TOUR: &str = "\
A first look:
  chat-memory chat my-first-chat           talk to a model, or to an echo; Ctrl-C, start again: it goes on
  chat-memory list                         what is there
  chat-memory show my-first-chat           read it
  chat-memory search 'did we stop'         find it again
  chat-memory import conversations.json    bring in what ChatGPT, Claude Code, LangChain and others kept
  chat-memory export --all --format html --output chats/

Exit codes:
  0  done
  1  failed
  2  wrong usage
  3  done in part, or damage was found
  4  there is nothing of the kind (no match, no such conversation)";

/// What every command takes.
#[derive(Debug, Args)]
pub struct Global {
    /// The directory of the store
    #[arg(
        long,
        short = 's',
        global = true,
        env = "CHAT_MEMORY_STORE",
        value_name = "DIR",
        default_value = "data/chat-memory"
    )]
    pub store: PathBuf,
    /// For machines: one JSON object a line
    #[arg(long, global = true)]
    pub json: bool,
    /// Colours: on a terminal, always, or never
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the conversations, the one written last first
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  chat-memory list --limit 20\n  chat-memory list --since 2d --match user- --sort size"
    )]
    List(ListArgs),
    /// Show a conversation as a transcript, or what a model was shown of it
    #[command(
        after_help = "Examples:\n  chat-memory show user-42 --last 10\n  chat-memory show user-42 --view 20 --at 57    # what the model saw when message 57 was the newest\n  chat-memory show user-42 --follow"
    )]
    Show(ShowArgs),
    /// Count: totals, growth, the largest, roles, open tool calls
    #[command(after_help = "Examples:\n  chat-memory stats\n  chat-memory stats user-42 --json")]
    Stats(StatsArgs),
    /// Search all conversations, or some, for a text or a pattern
    #[command(
        visible_alias = "grep",
        after_help = "Examples:\n  chat-memory search 'invoice 2024'\n  chat-memory search --regex 'order #\\d+' --role user --since 2026-01-01 -C 2"
    )]
    Search(SearchArgs),
    /// Print the file of a conversation
    #[command(after_help = "Example:\n  chat-memory path user-42")]
    Path(PathArgs),
    /// Print the conversation id of a file
    #[command(after_help = "Example:\n  chat-memory id data/chat-memory/*.bin")]
    Id(IdArgs),
    /// Read every byte, and say what is damaged and what of it can be had back
    #[command(after_help = "Examples:\n  chat-memory verify\n  chat-memory verify user-42")]
    Verify(VerifyArgs),
    /// Mend damaged conversations; without --apply, say what would be done
    #[command(
        after_help = "Examples:\n  chat-memory repair user-42\n  chat-memory repair --all --apply\n\nWhat is damaged is copied beside the conversation before anything is changed. Nothing is destroyed."
    )]
    Repair(RepairArgs),
    /// Remove conversations for good
    #[command(after_help = "Example:\n  chat-memory clear user-42 --yes")]
    Clear(ClearArgs),
    /// Copy a conversation under another id, with its numbers and times
    #[command(after_help = "Example:\n  chat-memory copy user-42 user-42-before-the-test")]
    Copy(FromTo),
    /// Give a conversation another id
    #[command(after_help = "Example:\n  chat-memory rename guest-7 user-42")]
    Rename(FromTo),
    /// Write conversations for people or other programs
    #[command(
        after_help = "Examples:\n  chat-memory export user-42 --format markdown\n  chat-memory export --all --format html --output chats/\n  chat-memory export --all > backup.jsonl"
    )]
    Export(ExportArgs),
    /// Bring in conversations that other programs, or this one, have written
    #[command(
        after_help = "Examples:\n  chat-memory import backup.jsonl\n  chat-memory import conversations.json --dry-run\n  chat-memory import messages.json --into user-42\n\nThe same import twice changes nothing. What can't be taken is reported with line and column, and the rest comes in."
    )]
    Import(ImportArgs),
    /// Look into the notebooks of agents: the files of a session
    #[command(after_help = "Examples:\n  chat-memory files list user-42\n  chat-memory files show user-42 plan.md")]
    Files(FilesArgs),
    /// Talk to a model over the store, in the terminal
    #[command(after_help = CHAT_HELP)]
    Chat(ChatArgs),
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n  chat-memory completions bash > ~/.local/share/bash-completion/completions/chat-memory"
    )]
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(after_help = "Example:\n  chat-memory man | man -l -")]
    Man,
}

const CHAT_HELP: &str = "\
Example:
  chat-memory chat user-42 --window 20

The model is asked at any endpoint that speaks OpenAI's chat completions:
  OPENAI_BASE_URL   for instance http://127.0.0.1:11434/v1
  OPENAI_API_KEY    if it wants one
  OPENAI_MODEL      the model's name
Without OPENAI_BASE_URL and OPENAI_API_KEY an echo answers.";

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only ids that contain this text
    #[arg(long = "match", short = 'm', value_name = "TEXT", allow_hyphen_values = true)]
    pub matching: Option<String>,
    #[command(flatten)]
    pub times: Times,
    /// Order
    #[arg(long, value_enum, default_value_t = Sort::Last)]
    pub sort: Sort,
    /// The other way round
    #[arg(long, short = 'r')]
    pub reverse: bool,
    /// How many at the most; on a terminal 50 if not given
    #[arg(long, short = 'n', value_name = "N")]
    pub limit: Option<usize>,
    /// Go on behind a page: the cursor that it ended with
    #[arg(long, value_name = "CURSOR", conflicts_with_all = ["sort", "reverse"])]
    pub after: Option<String>,
    /// First words of every conversation, also of one over 256 KiB, whose first message may be as large
    #[arg(long)]
    pub preview: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Written last first
    Last,
    /// Begun last first
    Created,
    /// Largest first
    Size,
    /// Most messages first
    Messages,
    /// By id
    Id,
}

/// Limits by time of recording.
#[derive(Debug, Args)]
pub struct Times {
    /// Only from this time on: 2026-11-30, '2026-11-30 14:00', 2h, 3d
    #[arg(long, value_name = "TIME")]
    pub since: Option<Moment>,
    /// Only before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<Moment>,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The conversation
    pub conversation: String,
    /// Only the newest messages
    #[arg(long, short = 'n', value_name = "N")]
    pub last: Option<usize>,
    /// What a model is shown with a window of so many messages
    #[arg(long, value_name = "N", conflicts_with_all = ["last", "follow"])]
    pub view: Option<usize>,
    /// With --view: what it was shown when the message with this number was the newest
    #[arg(long, value_name = "NUMBER", requires = "view")]
    pub at: Option<u64>,
    /// Tool calls, results and reasoning as they are, not folded to a line
    #[arg(long)]
    pub full: bool,
    /// Cut each text after so many characters
    #[arg(long, value_name = "N")]
    pub max_chars: Option<usize>,
    /// Go on with what is added, until Ctrl-C
    #[arg(long, short = 'f')]
    pub follow: bool,
}

#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Only these conversations
    pub conversations: Vec<String>,
}

#[derive(Debug, Args)]
pub struct SearchArgs {
    /// What to look for: a text, or with --regex a regular expression
    pub pattern: String,
    /// Only in these conversations
    #[arg(long = "conversation", short = 'c', value_name = "ID", allow_hyphen_values = true)]
    pub conversations: Vec<String>,
    /// The pattern is a regular expression (syntax of the Rust crate regex; linear time)
    #[arg(long, short = 'e')]
    pub regex: bool,
    /// Tell upper and lower case apart
    #[arg(long, short = 'S')]
    pub case_sensitive: bool,
    /// Lines around a match
    #[arg(long, short = 'C', value_name = "LINES", default_value_t = 0)]
    pub context: usize,
    /// Only what they said; may be given several times
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Vec<Role>,
    #[command(flatten)]
    pub times: Times,
    /// How many messages at the most
    #[arg(long, short = 'n', value_name = "N")]
    pub limit: Option<usize>,
}

fn role(text: &str) -> Result<Role, String> {
    let all = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];
    let role = all.into_iter().find(|role| role.as_str() == text);
    role.ok_or_else(|| "it is one of system, developer, user, assistant, tool".to_owned())
}

#[derive(Debug, Args)]
pub struct PathArgs {
    /// The conversations
    #[arg(required = true)]
    pub conversations: Vec<String>,
}

#[derive(Debug, Args)]
pub struct IdArgs {
    /// Files of the store
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Only these conversations
    pub conversations: Vec<String>,
}

#[derive(Debug, Args)]
pub struct RepairArgs {
    /// The conversations
    #[arg(required_unless_present = "all")]
    pub conversations: Vec<String>,
    /// All conversations of the store
    #[arg(long, conflicts_with = "conversations")]
    pub all: bool,
    /// Do it
    #[arg(long)]
    pub apply: bool,
}

#[derive(Debug, Args)]
pub struct ClearArgs {
    /// The conversations
    #[arg(required = true)]
    pub conversations: Vec<String>,
    /// Without being asked
    #[arg(long, short = 'y')]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct FromTo {
    /// The id that it has
    pub from: String,
    /// The id that it gets
    pub to: String,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The conversations
    #[arg(required_unless_present = "all")]
    pub conversations: Vec<String>,
    /// All conversations of the store
    #[arg(long, conflicts_with = "conversations")]
    pub all: bool,
    /// The form
    #[arg(long, short = 'f', value_enum, default_value_t = export::Format::Jsonl)]
    pub format: export::Format,
    /// A file, or for several conversations in a form that holds one each, a directory; default: standard output
    #[arg(long, short = 'o', value_name = "PATH")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The files; - is standard input
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The form, if it should not be found out
    #[arg(long, short = 'f', value_enum)]
    pub format: Option<import::Format>,
    /// The conversation's id, where the files hold one conversation
    #[arg(long, value_name = "ID", conflicts_with = "prefix")]
    pub into: Option<String>,
    /// What goes before the ids
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// Read and report, and store nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct FilesArgs {
    /// The directory of the notebooks
    #[arg(long, global = true, env = "CHAT_MEMORY_FILES", value_name = "DIR", default_value = "data/file-memory")]
    pub files: PathBuf,
    #[command(subcommand)]
    pub command: FilesCommand,
}

#[derive(Debug, Subcommand)]
pub enum FilesCommand {
    /// List the files of a session
    #[command(after_help = "Example:\n  chat-memory files list user-42")]
    List {
        /// The session
        session: String,
    },
    /// Print a file
    #[command(after_help = "Example:\n  chat-memory files show user-42 plan.md")]
    Show {
        /// The session
        session: String,
        /// The file
        name: String,
    },
    /// Search the files of a session with a regular expression
    #[command(after_help = "Example:\n  chat-memory files search user-42 'todo|later'")]
    Search {
        /// The session
        session: String,
        /// A regular expression, in any case
        pattern: String,
    },
    /// Copy the files of a session into a directory
    #[command(after_help = "Example:\n  chat-memory files export user-42 notebook/")]
    Export {
        /// The session
        session: String,
        /// The directory; it is made where it is missing
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct ChatArgs {
    /// The conversation
    #[arg(default_value = "my-first-chat")]
    pub conversation: String,
    /// How many messages the model is shown at the most
    #[arg(long, short = 'w', value_name = "N")]
    pub window: Option<usize>,
    /// What the model is told before everything else; it is not stored
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, action = ArgAction::Set)]
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds_and_every_command_has_an_example() {
        Cli::command().debug_assert();
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{}", command.get_name());
        }
    }
}
