//! The reference as measured beside each row, round by round: it shows changes of the machine.

use sinew_figures::units::{round_time, time};

use super::super::scale::Scale;
use super::super::svg::Plot;
use super::frame::Frame;
use crate::report::Row;

/// Height of the plane, px.
const HEIGHT: f64 = 200.0;
/// The share of a round's width that its rows take.
const FILLED: f64 = 0.8;

/// The plot; `None` if nothing was measured against a reference.
pub(super) fn plot(rows: &[Row]) -> Option<Plot> {
    let measured = |row: &Row| row.measures.iter().find(|of| !of.ratios.is_empty()).is_some();
    let rows: Vec<_> = rows.iter().filter(|row| measured(row)).collect();
    let mut points = vec![];
    let mut rounds = 0;
    for (at, row) in rows.iter().enumerate() {
        let measure = row.measures.iter().find(|measure| !measure.ratios.is_empty())?;
        rounds = rounds.max(measure.ratios.len());
        for (round, (median, ratio)) in measure.rounds.iter().zip(&measure.ratios).enumerate() {
            // Every other round runs backwards.
            let turn = if round % 2 == 0 { at } else { rows.len() - 1 - at };
            let within = (turn as f64 + 0.5) / rows.len() as f64 - 0.5;
            points.push((round as f64 + 1.0 + FILLED * within, median / ratio, row.id()));
        }
    }
    points.retain(|(_, ns, _)| ns.is_finite() && *ns > 0.0);
    if points.is_empty() {
        return None;
    }
    let mut frame = Frame::new(
        "reference, round by round",
        "what each row was compared with, in the order in which the rows were measured",
    );
    let ((left, right), (top, bottom)) = frame.plane(HEIGHT);
    let y = Scale::log(points.iter().map(|(_, ns, _)| *ns), (bottom, top));
    let x = Scale::between(0.5, rounds as f64 + 0.5, (left, right));
    frame.upwards(&y, (left, right), &round_time);
    let numbers: Vec<_> = (1..=rounds).map(|round| round as f64).collect();
    frame.across_at(&numbers, &x, (top, bottom), "round", &|round| format!("{round:.0}"));
    for (round, ns, id) in &points {
        let what = format!("{} beside {id}", time(*ns));
        frame.canvas.dot("dot s0", (x.px(*round), y.px(*ns)), 2.6, &what);
    }
    Some(frame.finish("reference"))
}
