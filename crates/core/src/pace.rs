//! How fast a run goes.

/// How fast a run goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// By the periods of the plan.
    #[default]
    AsPlanned,
    /// As fast as possible: to measure what a cycle costs, and later to replay a run.
    ///
    /// A timer-released thread begins its next cycle as soon as the feedback of the last one is
    /// back; the other threads wait for their input without napping. Nodes are told the planned
    /// period. No cycle is late, but feedback that stays away for a second is a fault. The trace
    /// holds every cycle, so nobody has to read it meanwhile. The stop is at the planned pace.
    Free {
        /// After this many cycles the run finishes, as if a node had said so; 1 to
        /// [`Pace::FREE_CYCLES_MAX`].
        cycles: u64,
    },
}

impl Pace {
    /// Most cycles of a free run. All their records are kept in locked memory: some 20 MiB for each
    /// thread. For more cycles start the graph again.
    pub const FREE_CYCLES_MAX: u64 = 100_000;

    /// Cycles of a free run.
    pub fn free_cycles(self) -> Option<u64> {
        match self {
            Pace::AsPlanned => None,
            Pace::Free { cycles } => Some(cycles),
        }
    }
}
