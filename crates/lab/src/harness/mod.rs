//! Two sides and a pair of links between them, one there and one back: what every contender looks
//! like, ours or a rival's, and how it is timed.
//!
//! The far side answers until it is told to stop ([`answer`]); it may run on a thread
//! ([`on_threads`]) or in another process ([`process`]). The near side measures: [`round_trips`]
//! one at a time, [`stream`] as many as go; [`time`] either for a given time. Beside it runs the
//! [`token`], the least that a round trip can cost: before and after each, it is the
//! [`reference`](mod@reference).

mod batches;
mod delayed;
pub mod in_place;
pub mod process;
pub mod reference;
mod timed;

pub(crate) use batches::{THOUSAND, batches};
pub use delayed::{Delayed, Socket};
pub(crate) use sinew_tune::sides::other_pages;
pub use sinew_tune::sides::{
    Cpus, Gone, Life, Patience, SILENT_NS_MAX, Side, Waits, answer, on_thread, on_threads,
    round_trips, stay_on, stop, stream, token,
};
pub(crate) use timed::of_means;
pub use timed::{Found, What, time};

use crate::words::words;

words! {
    /// Where the two sides run.
    pub enum Placement {
        /// On two threads of one process.
        Threads = "threads",
        /// In two processes.
        Processes = "processes",
    }
}

words! {
    /// How the payload gets into the link and out of it.
    pub enum Access {
        /// Written in full into a buffer, which is copied; on the other side the same backwards.
        Copied = "copied",
        /// Written and read in the slot itself.
        InPlace = "in_place",
    }
}
