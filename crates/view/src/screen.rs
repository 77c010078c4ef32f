//! The terminal as a whole: whether pictures are drawn on it, and its alternate screen. That screen
//! is given back on every way out, also after a panic.

use std::env;
use std::io::{self, IsTerminal, Stdout, Write, stdout};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use ratatui::{Frame, Terminal};
use signal_hook::consts::SIGCONT;
use signal_hook::flag;

/// Most cells of a terminal that is drawn on; each takes some hundred bytes. The program at the
/// terminal's other end sets its size.
const PLACES_MAX: u32 = 1_000_000;

/// A terminal that shows our screen.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// Set when this process continues after a stop (Ctrl-Z, then fg): others have written on the
    /// screen.
    continued: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal. With `with_keys` it takes the keys too, so that Ctrl-C is a key and no
    /// signal.
    ///
    /// # Errors
    /// Standard output is no terminal, or the terminal is too large.
    pub(crate) fn open(with_keys: bool) -> io::Result<Screen> {
        check_size()?;
        restore_on_panic();
        let continued = Arc::new(AtomicBool::new(false));
        flag::register(SIGCONT, Arc::clone(&continued))?;
        // Relaxed: see `restore`.
        TAKEN.store(true, Ordering::Relaxed);
        let open = || {
            if with_keys {
                enable_raw_mode()?;
            }
            take_screen()
        };
        Ok(Screen { terminal: open().inspect_err(|_: &io::Error| restore())?, continued })
    }

    /// Draws a picture.
    ///
    /// # Errors
    /// If the terminal is gone, or has become too large.
    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        check_size()?;
        // Relaxed: the flag protects no other data.
        if self.continued.swap(false, Ordering::Relaxed) {
            self.terminal = take_screen()?;
        }
        self.terminal.draw(picture)?;
        Ok(())
    }
}

/// The alternate screen, empty. [`Terminal::clear`] would ask for the cursor's position, and not
/// every terminal answers this.
fn take_screen() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    execute!(stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
    Terminal::new(CrosstermBackend::new(stdout()))
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Whether lines are wanted instead of pictures.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// From now on this process draws nothing and uses no colour, as if it had no terminal.
pub fn want_plain() {
    // Relaxed: the flag protects no other data.
    PLAIN.store(true, Ordering::Relaxed);
}

/// Whether [`want_plain`] was called.
pub fn is_plain() -> bool {
    // Relaxed: see `want_plain`.
    PLAIN.load(Ordering::Relaxed)
}

/// Whether pictures may be drawn on this output: it is a terminal that can move its cursor, and
/// lines were not asked for.
pub fn draws(output: &impl IsTerminal) -> bool {
    let is_smart = || env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty());
    !is_plain() && output.is_terminal() && is_smart()
}

/// Whether colour may be used too. <https://no-color.org> forbids it if NO_COLOR is set and not
/// empty.
pub fn paints(output: &impl IsTerminal) -> bool {
    draws(output) && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Columns of the terminal on standard output.
pub fn columns() -> Option<usize> {
    let size = stdout().is_terminal().then(size);
    size.and_then(Result::ok).map(|(columns, _)| columns.into())
}

/// Checks whether the terminal has a size that can be drawn on.
pub(crate) fn check_size() -> io::Result<()> {
    let (columns, rows) = size()?;
    if fits(columns, rows) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the terminal says that it has {columns} columns and {rows} rows; a view has {PLACES_MAX} \
         places at most: set its size (stty columns 120 rows 40)"
    )))
}

fn fits(columns: u16, rows: u16) -> bool {
    u32::from(columns) * u32::from(rows) <= PLACES_MAX
}

/// Whether the terminal shows our screen. Giving it back twice would move the cursor over text that
/// was printed since.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn restore() {
    // Relaxed: only the thread that draws takes the terminal or gives it back. A panic in another
    // thread races only for this flag.
    if !TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    // A terminal that is gone needs no restoring. If its keys were not taken, nothing changes.
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = stdout().flush();
}

/// Keeps the panic's text from being lost with the screen on which it was printed.
fn restore_on_panic() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        restore();
        before(info);
    }));
}

/// The picture on an in-memory terminal: its text, and the colour of each cell.
#[cfg(test)]
pub(crate) fn picture(
    (width, height): (u16, u16),
    picture: impl FnOnce(&mut Frame<'_>),
) -> (String, Vec<ratatui::style::Color>) {
    let backend = ratatui::backend::TestBackend::new(width, height);
    let mut terminal = Terminal::new(backend).expect("memory");
    terminal.draw(picture).expect("memory");
    let buffer = terminal.backend().buffer();
    let rows = (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>());
    let colors = buffer.content().iter().map(|cell| cell.fg).collect();
    (rows.map(|row| row.trim_end().to_string() + "\n").collect(), colors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terminal_is_too_large_for_memory() {
        assert!(fits(0, 0) && fits(1000, 1000));
        assert!(!fits(u16::MAX, u16::MAX) && !fits(1001, 1000));
    }
}
