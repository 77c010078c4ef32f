//! How far a measurement is, on standard error if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sinew_lab::rounds::Progress;

/// Width of the bar itself comes from the terminal; the rest is what a reader waits for.
const TEMPLATE: &str = "{wide_bar} {eta} left  {msg}";

/// One line that is drawn anew before every row, never while one is measured.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Not drawn yet; nothing is where standard error is no terminal.
    pub(crate) fn new() -> Bar {
        // Every row is drawn, however short: so often, Hz, is often enough.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(ProgressStyle::with_template(TEMPLATE).expect("a template that is tested"));
        Bar(bar)
    }
}

impl Progress for Bar {
    fn at(&self, row: &str, done: Duration, all: Duration) {
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
        let bar = Bar::new();
        bar.at("pipe/64", Duration::from_secs(1), Duration::from_secs(4));
        assert_eq!((bar.0.position(), bar.0.length()), (1000, Some(4000)));
        assert_eq!(bar.0.message(), "pipe/64");
    }
}
