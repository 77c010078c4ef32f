//! The signals of all nodes: states first, then single numbers side by side, then rows of numbers.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Theme;
use crate::run::stats::SignalStats;
use crate::run::view::Scene;
use crate::run::words::states;

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
    let is_state = |signal: &&SignalStats| !signal.signal.labels.is_empty();
    let mut lines: Vec<_> = all().filter(is_state).map(|signal| state(signal, theme)).collect();
    let numbers = || all().filter(|signal| signal.signal.labels.is_empty());
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
    let words = states(signal);
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
    let value = number(signal.values[0].last, signal.signal.unit);
    let rest = CELL - NAME - 1;
    [
        Span::raw(format!(" {:<NAME$}", name(signal))),
        Span::styled(format!("{value:<rest$}"), Style::new()),
    ]
}

fn row(signal: &SignalStats) -> Line<'static> {
    let mut line = Line::from(format!(" {:<NAME$}", name(signal)));
    for extent in &signal.values {
        line.push_span(format!("{:>8} ", number(extent.last, signal.signal.unit)));
    }
    line
}

/// Metres to a tenth of a millimetre, whole numbers without a point, the rest to four digits; what
/// would not fit, or would read as zero, with an exponent.
fn number(value: f64, unit: &str) -> String {
    let size = value.abs();
    match () {
        () if unit.is_empty() && value.fract() == 0.0 && size < 1e7 => format!("{value:.0}"),
        () if value == 0.0 || (1e-3..100.0).contains(&size) => format!("{value:.4}"),
        () if (100.0..1e4).contains(&size) => format!("{value:.2}"),
        () => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_takes_eight_columns() {
        let shown = [0.0, 0.4, -0.001, -99.9999, 1234.5, -9_999.9, 1.2e-6, -1.5e12];
        for value in shown {
            let text = number(value, "m");
            assert!(text.len() <= 8, "{text}");
        }
        assert_eq!(number(18.0, ""), "18");
        assert_eq!(number(18.0, "m"), "18.0000");
    }
}
