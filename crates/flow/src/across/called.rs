//! The called side: it takes connections from its doors, and its nodes answer the packets that come
//! over them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram as StdDatagram, UnixStream as StdStream};
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::future::join_all;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::task::{AbortHandle, spawn_local};

use super::connection::Connection;
use super::frame::{Frame, SentPacket};
use super::leaving::{Leaving, leave};
use crate::tell::Teller;
use crate::{Error, Flow, FlowLimits, Program, Reply};

/// What a worker serves to other domains.
#[derive(Clone)]
pub(crate) struct Called(Rc<Inside>);

struct Inside {
    teller: Teller,
    /// Where packets go; `None` once packets are no longer taken.
    program: RefCell<Option<Rc<Program>>>,
    /// Where packets go instead if they leave this machine.
    relay: Option<Box<dyn Fn(Leaving)>>,
    connections: RefCell<Vec<Weak<Connection>>>,
}

impl Called {
    /// Packets go to `program`. There are no connections yet.
    pub(crate) fn new(program: Rc<Program>, teller: Teller) -> Called {
        Called::of(Some(program), None, teller)
    }

    /// Hands packets to `take`, which carries them to another machine.
    pub(super) fn relay(take: impl Fn(Leaving) + 'static, teller: Teller) -> Called {
        Called::of(None, Some(Box::new(take)), teller)
    }

    fn of(
        program: Option<Rc<Program>>,
        relay: Option<Box<dyn Fn(Leaving)>>,
        teller: Teller,
    ) -> Called {
        let (program, connections) = (RefCell::new(program), RefCell::default());
        Called(Rc::new(Inside { teller, program, relay, connections }))
    }

    /// From now on packets go to `program`.
    pub(crate) fn lead(&self, program: &Rc<Program>) {
        *self.0.program.borrow_mut() = Some(Rc::clone(program));
    }

    /// From now on packets are refused.
    pub(crate) fn close(&self) {
        self.0.program.take();
    }

    /// Waits until all replies are sent.
    pub(crate) async fn all_said(&self) {
        let open: Vec<_> = self.0.connections.borrow().iter().filter_map(Weak::upgrade).collect();
        join_all(open.iter().map(|connection| connection.all_said())).await;
    }

    /// Takes connections from a door as long as the worker runs.
    pub(crate) fn begin(&self, door: OwnedFd) {
        let called = self.clone();
        spawn_local(async move {
            let Err(error) = called.take(door.into()).await;
            called.0.teller.say(format_args!("cannot take calls of other domains: {error}"));
        });
    }

    async fn take(&self, door: StdDatagram) -> io::Result<Infallible> {
        door.set_nonblocking(true)?;
        let door = UnixDatagram::from_std(door)?;
        loop {
            // Another worker may take the connection first; then this one goes on waiting.
            let stream = door.async_io(Interest::READABLE, || receive(&door)).await?;
            let connection = Rc::new(Connection::new(stream)?);
            self.0.connections.borrow_mut().retain(|it| it.strong_count() > 0);
            self.0.connections.borrow_mut().push(Rc::downgrade(&connection));
            let called = self.clone();
            spawn_local(async move { called.serve(connection).await });
        }
    }

    /// Serves a connection until it ends. Calls that are still under way then are cancelled.
    async fn serve(&self, connection: Rc<Connection>) {
        connection.say(Frame::Hello.bytes().unwrap_or_default());
        let under_way = UnderWay::default();
        let served = tokio::select! {
            served = self.hear(&connection, &under_way) => served,
            () = connection.say_rest() => Ok(()),
        };
        if let Err(error) = served {
            self.0.teller.say(format_args!("a call of another domain: {error}"));
        }
    }

    async fn hear(&self, connection: &Rc<Connection>, under_way: &UnderWay) -> io::Result<()> {
        let mut come = BytesMut::new();
        while let Some(frame) = connection.hear(&mut come).await? {
            match frame {
                Frame::Call(call) => {
                    let (id, called, connection) = (call.id, self.clone(), Rc::clone(connection));
                    let mut answers =
                        Box::pin(async move { called.answer(&connection, call).await });
                    // A call that need not wait is answered at once.
                    if (&mut answers).now_or_never().is_some() {
                        continue;
                    }
                    let all = Rc::clone(&under_way.0);
                    let answers = spawn_local(async move {
                        answers.await;
                        all.borrow_mut().remove(&id);
                    });
                    under_way.0.borrow_mut().insert(id, answers.abort_handle());
                }
                Frame::Cancel { id } => {
                    let cancelled = under_way.0.borrow_mut().remove(&id);
                    cancelled.iter().for_each(AbortHandle::abort);
                }
                Frame::Hello | Frame::Reply { .. } => {
                    return Err(io::Error::other("a frame that only the called side sends"));
                }
            }
        }
        Ok(())
    }

    async fn answer(&self, connection: &Connection, call: SentPacket) {
        let id = call.id;
        if let Some(take) = &self.0.relay {
            return connection.say(answered(id, leave(call, take).await));
        }
        let program = self.0.program.borrow().clone();
        // The call counts as under way until its reply is sent.
        let (_open, reply, work) = match program.map(|it| (it.base.children.begin(), it)) {
            None => (None, Err(stops()), 0),
            Some((Err(error), _)) => (None, Err(error), 0),
            Some((Ok(open), program)) => {
                let given = call.work;
                let flow = Flow::new(program);
                let reply = run(&flow, call).await;
                (Some(open), reply, given.saturating_sub(flow.work_left()))
            }
        };
        connection.say(answered(id, (reply, work)));
    }
}

/// A reply as the bytes that are sent.
pub(super) fn answered(id: u64, (reply, work): (Reply, u64)) -> Bytes {
    let frame = Frame::Reply { id, work, reply }.bytes();
    let frame = frame.or_else(|error| Frame::Reply { id, work, reply: Err(error) }.bytes());
    // An error alone is short enough to be sent.
    frame.unwrap_or_default()
}

/// Gives the packet to the node that the call names, and returns its reply.
async fn run(flow: &Flow, call: SentPacket) -> Reply {
    let SentPacket { node, input, deadline_ms, work, context, packet, .. } = call;
    flow.limit(FlowLimits { deadline: Duration::from_millis(deadline_ms), work });
    let Some((node, input)) = flow.program.entrance(&node, &input) else {
        let text =
            format_args!("there is no input '{node}.{input}' any more; the graph was edited");
        return Err(Error::new(text).with_status(503));
    };
    let reply = flow.enter(node, input, packet, context).await;
    if let Err(error) = &reply {
        flow.tell(node, error);
    }
    reply.map_err(Error::told)
}

fn stops() -> Error {
    Error::new("its domain stops").with_status(503)
}

/// The calls that are under way for a connection; dropping this cancels them.
#[derive(Default)]
struct UnderWay(Rc<RefCell<HashMap<u64, AbortHandle>>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.borrow().values().for_each(AbortHandle::abort);
    }
}

/// The next connection of a door.
pub(super) fn receive(door: impl AsFd) -> io::Result<StdStream> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(door, &mut [IoSliceMut::new(&mut byte)], &mut rights, flags)?;
    let ends = rights.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut ends) => ends.next(),
        _ => None,
    });
    ends.map(StdStream::from).ok_or_else(|| io::Error::other("no descriptor came"))
}
