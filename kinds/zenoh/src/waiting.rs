//! What waits to be sent, between the sender, who must not wait, and the thread that may.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Most messages of one port that wait. They wait longer than a moment only while the sending
/// thread hangs, and then they are soon too old to be obeyed.
const WAITING_MAX: usize = 16;

/// The queues of all outgoing ports.
#[derive(Debug)]
pub(crate) struct Waiting {
    places: Mutex<Places>,
    wake: Condvar,
}

#[derive(Debug)]
struct Places {
    /// One queue for each port: messages with their headers, the oldest first.
    ports: Vec<VecDeque<Vec<u8>>>,
    /// Where the search for the next one begins, so that no port waits for another.
    next: usize,
    /// The line whose thread may take. The thread of an earlier one may still hang in its last
    /// send.
    line: u64,
    /// Messages that were dropped for newer ones, or that zenoh refused.
    unsent: u64,
    /// Since when the thread has been sending one message.
    busy: Option<Instant>,
}

/// What the sending thread is to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A message of the port.
    Message(usize, Vec<u8>),
    /// It is time for a stamp.
    Stamp,
    /// Another thread sends now, or none.
    Over,
}

impl Waiting {
    pub(crate) fn new(ports: usize) -> Waiting {
        let ports = (0..ports).map(|_| VecDeque::with_capacity(WAITING_MAX)).collect();
        let places = Places { ports, next: 0, line: 0, unsent: 0, busy: None };
        Waiting { places: Mutex::new(places), wake: Condvar::new() }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message; never waits for the network. Returns whether there was room. If not, the
    /// oldest message of the port is dropped.
    pub(crate) fn put(&self, port: usize, bytes: Vec<u8>) -> bool {
        let mut places = self.places();
        let waiting = &mut places.ports[port];
        let had_room = waiting.len() < WAITING_MAX;
        if !had_room {
            waiting.pop_front();
        }
        waiting.push_back(bytes);
        places.unsent += u64::from(!had_room);
        drop(places);
        self.wake.notify_one();
        had_room
    }

    /// What the thread of `line` is to do next; blocks until there is something. The next stamp is
    /// due at `stamp`.
    pub(crate) fn next(&self, line: u64, stamp: Instant) -> Next {
        let mut places = self.places();
        places.busy = None;
        loop {
            if places.line != line {
                return Next::Over;
            }
            let now = Instant::now();
            if now >= stamp {
                places.busy = Some(now);
                return Next::Stamp;
            }
            let ports = places.ports.len();
            let from = places.next;
            let found = (0..ports).map(|it| (from + it) % ports).find_map(|port| {
                places.ports[port].pop_front().map(|bytes| Next::Message(port, bytes))
            });
            if let Some(found) = found {
                places.next = (places.next + 1) % ports;
                places.busy = Some(now);
                return found;
            }
            let left = stamp.saturating_duration_since(now);
            let woken = self.wake.wait_timeout(places, left);
            places = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Zenoh has refused a message.
    pub(crate) fn refused(&self) {
        self.places().unsent += 1;
    }

    /// Another line begins, or none: the thread of the one before ends as soon as it can.
    pub(crate) fn begin_line(&self) -> u64 {
        let mut places = self.places();
        places.line += 1;
        places.busy = None;
        let line = places.line;
        drop(places);
        self.wake.notify_all();
        line
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.places().unsent
    }

    /// Since when the sending thread has been sending one message.
    pub(crate) fn busy(&self) -> Option<Instant> {
        self.places().busy
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_sends_never_waits_and_no_port_waits_for_another() {
        let waiting = Waiting::new(2);
        let line = waiting.begin_line();
        let puts = (0..20).filter(|it| waiting.put(0, vec![*it])).count();
        assert_eq!((puts, waiting.unsent()), (WAITING_MAX, 4));
        assert!(waiting.put(1, vec![99]));
        let later = Instant::now() + Duration::from_secs(600);
        let taken = |_| match waiting.next(line, later) {
            Next::Message(port, bytes) => (port, bytes[0]),
            other => panic!("{other:?}"),
        };
        assert_eq!((0..3).map(taken).collect::<Vec<_>>(), [(0, 4), (1, 99), (0, 5)]);
        assert!(waiting.busy().is_some());
        assert_eq!(waiting.next(line, Instant::now()), Next::Stamp, "before any message");
        let next = waiting.begin_line();
        assert_eq!(waiting.next(line, later), Next::Over);
        assert_eq!(waiting.next(next, later), Next::Message(0, vec![6]));
    }
}
