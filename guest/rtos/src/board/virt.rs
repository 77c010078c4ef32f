//! QEMU's machine `virt` with an `ivshmem-doorbell`: the carve-out is host memory that the guest
//! finds as a PCI device, and its bells are MSI-X interrupts.
//!
//! There is no firmware: this file finds the device, gives it addresses and sets up its interrupts.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};

use sinew_carve_out::BELLS_MAX;

use super::{Device, Register};
use crate::memory::{self, Rights};
use crate::{cpu, gic};

/// The interrupt of the virtual timer.
pub(crate) const TIMER_INTERRUPT: u32 = 27;
/// Address at which the guest sees the carve-out. It is not the address on the bus, as only offsets
/// may cross.
pub(crate) const CARVE_OUT: usize = 0x6000_0000;

/// The interrupt controller; `FreeRTOSConfig.h` has the same addresses.
pub(crate) const GIC_DISTRIBUTOR: Device = device(0x0800_0000);
/// The interface of the interrupt controller to the core.
pub(crate) const GIC_CPU: Device = device(0x0801_0000);
const MSI_FRAME: usize = 0x0802_0000;
const UART: Device = device(0x0900_0000);
/// Configuration space of PCI; 1 MiB is bus 0.
const PCI: Device = device(0x3f00_0000);
/// Addresses at which PCI devices may be reached.
const WINDOW: core::ops::Range<usize> = 0x1000_0000..0x3eff_0000;
/// Addresses of the bells' registers and of their table of interrupts. The carve-out comes after
/// them.
const BELLS: Device = device(WINDOW.start);
const BELL_TABLE: usize = WINDOW.start + memory::PAGE;
const MEMORY_FROM: usize = WINDOW.start + 0x10_0000;

/// The devices that are used before the carve-out is found: address, bytes.
pub(crate) const DEVICES: &[(usize, usize)] = &[
    (0x0800_0000, 0x1000),
    (0x0801_0000, 0x2000),
    (MSI_FRAME, 0x1000),
    (0x0900_0000, 0x1000),
    (0x3f00_0000, 0x10_0000),
];

const fn device(address: usize) -> Device {
    // SAFETY: private to this file; called with the addresses of devices in QEMU's `hw/arm/virt.c`,
    // and with those that `find` has placed.
    unsafe { Device::new(address) }
}

/// The first interrupt of the bells, and their count. Written by `find`, before any interrupt
/// comes.
static BELLS_FROM: AtomicU32 = AtomicU32::new(u32::MAX);
static BELL_COUNT: AtomicU32 = AtomicU32::new(0);

/// The carve-out's address on the bus, as devices see it.
static CARVE_OUT_AT: AtomicU32 = AtomicU32::new(0);

/// The carve-out's address on the bus, as devices and other cores of the guest's chip see it.
pub(crate) fn carve_out_at() -> u64 {
    // Relaxed: written by `find`, before any read.
    u64::from(CARVE_OUT_AT.load(Ordering::Relaxed))
}

/// Finds the carve-out, maps it at [`CARVE_OUT`] and switches its bells on. Returns its bytes.
pub(crate) fn find() -> Result<usize, &'static str> {
    let function = find_ivshmem().ok_or("there is no ivshmem device on PCI bus 0")?;
    // Off while its addresses change. Then its memory and its own messages are switched on.
    command(function, 0);
    let size = size_of_memory(function);
    if !size.is_power_of_two() || size < memory::PAGE {
        return Err("the ivshmem device has no memory of 32-bit size");
    }
    let at = MEMORY_FROM.next_multiple_of(size);
    if at.checked_add(size).is_none_or(|end| end > WINDOW.end) {
        return Err("the carve-out does not fit into the window of PCI");
    }
    for (bar, word) in [WINDOW.start, BELL_TABLE, at, 0].into_iter().enumerate() {
        config(function, BAR + bar * 4).write(word as u32);
    }
    command(function, 0b110);
    memory::map(WINDOW.start, WINDOW.start, memory::PAGE, Rights::Device);
    memory::map(BELL_TABLE, BELL_TABLE, memory::PAGE, Rights::Device);
    memory::map(CARVE_OUT, at, size, Rights::Data);
    // Relaxed: nothing else runs yet.
    CARVE_OUT_AT.store(at as u32, Ordering::Relaxed);
    hear_bells(function)?;
    Ok(size)
}

const BAR: usize = 0x10;
const CAPABILITIES: usize = 0x34;
const MSI_X: u32 = 0x11;

/// A register of one function of PCI.
fn config(function: usize, offset: usize) -> Register {
    PCI.at((function << 15) + offset)
}

fn find_ivshmem() -> Option<usize> {
    /// Device and vendor.
    const IVSHMEM: u32 = 0x1110_1af4;
    (0..32).find(|&function| config(function, 0).read() == IVSHMEM)
}

fn command(function: usize, bits: u32) {
    // The upper half is the status; writing 0 there changes nothing.
    config(function, 4).write(bits);
}

/// Size of the memory of BAR 2, from the bits that its address can have.
fn size_of_memory(function: usize) -> usize {
    let (low, high) = (config(function, BAR + 8), config(function, BAR + 12));
    low.write(u32::MAX);
    high.write(u32::MAX);
    let mask = u64::from(high.read()) << 32 | u64::from(low.read() & !0xf);
    usize::try_from(mask.wrapping_neg()).unwrap_or(0)
}

/// Makes bell i come as the i-th interrupt of the message frame.
fn hear_bells(function: usize) -> Result<(), &'static str> {
    let capability = msi_x(function).ok_or("the ivshmem device has no MSI-X")?;
    let control = config(function, capability);
    let vectors = (control.read() >> 16 & 0x7ff) + 1;
    let frame = device(MSI_FRAME).at(0x8).read();
    let (first, lines) = (frame >> 16 & 0x3ff, frame & 0x3ff);
    let count = vectors.min(lines).min(BELLS_MAX as u32);
    BELLS_FROM.store(first, Ordering::Relaxed);
    BELL_COUNT.store(count, Ordering::Relaxed);
    for bell in 0..count {
        let entry = |word: usize| device(BELL_TABLE).at(bell as usize * 16 + word * 4);
        entry(0).write(MSI_FRAME as u32 + 0x40);
        entry(1).write(0);
        entry(2).write(first + bell);
        // Not masked.
        entry(3).write(0);
        // The frame sends pulses.
        gic::enable(first + bell, gic::PRIORITY, true);
    }
    control.write(control.read() & !(1 << 30) | 1 << 31);
    Ok(())
}

fn msi_x(function: usize) -> Option<usize> {
    let mut at = (config(function, CAPABILITIES).read() & 0xfc) as usize;
    // A list of 48 fills the configuration space. A longer list is a loop.
    for _ in 0..48 {
        let word = config(function, at).read();
        match word & 0xff {
            _ if at == 0 => return None,
            MSI_X => return Some(at),
            _ => at = (word >> 8 & 0xfc) as usize,
        }
    }
    None
}

/// The number of the bell that has this interrupt.
pub(crate) fn bell_of(interrupt: u32) -> Option<u32> {
    // Relaxed: written before the first interrupt was let through.
    let bell = interrupt.checked_sub(BELLS_FROM.load(Ordering::Relaxed))?;
    (bell < BELL_COUNT.load(Ordering::Relaxed)).then_some(bell)
}

/// Rings a bell of Linux, which is peer 0. Whoever hears it sees all that was written before.
pub(crate) fn ring(bell: u32) {
    // Relaxed: written once, by this core.
    if bell < BELL_COUNT.load(Ordering::Relaxed) {
        cpu::barrier();
        BELLS.at(0xc).write(bell);
    }
}

/// How often memory of links was put in step with Linux's before a read, and after a write.
pub(crate) static READS: AtomicU32 = AtomicU32::new(0);
pub(crate) static WRITES: AtomicU32 = AtomicU32::new(0);

/// Counts operations on links, not on the tables, which the agent reads again and again.
fn count(counter: &AtomicU32, start: usize) {
    let by = u32::from(start >= CARVE_OUT + sinew_carve_out::DATA);
    // Relaxed: a counter. Load and store are separate, as an emulator is slow at one atomic
    // operation. So if two nodes count at the same time, one count may be lost.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// Must be called before these bytes of the carve-out are read. Linux and guest are coherent on
/// this board, so nothing depends on it. The instructions are still the real ones.
pub(crate) fn before_read(start: usize, len: usize) {
    count(&READS, start);
    cpu::clean_and_invalidate(start, len);
}

/// Must be called after these bytes of the carve-out were written.
pub(crate) fn after_write(start: usize, len: usize) {
    count(&WRITES, start);
    cpu::clean(start, len);
}

/// Writes to the serial port. Waits while the port is full.
pub(crate) fn print(text: &str) {
    const FULL: u32 = 1 << 5;
    for byte in text.bytes() {
        while UART.at(0x18).read() & FULL != 0 {}
        UART.at(0).write(u32::from(byte));
    }
}

/// Switches the machine off.
pub(crate) fn power_off() -> ! {
    const SYSTEM_OFF: u32 = 0x8400_0008;
    // SAFETY: PSCI through the hypervisor call. It does not return; if it did, nothing would be
    // lost.
    unsafe {
        asm!(".arch_extension virt", "hvc #0", inout("r0") SYSTEM_OFF => _, options(nostack));
    }
    loop {
        cpu::sleep();
    }
}
