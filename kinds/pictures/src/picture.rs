//! A picture in the memory of its link: it is read row by row, so that it is never copied.

pub mod jpeg;

use sinew_core::transport::Ahead;
use sinew_media::{BadHead, PictureHead, PixelFormat, Plane, planes_of};
use sinew_runtime::service::{Claim, Peek};
use zerocopy::{FromZeros, IntoBytes};

/// The points of a picture, wherever they are.
pub trait Points {
    /// Copies the bytes at `offset` bytes from the first point.
    ///
    /// # Panics
    /// If they reach past the end.
    fn read(&self, offset: usize, into: &mut [u8]);
}

/// A writer that breaks the rules may change the points meanwhile: then the picture is wrong, but
/// nothing else happens.
impl Points for Peek<'_> {
    fn read(&self, offset: usize, into: &mut [u8]) {
        self.read_at(size_of::<PictureHead>() + offset, into);
    }
}

/// As for a [`Peek`].
impl Points for Ahead<'_> {
    fn read(&self, offset: usize, into: &mut [u8]) {
        self.read_at(size_of::<PictureHead>() + offset, into);
    }
}

/// Points in memory.
impl Points for Vec<u8> {
    fn read(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self[offset..][..into.len()]);
    }
}

/// The head in a message's first bytes, copied out.
pub fn read_head<H: FromZeros + IntoBytes + zerocopy::FromBytes>(
    read_at: impl FnOnce(&mut [u8]),
) -> H {
    let mut head = H::new_zeroed();
    read_at(head.as_mut_bytes());
    head
}

/// Writes the first bytes of a message.
pub fn write_head(message: &mut Claim<'_>, head: &(impl IntoBytes + zerocopy::Immutable)) {
    message.write_at(0, head.as_bytes());
}

/// A picture whose head was checked, so that every row is among its points.
pub struct PictureView<'a> {
    head: PictureHead,
    format: PixelFormat,
    points: &'a dyn Points,
}

impl<'a> PictureView<'a> {
    /// A picture of these points.
    ///
    /// # Errors
    /// The head has values that are not possible.
    pub fn new(head: PictureHead, points: &'a dyn Points) -> Result<PictureView<'a>, BadHead> {
        Ok(PictureView { format: head.check()?, head, points })
    }

    /// The head of the picture.
    pub fn head(&self) -> &PictureHead {
        &self.head
    }

    /// The format of its points.
    pub fn format(&self) -> PixelFormat {
        self.format
    }

    /// Its planes.
    pub fn planes(&self) -> &'static [Plane] {
        planes_of(self.format)
    }

    /// Reads the row of plane `at` that contains row `y` of the picture into `into`, which gets its
    /// length.
    pub fn read_row(&self, at: usize, y: u32, into: &mut Vec<u8>) {
        let row = self.head.row(self.planes()[at], at, y);
        into.resize(row.len, 0);
        self.points.read(row.offset, into);
    }
}
