//! A series as a line: a dot for each report, a mark at each change, and the level between.

use sinew_figures::units::words;

use super::super::Series;
use super::{name, p_value, percent, shown};
use crate::show::plots::frame::Frame;
use crate::show::scale::Scale;
use crate::show::svg::{Anchor, Plot, text_width};

/// Height of the plane, px.
const HEIGHT: f64 = 150.0;
/// Room above the greatest and below the least figure, as a share of the range between them.
const ROOM: f64 = 0.15;
/// If all figures are equal, the axis reaches this much above and below them, as a share.
const FLAT: f64 = 0.05;

pub(super) fn plot(series: &Series, at: usize) -> Plot {
    let title = format!("{}: {}", series.headline.row, words(&series.headline.measure));
    let better = if series.headline.higher_is_better { "more" } else { "less" };
    let mut frame = Frame::new(&title, &format!("{better} is better"));
    let ((left, right), (top, bottom)) = frame.plane(HEIGHT);
    let figures = &series.figures;
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let room = match (most - least) * ROOM {
        room if room > 0.0 => room,
        _ if most == 0.0 => 1.0,
        _ => most.abs() * FLAT,
    };
    let y = Scale::between(least - room, most + room, (bottom, top));
    // Two reports are one step apart; a single report is in the middle.
    let x = Scale::between(-0.5, figures.len() as f64 - 0.5, (left, right));
    frame.upwards(&y, (left, right), &|figure| shown(series, figure));
    let labels = commits(series);
    let marks: Vec<_> = (0..figures.len()).map(|place| place as f64).collect();
    let label = |place: f64| labels[place as usize].clone();
    frame.across_at(&marks, &x, (top, bottom), "commits, oldest first", &label);
    let points: Vec<_> =
        figures.iter().enumerate().map(|(at, figure)| (x.px(at as f64), y.px(*figure))).collect();
    // Between two counts there is a step and not a slope; the levels show it.
    if !series.exact || series.changes.is_empty() {
        frame.canvas.path("curve s0", &points);
    }
    for ((origin, figure), point) in series.origins.iter().zip(figures).zip(points) {
        let mut what = format!("{}, {}: {}", name(origin), origin.file, shown(series, *figure));
        what += &origin.why.iter().map(|why| format!("; {why}")).collect::<String>();
        frame.canvas.dot("dot s0", point, 3.2, &what);
    }
    let mut free = f64::NEG_INFINITY;
    for (number, change) in series.changes.iter().enumerate() {
        let place = x.px(change.at as f64 - 0.5);
        frame.canvas.line("curve s1 dashed", (place, top), (place, bottom));
        let start = number.checked_sub(1).map_or(0, |before| series.changes[before].at);
        let end = series.changes.get(number + 1).map_or(figures.len(), |next| next.at);
        let mut level = |from: usize, to: usize, mean: f64| {
            let (from, to) = (x.px(from as f64 - 0.5), x.px(to as f64 - 0.5));
            frame.canvas.line("curve s1", (from, y.px(mean)), (to, y.px(mean)));
        };
        level(start, change.at, change.before);
        level(change.at, end, change.after);
        let share = percent(change).unwrap_or_default();
        // A text that would touch the one before is left out; the table below has it as well.
        if place > free {
            frame.canvas.text("", (place + 4.0, top + 12.0), Anchor::Start, &share);
            free = place + text_width(&share);
        }
    }
    for change in &series.changes {
        let [before, after] = [change.before, change.after].map(|mean| shown(series, mean));
        let origin = &series.origins[change.at];
        let why = change.p.map(|p| format!(", p {}", p_value(p)));
        let why = why.or_else(|| origin.why.as_ref().map(|why| format!(": {why}")));
        let why = why.unwrap_or_default();
        let share = percent(change).map_or(String::new(), |share| format!(", {share}"));
        frame.remark(&format!("{}: {before} to {after}{share}{why}", name(origin)));
    }
    frame.finish(&format!("history-{at}"))
}

/// A name for each report, if it differs from that of the report before.
fn commits(series: &Series) -> Vec<String> {
    let mut last = None;
    let mut label = |at: usize| {
        let origin = &series.origins[at];
        let commit = match &origin.commit {
            // Keeps the plus that marks changed sources.
            Some(commit) => {
                commit.chars().take(7).chain(commit.chars().filter(|it| *it == '+')).collect()
            }
            None => (at + 1).to_string(),
        };
        let is_new = last.as_ref() != Some(&commit);
        last = Some(commit.clone());
        if is_new { commit } else { String::new() }
    };
    (0..series.origins.len()).map(&mut label).collect()
}
