//! What a thread can sleep on until another one wakes it: one type for each primitive of the kernel
//! or of the standard library.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::futex;
use sinew_core::sys::PosixSemaphore;

use super::case::SyncOperation;
use crate::harness::Gone;

/// Something to sleep on. Rings are numbered from 1, and none is lost: a thread that comes after
/// its ring does not sleep.
pub(super) trait Alarm: Sync {
    /// Does what must be done before ring `number` and is not part of its time.
    fn prepare(&self, _number: u32) {}

    /// Wakes the sleeper.
    fn ring(&self) -> io::Result<()>;

    /// Sleeps until ring `number`; it must be the same thread each time.
    fn sleep(&self, number: u32) -> io::Result<()>;
}

/// The alarm of this operation.
pub(super) fn alarm(operation: SyncOperation) -> Result<Box<dyn Alarm + Send>, Gone> {
    let failed = |error: io::Error| Gone(format!("no {}: {error}", operation.word()));
    Ok(match operation {
        SyncOperation::Condvar => Box::new(Notified::default()),
        SyncOperation::Futex => Box::new(Futex(AtomicU32::new(0))),
        SyncOperation::Eventfd => {
            let file = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
            Box::new(Eventfd(file))
        }
        SyncOperation::Semaphore => Box::new(PosixSemaphore::create().map_err(failed)?),
        SyncOperation::Park => Box::new(Parked::default()),
        other => return Err(Gone(format!("nobody sleeps on '{}'", other.word()))),
    })
}

/// A number behind a mutex, and a condition variable for the thread that waits for it.
#[derive(Default)]
pub(super) struct Notified {
    number: Mutex<u32>,
    changed: Condvar,
}

impl Notified {
    /// Sets the number and wakes the thread that waits for it.
    pub(super) fn send(&self, number: u32) {
        self.set(number);
        self.changed.notify_one();
    }

    fn set(&self, number: u32) {
        *self.number.lock().unwrap_or_else(PoisonError::into_inner) = number;
    }

    /// Sleeps until the number is this one, or a greater one.
    pub(super) fn await_number(&self, number: u32) {
        let held = self.number.lock().unwrap_or_else(PoisonError::into_inner);
        let held = self.changed.wait_while(held, |found| *found < number);
        drop(held.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Alarm for Notified {
    fn prepare(&self, number: u32) {
        self.set(number);
    }

    fn ring(&self) -> io::Result<()> {
        self.changed.notify_one();
        Ok(())
    }

    fn sleep(&self, number: u32) -> io::Result<()> {
        self.await_number(number);
        Ok(())
    }
}

struct Futex(AtomicU32);

impl Alarm for Futex {
    fn prepare(&self, number: u32) {
        // Relaxed, here and below: the kernel compares the word, and no other data is handed over.
        self.0.store(number, Ordering::Relaxed);
    }

    fn ring(&self) -> io::Result<()> {
        futex::wake(&self.0, futex::Flags::PRIVATE, 1)?;
        Ok(())
    }

    fn sleep(&self, number: u32) -> io::Result<()> {
        loop {
            let found = self.0.load(Ordering::Relaxed);
            if found >= number {
                return Ok(());
            }
            match futex::wait(&self.0, futex::Flags::PRIVATE, found, None) {
                Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

struct Eventfd(OwnedFd);

impl Alarm for Eventfd {
    fn ring(&self) -> io::Result<()> {
        rustix::io::write(&self.0, &1_u64.to_ne_bytes())?;
        Ok(())
    }

    fn sleep(&self, _: u32) -> io::Result<()> {
        let mut count = [0_u8; 8];
        rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut count))?;
        Ok(())
    }
}

impl Alarm for PosixSemaphore {
    fn ring(&self) -> io::Result<()> {
        self.post()
    }

    fn sleep(&self, _: u32) -> io::Result<()> {
        self.wait()
    }
}

#[derive(Default)]
struct Parked {
    number: AtomicU32,
    sleeper: OnceLock<Thread>,
}

impl Alarm for Parked {
    fn prepare(&self, number: u32) {
        // Relaxed, here and below: unpark and park order it.
        self.number.store(number, Ordering::Relaxed);
    }

    fn ring(&self) -> io::Result<()> {
        // A sleeper that has not come yet does not sleep yet, and will find the number.
        if let Some(sleeper) = self.sleeper.get() {
            sleeper.unpark();
        }
        Ok(())
    }

    fn sleep(&self, number: u32) -> io::Result<()> {
        self.sleeper.get_or_init(thread::current);
        while self.number.load(Ordering::Relaxed) < number {
            thread::park();
        }
        Ok(())
    }
}
