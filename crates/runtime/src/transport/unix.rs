//! `transport: unix`: a pair of connected stream sockets without a name.

use std::io;

use rustix::net::sockopt::{set_socket_send_buffer_size, socket_send_buffer_size};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::stream::buffer_len;
use super::{Carrier, Shape};

/// What the kernel charges for a message beside its bytes: `struct sk_buff` and its shared info, and
/// the rounding of the allocator. Unix sockets charge the sender alone.
const OVERHEAD: usize = 1024;

/// Opens a socket pair.
pub(super) fn open(shape: &Shape) -> io::Result<(Carrier, Carrier)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (writer, reader) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let size = buffer_len(shape, OVERHEAD);
    if size > socket_send_buffer_size(&writer)? {
        // The kernel cuts it to net.core.wmem_max.
        set_socket_send_buffer_size(&writer, size)?;
    }
    Ok((Carrier::Stream(writer), Carrier::Stream(reader)))
}
