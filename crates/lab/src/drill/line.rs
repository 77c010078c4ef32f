//! A line between two hosts, on loopback. It carries bytes in both directions, and each of them can
//! be cut or slow. The hosts speak over TCP, so they see a lost packet as bytes that come late. A
//! slow line imitates just that.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

/// The least and the most delay that a slow line adds.
const DELAY: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(60)];
/// On a slow line one in this many pieces is lost, and comes when TCP sends it again.
const LOST_OF: u32 = 20;
/// How much later such a piece comes: the least time that Linux waits before it sends again.
const SENT_AGAIN: Duration = Duration::from_millis(200);
/// Pieces under way in one direction; a sender of more has to wait, as on any line.
const PIECES: usize = 64;
/// Bytes of a piece, at most.
const PIECE: usize = 64 << 10;

/// The condition of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// It carries all bytes at once.
    Open,
    /// It carries nothing; bytes that arrive wait.
    Cut,
    /// It carries bytes late, and some of them later.
    Slow,
}

/// A direction of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From those who call over the line to the host that it leads to.
    There,
    /// Back to those who call.
    Back,
}

impl Direction {
    /// Both.
    pub(super) const BOTH: [Direction; 2] = [Direction::There, Direction::Back];
}

/// The line. It carries until the process ends.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The address at which the line accepts connections.
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    ways: [Way; 2],
    /// Directions of connections that are being carried.
    carried: AtomicU64,
}

/// All connections in one direction.
#[derive(Debug)]
struct Way {
    condition: Mutex<Condition>,
    changed: Condvar,
    /// Bytes that waited while it was cut, or were late.
    held: AtomicU64,
}

impl Line {
    /// A line to a host that listens there, now or later.
    ///
    /// # Errors
    /// No port is free.
    pub(super) fn to(target: SocketAddr) -> io::Result<Line> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let ways = Direction::BOTH.map(|_| Way {
            condition: Mutex::new(Condition::Open),
            changed: Condvar::new(),
            held: AtomicU64::new(0),
        });
        let shared = Arc::new(Shared { ways, carried: AtomicU64::new(0) });
        let line = Line { address, shared };
        let carrier = line.clone();
        thread::Builder::new().name("line".into()).spawn(move || {
            for here in listener.incoming().flatten() {
                // A caller of a host that is not there finds nobody.
                let _ = TcpStream::connect(target).and_then(|there| carrier.carry(here, there));
            }
        })?;
        Ok(line)
    }

    /// Sets the condition of both directions from now on.
    pub(super) fn set(&self, condition: Condition) {
        Direction::BOTH.into_iter().for_each(|it| self.set_one(it, condition));
    }

    /// Sets the condition of one direction from now on.
    pub(super) fn set_one(&self, direction: Direction, condition: Condition) {
        let way = &self.shared.ways[direction as usize];
        *way.condition() = condition;
        way.changed.notify_all();
    }

    /// Bytes that it has held back so far.
    pub(super) fn held(&self) -> u64 {
        Direction::BOTH.into_iter().map(|it| self.held_in(it)).sum()
    }

    /// The same in one direction.
    pub(super) fn held_in(&self, direction: Direction) -> u64 {
        self.shared.ways[direction as usize].held.load(Relaxed)
    }

    /// Whether nothing is connected over it any more.
    pub(super) fn is_quiet(&self) -> bool {
        self.shared.carried.load(Relaxed) == 0
    }

    fn carry(&self, here: TcpStream, there: TcpStream) -> io::Result<()> {
        let (from_here, from_there) = (here.try_clone()?, there.try_clone()?);
        let ends = [(from_here, there), (from_there, here)];
        for (direction, (from, to)) in Direction::BOTH.into_iter().zip(ends) {
            to.set_nodelay(true)?;
            let (put, take) = sync_channel(PIECES);
            let (reader, writer) = (Arc::clone(&self.shared), Arc::clone(&self.shared));
            self.shared.carried.fetch_add(1, Relaxed);
            thread::spawn(move || read(from, &reader.ways[direction as usize], &put));
            thread::spawn(move || {
                write(to, &writer.ways[direction as usize], &take);
                writer.carried.fetch_sub(1, Relaxed);
            });
        }
        Ok(())
    }
}

impl Way {
    fn condition(&self) -> MutexGuard<'_, Condition> {
        // It is one word, so nobody can leave it half changed.
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is not cut.
    fn await_open(&self, bytes: usize) {
        let condition = self.condition();
        if *condition == Condition::Cut {
            self.held.fetch_add(bytes as u64, Relaxed);
        }
        drop(self.changed.wait_while(condition, |it| *it == Condition::Cut));
    }
}

/// Bytes, and when they are due at the other end.
type Piece = (Instant, Vec<u8>);

fn read(mut from: TcpStream, way: &Way, put: &SyncSender<Piece>) {
    let (mut random, mut bytes) = (Rng::new(), vec![0; PIECE]);
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        let mut due = Instant::now();
        if *way.condition() == Condition::Slow {
            way.held.fetch_add(len as u64, Relaxed);
            let [least, most] = DELAY;
            due += least + (most - least).mul_f64(random.f64());
            due += if random.u32(..LOST_OF) == 0 { SENT_AGAIN } else { Duration::ZERO };
        }
        if put.send((due, bytes[..len].to_vec())).is_err() {
            break;
        }
    }
}

/// Writes the pieces in the order in which they came: a piece behind a late one is late, too.
fn write(mut to: TcpStream, way: &Way, take: &Receiver<Piece>) {
    for (due, bytes) in take {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        way.await_open(bytes.len());
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // Shuts down both directions, so that the other one ends as well.
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of a connection over a line.
    fn ends() -> (Line, TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let line = Line::to(listener.local_addr().expect("its address")).expect("a line");
        let here = TcpStream::connect(line.address).expect("it is called");
        let there = listener.accept().expect("it calls").0;
        (line, here, there)
    }

    #[test]
    fn what_is_said_while_it_is_cut_comes_when_it_is_mended() {
        let (line, mut here, mut there) = ends();
        let mut bytes = [0; 3];
        here.write_all(b"one").expect("it takes it");
        there.read_exact(&mut bytes).expect("it brings it");
        line.set(Condition::Cut);
        here.write_all(b"two").expect("it takes it");
        there.set_read_timeout(Some(Duration::from_millis(50))).expect("a limit");
        assert!(there.read(&mut bytes).is_err(), "a line that is cut carried something");
        while line.held() < 3 {
            thread::yield_now();
        }
        line.set(Condition::Open);
        there.set_read_timeout(None).expect("no limit");
        there.read_exact(&mut bytes).expect("it brings it");
        assert_eq!(&bytes, b"two");
    }

    #[test]
    fn one_direction_is_cut_and_the_other_is_not() {
        let (line, mut here, mut there) = ends();
        line.set_one(Direction::There, Condition::Cut);
        there.write_all(b"back").expect("it takes it");
        let mut bytes = [0; 4];
        here.read_exact(&mut bytes).expect("it brings it");
        here.write_all(b"to").expect("it takes it");
        while line.held_in(Direction::There) < 2 {
            thread::yield_now();
        }
        assert_eq!((&bytes, line.held_in(Direction::Back)), (b"back", 0));
        line.set(Condition::Open);
        there.read_exact(&mut bytes[..2]).expect("it brings it");
        assert_eq!(&bytes[..2], b"to");
    }

    #[test]
    fn a_slow_line_keeps_the_order_and_brings_all() {
        let (line, mut here, mut there) = ends();
        line.set(Condition::Slow);
        let said: Vec<u8> = (0..10).collect();
        for byte in &said {
            here.write_all(&[*byte]).expect("it takes it");
        }
        drop(here);
        let mut heard = vec![];
        there.read_to_end(&mut heard).expect("it brings it, and the end");
        assert_eq!((heard, line.held()), (said, 10));
        drop(there);
        while !line.is_quiet() {
            thread::yield_now();
        }
    }
}
