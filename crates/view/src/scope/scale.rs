//! Converts values to positions, colours and texts.

use ratatui::style::Color;
use sinew_scope::{Captured, figures};

use crate::theme::{BLUE, BROWN, GREEN, MAGENTA, RED, TEAL, Theme};

/// Colours of traces. The numbers at their ends show the same.
const COLORS: [Color; 6] = [GREEN, BROWN, TEAL, MAGENTA, BLUE, RED];

/// Margin above and below a trace, as part of its range.
const MARGIN: f64 = 0.05;

/// From the least to the greatest value of a trace, with a margin.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// `None` for a trace without a value.
    pub(super) fn of(captured: &Captured) -> Option<Scale> {
        figures(captured).map(|of| Scale::over(of.min, of.max))
    }

    /// A scale for values between these.
    pub(super) fn over(min: f64, max: f64) -> Scale {
        let room = match max - min {
            extent if extent > 0.0 => extent * MARGIN,
            // For a constant value: a line in the middle.
            _ => min.abs().max(1.0) * MARGIN,
        };
        Scale { low: min - room, high: max + room }
    }

    /// The position of a value: 0 at the bottom, 1 at the top.
    pub(super) fn part(self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

pub(super) fn color(at: usize, theme: Theme) -> Color {
    theme.or_none(COLORS[at % COLORS.len()])
}

/// A number in ten columns at most.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    match () {
        () if value == 0.0 => "0".into(),
        () if value.fract() == 0.0 && size < 1e7 => format!("{value}"),
        () if (1e-3..1e5).contains(&size) => {
            let digits = (4.0 - size.log10().floor()).clamp(0.0, 6.0) as usize;
            format!("{value:.digits$}")
        }
        () => format!("{value:.3e}"),
    }
}

/// A time with the unit that fits.
pub(super) fn seconds(s: f64) -> String {
    let size = s.abs();
    match () {
        () if size == 0.0 => "0 s".into(),
        () if size < 1e-3 => format!("{} us", number(round(s * 1e6))),
        () if size < 1.0 => format!("{} ms", number(round(s * 1e3))),
        () => format!("{} s", number(round(s))),
    }
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
