//! A message of 256 B through a queue of the standard library: in the queue's slots, or in a box
//! that is made for each message and freed by its reader.

use std::hint::black_box;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};

use sinew_core::clock::now_ns;
use sinew_figures::Distribution;

use super::case::MistakeForm;
use super::races::Two;
use crate::harness::{Gone, Life, on_thread, on_threads};

/// What is sent: 256 B.
type Words = [u64; 32];

/// Messages that the queue holds.
const CAPACITY: usize = 64;
/// Messages before the first that counts.
const WARM_UP: u64 = 1000;
/// Messages between two looks at the time, which is also the fewest of a round: its P99 needs a
/// thousand.
const BURST: u64 = 1000;

/// The form that a message has in the queue.
trait Carried: Send {
    /// Makes a message whose words are all `number`.
    fn made(number: u64) -> Self;
    /// The sum of its words; consumes the message.
    fn read(self) -> u64;
}

impl Carried for Words {
    #[inline(always)]
    fn made(number: u64) -> Words {
        [number; 32]
    }

    #[inline(always)]
    fn read(self) -> u64 {
        black_box(&self).iter().fold(0, |sum, word| sum.wrapping_add(*word))
    }
}

impl Carried for Box<Words> {
    #[inline(always)]
    fn made(number: u64) -> Box<Words> {
        Box::new([number; 32])
    }

    #[inline(always)]
    fn read(self) -> u64 {
        black_box(&*self).iter().fold(0, |sum, word| sum.wrapping_add(*word))
    }
}

impl Two {
    /// Round trips between two CPUs, each timed; both sides make the messages that they send.
    pub(super) fn carried_there_and_back(self, form: MistakeForm) -> Result<Distribution, Gone> {
        match form {
            MistakeForm::Boxed => self.trips::<Box<Words>>(),
            _ => self.trips::<Words>(),
        }
    }

    /// Messages that one thread makes, sends, receives and reads, each timed.
    pub(super) fn carried(self, form: MistakeForm) -> Result<Distribution, Gone> {
        on_thread(self.cpus.near, || match form {
            MistakeForm::Boxed => self.passes::<Box<Words>>(),
            _ => self.passes::<Words>(),
        })
    }

    fn trips<M: Carried>(self) -> Result<Distribution, Gone> {
        let (there, at_far) = sync_channel::<M>(CAPACITY);
        let (back, at_near) = sync_channel::<M>(CAPACITY);
        let near = move |life: &Life| {
            self.time(|number| {
                send(&there, M::made(number))?;
                let found = receive(&at_near, life)?.ok_or_else(|| Gone("it ended".into()))?;
                Ok(found.read())
            })
        };
        // It ends when the near side has dropped its sender.
        let far = move |life: &Life| {
            while let Some(message) = receive(&at_far, life)? {
                let number = message.read() / 32;
                send(&back, M::made(number))?;
            }
            Ok(())
        };
        on_threads(self.cpus, near, far)
    }

    fn passes<M: Carried>(self) -> Result<Distribution, Gone> {
        let (there, here) = sync_channel::<M>(CAPACITY);
        self.time(|number| {
            send(&there, M::made(number))?;
            let found = here.try_recv().map_err(|error| Gone(error.to_string()))?;
            Ok(found.read())
        })
    }

    /// Times every single pass, for the time of a round.
    fn time(self, mut pass: impl FnMut(u64) -> Result<u64, Gone>) -> Result<Distribution, Gone> {
        let (mut times, mut number) = (Distribution::new(), 0);
        let mut until_ns = u64::MAX;
        while number < WARM_UP + BURST || now_ns() < until_ns {
            for _ in 0..BURST {
                number += 1;
                let before = self.clock.ticks();
                let sum = pass(number)?;
                let now = self.clock.ticks();
                if sum != number * 32 {
                    return Err(Gone(format!("sent {number}, got words that add up to {sum}")));
                }
                if number > WARM_UP {
                    times.add(self.clock.ns(now.wrapping_sub(before)));
                }
            }
            if number == WARM_UP {
                until_ns = now_ns() + self.share.as_nanos() as u64;
            }
        }
        Ok(times)
    }
}

fn send<M>(to: &SyncSender<M>, message: M) -> Result<(), Gone> {
    to.try_send(message).map_err(|error| match error {
        TrySendError::Full(_) => Gone("the queue is full of messages that nobody read".into()),
        TrySendError::Disconnected(_) => Gone("the other side has ended".into()),
    })
}

/// Polls; `None` once the sender is gone.
fn receive<M>(from: &Receiver<M>, life: &Life) -> Result<Option<M>, Gone> {
    life.until(|| match from.try_recv() {
        Ok(message) => Some(Some(message)),
        Err(TryRecvError::Disconnected) => Some(None),
        Err(TryRecvError::Empty) => None,
    })
}
