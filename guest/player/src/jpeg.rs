//! Decodes a JPEG into points, directly in their final place.

use sinew_media::{PICTURE_SIDE_MAX, PictureHead, PixelFormat};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

/// Writes the points of a JPEG, row by row: red, green and blue of each. Returns `head`, completed
/// with the size of the picture; `None`: it is not a whole JPEG, its points do not fit, or its
/// colours are those of printers.
///
/// Strict: of a damaged picture nothing is shown, so the one before it stays. The content of
/// `points` decides nothing: zune-jpeg 0.5.15 only writes there, except with the colours of
/// printers, where it reads back what it has written. It takes heap memory: for some rows of
/// points, or 6 bytes a point if the JPEG is progressive. A JPEG that needs more memory than there
/// is ends the guest.
pub(crate) fn decode(jpeg: &[u8], head: PictureHead, points: &mut [u8]) -> Option<PictureHead> {
    let side_max = PICTURE_SIDE_MAX as usize;
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(side_max)
        .set_max_height(side_max)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
    decoder.decode_headers().ok()?;
    let colours = decoder.input_colorspace()?;
    if !matches!(colours, ColorSpace::YCbCr | ColorSpace::RGB | ColorSpace::Luma) {
        return None;
    }
    let (width, height) = decoder.dimensions()?;
    let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    let head = PictureHead { width, height, ..head }.packed(PixelFormat::Rgb24).ok()?;
    decoder.decode_into(points).ok()?;
    Some(head)
}
