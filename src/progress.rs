//! How far a measurement is, on standard error if that is a terminal.

use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sinew_view::{columns, draws, fit_words};

use crate::answer::say;

/// Time between two lines if no bar is drawn.
const LINES_APART: Duration = Duration::from_secs(10);

/// Columns of a row's name in a line of 80; the bar and the time take the rest.
const NAME: usize = 50;

/// Shows the progress before every row or round, never while one is measured. A terminal that can
/// draw gets a bar, which disappears when this is dropped. Any other terminal gets a line every ten
/// seconds. If standard error is no terminal, nothing is shown.
pub(crate) struct Bar {
    bar: ProgressBar,
    /// When the next line is due. `None` if lines are not printed.
    line_due: Option<Cell<Instant>>,
}

impl Bar {
    /// A bar for rows, with the time that is left.
    pub(crate) fn rows() -> Bar {
        Bar::new(None, "{wide_bar} {eta} left  {msg}")
    }

    /// A bar for this many rounds.
    pub(crate) fn rounds(count: usize) -> Bar {
        Bar::new(Some(count as u64), "{wide_bar} {pos} of {len} rounds")
    }

    fn new(len: Option<u64>, template: &str) -> Bar {
        // In Hz. At this rate even a short row is drawn.
        let target = match draws(&stderr()) {
            true => ProgressDrawTarget::stderr_with_hz(10),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(len, target);
        bar.set_style(ProgressStyle::with_template(template).expect("a template that is tested"));
        let has_lines = stderr().is_terminal() && !draws(&stderr());
        Bar { bar, line_due: has_lines.then(|| Cell::new(Instant::now())) }
    }

    /// A round begins.
    pub(crate) fn reach(&self, round: usize) {
        self.bar.set_position(round as u64);
        self.tell(|| format!("{round} of {} rounds", self.bar.length().unwrap_or(0)));
    }

    /// A row begins.
    pub(crate) fn reach_row(&self, row: &str, done: Duration, all: Duration) {
        self.bar.set_length(all.as_millis() as u64);
        self.bar.set_position(done.as_millis() as u64);
        let room = columns().unwrap_or(80).saturating_sub(80 - NAME);
        self.bar.set_message(fit_words(row, room));
        let left_s = all.saturating_sub(done).as_secs();
        self.tell(|| format!("some {left_s} s left, at {row}"));
    }

    fn tell(&self, line: impl FnOnce() -> String) {
        if let Some(due) = &self.line_due
            && due.get() <= Instant::now()
        {
            due.set(Instant::now() + LINES_APART);
            say(&line());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_to_whoever_watches() {
        let bar = Bar::rows();
        bar.reach_row("pipe/64", Duration::from_secs(1), Duration::from_secs(4));
        assert_eq!((bar.bar.position(), bar.bar.length()), (1000, Some(4000)));
        assert_eq!(bar.bar.message(), "pipe/64");
        let bar = Bar::rounds(6);
        bar.reach(2);
        assert_eq!((bar.bar.position(), bar.bar.length()), (2, Some(6)));
    }
}
