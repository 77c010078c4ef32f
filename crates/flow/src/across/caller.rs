//! The calling side: a node that stands in for a node of another domain, and the connection behind
//! it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram as StdDatagram, UnixStream as StdStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::sync::oneshot;
use tokio::task::{spawn_local, yield_now};
use tokio::time::sleep;

use super::CALLS_MAX;
use super::connection::Connection;
use super::frame::{Frame, SentPacket};
use crate::path::program::StandIn;
use crate::tell::Teller;
use crate::{Ahead, At, Error, FlowNode, Reply, Step, Value};

/// Pause between the end of a connection and the next one: without it, a domain that dies at once
/// would be called again in a busy loop.
const PAUSE: Duration = Duration::from_millis(10);
/// The other side gets this part of the time that is left, so that its error about a deadline
/// arrives before our own deadline.
const PART_OF_TIME: f64 = 0.95;
/// So many bytes of a packet cost one unit of work.
const BYTES_PER_UNIT: usize = 16;

/// The callers of a worker, by domain of the plan.
pub(crate) type Callers = BTreeMap<usize, Rc<Caller>>;

/// Makes the nodes that stand in for nodes of these domains.
pub(crate) fn stand_in(callers: &Callers) -> StandIn {
    let callers = callers.clone();
    Rc::new(move |plan, to| {
        let node = &plan.nodes[to.node];
        let caller = Rc::clone(callers.get(&node.domain)?);
        let (name, input) = (node.name.as_str().into(), node.kind.port_name(to.port).into());
        Some(Box::new(Across { caller, node: name, input }))
    })
}

/// Calls one domain, for one worker.
pub(crate) struct Caller {
    domain: ByteString,
    door: OwnedFd,
    teller: Teller,
    /// The connection that it calls over; `None` while the other domain is not there.
    connection: RefCell<Option<Rc<Connection>>>,
    waiting: RefCell<HashMap<u64, oneshot::Sender<(Reply, u64)>>>,
    next_id: Cell<u64>,
}

impl Caller {
    /// Calls the domain with this name through its door.
    pub(crate) fn new(domain: &str, door: OwnedFd, teller: Teller) -> Caller {
        Caller {
            domain: domain.into(),
            door,
            teller,
            connection: RefCell::default(),
            waiting: RefCell::default(),
            next_id: Cell::new(0),
        }
    }

    /// Keeps up a connection whenever the other domain is there, as long as the worker runs.
    pub(crate) fn begin(self: &Rc<Caller>) {
        let caller = Rc::clone(self);
        spawn_local(async move {
            loop {
                if let Err(error) = caller.serve().await {
                    let name = &caller.domain;
                    caller.teller.say(format_args!("calls of domain '{name}': {error}"));
                }
                caller.connection.take();
                // Dropping the senders tells all who wait that no reply will come.
                caller.waiting.take();
                sleep(PAUSE).await;
            }
        });
    }

    /// Waits until the other domain is connected.
    pub(crate) async fn connected(&self) {
        while self.connection.borrow().is_none() {
            yield_now().await;
        }
    }

    /// Makes a connection, and handles the frames that come over it until it ends.
    async fn serve(&self) -> io::Result<()> {
        let (ours, theirs) = StdStream::pair()?;
        self.hand_over(theirs).await?;
        let connection = Rc::new(Connection::new(ours)?);
        let hears = async {
            let mut come = BytesMut::new();
            while let Some(frame) = connection.hear(&mut come).await? {
                match frame {
                    Frame::Hello => {
                        *self.connection.borrow_mut() = Some(Rc::clone(&connection));
                    }
                    Frame::Reply { id, work, reply } => {
                        // If nobody waits for it any more, the call was cancelled.
                        if let Some(waits) = self.waiting.borrow_mut().remove(&id) {
                            let _ = waits.send((reply, work));
                        }
                    }
                    Frame::Call(_) | Frame::Cancel { .. } => {
                        return Err(io::Error::other("a frame that only the calling side sends"));
                    }
                }
            }
            Ok(())
        };
        tokio::select! {
            ended = hears => ended,
            () = connection.say_rest() => Ok(()),
        }
    }

    /// Hands an end of a connection through the door. The end stays there until the other side
    /// takes it.
    async fn hand_over(&self, end: StdStream) -> io::Result<()> {
        let door = StdDatagram::from(self.door.try_clone()?);
        door.set_nonblocking(true)?;
        let door = UnixDatagram::from_std(door)?;
        door.async_io(Interest::WRITABLE, || send(&door, &end)).await
    }

    /// Sends a packet to a node of the other domain, and waits for its reply.
    async fn call(
        &self,
        at: At<'_>,
        node: &ByteString,
        input: &ByteString,
        packet: Value,
    ) -> Reply {
        let connection = self.ready()?;
        let left = at.flow().deadline().map(|it| it.saturating_duration_since(Instant::now()));
        let deadline_ms = left.map_or(u64::MAX, |it| it.mul_f64(PART_OF_TIME).as_millis() as u64);
        let (id, work) = (self.next_id(), at.flow().work_left());
        let (node, input) = (node.clone(), input.clone());
        let context = at.context();
        at.flow().spend(packet.price())?;
        let call = SentPacket { id, node, input, deadline_ms, work, context, packet };
        let frame = Frame::Call(call).bytes()?;
        at.flow().spend((frame.len() / BYTES_PER_UNIT) as u64)?;
        let (reply, work) = self.ask(&connection, id, frame).await?;
        at.flow().spend(work)?;
        reply
    }

    /// Sends a packet that no flow of this worker has sent, and waits for its reply. The number is
    /// the work that went into the reply.
    pub(super) async fn pass(&self, call: SentPacket) -> Result<(Reply, u64), Error> {
        let (connection, id) = (self.ready()?, self.next_id());
        self.ask(&connection, id, Frame::Call(SentPacket { id, ..call }).bytes()?).await
    }

    /// The connection, if it may take one more packet.
    fn ready(&self) -> Result<Rc<Connection>, Error> {
        let Some(connection) = self.connection.borrow().clone() else {
            return Err(self.failed(503, "is not there"));
        };
        if self.waiting.borrow().len() >= CALLS_MAX || connection.is_full() {
            return Err(self.failed(503, "has not answered earlier packets; it is too slow"));
        }
        Ok(connection)
    }

    fn next_id(&self) -> u64 {
        self.next_id.replace(self.next_id.get() + 1)
    }

    async fn ask(
        &self,
        connection: &Connection,
        id: u64,
        frame: Bytes,
    ) -> Result<(Reply, u64), Error> {
        let (sender, answer) = oneshot::channel();
        self.waiting.borrow_mut().insert(id, sender);
        let cancel = Cancel { caller: self, connection, id };
        connection.say(frame);
        let answered = answer.await;
        drop(cancel);
        answered.map_err(|_| self.failed(502, "has ended while it had the packet"))
    }

    #[cold]
    fn failed(&self, status: u16, what: &str) -> Error {
        let name = &self.domain;
        Error::new(format_args!("its domain '{name}' {what}")).with_status(status)
    }
}

/// Dropping this cancels the call if its reply has not come.
struct Cancel<'a> {
    caller: &'a Caller,
    connection: &'a Connection,
    id: u64,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        let waited = self.caller.waiting.borrow_mut().remove(&self.id).is_some();
        if waited && let Ok(frame) = (Frame::Cancel { id: self.id }).bytes() {
            self.connection.say(frame);
        }
    }
}

fn send(door: impl AsFd, end: &StdStream) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let ends = [end.as_fd()];
    if !rights.push(SendAncillaryMessage::ScmRights(&ends)) {
        return Err(io::Error::other("a bug: no room for a descriptor"));
    }
    sendmsg(door, &[IoSlice::new(&[0])], &mut rights, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Stands in for a node of another domain.
struct Across {
    caller: Rc<Caller>,
    node: ByteString,
    input: ByteString,
}

impl FlowNode for Across {
    /// The nodes that end the run are in the listener's own domain.
    fn ahead(&self, _packet: &Value) -> Ahead {
        Ahead::Ordinary
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            Step::answer(self.caller.call(at, &self.node, &self.input, packet).await)
        })
    }
}
