//! A frame, as it crosses a link; and how it is read and written there, row by row.

use std::mem::offset_of;

use sinew_runtime::service::{Claim, Peek};

/// Columns of a frame.
pub const WIDTH: usize = 640;
/// Rows of a frame.
pub const HEIGHT: usize = 480;
/// Bytes of a row: red, green, blue of each point, from the left.
pub const ROW_LEN: usize = 3 * WIDTH;
/// Bytes of its points, row by row from the top.
pub const POINTS_LEN: usize = ROW_LEN * HEIGHT;

sinew_core::message! {
    /// A frame of 640 x 480 points.
    pub struct Image {
        /// When it was taken, monotonic ns.
        pub time_ns: u64,
        /// Counts the frames, from 1: those that were missed or found no room are gaps.
        pub sequence: u64,
        /// Red, green, blue of each point, row by row from the top left.
        pub points: [u8; POINTS_LEN],
    }
}

/// A row of points.
pub type PixelRow = [u8; ROW_LEN];

/// Where row `y` begins in an [`Image`], bytes.
const fn row_at(y: usize) -> usize {
    offset_of!(Image, points) + y * ROW_LEN
}

/// A frame that can be read row by row.
pub trait PixelRows {
    /// Copies row `y` (0 is the top).
    fn read_row(&self, y: usize, into: &mut PixelRow);
}

/// A frame where the link keeps it. A writer that breaks the rules may change it meanwhile: then
/// the picture is wrong, and nothing else.
impl PixelRows for Peek<'_> {
    fn read_row(&self, y: usize, into: &mut PixelRow) {
        self.read_at(row_at(y), into);
    }
}

/// The points of a frame in memory.
impl PixelRows for [u8; POINTS_LEN] {
    fn read_row(&self, y: usize, into: &mut PixelRow) {
        into.copy_from_slice(&self[y * ROW_LEN..][..ROW_LEN]);
    }
}

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// [`Image::time_ns`].
    pub time_ns: u64,
    /// [`Image::sequence`].
    pub sequence: u64,
}

impl FrameHead {
    /// The head of a frame where the link keeps it.
    pub fn read(frame: &Peek<'_>) -> FrameHead {
        let mut bytes = [[0; 8]; 2];
        frame.read_at(offset_of!(Image, time_ns), &mut bytes[0]);
        frame.read_at(offset_of!(Image, sequence), &mut bytes[1]);
        let [time_ns, sequence] = bytes.map(u64::from_ne_bytes);
        FrameHead { time_ns, sequence }
    }

    /// Writes the head of a frame.
    pub(super) fn write(&self, frame: &mut Claim<'_>) {
        frame.write_at(offset_of!(Image, time_ns), &self.time_ns.to_ne_bytes());
        frame.write_at(offset_of!(Image, sequence), &self.sequence.to_ne_bytes());
    }
}

/// Writes row `y` (0 is the top) of a frame.
pub(super) fn write_row(frame: &mut Claim<'_>, y: usize, row: &PixelRow) {
    frame.write_at(row_at(y), row);
}
