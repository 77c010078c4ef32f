//! What stands in front of zenoh where a host with certificates listens.
//!
//! Zenoh takes connections of QUIC one after the other, and waits for each handshake up to 30 s. So
//! one datagram of a stranger that does not go on would lock all hosts out for that long. Here the
//! host listens itself and hands datagrams on, unread, to several *doors*: listeners of zenoh on
//! the loopback. No more than one handshake is under way at a door. One that is not over in time,
//! or that stands in the way of a new one, is closed.

mod initial;

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use initial::Initial;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Doors: handshakes that may be under way at once.
const DOORS: usize = 8;
/// A handshake that is not over by then is closed.
const HANDSHAKE: Duration = Duration::from_secs(1);
/// A connection without a datagram of its client is over. Hosts say something four times in half a
/// second.
const IDLE: Duration = Duration::from_secs(5);
/// Most connections at once, so that nobody fills the memory; more get no answer.
const FLOWS_MAX: usize = 512;
/// Datagrams taken from one socket before the others have their turn.
const TURN: usize = 64;
/// Longest sleep: how long the end, or new doors, may go unnoticed.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Longest datagram.
const DATAGRAM_MAX: usize = 65_536;

/// The listener in front of the doors. When it is dropped, its ports are free.
#[derive(Debug)]
pub(crate) struct Front {
    shared: Arc<Lead>,
    thread: Option<JoinHandle<()>>,
}

/// What its thread is told.
#[derive(Debug, Default)]
struct Lead {
    doors: Mutex<Vec<SocketAddr>>,
    is_over: AtomicBool,
}

impl Front {
    /// Listens at these addresses. It leads nowhere yet.
    ///
    /// # Errors
    /// An address is taken or is not one of this machine.
    pub(crate) fn open(addresses: &[String]) -> io::Result<Front> {
        let bound = addresses.iter().map(|address| {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let (bound, shared) = (bound.collect::<io::Result<Vec<_>>>()?, Arc::<Lead>::default());
        let for_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("mirror-front".into());
        let thread = thread.spawn(move || Carrier::new(bound, for_thread).carry())?;
        Ok(Front { shared, thread: Some(thread) })
    }

    /// Leads to new doors from now on. Returns where zenoh is to listen for them; connections
    /// through the doors before are over.
    ///
    /// # Errors
    /// No port is free.
    pub(crate) fn lead(&self) -> io::Result<Vec<String>> {
        // All are bound at once; otherwise two might be the same.
        let doors: Vec<_> = (0..DOORS).map(|_| UdpSocket::bind("127.0.0.1:0")).collect();
        let doors = doors.into_iter().map(|it| it?.local_addr()).collect::<io::Result<Vec<_>>>()?;
        let names = doors.iter().map(SocketAddr::to_string).collect();
        *self.shared.doors.lock().unwrap_or_else(PoisonError::into_inner) = doors;
        Ok(names)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // A flag that ends a loop; it orders nothing.
        self.shared.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A connection, by the address of its client.
struct Flow {
    /// The socket at which the client was heard.
    front: usize,
    /// Speaks with the door.
    back: UdpSocket,
    door: usize,
    /// What closes its handshake, and since when that is under way; `None`: it is over.
    handshake: Option<(Initial, Instant)>,
    heard: Instant,
}

/// The thread's work.
struct Carrier {
    fronts: Vec<UdpSocket>,
    lead: Arc<Lead>,
    doors: Vec<SocketAddr>,
    flows: HashMap<SocketAddr, Flow>,
}

impl Carrier {
    fn new(fronts: Vec<UdpSocket>, lead: Arc<Lead>) -> Carrier {
        Carrier { fronts, lead, doors: vec![], flows: HashMap::new() }
    }

    fn carry(mut self) {
        let mut bytes = vec![0; DATAGRAM_MAX];
        // A flag that ends a loop; it orders nothing.
        while !self.lead.is_over.load(Ordering::Relaxed) {
            let doors = self.lead.doors.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if doors != self.doors {
                self.flows.clear();
                self.doors = doors;
            }
            self.sleep();
            let now = Instant::now();
            self.take_in(&mut bytes, now);
            self.hand_out(&mut bytes);
            self.tidy(now);
        }
    }

    /// Sleeps until a datagram is there.
    fn sleep(&self) {
        let sockets = self.fronts.iter().chain(self.flows.values().map(|it| &it.back));
        let mut waits: Vec<_> = sockets.map(|it| PollFd::new(it, PollFlags::IN)).collect();
        // If it fails, the sockets are looked at all the same.
        let _ = poll(&mut waits, Some(&NAP));
    }

    /// From clients to the doors.
    fn take_in(&mut self, bytes: &mut [u8], now: Instant) {
        for front in 0..self.fronts.len() {
            for _ in 0..TURN {
                // A datagram that was refused at the other side is told here, too; it says nothing.
                let (len, client) = match self.fronts[front].recv_from(bytes) {
                    Ok(it) => it,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => continue,
                };
                if !self.flows.contains_key(&client) {
                    self.begin(front, client, &bytes[..len], now);
                }
                if let Some(flow) = self.flows.get_mut(&client) {
                    flow.heard = now;
                    let _ = flow.back.send(&bytes[..len]);
                }
            }
        }
    }

    /// From the doors to clients.
    fn hand_out(&mut self, bytes: &mut [u8]) {
        for (client, flow) in &mut self.flows {
            for _ in 0..TURN {
                let Ok(len) = flow.back.recv(bytes) else { break };
                if initial::is_established(&bytes[..len]) {
                    flow.handshake = None;
                }
                let _ = self.fronts[flow.front].send_to(&bytes[..len], client);
            }
        }
    }

    /// A datagram of a new client came. If it begins a connection, that gets a door.
    fn begin(&mut self, front: usize, client: SocketAddr, datagram: &[u8], now: Instant) {
        let Some(initial) = Initial::read(datagram) else { return };
        let Some(door) = self.free_door() else { return };
        if self.flows.len() >= FLOWS_MAX {
            return;
        }
        let back = UdpSocket::bind("127.0.0.1:0").and_then(|back| {
            back.connect(self.doors[door])?;
            back.set_nonblocking(true)?;
            Ok(back)
        });
        // Without a socket the client is not answered, and tries again.
        let Ok(back) = back else { return };
        let flow = Flow { front, back, door, handshake: Some((initial, now)), heard: now };
        self.flows.insert(client, flow);
    }

    /// A door without a handshake. If there is none, the oldest handshake is closed.
    fn free_door(&mut self) -> Option<usize> {
        let is_busy =
            |door: &usize| self.flows.values().any(|it| it.door == *door && it.handshake.is_some());
        if let Some(free) = (0..self.doors.len()).find(|door| !is_busy(door)) {
            return Some(free);
        }
        let since = |flow: &Flow| flow.handshake.as_ref().map(|it| it.1);
        let busy = self.flows.iter().filter_map(|(client, flow)| Some((since(flow)?, *client)));
        let (_, oldest) = busy.min_by_key(|it| it.0)?;
        let flow = self.flows.remove(&oldest)?;
        close(&flow);
        Some(flow.door)
    }

    /// Closes handshakes that take too long, and forgets connections that are over.
    fn tidy(&mut self, now: Instant) {
        self.flows.retain(|_, flow| {
            let is_late = flow.handshake.as_ref().is_some_and(|it| now - it.1 >= HANDSHAKE);
            if is_late {
                close(flow);
            }
            !is_late && now.saturating_duration_since(flow.heard) < IDLE
        });
    }
}

/// Closes a handshake at its door.
fn close(flow: &Flow) {
    if let Some(datagram) = flow.handshake.as_ref().and_then(|it| it.0.close()) {
        let _ = flow.back.send(&datagram);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram that begins a connection.
    fn first(name: u8) -> Vec<u8> {
        let mut first = vec![0xc0, 0, 0, 0, 1, 1, name, 1, name];
        first.resize(1200, 0);
        first
    }

    fn stage() -> (Carrier, Vec<UdpSocket>) {
        let bind = || UdpSocket::bind("127.0.0.1:0").expect("a port");
        let doors: Vec<_> = (0..2).map(|_| bind()).collect();
        let mut carrier = Carrier::new(vec![bind()], Arc::default());
        carrier.doors = doors.iter().map(|it| it.local_addr().expect("an address")).collect();
        (carrier, doors)
    }

    fn client(name: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1000 + u16::from(name)))
    }

    #[test]
    fn each_handshake_has_a_door_and_the_oldest_makes_room() {
        let (mut carrier, doors) = stage();
        let begun = Instant::now();
        let begin = |carrier: &mut Carrier, name: u8| {
            let at = begun + Duration::from_millis(u64::from(name));
            carrier.begin(0, client(name), &first(name), at);
            carrier.flows.get(&client(name)).map(|it| it.door)
        };
        assert_eq!([begin(&mut carrier, 1), begin(&mut carrier, 2)], [Some(0), Some(1)]);
        assert_eq!(begin(&mut carrier, 3), Some(0));
        assert!(!carrier.flows.contains_key(&client(1)), "it was the oldest");
        let mut bytes = [0; 2000];
        let len = doors[0].recv(&mut bytes).expect("what closes it");
        assert_eq!(Initial::read(&bytes[..len]), Initial::read(&first(1)));
        // The handshake of 2 is over, so its door is free.
        carrier.flows.get_mut(&client(2)).expect("it is there").handshake = None;
        assert_eq!(begin(&mut carrier, 4), Some(1));
        carrier.begin(0, client(5), b"no first datagram", begun);
        assert_eq!(carrier.flows.len(), 3);
    }

    #[test]
    fn what_takes_too_long_is_closed_and_what_is_silent_is_forgotten() {
        let (mut carrier, _doors) = stage();
        let begun = Instant::now();
        carrier.begin(0, client(1), &first(1), begun);
        carrier.begin(0, client(2), &first(2), begun);
        carrier.flows.get_mut(&client(2)).expect("it is there").handshake = None;
        carrier.tidy(begun + HANDSHAKE);
        assert_eq!(carrier.flows.keys().copied().collect::<Vec<_>>(), [client(2)]);
        carrier.tidy(begun + IDLE);
        assert!(carrier.flows.is_empty());
    }
}
