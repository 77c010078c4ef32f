//! The signals of all nodes: states first, then single numbers side by side, then rows of numbers.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use sinew_report::{Extent, SignalStats};

use crate::fit::fit_words;
use crate::scene::Scene;
use crate::theme::Theme;

/// Columns of a signal's name.
const NAME: usize = 28;

/// Columns of a single number with its name.
const CELL: usize = 40;

/// Columns of one number of several, with its gap.
const ROW_CELL: usize = 9;

/// Words of states that need attention.
const ALARMING: [&str; 3] = ["fault", "expired", "lost"];

/// Words of states in which the machine does not move.
const RESTING: [&str; 4] = ["closed", "disabled", "stop", "not ready"];

/// One line for each row.
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
    let several = numbers().filter(|signal| signal.values.len() > 1);
    lines.extend(several.flat_map(|signal| rows(signal, width.into())));
    lines
}

fn name(signal: &SignalStats) -> String {
    fit_words(&format!("{}.{}", signal.node, signal.signal.name), NAME - 2)
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

/// Its numbers, in several rows if necessary.
fn rows(signal: &SignalStats, width: usize) -> Vec<Line<'static>> {
    let in_a_row = (width.saturating_sub(NAME) / ROW_CELL).max(1);
    let row = |(at, extents): (usize, &[Extent])| {
        let name = if at == 0 { name(signal) } else { String::new() };
        let numbers = extents.iter().map(|extent| format!("{:>8}", number(extent)));
        Line::raw(format!(" {name:<NAME$}{}", numbers.collect::<Vec<_>>().join(" ")))
    };
    signal.values.chunks(in_a_row).enumerate().map(row).collect()
}

/// A number in eight columns: integers without a point, others with up to four decimals. A number
/// that would not fit, or would look like zero, gets an exponent.
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
