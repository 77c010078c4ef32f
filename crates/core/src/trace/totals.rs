//! What the threads of the core count themselves.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

/// What a thread has counted itself in this life of the core. It is part of every record, so the
/// newest record tells of all cycles, also of those whose records nobody has read.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout,
)]
#[repr(C)]
pub struct Totals {
    /// Cycles of the control loop: neither failed nor of a stop. The other fields, except
    /// `stopping_cycles` and those of messages, count only these cycles.
    pub cycles: u64,
    /// The cycles that failed or were of a stop.
    pub stopping_cycles: u64,
    /// Cycles past their deadline or without their feedback.
    pub overruns: u64,
    /// Whole periods lost.
    pub skipped: u64,
    /// Cycles that ran because their input stayed away.
    pub without_input: u64,
    /// Cycles whose feedback stayed away.
    pub without_feedback: u64,
    /// Messages that the thread's links have lost on their way in.
    pub messages_lost: u64,
    /// Messages that it has dropped at full queues.
    pub messages_dropped: u64,
}

impl Totals {
    /// What was counted since `before`. In a new life that is everything.
    pub fn since(self, before: Totals) -> Totals {
        self.each(before, u64::saturating_sub)
    }

    /// The sum, figure by figure. A domain may write anything, so a sum stops at the greatest
    /// number.
    fn plus(self, other: Totals) -> Totals {
        self.each(other, u64::saturating_add)
    }

    fn each(self, other: Totals, of: fn(u64, u64) -> u64) -> Totals {
        let [own, others]: [[u64; 8]; 2] = [transmute!(self), transmute!(other)];
        let each: [u64; 8] = std::array::from_fn(|at| of(own[at], others[at]));
        transmute!(each)
    }
}

/// The totals of a thread over all lives of the core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    earlier: Totals,
    now: Totals,
    life: u32,
}

impl Tally {
    /// Takes what the record of a cycle says, see [`Record::life`](super::Record::life) and
    /// [`Record::totals`](super::Record::totals).
    pub fn take(&mut self, life: u32, totals: Totals) {
        if life != self.life {
            (self.earlier, self.life) = (self.total(), life);
        }
        self.now = totals;
    }

    /// In all.
    pub fn total(&self) -> Totals {
        self.earlier.plus(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_since_a_record_tells_of_lost_ones_too() {
        let of =
            |n| -> Totals { transmute!([1, 2, 3, 4, 5, 6, 7, 8].map(|figure: u64| figure * n)) };
        assert_eq!(of(9).since(of(4)), of(5));
        assert_eq!(of(1).since(of(4)), Totals::default(), "nonsense is not a panic");
    }

    #[test]
    fn a_new_life_adds_to_the_lives_before() {
        let of = |cycles| Totals { cycles, overruns: 1, ..Totals::default() };
        let mut tally = Tally::default();
        // Records may be lost: what counts is the newest one of each life.
        [(0, 3), (0, 7), (1, 1), (1, 4)].iter().for_each(|&(life, n)| tally.take(life, of(n)));
        assert_eq!((tally.total().cycles, tally.total().overruns), (11, 2));
        tally.take(u32::MAX, of(u64::MAX));
        assert_eq!(tally.total().cycles, u64::MAX, "nonsense is not a panic");
    }
}
