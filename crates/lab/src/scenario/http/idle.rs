//! Idle websockets: how much memory each takes, and whether all stay open.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::scenario::load::SILENCE;

/// Websockets that are opened, if this process may have that many.
const CONNECTIONS: usize = 10_000;
/// Descriptors that are kept for everything else.
const BESIDE: usize = 500;
/// Longest head of an answer.
const HEAD_LEN_MAX: usize = 4096;

/// Websockets that are open.
pub(super) struct IdleSockets(Vec<TcpStream>);

impl IdleSockets {
    /// Opens as many as this process may have, 10 000 at most.
    ///
    /// # Errors
    /// If this process may have too few files, if one cannot be opened, or if the server refuses.
    pub(super) fn open(address: SocketAddr, path: &str) -> Result<IdleSockets, String> {
        let allowed = allowed(CONNECTIONS + BESIDE);
        let count = allowed.saturating_sub(BESIDE).min(CONNECTIONS);
        if count == 0 {
            return Err(format!(
                "{allowed} open files leave no room for websockets; raise the limit (ulimit -n)"
            ));
        }
        let open = |at| open(address, path).map_err(|error| format!("websocket {at}: {error}"));
        (0..count).map(open).collect::<Result<_, _>>().map(IdleSockets)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// How many the server has closed or sent something on.
    pub(super) fn lost(&self) -> usize {
        let is_idle = |stream: &TcpStream| {
            let peeked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
            peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        self.0.iter().filter(|stream| !is_idle(stream)).count()
    }
}

/// How many files this process may have open, after asking for this many.
fn allowed(wanted: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.map_or(wanted as u64, |maximum| maximum.min(wanted as u64));
    if current.is_some_and(|current| current < most) {
        // If that is refused, the limit stays as it is.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    }
    getrlimit(Resource::Nofile).current.map_or(wanted, |it| it as usize)
}

fn open(address: SocketAddr, path: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SILENCE))?;
    // The key is the example of RFC 6455, 1.3.
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_LEN_MAX {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    if head.starts_with(b"HTTP/1.1 101 ") {
        return Ok(stream);
    }
    let text = String::from_utf8_lossy(&head);
    Err(io::Error::other(format!("answered: {}", text.lines().next().unwrap_or_default())))
}
