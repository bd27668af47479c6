//! How far a long piece of work is.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error that shows itself after a second, if a person looks.
pub struct Progress {
    bar: ProgressBar,
    begun: Instant,
    is_shown: bool,
}

const PATIENCE: Duration = Duration::from_secs(1);

impl Progress {
    /// Work on so many things.
    pub fn new(total: u64, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template = "{bar:30} {human_pos}/{human_len} {msg} {elapsed} ({eta} left)";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self { bar, begun: Instant::now(), is_shown: false }
    }

    pub fn advance(&mut self, by: u64) {
        self.bar.inc(by);
        if !self.is_shown && self.begun.elapsed() > PATIENCE {
            self.is_shown = true;
            // Draws nothing where standard error is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
