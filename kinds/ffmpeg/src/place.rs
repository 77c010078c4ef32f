//! The memory into which FFmpeg writes pictures: places of a link, lent to its decoder.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ffmpeg_next::ffi::{
    AVCodecContext, AVColorRange, AVFrame, AVPixelFormat, av_buffer_create,
    avcodec_align_dimensions2, avcodec_default_get_buffer2,
};
use sinew_core::transport::MessagePlace;
use sinew_media::{PICTURE_BYTES_MAX, PictureHead, PixelFormat, planes_of};

/// Alignment of a plane's rows. It is twice what FFmpeg's widest instructions need, so that the
/// rows of a plane with half as many columns are aligned too.
const ROW_ALIGN: u32 = 128;
/// Bytes after a plane that FFmpeg's instructions may touch.
const BEHIND: u32 = 128;

/// A place in which FFmpeg may write a picture.
pub(crate) struct Lot {
    pub(crate) place: MessagePlace,
    /// Whether FFmpeg holds the place: as the picture that it decodes, or as a reference for
    /// others.
    is_lent: AtomicBool,
}

impl Lot {
    pub(crate) fn new(place: MessagePlace) -> Lot {
        Lot { place, is_lent: AtomicBool::new(false) }
    }

    /// Whether FFmpeg holds the place.
    pub(crate) fn is_lent(&self) -> bool {
        // Acquire: what FFmpeg did with it comes before what is done next.
        self.is_lent.load(Ordering::Acquire)
    }

    /// Start of the points.
    pub(crate) fn points(&self) -> *mut u8 {
        self.place.start().as_ptr().wrapping_add(size_of::<PictureHead>())
    }
}

/// The places that wait for FFmpeg, and those that it has taken since `taken` was last emptied.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) waiting: RefCell<VecDeque<Arc<Lot>>>,
    pub(crate) taken: RefCell<VecDeque<Arc<Lot>>>,
}

/// The layout of a picture in a place, as the part of the head that describes it.
fn layout(context: *mut AVCodecContext, frame: &AVFrame) -> Option<PictureHead> {
    let format = format_of(frame.format, frame.color_range)?;
    let (mut width, mut height) = (frame.width, frame.height);
    let mut alignments = [0; 8];
    // SAFETY: the context is the one that FFmpeg asks for; the others are variables.
    unsafe {
        avcodec_align_dimensions2(context, &mut width, &mut height, alignments.as_mut_ptr());
    }
    let width = u32::try_from(width).ok()?.checked_next_multiple_of(ROW_ALIGN)?;
    let height = u32::try_from(height).ok()?;
    let mut head = PictureHead { format: format as u32, ..PictureHead::default() };
    (head.width, head.height) = (frame.width.unsigned_abs(), frame.height.unsigned_abs());
    let mut offset = 0_u32;
    for (at, plane) in planes_of(format).iter().enumerate() {
        head.stride[at] = (width >> plane.columns_shift).checked_mul(plane.bytes)?;
        head.offset[at] = offset;
        let rows = height.div_ceil(1 << plane.rows_shift);
        let len = head.stride[at].checked_mul(rows)?.checked_add(BEHIND)?;
        offset = offset.checked_add(len)?.checked_next_multiple_of(ROW_ALIGN)?;
    }
    (offset as usize <= PICTURE_BYTES_MAX && head.check().is_ok()).then_some(head)
}

/// Our pixel format for a format of FFmpeg; `None`: we have none.
pub(crate) fn format_of(format: c_int, range: AVColorRange) -> Option<PixelFormat> {
    let is = |other: AVPixelFormat| format == other as c_int;
    let is_full = range == AVColorRange::AVCOL_RANGE_JPEG;
    Some(match () {
        () if is(AVPixelFormat::AV_PIX_FMT_YUV420P) && !is_full => PixelFormat::Yuv420,
        () if is(AVPixelFormat::AV_PIX_FMT_YUV420P) => PixelFormat::FullYuv420,
        () if is(AVPixelFormat::AV_PIX_FMT_YUVJ420P) => PixelFormat::FullYuv420,
        () if is(AVPixelFormat::AV_PIX_FMT_YUVJ422P) => PixelFormat::FullYuv422,
        () if is(AVPixelFormat::AV_PIX_FMT_YUVJ444P) => PixelFormat::FullYuv444,
        () if is(AVPixelFormat::AV_PIX_FMT_GRAY8) => PixelFormat::Gray8,
        () if is(AVPixelFormat::AV_PIX_FMT_RGB24) => PixelFormat::Rgb24,
        () => return None,
    })
}

/// Gives FFmpeg the next place that waits. If there is none, or if the picture would not fit, it
/// gives memory of FFmpeg's own, from which the picture must later be copied.
///
/// # Safety
/// Only for FFmpeg to call, as `get_buffer2` of a decoder whose `opaque` is a [`Shelf`] that
/// outlives it, on the thread that calls the decoder.
pub(crate) unsafe extern "C" fn lend(
    context: *mut AVCodecContext,
    frame: *mut AVFrame,
    flags: c_int,
) -> c_int {
    // SAFETY: FFmpeg calls with its own context and a frame that nobody else has; the shelf is as
    // the caller promises, and only this thread looks at it.
    let (shelf, asked) = unsafe { (&*(*context).opaque.cast::<Shelf>(), &mut *frame) };
    let layout = layout(context, asked);
    let lot = layout.and_then(|_| shelf.waiting.borrow_mut().pop_front());
    let (Some(head), Some(lot)) = (layout, lot) else {
        // SAFETY: as FFmpeg called us.
        return unsafe { avcodec_default_get_buffer2(context, frame, flags) };
    };
    let (points, held) = (lot.points(), Arc::into_raw(lot.clone()));
    // SAFETY: the place has so many bytes behind its head, keeps its region mapped for as long as
    // the buffer holds the lot, and is this side's until it is sent; a peer that writes there all
    // the same spoils points, by which FFmpeg computes nothing but points. What is freed by
    // `give_back` is exactly what was made here.
    let buffer = unsafe {
        av_buffer_create(points, PICTURE_BYTES_MAX, Some(give_back), held.cast_mut().cast(), 0)
    };
    if buffer.is_null() {
        // SAFETY: nobody else got it.
        drop(unsafe { Arc::from_raw(held) });
        return -12;
    }
    lot.is_lent.store(true, Ordering::Release);
    asked.buf[0] = buffer;
    for at in 0..planes_of(PixelFormat::ALL[head.format as usize]).len() {
        asked.data[at] = points.wrapping_add(head.offset[at] as usize);
        asked.linesize[at] = head.stride[at] as c_int;
    }
    asked.extended_data = asked.data.as_mut_ptr();
    shelf.taken.borrow_mut().push_back(lot);
    0
}

/// FFmpeg calls this when it no longer holds a place.
///
/// # Safety
/// Only for FFmpeg to call, with what [`lend`] gave it.
unsafe extern "C" fn give_back(held: *mut c_void, _: *mut u8) {
    // SAFETY: `lend` made it of an `Arc`, and FFmpeg calls once for each.
    let lot = unsafe { Arc::from_raw(held.cast_const().cast::<Lot>()) };
    // Release: pairs with `is_lent`.
    lot.is_lent.store(false, Ordering::Release);
}
