//! Sleepers that are woken one by one: how long the waking call takes, and how long it takes until
//! the sleeper runs. Also whole messages there and back.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use rustix::thread::gettid;
use sinew_core::clock::{Clock, now_ns};
use sinew_figures::Distribution;

use super::alarms::{Alarm, Notified};
use super::case::SyncScheduling;
use super::place::meet;
use crate::harness::{Cpus, Gone, Life, on_threads};

/// Time between two wake-ups: the time that a loop of 1 kHz leaves a CPU to fall asleep.
const GAP: Duration = Duration::from_millis(1);
/// Fewest wake-ups of a round: the median needs ten on either side.
const WAKES_MIN: u64 = 20;
/// Trips of a message before the first that counts.
const WARM_UP: u32 = 16;

/// The CPUs, scheduling and clock of waker and sleeper.
#[derive(Clone, Copy)]
pub(super) struct Sleepers {
    pub(super) cpus: Cpus,
    pub(super) scheduling: SyncScheduling,
    pub(super) clock: Clock,
    pub(super) share: Duration,
}

/// What was seen of the wake-ups.
#[derive(Default)]
pub(super) struct Woken {
    /// Times of the waking call.
    pub(super) call: Distribution,
    /// Times from before the call until the sleeper runs.
    pub(super) wake_up: Distribution,
}

/// What waker and sleeper know of each other.
#[derive(Default)]
struct Shared {
    /// The thread that sleeps; 0 until it has started.
    sleeper: AtomicI32,
    /// When it woke, by the counter; 0 while it sleeps.
    woken_at: AtomicU64,
    /// Whether the wake-up was the last one.
    over: AtomicBool,
}

impl Sleepers {
    /// Wakes a sleeper again and again. No side ever polls for the other: on one CPU, and under
    /// FIFO, that would keep the other side from running.
    pub(super) fn wake(self, alarm: &dyn Alarm) -> Result<Woken, Gone> {
        let shared = Shared::default();
        let near = |life: &Life| {
            let mut number = 0;
            let woken = self.scheduling.take();
            let woken = woken.and_then(|()| self.wakes(alarm, &shared, life, &mut number));
            // Also after an error: otherwise the sleeper would never end. Relaxed: the ring orders
            // it.
            shared.over.store(true, Ordering::Relaxed);
            alarm.prepare(number + 1);
            let rung = alarm.ring().map_err(failed);
            let woken = woken?;
            rung.map(|()| woken)
        };
        let far = |_: &Life| {
            self.scheduling.take()?;
            // Release: a thread that sees this number also sees what was written before it.
            shared.sleeper.store(gettid().as_raw_pid(), Ordering::Release);
            for number in 1.. {
                alarm.sleep(number).map_err(failed)?;
                let now = self.clock.ticks();
                // Relaxed: the ring orders it.
                if shared.over.load(Ordering::Relaxed) {
                    break;
                }
                // Release: pairs with the acquire of the waker, which writes 0 for the next time.
                shared.woken_at.store(now.max(1), Ordering::Release);
            }
            Ok(())
        };
        on_threads(self.cpus, near, far)
    }

    fn wakes(
        self,
        alarm: &dyn Alarm,
        shared: &Shared,
        life: &Life,
        number: &mut u32,
    ) -> Result<Woken, Gone> {
        let clock = self.clock;
        let mut woken = Woken::default();
        let until_ns = now_ns() + self.share.as_nanos() as u64;
        let (mut patience, mut rung_at) = (life.patience(), None);
        loop {
            sleep(GAP);
            if let Some(before) = rung_at {
                // Acquire: pairs with the release of the sleeper.
                let at = shared.woken_at.swap(0, Ordering::Acquire);
                if at == 0 {
                    patience.look()?;
                    continue;
                }
                // If the counters of the CPUs differ a little, it may seem to have woken before the
                // ring.
                woken.wake_up.add(clock.ns(at.saturating_sub(before)));
                rung_at = None;
            }
            if woken.wake_up.n() >= WAKES_MIN && now_ns() >= until_ns {
                return Ok(woken);
            }
            // Acquire: pairs with the release of the sleeper.
            if !is_asleep(shared.sleeper.load(Ordering::Acquire))? {
                patience.look()?;
                continue;
            }
            *number += 1;
            alarm.prepare(*number);
            let before = clock.ticks();
            let rung = alarm.ring();
            let after = clock.ticks();
            rung.map_err(failed)?;
            woken.call.add(clock.ns(after.wrapping_sub(before)));
            (patience, rung_at) = (life.patience(), Some(before));
        }
    }

    /// A message there and one back, each handed over by a mutex and a condition variable on which
    /// the other side sleeps. Returns half of the time of each trip.
    pub(super) fn hand_over(self) -> Result<Distribution, Gone> {
        let (there, back) = (Notified::default(), Notified::default());
        let (over, up) = (AtomicBool::new(false), AtomicU32::new(0));
        let near = |life: &Life| {
            self.scheduling.take()?;
            meet(&up, life)?;
            let (mut number, mut halves) = (0, Distribution::new());
            let until_ns = now_ns() + self.share.as_nanos() as u64;
            while halves.n() < WAKES_MIN || now_ns() < until_ns {
                number += 1;
                let before = self.clock.ticks();
                there.send(number);
                back.await_number(number);
                let ns = self.clock.ns(self.clock.ticks().wrapping_sub(before));
                if number > WARM_UP {
                    halves.add(ns / 2);
                }
            }
            // Relaxed, here and below: the mutex orders it.
            over.store(true, Ordering::Relaxed);
            there.send(number + 1);
            Ok(halves)
        };
        let far = |life: &Life| {
            self.scheduling.take()?;
            meet(&up, life)?;
            for number in 1.. {
                there.await_number(number);
                if over.load(Ordering::Relaxed) {
                    break;
                }
                back.send(number);
            }
            Ok(())
        };
        on_threads(self.cpus, near, far)
    }
}

fn failed(error: io::Error) -> Gone {
    Gone(format!("the kernel refuses: {error}"))
}

/// Whether this thread of the process sleeps, as the kernel reports it (proc_pid_stat(5)); 0 stands
/// for no thread.
fn is_asleep(thread: i32) -> Result<bool, Gone> {
    if thread == 0 {
        return Ok(false);
    }
    let path = format!("/proc/self/task/{thread}/stat");
    let text = fs::read_to_string(&path);
    let text =
        text.map_err(|error| Gone(format!("whether the sleeper sleeps: {path}: {error}")))?;
    Ok(text.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::sync::alarms::alarm;
    use crate::scenario::sync::case::{SyncOperation, WAKES};

    fn sleepers(cpus: Cpus) -> Sleepers {
        let (clock, share) = (Clock::calibrate(), Duration::ZERO);
        Sleepers { cpus, scheduling: SyncScheduling::Normal, clock, share }
    }

    /// Two CPUs if there are two, and one CPU.
    fn places() -> [Cpus; 2] {
        let cpus = Cpus::of_this_process();
        [cpus, Cpus { near: cpus.near, far: cpus.near }]
    }

    #[test]
    fn every_sleeper_is_woken_as_often_as_it_is_rung_for() {
        for (cpus, operation) in places().into_iter().flat_map(|cpus| WAKES.map(|it| (cpus, it))) {
            let alarm = alarm(operation).expect("the kernel has it");
            let woken = sleepers(cpus).wake(&*alarm).expect("it is woken");
            assert_eq!((woken.call.n(), woken.wake_up.n()), (WAKES_MIN, WAKES_MIN));
        }
        assert!(alarm(SyncOperation::Yield).is_err());
    }

    #[test]
    fn messages_go_there_and_back() {
        for cpus in places() {
            let halves = sleepers(cpus).hand_over().expect("both live");
            assert!(halves.n() >= WAKES_MIN && halves.min() > Some(0));
        }
    }

    /// An alarm on which sleeping fails, so it never wakes anybody.
    struct Broken;

    impl Alarm for Broken {
        fn ring(&self) -> io::Result<()> {
            Ok(())
        }

        fn sleep(&self, _: u32) -> io::Result<()> {
            Err(io::Error::other("out of order"))
        }
    }

    #[test]
    fn a_sleeper_that_fails_is_an_error_and_no_hang() {
        let Err(Gone(why)) = sleepers(places()[0]).wake(&Broken) else { panic!("it is broken") };
        assert!(why.contains("out of order"), "{why}");
    }
}
