//! What one side of a link does for speed alone: how often it polls, and what it asks of its core's
//! caches. None of it is stored in the region, so each side may have its own tuning, and any choice
//! works with any choice of the other side.

use crate::shape::{SHORT_MAX, Shape};

/// How long a PAUSE is assumed to take where nobody has measured it, ns. It takes from 10 to 60,
/// depending on the processor.
const PAUSE_NS: u32 = 25;
/// Gap between two polls of a short link, once the first ones have found nothing, ns. Between CPUs
/// that are far from each other (a token of 340 ns on an AMD EPYC) round trips were shorter by 10
/// to 15 % than with one PAUSE.
const GAP_NS: u32 = 50;
/// Gap between two polls of a long link, ns. A long link is for many messages: a reader that has
/// caught up and polls at once takes the writer's line away for every single message.
const LONG_GAP_NS: u32 = 500;
/// Polls with one PAUSE between them at the start of a wait in a short link. A near peer answers
/// within them: with a gap from the start, a round trip of 65 ns took 115. Through the runtime's
/// ends, a round trip of 256 B takes more than 4 polls.
const EAGER_POLLS: u32 = 8;
/// How long [`Wait::SpinThenPark`](crate::Wait::SpinThenPark) polls before it sleeps, ns: about
/// what a futex wake costs.
const SPIN_NS: u32 = 20_000;

/// How a side polls and treats cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Polls at the start of each wait that have one PAUSE between them.
    pub eager_polls: u32,
    /// PAUSEs between two polls after those; at least 1 is made. Each poll of a line that the peer
    /// is about to write takes that line away from the peer's core.
    pub pauses: u32,
    /// PAUSEs of a wait that polls before it sleeps.
    pub pauses_before_park: u32,
    /// Whether a writer fetches lines some messages before it writes them; in a short link it does
    /// so only for messages that are longer than a line.
    pub fetches_ahead: bool,
    /// Whether a writer has its core give up the lines of a message, so that the reader's core gets
    /// them sooner.
    pub hands_over: bool,
}

impl Tuning {
    /// What suits a link of this shape: a short link is for a message to arrive soon, a long one
    /// for many messages to get through. `pause_ns` is how long a PAUSE takes; 0 counts as 1.
    pub const fn of(shape: &Shape, pause_ns: u32) -> Tuning {
        let is_short = shape.capacity <= SHORT_MAX;
        let pause_ns = if pause_ns == 0 { 1 } else { pause_ns };
        let gap_ns = if is_short { GAP_NS } else { LONG_GAP_NS };
        Tuning {
            eager_polls: if is_short { EAGER_POLLS } else { 0 },
            pauses: gap_ns.div_ceil(pause_ns),
            pauses_before_park: SPIN_NS.div_ceil(pause_ns),
            fetches_ahead: true,
            hands_over: is_short,
        }
    }

    /// The same for a processor of which nothing is known.
    pub(crate) const fn usual(shape: &Shape) -> Tuning {
        Tuning::of(shape, PAUSE_NS)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_short_link_polls_eagerly_and_a_long_one_lets_messages_gather() {
        let short = Tuning::of(&Shape::queue(8, 0, SHORT_MAX), 24);
        assert_eq!((short.eager_polls, short.pauses), (EAGER_POLLS, 3));
        let long = Tuning::of(&Shape::queue(8, 0, 2 * SHORT_MAX), 24);
        assert_eq!((long.eager_polls, long.pauses), (0, 21));
    }
}
