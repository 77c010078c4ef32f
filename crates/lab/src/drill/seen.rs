//! What a drill saw of another host.

use serde::{Deserialize, Serialize};
use sinew_control::status::HostStatus;

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
    /// Messages under the key of another port or host.
    #[serde(default)]
    pub misplaced: u64,
    /// Messages that came before both hosts had heard each other.
    #[serde(default)]
    pub early: u64,
}

impl SeenHost {
    /// Counts what was not obeyed between two looks.
    pub(super) fn count(&mut self, before: &HostStatus, after: &HostStatus) {
        let more = |of: fn(&HostStatus) -> u64| of(after).saturating_sub(of(before));
        self.late = more(|it| it.late);
        self.lost = more(|it| it.lost);
        self.refused = more(|it| it.refused);
        self.misplaced = more(|it| it.misplaced);
        self.early = more(|it| it.early);
    }
}
