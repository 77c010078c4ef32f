//! The board: everything that differs from chip to chip, one file each.
//!
//! A board provides the constants and functions that `virt` provides: the addresses of the
//! interrupt controller and devices, and functions to find the carve-out, to ring and hear bells,
//! to keep caches in step with Linux, to print and to switch off.

mod virt;

pub(crate) use virt::*;

/// A device's registers.
#[derive(Clone, Copy)]
pub(crate) struct Device(usize);

/// A register of 32 bits.
#[derive(Clone, Copy)]
pub(crate) struct Register(usize);

impl Device {
    /// # Safety
    /// A device of the board begins at this address, and each of its registers may be read and
    /// written.
    const unsafe fn new(address: usize) -> Device {
        Device(address)
    }

    /// The register at this offset.
    pub(crate) const fn at(self, offset: usize) -> Register {
        Register(self.0 + offset)
    }
}

impl Register {
    pub(crate) fn read(self) -> u32 {
        // SAFETY: promised to `Device::new`.
        unsafe { (self.0 as *const u32).read_volatile() }
    }

    pub(crate) fn write(self, value: u32) {
        // SAFETY: promised to `Device::new`.
        unsafe { (self.0 as *mut u32).write_volatile(value) }
    }
}
