//! `transport: tcp`: a connection over loopback.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_send_buffer_size, socket_recv_buffer_size,
    socket_send_buffer_size,
};

use super::stream::buffer_len;
use super::{Carrier, Shape};

/// What the kernel charges for a message beside its bytes; see `unix.rs`. Here the reader pays too.
const OVERHEAD: usize = 1024;

/// Opens a connection with ourselves.
pub(super) fn open(shape: &Shape) -> io::Result<(Carrier, Carrier)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let writer = TcpStream::connect(listener.local_addr()?)?;
    let reader = accept(&listener, &writer)?;
    let size = buffer_len(shape, OVERHEAD);
    // A size that is set ends the kernel's own tuning, so only what is too small is set; the kernel
    // cuts it to net.core.wmem_max and rmem_max.
    if size > socket_send_buffer_size(&writer)? {
        set_socket_send_buffer_size(&writer, size)?;
    }
    if size > socket_recv_buffer_size(&reader)? {
        set_socket_recv_buffer_size(&reader, size)?;
    }
    // A message goes out at once instead of waiting for company.
    writer.set_nodelay(true)?;
    writer.set_nonblocking(true)?;
    reader.set_nonblocking(true)?;
    Ok((Carrier::Stream(writer.into()), Carrier::Stream(reader.into())))
}

/// Our own connection; whoever else found the port in the meantime is turned away.
fn accept(listener: &TcpListener, writer: &TcpStream) -> io::Result<TcpStream> {
    loop {
        let (reader, peer) = listener.accept()?;
        if peer == writer.local_addr()? {
            return Ok(reader);
        }
    }
}
