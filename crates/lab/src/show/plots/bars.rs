//! Medians next to each other, and how far they moved from round to round.

use sinew_figures::units::{FigureUnit, round_time, words};

use super::super::scale::Scale;
use super::super::svg::{Anchor, Plot, text_width};
use super::Part;
use super::frame::{Frame, MARGIN, WIDTH};

/// Distance from one bar to the next, and thickness of a bar, px.
const STEP: f64 = 22.0;
const THICK: f64 = 13.0;
/// The axis is logarithmic if the greatest value is more than this many times the least.
const LINEAR_MAX: f64 = 10.0;
/// Least width of the plane, px.
const PLANE_MIN: f64 = 260.0;

pub(super) fn plot(name: &str, measure: &str, part: &Part<'_>) -> Plot {
    let title = format!("{}: medians", words(measure));
    let mut frame = Frame::new(&title, &part.subtitle());
    let rows: Vec<_> = part
        .items
        .iter()
        .flat_map(|item| item.rows.iter().map(|(_, measure)| (part.label(item), *measure)))
        .filter_map(|(label, measure)| Some((label, measure.spread()?.median, &measure.rounds)))
        .collect();
    let all = || rows.iter().flat_map(|(_, _, rounds)| rounds.iter().copied());
    let medians: Vec<_> = rows.iter().map(|(_, median, _)| *median).collect();
    let unit = FigureUnit::of_times(&medians);
    let figure = |ns: f64| format!("{} {}", unit.figure(ns), unit.name);
    let widest = |texts: &mut dyn Iterator<Item = String>| {
        texts.map(|text| text_width(&text)).fold(0.0, f64::max)
    };
    let figures = widest(&mut medians.iter().map(|median| figure(*median))) + 12.0;
    let right = WIDTH - MARGIN - figures;
    let label = widest(&mut rows.iter().map(|(label, ..)| label.clone())) + 12.0;
    let left = (MARGIN + label).min(right - PLANE_MIN);
    let (least, greatest) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let is_log = least > 0.0 && greatest / least > LINEAR_MAX;
    let x = match is_log {
        true => Scale::log_between(least / 2.0, greatest * 1.12, (left, right)),
        false => Scale::from_zero(all(), (left, right)),
    };
    let top = frame.y;
    let bottom = top + STEP * rows.len() as f64 + 6.0;
    let axis = if is_log { "logarithmic: compare ends, not lengths" } else { "" };
    frame.across(&x, (top, bottom), axis, &round_time);
    for (at, (label, median, rounds)) in rows.iter().enumerate() {
        let y = top + STEP * (at as f64 + 0.5) + 3.0;
        let canvas = &mut frame.canvas;
        canvas.text("", (left - 8.0, y + 4.0), Anchor::End, label);
        canvas.rect("bar", (left, y - THICK / 2.0), (x.px(*median) - left, THICK));
        let low = x.px(rounds.iter().copied().fold(f64::MAX, f64::min));
        let high = x.px(rounds.iter().copied().fold(0.0, f64::max));
        canvas.line("spread", (low, y), (high, y));
        for end in [low, high] {
            canvas.line("spread", (end, y - 4.0), (end, y + 4.0));
        }
        canvas.text("", (WIDTH - MARGIN, y + 4.0), Anchor::End, &figure(*median));
    }
    if axis.is_empty() {
        frame.y -= 16.0;
    }
    frame.remark("Lines: from the least to the greatest of the rounds.");
    frame.finish(name)
}
