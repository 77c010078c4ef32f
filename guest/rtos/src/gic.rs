//! The interrupt controller GICv2.

use crate::board;

/// Priority of interrupts that may call FreeRTOS: below `configMAX_API_CALL_INTERRUPT_PRIORITY`, as
/// a larger number is a lower priority.
pub(crate) const PRIORITY: u8 = 200;
/// Lowest priority that still interrupts; the port needs it for its ticks.
pub(crate) const PRIORITY_OF_TIMER: u8 = 254;
/// The interrupt number that the controller returns when nothing is pending.
pub(crate) const SPURIOUS: u32 = 1020;

const ENABLE_SET: usize = 0x100;
const ENABLE_CLEAR: usize = 0x180;
const PENDING_CLEAR: usize = 0x280;
const PRIORITIES: usize = 0x400;
const TARGETS: usize = 0x800;
const CONFIG: usize = 0xc00;

/// Switches it on, with every interrupt off.
pub(crate) fn start() {
    let lines = ((distributor(0x004).read() & 0x1f) + 1) * 32;
    for at in 0..lines as usize / 32 {
        distributor(ENABLE_CLEAR + at * 4).write(u32::MAX);
        distributor(PENDING_CLEAR + at * 4).write(u32::MAX);
    }
    distributor(0).write(1);
    // All priorities pass, none is a subpriority, and it is on.
    board::GIC_CPU.at(0x4).write(0xff);
    board::GIC_CPU.at(0x8).write(0);
    board::GIC_CPU.at(0x0).write(1);
}

/// Lets an interrupt reach this core.
pub(crate) fn enable(id: u32, priority: u8, is_pulse: bool) {
    let id = id as usize;
    set_byte(PRIORITIES + id, priority);
    // The first 32 belong to this core and have no target.
    if id >= 32 {
        set_byte(TARGETS + id, 1);
        let config = distributor(CONFIG + id / 16 * 4);
        let bit = 2 << (id % 16 * 2);
        config.write(if is_pulse { config.read() | bit } else { config.read() & !bit });
    }
    distributor(ENABLE_SET + id / 32 * 4).write(1 << (id % 32));
}

fn distributor(offset: usize) -> board::Register {
    board::GIC_DISTRIBUTOR.at(offset)
}

fn set_byte(offset: usize, byte: u8) {
    let word = distributor(offset & !3);
    let shift = (offset & 3) * 8;
    word.write(word.read() & !(0xff << shift) | u32::from(byte) << shift);
}
