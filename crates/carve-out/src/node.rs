//! The nodes that a guest runs, and the work of each so far.

use sinew_link::{Memory, SharedWords};

use crate::number_enum;
use crate::text::Name;

/// Most numbers in the parameters of a node together.
pub const VALUES_MAX: usize = 48;
/// Most counters of a node.
pub const COUNTERS_MAX: usize = 8;

pub(crate) const ROW_BYTES: usize = 512;
pub(crate) const STATUS_BYTES: usize = 128;

const TRIAL: usize = ROW_BYTES - 8;

const _: () = assert!(72 + VALUES_MAX * 8 <= TRIAL);

number_enum! {
    /// A failure on purpose in a guest, for drills.
    Trial {
        /// Nothing.
        None = 0,
        /// The node returns an error.
        Error = 1,
        /// The node panics.
        Panic = 2,
        /// An instruction that does not exist is executed.
        Undefined = 3,
        /// The first byte past the carve-out is read.
        DataAbort = 4,
        /// Code is fetched from the first byte past the carve-out.
        PrefetchAbort = 5,
        /// The node uses more stack than it has.
        StackOverflow = 6,
        /// The node never returns from its update.
        Loop = 7,
        /// The node refuses to be made.
        FailStart = 8,
        /// The whole carve-out is overwritten with garbage.
        Garbage = 9,
    }
}

/// A node that the guest is to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeRow {
    /// Its kind, by the image's table.
    pub kind: Name,
    /// Its name in the graph.
    pub name: Name,
    /// Nominal spacing of its cycles.
    pub period_us: u32,
    /// The values of its parameters in sequence, in the order of the kind's table.
    pub values: [f64; VALUES_MAX],
    /// Count of values.
    pub value_count: u32,
    /// The failure on purpose, and the cycle before which it comes.
    pub trial: (Trial, u32),
}

impl NodeRow {
    pub(crate) fn write<M: Memory>(&self, words: &SharedWords<M>, at: usize) {
        self.kind.write(words, at);
        self.name.write(words, at + 32);
        words.set(at + 64, self.period_us);
        words.set(at + 68, self.value_count);
        words.set(at + TRIAL, self.trial.0 as u32);
        words.set(at + TRIAL + 4, self.trial.1);
        for (i, value) in self.values.iter().enumerate() {
            let bits = value.to_bits();
            words.set(at + 72 + i * 8, bits as u32);
            words.set(at + 76 + i * 8, (bits >> 32) as u32);
        }
    }

    pub(crate) fn read<M: Memory>(words: &SharedWords<M>, at: usize) -> Option<NodeRow> {
        let value_count = words.get(at + 68);
        let value = |i: usize| {
            let (low, high) = (words.get(at + 72 + i * 8), words.get(at + 76 + i * 8));
            f64::from_bits(u64::from(low) | u64::from(high) << 32)
        };
        (value_count as usize <= VALUES_MAX).then(|| NodeRow {
            kind: Name::read(words, at),
            name: Name::read(words, at + 32),
            period_us: words.get(at + 64),
            values: core::array::from_fn(value),
            value_count,
            // An unknown number means no failure.
            trial: (
                Trial::of(words.get(at + TRIAL)).unwrap_or(Trial::None),
                words.get(at + TRIAL + 4),
            ),
        })
    }
}

/// The work of a node so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeTally {
    /// Updates, modulo 2^32: its heartbeat.
    pub cycles: u32,
    /// Cycles that were still under way when the next was due, modulo 2^32.
    pub overruns: u32,
    /// Longest update.
    pub execution_us_max: u32,
    /// Messages received, lost before they were read, sent, and dropped for lack of room, modulo
    /// 2^32.
    pub messages: [u32; 4],
    /// The counters of its kind, in the order of the kind's table, modulo 2^32.
    pub counters: [u32; COUNTERS_MAX],
}

impl NodeTally {
    pub(crate) fn write<M: Memory>(&self, words: &SharedWords<M>, at: usize) {
        let NodeTally { cycles, overruns, execution_us_max, messages, counters } = *self;
        for (i, counter) in messages.into_iter().chain(counters).enumerate() {
            words.set(at + 12 + i * 4, counter);
        }
        words.set(at + 8, execution_us_max);
        words.set(at + 4, overruns);
        // Last, as the other side watches this word.
        words.set(at, cycles);
    }

    pub(crate) fn read<M: Memory>(words: &SharedWords<M>, at: usize) -> NodeTally {
        NodeTally {
            cycles: words.get(at),
            overruns: words.get(at + 4),
            execution_us_max: words.get(at + 8),
            messages: core::array::from_fn(|i| words.get(at + 12 + i * 4)),
            counters: core::array::from_fn(|i| words.get(at + 28 + i * 4)),
        }
    }
}
