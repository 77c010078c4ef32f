//! The bell: who hears it can sleep until it rings. A domain rings it for the supervisor when its
//! state has changed; each service has one of its own, for who holds a bell can fill it, and then
//! others may have to wait. Linux and a guest wake each other with two.

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

    /// Wakes who hears it.
    pub fn ring(&self) {
        // It is refused only when it has rung 2^64 times unheard: then it still rings.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Silences it. To be called before what it tells of is looked at. Never waits, also when a
    /// domain has taken O_NONBLOCK away from what both sides hold.
    pub fn hush(&self) {
        let (mut count, end) = ([0; 8], u64::MAX);
        // Silence is no failure.
        let _ = preadv2(&self.0, &mut [IoSliceMut::new(&mut count)], end, ReadWriteFlags::NOWAIT);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
