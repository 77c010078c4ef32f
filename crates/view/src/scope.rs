//! A scope on a terminal: pictures of its captures, and keys for its settings.

mod draw;
mod keys;
mod panes;
mod scale;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event as Input};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use sinew_scope::{Capture, Scope};

use self::draw::draw;
use crate::screen::Screen;
use crate::theme::Theme;

/// Time between two pictures, if no key is pressed.
const SPACING: Duration = Duration::from_millis(50);

/// A wish of the user that the screen cannot carry out itself.
#[derive(Clone, Debug)]
pub enum ScopeWish {
    /// To quit.
    Quit,
    /// To write this capture to files. [`ScopeScreen::say`] shows the result.
    Export(Arc<Capture>),
}

/// The current pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pane {
    /// The traces over time.
    #[default]
    Time,
    /// The chosen trace over the first one.
    Xy,
    /// The spectrum of the chosen trace.
    Spectrum,
    /// The step response of the chosen trace.
    Step,
    /// The response of the chosen trace to the first one.
    Bode,
    /// The keys.
    Help,
}

/// How the scope is shown. The settings of the scope are kept in the scope.
#[derive(Clone, Debug, Default)]
struct Look {
    graph: String,
    pane: Pane,
    /// Index of the trace that is analysed, and that the level belongs to.
    chosen: usize,
    /// The positions of the cursors, as parts of the window, and which one moves.
    cursors: Option<([f64; 2], usize)>,
    /// Why no cycle comes, if none does.
    silence: Option<String>,
    /// The last message to the user.
    said: String,
}

/// A terminal that shows a scope.
pub struct ScopeScreen {
    screen: Screen,
    signals: Signals,
    theme: Theme,
    look: Look,
}

impl ScopeScreen {
    /// Takes the terminal, for a run of this graph.
    ///
    /// # Errors
    /// Standard output or input is no terminal, or the terminal is too large.
    pub fn open(graph: &str) -> io::Result<ScopeScreen> {
        // Not SIGHUP: see `Top`.
        let signals = Signals::new([SIGTERM])?;
        let (screen, theme) = (Screen::open(true)?, Theme::wanted());
        let look = Look { graph: graph.into(), ..Look::default() };
        Ok(ScopeScreen { screen, signals, theme, look })
    }

    /// Shows what a scope shows now and, if no cycle comes, why. Handles keys until it is time for
    /// the next picture. Returns the user's wish, if there is one.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn show(
        &mut self,
        scope: &mut Scope,
        silence: Option<&str>,
    ) -> io::Result<Option<ScopeWish>> {
        let ScopeScreen { screen, theme, look, signals } = self;
        look.silence = silence.map(str::to_owned);
        let capture = scope.capture();
        screen.draw(|frame| draw(frame, scope, &capture, look, *theme))?;
        let mut limit = SPACING;
        while event::poll(limit)? {
            // Keys pressed at the same time are handled at once, and drawn once.
            limit = Duration::ZERO;
            if let Input::Key(key) = event::read()?
                && let Some(wish) = look.press(key, scope, &capture)
            {
                return Ok(Some(wish));
            }
        }
        Ok((signals.pending().count() > 0).then_some(ScopeWish::Quit))
    }

    /// Sets the message below the picture.
    pub fn say(&mut self, text: String) {
        self.look.said = text;
    }
}

#[cfg(test)]
mod tests;
