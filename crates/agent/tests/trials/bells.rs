//! Doorbells in both directions, while the machine is busy.

use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::Duration;

use sinew_core::clock::now_ns;
use sinew_core::sys::Region;
use sinew_core::transport::Doorbell;
use sinew_link::queue::{Reader, SendError, Writer};
use sinew_link::{Os, Wait};

use crate::life::{Life, PATIENCE};

const MESSAGES: u32 = 10_000;
const SIZE: usize = 64;
/// How long a sleeper waits for a ring that never comes.
const IN_VAIN: Duration = Duration::from_secs(2);

/// A doorbell without the link's own limit of a sleep: a side that is not rung sleeps on.
struct Patient {
    doorbell: Doorbell,
    rings: bool,
    sleep_max: Duration,
    sleeps: Cell<u32>,
    is_lost: Cell<bool>,
}

impl Os for Patient {
    fn yield_now(&self) {
        self.doorbell.yield_now();
    }

    fn futex_wait(&self, word: &AtomicU32, expected: u32, _: u64) {
        let (begun_ns, max_ns) = (now_ns(), self.sleep_max.as_nanos() as u64);
        self.doorbell.futex_wait(word, expected, max_ns);
        self.sleeps.set(self.sleeps.get() + 1);
        self.is_lost.set(now_ns() - begun_ns >= max_ns);
    }

    fn futex_wake(&self, word: &AtomicU32) {
        if self.rings {
            self.doorbell.futex_wake(word);
        }
    }

    fn now_ns(&self) -> u64 {
        // Past any deadline, so that a wait ends with the sleep that no ring has ended.
        if self.is_lost.get() { u64::MAX } else { 0 }
    }
}

fn pattern(number: u32) -> [u8; SIZE] {
    std::array::from_fn(|at| number.to_le_bytes()[at % 4].wrapping_add(at as u8 / 4))
}

fn send(writer: &mut Writer<Region>, os: &Patient) -> bool {
    for number in 0..MESSAGES {
        // Sometimes the guest is to find nothing, and to sleep.
        if number % 50 == 0 {
            sleep(Duration::from_millis(1));
        }
        while let Err(why) = writer.try_send(&pattern(number)) {
            assert_eq!(why, SendError::Full);
            if !writer.wait_room(Wait::Park, Some(u64::MAX), os) {
                return false;
            }
        }
        writer.wake(os);
    }
    true
}

fn receive(reader: &mut Reader<Region>, os: &Patient) -> bool {
    let mut message = [0; SIZE];
    for number in 0..MESSAGES {
        while !reader.try_receive(&mut message).expect("a whole link") {
            if !reader.wait(Wait::Park, Some(u64::MAX), os) {
                return false;
            }
        }
        reader.wake(os);
        assert_eq!(message, pattern(number), "message {number} was lost, doubled or torn");
    }
    !reader.try_receive(&mut message).expect("a whole link")
}

/// Sends messages to the guest and takes them back, beside two busy threads. The guest also sleeps
/// without a limit. Returns whether all messages came and how often Linux slept; `None` if the test
/// cannot run.
fn there_and_back(rings: bool, sleep_max: Duration) -> Option<(bool, u32)> {
    let park_ms = 1e6;
    let life = Life::start(&format!("answer_{SIZE}"), &[0.0, park_ms, 1.0, SIZE as f64], 4)?;
    let (mut writer, mut reader) = (life.writer(), life.reader());
    let bells = life.keeper.bells();
    let patient = |bell, rings| {
        let doorbell = bells.doorbell(bell).expect("bells");
        Patient { doorbell, rings, sleep_max, sleeps: Cell::new(0), is_lost: Cell::new(false) }
    };
    let ended = AtomicBool::new(false);
    let found = scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !ended.load(Relaxed) {
                    spin_loop();
                }
            });
        }
        let sender = threads.spawn(|| {
            let os = patient(1, rings);
            (send(&mut writer, &os), os.sleeps.get())
        });
        let os = patient(2, true);
        let received = receive(&mut reader, &os);
        let (sent, sleeps) = sender.join().expect("the sender");
        ended.store(true, Relaxed);
        (sent && received, sleeps + os.sleeps.get())
    });
    life.stop();
    Some(found)
}

#[test]
fn ten_thousand_messages_each_way_come_once_and_in_order_by_doorbell_under_load() {
    let Some((all, sleeps)) = there_and_back(true, PATIENCE) else { return };
    assert!(all, "somebody slept for {PATIENCE:?} though there was something to do");
    assert!(sleeps > 10, "Linux slept {sleeps} times: the test saw nothing");
}

#[test]
fn a_linux_that_does_not_ring_is_noticed() {
    let Some((all, _)) = there_and_back(false, IN_VAIN) else { return };
    assert!(!all, "all messages came, though nobody rang for the guest");
}
