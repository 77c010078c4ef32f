//! A connection between two workers. A frame is sent at once if there is room, otherwise after
//! those before it. Incoming frames are taken as they come.
//!
//! An end waits for room only while it has something to send. Otherwise the kernel would wake it up
//! each time that the other end has read something.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::HELD_MAX;
use super::frame::Frame;

/// Most bytes of one read.
const READ_LEN: usize = 64 << 10;

/// One end of a connection.
pub(super) struct Connection {
    /// Waits for incoming bytes.
    stream: AsyncFd<UnixStream>,
    /// Buffer that incoming bytes are read into.
    room: RefCell<Box<[u8]>>,
    outgoing: RefCell<VecDeque<Bytes>>,
    /// Total bytes of `outgoing`.
    held: Cell<usize>,
    /// `outgoing` has become non-empty or empty.
    changed: Notify,
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        let stream = waits(stream, Interest::READABLE)?;
        let room = RefCell::new(vec![0; READ_LEN].into());
        let (outgoing, held, changed) = (RefCell::default(), Cell::new(0), Notify::new());
        Ok(Connection { stream, room, outgoing, held, changed })
    }

    /// Whether more than `HELD_MAX` bytes wait for the other side.
    pub(super) fn is_full(&self) -> bool {
        self.held.get() > HELD_MAX
    }

    /// Sends a frame, at once as far as there is room. If the other end is gone, nothing is sent;
    /// [`Connection::hear`] finds that out.
    pub(super) fn say(&self, mut frame: Bytes) {
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.is_empty() {
            match self.stream.get_ref().write(&frame) {
                Ok(len) => frame.advance(len),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
        if !frame.is_empty() {
            self.held.set(self.held.get() + frame.len());
            outgoing.push_back(frame);
            self.changed.notify_waiters();
        }
    }

    /// Sends, for as long as the connection lasts, the frames that could not be sent at once. Ends
    /// when the other end is gone.
    pub(super) async fn say_rest(&self) {
        loop {
            let changed = self.changed.notified();
            if self.outgoing.borrow().is_empty() {
                changed.await;
            } else if self.say_outgoing().await.is_err() {
                return;
            }
        }
    }

    async fn say_outgoing(&self) -> io::Result<()> {
        let stream = self.stream.get_ref().try_clone()?;
        let stream = waits(stream, Interest::WRITABLE)?;
        loop {
            let first = self.outgoing.borrow().front().cloned();
            let Some(first) = first else { return Ok(()) };
            let mut ready = stream.writable().await?;
            // An error of `try_io` itself means that there is no room yet.
            if let Ok(written) = ready.try_io(|stream| stream.get_ref().write(&first)) {
                self.said(written?);
            }
        }
    }

    fn said(&self, len: usize) {
        let mut outgoing = self.outgoing.borrow_mut();
        self.held.set(self.held.get() - len);
        if let Some(first) = outgoing.front_mut() {
            first.advance(len);
            if first.is_empty() {
                outgoing.pop_front();
            }
        }
        if outgoing.is_empty() {
            self.changed.notify_waiters();
        }
    }

    /// Waits until all frames are sent.
    pub(super) async fn all_said(&self) {
        loop {
            let changed = self.changed.notified();
            if self.outgoing.borrow().is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// The bytes that came are not a frame.
    pub(super) async fn hear(&self, come: &mut BytesMut) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = Frame::take(come).map_err(io::Error::other)? {
                return Ok(Some(frame));
            }
            let mut ready = self.stream.readable().await?;
            let mut room = self.room.borrow_mut();
            match self.stream.get_ref().read(&mut room) {
                Ok(0) => return Ok(None),
                Ok(len) => {
                    come.extend_from_slice(&room[..len]);
                    // A read that does not fill the buffer has emptied the socket.
                    if len < room.len() {
                        ready.clear_ready();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The process at the other end was killed.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

/// A stream that waits for `interest` only.
#[expect(deprecated, reason = "sound for what keeps its descriptor; what replaces it is unsafe")]
fn waits(stream: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    AsyncFd::with_interest(stream, interest)
}
