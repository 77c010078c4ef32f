//! The look of a screen. Colour only repeats what words and weights already say. Terminals are
//! light or dark and do not say which, so each colour can be read on both.

use std::io::stdout;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders};
use sinew_control::status::{DomainState, Phase};

use crate::screen::paints;

/// Colours of the cube that is the same on all terminals with 256 colours; a theme changes only the
/// first 16. They are near the middle between black and white.
pub(crate) const GREEN: Color = Color::Indexed(28);
pub(crate) const BROWN: Color = Color::Indexed(130);
pub(crate) const TEAL: Color = Color::Indexed(30);
pub(crate) const MAGENTA: Color = Color::Indexed(164);
pub(crate) const BLUE: Color = Color::Indexed(63);
pub(crate) const RED: Color = Color::Indexed(160);
pub(crate) const GRAY: Color = Color::Indexed(243);
/// The styles.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    /// Whether colour is wanted.
    pub color: bool,
}

impl Theme {
    /// With colour, if standard output supports it.
    pub fn wanted() -> Theme {
        Theme { color: paints(&stdout()) }
    }

    fn ink(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    pub(crate) fn or_none(self, color: Color) -> Color {
        if self.color { color } else { Color::Reset }
    }

    /// Emphasis.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn good(self) -> Style {
        self.ink(GREEN)
    }

    pub(crate) fn accent(self) -> Style {
        self.ink(TEAL)
    }

    pub(crate) fn caution(self) -> Style {
        self.ink(BROWN)
    }

    pub(crate) fn bad(self) -> Style {
        self.ink(RED).add_modifier(Modifier::BOLD)
    }

    /// A count that should be zero.
    pub(crate) fn count(self, n: u64) -> Style {
        if n == 0 { Style::new() } else { self.caution().add_modifier(Modifier::BOLD) }
    }

    /// The style of a run's phase; the word says the same.
    pub(crate) fn phase(self, phase: Phase) -> Style {
        match phase {
            Phase::Running => self.good(),
            Phase::Starting | Phase::Held | Phase::Stopping => self.caution(),
        }
    }

    /// The style of a domain's state; the word says the same.
    pub(crate) fn state(self, state: DomainState) -> Style {
        match state {
            DomainState::Running | DomainState::Finished => self.good(),
            DomainState::GivenUp | DomainState::Faulted => self.bad(),
            DomainState::Ended => self.strong(),
            _ => self.caution(),
        }
    }

    /// The line above a part of the screen.
    pub(crate) fn rule(self, title: &str, more: &str, columns: usize) -> Line<'static> {
        let mut line = self.title(title, more);
        let rest = columns.saturating_sub(line.width());
        line.push_span(Span::styled("─".repeat(rest), self.dim()));
        line
    }

    pub(crate) fn block(self, title: &str, more: &str) -> Block<'static> {
        Block::new()
            .borders(Borders::TOP)
            .border_type(BorderType::Plain)
            .border_style(self.dim())
            .title(self.title(title, more))
    }

    fn title(self, title: &str, more: &str) -> Line<'static> {
        let more = if more.is_empty() { String::new() } else { format!("{more} ") };
        Line::from(vec![
            Span::styled(format!(" {title} "), self.strong()),
            Span::styled(more, self.dim()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of WCAG 2.2, of a colour of the cube of 256 colours or of its grays.
    fn luminance(color: Color) -> f64 {
        let Color::Indexed(at) = color else { panic!("{color:?} is the terminal's own") };
        let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
        let parts = match at {
            232.. => [8 + 10 * (at - 232); 3],
            _ => [(at - 16) / 36, (at - 16) / 6 % 6, (at - 16) % 6].map(step),
        };
        let linear = parts.map(|part| match f64::from(part) / 255.0 {
            s if s <= 0.04045 => s / 12.92,
            s => ((s + 0.055) / 1.055).powf(2.4),
        });
        linear[0] * 0.2126 + linear[1] * 0.7152 + linear[2] * 0.0722
    }

    #[test]
    fn every_colour_can_be_read_on_black_and_on_white() {
        for color in [GREEN, BROWN, TEAL, MAGENTA, BLUE, RED, GRAY] {
            let light = luminance(color) + 0.05;
            let least = (light / 0.05).min(1.05 / light);
            // 4.58 is the most that a colour can have against both; large text needs 3.
            assert!(least >= 3.8, "{color:?}: {least:.2}");
        }
        let yellow = luminance(Color::Indexed(226)) + 0.05;
        assert!(1.05 / yellow < 1.2, "the measure finds what cannot be read");
    }
}
