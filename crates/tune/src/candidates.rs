//! What is tried: the default, and what differs from it in one thing after another.

use sinew_link::{Shape, Tuning};
use sinew_plan::plan::{LinkTuning, SlotLayout};

/// Links are short or long; what is best for one is bad for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Few messages, which are to arrive soon: round trips are measured.
    Short,
    /// Many messages, which are to get through: a stream is measured.
    Long,
}

impl Length {
    /// Both.
    pub const ALL: [Length; 2] = [Length::Short, Length::Long];

    /// Messages that the links hold which are measured.
    pub fn capacity(self) -> u32 {
        match self {
            Length::Short => 8,
            Length::Long => 1024,
        }
    }

    /// Bytes of the messages that are measured.
    pub fn sizes(self) -> &'static [u32] {
        match self {
            Length::Short => &[8, 64, 256],
            Length::Long => &[64, 256],
        }
    }

    /// Gaps between two polls, ns; 0 is one PAUSE.
    fn gaps_ns(self) -> &'static [u32] {
        match self {
            Length::Short => &[0, 50, 200],
            Length::Long => &[0, 250, 500, 1000],
        }
    }

    /// How such links are without a machine profile.
    pub fn usual(self) -> LinkTuning {
        let shape = Shape::queue(8, 0, self.capacity());
        // Of a PAUSE that takes 1 ns there are as many in a gap as it has ns.
        let Tuning { eager_polls, pauses, fetches_ahead, hands_over, .. } = Tuning::of(&shape, 1);
        let layout = match shape.layout {
            sinew_link::Layout::Index => SlotLayout::Index,
            sinew_link::Layout::Sequence => SlotLayout::Sequence,
        };
        LinkTuning { layout, eager_polls, gap_ns: pauses, fetches_ahead, hands_over }
    }
}

/// Both layouts, each with every way to poll.
pub(crate) fn layouts_and_gaps(length: Length, from: LinkTuning) -> Vec<LinkTuning> {
    let usual = length.usual();
    let gap = |&gap_ns: &u32| (0, gap_ns);
    let polls = [(usual.eager_polls, usual.gap_ns)].into_iter();
    let polls: Vec<_> = polls.chain(length.gaps_ns().iter().map(gap)).collect();
    let layouts = SlotLayout::ALL.iter();
    let shape = |layout, &(eager_polls, gap_ns): &(u32, u32)| LinkTuning {
        layout,
        eager_polls,
        gap_ns,
        ..from
    };
    layouts.flat_map(|&(layout, _)| polls.iter().map(move |polls| shape(layout, polls))).collect()
}

/// With hand-over if it was without, and the other way round.
pub(crate) fn hand_over(_: Length, from: LinkTuning) -> Vec<LinkTuning> {
    vec![LinkTuning { hands_over: !from.hands_over, ..from }]
}

/// The same of fetching ahead.
pub(crate) fn fetch_ahead(_: Length, from: LinkTuning) -> Vec<LinkTuning> {
    vec![LinkTuning { fetches_ahead: !from.fetches_ahead, ..from }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_that_of_the_links_and_is_among_what_is_tried() {
        for length in Length::ALL {
            let usual = length.usual();
            let tuning = Tuning::of(&Shape::queue(8, 0, length.capacity()), 1);
            assert_eq!((usual.eager_polls, usual.gap_ns), (tuning.eager_polls, tuning.pauses));
            assert!(layouts_and_gaps(length, usual).contains(&usual));
        }
    }
}
