//! A frame as JPEG, for browsers: read row by row from where it stands, so no frame is copied. And
//! the frames of cameras and films that are JPEGs.

use jpeg_encoder::{Encoder, ImageBuffer, JpegColorType, SamplingFactor, rgb_to_ycbcr};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::image::{HEIGHT, POINTS_LEN, PixelRows, ROW_LEN, WIDTH};

/// Bytes that a JPEG of a frame needs at first: more than the arm's picture has at quality 80.
const LEN: usize = 64 * 1024;

/// Points whose colours are converted at once; the compiler makes vector code of it.
const CONVERTED: usize = 16;

/// The frame as JPEG (JFIF, 4:2:0). `quality` from 1 to 100; 80 is good for a page.
///
/// Allocates; takes some 1.5 ms of one core for the picture of the arm.
pub fn encode(frame: &impl PixelRows, quality: u8) -> Vec<u8> {
    let mut jpeg = Vec::with_capacity(LEN);
    let mut encoder = Encoder::new(&mut jpeg, quality.clamp(1, 100));
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    let encoded = encoder.encode_image(Source(frame));
    encoded.expect("a buffer in memory takes all bytes, and the frame has a good size");
    jpeg
}

/// The points of a frame that is a JPEG. The error says what is wrong with it.
pub(super) fn decode(jpeg: &[u8], points: &mut [u8]) -> Result<(), String> {
    let options =
        DecoderOptions::default().set_strict_mode(true).jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
    let said = |error: zune_jpeg::errors::DecodeErrors| {
        format!("is no whole JPEG ({})", error.to_string().trim())
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

struct Source<'a, R>(&'a R);

impl<R: PixelRows> ImageBuffer for Source<'_, R> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        JpegColorType::Ycbcr
    }

    fn width(&self) -> u16 {
        WIDTH as u16
    }

    fn height(&self) -> u16 {
        HEIGHT as u16
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let mut row = [0; ROW_LEN];
        self.0.read_row(usize::from(y), &mut row);
        for points in row.as_chunks::<{ 3 * CONVERTED }>().0 {
            let mut planes = [[0; CONVERTED]; 3];
            for (at, point) in points.as_chunks::<3>().0.iter().enumerate() {
                let (luma, blue, red) = rgb_to_ycbcr(point[0], point[1], point[2]);
                (planes[0][at], planes[1][at], planes[2][at]) = (luma, blue, red);
            }
            for (buffer, plane) in buffers.iter_mut().zip(&planes) {
                buffer.extend_from_slice(plane);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::image::POINTS_LEN;
    use super::*;

    fn picture() -> Box<[u8; POINTS_LEN]> {
        let points = (0..POINTS_LEN).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
        points.try_into().expect("as many as a frame has")
    }

    #[test]
    fn a_frame_becomes_a_jpeg_of_its_size() {
        let jpeg = encode(&*picture(), 80);
        assert_eq!((&jpeg[..2], &jpeg[jpeg.len() - 2..]), (&[0xff, 0xd8][..], &[0xff, 0xd9][..]));
        // The header of the frame: precision, rows, columns, three planes, the first 2 by 2.
        let at = jpeg.windows(2).position(|word| word == [0xff, 0xc0]).expect("a baseline JPEG");
        assert_eq!(jpeg[at + 4..at + 10], [8, 1, 0xe0, 2, 0x80, 3]);
        assert_eq!(jpeg[at + 11], 0x22);
    }

    #[test]
    fn a_quality_that_cannot_be_is_the_nearest_one() {
        let frame = picture();
        assert_eq!(encode(&*frame, 0), encode(&*frame, 1));
        assert_eq!(encode(&*frame, 255), encode(&*frame, 100));
    }
}
