//! A scope on a terminal: pictures of its captures, and the keys that set it.

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

/// Between two pictures, if no key is pressed.
const SPACING: Duration = Duration::from_millis(50);

/// What somebody wants that the screen cannot do itself.
#[derive(Clone, Debug)]
pub enum ScopeWish {
    /// No more.
    Quit,
    /// This capture in files; [`ScopeScreen::say`] tells what became of it.
    Export(Arc<Capture>),
}

/// What is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pane {
    /// The traces over time.
    #[default]
    Time,
    /// The chosen trace over the first one.
    Xy,
    /// The spectrum of the chosen trace.
    Spectrum,
    /// What the chosen trace makes of a step.
    Step,
    /// How the chosen trace answers the first one.
    Bode,
    /// The keys.
    Help,
}

/// How the scope is looked at; what it is set to is its own.
#[derive(Clone, Debug, Default)]
struct Look {
    graph: String,
    pane: Pane,
    /// Place of the trace that is analysed, and that the level belongs to.
    chosen: usize,
    /// Where the cursors stand, as parts of the window, and which one moves.
    cursors: Option<([f64; 2], usize)>,
    /// Why no cycle comes, if none does.
    silence: Option<String>,
    /// The last thing to say.
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
    /// If standard output or input is none, or the terminal too large.
    pub fn open(graph: &str) -> io::Result<ScopeScreen> {
        // Not SIGHUP, see `Top`.
        let signals = Signals::new([SIGTERM])?;
        let (screen, theme) = (Screen::open(true)?, Theme::wanted());
        let look = Look { graph: graph.into(), ..Look::default() };
        Ok(ScopeScreen { screen, signals, theme, look })
    }

    /// Shows what a scope shows now, and why no cycle comes, if none does; obeys keys until it is
    /// time for the next picture; what somebody wants beside that.
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
            // What is pressed at once is obeyed at once, and drawn once.
            limit = Duration::ZERO;
            if let Input::Key(key) = event::read()?
                && let Some(wish) = look.press(key, scope, &capture)
            {
                return Ok(Some(wish));
            }
        }
        Ok((signals.pending().count() > 0).then_some(ScopeWish::Quit))
    }

    /// Something to say below the picture.
    pub fn say(&mut self, text: String) {
        self.look.said = text;
    }
}

#[cfg(test)]
mod tests;
