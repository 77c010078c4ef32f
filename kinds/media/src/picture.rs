//! A picture, as it is stored in its place in a link.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::BadHead;

/// Most bytes of points: 1920 x 1088 in 4:2:0, with the padding that a decoder needs.
pub const PICTURE_BYTES_MAX: usize = 3_407_872 - 128;
/// Most columns and rows.
pub const PICTURE_SIDE_MAX: u32 = 8192;

/// The head of a picture. Its points follow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PictureHead {
    /// Counts the pictures from 1. Pictures that were missed, dropped or broken are gaps.
    pub number: u64,
    /// When it was taken or decoded, monotonic ns.
    pub time_ns: u64,
    /// When it is to be seen, ns from the beginning of the film.
    pub position_ns: u64,
    /// Duration, ns; 0: not known.
    pub duration_ns: u64,
    /// How long it took to be decoded or drawn, ns.
    pub decode_ns: u64,
    /// Duration of the whole film, ns; 0: not known.
    pub film_ns: u64,
    /// The number of the last order that was obeyed before it was sent.
    pub serial: u32,
    /// [`PixelFormat`].
    pub format: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Start of each plane, in bytes from the first byte of the points.
    pub offset: [u32; 3],
    /// Bytes from one row of a plane to the next.
    pub stride: [u32; 3],
    /// How often its points were copied since they were decoded.
    pub copies: u32,
    /// Count of packets that wait to be decoded after it.
    pub waiting: u32,
    /// Packets so far that were not decoded because they came too late.
    pub skipped: u32,
    /// Packets so far from which the decoder could not make a picture.
    pub broken: u32,
    /// Always zero.
    pub reserved: [u32; 6],
}

/// The format of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PixelFormat {
    /// There is no picture: the place was not used.
    Nothing = 0,
    /// Red, green, blue of each point, one plane.
    Rgb24 = 1,
    /// Luma, blue and red difference, a plane each, one difference for four points; luma from 16 to
    /// 235 (ITU-R BT.601).
    Yuv420 = 2,
    /// As `Yuv420`, with all values from 0 to 255, as in JPEG.
    FullYuv420 = 3,
    /// One difference for two points of a row, from 0 to 255.
    FullYuv422 = 4,
    /// As many differences as points, from 0 to 255.
    FullYuv444 = 5,
    /// Luma alone, from 0 to 255.
    Gray8 = 6,
}

/// A plane: bytes of a sample, and how many columns and rows of the picture one of its samples
/// covers, as powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plane {
    /// Bytes of a sample.
    pub bytes: u32,
    /// 1: half as many columns.
    pub columns_shift: u32,
    /// 1: half as many rows.
    pub rows_shift: u32,
}

const fn plane(bytes: u32, columns_shift: u32, rows_shift: u32) -> Plane {
    Plane { bytes, columns_shift, rows_shift }
}

const COLOURS: Plane = plane(3, 0, 0);
const LUMA: Plane = plane(1, 0, 0);
const QUARTER: Plane = plane(1, 1, 1);
const HALF: Plane = plane(1, 1, 0);

/// The planes of a format.
pub const fn planes_of(format: PixelFormat) -> &'static [Plane] {
    match format {
        PixelFormat::Nothing => &[],
        PixelFormat::Rgb24 => &[COLOURS],
        PixelFormat::Yuv420 | PixelFormat::FullYuv420 => &[LUMA, QUARTER, QUARTER],
        PixelFormat::FullYuv422 => &[LUMA, HALF, HALF],
        PixelFormat::FullYuv444 => &[LUMA, LUMA, LUMA],
        PixelFormat::Gray8 => &[LUMA],
    }
}

impl PixelFormat {
    /// All formats, indexed by number.
    pub const ALL: [PixelFormat; 7] = [
        PixelFormat::Nothing,
        PixelFormat::Rgb24,
        PixelFormat::Yuv420,
        PixelFormat::FullYuv420,
        PixelFormat::FullYuv422,
        PixelFormat::FullYuv444,
        PixelFormat::Gray8,
    ];
}

/// A row of a plane: its offset in the points, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneRow {
    /// Offset in bytes from the first byte of the points.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
}

impl PictureHead {
    /// The format.
    ///
    /// # Errors
    /// There is no format with this number, or a plane is not within the points.
    pub fn check(&self) -> Result<PixelFormat, BadHead> {
        let known = PixelFormat::ALL.get(self.format as usize);
        let &format = known.ok_or(BadHead("a picture has a format that there is not"))?;
        let sides = 1..=PICTURE_SIDE_MAX;
        if format == PixelFormat::Nothing {
            return Ok(format);
        }
        if !sides.contains(&self.width) || !sides.contains(&self.height) {
            return Err(BadHead("a picture has no columns, no rows, or too many"));
        }
        for (at, plane) in planes_of(format).iter().enumerate() {
            let row = u64::from(columns(self.width, *plane)) * u64::from(plane.bytes);
            let rows = u64::from(rows(self.height, *plane));
            let end = u64::from(self.offset[at]) + u64::from(self.stride[at]) * (rows - 1) + row;
            if u64::from(self.stride[at]) < row || end > PICTURE_BYTES_MAX as u64 {
                return Err(BadHead("a picture's points are not within its place"));
            }
        }
        Ok(format)
    }

    /// The row of a plane in which row `y` of the picture is. It is within the points if the head
    /// was [checked](PictureHead::check).
    pub fn row(&self, plane: Plane, at: usize, y: u32) -> PlaneRow {
        let y = (y >> plane.rows_shift) as usize;
        PlaneRow {
            offset: self.offset[at] as usize + y * self.stride[at] as usize,
            len: (columns(self.width, plane) * plane.bytes) as usize,
        }
    }

    /// The same picture with its planes in sequence, without gaps.
    ///
    /// # Errors
    /// The planes are too large for a place, or there are none.
    pub fn packed(mut self, format: PixelFormat) -> Result<PictureHead, BadHead> {
        (self.format, self.offset, self.stride) = (format as u32, [0; 3], [0; 3]);
        let mut offset = 0_u64;
        for (at, &plane) in planes_of(format).iter().enumerate() {
            self.stride[at] = columns(self.width, plane).saturating_mul(plane.bytes);
            self.offset[at] = u32::try_from(offset).unwrap_or(u32::MAX);
            offset += u64::from(self.stride[at]) * u64::from(rows(self.height, plane));
        }
        self.check().map(|_| self)
    }
}

fn columns(width: u32, plane: Plane) -> u32 {
    width.div_ceil(1 << plane.columns_shift)
}

fn rows(height: u32, plane: Plane) -> u32 {
    height.div_ceil(1 << plane.rows_shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(width: u32, height: u32) -> PictureHead {
        PictureHead { width, height, ..PictureHead::default() }
    }

    #[test]
    fn every_format_has_its_number_and_packs() {
        for (number, format) in PixelFormat::ALL.into_iter().enumerate() {
            assert_eq!(format as usize, number);
            let packed = head(641, 351).packed(format).expect("it fits");
            assert_eq!(packed.check(), Ok(format));
            let planes = planes_of(format);
            let end = planes.iter().enumerate().map(|(at, &plane)| {
                let last = packed.row(plane, at, 350);
                (last.offset + last.len) as u32
            });
            let next = packed.offset.iter().copied().skip(1).take(planes.len().max(1) - 1);
            assert!(end.clone().zip(next).all(|(end, next)| end == next), "{format:?}");
        }
        let packed = head(641, 351).packed(PixelFormat::Yuv420).expect("it fits");
        assert_eq!(packed.stride, [641, 321, 321]);
        assert_eq!(packed.offset, [0, 641 * 351, 641 * 351 + 321 * 176]);
    }

    #[test]
    fn what_does_not_lie_in_the_place_is_refused() {
        let good = head(640, 352).packed(PixelFormat::Yuv420).expect("it fits");
        for bad in [
            PictureHead { format: 7, ..good },
            PictureHead { format: u32::MAX, ..good },
            PictureHead { width: 0, ..good },
            PictureHead { height: 0, ..good },
            PictureHead { width: 16384, height: 16384, ..good },
            PictureHead { stride: [639, 320, 320], ..good },
            PictureHead { stride: [u32::MAX; 3], ..good },
            PictureHead { offset: [0, 0, PICTURE_BYTES_MAX as u32 - 320 * 176 + 1], ..good },
            PictureHead { offset: [u32::MAX; 3], ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        let last = PictureHead { offset: [0, 0, PICTURE_BYTES_MAX as u32 - 320 * 176], ..good };
        assert!(last.check().is_ok());
        assert!(head(16384, 16384).packed(PixelFormat::Yuv420).is_err());
        assert!(head(1920, 1088).packed(PixelFormat::FullYuv420).is_ok());
    }
}
