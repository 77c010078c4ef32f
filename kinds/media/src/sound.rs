//! A block of sound, decoded.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::BadHead;

/// Samples a second, of each channel. Other rates are converted.
pub const RATE_HZ: u32 = 48_000;
/// Left and right.
pub const CHANNELS: usize = 2;
/// Most samples of a channel in a block: 21 ms.
pub const BLOCK_FRAMES_MAX: usize = 1024;

/// The head of a block. Its samples follow, left and right in turn.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BlockHead {
    /// When its first sample is to be heard, ns from the beginning of the film.
    pub position_ns: u64,
    /// The number of the last order that was obeyed before it was sent.
    pub serial: u32,
    /// Samples of each channel.
    pub frames: u32,
    /// Bits of [`flag`](crate::flag); of these only `END` has a meaning here.
    pub flags: u32,
    /// Count of packets that wait to be decoded after it.
    pub waiting: u32,
}

impl BlockHead {
    /// Count of samples of each channel that follow.
    ///
    /// # Errors
    /// More samples than a block can have.
    pub fn check(&self) -> Result<usize, BadHead> {
        match self.frames as usize {
            frames if frames <= BLOCK_FRAMES_MAX => Ok(frames),
            _ => Err(BadHead("a block of sound says that it is longer than a block can be")),
        }
    }
}
