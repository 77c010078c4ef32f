//! All values of a measure, none left out: how long it took, over the share of values beyond. Both
//! axes are logarithmic, so that rare and late values have as much room as the rest.

use sinew_figures::Distribution;
use sinew_figures::units::{round_time, time, words};

use super::super::scale::Scale;
use super::super::svg::{Plot, Point};
use super::frame::{Frame, thinned};
use super::{Curves, Part, class};

/// Height of the plane, px.
const HEIGHT: f64 = 330.0;
/// With fewer values beyond a point, it shows little more than chance: from there on the line is
/// dotted.
const BEYOND_MIN: f64 = 10.0;
/// Radius of the dot of a maximum, px.
const RADIUS: f64 = 4.0;

pub(super) fn plot(name: &str, measure: &str, part: &Part<'_>) -> Plot {
    let title = format!("{}: distribution", words(measure));
    let mut frame = Frame::new(&title, &part.subtitle());
    let ((left, right), (top, bottom)) = frame.plane(HEIGHT);
    let all = || part.items.iter().flat_map(|item| &item.rows).map(|(_, of)| &of.distribution);
    let n_max = all().map(Distribution::n).max().unwrap_or(1).max(100) as f64;
    let ends = |times: &Distribution| [times.min(), times.max()].map(|ns| ns.unwrap_or(1) as f64);
    // A logarithm needs values over zero: a value under 1 ns is drawn at 1 ns.
    let y = Scale::log(all().flat_map(ends).map(|ns| ns.max(1.0)), (bottom, top));
    let x = Scale::log_between(1.0, n_max * 1.3, (left, right));
    frame.upwards(&y, (left, right), &round_time);
    frame.shares(&x, (top, bottom), n_max);
    let (mut names, mut seen) = (vec![], Curves::default());
    for (at, item) in part.items.iter().enumerate() {
        let label = part.label(item);
        for (_, measure) in &item.rows {
            let times = &measure.distribution;
            let (sure, few) = curve(times, &x, &y);
            let class = class(at, seen.covers(&[sure.as_slice(), &few].concat()));
            frame.canvas.path(&format!("curve {class}"), &thinned(sure));
            frame.canvas.path(&format!("curve few {class}"), &thinned(few));
            let max = times.max().unwrap_or_default() as f64;
            let what = format!("{label}: max {} of {}", time(max), times.n());
            let dot = (x.px(times.n() as f64), y.px(max));
            frame.canvas.dot(&format!("dot {class}"), dot, RADIUS, &what);
            names.push((class, format!("{label}: max {}, n {}", time(max), times.n())));
        }
    }
    frame.legend(&names);
    frame.remark("Dots: the greatest of all values. Dotted: fewer than ten values beyond.");
    frame.finish(name)
}

/// The points with enough values beyond them, and the rest, which begins where those end.
fn curve(times: &Distribution, x: &Scale, y: &Scale) -> (Vec<Point>, Vec<Point>) {
    let n = times.n() as f64;
    let (mut sure, mut few): (Vec<Point>, Vec<Point>) = (vec![], vec![]);
    let mut below = 0.0;
    for (ns, count) in times.buckets() {
        let point = (x.px(n / (n - below)), y.px((ns as f64).max(1.0)));
        match n - below >= BEYOND_MIN {
            true => sure.push(point),
            false => few.push(point),
        }
        below += count as f64;
    }
    few.push((x.px(n), y.px(times.max().unwrap_or_default() as f64)));
    if let Some(end) = sure.last() {
        few.insert(0, *end);
    }
    (sure, few)
}

impl Frame {
    /// An axis of shares: half, 90 %, 99 % and so on.
    fn shares(&mut self, x: &Scale, (top, bottom): (f64, f64), n_max: f64) {
        let decades = (0..).map(|nines| 10_f64.powi(nines)).take_while(|one_of| *one_of <= n_max);
        let mut marks: Vec<_> = decades.collect();
        marks.insert(1, 2.0);
        let figure = |one_of: f64| match one_of {
            1.0 => "min".to_string(),
            _ => {
                let decimals = (one_of.log10() - 2.0).max(0.0) as usize;
                format!("{:.decimals$} %", 100.0 - 100.0 / one_of)
            }
        };
        self.across_at(&marks, x, (top, bottom), "share of values below", &figure);
    }
}
