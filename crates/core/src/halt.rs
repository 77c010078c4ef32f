//! What the threads of a domain share about stopping: the flag that they look at, and the one
//! report of what went wrong.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::bell::Bell;
use crate::board::{Board, BoardState, DomainOrder, FaultAt};

/// What the threads of a domain share about stopping.
#[derive(Debug)]
pub struct Halt {
    board: Board,
    bell: Bell,
    /// [`Halt::STOP`] once the domain is to stop. A signal handler may set it.
    flag: Arc<AtomicUsize>,
    faulted: AtomicBool,
    /// Held by the thread that writes to the board, so that a fault there is not overwritten.
    writing: Mutex<()>,
}

impl Halt {
    /// The flag's value for stop; with any other value the domain runs.
    pub const STOP: usize = 1;

    /// For a domain that reports on this board and rings this bell.
    pub fn new(board: Board, bell: Bell) -> Halt {
        let (flag, faulted) = (Arc::new(AtomicUsize::new(0)), AtomicBool::new(false));
        Halt { board, bell, flag, faulted, writing: Mutex::new(()) }
    }

    /// For a signal handler, which may store [`Halt::STOP`] there.
    pub fn flag(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.flag)
    }

    /// Whether the domain is to stop: a thread, a signal or the parent wants it.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        // Relaxed: the flag carries nothing but itself.
        self.flag.load(Ordering::Relaxed) == Self::STOP
            || self.board.current_order() == DomainOrder::Stop
    }

    /// Makes all threads of the domain stop.
    pub fn stop(&self) {
        // Relaxed: as above.
        self.flag.store(Self::STOP, Ordering::Relaxed);
    }

    /// Reports that the domain is in `state`, unless it already faulted or is in a later state.
    pub fn reached(&self, state: BoardState) {
        self.raise(state);
        self.ring();
    }

    fn raise(&self, state: BoardState) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_faulted() && (self.board.state() as u32) < state as u32 {
            self.board.set_state(state);
        }
    }

    /// Called in a cycle, so it rings no bell: the domain's main thread does when it sees the stop.
    pub fn finish(&self) {
        self.stop();
        self.raise(BoardState::Finished);
    }

    /// Wakes the supervisor.
    pub fn ring(&self) {
        self.bell.ring();
    }

    /// Reports a fault; the first one counts.
    pub fn fault(&self, at: FaultAt) {
        self.stop();
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: writers are kept apart by the lock; for others it carries nothing but itself.
        if !self.faulted.swap(true, Ordering::Relaxed) {
            self.board.report(&at);
            self.bell.ring();
        }
    }

    /// Whether any thread faulted.
    #[inline]
    pub fn is_faulted(&self) -> bool {
        // Relaxed: as above.
        self.faulted.load(Ordering::Relaxed)
    }
}
