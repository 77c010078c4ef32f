//! Those who look on: WebSocket clients of the dashboard on threads of this process, which do what
//! the page does with what comes, but draw nothing. One that stalls takes nothing at all.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;
use tungstenite::http::header::ORIGIN;
use tungstenite::{Error, Message, WebSocket, client};

/// First byte of the dashboard's messages with the arm's motion, 30 a second.
const MOTION: u8 = 1;
/// What the page says where the camera's picture is to be seen.
const WANTS_IMAGES: &str = r#"{"do":"view","image":true}"#;
/// Longest wait for a message, and so for the end.
const LOOK: Duration = Duration::from_millis(100);
/// A server that says nothing for so long is hung.
const PATIENCE: Duration = Duration::from_secs(5);
/// The dashboard closes who takes nothing for five seconds; then another one comes.
const STALLS_FOR: Duration = Duration::from_secs(6);
/// What the kernel keeps for one that takes nothing, bytes: the least that it allows.
const BUFFER_LEN: usize = 2048;

/// Those who look on, until this is dropped.
pub(super) struct Viewers {
    all: Vec<Viewer>,
    stop: Arc<AtomicBool>,
}

struct Viewer {
    /// Motions that it got.
    frames: Arc<AtomicU64>,
    stalls: bool,
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl Viewers {
    /// So many, the last of whom take nothing, at an address as the dashboard announces it.
    ///
    /// # Errors
    /// If that is none.
    pub(super) fn start(
        address: &str,
        (count, stalled): (usize, usize),
    ) -> Result<Viewers, String> {
        let site = address.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let site = site.and_then(|site| site.parse::<SocketAddr>().ok());
        let site = site.ok_or_else(|| format!("'{address}' is no address of a dashboard"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let viewer = |at| {
            let frames = Arc::new(AtomicU64::new(0));
            let (stop, counter, stalls) =
                (Arc::clone(&stop), Arc::clone(&frames), at >= count - stalled);
            let work = move || match stalls {
                true => stall(site, &stop),
                false => look(site, &stop, &counter),
            };
            Viewer { frames, stalls, thread: Some(thread::spawn(work)) }
        };
        Ok(Viewers { all: (0..count).map(viewer).collect(), stop })
    }

    /// Motions that each viewer got so far that takes them.
    pub(super) fn frames(&self) -> Vec<u64> {
        let taking = self.all.iter().filter(|viewer| !viewer.stalls);
        // Relaxed: a count that orders nothing.
        taking.map(|viewer| viewer.frames.load(Ordering::Relaxed)).collect()
    }

    /// Ends them all.
    ///
    /// # Errors
    /// Why one had ended before.
    pub(super) fn end(mut self) -> Result<(), String> {
        // Relaxed: it carries nothing but itself.
        self.stop.store(true, Ordering::Relaxed);
        let threads = self.all.iter_mut().filter_map(|viewer| viewer.thread.take());
        let ends: Vec<_> = threads.map(JoinHandle::join).collect();
        ends.into_iter().try_for_each(|end| end.unwrap_or_else(|_| Err("it panicked".into())))
    }
}

impl Drop for Viewers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Takes all that comes.
fn look(site: SocketAddr, stop: &AtomicBool, frames: &AtomicU64) -> Result<(), String> {
    let stream = TcpStream::connect(site).map_err(|error| format!("a viewer: {error}"))?;
    let mut socket = open(site, stream)?;
    let mut heard = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        match socket.read() {
            Ok(Message::Binary(bytes)) => {
                let is_motion = bytes.first() == Some(&MOTION);
                frames.fetch_add(u64::from(is_motion), Ordering::Relaxed);
                heard = Instant::now();
            }
            Ok(Message::Close(why)) => return Err(format!("a viewer was closed: {why:?}")),
            // A ping is answered with the next look.
            Ok(_) => {}
            Err(Error::Io(error)) if is_late(error.kind()) && heard.elapsed() < PATIENCE => {}
            Err(error) => return Err(format!("a viewer: {error}")),
        }
    }
    // It may have closed before us.
    let _ = socket.close(None);
    Ok(())
}

/// Comes, takes nothing until it is closed, comes again.
fn stall(site: SocketAddr, stop: &AtomicBool) -> Result<(), String> {
    while !stop.load(Ordering::Relaxed) {
        let stream = narrow(site).map_err(|error| format!("a viewer that stalls: {error}"))?;
        let _socket = open(site, stream)?;
        let begun = Instant::now();
        while begun.elapsed() < STALLS_FOR && !stop.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
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
    let (mut socket, _) = client(request, stream).map_err(|error| refused(error.to_string()))?;
    socket.send(Message::text(WANTS_IMAGES)).map_err(|error| refused(error.to_string()))?;
    let waits = socket.get_ref().set_read_timeout(Some(LOOK));
    waits.map_err(|error| refused(error.to_string()))?;
    Ok(socket)
}

/// Whether nothing has come in time.
fn is_late(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
