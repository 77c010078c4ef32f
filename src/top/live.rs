//! The tables on a terminal, twice a second.
//!
//! The terminal is taken as a whole, keys included, and given back on every way out, a panic too.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event as Input, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use sinew_runtime::status::{Event, Status};

use super::feed::Feed;
use super::tables;
use crate::reach::rows::printable;
use crate::screen;
use crate::theme::Theme;

/// Between two pictures, if no key is pressed.
const SPACING: Duration = Duration::from_millis(500);

/// So many events are shown also where the tables leave no room for them.
const EVENTS_MIN: usize = 6;

/// Why the terminal was given back.
pub(super) enum Closed {
    /// Somebody wants no more.
    ByUser,
    /// The run has ended.
    ByRun,
}

/// A terminal that shows tables.
pub(super) struct Live {
    terminal: DefaultTerminal,
    signals: Signals,
    theme: Theme,
    /// Lines that were scrolled away above.
    scrolled: u16,
}

impl Live {
    /// Takes the terminal.
    ///
    /// # Errors
    /// If standard output or input is none, or the terminal too large.
    pub(super) fn open() -> io::Result<Live> {
        // Not SIGHUP, which ends this process: without a terminal there is nothing to give back,
        // and crossterm would read its end for ever.
        screen::check_size()?;
        let signals = Signals::new([SIGTERM])?;
        let terminal = ratatui::try_init()?;
        Ok(Live { terminal, signals, theme: Theme::wanted(), scrolled: 0 })
    }

    /// Shows a run until it ends or somebody presses q.
    ///
    /// # Errors
    /// If the terminal is gone, or the run does not answer.
    pub(super) fn follow(&mut self, feed: &mut Feed) -> io::Result<Closed> {
        loop {
            if !feed.refresh()? {
                return Ok(Closed::ByRun);
            }
            self.draw(feed)?;
            if self.attend(feed)? {
                return Ok(Closed::ByUser);
            }
        }
    }

    fn draw(&mut self, feed: &Feed) -> io::Result<()> {
        screen::check_size()?;
        let Live { terminal, theme, scrolled, .. } = self;
        terminal.draw(|frame| draw(frame, &feed.status, &feed.events, *theme, scrolled))?;
        Ok(())
    }

    /// Waits until it is time for the next picture, and scrolls meanwhile; whether to end.
    fn attend(&mut self, feed: &Feed) -> io::Result<bool> {
        while event::poll(SPACING)? {
            match event::read()? {
                Input::Key(key) if is_end(key) => return Ok(true),
                Input::Key(key) => self.scroll(key.code),
                Input::Resize(..) => {}
                _ => continue,
            }
            self.draw(feed)?;
        }
        Ok(self.signals.pending().count() > 0)
    }

    fn scroll(&mut self, key: KeyCode) {
        let page = self.terminal.size().map_or(1, |size| size.height.saturating_sub(2));
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

impl Drop for Live {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Ctrl-C is a key here: the terminal makes no signal of it.
fn is_end(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => control,
        _ => false,
    }
}

/// Draws the moment; `scrolled` is brought back to what there is to see.
fn draw(
    frame: &mut Frame<'_>,
    status: &Status,
    events: &VecDeque<Event>,
    theme: Theme,
    scrolled: &mut u16,
) {
    let [head, body] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(frame.area());
    let look = tables::phase_style(status.phase, theme).patch(theme.strong());
    frame.render_widget(Line::styled(tables::title(status), look), head);
    let lines = lines(status, events, theme, [body.width, body.height].map(usize::from));
    let most = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_sub(body.height);
    let keys = if most > 0 { " arrows scroll, q quits" } else { " q quits" };
    frame.render_widget(Line::styled(keys, theme.dim()).right_aligned(), head);
    *scrolled = (*scrolled).min(most);
    frame.render_widget(Paragraph::new(lines).scroll((*scrolled, 0)), body);
}

/// What changes, the last events, what stays; apart from each other if there is room.
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
