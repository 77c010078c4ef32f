//! A peer at the other end of a connection: its incomplete request, the output that it has not read
//! yet, and how long it may take. Nothing here waits for a peer.

use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Serialize;

use super::{Answer, REQUEST_LEN_MAX, Request, parse_request, to_line};
use crate::status::Events;

/// How long a peer may go without a whole request, or without reading its output. The slowest
/// honest peer is a person who types into a socket. After this time the connection is closed.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Bytes of events that are held for a peer before it reads them. Further events stay in the shared
/// store, and count as missed if the peer is too slow for them.
const OUTPUT_LEN_FULL: usize = 64 << 10;

/// Most descriptors that are sent with an answer: the kernel takes no more (`SCM_MAX_FD`).
pub const HANDED_MAX: usize = 253;

/// The number of a connection, unique within the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerId(pub(super) u64);

/// The peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The peer's connection.
    pub id: PeerId,
    /// The peer's process; 0 if it cannot be seen from here.
    pub process: u32,
    /// The service domain that the peer is, by its place in the plan. `None`: a peer from outside.
    pub service: Option<usize>,
}

pub(super) struct Peer {
    stream: UnixStream,
    pub(super) caller: Caller,
    /// Input so far; no longer than a request may be.
    input: Vec<u8>,
    /// Output: one answer, or up to [`OUTPUT_LEN_FULL`] bytes and one event.
    output: Vec<u8>,
    /// Descriptors that go with the next bytes of the output.
    handed: Vec<OwnedFd>,
    /// When the peer last sent a whole request or read something.
    moved_ns: u64,
    log: Option<Reading>,
    /// Whole requests so far.
    asked: u64,
    /// The peer has given an order. Then it never takes one of the places of peers that stay,
    /// whatever else it asks. Among the other places it is displaced last, because it may wait for
    /// the result of its order.
    pub(super) has_ordered: bool,
    is_silent: bool,
    /// Nothing more is expected from the peer: it is closed after the remaining output.
    is_dismissed: bool,
    is_gone: bool,
}

struct Reading {
    after: u64,
    follow: bool,
}

impl Peer {
    /// A peer on a nonblocking stream.
    pub(super) fn new(stream: UnixStream, caller: Caller, now_ns: u64) -> Peer {
        Peer {
            stream,
            caller,
            input: Vec::new(),
            output: Vec::new(),
            handed: Vec::new(),
            moved_ns: now_ns,
            log: None,
            asked: 0,
            has_ordered: false,
            is_silent: false,
            is_dismissed: false,
            is_gone: false,
        }
    }

    /// Whether the peer has one of the places of peers that stay: it has asked again, or follows
    /// the log.
    pub(super) fn stays(&self) -> bool {
        let follows = self.log.as_ref().is_some_and(|log| log.follow);
        !self.never_stays() && (self.asked > 1 || follows)
    }

    /// Whether the peer has one of the other places.
    pub(super) fn passes(&self) -> bool {
        self.caller.service.is_none() && !self.stays()
    }

    fn never_stays(&self) -> bool {
        self.caller.service.is_some() || self.has_ordered || self.is_dismissed
    }

    pub(super) fn wait(&self) -> PollFd<'_> {
        let reads =
            if self.is_busy() || self.is_silent { PollFlags::empty() } else { PollFlags::IN };
        let writes = if self.output.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        PollFd::new(&self.stream, reads | writes)
    }

    /// When to look at the peer at the latest, even if nothing arrives. `None`: not needed.
    pub(super) fn until_ns(&self) -> Option<u64> {
        if !self.is_busy() && self.input.contains(&b'\n') {
            return Some(0);
        }
        let may_be_silent =
            (self.log.is_some() || self.caller.service.is_some()) && self.output.is_empty();
        (!may_be_silent).then_some(self.moved_ns + PATIENCE_NS)
    }

    /// Whether the peer has not read all of the last answer. Then its next request can wait.
    fn is_busy(&self) -> bool {
        !self.output.is_empty() || self.log.as_ref().is_some_and(|log| !log.follow)
    }

    /// The peer's next request. Garbage and requests for the log are handled here and not returned.
    pub(super) fn receive(&mut self, now_ns: u64) -> Option<Request> {
        if self.is_busy() || self.is_dismissed {
            return None;
        }
        self.read();
        let Some(end) = self.input.iter().position(|&byte| byte == b'\n') else {
            self.judge_silence(now_ns);
            return None;
        };
        let line: Vec<_> = self.input.drain(..=end).collect();
        self.moved_ns = now_ns;
        self.asked += 1;
        match parse_request(&line) {
            Ok(Request::Log { after, follow }) => {
                self.log = Some(Reading { after, follow });
                None
            }
            Ok(request) => {
                let asks = matches!(
                    request,
                    Request::Status {} | Request::Traces {} | Request::Tunables {}
                );
                self.has_ordered |= !asks;
                Some(request)
            }
            Err(text) => {
                self.say(&Answer::Error(text));
                None
            }
        }
    }

    /// Reads as much as fits.
    fn read(&mut self) {
        let mut bytes = [0; REQUEST_LEN_MAX];
        let room = REQUEST_LEN_MAX - self.input.len();
        if room == 0 || self.is_silent {
            return;
        }
        match self.stream.read(&mut bytes[..room]) {
            Ok(0) => self.is_silent = true,
            Ok(len) => self.input.extend(&bytes[..len]),
            Err(error) => self.is_gone = !is_for_later(&error),
        }
    }

    /// Decides about a peer that has not sent a whole request.
    fn judge_silence(&mut self, now_ns: u64) {
        if self.input.len() == REQUEST_LEN_MAX {
            let text = format!(
                "the request is longer than {REQUEST_LEN_MAX} bytes, the limit; end each request \
                 with a newline"
            );
            self.dismiss(text);
        } else if self.is_silent {
            self.is_dismissed = true;
        } else if self.log.is_none() && self.caller.service.is_none() && self.is_late(now_ns) {
            self.dismiss(format!(
                "no request within {} s; connect again",
                PATIENCE_NS / 1_000_000_000
            ));
        }
    }

    fn is_late(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.moved_ns) > PATIENCE_NS
    }

    pub(super) fn dismiss(&mut self, text: String) {
        self.log = None;
        self.say(&Answer::Error(text));
        self.is_dismissed = true;
    }

    /// Appends a line to the output.
    pub(super) fn say(&mut self, what: &impl Serialize) {
        self.output.extend(to_line(what));
    }

    /// The same, with descriptors, [`HANDED_MAX`] at most.
    pub(super) fn hand(&mut self, what: &impl Serialize, descriptors: Vec<OwnedFd>) {
        self.say(what);
        self.handed = descriptors;
    }

    /// Sends as much as the peer takes without waiting.
    pub(super) fn send(&mut self, events: &Events, now_ns: u64) {
        loop {
            self.tell(events);
            if self.output.is_empty() || self.is_gone {
                return;
            }
            match write(&self.stream, &self.output, &self.handed) {
                Ok(len) => {
                    self.output.drain(..len);
                    self.handed.clear();
                    self.moved_ns = now_ns;
                }
                Err(error) => {
                    self.is_gone = !is_for_later(&error);
                    return;
                }
            }
        }
    }

    /// Adds events to the output, as many as are held at once.
    fn tell(&mut self, events: &Events) {
        let Some(mut log) = self.log.take() else { return };
        log.after = log.after.min(events.newest());
        if self.output.len() < OUTPUT_LEN_FULL {
            let missed = events.missed(log.after);
            if missed > 0 {
                self.say(&Answer::Missed(missed));
                log.after += missed;
            }
        }
        for event in events.after(log.after) {
            if self.output.len() >= OUTPUT_LEN_FULL {
                break;
            }
            self.say(&Answer::Event(event.clone()));
            log.after = event.number;
        }
        if log.follow || log.after < events.newest() {
            self.log = Some(log);
        } else {
            self.say(&Answer::End(log.after));
        }
    }

    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        let has_all = self.output.is_empty() && self.is_dismissed;
        let is_slow = !self.output.is_empty() && self.is_late(now_ns);
        self.is_gone || has_all || is_slow
    }
}

/// Writes what the socket takes at once. The descriptors go with the first byte.
fn write(stream: &UnixStream, bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<usize> {
    const SPACE: usize = rustix::cmsg_space!(ScmRights(HANDED_MAX));
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    if !descriptors.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("a bug: more descriptors than are handed over at once"));
    }
    Ok(sendmsg(stream, &[IoSlice::new(bytes)], &mut rights, SendFlags::NOSIGNAL)?)
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
