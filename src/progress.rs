//! How far a measurement is, on standard error if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// One line that is drawn anew before every row or round, never while one is measured; nothing is
/// where standard error is no terminal. It is gone when it is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Of rows, with the time that is left.
    pub(crate) fn rows() -> Bar {
        Bar::new(None, "{wide_bar} {eta} left  {msg}")
    }

    /// Of so many rounds.
    pub(crate) fn rounds(count: usize) -> Bar {
        Bar::new(Some(count as u64), "{wide_bar} {pos} of {len} rounds")
    }

    fn new(len: Option<u64>, template: &str) -> Bar {
        // Every row is drawn, however short: so often, Hz, is often enough.
        let bar = ProgressBar::with_draw_target(len, ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(ProgressStyle::with_template(template).expect("a template that is tested"));
        Bar(bar)
    }

    /// A round begins.
    pub(crate) fn reach(&self, round: usize) {
        self.0.set_position(round as u64);
    }

    /// A row begins.
    pub(crate) fn reach_row(&self, row: &str, done: Duration, all: Duration) {
        self.0.set_length(all.as_millis() as u64);
        self.0.set_position(done.as_millis() as u64);
        self.0.set_message(row.to_string());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_to_whoever_watches() {
        let bar = Bar::rows();
        bar.reach_row("pipe/64", Duration::from_secs(1), Duration::from_secs(4));
        assert_eq!((bar.0.position(), bar.0.length()), (1000, Some(4000)));
        assert_eq!(bar.0.message(), "pipe/64");
        let bar = Bar::rounds(6);
        bar.reach(2);
        assert_eq!((bar.0.position(), bar.0.length()), (2, Some(6)));
    }
}
