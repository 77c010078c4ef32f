//! The live view: the whole run on one screen, redrawn ten times a second. It reads no keys: Ctrl-C
//! stays a signal.

mod draw;
mod signals;
mod tables;
mod track;

use std::io;

use sinew_core::trace::ThreadId;
use sinew_report::{Observed, Stats};

use self::draw::draw;
use self::track::Tracks;
use crate::scene::Scene;
use crate::screen::{Screen, check_size};
use crate::theme::Theme;

/// Seconds between two pictures.
const SPACING_S: f64 = 0.1;

/// A terminal that shows a run.
pub(crate) struct Live {
    screen: Screen,
    tracks: Tracks,
    theme: Theme,
    next_s: f64,
}

impl Live {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard output is no terminal, or the terminal is too large.
    pub(crate) fn open(stats: &Stats) -> io::Result<Live> {
        let (screen, tracks) = (Screen::open(false)?, Tracks::new(stats));
        Ok(Live { screen, tracks, theme: Theme::wanted(), next_s: 0.0 })
    }

    pub(crate) fn observe(&mut self, thread: ThreadId, observed: &Observed) {
        self.tracks.add(thread, observed);
    }

    pub(crate) fn is_due(&self, elapsed_s: f64) -> bool {
        elapsed_s >= self.next_s
    }

    /// Draws the current moment. If the terminal has become too large, nothing is drawn and the run
    /// goes on.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(crate) fn show(&mut self, scene: &Scene<'_>) -> io::Result<()> {
        self.next_s = scene.elapsed_s + SPACING_S;
        if check_size().is_err() {
            return Ok(());
        }
        let Live { screen, tracks, theme, .. } = self;
        screen.draw(|frame| draw(frame, scene, tracks, *theme))
    }
}
