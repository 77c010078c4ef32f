//! A writing end to which something happens.

use fastrand::Rng;
use sinew_core::fault::Fault;
use sinew_core::sys::Region;
use sinew_core::transport::{Claim, Sender, Sent};

use crate::inject::{InjectedFault, Injection, spoil};

/// Cycles in which garbage is written, new garbage in each; the last garbage stays. More such
/// cycles tell a reader nothing new, and cost time of the writer, which is not at fault.
const HOSTILE_CYCLES: u32 = 10;

/// The wrapper. Its cycles are those of its writer: in each it either sends or flushes.
pub(super) struct InjectedLink {
    sender: Box<dyn Sender>,
    region: Option<Region>,
    injections: Vec<Injection>,
    cycle: u64,
    state: State,
}

enum State {
    /// Nothing yet.
    Well,
    /// It is closed, and nobody is told.
    Gone,
    /// How many messages are yet to be held back.
    Stalled(u64),
    /// It writes garbage, the same in every run, in this many more cycles.
    Hostile { random: Rng, cycles: u32 },
}

impl InjectedLink {
    pub(super) fn new(
        sender: Box<dyn Sender>,
        region: Option<Region>,
        injections: Vec<Injection>,
    ) -> InjectedLink {
        InjectedLink { sender, region, injections, cycle: 0, state: State::Well }
    }

    fn begin_cycle(&mut self) {
        match Injection::due(&self.injections, self.cycle) {
            Some(InjectedFault::PeerGone) => {
                self.sender.close();
                self.state = State::Gone;
            }
            Some(InjectedFault::Stalled { messages }) => self.state = State::Stalled(messages),
            Some(InjectedFault::Hostile) => {
                let random = Rng::with_seed(self.cycle);
                self.state = State::Hostile { random, cycles: HOSTILE_CYCLES };
            }
            _ => {}
        }
        if let State::Hostile { random, cycles } = &mut self.state
            && *cycles > 0
        {
            *cycles -= 1;
            self.region.iter().for_each(|region| spoil(region, random));
        }
        self.cycle += 1;
    }

    /// Whether the next message goes to the link itself; counts those that are held back.
    fn passes(&mut self) -> bool {
        match &mut self.state {
            State::Gone | State::Hostile { .. } => false,
            State::Stalled(left) if *left > 0 => {
                *left -= 1;
                false
            }
            State::Well | State::Stalled(_) => true,
        }
    }
}

impl Sender for InjectedLink {
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault> {
        self.begin_cycle();
        if self.passes() { self.sender.send(message) } else { Ok(Sent::Done) }
    }

    /// What goes out after a fault belongs to no cycle.
    fn try_send(&mut self, message: &[u8]) -> Option<Result<Sent, Fault>> {
        if self.passes() { self.sender.try_send(message) } else { Some(Ok(Sent::Done)) }
    }

    /// For a writer in place, the fault looks as if the link had no room.
    fn claim(&mut self) -> Result<Option<Claim<'_>>, Fault> {
        self.begin_cycle();
        if self.passes() { self.sender.claim() } else { Ok(None) }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.begin_cycle();
        match self.state {
            State::Gone | State::Hostile { .. } => Ok(()),
            State::Well | State::Stalled(_) => self.sender.flush(),
        }
    }

    fn wait_room(&mut self, until_ns: u64) -> bool {
        match self.state {
            State::Gone | State::Hostile { .. } => true,
            State::Well | State::Stalled(_) => self.sender.wait_room(until_ns),
        }
    }

    fn close(&mut self) {
        self.sender.close();
    }

    fn hang_up(&mut self) {
        self.sender.hang_up();
    }
}
