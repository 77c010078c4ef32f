//! The picture of the article's scenario: the way of the worst axis after the death, once all of it
//! and once its beginning. Below each, the brake of that axis.

use crate::drill::article::{Article, AxisPoint, Variant};
use crate::show::Plot;
use crate::show::plots::frame::{Frame, MARGIN, WIDTH, thinned};
use crate::show::scale::Scale;
use crate::show::svg::Anchor;

/// Width for the figures before a vertical axis, px.
const LEFT: f64 = 84.0;
/// Height of the panels, px.
const HEIGHT: f64 = 210.0;
/// Height of a line in the band that shows the brakes, px.
const BAND: f64 = 17.0;
/// The time that the second panel shows, ms.
const BEGINNING_MS: (f64, f64) = (-20.0, 160.0);

/// The styles of the variants, in their order: `s0` is the lab's first hue.
const CLASSES: [&str; 3] = ["s0", "s1", "s2 over"];

/// Draws it.
pub(super) fn of(article: &Article) -> Plot {
    let axis = article.axis;
    let title = format!("The inverse kinematics dies: the way of axis {axis}");
    let subtitle = "rad from where the axis was at the death; below, when its brake was closed";
    let mut frame = Frame::new(&title, subtitle);
    let last = |variant: &Variant| variant.points.last().map_or(0.0, |point| point.time_ms);
    let end_ms = article.variants.iter().map(last).fold(BEGINNING_MS.1, f64::max);
    let first = |variant: &Variant| variant.points.first().map_or(0.0, |point| point.time_ms);
    let begin_ms = article.variants.iter().map(first).fold(0.0, f64::min);
    frame.y += 10.0;
    panel(&mut frame, article, (begin_ms, end_ms), &|_| true);
    frame.y += 14.0;
    // At the scale of a naive master's way, the other ways could not be seen.
    let shown = |variant: &Variant| variant.limit.is_none() && variant.safe_ns.is_some();
    panel(&mut frame, article, BEGINNING_MS, &shown);
    let names = article.variants.iter().zip(CLASSES);
    let names = names.map(|(variant, class)| (class.into(), legend(variant)));
    frame.legend(&names.collect::<Vec<_>>());
    frame.finish("partial-failure")
}

fn legend(variant: &Variant) -> String {
    format!("{}: {}", variant.name, variant.about)
}

fn panel(
    frame: &mut Frame,
    article: &Article,
    (begin_ms, end_ms): (f64, f64),
    shown: &dyn Fn(&Variant) -> bool,
) {
    let (left, right) = (LEFT, WIDTH - MARGIN);
    let (top, bottom) = (frame.y, frame.y + HEIGHT);
    let across = Scale::between(begin_ms, end_ms, (left, right));
    let within = |point: &&AxisPoint| (begin_ms..=end_ms).contains(&point.time_ms);
    let ways = article.variants.iter().filter(|it| shown(it)).flat_map(|it| &it.points);
    let ways: Vec<_> = ways.filter(within).map(|point| point.way_rad).collect();
    let (low, high) =
        ways.iter().fold((0.0_f64, 1e-6_f64), |(low, high), &way| (low.min(way), high.max(way)));
    let room = (high - low) * 0.06;
    let upwards = Scale::between(low - room, high + room, (bottom, top));
    let decimals = if high - low < 0.5 { 3 } else { 1 };
    frame.upwards(&upwards, (left, right), &|rad| format!("{rad:.decimals$}"));
    frame.canvas.text("muted", (left - 8.0, top - 6.0), Anchor::End, "rad");
    let x = across.px(0.0);
    for (variant, class) in article.variants.iter().zip(CLASSES).filter(|(it, _)| shown(it)) {
        let place = |ms: f64, rad: f64| (across.px(ms), upwards.px(rad));
        let points = variant.points.iter().filter(within);
        let points = points.map(|point| place(point.time_ms, point.way_rad));
        // Behind a closed brake the axis stays where it is after its records have ended.
        let last = variant.points.last().filter(|last| last.braked && variant.still_ns.is_some());
        let rest = last.map(|last| place(end_ms, last.way_rad));
        frame.canvas.path(&format!("curve {class}"), &thinned(points.chain(rest)));
    }
    let mut y = bottom + 8.0;
    for variant in article.variants.iter().filter(|it| shown(it)) {
        frame.canvas.text("muted", (left - 8.0, y + 11.0), Anchor::End, &variant.name);
        for (from, to) in closed(variant) {
            let (from, to) = (across.px(from.max(begin_ms)), across.px(to.min(end_ms)));
            if to > from {
                frame.canvas.rect("bar", (from, y), (to - from, BAND - 5.0));
            }
        }
        y += BAND;
    }
    frame.across(&across, (bottom, y + 2.0), "ms since the death; bars: brake closed", &|ms| {
        format!("{ms:.0}")
    });
    frame.canvas.line("spread", (x, top), (x, y));
    frame.canvas.text("", (x + 6.0, top + 12.0), Anchor::Start, "death");
}

/// The spans in which the brake was closed, ms; the last one is unbounded if it stayed closed.
fn closed(variant: &Variant) -> Vec<(f64, f64)> {
    let mut spans: Vec<(f64, f64)> = vec![];
    let mut was_braked = false;
    for point in &variant.points {
        match (was_braked, point.braked) {
            (false, true) => spans.push((point.time_ms, f64::INFINITY)),
            (true, false) => {
                if let Some(span) = spans.last_mut() {
                    span.1 = point.time_ms;
                }
            }
            _ => {}
        }
        was_braked = point.braked;
    }
    spans
}
