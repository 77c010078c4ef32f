//! Lanes: for links that do not end in the next column.

use std::collections::HashMap;

use sinew_plan::plan::Plan;

use super::{Layout, Rect, Turns};
use crate::picture::line::Line;

/// Distance between lanes, px.
const LANE: f64 = 16.0;

/// Where lanes are: below a thread, below all threads of a domain, below all domains.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Level {
    Thread(usize, usize),
    Domain(usize),
    Picture,
}

impl Level {
    /// The innermost box that contains both ends of a line.
    pub(super) fn of(plan: &Plan, line: &Line) -> Level {
        let (from, to) = (&plan.nodes[line.from.node], &plan.nodes[line.to.node]);
        match (from.domain == to.domain, from.thread == to.thread) {
            (true, true) => Level::Thread(from.domain, from.thread),
            (true, false) => Level::Domain(from.domain),
            (false, _) => Level::Picture,
        }
    }
}

/// The piece of its lane that a net takes.
#[derive(Clone, Copy)]
struct Span {
    net: usize,
    level: Level,
    left: f64,
    right: f64,
}

/// The lanes of the nets that need one.
pub(super) struct Lanes {
    /// Level and place of each net that has a lane.
    of_net: Vec<Option<(Level, usize)>>,
    /// The pieces that are taken in the lanes of each level.
    taken: HashMap<Level, Vec<Vec<Span>>>,
}

impl Lanes {
    /// Shorter nets get higher lanes; two that do not overlap may share a lane.
    pub(super) fn new(plan: &Plan, lines: &[Line], nets: &[usize], turns: &[Turns]) -> Lanes {
        let mut of_net: Vec<Option<(Level, usize)>> = vec![None; nets.len()];
        let mut taken: HashMap<Level, Vec<Vec<Span>>> = HashMap::new();
        for span in spans(plan, lines, nets, turns) {
            let lanes = taken.entry(span.level).or_default();
            let apart = |other: &Span| other.right <= span.left || span.right <= other.left;
            let free = lanes.iter().position(|lane| lane.iter().all(apart));
            let place = free.unwrap_or(lanes.len());
            lanes.resize(lanes.len().max(place + 1), Vec::new());
            lanes[place].push(span);
            of_net[span.net] = Some((span.level, place));
        }
        Lanes { of_net, taken }
    }

    /// Height of the lanes of a level.
    pub(super) fn height(&self, level: Level) -> f64 {
        self.taken.get(&level).map_or(0.0, |lanes| LANE * (lanes.len() as f64 + 0.5))
    }

    /// The y of a net's lane; 0 if it has none.
    pub(super) fn y(&self, net: usize, layout: &Layout<'_>) -> f64 {
        let Some((level, place)) = self.of_net[net] else { return 0.0 };
        let (bottom, pad) = match level {
            Level::Thread(domain, thread) => (layout.threads[domain][thread].bottom(), 4.0),
            Level::Domain(domain) => (layout.domains[domain].bottom(), 4.0),
            Level::Picture => (
                layout.domains.iter().map(Rect::bottom).fold(0.0, f64::max) + self.height(level),
                0.0,
            ),
        };
        bottom - pad - self.height(level) + LANE * (place as f64 + 0.75)
    }
}

/// The pieces of lanes that the nets need, the shortest first.
fn spans(plan: &Plan, lines: &[Line], nets: &[usize], turns: &[Turns]) -> Vec<Span> {
    let mut spans: Vec<Option<Span>> = vec![None; nets.len()];
    for (at, line) in lines.iter().enumerate() {
        let Some(entry_x) = turns[at].entry_x else { continue };
        let (net, exit_x) = (nets[at], turns[at].exit_x);
        let level = Level::of(plan, line);
        let span = spans[net].get_or_insert(Span { net, level, left: exit_x, right: exit_x });
        span.left = span.left.min(entry_x);
        span.right = span.right.max(entry_x);
    }
    let mut spans: Vec<Span> = spans.into_iter().flatten().collect();
    spans.sort_by(|a, b| (a.right - a.left).total_cmp(&(b.right - b.left)));
    spans
}
