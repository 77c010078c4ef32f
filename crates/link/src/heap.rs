//! Regions for the unit tests.

use core::cell::UnsafeCell;
use core::ptr::NonNull;
use std::sync::Arc;

use crate::memory::Memory;
use crate::region::create_at;
use crate::shape::Shape;

#[repr(align(128))]
struct Line(#[expect(dead_code, reason = "only its bytes are used")] UnsafeCell<[u8; 128]>);

// SAFETY: lines are reached through `Memory` only, whose users bring their own order.
unsafe impl Sync for Line {}

/// Zeroed bytes of the heap, shared by clones.
#[derive(Clone)]
pub(crate) struct Heap(Arc<[Line]>);

// SAFETY: the lines are aligned to 128, stay where they are until the last clone is gone, and are
// all `UnsafeCell`.
unsafe impl Memory for Heap {
    fn base(&self) -> NonNull<u8> {
        NonNull::from(&*self.0).cast()
    }

    fn len(&self) -> usize {
        self.0.len() * 128
    }
}

impl Heap {
    /// Exactly as many lines as `shape` needs.
    pub(crate) fn of(shape: &Shape) -> Heap {
        let line = || Line(UnsafeCell::new([0; 128]));
        let lines = shape.region_len().div_ceil(128);
        Heap(core::iter::repeat_with(line).take(lines).collect())
    }

    /// A region that is made, with positions that begin at `start`.
    pub(crate) fn made(shape: &Shape, start: u32) -> Heap {
        let heap = Heap::of(shape);
        create_at(&heap, shape, start).expect("the shape is good and the heap is long enough");
        heap
    }

    /// Overwrites a word, as a lying peer would.
    pub(crate) fn set_word(&self, offset: usize, value: u32) {
        assert!(offset + 4 <= self.len());
        // SAFETY: inside the bytes; the test has no other thread.
        unsafe { self.base().byte_add(offset).cast::<u32>().write(value) }
    }
}

/// A message that shows its number in every byte.
pub(crate) fn pattern(number: u32, message: &mut [u8]) {
    for (i, byte) in message.iter_mut().enumerate() {
        *byte = number.to_le_bytes()[i % 4].wrapping_add((i / 4) as u8);
    }
}
