//! The frames of a camera: pictures of one size in red, green and blue, written row by row into the
//! memory of their link.

use sinew_media::{PictureHead, PixelFormat};
use sinew_runtime::service::Claim;

/// Columns of a frame.
pub const WIDTH: usize = 640;
/// Rows of a frame.
pub const HEIGHT: usize = 480;
/// Bytes of a row: red, green, blue of each point, from the left.
pub const ROW_LEN: usize = 3 * WIDTH;
/// Bytes of a frame's points, row by row from the top.
pub const POINTS_LEN: usize = ROW_LEN * HEIGHT;

/// A row of points.
pub type PixelRow = [u8; ROW_LEN];

/// The head of the frame with this number, taken at this time.
///
/// # Panics
/// Never: a frame fits into a picture.
pub fn head(number: u64, time_ns: u64) -> PictureHead {
    let (width, height) = (WIDTH as u32, HEIGHT as u32);
    // Its position is the time at which it was taken: so frames stay in order over several lives.
    let times = PictureHead { number, time_ns, position_ns: time_ns, ..PictureHead::default() };
    let head = PictureHead { width, height, ..times };
    head.packed(PixelFormat::Rgb24).expect("a frame fits a picture")
}

/// Writes row `y` (0 is the top) of a frame.
pub fn write_row(frame: &mut Claim<'_>, y: usize, row: &PixelRow) {
    frame.write_at(size_of::<PictureHead>() + y * ROW_LEN, row);
}
