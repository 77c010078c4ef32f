//! Who takes part: one row for each contender, placement and access.

use sinew_lab::harness::Gone;

use self::Placement::{Processes, Threads};
use crate::measure::Access::{self, Copied, InPlace};
use crate::measure::{Cell, Found, What};
use crate::{iceoryx, rings, sinew, tachyon};

/// Between two threads or two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    Threads,
    Processes,
}

impl Placement {
    /// The value on the axis.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Threads => "threads",
            Processes => "processes",
        }
    }
}

/// How many messages a link holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capacity {
    /// Of a queue between threads: 8 for round trips, 1024 for as many as go.
    Ring,
    /// Of a link between processes: 2 for round trips, else as many as fit into [`LINK_BYTES`].
    Shared,
}

/// Bytes of messages in a link between processes: what stays in the second cache.
const LINK_BYTES: usize = 1 << 20;

impl Capacity {
    /// Messages, for a measure and a size.
    pub(crate) fn of(self, what: What, bytes: usize) -> usize {
        match (self, what) {
            (Capacity::Ring, What::RoundTrip) => 8,
            (Capacity::Ring, What::PerMessage) => 1024,
            (Capacity::Shared, What::RoundTrip) => 2,
            (Capacity::Shared, What::PerMessage) => (LINK_BYTES / bytes).clamp(2, 1024),
        }
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
    pub(crate) capacity: Capacity,
    /// Of its messages, in bytes.
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

/// Ours among them.
pub(crate) const OURS: &str = "sinew";

/// What fits a queue that copies.
pub(crate) const SMALL: &[usize] = &[8, 48, 64, 256, 1024];
/// From a word to a picture.
pub(crate) const ALL: &[usize] = &[8, 48, 64, 256, 1024, 8192, 65_536, 1_048_576];
/// What a ring of bytes still holds some of.
const MIDDLE: &[usize] = &[8, 48, 64, 256, 1024, 8192, 65_536];

const fn ring<Q: rings::Ring>() -> Rival {
    Rival {
        name: Q::NAME,
        placement: Threads,
        access: Copied,
        capacity: Capacity::Ring,
        sizes: SMALL,
        measure: Ok(rings::measure::<Q>),
    }
}

const fn shared(
    name: &'static str,
    placement: Placement,
    access: Access,
    sizes: &'static [usize],
    measure: Result<Measure, &'static str>,
) -> Rival {
    Rival { name, placement, access, capacity: Capacity::Shared, sizes, measure }
}

/// All of them, in the order in which they are measured.
pub(crate) const RIVALS: &[Rival] = &[
    ring::<sinew::Sinew>(),
    ring::<rings::Rtrb>(),
    ring::<rings::Gil>(),
    ring::<rings::Nexus>(),
    ring::<rings::Ringbuf>(),
    ring::<rings::Crossbeam>(),
    ring::<rings::CrossbeamBlocking>(),
    ring::<rings::Std>(),
    ring::<rings::StdBlocking>(),
    shared("iceoryx2", Threads, Copied, ALL, Ok(iceoryx::between_threads)),
    shared("iceoryx2", Threads, InPlace, ALL, Ok(iceoryx::between_threads)),
    shared(OURS, Processes, Copied, ALL, Ok(sinew::between_processes)),
    shared(OURS, Processes, InPlace, ALL, Ok(sinew::between_processes)),
    shared("iceoryx2", Processes, Copied, ALL, Ok(iceoryx::between_processes)),
    shared("iceoryx2", Processes, InPlace, ALL, Ok(iceoryx::between_processes)),
    shared("tachyon-ipc", Processes, Copied, MIDDLE, tachyon::MEASURE),
];
