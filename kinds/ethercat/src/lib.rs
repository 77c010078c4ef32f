//! What master and drives share: the frame on the wire, and the drives' state machine. It needs no
//! operating system, so a guest beside Linux reads the same frames with the same code.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod cia402;
pub mod frame;

/// Drives on the bus, one per axis.
pub const DRIVES: usize = 6;
