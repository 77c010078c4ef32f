//! One socket for each worker, all at the same port.

use std::io::{self, Write, stderr};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sinew_core::{Cause, Fault};
use sinew_flow::Held;
use socket2::{Domain, Protocol, Socket, Type};

/// Connections that may wait to be accepted; the kernel allows fewer if `net.core.somaxconn` is
/// less.
const BACKLOG: i32 = 4096;

/// A socket for each worker. The kernel divides connections among them.
///
/// # Errors
/// The port is in use, perhaps by another run of Sinew; or this user may not use it.
pub(super) fn sockets(address: SocketAddr, workers: usize) -> Result<Vec<Arc<TcpListener>>, Fault> {
    let opened = || -> io::Result<Vec<Arc<TcpListener>>> {
        let first = bound(address, true)?;
        let same = first.local_addr()?.as_socket();
        let same = same.ok_or_else(|| io::Error::other("the socket has no address"))?;
        let mut sockets = vec![first];
        for _ in 1..workers {
            sockets.push(bound(same, false)?);
        }
        let listens = |socket: Socket| socket.listen(BACKLOG).map(|()| Arc::new(socket.into()));
        sockets.into_iter().map(listens).collect()
    };
    opened().map_err(|error| refused(address, &error))
}

/// The sockets of an earlier listener at the same address, if it had one for each worker.
pub(super) fn taken_over(
    address: SocketAddr,
    workers: usize,
    held: &[Held],
) -> Option<Vec<Arc<TcpListener>>> {
    let sockets = held.iter().filter_map(|held| Arc::clone(held).downcast::<TcpListener>().ok());
    let same = |socket: &Arc<TcpListener>| socket.local_addr().is_ok_and(|own| own == address);
    let sockets: Vec<_> = sockets.filter(same).take(workers).collect();
    (sockets.len() == workers).then_some(sockets)
}

/// The first socket shares the port only once it is bound. If it shared the port before, it could
/// be bound to the port of another run that shares it too.
fn bound(address: SocketAddr, is_first: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Connections of an earlier run that the kernel still remembers do not block the port.
    socket.set_reuse_address(true)?;
    // Connections inherit this option: an answer is written at once, so there is nothing to wait
    // for.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_port(!is_first)?;
    socket.bind(&address.into())?;
    socket.set_reuse_port(true)?;
    Ok(socket)
}

/// Descriptors for all but the listener's connections: links, logs, files, requests to other
/// servers.
const DESCRIPTORS_BESIDE: u64 = 1024;

/// Lets this process open so many connections and `spare` more, as far as the kernel allows: most
/// shells set a lower limit. Gives how many fit, without the spare ones.
pub(super) fn allow_descriptors(connections: usize, spare: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = connections as u64 + spare as u64 + DESCRIPTORS_BESIDE;
    let allowed = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current.is_some_and(|current| current < allowed) {
        // If this is refused, the limit stays as it is, and a later shortage of descriptors is
        // reported.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum });
    }
    let Some(got) = getrlimit(Resource::Nofile).current.filter(|got| *got < wanted) else {
        return connections;
    };
    let fit = ((got - DESCRIPTORS_BESIDE.min(got / 2)) as usize).saturating_sub(spare).max(1);
    if fit >= connections {
        return connections;
    }
    // If stderr is closed, the message is lost, but refused connections are counted.
    let _ = writeln!(
        stderr(),
        "'connections_max' asks for {connections} connections, and {got} open files allow {fit}; \
         raise the limit (ulimit -n)"
    );
    fit
}

fn refused(address: SocketAddr, error: &io::Error) -> Fault {
    let help = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; stop the program that listens there, or choose another 'port'"
        }
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need CAP_NET_BIND_SERVICE: choose a greater one"
        }
        io::ErrorKind::AddrNotAvailable => "; 'host' must be an address of this machine",
        _ => "",
    };
    Fault::new(Cause::System, format_args!("cannot listen at {address}: {error}{help}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_change() {
        let address = SocketAddr::from(([0, 0, 0, 0], 80));
        let said = |kind: io::ErrorKind| refused(address, &kind.into()).to_string();
        let denied = said(io::ErrorKind::PermissionDenied);
        assert!(denied.contains("cannot listen at 0.0.0.0:80"), "{denied}");
        assert!(denied.contains("CAP_NET_BIND_SERVICE"), "{denied}");
        assert!(said(io::ErrorKind::AddrInUse).contains("another 'port'"));
    }
}
