//! Pictures of all formats become pictures of ROS.

use sinew_core::zerocopy::IntoBytes;

use super::*;

fn message(head: PictureHead, points: &[u8]) -> Vec<u8> {
    let mut message = head.as_bytes().to_vec();
    message.extend_from_slice(points);
    message.resize(HEAD + PICTURE_BYTES_MAX, 0);
    message
}

fn head(format: PixelFormat) -> PictureHead {
    let head = PictureHead { width: 3, height: 2, ..PictureHead::default() };
    head.packed(format).expect("it is small")
}

#[test]
fn rows_follow_each_other_without_a_gap() {
    // Rows of three points, each followed by a byte that is not part of the picture.
    let head = PictureHead { stride: [4, 0, 0], ..head(PixelFormat::Gray8) };
    let image = image(&message(head, &[1, 2, 3, 99, 4, 5, 6, 99])).expect("a picture");
    assert_eq!((image.encoding.as_str(), image.step), ("mono8", 3));
    assert_eq!(image.data.0, [1, 2, 3, 4, 5, 6]);
    assert_eq!(image.data.0.len(), (image.step * image.height) as usize);
}

#[test]
fn grey_stays_grey_and_colours_keep_theirs() {
    for (format, white) in [
        (PixelFormat::Yuv420, 235),
        (PixelFormat::FullYuv420, 255),
        (PixelFormat::FullYuv422, 255),
        (PixelFormat::FullYuv444, 255),
    ] {
        let mut points = vec![128; 6 * 3];
        points[..6].fill(white);
        let image = image(&message(head(format), &points)).expect("a picture");
        assert_eq!((image.encoding.as_str(), image.step), ("rgb8", 9), "{format:?}");
        assert_eq!(image.data.0, [255; 18], "{format:?}");
    }
    // Red, by the standard.
    assert_eq!(colour(81, 90, 240, false), [254, 0, 0]);
    assert_eq!(colour(76, 85, 255, true), [254, 0, 0]);
}

#[test]
fn what_cannot_be_is_no_picture() {
    assert_eq!(image(&message(head(PixelFormat::Nothing), &[])), None);
    let lies = PictureHead { offset: [u32::MAX, 0, 0], ..head(PixelFormat::Gray8) };
    assert_eq!(image(&message(lies, &[])), None);
    assert_eq!(image(&[0; 100]), None);
}
