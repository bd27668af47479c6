//! `chat`: a conversation in the terminal.

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::SystemTime;

use chat_memory::{ChatHistory, FileChatMemory, HistoryRange, MemoryAdvisor, Message, TurnError};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::cli::{ChatArgs, Global};
use crate::failure::Failure;
use crate::model::Endpoint;
use crate::out::{BOLD, CYAN, DIM, Out, RED, Styled};
use crate::show::{self, Detail};
use crate::text::{count, harmless, on_a_line, path};

const HELP: &str = "\
  /history [n]   what was said, or the newest n messages of it
  /window [n]    how many messages the model is shown at the most; without n: all
  /clear         forget this conversation
  /help          this
  //...          says what begins with a slash
  /quit          leave; Ctrl-C and Ctrl-D do too, and nothing is lost";

pub fn run(global: &Global, args: &ChatArgs, out: &mut Out) -> Result<(), Failure> {
    let endpoint = Endpoint::from_env()?;
    let mut chat = Chat {
        global,
        args,
        endpoint,
        window: args.window,
        advisor: advisor(global, args, args.window)?,
        has_failed: false,
    };
    chat.greet(out)?;
    let mut prompt = Prompt::new()?;
    while let Some(line) = prompt.read()? {
        let line = line.trim();
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (None, _) => {}
            (Some("/quit" | "/exit"), _) => break,
            (Some("/help"), _) => out.line(HELP)?,
            (Some("/history"), count) => chat.history(count, out)?,
            (Some("/window"), count) => chat.set_window(count, out)?,
            (Some("/clear"), _) => chat.clear(out)?,
            // Also a path may be what somebody wants to talk about.
            (Some(command), _) if command.starts_with("//") => chat.say(line.get(1..).unwrap_or_default(), out)?,
            (Some(command), _) if command.starts_with('/') => {
                out.line(format_args!("There is no {}; /help shows what there is.", on_a_line(command)))?;
            }
            _ => chat.say(line, out)?,
        }
        out.flush()?;
    }
    out.line(Styled(DIM, format_args!("Kept. `chat-memory chat {}` goes on.", on_a_line(&args.conversation))))?;
    match chat.has_failed && matches!(prompt, Prompt::Pipe) {
        // A person has seen it; a program looks at the exit code.
        true => Err(Failure::Partly("a turn failed, and is not kept".to_owned())),
        false => Ok(()),
    }
}

fn advisor(global: &Global, args: &ChatArgs, window: Option<usize>) -> Result<MemoryAdvisor<FileChatMemory>, Failure> {
    let mut builder = FileChatMemory::builder(&global.store);
    if let Some(window) = window {
        builder = builder.max_messages(window);
    }
    let advisor = MemoryAdvisor::builder(builder.open()?);
    Ok(advisor.instructions(args.system.clone().unwrap_or_default()).build()?)
}

struct Chat<'a> {
    global: &'a Global,
    args: &'a ChatArgs,
    endpoint: Endpoint,
    window: Option<usize>,
    advisor: MemoryAdvisor<FileChatMemory>,
    /// A turn is missing.
    has_failed: bool,
}

impl Chat<'_> {
    fn greet(&self, out: &mut Out) -> Result<(), Failure> {
        let id = &self.args.conversation;
        let newest = self.advisor.memory().history(id, HistoryRange::last(1))?;
        let state = match newest.last() {
            None => "new".to_owned(),
            Some(newest) => format!("{} so far", count(newest.seq + 1, "message")),
        };
        out.line(format_args!("{} ({state}), kept in {}", Styled(BOLD, on_a_line(id)), path(&self.global.store)))?;
        out.line(format_args!("You talk to {}. /help shows commands.", self.endpoint.describe()))?;
        out.line("")?;
        const REMINDER: usize = 2;
        for entry in self.advisor.memory().history(id, HistoryRange::last(REMINDER))? {
            show::entry(out, &entry, Detail { max_chars: Some(400), ..Detail::new(out) })?;
        }
        out.flush()
    }

    fn say(&mut self, line: &str, out: &mut Out) -> Result<(), Failure> {
        out.text(format_args!("{} ", Styled(CYAN, "assistant:")))?;
        out.flush()?;
        let show = |piece: &str| {
            // Straight away; whoever has closed the output sees nothing, and the turn is remembered all the same.
            let mut stdout = io::stdout().lock();
            _ = stdout.write_all(harmless(piece).as_bytes()).and_then(|()| stdout.flush());
        };
        let question = Message::user(line).with_created_at(SystemTime::now());
        let outcome = self.advisor.turn(&self.args.conversation, [question], &self.endpoint.showing(&show));
        out.line("")?;
        match outcome {
            Ok(outcome) if outcome.messages.is_empty() => {
                self.has_failed = true;
                out.line(Styled(RED, "(the model said nothing; nothing of this turn is kept)"))
            }
            Ok(outcome) if outcome.is_interrupted => {
                out.line(Styled(RED, "(the answer was cut off; what came is kept)"))
            }
            Ok(outcome) if outcome.answer.is_none() => out.line(Styled(RED, "(the model said nothing)")),
            Ok(_) => Ok(()),
            Err(TurnError::Model(failure)) => {
                self.has_failed = true;
                let failure = harmless(&failure.to_string()).into_owned();
                out.line(format_args!("{}: {failure}\nNothing of this turn is kept; ask again.", Styled(RED, "error")))
            }
            Err(TurnError::Remember { source, .. } | TurnError::Recall(source)) => Err(Failure::Memory(source)),
            Err(TurnError::Tool(source)) => Err(Failure::Memory(source)),
            Err(error) => Err(Failure::Other(error.to_string())),
        }
    }

    fn history(&self, count: Option<&str>, out: &mut Out) -> Result<(), Failure> {
        let range = match count.map(str::parse) {
            None => HistoryRange::all(),
            Some(Ok(count)) => HistoryRange::last(count),
            Some(Err(_)) => return out.line("/history takes a number of messages"),
        };
        let entries = self.advisor.memory().history(&self.args.conversation, range)?;
        if entries.is_empty() {
            out.line("Nothing was said yet.")?;
        }
        let detail = Detail::new(out);
        entries.iter().try_for_each(|entry| show::entry(out, entry, detail))
    }

    fn set_window(&mut self, count: Option<&str>, out: &mut Out) -> Result<(), Failure> {
        let window = match count.map(str::parse::<usize>) {
            None => None,
            Some(Ok(count)) if count > 0 => Some(count),
            Some(_) => return out.line("/window takes a number of messages, from 1"),
        };
        self.advisor = advisor(self.global, self.args, window)?;
        self.window = window;
        match window {
            None => out.line("The model is shown everything."),
            Some(window) => out.line(format_args!("The model is shown the newest {window} messages. All are kept.")),
        }
    }

    fn clear(&self, out: &mut Out) -> Result<(), Failure> {
        self.advisor.clear(&self.args.conversation)?;
        out.line("Forgotten.")
    }
}

/// Lines that somebody types, or a program sends.
enum Prompt {
    Editor(Box<DefaultEditor>),
    Pipe,
}

impl Prompt {
    fn new() -> Result<Self, Failure> {
        if !io::stdin().is_terminal() {
            return Ok(Prompt::Pipe);
        }
        Ok(Prompt::Editor(Box::new(DefaultEditor::new().map_err(cannot_read)?)))
    }

    fn read(&mut self) -> Result<Option<String>, Failure> {
        match self {
            Prompt::Editor(editor) => match editor.readline("\nyou: ") {
                Ok(line) => {
                    _ = editor.add_history_entry(line.as_str()); // only for the arrow keys
                    Ok(Some(line))
                }
                Err(ReadlineError::Interrupted | ReadlineError::Eof) => Ok(None),
                Err(error) => Err(cannot_read(error)),
            },
            Prompt::Pipe => {
                let mut line = Vec::new();
                let read = io::stdin().lock().read_until(b'\n', &mut line);
                let read = read.map_err(|error| Failure::Other(format!("cannot read standard input: {error}")))?;
                Ok((read > 0).then(|| String::from_utf8_lossy(&line).into_owned()))
            }
        }
    }
}

fn cannot_read(error: ReadlineError) -> Failure {
    Failure::Other(format!("cannot read from the terminal: {error}"))
}
