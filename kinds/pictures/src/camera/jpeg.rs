//! Decodes frames of cameras and films that are JPEGs.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::image::{HEIGHT, POINTS_LEN, WIDTH};

/// The points of a frame that is a JPEG. The error says what is wrong with it.
pub(super) fn decode(jpeg: &[u8], points: &mut [u8]) -> Result<(), String> {
    let options =
        DecoderOptions::default().set_strict_mode(true).jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
    let said = |error: zune_jpeg::errors::DecodeErrors| {
        format!("is not a whole JPEG ({})", error.to_string().trim())
    };
    decoder.decode_headers().map_err(said)?;
    let size = decoder.info().map(|info| (usize::from(info.width), usize::from(info.height)));
    if let Some((width, height)) = size.filter(|&size| size != (WIDTH, HEIGHT)) {
        return Err(format!("has {width} x {height} points, expected {WIDTH} x {HEIGHT}"));
    }
    if decoder.output_buffer_size() != Some(POINTS_LEN) {
        return Err("has colours that do not become red, green and blue".to_owned());
    }
    decoder.decode_into(points).map_err(said)
}
