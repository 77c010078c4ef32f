//! Two sides and a pair of links between them, one in each direction: the form of every contender,
//! ours or a rival's, and how it is timed.
//!
//! The far side answers until it is told to stop ([`answer`]). It may run on a thread
//! ([`on_threads`]) or in another process ([`process`]). The near side measures: [`round_trips`]
//! one at a time, [`stream`] as many as the link takes; [`time`] does either for a given time.
//! Before and after each measurement the [`token`] is measured, which is the least that a round
//! trip can cost: it is the [`reference`](mod@reference).

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
        /// Written in full into a buffer, which is copied; on the other side copied and then read.
        Copied = "copied",
        /// Written and read in the slot itself.
        InPlace = "in_place",
    }
}
