//! The run's end of the control socket. It has no thread and never waits. The supervisor of the run
//! polls its descriptors together with others, and calls it in between.
//!
//! ```no_run
//! use sinew_control::{Answer, Server};
//! use sinew_control::status::Events;
//!
//! # fn main() -> std::io::Result<()> {
//! let (mut server, events) = (Server::open()?, Events::new());
//! let mut waits = Vec::new();
//! server.wait_for(&mut waits);
//! // rustix::event::poll(&mut waits, ...), until server.until_ns() at the latest; then:
//! for asked in server.receive() {
//!     server.answer(asked.from.id, &Answer::Error("not now".into()));
//! }
//! server.send(&events);
//! # Ok(())
//! # }
//! ```

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::geteuid;
use sinew_core::clock::{now_ns, timespec};
use sinew_core::sys::peer_of;

use super::peer::{Caller, Peer, PeerId};
use super::{Answer, Request, client, place, to_line};
use crate::status::Events;

/// Most connections that stay: clients that ask a second time (`top`) or follow the log. A further
/// one gets a line that says so, and is closed.
pub const PEERS_MAX: usize = 16;

/// Places besides those, for clients that ask once and for orders. Nobody can hold one: the newest
/// client displaces the one that has had its place longest, so that a halt always gets in.
const PASSING_MAX: usize = 4;

/// Connections that are accepted at once. Each is handled before others may displace it, and the
/// domains must be watched even while a thousand arrive.
const ACCEPTS_MAX: usize = PASSING_MAX;

/// Most runs of one process at once. Only tests have several.
const RUNS_MAX: u32 = 64;

/// How long no connection is accepted after the kernel refused one for lack of descriptors or
/// memory.
const DEAF_NS: u64 = 100_000_000;

/// A request and its sender.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The peer that waits for an answer.
    pub from: Caller,
    /// The request. It is never [`Request::Log`], which the server handles itself.
    pub request: Request,
}

/// A control socket. Dropping it removes the socket's file.
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    peers: Vec<Peer>,
    connections: u64,
    deaf_until_ns: u64,
}

impl Server {
    /// Makes the control socket of this run, in the folder that [`place::folder`] names.
    ///
    /// # Errors
    /// If there is no such folder, or no socket can be made in it. The error says what to do.
    pub fn open() -> io::Result<Server> {
        Server::open_in(&place::folder()?)
    }

    /// The same in a folder of the caller's choice, which must be closed to other users.
    ///
    /// # Errors
    /// As for [`Server::open`].
    pub fn open_in(folder: &Path) -> io::Result<Server> {
        client::remove_stale(folder);
        let pid = std::process::id();
        for number in 0..RUNS_MAX {
            let name = if number == 0 { format!("{pid}") } else { format!("{pid}-{number}") };
            let path = folder.join(name).with_extension(place::ENDING);
            match listen(&path) {
                Ok(listener) => {
                    let (peers, connections, deaf_until_ns) = (Vec::new(), 0, 0);
                    return Ok(Server { listener, path, peers, connections, deaf_until_ns });
                }
                // Another run of this process has the name, or a run that was killed and had the
                // same process number.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => {
                    let path = path.display();
                    let text = format!(
                        "cannot make the control socket {path}: {error}; check the folder, or set \
                         XDG_RUNTIME_DIR to another one of yours"
                    );
                    return Err(io::Error::new(error.kind(), text));
                }
            }
        }
        let folder = folder.display();
        let text = format!("{RUNS_MAX} runs of this process have a socket in {folder}; stop one");
        Err(io::Error::other(text))
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the descriptors to wait for.
    pub fn wait_for<'a>(&'a self, waits: &mut Vec<PollFd<'a>>) {
        if self.deaf_until_ns == 0 {
            waits.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        waits.extend(self.peers.iter().map(Peer::wait));
    }

    /// When to go on at the latest, in monotonic ns, even if nothing happens. `None`: never.
    pub fn until_ns(&self) -> Option<u64> {
        let deaf = (self.deaf_until_ns != 0).then_some(self.deaf_until_ns);
        self.peers.iter().filter_map(Peer::until_ns).chain(deaf).min()
    }

    /// Accepts connections and reads what has arrived. Returns the requests to answer, at most one
    /// of each peer.
    pub fn receive(&mut self) -> Vec<Incoming> {
        let now_ns = now_ns();
        self.accept(now_ns);
        let mut stay = self.peers.iter().filter(|peer| peer.stays()).count();
        let asked = self.peers.iter_mut().filter_map(|peer| {
            let stayed = peer.stays();
            let request = peer.receive(now_ns);
            if peer.stays() && !stayed {
                if stay == PEERS_MAX {
                    peer.dismiss(too_many());
                    return None;
                }
                stay += 1;
            }
            Some(Incoming { from: peer.caller, request: request? })
        });
        asked.collect()
    }

    /// Adds a connection that the run itself has made to one of its services. It does not count as
    /// one of [`PEERS_MAX`], and may be silent for any time.
    pub fn adopt(&mut self, stream: UnixStream, service: usize) {
        if stream.set_nonblocking(true).is_ok() {
            self.take(stream, 0, Some(service), now_ns());
        }
    }

    /// Answers a request; [`Server::send`] sends the answer. A peer that is gone gets none.
    pub fn answer(&mut self, peer: PeerId, answer: &Answer) {
        if let Some(peer) = self.peers.iter_mut().find(|it| it.caller.id == peer) {
            peer.say(answer);
        }
    }

    /// The same with descriptors, at most [`HANDED_MAX`](crate::HANDED_MAX).
    pub fn hand(&mut self, peer: PeerId, answer: &Answer, descriptors: Vec<OwnedFd>) {
        if let Some(peer) = self.peers.iter_mut().find(|it| it.caller.id == peer) {
            peer.hand(answer, descriptors);
        }
    }

    /// Sends answers, and events to the peers that follow them. Closes connections that are over.
    pub fn send(&mut self, events: &Events) {
        let now_ns = now_ns();
        self.peers.iter_mut().for_each(|peer| peer.send(events, now_ns));
        self.peers.retain(|peer| !peer.is_over(now_ns));
    }

    /// Whether a connection waits to be accepted. Asking is cheap; a call of accept costs the
    /// kernel a socket even if there is no connection.
    fn is_called(&self) -> bool {
        let mut wait = [PollFd::new(&self.listener, PollFlags::IN)];
        poll(&mut wait, Some(&timespec(0))).is_ok_and(|ready| ready > 0)
    }

    fn accept(&mut self, now_ns: u64) {
        if now_ns < self.deaf_until_ns || !self.is_called() {
            return;
        }
        self.deaf_until_ns = 0;
        for _ in 0..ACCEPTS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream, now_ns),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // The connection keeps waiting, so without this pause poll would return at
                    // once, again and again.
                    self.deaf_until_ns = now_ns + DEAF_NS;
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: UnixStream, now_ns: u64) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let ours = geteuid().as_raw();
        match peer_of(stream.as_fd()) {
            Err(error) => refuse(&stream, format!("cannot see who asks: {error}")),
            Ok((_, uid)) if uid != ours => {
                let text = format!(
                    "this run belongs to user {ours}, you are user {uid}; ask as user {ours}"
                );
                refuse(&stream, text);
            }
            Ok((process, _)) => {
                while self.peers.iter().filter(|it| it.passes()).count() >= PASSING_MAX {
                    self.displace(now_ns);
                }
                self.take(stream, process, None, now_ns);
            }
        }
    }

    fn take(&mut self, stream: UnixStream, process: u32, service: Option<usize>, now_ns: u64) {
        self.connections += 1;
        let caller = Caller { id: PeerId(self.connections), process, service };
        self.peers.push(Peer::new(stream, caller, now_ns));
    }

    /// Removes the oldest peer among those that do not stay. A peer that waits for the result of
    /// its order is removed only if all do.
    fn displace(&mut self, now_ns: u64) {
        let passing = self.peers.iter_mut().filter(|it| it.passes());
        let Some(oldest) = passing.min_by_key(|it| it.has_ordered) else { return };
        oldest.dismiss(displaced(oldest.has_ordered));
        // Sends what the socket takes at once: the peer is not served later.
        oldest.send(&Events::new(), now_ns);
        let gone = oldest.caller.id;
        self.peers.retain(|peer| peer.caller.id != gone);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The socket may be gone with its folder. If it remains, the next run removes it.
        let _ = fs::remove_file(&self.path);
        // Processes of this run that were killed have left their sockets.
        self.path.parent().into_iter().for_each(client::remove_stale);
    }
}

/// A nonblocking socket. Its folder keeps others out until its own mode does.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    let ready = fs::set_permissions(path, Permissions::from_mode(0o600))
        .and_then(|()| listener.set_nonblocking(true));
    if let Err(error) = ready {
        // The first error is the one to report.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(listener)
}

fn too_many() -> String {
    format!(
        "this run has {PEERS_MAX} lasting connections, the limit; end a 'sinew top' or 'sinew \
         log', or try again"
    )
}

fn displaced(has_ordered: bool) -> String {
    let next = match has_ordered {
        true => "its request is carried out; 'sinew top' shows the result",
        false => "try again",
    };
    format!("this connection was closed for newer ones: {PASSING_MAX} at most are open; {next}")
}

/// Sends one line, which an empty socket always takes. Then the connection is closed.
fn refuse(mut stream: &UnixStream, text: String) {
    // If even this line is not taken, no action is needed.
    let _ = stream.write(&to_line(Answer::Error(text)));
}
