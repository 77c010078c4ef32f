//! The bell: a process that listens to it can sleep until it rings. A domain rings it for the
//! supervisor when its state has changed. Each service has a bell of its own, because a process
//! that holds a bell can fill it, and then others may have to wait. Linux and a guest wake each
//! other with two bells.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{ReadWriteFlags, preadv2};

/// An eventfd that both sides hold.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A new one.
    pub fn create() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// The one that the parent made.
    pub fn adopt(file: OwnedFd) -> Bell {
        Bell(file)
    }

    /// The same one, with a descriptor of its own.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn try_clone(&self) -> io::Result<Bell> {
        self.0.try_clone().map(Bell)
    }

    /// Wakes the process that listens to it.
    pub fn ring(&self) {
        // The write is refused only after 2^64 unheard rings: then the bell still rings.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Silences it. Call this before looking at what it announces. Never waits, even if a domain
    /// has cleared O_NONBLOCK of the file that both sides hold.
    pub fn hush(&self) {
        let (mut count, end) = ([0; 8], u64::MAX);
        // A bell that does not ring is no failure.
        let _ = preadv2(&self.0, &mut [IoSliceMut::new(&mut count)], end, ReadWriteFlags::NOWAIT);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
