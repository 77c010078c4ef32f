//! Rust's allocator on the heap of FreeRTOS.

use core::alloc::{GlobalAlloc, Layout};

use crate::kernel;

/// Alignment of FreeRTOS's heap.
const ALIGNED: usize = 8;

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

// SAFETY: each piece is a piece of FreeRTOS's heap, or lies inside one with room to align it. In
// the latter case the word before it holds the address at which the FreeRTOS piece begins.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            return kernel::allocate(layout.size());
        }
        let piece = kernel::allocate(layout.size() + layout.align());
        if piece.is_null() {
            return piece;
        }
        // The piece is aligned to 8, so at least 8 bytes are before the next multiple.
        let skip = layout.align() - piece.addr() % layout.align();
        // SAFETY: `skip` is from 8 up to the alignment, and the piece is that much longer.
        unsafe {
            let aligned = piece.add(skip);
            aligned.cast::<*mut u8>().sub(1).write(piece);
            aligned
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `alloc` gave the memory for this layout.
        unsafe {
            match layout.align() <= ALIGNED {
                true => kernel::free(memory),
                false => kernel::free(memory.cast::<*mut u8>().sub(1).read()),
            }
        }
    }
}
