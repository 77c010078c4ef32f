//! Automatic sizes beside the best fixed one: how far below the best they are, and how soon they
//! have settled. For rows that have these figures.

use sinew_figures::units::time;

use super::super::scale::Scale;
use super::super::svg::{Anchor, Plot, text_width};
use super::frame::{Frame, MARGIN, WIDTH};
use super::{Part, items};
use crate::report::Row;

/// Distance from one bar to the next, and thickness of a bar, px.
const STEP: f64 = 20.0;
const THICK: f64 = 12.0;
/// Least width of the axis, hundredths: if all values are near the best, noise must not look large.
const LEAST: f64 = 10.0;

/// The bars of a row: name and figure.
const BARS: [(&str, &str); 2] = [("requests/s", "below_best"), ("P95", "p95_above_best")];

/// The plot; `None` if no row has the figures.
pub(super) fn plot(rows: &[Row]) -> Option<Plot> {
    let part =
        Part { items: items(rows, "settling", &|row| row.figure(BARS[0].1).is_some()), of: vec![] };
    let found: Vec<_> = part.items.iter().map(|item| (part.label(item), item.rows[0])).collect();
    let bars = || found.iter().flat_map(|(_, (row, _))| BARS.map(|(_, name)| row.figure(name)));
    let values: Vec<f64> = bars().flatten().collect();
    if values.is_empty() {
        return None;
    }
    let mut frame = Frame::new(
        "finds its own size: behind the best fixed one, %",
        "fewer requests a second, and a longer P95; left of zero it is ahead",
    );
    let settled = |of: &crate::report::Measure| {
        let longest = of.distribution.max().unwrap_or_default();
        format!("settled in {}", time(longest as f64))
    };
    let label = |label: &str, bar: &str| format!("{label} {bar}");
    let widest = |texts: Vec<String>| texts.iter().map(|it| text_width(it)).fold(0.0, f64::max);
    let names = found.iter().flat_map(|(it, _)| BARS.map(|(bar, _)| label(it, bar)));
    let left = MARGIN + widest(names.collect()) + 12.0;
    let notes = found.iter().map(|(_, (_, of))| settled(of));
    let right = WIDTH - MARGIN - widest(notes.collect()) - 64.0;
    let low = values.iter().copied().fold(0.0, f64::min);
    let high = values.iter().copied().fold(low + LEAST, f64::max);
    let x = Scale::between(low * 1.1, high * 1.1, (left, right));
    let (top, mut y) = (frame.y, frame.y);
    for (name, (row, measure)) in &found {
        for (at, (bar, figure)) in BARS.into_iter().enumerate() {
            y += STEP;
            let Some(value) = row.figure(figure) else { continue };
            let (zero, end) = (x.px(0.0), x.px(value));
            let canvas = &mut frame.canvas;
            canvas.text("", (left - 8.0, y + 4.0), Anchor::End, &label(name, bar));
            canvas.rect("bar", (zero.min(end), y - THICK / 2.0), ((end - zero).abs(), THICK));
            let text = match at {
                0 => format!("{value:.1} %, {}", settled(measure)),
                _ => format!("{value:.1} %"),
            };
            canvas.text("", (right + 12.0, y + 4.0), Anchor::Start, &text);
        }
        y += STEP / 2.0;
    }
    frame.across(&x, (top, y + STEP / 2.0), "%, medians of the rounds", &|it| format!("{it:.0}"));
    frame.remark("Settled: the longest of all rounds, in which it had 4 s for that.");
    Some(frame.finish("beside-best"))
}
