//! Converts points from YUYV 4:2:2, which cameras send, to red, green and blue.

use super::image::{PixelRow, ROW_LEN, WIDTH};

/// Bytes of a row of YUYV: two points share their colour in four bytes.
pub(super) const YUYV_ROW_LEN: usize = 2 * WIDTH;

/// A row of YUYV (luma 16 to 235, as ITU-R BT.601 says) as red, green and blue.
pub(super) fn to_rgb(yuyv: &[u8; YUYV_ROW_LEN]) -> PixelRow {
    let mut row = [0; ROW_LEN];
    for (points, pair) in row.as_chunks_mut::<6>().0.iter_mut().zip(yuyv.as_chunks::<4>().0) {
        let [left, blue, right, red] = *pair;
        points[..3].copy_from_slice(&rgb(left, blue, red));
        points[3..].copy_from_slice(&rgb(right, blue, red));
    }
    row
}

/// BT.601 in integer arithmetic, where 256 means 1.
fn rgb(luma: u8, blue: u8, red: u8) -> [u8; 3] {
    let luma = 298 * (i32::from(luma) - 16);
    let (blue, red) = (i32::from(blue) - 128, i32::from(red) - 128);
    let parts = [luma + 409 * red, luma - 100 * blue - 208 * red, luma + 516 * blue];
    parts.map(|part| ((part + 128) >> 8).clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_colours_of_a_test_picture_are_those_of_the_standard() {
        let colours = [
            ([235, 128, 128], [255, 255, 255]),
            ([16, 128, 128], [0, 0, 0]),
            ([81, 90, 240], [255, 0, 0]),
            ([145, 54, 34], [0, 255, 0]),
            ([41, 240, 110], [0, 0, 255]),
            ([0, 128, 128], [0, 0, 0]),
            ([255, 255, 255], [255, 125, 255]),
        ];
        for ([luma, blue, red], expected) in colours {
            let found = rgb(luma, blue, red);
            let off = (0..3).map(|at| found[at].abs_diff(expected[at])).max();
            assert!(off <= Some(1), "{luma} {blue} {red}: {found:?}");
        }
    }

    #[test]
    fn two_points_share_their_colour_and_keep_their_brightness() {
        let mut yuyv = [128; YUYV_ROW_LEN];
        yuyv[..4].copy_from_slice(&[235, 128, 16, 128]);
        let row = to_rgb(&yuyv);
        assert_eq!(row[..6], [255, 255, 255, 0, 0, 0]);
        assert_eq!(row[ROW_LEN - 3..], [130; 3]);
    }
}
