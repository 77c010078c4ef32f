//! Failures on purpose, for drills: the carve-out says which, and before which cycle.

use core::arch::asm;
use core::hint::black_box;

use sinew_carve_out::Trial;
use sinew_link::Memory;

use crate::{Fault, board, fault, guest, say};

/// Prints which failure it will cause, then causes it. Most do not return.
pub(crate) fn act(trial: Trial) -> Result<(), Fault> {
    if trial != Trial::None {
        say!("guest: injected by a drill: {trial:?}");
    }
    match trial {
        Trial::None => {}
        Trial::Error | Trial::FailStart => return Err(fault!("injected by a drill")),
        Trial::Panic => panic!("injected by a drill"),
        Trial::StackOverflow => drop(dig(1)),
        Trial::Garbage => litter(),
        // SAFETY: each of these ends the guest, or the node, as intended.
        Trial::Undefined => unsafe { asm!("udf #0") },
        // SAFETY: as above.
        Trial::DataAbort => drop(unsafe { (past() as *const u8).read_volatile() }),
        // SAFETY: as above.
        Trial::PrefetchAbort => unsafe { asm!("bx {}", in(reg) past(), options(noreturn)) },
        // SAFETY: as above. The compiler could remove a loop in Rust.
        Trial::Loop => unsafe { asm!("1: b 1b", options(noreturn)) },
    }
    Ok(())
}

/// The first byte past the carve-out.
fn past() -> usize {
    board::CARVE_OUT + carve_out_len()
}

fn carve_out_len() -> usize {
    guest::get().map_or(0, |guest| guest.carve_out.memory().len())
}

/// Uses 1 KiB of stack for each level, without end.
#[inline(never)]
fn dig(level: u32) -> u32 {
    let room = black_box([level; 256]);
    if level == 0 { room[0] } else { dig(level + 1) + black_box(room)[255] }
}

/// Writes garbage over the whole carve-out, including the words of Linux and our own.
fn litter() {
    let mut word = 0x9e37_79b9_u32;
    for at in (0..carve_out_len()).step_by(4) {
        // Marsaglia's xorshift: it produces every word except 0.
        word ^= word << 13;
        word ^= word >> 17;
        word ^= word << 5;
        // SAFETY: inside the carve-out, which only atomics refer to. Both sides must tolerate
        // nonsense in it, and this is what the drill tests.
        unsafe { ((board::CARVE_OUT + at) as *mut u32).write_volatile(word) };
    }
}
