//! The report of a run: the figures of its cycles, which cycles were late and why, as text, as one
//! JSON object and as CSV.

mod chain;
mod csv;
mod late;
mod links;
mod report;
mod requirements;
mod stats;
mod usage;

pub use self::chain::{Chained, Earlier};
pub use self::csv::Csv;
pub use self::late::Late;
pub use self::links::{LinkStats, Links};
pub use self::report::{Ending, Report};
pub use self::requirements::{Judged, Kept, judge, judge_cpu, judge_latency};
#[cfg(any(test, feature = "fixture"))]
pub use self::stats::fixture;
pub use self::stats::{Extent, NodeStats, Observed, OverrunsBy, SignalStats, Stats, ThreadStats};
pub use self::usage::{ProcessUsage, Usage};
