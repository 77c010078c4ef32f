//! The live view: the whole run on one screen, redrawn ten times a second.
//!
//! It takes the terminal's other screen and gives it back on every way out, a panic too. No key is
//! read: Ctrl-C stays the signal that it is.

mod draw;
mod flows;
mod services;
mod track;

use std::io::{self, Stdout, Write, stdout};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use signal_hook::consts::SIGCONT;
use signal_hook::flag;
use sinew_runtime::run::ThreadId;

use self::draw::draw;
use self::track::Tracks;
use super::stats::{Observed, Stats};
use super::view::Scene;
use crate::screen;
use crate::theme::Theme;

/// Seconds between two pictures.
const SPACING_S: f64 = 0.1;

/// A terminal that shows a run.
pub(crate) struct Live {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    tracks: Tracks,
    theme: Theme,
    next_s: f64,
    /// Set when this process goes on after a stop (Ctrl-Z, then fg): others wrote on the screen.
    continued: Arc<AtomicBool>,
}

impl Live {
    /// Takes the terminal.
    ///
    /// # Errors
    /// If standard output is none, or too large.
    pub(crate) fn open(stats: &Stats) -> io::Result<Live> {
        screen::check_size()?;
        restore_on_panic();
        let continued = Arc::new(AtomicBool::new(false));
        flag::register(SIGCONT, Arc::clone(&continued))?;
        let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        execute!(stdout(), EnterAlternateScreen)?;
        // Relaxed: see restore.
        TAKEN.store(true, Ordering::Relaxed);
        terminal.clear()?;
        let (tracks, theme) = (Tracks::new(stats), Theme::wanted());
        Ok(Live { terminal, tracks, theme, next_s: 0.0, continued })
    }

    pub(crate) fn observe(&mut self, thread: ThreadId, observed: &Observed) {
        self.tracks.add(thread, observed);
    }

    pub(crate) fn is_due(&self, elapsed_s: f64) -> bool {
        elapsed_s >= self.next_s
    }

    /// Draws the moment; not on a terminal that has become too large, whose run goes on.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(crate) fn show(&mut self, scene: &Scene<'_>) -> io::Result<()> {
        self.next_s = scene.elapsed_s + SPACING_S;
        let Live { terminal, tracks, theme, continued, .. } = self;
        // Relaxed: it carries nothing but itself.
        if continued.swap(false, Ordering::Relaxed) {
            execute!(stdout(), EnterAlternateScreen)?;
            terminal.clear()?;
        }
        if screen::check_size().is_err() {
            return Ok(());
        }
        terminal.draw(|frame| draw(frame, scene, tracks, *theme))?;
        Ok(())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        restore();
    }
}

/// Whether the terminal shows our screen. To give it back twice would move the cursor over what was
/// printed since.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn restore() {
    // Relaxed: only the thread that draws takes the terminal or gives it back; a panic elsewhere
    // races for nothing but this flag.
    if !TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    // A terminal that is gone needs no restoring.
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = stdout().flush();
}

/// So that the panic's text is not lost with the screen it was printed on.
fn restore_on_panic() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        restore();
        before(info);
    }));
}
