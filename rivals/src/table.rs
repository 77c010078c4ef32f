//! The contenders: one entry for each contender, placement and access.

use sinew_lab::harness::Access::{self, Copied, InPlace};
use sinew_lab::harness::Placement::{self, Processes, Threads};
use sinew_lab::harness::{Found, Gone, What};

use crate::measure::Cell;
use crate::poll::Poll;
use crate::{iceoryx, rings, sinew, tachyon};

/// Messages that a link can hold, which is part of how a contender is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// For round trips.
    few: usize,
    /// For streams, which send as many messages as possible.
    many: usize,
}

/// The capacity of a ring.
const RING: Capacity = Capacity { few: 8, many: 1024 };
/// The capacity of a subscriber: iceoryx2 reuses the newest free memory, however much there is.
const SUBSCRIBER: Capacity = Capacity { few: 2, many: 1024 };
/// Most bytes of large messages in a link, because memory outside the caches costs every contender
/// more. But at least two messages, so that one can be written while the other is read.
const LINK_BYTES: usize = 1 << 20;

impl Capacity {
    /// Count of messages for a measure and a size.
    pub(crate) fn of(self, what: What, bytes: usize) -> usize {
        let asked = match what {
            What::RoundTrip => self.few,
            What::PerMessage => self.many,
        };
        asked.min((LINK_BYTES / bytes).max(2))
    }
}

/// Measures a cell.
pub(crate) type Measure = fn(&Cell) -> Result<Found, Gone>;

/// A contender.
pub(crate) struct Rival {
    /// Its name on the command line and in the table.
    pub(crate) name: &'static str,
    pub(crate) placement: Placement,
    pub(crate) access: Access,
    /// The ways in which its sides wait; a row for each.
    pub(crate) polls: &'static [Poll],
    pub(crate) capacity: Capacity,
    /// Sizes of its messages, in bytes.
    pub(crate) sizes: &'static [usize],
    /// How to measure it, or why it cannot be.
    pub(crate) measure: Result<Measure, &'static str>,
}

/// The names on the command line, each once.
pub(crate) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = RIVALS.iter().map(|rival| rival.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The name of our own contender.
pub(crate) const OURS: &str = "sinew";

/// Sizes for a queue that copies.
pub(crate) const SMALL: &[usize] = &[8, 48, 64, 256, 1024];
/// All sizes, from a word to a picture.
pub(crate) const ALL: &[usize] = &[8, 48, 64, 256, 1024, 8192, 65_536, 1_048_576];
/// Sizes of which a ring of bytes holds several messages.
const MIDDLE: &[usize] = &[8, 48, 64, 256, 1024, 8192, 65_536];

const fn ring<Q: rings::Ring>(polls: &'static [Poll]) -> Rival {
    Rival {
        name: Q::NAME,
        placement: Threads,
        access: Copied,
        polls,
        capacity: RING,
        sizes: SMALL,
        measure: Ok(rings::measure::<Q>),
    }
}

const fn ours(access: Access) -> Rival {
    let measure: Measure = sinew::between_processes;
    Rival {
        name: OURS,
        placement: Processes,
        access,
        polls: &[Poll::Gap],
        capacity: RING,
        sizes: ALL,
        measure: Ok(measure),
    }
}

const fn iceoryx2(placement: Placement, access: Access) -> Rival {
    let measure: Measure = match placement {
        Threads => iceoryx::between_threads,
        Processes => iceoryx::between_processes,
    };
    Rival {
        name: "iceoryx2",
        placement,
        access,
        polls: Poll::BOTH,
        capacity: SUBSCRIBER,
        sizes: ALL,
        measure: Ok(measure),
    }
}

const TACHYON: Rival = Rival {
    name: "tachyon-ipc",
    placement: Processes,
    access: Copied,
    polls: &[Poll::Own],
    capacity: RING,
    sizes: MIDDLE,
    measure: tachyon::MEASURE,
};

/// All contenders, in the order in which they are measured.
pub(crate) const RIVALS: &[Rival] = &[
    ring::<sinew::Sinew>(&[Poll::Gap]),
    ring::<rings::Rtrb>(Poll::BOTH),
    ring::<rings::Gil>(Poll::BOTH),
    ring::<rings::Nexus>(Poll::BOTH),
    ring::<rings::Ringbuf>(Poll::BOTH),
    ring::<rings::Crossbeam>(Poll::BOTH),
    ring::<rings::CrossbeamBlocking>(&[Poll::Own]),
    ring::<rings::Std>(Poll::BOTH),
    ring::<rings::StdBlocking>(&[Poll::Own]),
    iceoryx2(Threads, Copied),
    iceoryx2(Threads, InPlace),
    ours(Copied),
    ours(InPlace),
    iceoryx2(Processes, Copied),
    iceoryx2(Processes, InPlace),
    TACHYON,
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sinew_core::clock::Clock;
    use sinew_core::privileges;
    use sinew_lab::harness::Cpus;

    use super::*;
    use crate::measure::Form;

    #[test]
    fn every_contender_between_threads_brings_back_what_it_was_given() {
        let cpus = privileges::cpus().expect("affinity");
        let [near, far, ..] = cpus[..] else {
            return eprintln!("skipped: both sides spin, so this needs two CPUs");
        };
        let (cpus, clock, budget) = (Cpus { near, far }, Clock::calibrate(), Duration::ZERO);
        for rival in RIVALS.iter().filter(|rival| rival.placement == Threads) {
            let what = What::RoundTrip;
            let forms = rival.polls.iter().flat_map(|&poll| {
                rival.sizes.iter().map(move |&bytes| {
                    let capacity = rival.capacity.of(what, bytes);
                    Form { what, access: rival.access, bytes, capacity, poll }
                })
            });
            for form in forms {
                let measure = rival.measure.expect("all of them are built");
                let found = measure(&Cell { form, cpus, clock, budget });
                let found = found.unwrap_or_else(|gone| panic!("{}, {form}: {gone:?}", rival.name));
                assert!(found.values.n() > 0, "{}, {form}", rival.name);
            }
        }
    }

    #[test]
    fn a_large_message_has_room_for_one_more() {
        assert_eq!(RING.of(What::RoundTrip, 8), 8);
        assert_eq!(RING.of(What::PerMessage, 65_536), 16);
        assert_eq!(RING.of(What::RoundTrip, 1 << 20), 2);
    }
}
