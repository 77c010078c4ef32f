//! Who logged a line.

use serde::{Deserialize, Serialize};
use sinew_core::Level;

/// How a [`Level`] is written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Level", rename_all = "snake_case")]
enum WrittenLevel {
    Info,
    Warning,
    Error,
}

/// The source of a line that a node of the core logged. The line itself is the end of the event's
/// text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// The node.
    pub node: String,
    /// How severe it is.
    #[serde(with = "WrittenLevel")]
    pub level: Level,
    /// Number of the cycle in which it was logged. The event's own time is when it was read.
    pub cycle: u64,
}
