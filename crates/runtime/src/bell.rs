//! The bell: a domain rings it when its state has changed, so that the supervisor can sleep.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd that both sides hold.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    /// A new one.
    pub(crate) fn create() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// The one that the parent made.
    pub(crate) fn adopt(file: OwnedFd) -> Bell {
        Bell(file)
    }

    /// Wakes the supervisor.
    pub(crate) fn ring(&self) {
        // It is refused only when it has rung 2^64 times unheard: then it still rings.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Silences it. To be called before what it tells of is looked at.
    pub(crate) fn hush(&self) {
        // Silence is no failure.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
