//! What a service is, and what it sees: its ports, the order to stop, its heartbeat. A service may
//! block, allocate and fail; it runs on a thread of its own in the process of its domain.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use sinew_control::Supervisor;
use sinew_control::counters::{BEATS, DROPPED, ENDED, LOST, RECEIVED, SENT};
use sinew_core::board::{Board, DomainOrder};
use sinew_core::clock::now_ns;
use sinew_core::fault::Fault;
use sinew_core::halt::Halt;
use sinew_core::message::Message;
use sinew_core::sys::Region;
use sinew_core::transport::{self, Ahead, MessagePlace, Received, Receiver, Sender, Sent};
use sinew_core::{Parameters, Refusal, fault};
use sinew_flow::RelayDoors;
use sinew_link::counter;
use sinew_spec::catalogue::Kind;
use sinew_spec::plan::{Link, Plan};

use crate::inject::Heartbeats;
use crate::watch::Watch;

/// A node of a service domain.
pub trait Service: Send {
    /// Looks at the whole graph, of which it is node `node`: names of other nodes in its
    /// parameters, and things that no two nodes may share. Called by `sinew check` and before every
    /// run, so it must have no effect outside itself.
    ///
    /// # Errors
    /// All that is wrong.
    fn check(&self, _plan: &Plan, _node: usize) -> Result<(), Vec<Refusal>> {
        Ok(())
    }

    /// Once, before the domain is ready; may take its time, within the domain's start deadline.
    ///
    /// # Errors
    /// Anything that keeps it from serving: its domain ends, and comes back by its restart policy.
    fn start(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// The node's work: until [`ServiceIo::wait`] says that it is over, or until there is nothing
    /// left to do. Each call of [`ServiceIo::wait`] or [`ServiceIo::beat`] is a heartbeat: without
    /// one for as long as its domain allows, the node hangs, and its domain is killed.
    ///
    /// # Errors
    /// As for [`Service::start`].
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault>;

    /// Once, after `run`, also after one that failed: to flush what must not be lost.
    fn stop(&mut self) {}
}

/// A row of a table of kinds that run in service domains.
#[derive(Clone, Copy)]
pub struct ServiceEntry {
    /// What the compiler knows of the kind; it says
    /// [`RunsIn::Service`](sinew_spec::catalogue::RunsIn),
    /// [`RunsIn::Observer`](sinew_spec::catalogue::RunsIn) or
    /// [`RunsIn::Hosts`](sinew_spec::catalogue::RunsIn).
    pub kind: &'static Kind,
    /// Makes a node: reads its files, checks what the table of parameters cannot. Also called by
    /// `sinew check`, so it must have no effect outside itself.
    pub make: MakeService,
}

impl ServiceEntry {
    /// A row of this kind.
    pub const fn new(kind: &'static Kind, make: MakeService) -> ServiceEntry {
        ServiceEntry { kind, make }
    }
}

/// Prints a line, which becomes an event of the run. If nothing reads the output any more, the line
/// is lost. Blocks while the output is full.
pub fn tell(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// What makes a service.
pub type MakeService = fn(&Parameters<'_>) -> Result<Box<dyn Service>, Fault>;

/// How long a sleeping service goes without a heartbeat.
const NAP_NS: u64 = 100_000_000;
/// The same for a service that sleeps at an input, where no order to stop wakes it.
const LISTEN_NS: u64 = 20_000_000;

/// A service's ports, and what it reports to the supervisor.
pub struct ServiceIo {
    pub(crate) name: String,
    pub(crate) halt: Arc<Halt>,
    pub(crate) board: Board,
    pub(crate) counters: counter::Writer<Region>,
    /// Heartbeats so far, in all lives.
    pub(crate) beats: u64,
    /// Messages lost in this life.
    pub(crate) lost: u64,
    /// The faults that a drill injects.
    pub(crate) injected: Option<Heartbeats>,
    /// For a kind that observes.
    pub(crate) watch: Option<Watch>,
    /// One for each port of the kind: an input that is linked.
    pub(crate) inputs: Vec<Option<Input>>,
    /// One for each port of the kind: the links of an output.
    pub(crate) outputs: Vec<Vec<Output>>,
    /// For a kind that represents other hosts.
    pub(crate) supervisor: Option<Supervisor>,
    /// For a kind that represents other hosts.
    pub(crate) doors: Option<RelayDoors>,
}

/// A link of an output.
pub(crate) struct Output {
    sender: Box<dyn Sender>,
    /// A message and the stamp in front of it, if messages on this link have one.
    stamped: Option<Vec<u8>>,
}

impl Output {
    pub(crate) fn new(link: &Link, sender: Box<dyn Sender>) -> Output {
        let stamped = link.after_ns.map(|_| vec![0; link.crossing_bytes() as usize]);
        Output { sender, stamped }
    }

    fn send(&mut self, stamp_ns: Option<u64>, message: &[u8]) -> Result<Sent, Fault> {
        let Some(whole) = &mut self.stamped else { return self.sender.send(message) };
        let (stamp, place) = whole.split_at_mut(Link::STAMP_BYTES as usize);
        stamp.copy_from_slice(&stamp_ns.expect("messages there bear a stamp").to_ne_bytes());
        place.copy_from_slice(message);
        self.sender.send(whole)
    }
}

/// An input that is linked.
pub(crate) struct Input {
    receiver: Box<dyn Receiver>,
    /// Somebody was told that a message may be there, and has taken none since: most often its
    /// writer has gone.
    is_idle: bool,
}

impl Input {
    pub(crate) fn new(receiver: Box<dyn Receiver>) -> Input {
        Input { receiver, is_idle: false }
    }
}

impl ServiceIo {
    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether something is linked to a port.
    ///
    /// # Panics
    /// If the kind's table has no such port.
    pub fn is_linked(&self, port: usize) -> bool {
        self.inputs[port].is_some() || !self.outputs[port].is_empty()
    }

    /// Whether the service is to end.
    pub fn is_stopping(&self) -> bool {
        self.halt.is_stopping() || self.injected.as_ref().is_some_and(|it| it.failed)
    }

    /// A heartbeat: the node lives.
    pub fn beat(&mut self) {
        self.counters.add(BEATS, 1);
        self.beats += 1;
        if let Some(injected) = &mut self.injected {
            injected.beat(self.beats);
        }
    }

    /// The node has done its work: nobody expects a heartbeat of it any more.
    pub(crate) fn ended(&mut self) {
        self.counters.add(ENDED, 1);
    }

    /// A heartbeat, then sleeps for `time`, or until the service is to end, with further
    /// heartbeats. Returns whether the service goes on.
    pub fn wait(&mut self, time: Duration) -> bool {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = now_ns().saturating_add(time_ns);
        loop {
            self.beat();
            if self.is_stopping() {
                return false;
            }
            match until_ns.saturating_sub(now_ns()) {
                0 => return true,
                left_ns => self.board.sleep_while(DomainOrder::Run, left_ns.min(NAP_NS)),
            }
        }
    }

    /// A heartbeat, then sleeps until a message may be at input `port`, `time` is over, or the
    /// service is to end, with further heartbeats. Returns whether the service goes on. For links
    /// with `wait: park` or `spin_then_park`, whose writer wakes a sleeping reader; over other
    /// links it polls. An input that is not linked, or whose writer has closed it, never has a
    /// message.
    pub fn wait_for(&mut self, port: usize, time: Duration) -> bool {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = now_ns().saturating_add(time_ns);
        loop {
            self.beat();
            if self.is_stopping() {
                return false;
            }
            let left_ns = until_ns.saturating_sub(now_ns()).min(LISTEN_NS);
            match &mut self.inputs[port] {
                _ if left_ns == 0 => return true,
                Some(input) if !input.is_idle => {
                    input.is_idle = input.receiver.wait(now_ns() + left_ns);
                    if input.is_idle {
                        return true;
                    }
                }
                other => {
                    self.board.sleep_while(DomainOrder::Run, left_ns);
                    if let Some(input) = other {
                        input.is_idle = false;
                    }
                }
            }
        }
    }

    /// A heartbeat, then sleeps until the links of output `port` may all have room, `time` is over,
    /// or the service is to end, with further heartbeats. Returns whether the service goes on. A
    /// link whose reader has closed it has room: what is sent there is dropped.
    pub fn wait_room(&mut self, port: usize, time: Duration) -> bool {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = now_ns().saturating_add(time_ns);
        loop {
            self.beat();
            if self.is_stopping() {
                return false;
            }
            let nap_ns = until_ns.min(now_ns() + LISTEN_NS);
            let has_room = self.outputs[port].iter_mut().all(|it| it.sender.wait_room(nap_ns));
            if has_room || now_ns() >= until_ns {
                return true;
            }
        }
    }

    /// Whether the links of output `port` all have room for a message.
    pub fn has_room(&mut self, port: usize) -> bool {
        self.outputs[port].iter_mut().all(|output| output.sender.wait_room(0))
    }

    /// The supervisor, for a node that represents other hosts: to report how they are.
    ///
    /// # Panics
    /// If the kind's table does not say [`RunsIn::Hosts`](sinew_spec::catalogue::RunsIn).
    pub fn supervisor(&self) -> &Supervisor {
        self.supervisor.as_ref().expect("a kind that stands for hosts says so in its table")
    }

    /// The doors between its domain and those with flows, for a node that represents other hosts.
    /// The first call returns them, later calls return none.
    pub fn doors(&mut self) -> RelayDoors {
        self.doors.take().unwrap_or_default()
    }

    /// The run, as a node that observes sees it.
    ///
    /// # Panics
    /// If the kind's table does not say [`RunsIn::Observer`](sinew_spec::catalogue::RunsIn).
    pub fn watch(&mut self) -> &mut Watch {
        self.watch.as_mut().expect("a kind that observes says so in its table")
    }

    /// The next message at input `port`, if there is one; with `latest` the newest, if it is new.
    /// An input that is not linked never has one.
    ///
    /// # Errors
    /// The writer wrote what no writer may write.
    ///
    /// # Panics
    /// If `T` is not the message type that the kind's table gives for this port.
    pub fn receive<T: Message>(&mut self, port: usize) -> Result<Option<T>, Fault> {
        let mut message = T::new_zeroed();
        let is_there = self.receive_bytes(port, message.as_mut_bytes())?;
        Ok(is_there.then_some(message))
    }

    /// As [`ServiceIo::receive`], for a message whose type only the plan knows. Returns whether
    /// there was one; then it is in `into`.
    ///
    /// # Errors
    /// As for [`ServiceIo::receive`].
    ///
    /// # Panics
    /// If `into` is not as long as a message of the link.
    pub fn receive_bytes(&mut self, port: usize, into: &mut [u8]) -> Result<bool, Fault> {
        let Some(input) = &mut self.inputs[port] else { return Ok(false) };
        match input.receiver.receive(into)? {
            Received::New { lost } => {
                input.is_idle = false;
                self.counters.add(RECEIVED, 1);
                self.lose(u64::from(lost));
                Ok(true)
            }
            Received::None | Received::Closed => Ok(false),
        }
    }

    /// Counts this many more messages that could not be sent by another way than a link.
    pub fn drop_unsent(&mut self, messages: u64) {
        self.counters.add(DROPPED, messages);
    }

    /// Counts this many more messages that should have come to this node but did not, or were
    /// useless.
    pub fn lose(&mut self, messages: u64) {
        self.counters.add(LOST, messages);
        self.lost += messages;
    }

    /// Messages that came faster than this node took them, at all its inputs and since its domain
    /// was started.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Sends a message to all links of output `port`; never waits. Returns whether all of them took
    /// it: a full mailbox does not, and that is counted as dropped.
    ///
    /// # Errors
    /// A reader wrote what no reader may write.
    ///
    /// # Panics
    /// As for [`ServiceIo::receive`].
    pub fn send<T: Message>(&mut self, port: usize, message: &T) -> Result<bool, Fault> {
        let spoiled = self.injected.as_mut().and_then(|it| it.spoiled(message.as_bytes(), T::TYPE));
        self.send_bytes(port, spoiled.as_deref().unwrap_or(message.as_bytes()))
    }

    /// As [`ServiceIo::send`], for a message whose type only the plan knows.
    ///
    /// # Errors
    /// As for [`ServiceIo::send`].
    ///
    /// # Panics
    /// If `message` is not as long as a message of the links, or one of the links has stamps.
    pub fn send_bytes(&mut self, port: usize, message: &[u8]) -> Result<bool, Fault> {
        self.give(port, None, message)
    }

    /// As [`ServiceIo::send_bytes`], for a message of another host: links into the core put the
    /// stamp in front of it, others do not.
    ///
    /// # Errors
    /// As for [`ServiceIo::send`].
    ///
    /// # Panics
    /// If `message` is not as long as a message of the links.
    pub fn send_stamped(
        &mut self,
        port: usize,
        stamp_ns: u64,
        message: &[u8],
    ) -> Result<bool, Fault> {
        self.give(port, Some(stamp_ns), message)
    }

    fn give(&mut self, port: usize, stamp: Option<u64>, message: &[u8]) -> Result<bool, Fault> {
        let mut taken = true;
        for output in &mut self.outputs[port] {
            let sent = output.send(stamp, message)? == Sent::Done;
            self.counters.add(if sent { SENT } else { DROPPED }, 1);
            taken &= sent;
        }
        Ok(taken)
    }

    /// The next message at input `port`, to be read part by part, without a copy of the whole; for
    /// links with `delivery: queue` in shared memory. It stays the next until it is
    /// [released](Peek::release). An input that is not linked never has one.
    ///
    /// # Errors
    /// As for [`ServiceIo::receive`]; and if the link is of another kind.
    ///
    /// # Panics
    /// As for [`ServiceIo::receive`].
    pub fn peek<T: Message>(&mut self, port: usize) -> Result<Option<Peek<'_>>, Fault> {
        let Some(input) = &mut self.inputs[port] else { return Ok(None) };
        let Some(slot) = input.receiver.peek()? else { return Ok(None) };
        input.is_idle = false;
        assert_eq!(slot.len(), size_of::<T>(), "the port's table names another message type");
        Ok(Some(Peek { slot, counters: &mut self.counters }))
    }

    /// The message `ahead` messages after the next one at input `port`, to be read before its turn;
    /// `None`: it is not there yet. It is freed as the others are, at its turn. Otherwise as
    /// [`ServiceIo::peek`].
    ///
    /// # Errors
    /// As for [`ServiceIo::peek`].
    ///
    /// # Panics
    /// As for [`ServiceIo::receive`].
    pub fn ahead<T: Message>(
        &mut self,
        port: usize,
        ahead: u32,
    ) -> Result<Option<Ahead<'_>>, Fault> {
        let Some(input) = &mut self.inputs[port] else { return Ok(None) };
        let found = input.receiver.ahead(ahead)?;
        input.is_idle &= found.is_none();
        let is_sized = found.as_ref().is_none_or(|found| found.len() == size_of::<T>());
        assert!(is_sized, "the port's table names another message type");
        Ok(found)
    }

    /// The place of the message `ahead` messages after the next one in the link of output `port`,
    /// for a caller that fills several at a time through pointers. They are sent in their order:
    /// each needs, at its turn, a [`ServiceIo::claim`] that writes what is still missing, and its
    /// [commit](Claim::commit). `None`: there is no room yet, or nobody reads any more.
    ///
    /// # Errors
    /// As for [`ServiceIo::claim`]; and if not exactly one link begins at the port.
    ///
    /// # Panics
    /// As for [`ServiceIo::receive`].
    pub fn place<T: Message>(
        &mut self,
        port: usize,
        ahead: u32,
    ) -> Result<Option<MessagePlace>, Fault> {
        let place = self.only_link(port)?.place(ahead)?;
        let is_sized = place.as_ref().is_none_or(|place| place.len() == size_of::<T>());
        assert!(is_sized, "the port's table names another message type");
        Ok(place)
    }

    /// How many places the link of output `port` has.
    ///
    /// # Errors
    /// As for [`ServiceIo::place`].
    pub fn places(&mut self, port: usize) -> Result<u32, Fault> {
        self.only_link(port)?.places()
    }

    fn only_link(&mut self, port: usize) -> Result<&mut dyn Sender, Fault> {
        match &mut self.outputs[port][..] {
            [output] => Ok(&mut *output.sender),
            links => {
                let links = links.len();
                Err(fault!("its messages lie in the places of one link, found {links} links"))
            }
        }
    }

    /// The places of one message in the links of output `port`, to be written part by part, without
    /// a copy of the whole; for links with `delivery: queue` in shared memory. Never waits. A link
    /// without room gets no message, and that is counted as dropped; `None`: no link had room.
    ///
    /// # Errors
    /// As for [`ServiceIo::send`]; and if a link is of another kind.
    ///
    /// # Panics
    /// As for [`ServiceIo::receive`].
    pub fn claim<T: Message>(&mut self, port: usize) -> Result<Option<Claim<'_>>, Fault> {
        let outputs = &mut self.outputs[port];
        let mut slots = Vec::with_capacity(outputs.len());
        for output in outputs {
            let Some(slot) = output.sender.claim()? else {
                self.counters.add(DROPPED, 1);
                continue;
            };
            assert_eq!(slot.len(), size_of::<T>(), "the port's table names another message type");
            slots.push(slot);
        }
        let is_taken = !slots.is_empty();
        Ok(is_taken.then_some(Claim { slots, counters: &mut self.counters }))
    }
}

/// A message that is being written into all links of a port. If it is dropped without
/// [`commit`](Claim::commit), nothing is sent.
pub struct Claim<'a> {
    /// One for each link that had room.
    slots: Vec<transport::Claim<'a>>,
    counters: &'a mut counter::Writer<Region>,
}

impl Claim<'_> {
    /// Writes a part of the message, `offset` bytes from its start. Every part must be written:
    /// bytes that no part covers hold an earlier message, or anything.
    ///
    /// # Panics
    /// If the part reaches past the end of the message.
    pub fn write_at(&mut self, offset: usize, part: &[u8]) {
        for slot in &mut self.slots {
            slot.write_at(offset, part);
        }
    }

    /// Sends the message.
    pub fn commit(self) {
        self.counters.add(SENT, self.slots.len() as u64);
        self.slots.into_iter().for_each(|slot| slot.commit());
    }
}

/// A message that is being read in place. If it is dropped without [`release`](Peek::release), it
/// stays the next one.
pub struct Peek<'a> {
    slot: transport::Peek<'a>,
    counters: &'a mut counter::Writer<Region>,
}

impl Peek<'_> {
    /// Bytes of the message.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.slot.len()
    }

    /// Copies a part of the message, which begins `offset` bytes from its start. A writer that
    /// breaks the rules can change it between two calls: check what was copied.
    ///
    /// # Panics
    /// If the part reaches past the end of the message.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) {
        self.slot.read_at(offset, into);
    }

    /// Done with the message: it counts as received, and its place is free.
    pub fn release(self) {
        self.counters.add(RECEIVED, 1);
        self.slot.release();
    }
}
