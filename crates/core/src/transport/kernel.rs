//! What waiting needs of Linux.

use std::sync::atomic::AtomicU32;

use rustix::thread::{futex, sched_yield};

use crate::clock::now_ns;
use crate::sys::timespec;

/// What waiting needs of Linux. For ends of `sinew_link` that are used without a transport.
#[derive(Clone, Copy, Debug)]
pub struct Kernel;

impl sinew_link::Os for Kernel {
    fn yield_now(&self) {
        sched_yield();
    }

    fn futex_wait(&self, word: &AtomicU32, expected: u32, timeout_ns: u64) {
        // However it ends, with an error or not, the caller looks again. It is called without the
        // private flag, because the waker may be another process.
        let timeout = timespec(timeout_ns);
        let _ = futex::wait(word, futex::Flags::empty(), expected, Some(&timeout));
    }

    fn futex_wake(&self, word: &AtomicU32) {
        // It fails only for an address that is not mapped.
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }
}
