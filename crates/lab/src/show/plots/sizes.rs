//! A measure over the size of the message, both axes logarithmic.

use sinew_figures::Interval;
use sinew_figures::units::{self, round_time, time, words};

use super::super::scale::Scale;
use super::super::svg::Plot;
use super::frame::Frame;
use super::{Curves, Item, Part, class, size};

/// Height of the plane, px.
const HEIGHT: f64 = 340.0;

pub(super) fn plot(name: &str, measure: &str, part: &Part<'_>) -> Plot {
    let title = format!("{}: medians over message size", words(measure));
    let mut frame = Frame::new(&title, &part.subtitle());
    let ((left, right), (top, bottom)) = frame.plane(HEIGHT);
    let medians = |item: &Item<'_>| -> Vec<(f64, Interval)> {
        item.rows.iter().filter_map(|(row, of)| Some((size(row)?, of.spread()?))).collect()
    };
    let lines: Vec<_> = part.items.iter().map(medians).collect();
    let ends = lines.iter().flatten().flat_map(|(_, ns)| [ns.low, ns.high]);
    let y = Scale::log(ends.map(|ns| ns.max(1.0)), (bottom, top));
    let mut sizes: Vec<_> = lines.iter().flatten().map(|(bytes, _)| *bytes).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let x = Scale::log(sizes.iter().copied(), (left, right));
    frame.upwards(&y, (left, right), &round_time);
    frame.across_at(&sizes, &x, (top, bottom), "bytes of a message", &units::size);
    let (mut names, mut seen) = (vec![], Curves::default());
    for (at, (item, line)) in part.items.iter().zip(&lines).enumerate() {
        let label = part.label(item);
        let points: Vec<_> =
            line.iter().map(|(bytes, ns)| (x.px(*bytes), y.px(ns.median))).collect();
        let class = class(at, seen.covers(&points));
        frame.canvas.path(&format!("curve {class}"), &points);
        for ((bytes, ns), at) in line.iter().zip(points) {
            let ends = [ns.low, ns.high].map(|end| (at.0, y.px(end.max(1.0))));
            frame.canvas.line(&format!("curve {class}"), ends[0], ends[1]);
            let what = format!("{label}, {}: {}", units::size(*bytes), time(ns.median));
            frame.canvas.dot(&format!("dot {class}"), at, 3.2, &what);
        }
        names.push((class, label));
    }
    frame.legend(&names);
    frame.finish(name)
}
