//! Carries packets between the domains of this machine and the carrier that takes them to other
//! machines: a thread that talks to the domains as if it were one, and handles packets as bytes
//! only.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::spawn_local;

use super::called::{Called, answered};
use super::caller::Caller;
use super::frame::{Frame, SentPacket};
use super::leaving::{Leaving, only, short};
use crate::tell::Teller;
use crate::{Error, Reply};

/// The doors of a relay.
#[derive(Debug, Default)]
pub struct RelayDoors {
    /// Doors to the domains that get packets from elsewhere, by domain name.
    pub calls: BTreeMap<String, OwnedFd>,
    /// Doors from the domains whose packets go elsewhere.
    pub called: Vec<OwnedFd>,
}

/// A packet from elsewhere.
pub struct Arriving {
    /// The domain that it goes to.
    pub domain: String,
    /// The node in that domain.
    pub node: String,
    /// The input of that node. The node and input that the packet itself names are ignored.
    pub input: String,
    /// How long its reply is waited for.
    pub wait: Duration,
    /// The bytes of the packet, the same as in [`Leaving::bytes`].
    pub bytes: Vec<u8>,
    /// Gets the bytes of the reply; it is dropped if there will be no reply.
    pub answer: Box<dyn FnOnce(Vec<u8>) + Send>,
}

/// Carries packets. Dropping it ends it, and cancels what is under way.
pub struct Relay {
    /// `None` once it is to end.
    arrivals: Option<UnboundedSender<Arriving>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Begins. `take` gets the packets that leave the machine, and must not wait: all packets would
    /// wait with it. How many packets may be under way is for the caller to decide.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn begin(doors: RelayDoors, take: impl Fn(Leaving) + Send + 'static) -> io::Result<Relay> {
        let (sender, arrivals) = unbounded_channel();
        let runtime =
            move || Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let carry = move || match runtime() {
            Ok(runtime) => runtime.block_on(carry(doors, take, arrivals)),
            Err(error) => Teller::direct().say(format_args!("cannot relay packets: {error}")),
        };
        let thread = thread::Builder::new().name("relay".into()).spawn(carry)?;
        Ok(Relay { arrivals: Some(sender), thread: Some(thread) })
    }

    /// Takes a packet from elsewhere; never waits. Another thread gives the reply.
    pub fn arrive(&self, packet: Arriving) {
        if let Some(arrivals) = &self.arrivals {
            // If the relay has ended, the packet is dropped, and with it its `answer`.
            let _ = arrivals.send(packet);
        }
    }

    /// Whether the relay has ended, which only a bug of ours can cause.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.arrivals.take();
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the panic was printed on standard error.
            let _ = thread.join();
        }
    }
}

async fn carry(
    doors: RelayDoors,
    take: impl Fn(Leaving) + 'static,
    mut arrivals: UnboundedReceiver<Arriving>,
) {
    let teller = Teller::direct();
    let called = Called::relay(take, teller.clone());
    doors.called.into_iter().for_each(|door| called.begin(door));
    let caller = |(domain, door): (String, OwnedFd)| {
        let caller = Rc::new(Caller::new(&domain, door, teller.clone()));
        caller.begin();
        (domain, caller)
    };
    let callers: BTreeMap<String, Rc<Caller>> = doors.calls.into_iter().map(caller).collect();
    while let Some(packet) = arrivals.recv().await {
        let caller = callers.get(&packet.domain).cloned();
        spawn_local(async move {
            let reply = pass(caller, &packet).await.unwrap_or_else(|error| (Err(error), 0));
            let bytes = short(answered(0, reply));
            let bytes = bytes.unwrap_or_else(|error| answered(0, (Err(error), 0)));
            (packet.answer)(bytes.into());
        });
    }
}

/// Gives a packet to its node, and waits for the reply.
async fn pass(caller: Option<Rc<Caller>>, packet: &Arriving) -> Result<(Reply, u64), Error> {
    let wrong = |what: &str| Error::new(what).with_status(502);
    let Some(Frame::Call(call)) = only(&packet.bytes) else {
        return Err(wrong("the other host sent something that is not a packet"));
    };
    let caller = caller.ok_or_else(|| wrong("no door leads to its domain"))?;
    let wait_ms = u64::try_from(packet.wait.as_millis()).unwrap_or(u64::MAX);
    let deadline_ms = call.deadline_ms.min(wait_ms);
    let (node, input) = (packet.node.as_str().into(), packet.input.as_str().into());
    caller.pass(SentPacket { node, input, deadline_ms, ..call }).await
}
