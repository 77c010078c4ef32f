//! `transport: pipe`.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use super::stream::frame_len;
use super::{Carrier, LinkShape};

/// Bytes of the pages that a pipe is made of (POSIX wants a PIPE_BUF of at least 512; Linux has
/// 4096). Frames are only put together in a page if they fit in whole.
const PAGE_LEN: usize = rustix::pipe::PIPE_BUF;

/// Opens a pipe.
pub(super) fn open(shape: &LinkShape) -> io::Result<(Carrier, Carrier)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    grow(&writer, size(shape))?;
    Ok((Carrier::Stream(writer), Carrier::Stream(reader)))
}

/// Bytes of a pipe that holds the capacity of the link, and the greeting on a page of its own.
fn size(shape: &LinkShape) -> usize {
    let (frame_len, capacity) = (frame_len(shape), shape.capacity as usize);
    let pages = match PAGE_LEN / frame_len {
        0 => frame_len.div_ceil(PAGE_LEN).saturating_mul(capacity),
        per_page => capacity.div_ceil(per_page),
    };
    pages.saturating_add(1).saturating_mul(PAGE_LEN)
}

/// Makes the pipe as large as wanted, or as the kernel allows (fs.pipe-max-size); never smaller.
fn grow(pipe: &OwnedFd, mut size: usize) -> io::Result<()> {
    let current = fcntl_getpipe_size(pipe)?;
    while size > current && fcntl_setpipe_size(pipe, size).is_err() {
        size /= 2;
    }
    Ok(())
}
