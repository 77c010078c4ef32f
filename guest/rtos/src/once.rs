//! A value that is written once while the guest starts, and from then on only read.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

/// Empty, then a value for ever.
pub(crate) struct Once<T> {
    value: UnsafeCell<MaybeUninit<T>>,
    is_set: AtomicBool,
}

// SAFETY: the value is written before `is_set`, once, and then only shared.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    pub(crate) const fn new() -> Once<T> {
        let value = UnsafeCell::new(MaybeUninit::uninit());
        Once { value, is_set: AtomicBool::new(false) }
    }

    /// Must be called only by the start, which nothing interrupts.
    ///
    /// # Panics
    /// It was set before.
    pub(crate) fn set(&self, value: T) -> &T {
        // Acquire and release: the handler of a fault may read it at any time.
        assert!(!self.is_set.load(Ordering::Acquire), "set twice");
        // SAFETY: nobody has a reference yet, as `is_set` is false, and one core runs the start.
        let value = unsafe { (*self.value.get()).write(value) };
        self.is_set.store(true, Ordering::Release);
        value
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: written before `is_set` was, and never again.
        self.is_set
            .load(Ordering::Acquire)
            .then(|| unsafe { (*self.value.get()).assume_init_ref() })
    }
}
