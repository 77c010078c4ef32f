//! Feeds a recording back into the graph's core, in this process and without realtime. Compares the
//! output with the recorded output, bit for bit.

mod ends;
mod files;
mod graphs;
mod player;
mod report;
mod tally;
#[cfg(test)]
mod tests;
mod thread;

use std::io;
use std::time::Duration;

pub use self::graphs::{Changes, Graphs, Refused};
pub use self::player::Player;
pub use self::report::ReplayReport;
pub use self::thread::RecordedThread;

/// Where a replay ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
    /// After this cycle of the first timer-released thread.
    Cycle(u64),
    /// This long after the first cycle.
    Time(Duration),
}

/// Called with each recorded cycle before it is replayed, and with its thread, by the place among
/// the recorded ones. It may block. `Ok(false)`: the user wants no more. An error: it cannot show
/// any more.
pub type Onlooker<'a> = Box<dyn FnMut(usize, &RecordedThread) -> io::Result<bool> + 'a>;
