//! What the threads of the core count themselves.

/// What a thread has counted itself in this life of the core. It stands in every record, so the
/// newest one tells of all cycles, also of those whose records nobody has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Cycles of the control loop: neither failed nor of a stop. All others but `stopping_cycles`
    /// are of these.
    pub cycles: u64,
    /// The other ones.
    pub stopping_cycles: u64,
    /// Past their deadline or without their feedback.
    pub overruns: u64,
    /// Whole periods lost.
    pub skipped: u64,
    /// Cycles that ran because their input stayed away.
    pub without_input: u64,
    /// Cycles whose feedback stayed away.
    pub without_feedback: u64,
}

impl Totals {
    /// What was counted since then. Of a new life that is all.
    pub fn since(self, before: Totals) -> Totals {
        self.each(before, u64::saturating_sub)
    }

    /// Both, figure by figure. What a domain writes may be anything: it stops at the greatest
    /// number.
    fn plus(self, other: Totals) -> Totals {
        self.each(other, u64::saturating_add)
    }

    fn each(self, other: Totals, of: fn(u64, u64) -> u64) -> Totals {
        Totals {
            cycles: of(self.cycles, other.cycles),
            stopping_cycles: of(self.stopping_cycles, other.stopping_cycles),
            overruns: of(self.overruns, other.overruns),
            skipped: of(self.skipped, other.skipped),
            without_input: of(self.without_input, other.without_input),
            without_feedback: of(self.without_feedback, other.without_feedback),
        }
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
        let of = |n| Totals {
            cycles: n,
            stopping_cycles: 2 * n,
            overruns: 3 * n,
            skipped: 4 * n,
            without_input: 5 * n,
            without_feedback: 6 * n,
        };
        assert_eq!(of(9).since(of(4)), of(5));
        assert_eq!(of(1).since(of(4)), Totals::default(), "nonsense is no panic");
    }

    #[test]
    fn a_new_life_adds_to_the_lives_before() {
        let of = |cycles| Totals { cycles, overruns: 1, ..Totals::default() };
        let mut tally = Tally::default();
        // Records may be lost: what counts is the newest one of each life.
        [(0, 3), (0, 7), (1, 1), (1, 4)].iter().for_each(|&(life, n)| tally.take(life, of(n)));
        assert_eq!((tally.total().cycles, tally.total().overruns), (11, 2));
        tally.take(u32::MAX, of(u64::MAX));
        assert_eq!(tally.total().cycles, u64::MAX, "nonsense is no panic");
    }
}
