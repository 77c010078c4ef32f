//! The candidates: the default, and variants that differ from it in one property after another.

use sinew_link::{Shape, Tuning};
use sinew_plan::plan::{LinkClass, LinkTuning, SlotLayout};

/// How the links of a class are measured.
pub(crate) struct Measured {
    /// In words.
    pub(crate) what: &'static str,
    /// Messages that they hold.
    pub(crate) capacity: u32,
    /// Bytes of their messages.
    pub(crate) sizes: &'static [u32],
    /// Gaps between two polls that are tried, ns; 0 is one PAUSE.
    gaps_ns: &'static [u32],
    /// Whether many messages go through, one after another; otherwise one message goes there and
    /// back.
    pub(crate) is_stream: bool,
}

/// All classes, in the order of [`LinkClass::ALL`].
const MEASURED: [Measured; LinkClass::ALL.len()] = [
    Measured {
        what: "small messages, of 60 B at most, in links of 16 at most: a round trip",
        capacity: 8,
        sizes: &[8, 48],
        gaps_ns: &[0, 50, 200],
        is_stream: false,
    },
    Measured {
        what: "short links, of 16 longer messages at most: a round trip",
        capacity: 8,
        sizes: &[64, 256],
        gaps_ns: &[0, 50, 200],
        is_stream: false,
    },
    Measured {
        what: "long links: a message of a stream",
        capacity: 1024,
        sizes: &[64, 256],
        gaps_ns: &[0, 250, 500, 1000],
        is_stream: true,
    },
];

/// How links of this class are measured.
pub(crate) fn measured(class: LinkClass) -> &'static Measured {
    &MEASURED[class as usize]
}

/// The tuning of links of this class without a machine profile.
pub(crate) fn usual(class: LinkClass) -> LinkTuning {
    let Measured { capacity, sizes, .. } = *measured(class);
    let shape = Shape::queue(sizes[0], 0, capacity);
    // With a PAUSE of 1 ns, the number of PAUSEs in a gap is its length in ns.
    let Tuning { eager_polls, pauses, fetches_ahead, hands_over, .. } = Tuning::of(&shape, 1);
    let layout = match shape.layout {
        sinew_link::Layout::Index => SlotLayout::Index,
        sinew_link::Layout::Sequence => SlotLayout::Sequence,
    };
    LinkTuning { layout, eager_polls, gap_ns: pauses, fetches_ahead, hands_over }
}

/// Both layouts, each with every way to poll.
pub(crate) fn layouts_and_gaps(class: LinkClass, from: LinkTuning) -> Vec<LinkTuning> {
    let usual = usual(class);
    let gap = |&gap_ns: &u32| (0, gap_ns);
    let polls = [(usual.eager_polls, usual.gap_ns)].into_iter();
    let polls: Vec<_> = polls.chain(measured(class).gaps_ns.iter().map(gap)).collect();
    let layouts = SlotLayout::ALL.iter();
    let shape = |layout, &(eager_polls, gap_ns): &(u32, u32)| LinkTuning {
        layout,
        eager_polls,
        gap_ns,
        ..from
    };
    layouts.flat_map(|&(layout, _)| polls.iter().map(move |polls| shape(layout, polls))).collect()
}

/// With hand-over if `from` is without, and vice versa.
pub(crate) fn hand_over(_: LinkClass, from: LinkTuning) -> Vec<LinkTuning> {
    vec![LinkTuning { hands_over: !from.hands_over, ..from }]
}

/// The same for fetching ahead. Small messages are never fetched, so there is nothing to try.
pub(crate) fn fetch_ahead(class: LinkClass, from: LinkTuning) -> Vec<LinkTuning> {
    match class {
        LinkClass::Small => vec![],
        LinkClass::Short | LinkClass::Long => {
            vec![LinkTuning { fetches_ahead: !from.fetches_ahead, ..from }]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_that_of_the_links_and_is_among_what_is_tried() {
        for &(class, _) in LinkClass::ALL {
            let usual = usual(class);
            assert!(layouts_and_gaps(class, usual).contains(&usual));
            let Measured { capacity, sizes, .. } = *measured(class);
            for &size in sizes {
                assert_eq!(LinkClass::of(size, capacity), class);
                let shape = Shape::queue(size, 0, capacity);
                let tuning = Tuning::of(&shape, 1);
                assert_eq!((usual.eager_polls, usual.gap_ns), (tuning.eager_polls, tuning.pauses));
                let is_index = shape.layout == sinew_link::Layout::Index;
                assert_eq!(usual.layout == SlotLayout::Index, is_index);
            }
        }
    }
}
