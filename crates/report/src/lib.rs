//! What a run left behind: the figures of its cycles, which were late and why, as text, as one JSON
//! object and as CSV.

mod chain;
mod csv;
mod late;
mod memory;
mod report;
mod stats;

pub use self::chain::{Chained, Earlier};
pub use self::csv::Csv;
pub use self::late::Late;
pub use self::memory::{Memory, ProcessMemory};
pub use self::report::{Ending, Report};
#[cfg(any(test, feature = "fixture"))]
pub use self::stats::fixture;
pub use self::stats::{Extent, NodeStats, Observed, OverrunsBy, SignalStats, Stats, ThreadStats};
