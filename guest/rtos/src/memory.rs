//! The memory that the guest may access: the translation table, filled while it starts.
//!
//! Only mapped memory exists: the image's parts with the rights that each needs, the devices in
//! use, and from others' memory only the carve-out. Address 0 and the pages below stacks are not
//! mapped. Short descriptors: 1 MiB sections, and pages of 4 KiB where a section is too large.

use core::cell::UnsafeCell;
use core::ops::Range;

use crate::cpu;

/// Smallest piece with rights of its own.
pub(crate) const PAGE: usize = 4096;
const SECTION: usize = 1 << 20;
/// Second-level tables: one for each MiB that is mapped in pages. If more are needed, the guest
/// stops.
const PAGE_TABLES: usize = 24;
/// Addresses at which nodes see their stacks, each with an unmapped gap below it.
const STACKS: Range<usize> = 0x7800_0000..0x7900_0000;
/// Size of the gap: larger than any stack frame of a function here, so that no frame steps over it.
const GUARD: usize = 1 << 16;

/// Rights to a piece of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Read and run.
    Code,
    /// Read.
    Constant,
    /// Read and write; cached write-back, shared with other cores.
    Data,
    /// Read and write in order, never cached.
    Device,
}

impl Rights {
    /// The descriptor of a section, without its address.
    const fn section(self) -> u32 {
        let shared_write_back = 1 << 16 | 1 << 12 | 1 << 3 | 1 << 2;
        let (never_run, read_only, writable) = (1 << 4, 1 << 15 | 1 << 10, 1 << 10);
        2 | match self {
            Rights::Code => shared_write_back | read_only,
            Rights::Constant => shared_write_back | read_only | never_run,
            Rights::Data => shared_write_back | writable | never_run,
            Rights::Device => 1 << 2 | writable | never_run,
        }
    }

    /// The descriptor of a page, without its address.
    const fn page(self) -> u32 {
        let shared_write_back = 1 << 10 | 1 << 6 | 1 << 3 | 1 << 2;
        let (never_run, read_only, writable) = (1, 1 << 9 | 1 << 4, 1 << 4);
        2 | match self {
            Rights::Code => shared_write_back | read_only,
            Rights::Constant => shared_write_back | read_only | never_run,
            Rights::Data => shared_write_back | writable | never_run,
            Rights::Device => 1 << 2 | writable | never_run,
        }
    }
}

#[repr(C, align(16384))]
struct Tables {
    sections: [u32; 4096],
    pages: [[u32; 256]; PAGE_TABLES],
    pages_used: usize,
    /// Bytes in use of the memory for stacks, and the address of the next stack.
    stacks_used: usize,
    next_stack: usize,
}

struct Shared(UnsafeCell<Tables>);

// SAFETY: only `map` and `start` touch it, before the scheduler starts, on the one core.
unsafe impl Sync for Shared {}

static TABLES: Shared = Shared(UnsafeCell::new(Tables {
    sections: [0; 4096],
    pages: [[0; 256]; PAGE_TABLES],
    pages_used: 0,
    stacks_used: 0,
    next_stack: STACKS.start,
}));

unsafe extern "C" {
    static __text_start: u8;
    static __text_end: u8;
    static __rodata_start: u8;
    static __rodata_end: u8;
    static __data_start: u8;
    static __data_end: u8;
    static __supervisor_stack_start: u8;
    static __supervisor_stack_end: u8;
    static __exception_stacks_start: u8;
    static __exception_stacks_end: u8;
    static __stacks_of_nodes_start: u8;
    static __stacks_of_nodes_end: u8;
}

/// Maps the image and these devices (address, bytes), then switches translation on.
///
/// # Safety
/// Must be called once, while translation is off.
pub(crate) unsafe fn start(devices: &[(usize, usize)]) {
    let parts = [
        (&raw const __text_start, &raw const __text_end, Rights::Code),
        (&raw const __rodata_start, &raw const __rodata_end, Rights::Constant),
        (&raw const __data_start, &raw const __data_end, Rights::Data),
        (&raw const __supervisor_stack_start, &raw const __supervisor_stack_end, Rights::Data),
        (&raw const __exception_stacks_start, &raw const __exception_stacks_end, Rights::Data),
    ];
    for (start, end, rights) in parts {
        map(start.addr(), start.addr(), end.addr() - start.addr(), rights);
    }
    for &(address, len) in devices {
        map(address, address, len, Rights::Device);
    }
    // SAFETY: the whole image and every device in use are mapped at their own addresses.
    unsafe { cpu::map_by(TABLES.0.get().cast()) };
}

/// Maps `len` bytes at addresses that were not mapped before. Must not be called once tasks run.
///
/// # Panics
/// The addresses or the length are not multiples of a page, or no page table is left.
pub(crate) fn map(address: usize, physical: usize, len: usize, rights: Rights) {
    assert!((address | physical | len).is_multiple_of(PAGE), "{address:#x} {physical:#x} {len:#x}");
    // SAFETY: one core, no tasks yet, and no other borrow: see `Shared`.
    let tables = unsafe { &mut *TABLES.0.get() };
    let mut done = 0;
    while done < len {
        let (at, to) = (address + done, physical + done);
        let is_whole = (at | to).is_multiple_of(SECTION) && len - done >= SECTION;
        if is_whole {
            tables.sections[at / SECTION] = to as u32 | rights.section();
            done += SECTION;
        } else {
            tables.map_page(at, to as u32 | rights.page());
            done += PAGE;
        }
    }
    // A core does not cache the absence of a mapping, so a barrier is enough.
    cpu::barrier();
}

/// Maps a stack of at least `len` bytes, with a gap below it; `None` if no memory is left for it.
/// Returns its lowest byte and its length. Must not be called once tasks run.
pub(crate) fn stack(len: usize) -> Option<(*mut u32, usize)> {
    let len = len.next_multiple_of(PAGE);
    let (start, end) =
        ((&raw const __stacks_of_nodes_start).addr(), (&raw const __stacks_of_nodes_end).addr());
    // SAFETY: as in `map`, and no other borrow is alive.
    let (used, next) = unsafe { ((*TABLES.0.get()).stacks_used, (*TABLES.0.get()).next_stack) };
    let (physical, address) = (start + used, next + GUARD);
    if physical + len > end || address + len > STACKS.end {
        return None;
    }
    map(address, physical, len, Rights::Data);
    // SAFETY: as above; `map` has returned.
    unsafe {
        (*TABLES.0.get()).stacks_used += len;
        (*TABLES.0.get()).next_stack = address + len;
    }
    Some((address as *mut u32, len))
}

/// Whether this address is in the range of stacks: an abort there means that a stack is used up.
pub(crate) fn is_below_a_stack(address: usize) -> bool {
    STACKS.contains(&address)
}

impl Tables {
    fn map_page(&mut self, address: usize, descriptor: u32) {
        let section = &mut self.sections[address / SECTION];
        if *section == 0 {
            assert!(self.pages_used < PAGE_TABLES, "{PAGE_TABLES} page tables are in use");
            *section = self.pages[self.pages_used].as_ptr().addr() as u32 | 1;
            self.pages_used += 1;
        }
        let base = self.pages.as_ptr().addr();
        let table = (*section as usize & !0x3ff).wrapping_sub(base) / 1024;
        self.pages[table][address / PAGE % 256] = descriptor;
    }
}
