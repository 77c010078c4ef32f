//! What a node has to say again and again is said now and then, with how often it happened.

use sinew_core::clock::now_ns;

use crate::tell;

/// Between two words, ns.
const TELL_NS: u64 = 10_000_000_000;

/// Something that goes wrong now and then.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    count: u64,
    told: u64,
    next_ns: u64,
}

impl Complaint {
    /// It has happened so often more; `say` tells it, with the whole count, if it is time.
    pub(crate) fn add(&mut self, count: u64, say: impl FnOnce(u64) -> String) {
        self.count += count;
        let now_ns = now_ns();
        if self.count > self.told && now_ns >= self.next_ns {
            (self.told, self.next_ns) = (self.count, now_ns + TELL_NS);
            tell(&say(self.count));
        }
    }
}
