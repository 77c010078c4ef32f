//! Reports a repeated problem only now and then, with how often it happened.

use sinew_core::clock::now_ns;
use sinew_runtime::service::tell;

/// Interval between two reports, ns.
const TELL_NS: u64 = 10_000_000_000;

/// A problem that may happen repeatedly.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    count: u64,
    told: u64,
    next_ns: u64,
}

impl Complaint {
    /// It has happened `count` times more; `say` reports it, with the total, if it is time.
    pub(crate) fn add(&mut self, count: u64, say: impl FnOnce(u64) -> String) {
        self.count += count;
        let now_ns = now_ns();
        if self.count > self.told && now_ns >= self.next_ns {
            (self.told, self.next_ns) = (self.count, now_ns + TELL_NS);
            tell(say(self.count));
        }
    }
}
