//! Two threads of one process sleep on eventfds as Linux and a guest do.

use std::cell::Cell;
use std::thread::scope;

use sinew_link::queue::{Reader, SendError, Writer};
use sinew_link::{Shape, Wait, create};

use super::*;
use crate::sys::Region;

/// How long a sleeper waits for a ring that must come.
const PATIENCE_NS: u64 = 60_000_000_000;
/// The same for a ring that never comes.
const IN_VAIN_NS: u64 = 200_000_000;
const MESSAGES: u32 = 10_000;

/// A doorbell without the link's own limit of a sleep: a side for which nobody rings sleeps on.
struct Patient {
    doorbell: Doorbell,
    /// Whether it rings itself.
    rings: bool,
    sleep_ns_max: u64,
    sleeps: Cell<u32>,
    is_lost: Cell<bool>,
}

impl Os for Patient {
    fn yield_now(&self) {
        self.doorbell.yield_now();
    }

    fn futex_wait(&self, word: &AtomicU32, expected: u32, _: u64) {
        let begun_ns = now_ns();
        self.doorbell.futex_wait(word, expected, self.sleep_ns_max);
        self.sleeps.set(self.sleeps.get() + 1);
        self.is_lost.set(now_ns() - begun_ns >= self.sleep_ns_max);
    }

    fn futex_wake(&self, word: &AtomicU32) {
        if self.rings {
            self.doorbell.futex_wake(word);
        }
    }

    fn now_ns(&self) -> u64 {
        // Past any deadline, so that a wait ends with the sleep that was not ended by a ring.
        if self.is_lost.get() { u64::MAX } else { 0 }
    }
}

/// A writer and a reader that sleep whenever they must. Returns whether all messages came in order
/// before a ring was lost, and how often the two slept.
fn cross(rings: bool, sleep_ns_max: u64) -> (bool, u32) {
    let shape = Shape::queue(8, 7, 2).parking();
    let region = Region::shared("test", shape.region_len()).expect("memory");
    create(&region, &shape).expect("it is long enough");
    let [there, back] = [(); 2].map(|()| Bell::create().expect("a bell"));
    let again = |bell: &Bell| bell.try_clone().expect("a descriptor");
    let patient = |hears, rings_at, rings| Patient {
        doorbell: Doorbell { hears: again(hears), rings: again(rings_at) },
        rings,
        sleep_ns_max,
        sleeps: Cell::new(0),
        is_lost: Cell::new(false),
    };
    let (there, back, region, shape) = (&there, &back, &region, &shape);
    scope(|threads| {
        let sender = threads.spawn(move || {
            let os = patient(back, there, rings);
            let mut writer = Writer::attach(region, shape).expect("a link");
            for number in 0..MESSAGES {
                let message = u64::from(number).to_le_bytes();
                while let Err(why) = writer.try_send(&message) {
                    assert_eq!(why, SendError::Full);
                    if !writer.wait_room(Wait::Park, Some(u64::MAX), &os) {
                        return (false, os.sleeps.get());
                    }
                }
                writer.wake(&os);
            }
            (true, os.sleeps.get())
        });
        let os = patient(there, back, true);
        let mut reader = Reader::attach(region, shape).expect("a link");
        let mut message = [0; 8];
        let mut all = true;
        'messages: for number in 0..MESSAGES {
            while !reader.try_receive(&mut message).expect("a whole link") {
                if !reader.wait(Wait::Park, Some(u64::MAX), &os) {
                    all = false;
                    break 'messages;
                }
            }
            reader.wake(&os);
            assert_eq!(u64::from_le_bytes(message), u64::from(number));
        }
        drop(reader);
        let (sent, sleeps) = sender.join().expect("the sender");
        (all && sent, sleeps + os.sleeps.get())
    })
}

#[test]
fn no_ring_is_lost_between_two_that_sleep_whenever_they_can() {
    let (all, sleeps) = cross(true, PATIENCE_NS);
    assert!(all, "somebody slept for {PATIENCE_NS} ns though there was something to do");
    assert!(sleeps > 10, "they slept {sleeps} times: the test saw nothing");
}

#[test]
fn a_side_that_does_not_ring_is_noticed() {
    let (all, _) = cross(false, IN_VAIN_NS);
    assert!(!all, "all messages came, though nobody rang for the reader");
}

#[test]
fn an_old_ring_does_not_end_a_sleep_and_a_storm_does_not_keep_anybody() {
    let [hears, rings] = [(); 2].map(|()| Bell::create().expect("a bell"));
    let (doorbell, word) = (Doorbell { hears, rings }, AtomicU32::new(0));
    let is_over = AtomicU32::new(0);
    scope(|threads| {
        doorbell.hears.ring();
        let waker = threads.spawn(|| {
            while !doorbell.is_quiet() {
                std::thread::yield_now();
            }
            // The old ring was heard: this one has a reason.
            word.store(1, Ordering::Release);
            doorbell.hears.ring();
        });
        doorbell.futex_wait(&word, 0, PATIENCE_NS);
        assert_eq!(word.load(Ordering::Acquire), 1, "the sleep ended before the word moved on");
        waker.join().expect("no panic");
        threads.spawn(|| {
            while is_over.load(Ordering::Relaxed) == 0 {
                doorbell.hears.ring();
            }
        });
        (0..10).for_each(|_| doorbell.futex_wait(&word, 1, PATIENCE_NS));
        is_over.store(1, Ordering::Relaxed);
    });
}

impl Doorbell {
    /// Whether no ring is left unheard.
    fn is_quiet(&self) -> bool {
        poll(&mut [PollFd::new(&self.hears, PollFlags::IN)], Some(&timespec(0))) == Ok(0)
    }
}
