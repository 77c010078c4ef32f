//! The run's end of the control socket. It has no thread and never waits: whoever supervises the
//! run waits for its descriptors among his own, and calls it in between.
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

/// Connections that stay: who asks a second time (`top`) or follows the log. Who wants to be a
/// further one gets a line that says so, and is closed.
pub const PEERS_MAX: usize = 16;

/// Places beside those, for who asks once and for orders: nobody can hold them. The newest takes
/// the place of whoever has had one for the longest time, so that a halt gets in.
const PASSING_MAX: usize = 4;

/// Connections that are taken at once: each is looked at before others may take its place, and the
/// domains must be watched even while a thousand come.
const ACCEPTS_MAX: usize = PASSING_MAX;

/// Runs of one process at once; only tests have several.
const RUNS_MAX: u32 = 64;

/// How long nobody is accepted after the kernel refused to, for want of descriptors or memory.
const DEAF_NS: u64 = 100_000_000;

/// A request, and whose it is.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Who waits for an answer.
    pub from: Caller,
    /// What he wants; never [`Request::Log`], which the server deals with.
    pub request: Request,
}

/// A control socket. Dropping it removes it.
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
    /// If there is no such folder, or no socket can be made in it; says what to do.
    pub fn open() -> io::Result<Server> {
        Server::open_in(&place::folder()?)
    }

    /// The same in a folder of the caller's choice, which must be for its owner alone.
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
                // A run of this process has it, or one that was killed and had the same number.
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

    /// Where the socket stands.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds what there is to wait for.
    pub fn wait_for<'a>(&'a self, waits: &mut Vec<PollFd<'a>>) {
        if self.deaf_until_ns == 0 {
            waits.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        waits.extend(self.peers.iter().map(Peer::wait));
    }

    /// When to go on at the latest, monotonic ns, even if nothing happens; `None`: never.
    pub fn until_ns(&self) -> Option<u64> {
        let deaf = (self.deaf_until_ns != 0).then_some(self.deaf_until_ns);
        self.peers.iter().filter_map(Peer::until_ns).chain(deaf).min()
    }

    /// Takes connections and reads what came; the requests that are to be answered, one of each
    /// peer at most.
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

    /// Takes in a connection that the run has made itself, to a service of its own: it does not
    /// count as one of [`PEERS_MAX`], and may be silent for as long as it likes.
    pub fn adopt(&mut self, stream: UnixStream, service: usize) {
        if stream.set_nonblocking(true).is_ok() {
            self.take(stream, 0, Some(service), now_ns());
        }
    }

    /// Answers a request; [`Server::send`] sends it. A peer who is gone gets no answer.
    pub fn answer(&mut self, peer: PeerId, answer: &Answer) {
        if let Some(peer) = self.peers.iter_mut().find(|it| it.caller.id == peer) {
            peer.say(answer);
        }
    }

    /// The same with descriptors, [`HANDED_MAX`](crate::HANDED_MAX) at most.
    pub fn hand(&mut self, peer: PeerId, answer: &Answer, descriptors: Vec<OwnedFd>) {
        if let Some(peer) = self.peers.iter_mut().find(|it| it.caller.id == peer) {
            peer.hand(answer, descriptors);
        }
    }

    /// Sends answers, and events to those who follow them; closes what is over.
    pub fn send(&mut self, events: &Events) {
        let now_ns = now_ns();
        self.peers.iter_mut().for_each(|peer| peer.send(events, now_ns));
        self.peers.retain(|peer| !peer.is_over(now_ns));
    }

    /// Whether somebody waits to be accepted. To ask is cheap; to accept costs the kernel a socket
    /// even if nobody is there.
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
                    // The connection waits, so that a poll would return at once for ever.
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

    /// Takes the place of the oldest of those who pass; of one who waits for what comes of his
    /// order only if all do.
    fn displace(&mut self, now_ns: u64) {
        let passing = self.peers.iter_mut().filter(|it| it.passes());
        let Some(oldest) = passing.min_by_key(|it| it.has_ordered) else { return };
        oldest.dismiss(displaced(oldest.has_ordered));
        // What can be sent at once is: he waits no longer.
        oldest.send(&Events::new(), now_ns);
        let gone = oldest.caller.id;
        self.peers.retain(|peer| peer.caller.id != gone);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone with its folder; what is left is removed by the next run.
        let _ = fs::remove_file(&self.path);
        // Processes of this run that were killed have left theirs.
        self.path.parent().into_iter().for_each(client::remove_stale);
    }
}

/// A socket that does not block. Its folder keeps others out until its own mode does.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    let ready = fs::set_permissions(path, Permissions::from_mode(0o600))
        .and_then(|()| listener.set_nonblocking(true));
    if let Err(error) = ready {
        // The first error is the one to tell.
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

/// One line, which an empty socket always takes; then the connection is closed.
fn refuse(mut stream: &UnixStream, text: String) {
    // Who does not even take a line does not want to know.
    let _ = stream.write(&to_line(Answer::Error(text)));
}
