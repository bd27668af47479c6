//! Standard output, for people and for machines.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use chat_memory::Problem;
use serde::Serialize;

use crate::cli::Color;
use crate::failure::Failure;
use crate::text::path;

/// Where results go. Data is written byte for byte; what is meant for people is plain where the reader is no terminal.
pub struct Out {
    stream: BufWriter<io::Stdout>,
    is_styled: bool,
    is_json: bool,
    is_terminal: bool,
}

impl Out {
    pub fn new(color: Color, is_json: bool) -> Self {
        let choice = match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        if color != Color::Auto {
            choice.write_global();
        }
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let is_styled = match choice {
            ColorChoice::Auto => AutoStream::choice(&stdout) != ColorChoice::Never,
            choice => choice != ColorChoice::Never,
        };
        Self { stream: BufWriter::with_capacity(1 << 16, stdout), is_styled, is_json, is_terminal }
    }

    /// Whether JSON was asked for.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// Whether a person reads, and not a program.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// A line for people, in which nothing but our own styles is a control sequence.
    pub fn line(&mut self, line: impl Display) -> Result<(), Failure> {
        self.text(format_args!("{line}\n"))
    }

    /// The same without an end.
    pub fn text(&mut self, text: impl Display) -> Result<(), Failure> {
        if self.is_styled {
            write!(self.stream, "{text}").map_err(written)
        } else {
            write!(self.stream, "{}", anstream::adapter::strip_str(&text.to_string())).map_err(written)
        }
    }

    /// A line of data, byte for byte.
    pub fn data(&mut self, line: &str) -> Result<(), Failure> {
        self.bytes(line.as_bytes())?;
        self.bytes(b"\n")
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(bytes).map_err(written)
    }

    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(value).map_err(|error| Failure::Other(error.to_string()))?;
        self.data(&line)
    }

    pub fn flush(&mut self) -> Result<(), Failure> {
        self.stream.flush().map_err(written)
    }
}

fn written(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::Other(format!("cannot write to standard output: {error}")),
    }
}

/// Says something beside the results. Where nobody can hear it there is nothing to be done.
pub fn note(text: impl Display) {
    _ = writeln!(anstream::stderr(), "{text}");
}

/// Says what is in the store and no readable conversation.
pub fn problem(what: &str, problem: &Problem) {
    note(format_args!("{} {}: {}", Styled(YELLOW, what), path(&problem.path), problem.reason));
}

/// The width of the terminal, or what fits one.
pub fn width() -> usize {
    comfy_table::Table::new().width().map_or(100, usize::from)
}

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const MATCH: Style = AnsiColor::Red.on_default().bold();
pub const GREEN: Style = AnsiColor::Green.on_default();
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
pub const CYAN: Style = AnsiColor::Cyan.on_default();
pub const MAGENTA: Style = AnsiColor::Magenta.on_default();
pub const RED: Style = AnsiColor::Red.on_default();

/// A text in a style.
pub struct Styled<T>(pub Style, pub T);

impl<T: Display> Display for Styled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(style, text) = self;
        write!(f, "{style}{text}{style:#}")
    }
}

pub fn error_style(text: &str) -> Styled<&str> {
    Styled(MATCH, text)
}
