//! `transport: unix`: a pair of connected stream sockets without a name.

use std::io;

use rustix::net::sockopt::{set_socket_send_buffer_size, socket_send_buffer_size};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::stream::buffer_len;
use super::{Carrier, LinkShape};

/// Opens a socket pair.
pub(super) fn open(shape: &LinkShape) -> io::Result<(Carrier, Carrier)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (writer, reader) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let size = buffer_len(shape);
    // All bytes that are under way are charged to the sender.
    if size > socket_send_buffer_size(&writer)? {
        // The kernel limits it to net.core.wmem_max, and doubles it.
        set_socket_send_buffer_size(&writer, size)?;
    }
    Ok((Carrier::Stream(writer), Carrier::Stream(reader)))
}
