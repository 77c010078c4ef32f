//! Rust's heap on that of FreeRTOS.

use core::alloc::{GlobalAlloc, Layout};

use crate::kernel;

/// What FreeRTOS's heap aligns to.
const ALIGNED: usize = 8;

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

// SAFETY: each piece is a piece of FreeRTOS's heap, or lies inside one with room to align it; in
// front of the latter stands where that piece begins.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            return kernel::allocate(layout.size());
        }
        let piece = kernel::allocate(layout.size() + layout.align());
        if piece.is_null() {
            return piece;
        }
        // The piece is aligned to 8, so at least 8 bytes lie in front of the next multiple.
        let skip = layout.align() - piece.addr() % layout.align();
        // SAFETY: `skip` is 8 to the alignment, and so much longer is the piece.
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
