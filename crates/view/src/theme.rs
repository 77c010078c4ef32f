//! How a screen looks. Colour only repeats what words and weights already say.

use std::env;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders};
use sinew_control::status::{DomainState, Phase};

/// How things look.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    /// Whether colour is wanted.
    pub color: bool,
}

impl Theme {
    /// With colour, unless <https://no-color.org> says no: set and not empty.
    pub fn wanted() -> Theme {
        Theme { color: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    fn ink(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    pub(crate) fn or_none(self, color: Color) -> Color {
        if self.color { color } else { Color::Reset }
    }

    /// What stands out.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn good(self) -> Style {
        self.ink(Color::Green)
    }

    pub(crate) fn accent(self) -> Style {
        self.ink(Color::Cyan)
    }

    pub(crate) fn caution(self) -> Style {
        self.ink(Color::Yellow)
    }

    pub(crate) fn bad(self) -> Style {
        self.ink(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// A count that should be zero.
    pub(crate) fn count(self, n: u64) -> Style {
        if n == 0 { Style::new() } else { self.caution().add_modifier(Modifier::BOLD) }
    }

    /// How far a run is; the word says the same.
    pub(crate) fn phase(self, phase: Phase) -> Style {
        match phase {
            Phase::Running => self.good(),
            Phase::Starting | Phase::Held | Phase::Stopping => self.caution(),
        }
    }

    /// How a domain is; the word says the same.
    pub(crate) fn state(self, state: DomainState) -> Style {
        match state {
            DomainState::Running | DomainState::Finished => self.good(),
            DomainState::GivenUp | DomainState::Faulted => self.bad(),
            DomainState::Ended => self.strong(),
            _ => self.caution(),
        }
    }

    pub(crate) fn block(self, title: &str, more: &str) -> Block<'static> {
        let title = Line::from(vec![
            Span::styled(format!(" {title} "), self.strong()),
            Span::styled(
                if more.is_empty() { String::new() } else { format!("{more} ") },
                self.dim(),
            ),
        ]);
        Block::new()
            .borders(Borders::TOP)
            .border_type(BorderType::Plain)
            .border_style(self.dim())
            .title(title)
    }
}
