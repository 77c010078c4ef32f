//! What master and drives agree on: the frame on the wire, and the drives' state machine.

pub mod cia402;
pub mod frame;

/// Drives on the bus, one per axis.
pub const DRIVES: usize = 6;
