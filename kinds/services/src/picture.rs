//! A picture where its link keeps it: read row by row, so that nobody copies one.

pub mod jpeg;

use sinew_core::transport::Ahead;
use sinew_media::{BadHead, PictureHead, PixelFormat, Plane, planes_of};
use sinew_runtime::service::{Claim, Peek};
use zerocopy::{FromZeros, IntoBytes};

/// The points of a picture, wherever they are.
pub trait Points {
    /// Copies bytes that begin `offset` bytes from the first one of the points.
    ///
    /// # Panics
    /// If they reach past the end.
    fn read(&self, offset: usize, into: &mut [u8]);
}

/// A writer that breaks the rules may change the points meanwhile: then the picture is wrong, and
/// nothing else.
impl Points for Peek<'_> {
    fn read(&self, offset: usize, into: &mut [u8]) {
        self.read_at(size_of::<PictureHead>() + offset, into);
    }
}

/// As of a [`Peek`].
impl Points for Ahead<'_> {
    fn read(&self, offset: usize, into: &mut [u8]) {
        self.read_at(size_of::<PictureHead>() + offset, into);
    }
}

/// Points in memory.
impl Points for [u8] {
    fn read(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self[offset..][..into.len()]);
    }
}

/// What a message says of itself in its first bytes, copied out.
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
pub struct PictureView<'a, P: ?Sized> {
    head: PictureHead,
    format: PixelFormat,
    points: &'a P,
}

impl<'a, P: Points + ?Sized> PictureView<'a, P> {
    /// A picture of these points.
    ///
    /// # Errors
    /// The head says what cannot be.
    pub fn new(head: PictureHead, points: &'a P) -> Result<PictureView<'a, P>, BadHead> {
        Ok(PictureView { format: head.check()?, head, points })
    }

    /// What it says of itself.
    pub fn head(&self) -> &PictureHead {
        &self.head
    }

    /// How its points are written.
    pub fn format(&self) -> PixelFormat {
        self.format
    }

    /// Its planes.
    pub fn planes(&self) -> &'static [Plane] {
        planes_of(self.format)
    }

    /// The row of plane `at` in which row `y` of the picture is, in `into`, which becomes as long.
    pub fn read_row(&self, at: usize, y: u32, into: &mut Vec<u8>) {
        let row = self.head.row(self.planes()[at], at, y);
        into.resize(row.len, 0);
        self.points.read(row.offset, into);
    }
}
