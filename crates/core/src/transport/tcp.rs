//! `transport: tcp`: a connection over loopback.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::{fs, io};

use rustix::net::sockopt::{set_socket_send_buffer_size, socket_send_buffer_size};

use super::stream::buffer_len;
use super::{Carrier, LinkShape};

/// Opens a connection with ourselves.
pub(super) fn open(shape: &LinkShape) -> io::Result<(Carrier, Carrier)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let writer = TcpStream::connect(listener.local_addr()?)?;
    let reader = accept(&listener, &writer)?;
    grow(&writer, buffer_len(shape))?;
    // A message goes out at once instead of waiting for more data.
    writer.set_nodelay(true)?;
    writer.set_nonblocking(true)?;
    reader.set_nonblocking(true)?;
    Ok((Carrier::Stream(writer.into()), Carrier::Stream(reader.into())))
}

/// Makes the writer's buffer as large as wanted, or as the kernel allows. The kernel limits the
/// request to `net.core.wmem_max`, doubles it, and ends its own tuning. That may already have gone
/// further: then the buffer is left as it is.
fn grow(writer: &TcpStream, size: usize) -> io::Result<()> {
    let max = fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap_or_default();
    let reached = 2 * size.min(max.trim().parse().unwrap_or(0));
    let current = socket_send_buffer_size(writer)?;
    if size > current && reached > current {
        set_socket_send_buffer_size(writer, size)?;
    }
    Ok(())
}

/// Accepts our own connection; anyone else who found the port in the meantime is refused.
fn accept(listener: &TcpListener, writer: &TcpStream) -> io::Result<TcpStream> {
    loop {
        let (reader, peer) = listener.accept()?;
        if peer == writer.local_addr()? {
            return Ok(reader);
        }
    }
}
