//! How a pair of links is used, beside what they are: where the two sides run, and how the payload
//! gets in and out.

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
