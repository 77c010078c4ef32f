//! What reading the newest value costs, compared with a seqlock written by hand. In one thread,
//! every read finds an old value, or every read finds a new one. With two CPUs, the other CPU has
//! written every value since the last read. There, reader and writer take turns: if the writer went
//! on at its own pace, that pace would decide how many reads find a new value, and the pace would
//! be measured.

use std::cell::Cell;
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use sinew_core::clock::{Clock, now_ns};
use sinew_core::sys::Region;
use sinew_link::latest::{Fresh, Reader, Writer};
use sinew_link::{Shape, create};

use crate::harness::reference::Reference;
use crate::harness::{Gone, Life, of_means, on_thread, on_threads};
use crate::report::Row;
use crate::rounds::Contender;
use crate::words::words;

/// Places that are read between two readings of the clock, so that the cost of the clock does not
/// show. They are few enough to stay in the nearest cache.
const PLACES: usize = 8;
/// Fewest batches of a round.
const BATCHES_MIN: usize = 100;

/// The turns if two CPUs take part.
const READS: u32 = 0;
const WRITES: u32 = 1;
const OVER: u32 = 2;

/// Bytes of the values that are read; the short form leaves the largest out.
pub(super) const SIZES: [u32; 4] = [8, 48, 256, 1024];

words! {
    /// What a read finds.
    pub(super) enum Value {
        Old = "old",
        New = "new",
        WrittenMeanwhile = "written_meanwhile",
    }
}

impl Value {
    /// How often a batch reads each place. If nothing is written in between, many times, because
    /// otherwise the steps of the clock would show.
    fn passes(self) -> usize {
        if self == Value::Old { 16 } else { 1 }
    }

    /// Whether a writer on another CPU takes part.
    pub(super) fn is_shared(self) -> bool {
        self == Value::WrittenMeanwhile
    }
}

/// The row of such reads.
pub(super) fn row(value: Value, bytes: u32) -> Row {
    let placement = if value.is_shared() { "threads" } else { "one_thread" };
    Row::of(&[
        ("transport", "in_process"),
        ("sync", "lock_free"),
        ("delivery", "latest"),
        ("placement", placement),
        ("access", "copied"),
        ("value", value.word()),
        ("bytes", &bytes.to_string()),
    ])
}

/// A value of `WORDS` words, as bytes.
type Bytes<const WORDS: usize> = [[u8; 8]; WORDS];

/// Reads of one of the [`SIZES`]; each of the three measurements of a round has this `budget`.
pub(super) fn contender<'a>(
    value: Value,
    bytes: u32,
    reference: &'a Reference,
    budget: &'a Cell<Duration>,
) -> Box<dyn Contender + 'a> {
    match bytes {
        8 => Box::new(Reads::<1> { value, reference, budget }),
        48 => Box::new(Reads::<6> { value, reference, budget }),
        256 => Box::new(Reads::<32> { value, reference, budget }),
        1024 => Box::new(Reads::<128> { value, reference, budget }),
        _ => unreachable!("there is no row that reads {bytes} B"),
    }
}

/// Reads of values of `WORDS` words; the ratio is to the seqlock.
struct Reads<'a, const WORDS: usize> {
    value: Value,
    reference: &'a Reference,
    budget: &'a Cell<Duration>,
}

/// A place for the newest value: a function that writes it, and one that reads it and returns
/// whether the value was new.
struct Place<W, R> {
    write: W,
    read: R,
}

/// Our place: a region.
#[expect(clippy::type_complexity, reason = "closures have types without names")]
fn ours<const WORDS: usize>() -> Result<
    Place<impl FnMut(&Bytes<WORDS>) + Send, impl FnMut(&mut Bytes<WORDS>) -> bool + Send>,
    Gone,
> {
    let shape = Shape::latest(8 * WORDS as u32, 0);
    let failed = |error: &dyn std::fmt::Display| Gone(format!("cannot make the link: {error}"));
    let region = Region::anonymous(shape.region_len()).map_err(|error| failed(&error))?;
    create(&region, &shape).map_err(|error| failed(&error))?;
    let mut writer = Writer::attach(region.clone(), &shape).map_err(|error| failed(&error))?;
    let mut reader = Reader::attach(region, &shape).map_err(|error| failed(&error))?;
    Ok(Place {
        write: move |value: &Bytes<WORDS>| writer.send(value.as_flattened()),
        read: move |into: &mut Bytes<WORDS>| reader.read(into.as_flattened_mut()) == Ok(Fresh::New),
    })
}

/// The place to compare with: H.-J. Boehm, "Can seqlocks get along with programming language memory
/// models?" (MSPC 2012), with fences. The words follow the sequence, on its cache line if they fit.
#[repr(align(128))]
struct Seqlock<const WORDS: usize> {
    sequence: AtomicU32,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Seqlock<WORDS> {
    #[inline]
    fn write(&self, value: &Bytes<WORDS>) {
        // Relaxed: no other thread writes it.
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        // Release: a reader that sees one of the new words also sees the odd sequence.
        fence(Ordering::Release);
        for (word, bytes) in self.words.iter().zip(value) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        // Release: a reader that sees the even sequence also sees all words.
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Returns the sequence of the value that was read.
    #[inline]
    fn read(&self, into: &mut Bytes<WORDS>) -> u32 {
        loop {
            // Acquire: the words are at least as new as the sequence.
            let sequence = self.sequence.load(Ordering::Acquire);
            for (word, bytes) in self.words.iter().zip(&mut *into) {
                *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            // Acquire: the second look is at least as new as the words.
            fence(Ordering::Acquire);
            let again = self.sequence.load(Ordering::Relaxed);
            if sequence.is_multiple_of(2) && again == sequence {
                return sequence;
            }
            spin_loop();
        }
    }
}

fn seqlock<const WORDS: usize>()
-> Place<impl FnMut(&Bytes<WORDS>) + Send, impl FnMut(&mut Bytes<WORDS>) -> bool + Send> {
    let words = [const { AtomicU64::new(0) }; WORDS];
    let writer = Arc::new(Seqlock { sequence: AtomicU32::new(0), words });
    let reader = Arc::clone(&writer);
    let mut seen = 0;
    Place {
        write: move |value: &Bytes<WORDS>| writer.write(value),
        read: move |into: &mut Bytes<WORDS>| {
            let before = std::mem::replace(&mut seen, reader.read(into));
            before != seen
        },
    }
}

impl<const WORDS: usize> Reads<'_, WORDS> {
    /// The time of one read, ns, for each of some batches.
    fn time<W, R>(&self, mut places: Vec<Place<W, R>>) -> Result<Vec<f64>, Gone>
    where
        W: FnMut(&Bytes<WORDS>) + Send,
        R: FnMut(&mut Bytes<WORDS>) -> bool + Send,
    {
        let (budget, Reference { cpus, clock, .. }) = (self.budget.get(), self.reference);
        let (cpus, clock, passes) = (*cpus, *clock, self.value.passes());
        let mut value = [[0; 8]; WORDS];
        places.iter_mut().for_each(|place| (place.write)(&value));
        let (mut writers, mut readers): (Vec<_>, Vec<_>) =
            places.into_iter().map(|place| (place.write, place.read)).unzip();
        let mut write_all = || {
            value[0] = (u64::from_ne_bytes(value[0]) + 1).to_ne_bytes();
            writers.iter_mut().for_each(|write| write(black_box(&value)));
        };
        match self.value {
            Value::Old => {
                on_thread(cpus.near, || batches(clock, budget, passes, &mut readers, || Ok(())))
            }
            Value::New => on_thread(cpus.near, || {
                batches(clock, budget, passes, &mut readers, || {
                    write_all();
                    Ok(())
                })
            }),
            Value::WrittenMeanwhile => {
                let turn = AtomicU32::new(READS);
                // Release and acquire, on both sides: only the side that has the turn touches the
                // places.
                let near = |life: &Life| {
                    let found = batches(clock, budget, passes, &mut readers, || {
                        turn.store(WRITES, Ordering::Release);
                        life.until(|| (turn.load(Ordering::Acquire) == READS).then_some(()))
                    });
                    turn.store(OVER, Ordering::Release);
                    found
                };
                let far = |life: &Life| {
                    let next = || Some(turn.load(Ordering::Acquire)).filter(|turn| *turn != READS);
                    while life.until(next)? == WRITES {
                        write_all();
                        turn.store(READS, Ordering::Release);
                    }
                    Ok(())
                };
                on_threads(cpus, near, far)
            }
        }
    }
}

/// Batches until the time is over. `before` is called before each batch; a batch makes this many
/// passes over all readers.
fn batches<const WORDS: usize>(
    clock: Clock,
    budget: Duration,
    passes: usize,
    readers: &mut [impl FnMut(&mut Bytes<WORDS>) -> bool],
    mut before: impl FnMut() -> Result<(), Gone>,
) -> Result<Vec<f64>, Gone> {
    let mut found = vec![];
    let until_ns = now_ns() + budget.as_nanos() as u64;
    while now_ns() < until_ns || found.len() < BATCHES_MIN {
        before()?;
        let mut into = [[0; 8]; WORDS];
        let start = clock.ticks();
        for _ in 0..passes {
            let mut place = 0;
            while place < readers.len() {
                black_box(readers[place](&mut into));
                black_box(&into);
                // A real reader waits for the value. Without this, the core would load all places
                // at once, and read the clock before the first value has arrived.
                place += 1 + high_bit(into[0]);
            }
        }
        let ns = clock.exact_ns(clock.ticks().wrapping_sub(start));
        found.push(ns / (readers.len() * passes) as f64);
    }
    // The first ones warmed up the caches.
    Ok(found.split_off(found.len() / 10))
}

/// Always 0, because values are small; but the core must have the value to know that.
#[inline(always)]
fn high_bit(word: [u8; 8]) -> usize {
    (u64::from_ne_bytes(word) >> 63) as usize
}

impl<const WORDS: usize> Contender for Reads<'_, WORDS> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let seqlock = || self.time((0..PLACES).map(|_| seqlock()).collect());
        let measure = || {
            let before = seqlock()?;
            let ours = self.time((0..PLACES).map(|_| ours()).collect::<Result<_, _>>()?)?;
            Ok((ours, [before, seqlock()?].concat()))
        };
        let (ours, seqlock) = measure().map_err(|Gone(why)| why)?;
        let step_ns = self.reference.clock.step_ns() / (PLACES * self.value.passes()) as f64;
        let seqlock = of_means(seqlock, step_ns);
        row.measure_mut("read_of_a_seqlock").add_round(&seqlock.values, seqlock.median_ns, None);
        let ours = of_means(ours, step_ns);
        let reference = Some(seqlock.median_ns);
        row.measure_mut("read").add_round(&ours.values, ours.median_ns, reference);
        Ok(())
    }

    fn takes(&self) -> Duration {
        self.budget.get() * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads<W, R>(mut place: Place<W, R>)
    where
        W: FnMut(&Bytes<6>),
        R: FnMut(&mut Bytes<6>) -> bool,
    {
        let mut into = [[0; 8]; 6];
        for number in 1..100_u64 {
            (place.write)(&[number.to_ne_bytes(); 6]);
            assert!((place.read)(&mut into), "{number} is new");
            assert_eq!(into, [number.to_ne_bytes(); 6]);
            assert!(!(place.read)(&mut into), "{number} is old");
            assert_eq!(into, [number.to_ne_bytes(); 6]);
        }
    }

    #[test]
    fn both_places_give_the_newest_value_and_say_whether_it_is_new() {
        reads(ours().expect("memory"));
        reads(seqlock());
    }

    #[test]
    fn a_seqlock_that_is_written_meanwhile_gives_whole_values() {
        let lock = seqlock::<64>();
        let (mut write, mut read) = (lock.write, lock.read);
        std::thread::scope(|scope| {
            scope.spawn(move || (0..10_000_u64).for_each(|n| write(&[n.to_ne_bytes(); 64])));
            let mut into = [[0; 8]; 64];
            for _ in 0..10_000 {
                read(&mut into);
                assert!(into.iter().all(|word| *word == into[0]), "{into:?}");
            }
        });
    }
}
