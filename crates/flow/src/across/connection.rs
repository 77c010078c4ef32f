//! A connection between two workers: frames out at once if there is room, else in their order;
//! frames in as they come.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream as StdStream;

use bytes::{Buf, Bytes, BytesMut};
use tokio::net::UnixStream;
use tokio::sync::Notify;

use super::HELD_MAX;
use super::frame::Frame;

/// Bytes that are read at a time.
const READ_LEN: usize = 64 << 10;

/// One end.
pub(super) struct Connection {
    stream: UnixStream,
    outgoing: RefCell<VecDeque<Bytes>>,
    /// Bytes of these.
    held: Cell<usize>,
    /// Something is outgoing, or nothing is any more.
    changed: Notify,
}

impl Connection {
    pub(super) fn new(stream: StdStream) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        let (outgoing, held, changed) = (RefCell::default(), Cell::new(0), Notify::new());
        Ok(Connection { stream: UnixStream::from_std(stream)?, outgoing, held, changed })
    }

    /// Whether more waits for the other side than may.
    pub(super) fn is_full(&self) -> bool {
        self.held.get() > HELD_MAX
    }

    /// Says something: at once as far as there is room. To an end that is gone nothing is said;
    /// whoever reads finds out.
    pub(super) fn say(&self, mut frame: Bytes) {
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.is_empty() {
            match self.stream.try_write(&frame) {
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

    /// Says what could not be said at once, for ever; ends when the other end is gone.
    pub(super) async fn say_rest(&self) {
        loop {
            let changed = self.changed.notified();
            let first = self.outgoing.borrow().front().cloned();
            let Some(first) = first else {
                changed.await;
                continue;
            };
            let ready = self.stream.writable().await;
            match ready.and_then(|()| self.stream.try_write(&first)) {
                Ok(len) => self.said(len),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
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

    /// Waits until all is said.
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
    /// What came is none.
    pub(super) async fn hear(&self, come: &mut BytesMut) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = Frame::take(come).map_err(io::Error::other)? {
                return Ok(Some(frame));
            }
            self.stream.readable().await?;
            let begin = come.len();
            come.resize(begin + READ_LEN, 0);
            let read = self.stream.try_read(&mut come[begin..]);
            come.truncate(begin + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The process at the other end was killed.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}
