//! The near side, on Linux, of a way: one trip, and trips for some time.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

use sinew_core::clock::{Clock, now_ns};
use sinew_core::sys::Region;
use sinew_core::transport::Doorbell;
use sinew_link::queue::{Reader, Writer};
use sinew_link::{RegionError, Shape, Wait};

use super::case::{Carriage, GuestCase, Waiting};
use super::ring::RingEnd;
use crate::harness::Gone;

/// Longest wait for an answer, ns.
const ANSWER_NS_MAX: u64 = 10_000_000_000;
/// How often a ring is polled between two readings of the clock.
const LOOKS: u32 = 10_000;

/// Both links of a way.
pub(super) struct Linked {
    writer: Writer<Region>,
    reader: Reader<Region>,
    /// The doorbell of each link.
    bells: [Doorbell; 2],
}

impl Linked {
    /// Linux's ends: it writes the first link and reads the second.
    pub(super) fn attach(
        there: (Region, Shape),
        back: (Region, Shape),
        bells: [Doorbell; 2],
    ) -> Result<Linked, RegionError> {
        let writer = Writer::attach(there.0, &there.1)?;
        Ok(Linked { writer, reader: Reader::attach(back.0, &back.1)?, bells })
    }
}

/// What messages cross.
enum Over<'a> {
    Link { links: &'a mut Linked, wait: Wait },
    Ring { there: RingEnd<'a, ()>, back: RingEnd<'a, ()>, position: &'a mut u32 },
}

/// One side of a way.
pub(super) struct NearSide<'a> {
    over: Over<'a>,
    crossing: Carriage,
    /// What is sent, and the answer.
    message: Vec<u8>,
    answer: Vec<u8>,
    /// Counts trips; it is the first word of the payload.
    number: u32,
    buffer: &'a [AtomicU32],
    /// The sum of all words of the buffer but the first.
    rest: u32,
}

impl<'a> NearSide<'a> {
    /// A side over links. The buffer is given with its offset.
    pub(super) fn over_link(
        case: GuestCase,
        links: &'a mut Linked,
        (buffer_at, buffer): (usize, &'a [AtomicU32]),
    ) -> NearSide<'a> {
        let wait = match case.wait {
            Waiting::Polling => Wait::Spin,
            Waiting::Doorbell => Wait::Park,
            Waiting::SpinThenDoorbell => Wait::SpinThenPark,
        };
        let over = Over::Link { links, wait };
        if case.crossing == Carriage::Copied {
            return NearSide::new(over, case.crossing, vec![0x5a; case.bytes], &[]);
        }
        // Laid out as `Descriptor` of the image: offset, bytes, is_read, sum.
        let is_read = u32::from(case.crossing == Carriage::Read);
        let words = [buffer_at as u32, case.bytes as u32, is_read, 0];
        let message = words.into_iter().flat_map(u32::to_le_bytes).collect();
        NearSide::new(over, case.crossing, message, buffer)
    }

    /// A side over rings whose ends are at this position.
    pub(super) fn over_ring(
        case: GuestCase,
        (there, back): (RingEnd<'a, ()>, RingEnd<'a, ()>),
        position: &'a mut u32,
    ) -> NearSide<'a> {
        let over = Over::Ring { there, back, position };
        NearSide::new(over, case.crossing, vec![0x5a; case.bytes], &[])
    }

    fn new(
        over: Over<'a>,
        crossing: Carriage,
        message: Vec<u8>,
        buffer: &'a [AtomicU32],
    ) -> NearSide<'a> {
        let mut rest = 0_u32;
        for (at, word) in buffer.iter().enumerate().skip(1) {
            // Relaxed: the message that announces the buffer is sent later.
            word.store(at as u32, Ordering::Relaxed);
            rest = rest.wrapping_add(at as u32);
        }
        let answer = vec![0; message.len()];
        NearSide { over, crossing, message, answer, number: 0, buffer, rest }
    }

    /// Trips for this long, at least one; the time of each in ns.
    pub(super) fn trips(&mut self, clock: Clock, for_ns: u64) -> Result<Vec<u64>, Gone> {
        let (mut trips, until_ns) = (vec![], now_ns() + for_ns);
        loop {
            let before = clock.ticks();
            self.trip()?;
            trips.push(clock.ns(clock.ticks().wrapping_sub(before)));
            if now_ns() >= until_ns {
                return Ok(trips);
            }
        }
    }

    /// One trip there and back.
    pub(super) fn trip(&mut self) -> Result<(), Gone> {
        self.number = self.number.wrapping_add(1);
        let expected = match self.crossing {
            Carriage::Descriptor => 0,
            Carriage::Read => {
                // Relaxed: the message is sent later.
                self.buffer[0].store(self.number, Ordering::Relaxed);
                self.rest.wrapping_add(self.number)
            }
            Carriage::Copied => {
                self.message[..4].copy_from_slice(&self.number.to_le_bytes());
                self.number
            }
        };
        self.over.trip(&self.message, &mut self.answer)?;
        // In a descriptor the sum is the last word.
        let at = if self.crossing == Carriage::Copied { 0 } else { 12 };
        let found = self.answer[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        if found == expected {
            return Ok(());
        }
        Err(Gone(format!("the guest answered {found}, expected {expected}")))
    }
}

impl Over<'_> {
    fn trip(&mut self, message: &[u8], answer: &mut [u8]) -> Result<(), Gone> {
        match self {
            Over::Link { links, wait } => {
                let Linked { writer, reader, bells: [there, back] } = links;
                writer.try_send(message).map_err(|error| Gone(error.to_string()))?;
                writer.wake(there);
                let deadline_ns = now_ns() + ANSWER_NS_MAX;
                while !reader.try_receive(answer).map_err(|error| Gone(error.to_string()))? {
                    if !reader.wait(*wait, Some(deadline_ns), back) {
                        return Err(silent());
                    }
                }
                reader.wake(back);
            }
            Over::Ring { there, back, position } => {
                if !there.send(message) {
                    return Err(Gone("the ring is full".into()));
                }
                let deadline_ns = now_ns() + ANSWER_NS_MAX;
                while !(0..LOOKS).any(|_| {
                    let has_come = back.receive(answer);
                    if !has_come {
                        spin_loop();
                    }
                    has_come
                }) {
                    if now_ns() >= deadline_ns {
                        return Err(silent());
                    }
                }
                **position = position.wrapping_add(1);
            }
        }
        Ok(())
    }
}

fn silent() -> Gone {
    Gone(format!("the guest did not answer within {} s", ANSWER_NS_MAX / 1_000_000_000))
}
