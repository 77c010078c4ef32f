//! Lanes: where links run that do not end in the next column.

use crate::picture::layout::{Layout, Rect};
use crate::plan::{Link, Plan};

/// From lane to lane, px.
const LANE: f64 = 16.0;

/// Where lanes lie: below a thread, below all threads of a domain, below all domains.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Level {
    Thread(usize, usize),
    Domain(usize),
    Picture,
}

/// The lanes of the links that need one.
pub(super) struct Lanes {
    /// Level and place of each link that has a lane.
    of_link: Vec<Option<(Level, usize)>>,
}

impl Lanes {
    /// Shorter ways lie higher; two that do not meet may share a lane.
    pub(super) fn new(
        plan: &Plan,
        exits: &[f64],
        entries: &[f64],
        direct: impl Fn(&Link) -> bool,
    ) -> Lanes {
        let span = |at: usize| (exits[at].min(entries[at]), exits[at].max(entries[at]));
        let mut all: Vec<usize> =
            (0..plan.links.len()).filter(|&at| !direct(&plan.links[at])).collect();
        all.sort_by(|&a, &b| (span(a).1 - span(a).0).total_cmp(&(span(b).1 - span(b).0)));
        let mut of_link: Vec<Option<(Level, usize)>> = vec![None; plan.links.len()];
        for (done, &at) in all.iter().enumerate() {
            let (a, b) =
                (&plan.nodes[plan.links[at].from.node], &plan.nodes[plan.links[at].to.node]);
            let level = match (a.domain == b.domain, a.thread == b.thread) {
                (true, true) => Level::Thread(a.domain, a.thread),
                (true, false) => Level::Domain(a.domain),
                (false, _) => Level::Picture,
            };
            let meets = |other: usize| span(other).0 < span(at).1 && span(at).0 < span(other).1;
            let taken: Vec<usize> = all[..done]
                .iter()
                .filter(|&&other| meets(other))
                .filter_map(|&other| of_link[other])
                .filter(|(other, _)| *other == level)
                .map(|(_, place)| place)
                .collect();
            let free = (0..).find(|place| !taken.contains(place)).unwrap_or(0);
            of_link[at] = Some((level, free));
        }
        Lanes { of_link }
    }

    /// Height of the lanes of a level.
    pub(super) fn height(&self, level: Level) -> f64 {
        let here = self.of_link.iter().flatten().filter(|(other, _)| *other == level);
        here.map(|(_, place)| *place + 1).max().map_or(0.0, |count| LANE * (count as f64 + 0.5))
    }

    /// The y of a link's lane.
    pub(super) fn y(&self, link: usize, layout: &Layout) -> f64 {
        let Some((level, place)) = self.of_link[link] else { return 0.0 };
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
