//! The tables of a run on a terminal, twice a second. It reads keys too.

mod tables;

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event as Input, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use sinew_control::status::{Event, Status};

use crate::fit::{fit, fit_words};
use crate::rows::{plain, printable};
use crate::screen::Screen;
use crate::theme::Theme;

/// Time between two pictures, if no key is pressed.
const SPACING: Duration = Duration::from_millis(500);

/// Least number of events that are shown, even if the tables leave no room for them.
const EVENTS_MIN: usize = 6;

/// The tables as text, once, without a terminal.
pub fn to_text(status: &Status) -> String {
    let theme = Theme { color: false };
    let mut tables = tables::moving(status, theme, usize::MAX);
    tables.extend(tables::lasting(status, theme, usize::MAX));
    let tables: Vec<_> = tables.iter().map(|lines| plain(lines)).collect();
    let (title, file) = (tables::title(status), printable(&status.file));
    format!("{title}  {file}\n\n{}", tables.join("\n"))
}

/// A terminal that shows tables.
pub struct Top {
    screen: Screen,
    signals: Signals,
    theme: Theme,
    /// Lines that were scrolled away at the top.
    scrolled: u16,
    /// Lines on one page.
    page: u16,
}

impl Top {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard output or input is no terminal, or the terminal is too large.
    pub fn open() -> io::Result<Top> {
        // Not SIGHUP. It ends this process: without a terminal there is nothing to give back, and
        // crossterm would read its end for ever.
        let signals = Signals::new([SIGTERM])?;
        Ok(Top {
            screen: Screen::open(true)?,
            signals,
            theme: Theme::wanted(),
            scrolled: 0,
            page: 1,
        })
    }

    /// Shows a moment and its last events, oldest first. Handles scrolling until it is time for the
    /// next picture. Returns whether the user wants to quit.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn show(&mut self, status: &Status, events: &VecDeque<Event>) -> io::Result<bool> {
        self.draw(status, events)?;
        while event::poll(SPACING)? {
            match event::read()? {
                Input::Key(key) if is_end(key) => return Ok(true),
                Input::Key(key) => self.scroll(key.code),
                Input::Resize(..) => {}
                _ => continue,
            }
            self.draw(status, events)?;
        }
        Ok(self.signals.pending().count() > 0)
    }

    fn draw(&mut self, status: &Status, events: &VecDeque<Event>) -> io::Result<()> {
        let Top { screen, theme, scrolled, page, .. } = self;
        screen.draw(|frame| {
            *page = frame.area().height.saturating_sub(2);
            draw(frame, status, events, *theme, scrolled);
        })
    }

    fn scroll(&mut self, key: KeyCode) {
        let page = self.page;
        self.scrolled = match key {
            KeyCode::Down | KeyCode::Char('j') => self.scrolled.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.scrolled.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scrolled.saturating_add(page),
            KeyCode::PageUp => self.scrolled.saturating_sub(page),
            KeyCode::Home => 0,
            KeyCode::End => u16::MAX,
            _ => self.scrolled,
        };
    }
}

/// Ctrl-C is a key here: the terminal makes no signal from it.
fn is_end(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => control,
        _ => false,
    }
}

/// Draws the moment. `scrolled` is limited to what there is to see.
fn draw(
    frame: &mut Frame<'_>,
    status: &Status,
    events: &VecDeque<Event>,
    theme: Theme,
    scrolled: &mut u16,
) {
    let [head, body] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(frame.area());
    let look = theme.phase(status.phase).patch(theme.strong());
    let lines = lines(status, events, theme, [body.width, body.height].map(usize::from));
    let most = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_sub(body.height);
    let keys = if most > 0 { "  arrows scroll, q quits" } else { "  q quits" };
    let room = usize::from(head.width).saturating_sub(keys.len());
    let title = fit_words(&tables::title(status), room);
    let gap = " ".repeat(room.saturating_sub(title.chars().count()));
    let line = vec![Span::styled(title, look), Span::raw(gap), Span::styled(keys, theme.dim())];
    frame.render_widget(fit(line.into(), head.width.into()), head);
    *scrolled = (*scrolled).min(most);
    frame.render_widget(Paragraph::new(lines).scroll((*scrolled, 0)), body);
}

/// What changes, the last events, what does not change; with lines between them if there is room.
fn lines(
    status: &Status,
    events: &VecDeque<Event>,
    theme: Theme,
    [columns, rows]: [usize; 2],
) -> Vec<Line<'static>> {
    let moving = tables::moving(status, theme, columns);
    let lasting = tables::lasting(status, theme, columns);
    let both = || moving.iter().chain(&lasting);
    let packed = both().map(Vec::len).sum::<usize>();
    let spread = packed + both().count() + 1;
    let is_roomy = spread + EVENTS_MIN <= rows;
    let room = rows.saturating_sub(if is_roomy { spread } else { packed } + 1);
    let apart = |mut table: Vec<Line<'static>>| {
        table.extend(is_roomy.then(Line::default));
        table
    };
    let events = last(events, theme, room.max(EVENTS_MIN));
    let events = events.into_iter().map(|line| fit(line, columns)).collect();
    moving.into_iter().chain([events]).chain(lasting).flat_map(apart).collect()
}

/// The last events.
fn last(events: &VecDeque<Event>, theme: Theme, count: usize) -> Vec<Line<'static>> {
    let line = |event: &Event| {
        let s = event.unix_ms / 1000;
        let time = format!("{:02}:{:02}:{:02}", s / 3600 % 24, s / 60 % 60, s % 60);
        let domain = event.domain.as_deref().unwrap_or("-");
        let text = format!("  {domain:<10}  {:<10}  {}", event.what, printable(&event.text));
        Line::from(vec![Span::styled(time, theme.dim()), Span::raw(text)])
    };
    let title = (!events.is_empty()).then(|| Line::styled("last events, UTC", theme.dim()));
    let newest = events.iter().skip(events.len().saturating_sub(count));
    title.into_iter().chain(newest.map(line)).collect()
}

#[cfg(test)]
mod tests;
