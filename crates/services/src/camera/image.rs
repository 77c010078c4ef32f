//! A frame, as it crosses a link.

/// Columns of a frame.
pub const WIDTH: usize = 640;
/// Rows of a frame.
pub const HEIGHT: usize = 480;
/// Bytes of its points: red, green, blue, row by row from the top left.
pub const POINTS_LEN: usize = 3 * WIDTH * HEIGHT;

sinew_runtime::message! {
    /// A frame of 640 x 480 points.
    pub struct Image {
        /// When it was taken, monotonic ns.
        pub time_ns: u64,
        /// Counts the frames, from 1.
        pub sequence: u64,
        /// Red, green, blue of each point, row by row from the top left.
        pub points: [u8; POINTS_LEN],
    }
}
