//! The signals of all nodes: states first, then single numbers side by side, then rows of numbers.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use sinew_report::{Extent, SignalStats};

use crate::scene::Scene;
use crate::theme::Theme;

/// Columns of a signal's name.
const NAME: usize = 28;

/// Columns of a single number with its name.
const CELL: usize = 40;

/// Words of states that somebody should look at.
const ALARMING: [&str; 3] = ["fault", "expired", "lost"];

/// Words of states in which the machine does not move.
const RESTING: [&str; 4] = ["closed", "disabled", "stop", "not ready"];

/// A line for each row.
pub(crate) fn signals(scene: &Scene<'_>, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let all = || scene.stats.signals().filter(|signal| !signal.values.is_empty());
    let mut lines: Vec<_> =
        all().filter(|signal| signal.is_state()).map(|signal| state(signal, theme)).collect();
    let numbers = || all().filter(|signal| !signal.is_state());
    let single: Vec<_> = numbers().filter(|signal| signal.values.len() == 1).collect();
    let columns = (usize::from(width) / CELL).max(1);
    for cells in single.chunks(columns) {
        lines.push(cells.iter().flat_map(|signal| cell(signal)).collect());
    }
    lines.extend(numbers().filter(|signal| signal.values.len() > 1).map(row));
    lines
}

fn name(signal: &SignalStats) -> String {
    let full = format!("{}.{}", signal.node, signal.signal.name);
    if full.chars().count() <= NAME - 2 {
        return full;
    }
    full.chars().take(NAME - 3).chain(['…']).collect()
}

fn state(signal: &SignalStats, theme: Theme) -> Line<'static> {
    let words = signal.words();
    let holds = |list: &[&str]| list.iter().any(|word| words.contains(word));
    let style = match () {
        () if holds(&ALARMING) => theme.bad(),
        () if holds(&RESTING) => theme.caution(),
        () => theme.good(),
    };
    let name = Span::raw(format!(" {:<NAME$}", name(signal)));
    Line::from(vec![name, Span::styled(words, style)])
}

fn cell(signal: &SignalStats) -> [Span<'static>; 2] {
    let value = number(&signal.values[0]);
    let rest = CELL - NAME - 1;
    [
        Span::raw(format!(" {:<NAME$}", name(signal))),
        Span::styled(format!("{value:<rest$}"), Style::new()),
    ]
}

fn row(signal: &SignalStats) -> Line<'static> {
    let mut line = Line::from(format!(" {:<NAME$}", name(signal)));
    for extent in &signal.values {
        line.push_span(format!("{:>8} ", number(extent)));
    }
    line
}

/// In eight columns: whole numbers without a point, others to four digits after it; what would not
/// fit, or would read as zero, with an exponent.
fn number(extent: &Extent) -> String {
    let Extent { last, min, max } = *extent;
    let size = last.abs();
    match () {
        () if [last, min, max].iter().all(|v| v.fract() == 0.0) && size < 1e7 => {
            format!("{last:.0}")
        }
        () if last == 0.0 || (1e-3..100.0).contains(&size) => format!("{last:.4}"),
        () if (100.0..1e4).contains(&size) => format!("{last:.2}"),
        () => format!("{last:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(last: f64, max: f64) -> String {
        number(&Extent { last, min: 0.0, max })
    }

    #[test]
    fn a_number_takes_eight_columns() {
        for last in [0.0, 0.4, -0.001, -99.9999, 1234.5, -9_999.9, 1.2e-6, -1.5e12, f64::NAN] {
            let text = shown(last, 0.5);
            assert!(text.len() <= 8, "{text}");
        }
    }

    #[test]
    fn only_what_was_always_whole_is_shown_so() {
        assert_eq!(shown(18.0, 20.0), "18");
        assert_eq!(shown(18.0, 20.5), "18.0000");
    }
}
