//! Latency, CPU time and isolation: how much of the others one choice costs.

use sinew_figures::units::{round_time, time};

use super::super::grid::distinct;
use super::super::scale::Scale;
use super::super::svg::Plot;
use super::frame::Frame;
use crate::report::{Measure, Row};

/// Height of the plane, px.
const HEIGHT: f64 = 320.0;
/// What is drawn across, upwards, and as a colour: a measure, a figure, an axis.
const ACROSS: &str = "cycle_latency";
const UPWARDS: &str = "cpu";
const COLOUR: &str = "isolation";

/// The plot; `None` if rows do not have all three of them.
pub(super) fn plot(rows: &[Row]) -> Option<Plot> {
    let point = |row: &'_ Row| {
        let across = row.measure(ACROSS).and_then(Measure::spread)?.median;
        let drawn = across.is_finite() && across > 0.0;
        Some((across, row.figure(UPWARDS)?, row.axis(COLOUR)?.to_owned(), row.id()))
            .filter(|_| drawn)
    };
    let points: Vec<_> = rows.iter().filter_map(point).collect();
    if points.is_empty() {
        return None;
    }
    let mut frame = Frame::new(
        "latency, CPU time, isolation",
        "each alternative: its median cycle, and the CPU time of all processes in hundredths of \
         one CPU; the colour says what stands between its nodes at most. Low and left is good",
    );
    let ((left, right), (top, bottom)) = frame.plane(HEIGHT);
    let x = Scale::log(points.iter().map(|point| point.0), (left, right));
    let y = Scale::from_zero(points.iter().map(|point| point.1), (bottom, top));
    frame.upwards(&y, (left, right), &|percent| format!("{percent:.0} %"));
    frame.across(&x, (top, bottom), "cycle latency, median", &round_time);
    let colours = distinct(points.iter().map(|point| point.2.as_str()));
    let class = |word: &str| {
        let at = colours.iter().position(|colour| *colour == word).unwrap_or_default();
        format!("s{at}")
    };
    for (across, upwards, colour, id) in &points {
        let what = format!("{id}: {}, {upwards:.1} %", time(*across));
        let at = (x.px(*across), y.px(*upwards));
        frame.canvas.dot(&format!("dot {}", class(colour)), at, 5.0, &what);
    }
    let legend: Vec<_> =
        colours.iter().map(|word| (class(word), format!("isolation: {word}"))).collect();
    frame.legend(&legend);
    Some(frame.finish("trade-off"))
}
