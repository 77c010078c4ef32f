//! A link between two CPUs, as a run would open it, and how long its messages take.

use std::time::Duration;

use sinew_core::Fault;
use sinew_core::clock::{Clock, now_ns};
use sinew_core::transport::{LinkShape, Received, Receiver, Sender, Sent, row};
use sinew_figures::Interval;
use sinew_plan::plan::{Delivery, LinkClass, LinkTuning, Sync, Transport, Wait};

use crate::candidates::measured;
use crate::sides::{Cpus, Gone, Life, Side, Waits, answer, on_threads, round_trips, stop, stream};

/// Trips before the first that counts. After them the far side has started, and caches and pages
/// are warm.
const WARM_UP: u64 = 64;
/// Trips whose mean is one value. With this many, a value is exact to a fraction of a nanosecond.
const BURST: u64 = 64;
/// How often a stream fills its link: messages that fit into the link at once cost less.
const FILLS: u64 = 8;
/// Fewest values for a median: the kernel may take a CPU away during one of them.
const VALUES_MIN: usize = 3;

/// Two CPUs between which links are measured.
pub(crate) struct Between {
    pub(crate) cpus: Cpus,
    pub(crate) clock: Clock,
    /// Approximate length of one measurement.
    pub(crate) each: Duration,
}

impl Between {
    /// How long a message of `bytes` bytes takes through links of this class, in ns: there and
    /// back, or in a stream for the class of long links.
    pub(crate) fn ns(
        &self,
        class: LinkClass,
        tuning: &LinkTuning,
        bytes: u32,
    ) -> Result<f64, Gone> {
        let (capacity, is_stream) = (measured(class).capacity, measured(class).is_stream);
        let shape = LinkShape {
            message_size: bytes,
            type_hash: 0,
            capacity,
            sync: Sync::LockFree,
            delivery: Delivery::Queue,
            wait: Wait::Spin,
            tuning: Some(*tuning),
        };
        let ((out, far_in), (far_out, into)) = (open(&shape)?, open(&shape)?);
        let near = |life: &Life| {
            let mut side = Linked::new(out, into, bytes, life);
            let found = if is_stream {
                stream(&mut side, self.clock, u64::from(capacity))?;
                let messages = FILLS * u64::from(capacity);
                self.values(&mut side, |side| stream(side, self.clock, messages))
            } else {
                self.values(&mut side, |side| trips(side, self.clock))
            };
            stop(&mut side)?;
            found
        };
        on_threads(self.cpus, near, |life| answer(&mut Linked::new(far_out, far_in, bytes, life)))
    }

    /// The median of the values that the time allows.
    fn values(
        &self,
        side: &mut Linked,
        mut value: impl FnMut(&mut Linked) -> Result<f64, Gone>,
    ) -> Result<f64, Gone> {
        round_trips(side, self.clock, WARM_UP, |_| {})?;
        let until_ns = now_ns() + self.each.as_nanos() as u64;
        let mut values = Vec::new();
        while values.len() < VALUES_MIN || now_ns() < until_ns {
            values.push(value(side)?);
        }
        Ok(Interval::of(&values).expect("there are values").median)
    }
}

/// The mean of some trips.
fn trips(side: &mut Linked, clock: Clock) -> Result<f64, Gone> {
    let mut sum_ns = 0;
    round_trips(side, clock, BURST, |ns| sum_ns += ns)?;
    Ok(sum_ns as f64 / BURST as f64)
}

/// Both ends of a link.
type Ends = (Box<dyn Sender>, Box<dyn Receiver>);

fn open(shape: &LinkShape) -> Result<Ends, Gone> {
    let row = row(Transport::InProcess);
    let (writer, reader) =
        (row.open)(shape).map_err(|error| Gone(format!("cannot open a link: {error}")))?;
    Ok(((row.sender)(writer, shape).map_err(gone)?, (row.receiver)(reader, shape).map_err(gone)?))
}

fn gone(fault: Fault) -> Gone {
    Gone(fault.to_string())
}

/// The ends of two links.
struct Linked {
    sender: Box<dyn Sender>,
    receiver: Box<dyn Receiver>,
    message: Vec<u8>,
    waits: Waits,
}

impl Linked {
    fn new(
        sender: Box<dyn Sender>,
        receiver: Box<dyn Receiver>,
        bytes: u32,
        life: &Life,
    ) -> Linked {
        let message = vec![0; bytes as usize];
        Linked { sender, receiver, message, waits: Waits::new(life.clone()) }
    }
}

impl Side for Linked {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let Linked { sender, message, waits, .. } = self;
        message.as_chunks_mut().0.fill(word.to_ne_bytes());
        loop {
            match sender.send(message).map_err(gone)? {
                Sent::Done => return Ok(()),
                Sent::Closed => return Err(closed()),
                Sent::Full => waits.wait(|until_ns| sender.wait_room(until_ns))?,
            }
        }
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        let Linked { receiver, message, waits, .. } = self;
        loop {
            match receiver.receive(message).map_err(gone)? {
                Received::New { .. } => {
                    let word = message.first_chunk().expect("no message is shorter than a word");
                    return Ok(u64::from_ne_bytes(*word));
                }
                Received::Closed => return Err(closed()),
                Received::None => waits.wait(|until_ns| receiver.wait(until_ns))?,
            }
        }
    }
}

fn closed() -> Gone {
    Gone("the link is closed".into())
}
