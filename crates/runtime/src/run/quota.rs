//! How many events a service can make in a second. One that writes or asks without end must not
//! drive out what the others have to say.

use sinew_control::status::{EventKind, Events};

/// So many a second are kept; what is more is counted, and the count told.
const EVENTS_PER_S_MAX: u64 = 50;

/// What a service has to say, no more than is bearable.
pub(super) struct Quota {
    /// What it is counted in, in the plural.
    what: &'static str,
    /// End of the second under way.
    until_ns: u64,
    /// So many in it.
    count: u64,
}

impl Quota {
    pub(super) fn of(what: &'static str) -> Quota {
        Quota { what, until_ns: 0, count: 0 }
    }

    /// A second is over: says how much was left out in it.
    pub(super) fn look(&mut self, now_ns: u64, name: &str, events: &mut Events) {
        if now_ns < self.until_ns {
            return;
        }
        let over = self.count.saturating_sub(EVENTS_PER_S_MAX);
        if over > 0 {
            let text = format!("{over} more {}, which are not kept", self.what);
            events.add(EventKind::Note, Some(name), text);
        }
        (self.until_ns, self.count) = (now_ns + 1_000_000_000, 0);
    }

    pub(super) fn is_over(&self) -> bool {
        self.count > EVENTS_PER_S_MAX
    }

    /// Makes an event of it; whether it is kept.
    pub(super) fn say(
        &mut self,
        what: EventKind,
        domain: Option<&str>,
        text: &str,
        events: &mut Events,
    ) -> bool {
        self.count += 1;
        if !self.is_over() {
            events.add(what, domain, text);
        }
        !self.is_over()
    }
}
