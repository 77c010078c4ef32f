//! Those who look on: WebSocket clients of the dashboard in this process, which do what the page
//! does with what comes, but draw nothing. One that stalls takes nothing at all.
//!
//! Those of a real run sit at other machines. These share the CPUs with the core, so they take as
//! little of them as they can: one thread looks after all of them, a hundred times a second.

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
/// What the page says where the camera's picture is to be seen.
const WANTS_IMAGES: &str = r#"{"do":"view","image":true}"#;
/// Between two looks at what has come; a page draws sixty times a second.
const LOOK: Duration = Duration::from_millis(10);
/// Between two looks of one that stalls whether it is over.
const STALLS_LOOK: Duration = Duration::from_millis(100);
/// Bytes that are read of a connection at once: a motion, a quarter of an image. The reader clears
/// them before.
const READ_LEN: usize = 8 << 10;
/// A server that says nothing for so long is hung.
const PATIENCE: Duration = Duration::from_secs(5);
/// The dashboard closes who takes nothing for five seconds; then another one comes.
const STALLS_FOR: Duration = Duration::from_secs(6);
/// What the kernel keeps for one that takes nothing, bytes: the least that it allows.
const BUFFER_LEN: usize = 2048;

/// Those who look on, until this is dropped.
pub(super) struct Viewers {
    /// Motions that each of them got that takes them.
    frames: Arc<[AtomicU64]>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

impl Viewers {
    /// So many, the last of whom take nothing, at an address as the dashboard announces it.
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

    /// Motions that each viewer got so far that takes them.
    pub(super) fn frames(&self) -> Vec<u64> {
        // Relaxed: a count that orders nothing.
        self.frames.iter().map(|frames| frames.load(Ordering::Relaxed)).collect()
    }

    /// Ends them all.
    pub(super) fn end(mut self) -> Result<(), String> {
        // Relaxed: it carries nothing but itself.
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

/// One who takes all that comes.
struct Viewer {
    socket: WebSocket<TcpStream>,
    heard: Instant,
}

/// As many as there are counts take all that comes.
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
        // It may have closed before us.
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

    /// Takes what has come, and counts the motions among it.
    fn look(&mut self) -> Result<u64, String> {
        let mut motions = 0;
        loop {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => {
                    motions += u64::from(bytes.first() == Some(&MOTION));
                    self.heard = Instant::now();
                }
                Ok(Message::Close(why)) => return Err(format!("a viewer was closed: {why:?}")),
                // A ping is answered with the next look.
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

/// Comes, takes nothing until it is closed, comes again.
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

/// A connection that the kernel keeps little for: the limit must be there before it opens.
fn narrow(site: SocketAddr) -> rustix::io::Result<TcpStream> {
    let family = if site.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let stream = socket(family, SocketType::STREAM, None)?;
    set_socket_recv_buffer_size(&stream, BUFFER_LEN)?;
    connect(&stream, &site)?;
    Ok(TcpStream::from(stream))
}

/// Asks for what a page is shown.
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
