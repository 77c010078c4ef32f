//! Kind `trouble`: misbehaves in one way in one cycle.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::arch::asm;
use core::hint::black_box;

use sinew_guest::{Cycle, Fault, GuestNode, Io, Kind, KindRecord, Parameters, fault, numbers};

/// The order to stop, as the number that Linux writes into the carve-out.
const STOP: u32 = 2;

/// The kind's row in the table.
pub(crate) const KIND: Kind = Kind {
    record: KindRecord::new(
        "trouble",
        "Does one wrong thing: 1 a bad instruction, 2 runs where nothing is, 3 reads at `address`, \
         4 breaks a promise of FreeRTOS, 5 uses up its stack, 6 all memory, 7 panics, 8 returns a \
         fault, 9 runs data, 10 writes code, 11 never returns, 12 stops the core, 13 writes at \
         `address`, 14 writes the order to stop there.",
        8 * 1024,
        &[],
        &[
            numbers("what", "Which, see the kind.", "", "8", 1, (0.0, 14.0)),
            numbers("cycle", "In which cycle.", "", "10", 1, (0.0, 1e9)),
            numbers("address", "Where, as the guest sees it.", "", "0", 1, (0.0, 4_294_967_295.0)),
        ],
        &[],
    ),
    make,
};

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn GuestNode>, Fault> {
    Ok(Box::new(Node {
        what: parameters.number("what") as u32,
        cycle: parameters.number("cycle") as u64,
        address: parameters.number("address") as usize,
    }))
}

struct Node {
    what: u32,
    cycle: u64,
    address: usize,
}

impl GuestNode for Node {
    fn update(&mut self, _: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if cycle.number == self.cycle { self.act() } else { Ok(()) }
    }
}

unsafe extern "C" {
    fn xQueueGenericReset(queue: *mut u8, is_new: i32) -> i32;
}

impl Node {
    fn act(&self) -> Result<(), Fault> {
        // SAFETY: each of these ends the guest, which the tests check; the order is a word that may
        // hold anything.
        unsafe {
            match self.what {
                1 => asm!("udf #0"),
                2 => jump(0x5000_0000),
                3 => drop((self.address as *const u8).read_volatile()),
                4 => drop(xQueueGenericReset(core::ptr::null_mut(), 0)),
                5 => drop(dig(1)),
                6 => loop {
                    core::mem::forget(black_box(Vec::<u8>::with_capacity(1 << 16)));
                },
                7 => panic!("on purpose"),
                8 => return Err(fault!("on purpose, in cycle {}", self.cycle)),
                9 => jump(Box::leak(Box::new(0xe12f_ff1e_u32)) as *const u32 as usize),
                10 => (jump as *mut u8).write_volatile(0),
                11 => asm!("1: b 1b", options(noreturn)),
                12 => asm!("cpsid if", "1: wfi", "b 1b", options(noreturn)),
                13 => (self.address as *mut u8).write_volatile(0),
                14 => (self.address as *mut u32).write_volatile(STOP),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Calls the code at an address.
///
/// # Safety
/// There is a function, or a fault is intended.
unsafe fn jump(address: usize) {
    // SAFETY: the caller's promise.
    unsafe { core::mem::transmute::<usize, extern "C" fn()>(address)() }
}

/// Uses 1 KiB of stack for each level, without end.
#[inline(never)]
fn dig(level: u32) -> u32 {
    let room = black_box([level; 256]);
    if level == 0 { room[0] } else { dig(level + 1) + black_box(room)[255] }
}
