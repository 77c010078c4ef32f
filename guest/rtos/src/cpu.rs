//! What every ARMv7-A core has: system registers, caches, its generic timer.

use core::arch::asm;

/// Reads a register of coprocessor 15.
macro_rules! read_cp15 {
    ($op1:literal, $crn:literal, $crm:literal, $op2:literal) => {{
        let value: u32;
        // SAFETY: reading these registers has no effect.
        unsafe {
            asm!(concat!("mrc p15, ", $op1, ", {}, ", $crn, ", ", $crm, ", ", $op2),
                out(reg) value, options(nomem, nostack, preserves_flags));
        }
        value
    }};
}

/// Writes a register of coprocessor 15. Its caller argues why that is sound.
macro_rules! write_cp15 {
    ($op1:literal, $crn:literal, $crm:literal, $op2:literal, $value:expr) => {
        asm!(concat!("mcr p15, ", $op1, ", {}, ", $crn, ", ", $crm, ", ", $op2),
            in(reg) $value, options(nostack, preserves_flags))
    };
}

/// Status of the last data abort.
pub(crate) fn dfsr() -> u32 {
    read_cp15!("0", "c5", "c0", "0")
}

/// Address of the last data abort.
pub(crate) fn dfar() -> u32 {
    read_cp15!("0", "c6", "c0", "0")
}

/// Status of the last prefetch abort.
pub(crate) fn ifsr() -> u32 {
    read_cp15!("0", "c5", "c0", "1")
}

/// Address of the last prefetch abort.
pub(crate) fn ifar() -> u32 {
    read_cp15!("0", "c6", "c0", "2")
}

/// Completes every access before it ahead of any access after it.
pub(crate) fn barrier() {
    // SAFETY: barriers only order.
    unsafe { asm!("dsb sy", "isb", options(nostack, preserves_flags)) };
}

/// No interrupt reaches this core from now on.
pub(crate) fn interrupts_off() {
    // SAFETY: fewer interrupts than any code here counts on.
    unsafe { asm!("cpsid if", options(nostack, preserves_flags)) };
}

/// Sleeps until an interrupt is pending.
pub(crate) fn sleep() {
    // SAFETY: it only waits.
    unsafe { asm!("dsb sy", "wfi", options(nostack, preserves_flags)) };
}

/// Switches address translation and caches on.
///
/// # Safety
/// The table maps everything in use at its own address.
pub(crate) unsafe fn map_by(table: *const u32) {
    /// Domain 0 obeys the rights in the table, the others are off.
    const CLIENT: u32 = 1;
    /// Walks go through caches: inner and outer write-back, write-allocate, shared.
    const WALKS: u32 = 1 << 6 | 1 << 3 | 1 << 1;
    /// Instruction cache, branch prediction, data cache, translation.
    const ON: u32 = 1 << 12 | 1 << 11 | 1 << 2 | 1;
    /// Alignment faults, type remapping, access flag.
    const OFF: u32 = 1 << 1 | 1 << 28 | 1 << 29;
    let control = read_cp15!("0", "c1", "c0", "0") & !OFF | ON;
    // SAFETY: the caller's promise; translation was off, so no entry of it is cached.
    unsafe {
        barrier();
        write_cp15!("0", "c2", "c0", "2", 0);
        write_cp15!("0", "c2", "c0", "0", table as u32 | WALKS);
        write_cp15!("0", "c3", "c0", "0", CLIENT);
        // Translations, instructions, branches.
        write_cp15!("0", "c8", "c7", "0", 0);
        write_cp15!("0", "c7", "c5", "0", 0);
        write_cp15!("0", "c7", "c5", "6", 0);
        barrier();
        write_cp15!("0", "c1", "c0", "0", control);
        barrier();
    }
}

/// Bytes of a line of the data cache; the smallest of all levels.
fn cache_line() -> usize {
    4 << ((read_cp15!("0", "c0", "c0", "1") >> 16) & 0xf)
}

/// Writes back the contents of the data caches for these bytes (DCCMVAC).
pub(crate) fn clean(start: usize, len: usize) {
    for line in (start & !(cache_line() - 1)..start + len).step_by(cache_line()) {
        // SAFETY: to clean a line changes no value that this core sees.
        unsafe { write_cp15!("0", "c7", "c10", "1", line) };
    }
    barrier();
}

/// Cleans, then drops the contents of the data caches for these bytes (DCCIMVAC). Not DCIMVAC: at
/// the ends of the range that would lose a neighbour's writes in the same line.
pub(crate) fn clean_and_invalidate(start: usize, len: usize) {
    for line in (start & !(cache_line() - 1)..start + len).step_by(cache_line()) {
        // SAFETY: cleaned first, so no value is lost.
        unsafe { write_cp15!("0", "c7", "c14", "1", line) };
    }
    barrier();
}

/// Frequency of the generic timer's counter.
pub(crate) fn counter_hz() -> u32 {
    read_cp15!("0", "c14", "c0", "0")
}

/// The guest's own clock, ns. Use it only for durations: Linux has another clock, and the offset
/// between the two is unknown.
pub fn now_ns() -> u64 {
    let (count, hz) = (counter(), u64::from(counter_hz()));
    count / hz * 1_000_000_000 + count % hz * 1_000_000_000 / hz
}

/// The generic timer's virtual counter.
pub(crate) fn counter() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter. The barrier keeps it from being read early.
    unsafe {
        asm!("isb", "mrrc p15, 1, {}, {}, c14", out(reg) low, out(reg) high,
            options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Makes the virtual timer interrupt when the counter reaches `at`.
pub(crate) fn alarm_at(at: u64) {
    // SAFETY: the timer belongs to the ticks of FreeRTOS alone.
    unsafe {
        asm!("mcrr p15, 3, {}, {}, c14", in(reg) at as u32, in(reg) (at >> 32) as u32,
            options(nostack, preserves_flags));
        write_cp15!("0", "c14", "c3", "1", 1);
        asm!("isb", options(nostack, preserves_flags));
    }
}
