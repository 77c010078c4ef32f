//! The end of a guest: every fault becomes a record in the carve-out, a bell, and power off.
//!
//! This code uses no heap and no kernel call, so that it works wherever the fault occurs.

use core::fmt::Write as _;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use sinew_carve_out::{FaultKind, GuestFault, GuestState, Name};

use crate::{board, cpu, guest, kernel, memory, say};

/// Records why this guest cannot go on, reports it and switches off.
pub(crate) fn end(fault: &GuestFault) -> ! {
    static IS_ENDING: AtomicBool = AtomicBool::new(false);
    cpu::interrupts_off();
    // Relaxed: one core. A second fault on the way out does not change the record.
    if !IS_ENDING.swap(true, Ordering::Relaxed) {
        if let Some(guest) = guest::get() {
            guest.carve_out.set_fault(fault);
            guest.carve_out.reached(GuestState::Faulted, guest.epoch);
            board::after_write(board::CARVE_OUT, sinew_carve_out::DATA);
            board::ring(0);
        }
        say!("fault: {fault}");
    }
    board::power_off()
}

/// A fault of the running thread.
fn here(kind: FaultKind) -> GuestFault {
    GuestFault::new(kind, name(kernel::running()))
}

/// The text as a name, cut if it is too long.
pub(crate) fn name(text: &str) -> Name {
    Name::new(&text[..text.floor_char_boundary(31)])
        .or(Name::new(""))
        .expect("an empty name is one")
}

/// Ends with a fault of the running thread and a text.
pub(crate) fn end_with(kind: FaultKind, text: core::fmt::Arguments<'_>) -> ! {
    let mut fault = here(kind);
    // A text too long is cut.
    let _ = fault.write_fmt(text);
    end(&fault)
}

pub(crate) fn out_of_memory(len: Option<usize>) -> ! {
    match len {
        Some(len) => end_with(FaultKind::OutOfMemory, format_args!("no {len} bytes are left")),
        None => end_with(FaultKind::OutOfMemory, format_args!("the heap of FreeRTOS is full")),
    }
}

pub(crate) fn stack_overflow(who: &str, pc: u32, address: u32) -> ! {
    let mut fault = GuestFault::new(FaultKind::StackOverflow, name(who));
    (fault.pc, fault.address) = (pc, address);
    let _ = fault.write_str("raise the stack in the kind's record");
    end(&fault)
}

pub(crate) fn assertion(file: &str, line: u32) -> ! {
    let file = file.rsplit('/').next().unwrap_or(file);
    end_with(FaultKind::Assert, format_args!("{file}:{line}"))
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    match info.location() {
        Some(at) => end_with(
            FaultKind::Panic,
            format_args!("{} ({}:{})", info.message(), at.file(), at.line()),
        ),
        None => end_with(FaultKind::Panic, format_args!("{}", info.message())),
    }
}

#[unsafe(no_mangle)]
extern "C" fn sinew_on_undefined(pc: u32) -> ! {
    let mut fault = here(FaultKind::Undefined);
    fault.pc = pc;
    end(&fault)
}

#[unsafe(no_mangle)]
extern "C" fn sinew_on_fiq(pc: u32) -> ! {
    let mut fault = here(FaultKind::Assert);
    fault.pc = pc;
    let _ = fault.write_str("a fast interrupt came, and nobody had let it through");
    end(&fault)
}

#[unsafe(no_mangle)]
extern "C" fn sinew_on_prefetch_abort(pc: u32) -> ! {
    let mut fault = here(FaultKind::PrefetchAbort);
    (fault.pc, fault.address, fault.status) = (pc, cpu::ifar(), cpu::ifsr());
    let _ = fault.write_str(reason(fault.status));
    end(&fault)
}

/// Where to continue after a data abort at `pc`: after a probe. Any other abort ends the guest.
#[unsafe(no_mangle)]
extern "C" fn sinew_on_data_abort(pc: u32) -> u32 {
    let (address, status) = (cpu::dfar(), cpu::dfsr());
    // The addresses of code, not the code.
    let probes = [&raw const sinew_probe_load_at, &raw const sinew_probe_store_at];
    if probes.iter().any(|probe| probe.addr() == pc as usize) {
        // Relaxed: only people and tests read them.
        PROBES_REFUSED.fetch_add(1, Ordering::Relaxed);
        LAST_REFUSED.store(address, Ordering::Relaxed);
        return (&raw const sinew_probe_failed).addr() as u32;
    }
    if memory::is_below_a_stack(address as usize) {
        stack_overflow(kernel::running(), pc, address);
    }
    const WRITES: u32 = 1 << 11;
    let mut fault = here(FaultKind::DataAbort);
    (fault.pc, fault.address, fault.status) = (pc, address, status);
    let verb = if status & WRITES != 0 { "write" } else { "read" };
    let _ = write!(fault, "{verb}: {}", reason(status));
    end(&fault)
}

/// A fault status as text: short descriptors, Arm ARM (DDI 0406C) table B3-23.
fn reason(status: u32) -> &'static str {
    match status & 0xf | status >> 6 & 0x10 {
        0b00001 => "not aligned",
        0b00101 | 0b00111 => "nothing is mapped there",
        0b01101 | 0b01111 => "not allowed there",
        0b01000 | 0b10110 => "the bus refused it",
        _ => "see the status",
    }
}

unsafe extern "C" {
    static sinew_probe_load_at: u8;
    static sinew_probe_store_at: u8;
    static sinew_probe_failed: u8;
    fn sinew_probe_load(address: usize) -> u32;
    fn sinew_probe_store(address: usize, byte: u32) -> u32;
}

static PROBES_REFUSED: AtomicU32 = AtomicU32::new(0);
static LAST_REFUSED: AtomicU32 = AtomicU32::new(0);

/// Reads a byte at any address; `None` if the guest may not. For tests of the mapping: reading a
/// device's register may change the device.
pub fn probe_read(address: usize) -> Option<u8> {
    // SAFETY: if the load aborts, the handler continues after it.
    u8::try_from(unsafe { sinew_probe_load(address) }).ok()
}

/// Writes a byte at any address. Returns whether the guest may.
///
/// # Safety
/// If the guest may write there, nothing relies on the byte that was there.
pub unsafe fn probe_write(address: usize, byte: u8) -> bool {
    // SAFETY: if the store aborts, the handler continues after it; otherwise the caller's promise.
    unsafe { sinew_probe_store(address, u32::from(byte)) == 0 }
}

/// How many probes were refused, and at which address the last one was.
pub fn probes_refused() -> (u32, u32) {
    // Relaxed: written by the caller that probes.
    (PROBES_REFUSED.load(Ordering::Relaxed), LAST_REFUSED.load(Ordering::Relaxed))
}
