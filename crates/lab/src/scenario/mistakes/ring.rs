//! A small ring that can be built wrongly, unlike ours: one writer, one reader, a word for each
//! message. The place of its indexes and the way from an index to a slot are parameters. Each side
//! keeps the other side's index as last seen, and looks again only when the ring seems full or
//! empty.

use std::hint::spin_loop;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sinew_core::clock::now_ns;

use super::case::{MistakeForm, Poll};
use super::races::Two;
use crate::harness::{Found, Gone, Life, THOUSAND, batches, of_means, on_thread, on_threads};

/// Messages of a burst: each fills the ring many times.
const BURST: u64 = 50_000;
/// Fewest bursts of a round.
const BURSTS_MIN: usize = 9;
/// The number of slots: one that is a power of two, and one that is not.
const SLOTS: usize = 1024;
const SLOTS_UNEVEN: usize = 1000;

/// A word on a line of its own; the neighbouring line is not shared either.
#[derive(Default)]
#[repr(align(128))]
struct Lonely(AtomicU64);

/// Where the indexes are. Both count messages, and only go up.
trait Indexes: Default + Sync {
    /// The index of the writer.
    fn tail(&self) -> &AtomicU64;
    /// The index of the reader.
    fn head(&self) -> &AtomicU64;
}

#[derive(Default)]
#[repr(align(128))]
struct OnOneLine {
    tail: AtomicU64,
    head: AtomicU64,
}

impl Indexes for OnOneLine {
    fn tail(&self) -> &AtomicU64 {
        &self.tail
    }

    fn head(&self) -> &AtomicU64 {
        &self.head
    }
}

#[derive(Default)]
struct OnTwoLines {
    tail: Lonely,
    head: Lonely,
}

impl Indexes for OnTwoLines {
    fn tail(&self) -> &AtomicU64 {
        &self.tail.0
    }

    fn head(&self) -> &AtomicU64 {
        &self.head.0
    }
}

/// How the slot of the next message is found.
trait Step {
    /// The slot of the message at `position`; the message before had `slot`, and there are `slots`
    /// slots.
    fn next(position: u64, slot: usize, slots: usize) -> usize;
}

struct Masked;

impl Step for Masked {
    #[inline(always)]
    fn next(position: u64, _: usize, slots: usize) -> usize {
        position as usize & (slots - 1)
    }
}

struct Divided;

impl Step for Divided {
    #[inline(always)]
    fn next(position: u64, _: usize, slots: usize) -> usize {
        position as usize % slots
    }
}

struct Compared;

impl Step for Compared {
    #[inline(always)]
    fn next(_: u64, slot: usize, slots: usize) -> usize {
        if slot + 1 == slots { 0 } else { slot + 1 }
    }
}

/// The ring.
struct TinyRing<I> {
    indexes: I,
    slots: Box<[AtomicU64]>,
}

impl<I: Indexes> TinyRing<I> {
    fn new(slots: usize) -> TinyRing<I> {
        let slots = (0..slots).map(|_| AtomicU64::new(0)).collect();
        TinyRing { indexes: I::default(), slots }
    }

    /// The writing side; there may be one.
    fn writer<S: Step>(&self) -> TinyEnd<'_, I, S> {
        TinyEnd { ring: self, position: 0, slot: 0, seen: 0, step: PhantomData }
    }

    /// The reading side; there may be one.
    fn reader<S: Step>(&self) -> TinyEnd<'_, I, S> {
        self.writer()
    }
}

/// One side of the ring.
struct TinyEnd<'a, I, S> {
    ring: &'a TinyRing<I>,
    /// Messages that this side has written or read, and the slot of the next one.
    position: u64,
    slot: usize,
    /// The other side's position as last seen.
    seen: u64,
    step: PhantomData<S>,
}

impl<I: Indexes, S: Step> TinyEnd<'_, I, S> {
    /// Writes a message; returns whether there was room.
    #[inline(always)]
    fn push(&mut self, message: u64) -> bool {
        let TinyRing { indexes, slots } = self.ring;
        if self.position - self.seen == slots.len() as u64 {
            // Acquire: the reader has done with the slot that it gives back.
            self.seen = indexes.head().load(Ordering::Acquire);
            if self.position - self.seen == slots.len() as u64 {
                return false;
            }
        }
        // Relaxed: the release of the index below orders it.
        slots[self.slot].store(message, Ordering::Relaxed);
        self.advance();
        // Release: a reader that sees the index also sees the slot.
        indexes.tail().store(self.position, Ordering::Release);
        true
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        let TinyRing { indexes, slots } = self.ring;
        if self.position == self.seen {
            // Acquire: pairs with the release of the writer.
            self.seen = indexes.tail().load(Ordering::Acquire);
            if self.position == self.seen {
                return None;
            }
        }
        // Relaxed: the acquire of the index orders it.
        let message = slots[self.slot].load(Ordering::Relaxed);
        self.advance();
        // Release: the slot has been read before the writer may use it again.
        indexes.head().store(self.position, Ordering::Release);
        Some(message)
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.position += 1;
        self.slot = S::next(self.position, self.slot, self.ring.slots.len());
    }
}

impl Two {
    /// The time of a thousand messages through a ring of this form, from one CPU to the other.
    pub(super) fn stream(self, form: MistakeForm, poll: Poll) -> Result<Found, Gone> {
        match form {
            MistakeForm::OneLine => self.stream_of::<OnOneLine, Masked>(SLOTS, poll),
            MistakeForm::Remainder => self.stream_of::<OnTwoLines, Divided>(SLOTS_UNEVEN, poll),
            MistakeForm::Compare => self.stream_of::<OnTwoLines, Compared>(SLOTS_UNEVEN, poll),
            _ => self.stream_of::<OnTwoLines, Masked>(SLOTS, poll),
        }
    }

    /// The same in one thread: each message is written and then read.
    pub(super) fn there_and_out(self, form: MistakeForm) -> Result<Found, Gone> {
        on_thread(self.cpus.near, || match form {
            MistakeForm::Remainder => self.alone::<Divided>(SLOTS_UNEVEN),
            MistakeForm::Compare => self.alone::<Compared>(SLOTS_UNEVEN),
            _ => self.alone::<Masked>(SLOTS),
        })
    }

    fn stream_of<I: Indexes, S: Step>(self, slots: usize, poll: Poll) -> Result<Found, Gone> {
        let (ring, is_over) = (TinyRing::<I>::new(slots), AtomicBool::new(false));
        let near = |life: &Life| {
            let bursts = self.bursts(ring.writer::<S>(), poll, life);
            // Relaxed, here and below: the flag carries no other data with it.
            is_over.store(true, Ordering::Relaxed);
            bursts
        };
        let far = |life: &Life| {
            let mut reader = ring.reader::<S>();
            let mut expected = 0;
            loop {
                let message = life.until(|| match reader.pop() {
                    Some(message) => Some(Some(message)),
                    None if is_over.load(Ordering::Relaxed) => Some(None),
                    None => self.pause(poll),
                })?;
                match message {
                    Some(message) if message == expected => expected += 1,
                    Some(other) => {
                        return Err(Gone(format!("message {other} came instead of {expected}")));
                    }
                    None => return Ok(()),
                }
            }
        };
        on_threads(self.cpus, near, far)
    }

    /// Bursts of messages; each burst lasts until the reader has received its last message.
    fn bursts<I: Indexes, S: Step>(
        self,
        mut writer: TinyEnd<'_, I, S>,
        poll: Poll,
        life: &Life,
    ) -> Result<Found, Gone> {
        let (mut means, mut number) = (Vec::new(), 0);
        let mut until_ns = u64::MAX;
        while means.len() < BURSTS_MIN || now_ns() < until_ns {
            let before = self.clock.ticks();
            for _ in 0..BURST {
                life.until(|| if writer.push(number) { Some(()) } else { self.pause(poll) })?;
                number += 1;
            }
            let head = writer.ring.indexes.head();
            life.until(|| (head.load(Ordering::Acquire) == number).then_some(()))?;
            let ns = self.clock.ns(self.clock.ticks().wrapping_sub(before));
            if until_ns == u64::MAX {
                // The first burst waits for the reader to start, and does not count.
                until_ns = now_ns() + self.share.as_nanos() as u64;
            } else {
                means.push(ns as f64 * THOUSAND / BURST as f64);
            }
        }
        Ok(of_means(means, self.clock.step_ns() * THOUSAND / BURST as f64))
    }

    /// Waits for the time between two looks, with the CPU busy; always returns `None`.
    #[cold]
    fn pause<T>(self, poll: Poll) -> Option<T> {
        let before = self.clock.ticks();
        while self.clock.ns(self.clock.ticks().wrapping_sub(before)) < poll.gap_ns() {
            spin_loop();
        }
        None
    }

    fn alone<S: Step>(self, slots: usize) -> Result<Found, Gone> {
        let ring = TinyRing::<OnTwoLines>::new(slots);
        let (mut writer, mut reader) = (ring.writer::<S>(), ring.reader::<S>());
        let (mut number, mut wrong) = (0, 0_u64);
        let found = batches(self.clock, self.share, || {
            let had_room = writer.push(number);
            wrong += u64::from(!had_room || reader.pop() != Some(number));
            number += 1;
        });
        match wrong {
            0 => Ok(found),
            wrong => Err(Gone(format!("{wrong} messages were lost"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps_order<S: Step>(slots: usize) {
        let ring = TinyRing::<OnOneLine>::new(slots);
        let (mut writer, mut reader) = (ring.writer::<S>(), ring.reader::<S>());
        let (mut written, mut read) = (0, 0);
        for _ in 0..3 {
            while writer.push(written) {
                written += 1;
            }
            assert_eq!(written - read, slots as u64, "it is full");
            while let Some(message) = reader.pop() {
                assert_eq!(message, read);
                read += 1;
            }
            assert_eq!(read, written, "it is empty");
            // So that the next time the end of the slots is at another place.
            assert!(writer.push(written) && reader.pop() == Some(read));
            (written, read) = (written + 1, read + 1);
        }
    }

    #[test]
    fn every_form_keeps_all_messages_in_order() {
        keeps_order::<Masked>(8);
        keeps_order::<Divided>(7);
        keeps_order::<Compared>(7);
    }

    #[test]
    fn indexes_lie_where_the_form_says() {
        let line = |index: &AtomicU64| std::ptr::from_ref(index).addr() / 128;
        let (one, two) = (OnOneLine::default(), OnTwoLines::default());
        assert_eq!(line(one.tail()), line(one.head()));
        assert_ne!(line(two.tail()), line(two.head()));
    }
}
