//! The viewers: WebSocket clients of the dashboard in this process. They do with messages what the
//! page does, but draw nothing. A viewer that stalls reads nothing at all.
//!
//! Viewers of a real run are on other machines. These share the CPUs with the core, so they use as
//! little CPU time as possible: one thread serves all of them, a hundred times a second.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use tungstenite::client::{IntoClientRequest, client_with_config};
use tungstenite::http::HeaderValue;
use tungstenite::http::header::ORIGIN;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

/// First byte of the dashboard's messages with the arm's motion, 30 a second.
const MOTION: u8 = 1;
/// The message by which the page says that the camera's picture is visible.
const WANTS_IMAGES: &str = r#"{"do":"view","image":true}"#;
/// Time between two looks at what has arrived; a page draws sixty times a second.
const LOOK: Duration = Duration::from_millis(10);
/// Time between two looks of a stalling viewer at whether it should end.
const STALLS_LOOK: Duration = Duration::from_millis(100);
/// Bytes that are read from a connection at once: a motion, or a quarter of an image. The reader
/// clears them before each read.
const READ_LEN: usize = 8 << 10;
/// A server that says nothing for this long hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// The dashboard closes a viewer that reads nothing for five seconds; then another one comes.
const STALLS_FOR: Duration = Duration::from_secs(6);
/// The kernel's buffer for a viewer that reads nothing, bytes: the least that the kernel allows.
const BUFFER_LEN: usize = 2048;

/// Viewers that run until this is dropped.
pub(super) struct Viewers {
    /// How many motions each viewer that reads has got.
    frames: Arc<[AtomicU64]>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

impl Viewers {
    /// Starts this many viewers, the last of which read nothing, at an address as the dashboard
    /// announces it.
    pub(super) fn start(
        address: &str,
        (count, stalled): (usize, usize),
    ) -> Result<Viewers, String> {
        let site = address.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let site = site.and_then(|site| site.parse::<SocketAddr>().ok());
        let site = site.ok_or_else(|| format!("'{address}' is not an address of a dashboard"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let frames: Arc<[AtomicU64]> = (stalled..count).map(|_| AtomicU64::new(0)).collect();
        let stalling = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || stall(site, &stop))
        };
        let mut threads: Vec<_> = (0..stalled).map(stalling).collect();
        let (stops, counts) = (Arc::clone(&stop), Arc::clone(&frames));
        threads.push(thread::spawn(move || look(site, &stops, &counts)));
        Ok(Viewers { frames, stop, threads })
    }

    /// How many motions each viewer that reads has got so far.
    pub(super) fn frames(&self) -> Vec<u64> {
        // Relaxed: a count that orders nothing.
        self.frames.iter().map(|frames| frames.load(Ordering::Relaxed)).collect()
    }

    /// Ends all viewers.
    pub(super) fn end(mut self) -> Result<(), String> {
        // Relaxed: the flag carries no other data with it.
        self.stop.store(true, Ordering::Relaxed);
        let ends: Vec<_> = self.threads.drain(..).map(JoinHandle::join).collect();
        ends.into_iter().try_for_each(|end| end.unwrap_or_else(|_| Err("it panicked".into())))
    }
}

impl Drop for Viewers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A viewer that reads all messages.
struct Viewer {
    socket: WebSocket<TcpStream>,
    heard: Instant,
}

/// Runs a reading viewer for each of the counts.
fn look(site: SocketAddr, stop: &AtomicBool, frames: &[AtomicU64]) -> Result<(), String> {
    let come = |_: &AtomicU64| Viewer::come(site);
    let mut viewers = frames.iter().map(come).collect::<Result<Vec<_>, _>>()?;
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        for (viewer, frames) in viewers.iter_mut().zip(frames) {
            frames.fetch_add(viewer.look()?, Ordering::Relaxed);
        }
    }
    for viewer in &mut viewers {
        // The server may have closed it before.
        let _ = viewer.socket.close(None);
    }
    Ok(())
}

impl Viewer {
    fn come(site: SocketAddr) -> Result<Viewer, String> {
        let stream = TcpStream::connect(site).map_err(|error| format!("a viewer: {error}"))?;
        let socket = open(site, stream)?;
        let waits = socket.get_ref().set_nonblocking(true);
        waits.map_err(|error| format!("a viewer: {error}"))?;
        Ok(Viewer { socket, heard: Instant::now() })
    }

    /// Reads what has arrived, and counts the motions in it.
    fn look(&mut self) -> Result<u64, String> {
        let mut motions = 0;
        loop {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => {
                    motions += u64::from(bytes.first() == Some(&MOTION));
                    self.heard = Instant::now();
                }
                Ok(Message::Close(why)) => return Err(format!("a viewer was closed: {why:?}")),
                // A ping is answered at the next look.
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    let is_late = self.heard.elapsed() >= PATIENCE;
                    return if is_late { Err(format!("a viewer: {error}")) } else { Ok(motions) };
                }
                Err(error) => return Err(format!("a viewer: {error}")),
            }
        }
    }
}

/// Connects, reads nothing until it is closed, and connects again.
fn stall(site: SocketAddr, stop: &AtomicBool) -> Result<(), String> {
    while !stop.load(Ordering::Relaxed) {
        let stream = narrow(site).map_err(|error| format!("a viewer that stalls: {error}"))?;
        let _socket = open(site, stream)?;
        let begun = Instant::now();
        while begun.elapsed() < STALLS_FOR && !stop.load(Ordering::Relaxed) {
            thread::sleep(STALLS_LOOK);
        }
    }
    Ok(())
}

/// A connection with a small buffer in the kernel: the limit must be set before it opens.
fn narrow(site: SocketAddr) -> rustix::io::Result<TcpStream> {
    let family = if site.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let stream = socket(family, SocketType::STREAM, None)?;
    set_socket_recv_buffer_size(&stream, BUFFER_LEN)?;
    connect(&stream, &site)?;
    Ok(TcpStream::from(stream))
}

/// Asks for everything that a page is shown.
fn open(site: SocketAddr, stream: TcpStream) -> Result<WebSocket<TcpStream>, String> {
    let refused = |error: String| format!("the dashboard refuses a viewer: {error}");
    let limits = stream.set_read_timeout(Some(PATIENCE)).and(stream.set_nodelay(true));
    limits.map_err(|error| refused(error.to_string()))?;
    let mut request = format!("ws://{site}/ws").into_client_request();
    if let Ok(request) = &mut request {
        let origin = HeaderValue::from_str(&format!("http://{site}"));
        request.headers_mut().insert(ORIGIN, origin.expect("an address has no odd character"));
    }
    let request = request.map_err(|error| refused(error.to_string()))?;
    let limits = Some(WebSocketConfig::default().read_buffer_size(READ_LEN));
    let opened = client_with_config(request, stream, limits);
    let (mut socket, _) = opened.map_err(|error| refused(error.to_string()))?;
    socket.send(Message::text(WANTS_IMAGES)).map_err(|error| refused(error.to_string()))?;
    Ok(socket)
}
