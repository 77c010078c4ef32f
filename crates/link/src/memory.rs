//! Where the bytes of a region come from.

use core::ptr::NonNull;
#[cfg(all(test, loom))]
use std::collections::HashMap;

/// Bytes that both sides can reach.
///
/// # Safety
/// `base` is aligned to 128 and points at `len` readable and writable bytes, the same for every
/// call. They stay in place until the value and all its clones and copies are gone. Any thread may
/// use them, and nobody holds a Rust reference to them except to atomics.
#[expect(clippy::len_without_is_empty, reason = "an empty region holds no link")]
pub unsafe trait Memory {
    /// The first byte.
    fn base(&self) -> NonNull<u8>;
    /// How many bytes.
    fn len(&self) -> usize;
    /// The words and payloads that stand for the bytes under loom.
    #[cfg(all(test, loom))]
    fn cells(&self) -> &LoomCells;
}

/// Bytes that live for the rest of the program: fixed memory, or memory that is never given back.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(all(test, loom), expect(dead_code, reason = "loom has memory of its own"))]
pub struct RawMemory {
    base: NonNull<u8>,
    len: usize,
}

impl RawMemory {
    /// `len` bytes at `base`.
    ///
    /// # Safety
    /// The requirements of [`Memory`] hold for as long as any copy of the value is in use.
    pub const unsafe fn new(base: NonNull<u8>, len: usize) -> RawMemory {
        RawMemory { base, len }
    }
}

// SAFETY: the value is an address; the caller of `new` promised that any thread may use the bytes.
unsafe impl Send for RawMemory {}
// SAFETY: as for `Send`.
unsafe impl Sync for RawMemory {}

#[cfg(not(all(test, loom)))]
// SAFETY: the caller of `new` promised it.
unsafe impl Memory for RawMemory {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.len
    }
}

// SAFETY: a borrow gives the same bytes as what it borrows.
unsafe impl<M: Memory> Memory for &M {
    fn base(&self) -> NonNull<u8> {
        (**self).base()
    }

    fn len(&self) -> usize {
        (**self).len()
    }

    #[cfg(all(test, loom))]
    fn cells(&self) -> &LoomCells {
        (**self).cells()
    }
}

/// A part of other memory that holds several things.
#[cfg(not(all(test, loom)))]
#[derive(Clone, Copy, Debug)]
pub struct PieceMemory<M> {
    whole: M,
    offset: usize,
    len: usize,
}

#[cfg(not(all(test, loom)))]
impl<M: Memory> PieceMemory<M> {
    /// `len` bytes from `offset` on. `None` if they are not all inside, or do not begin at a
    /// multiple of 128.
    pub fn new(whole: M, offset: usize, len: usize) -> Option<PieceMemory<M>> {
        let is_inside = offset.checked_add(len).is_some_and(|end| end <= whole.len());
        (is_inside && offset.is_multiple_of(128)).then_some(PieceMemory { whole, offset, len })
    }
}

// SAFETY: the bytes are part of those of `whole`, aligned to 128 as `new` checked, and live as
// long.
#[cfg(not(all(test, loom)))]
unsafe impl<M: Memory> Memory for PieceMemory<M> {
    fn base(&self) -> NonNull<u8> {
        // SAFETY: inside, as `new` has checked; length and base of `whole` never change.
        unsafe { self.whole.base().byte_add(self.offset) }
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Loom's words and payloads, by offset in the region. Public because [`Memory`] names it.
#[cfg(all(test, loom))]
pub struct LoomCells {
    /// Every word, also those of payloads.
    pub words: HashMap<usize, loom::sync::atomic::AtomicU32>,
    /// Every payload as a whole.
    pub payloads: HashMap<usize, loom::cell::UnsafeCell<std::vec::Vec<u8>>>,
}

// SAFETY: what is not an atomic is loom's cell, which detects every race.
#[cfg(all(test, loom))]
unsafe impl Send for LoomCells {}
// SAFETY: as for `Send`.
#[cfg(all(test, loom))]
unsafe impl Sync for LoomCells {}
