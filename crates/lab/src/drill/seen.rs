//! What a drill saw of another host.

use serde::{Deserialize, Serialize};

/// How the drilled host saw another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenHost {
    /// From the fault until the drilled host's run reported that the other host is silent.
    pub silent_ms: Option<u64>,
    /// From the end of the fault until the run reported that the other host is heard.
    pub heard_ms: Option<u64>,
    /// Messages that were dropped for their age.
    pub late: u64,
    /// Messages that did not arrive, or found no room.
    pub lost: u64,
    /// Messages that were refused.
    pub refused: u64,
}
