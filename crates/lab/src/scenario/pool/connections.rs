//! A pool of connections to a database, as services have one. A request that finds all connections
//! busy waits for one, and keeps its thread while it waits.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use sinew_flow::queued_elsewhere;

use super::client::Connection;
use super::place::Place;

/// Connections, opened when they are first needed.
pub(super) struct Connections {
    place: Place,
    max: usize,
    state: Mutex<State>,
    /// Signalled when a connection is free, or when one may be opened again.
    freed: Condvar,
}

struct State {
    free: Vec<Connection>,
    open: usize,
}

impl Connections {
    /// A pool of at most this many connections.
    pub(super) fn new(place: Place, max: usize) -> Connections {
        let state = Mutex::new(State { free: Vec::new(), open: 0 });
        Connections { place, max, state, freed: Condvar::new() }
    }

    /// Reads the row with this key, over a free connection, as soon as there is one.
    pub(super) fn query(&self, id: u32, hangs: bool) -> Result<(), String> {
        let taken = queued_elsewhere(|| self.take());
        let asked = taken.map_or_else(|| Connection::open(&self.place), Ok).and_then(|mut it| {
            it.query(id, hangs)?;
            Ok(it)
        });
        let mut state = self.state();
        let answered = match asked {
            Ok(connection) => {
                state.free.push(connection);
                Ok(())
            }
            // After an error, the state of the connection is unknown.
            Err(why) => {
                state.open -= 1;
                Err(why)
            }
        };
        drop(state);
        self.freed.notify_one();
        answered
    }

    /// Waits for a free connection; `None` means that one may be opened.
    fn take(&self) -> Option<Connection> {
        let mut state = self.state();
        loop {
            if let Some(connection) = state.free.pop() {
                return Some(connection);
            }
            if state.open < self.max {
                state.open += 1;
                return None;
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No thread can panic while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
