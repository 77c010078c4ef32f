//! A picture as JPEG, for browsers and files: read row by row from where it is stored.

use std::cell::RefCell;

use jpeg_encoder::{Encoder, ImageBuffer, JpegColorType, SamplingFactor, rgb_to_ycbcr};
use sinew_media::PixelFormat;

use super::PictureView;

/// First size of the buffer for a JPEG: more than the arm's picture needs at quality 80.
const LEN: usize = 64 * 1024;
/// Points whose colours are converted at once. The compiler vectorises a loop of known length.
const CONVERTED: usize = 64;
/// No colour difference: grey.
const NO_COLOUR: u8 = 128;

/// The picture as JPEG (JFIF, 4:2:0). `quality` from 1 to 100; 80 is good for a page. A picture of
/// [`PixelFormat::Nothing`] has no bytes.
///
/// Allocates. Takes 2.1 ms of one CPU for the picture of the arm (AMD EPYC).
pub fn encode(picture: &PictureView<'_>, quality: u8) -> Vec<u8> {
    if picture.format() == PixelFormat::Nothing {
        return vec![];
    }
    let mut jpeg = Vec::with_capacity(LEN);
    let mut encoder = Encoder::new(&mut jpeg, quality.clamp(1, 100));
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    let encoded = encoder.encode_image(Source { picture, row: RefCell::default() });
    encoded.expect("a buffer in memory takes all bytes, and the picture has a good size");
    jpeg
}

struct Source<'a> {
    picture: &'a PictureView<'a>,
    /// One row at a time.
    row: RefCell<Vec<u8>>,
}

impl ImageBuffer for Source<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        JpegColorType::Ycbcr
    }

    fn width(&self) -> u16 {
        self.picture.head().width as u16
    }

    fn height(&self) -> u16 {
        self.picture.head().height as u16
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let (row, y, width) = (&mut *self.row.borrow_mut(), u32::from(y), self.width());
        if self.picture.format() == PixelFormat::Rgb24 {
            self.picture.read_row(0, y, row);
            return convert(row, buffers);
        }
        let is_full = self.picture.format() != PixelFormat::Yuv420;
        for (at, plane) in self.picture.planes().iter().enumerate() {
            self.picture.read_row(at, y, row);
            if !is_full {
                let widen = if at == 0 { &LUMA } else { &DIFFERENCE };
                row.iter_mut().for_each(|sample| *sample = widen[usize::from(*sample)]);
            }
            let times = 1 << plane.columns_shift;
            let wide = row.iter().flat_map(|&sample| std::iter::repeat_n(sample, times));
            buffers[at].extend(wide.take(width.into()));
        }
        for buffer in buffers.iter_mut().take(3).skip(self.picture.planes().len()) {
            buffer.extend(std::iter::repeat_n(NO_COLOUR, width.into()));
        }
    }
}

/// Converts red, green and blue to luma and colour differences.
fn convert(row: &[u8], buffers: &mut [Vec<u8>; 4]) {
    let (whole, rest) = row.as_chunks::<3>().0.as_chunks::<CONVERTED>();
    let mut append = |points: &[[u8; 3]; CONVERTED], len: usize| {
        let planes = converted(points);
        for (buffer, plane) in buffers.iter_mut().zip(&planes) {
            buffer.extend_from_slice(&plane[..len]);
        }
    };
    whole.iter().for_each(|points| append(points, CONVERTED));
    if !rest.is_empty() {
        let mut last = [[0; 3]; CONVERTED];
        last[..rest.len()].copy_from_slice(rest);
        append(&last, rest.len());
    }
}

/// Luma, and the differences of blue and red.
fn converted(points: &[[u8; 3]; CONVERTED]) -> [[u8; CONVERTED]; 3] {
    let mut planes = [[0; CONVERTED]; 3];
    for (at, &[red, green, blue]) in points.iter().enumerate() {
        (planes[0][at], planes[1][at], planes[2][at]) = rgb_to_ycbcr(red, green, blue);
    }
    planes
}

/// Samples of video as samples of JPEG: luma from 16 to 235 as 0 to 255 (ITU-R BT.601, JFIF).
const LUMA: [u8; 256] = widened(16, 219, 0);
/// The same for colour differences: 112 on either side of 128 as 127.5.
const DIFFERENCE: [u8; 256] = widened(128, 224, 128);

/// `(sample - from) * 255 / span + to`, rounded, within 0 to 255.
const fn widened(from: i32, span: i32, to: i32) -> [u8; 256] {
    let mut table = [0; 256];
    let mut sample = 0;
    while sample < 256 {
        let wide = (sample - from) * 255;
        let half = if wide < 0 { -span / 2 } else { span / 2 };
        let value = (wide + half) / span + to;
        table[sample as usize] = if value < 0 {
            0
        } else if value > 255 {
            255
        } else {
            value as u8
        };
        sample += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use sinew_media::PictureHead;
    use zune_core::bytestream::ZCursor;
    use zune_core::colorspace::ColorSpace;
    use zune_core::options::DecoderOptions;
    use zune_jpeg::JpegDecoder;

    use super::*;

    fn head(width: u32, height: u32, format: PixelFormat) -> PictureHead {
        let sides = PictureHead { width, height, ..PictureHead::default() };
        sides.packed(format).expect("it fits")
    }

    fn encoded(head: PictureHead, points: &Vec<u8>, quality: u8) -> Vec<u8> {
        encode(&PictureView::new(head, points).expect("a good head"), quality)
    }

    #[test]
    fn a_picture_becomes_a_jpeg_of_its_size() {
        let points: Vec<u8> = (0..3 * 640 * 480).map(|at| (at % 251) as u8).collect();
        let jpeg = encoded(head(640, 480, PixelFormat::Rgb24), &points, 80);
        assert_eq!((&jpeg[..2], &jpeg[jpeg.len() - 2..]), (&[0xff, 0xd8][..], &[0xff, 0xd9][..]));
        // The header of the frame: precision, rows, columns, three planes, the first 2 by 2.
        let at = jpeg.windows(2).position(|word| word == [0xff, 0xc0]).expect("a baseline JPEG");
        assert_eq!(jpeg[at + 4..at + 10], [8, 1, 0xe0, 2, 0x80, 3]);
        assert_eq!(jpeg[at + 11], 0x22);
        let nothing = head(640, 480, PixelFormat::Nothing);
        assert!(encoded(nothing, &points, 80).is_empty());
    }

    #[test]
    fn a_quality_that_cannot_be_is_the_nearest_one() {
        let (head, points) = (head(64, 64, PixelFormat::Rgb24), vec![9; 3 * 64 * 64]);
        assert_eq!(encoded(head, &points, 0), encoded(head, &points, 1));
        assert_eq!(encoded(head, &points, 255), encoded(head, &points, 100));
    }

    #[test]
    fn every_point_of_a_row_is_converted_in_its_place() {
        for width in [1, 63, 64, 65, 130] {
            let row: Vec<u8> = (0..3 * width).map(|at| (at * 37 % 251) as u8).collect();
            let mut buffers = [const { Vec::new() }; 4];
            convert(&row, &mut buffers);
            let points = row.as_chunks::<3>().0;
            let planes: Vec<_> = points.iter().map(|&[r, g, b]| rgb_to_ycbcr(r, g, b)).collect();
            assert_eq!(buffers[0], planes.iter().map(|it| it.0).collect::<Vec<_>>(), "{width}");
            assert_eq!(buffers[1], planes.iter().map(|it| it.1).collect::<Vec<_>>(), "{width}");
            assert_eq!(buffers[2], planes.iter().map(|it| it.2).collect::<Vec<_>>(), "{width}");
            assert!(buffers[3].is_empty());
        }
    }

    /// One colour in every format and in sizes that no block divides, as a JPEG decoder sees it.
    #[test]
    fn a_colour_is_the_same_in_every_format() {
        // Red, by BT.601, from 16 to 235 and from 0 to 255.
        let (narrow, full, rgb) = ([81, 90, 240], [76, 85, 255], [255, 0, 0]);
        for (format, samples) in [
            (PixelFormat::Rgb24, rgb),
            (PixelFormat::Yuv420, narrow),
            (PixelFormat::FullYuv420, full),
            (PixelFormat::FullYuv422, full),
            (PixelFormat::FullYuv444, full),
        ] {
            let head = head(37, 23, format);
            let mut points = vec![0; 3 * 37 * 23];
            if format == PixelFormat::Rgb24 {
                points.chunks_mut(3).for_each(|point| point.copy_from_slice(&samples));
            } else {
                for (at, &plane) in sinew_media::planes_of(format).iter().enumerate() {
                    for y in 0..23 {
                        let row = head.row(plane, at, y);
                        points[row.offset..][..row.len].fill(samples[at]);
                    }
                }
            }
            let jpeg = encoded(head, &points, 95);
            let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
            let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&jpeg), options);
            let seen = decoder.decode().expect("a JPEG of ours");
            assert_eq!(seen.len(), 3 * 37 * 23, "{format:?}");
            let far = |point: &[u8]| (0..3).any(|at| point[at].abs_diff(rgb[at]) > 6);
            assert_eq!(seen.chunks(3).find(|point| far(point)), None, "{format:?}");
        }
    }
}
