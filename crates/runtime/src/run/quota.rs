//! How many events one speaker can make in a time. A speaker that writes or asks without end must
//! not drive out what the others have to say.

use sinew_control::status::{EventKind, Events};

/// How many events a second are kept; further ones are counted, and the count is reported.
const EVENTS_PER_S_MAX: u64 = 50;
const S_NS: u64 = 1_000_000_000;

/// Limits what one speaker may say.
pub(super) struct Quota {
    /// What it is counted in, in the plural.
    what: String,
    /// How many are kept in each time of length `time_ns`.
    most: u64,
    time_ns: u64,
    /// End of the time under way.
    until_ns: u64,
    /// How many there were in that time.
    count: u64,
}

impl Quota {
    /// Fifty a second.
    pub(super) fn of(what: &str) -> Quota {
        Quota::new(what.into(), EVENTS_PER_S_MAX, S_NS)
    }

    /// `most` events in `time_ns`.
    pub(super) fn new(what: String, most: u64, time_ns: u64) -> Quota {
        Quota { what, most, time_ns, until_ns: 0, count: 0 }
    }

    /// If the time is over, reports how much was left out in it.
    pub(super) fn look(&mut self, now_ns: u64, name: &str, events: &mut Events) {
        if now_ns >= self.until_ns {
            self.tell(name, events);
            self.until_ns = now_ns + self.time_ns;
        }
    }

    /// Reports how much was left out since the last report, and starts again from 0.
    pub(super) fn tell(&mut self, name: &str, events: &mut Events) {
        let over = self.count.saturating_sub(self.most);
        if over > 0 {
            let text = format!("{over} more {}, which are not kept", self.what);
            events.add(EventKind::Note, Some(name), text);
        }
        self.count = 0;
    }

    pub(super) fn is_over(&self) -> bool {
        self.count > self.most
    }

    pub(super) fn count(&mut self, count: u64) {
        self.count += count;
    }

    /// Counts one event; returns whether it is kept.
    pub(super) fn takes_one(&mut self) -> bool {
        self.count(1);
        !self.is_over()
    }

    /// Makes an event of it; returns whether it is kept.
    pub(super) fn say(
        &mut self,
        what: EventKind,
        domain: Option<&str>,
        text: &str,
        events: &mut Events,
    ) -> bool {
        let is_kept = self.takes_one();
        if is_kept {
            events.add(what, domain, text);
        }
        is_kept
    }
}
