//! Time: the monotonic clock for when, the time stamp counter for how long.
//!
//! A cycle reads the monotonic clock once and the counter at every node: on x86-64 the counter
//! costs a few nanoseconds, `clock_gettime` several times that. The counter is used only where the
//! kernel says that it runs at a constant rate.

use std::fs;
use std::hint::{black_box, spin_loop};
use std::ops::Range;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::sys;
pub use crate::sys::timespec;

/// How long [`Clock::calibrate`] takes. Both clocks are read to about 50 ns, so the rate is right
/// to about 10 ppm: 10 ns in a cycle of 1 ms.
pub const CALIBRATION: Duration = Duration::from_millis(5);

/// The monotonic clock, ns.
#[inline]
pub fn now_ns() -> u64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// Turns counter ticks into nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    ns_per_tick: f64,
}

/// One time on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// By the monotonic clock, ns.
    pub ns: u64,
    /// By the counter.
    pub ticks: u64,
}

/// For this long the counter alone tells the time to within 10 ns.
const EXACT_NS: u64 = 1_000_000;

/// Reading both clocks takes less than this, unless the thread loses its CPU meanwhile.
const APART_NS: u64 = 1_000;

impl Clock {
    /// The rate of the counter, measured against the monotonic clock; takes [`CALIBRATION`]. Where
    /// the counter cannot be trusted, the monotonic clock takes its place.
    pub fn calibrate() -> Clock {
        if !counter_is_constant() {
            return Clock::from_rate(0.0);
        }
        let (ticks, ns) = both();
        std::thread::sleep(CALIBRATION);
        let (ticks_after, ns_after) = both();
        let ticks = ticks_after.wrapping_sub(ticks);
        Clock::from_rate(if ticks == 0 { 0.0 } else { (ns_after - ns) as f64 / ticks as f64 })
    }

    /// The clock that another process calibrated.
    pub fn from_rate(ns_per_tick: f64) -> Clock {
        Clock { ns_per_tick }
    }

    /// Nanoseconds per tick; 0 if the monotonic clock takes the place of the counter.
    pub fn rate(self) -> f64 {
        self.ns_per_tick
    }

    /// Whether the rate is not 0; compares bits, because a cycle asks often.
    #[inline(always)]
    fn has_counter(self) -> bool {
        self.ns_per_tick.to_bits() != 0
    }

    /// Ticks now; useful only as a difference.
    #[inline(always)]
    pub fn ticks(self) -> u64 {
        if self.has_counter() { sys::ticks() } else { stand_in() }
    }

    /// Now, on both clocks; takes some 50 ns. If the thread loses its CPU between the two, they are
    /// read again, three times at most.
    #[inline]
    pub fn moment(self) -> Moment {
        let mut tries = 0;
        loop {
            let before = self.ticks();
            let moment = Moment { ns: now_ns(), ticks: self.ticks() };
            tries += 1;
            if self.ns(moment.ticks.saturating_sub(before)) < APART_NS || tries == 3 {
                return moment;
            }
        }
    }

    /// Now, some time after `earlier`. If `earlier` is less than 1 ms ago, only the counter is
    /// read, which takes some 10 ns.
    #[inline]
    pub fn moment_after(self, earlier: Moment) -> Moment {
        let ticks = self.ticks();
        let passed_ns = self.ns(ticks.saturating_sub(earlier.ticks));
        if passed_ns < EXACT_NS {
            return Moment { ns: earlier.ns + passed_ns, ticks };
        }
        self.moment()
    }

    /// The least difference between two times by the counter, ns: on some processors the counter
    /// moves in steps of 10 ns. Measured by the first call, which takes some microseconds.
    pub fn step_ns(self) -> f64 {
        if self.has_counter() { self.exact_ns(*STEP_TICKS) } else { 1.0 }
    }

    /// A time as a difference of ticks.
    pub fn ticks_of(self, time: Duration) -> u64 {
        let ns = time.as_nanos() as u64;
        if self.has_counter() { (ns as f64 / self.ns_per_tick) as u64 } else { ns }
    }

    /// A difference of ticks in nanoseconds.
    #[inline]
    pub fn ns(self, ticks: u64) -> u64 {
        if self.has_counter() { self.exact_ns(ticks) as u64 } else { ticks }
    }

    /// The same with its fraction.
    #[inline]
    pub fn exact_ns(self, ticks: u64) -> f64 {
        ticks as f64 * if self.has_counter() { self.ns_per_tick } else { 1.0 }
    }
}

/// The monotonic clock in place of the counter; not inlined, so that the cycle's code stays small
/// where there is a counter.
#[cold]
#[inline(never)]
fn stand_in() -> u64 {
    now_ns()
}

/// How far the counter moves at a time, ticks.
static STEP_TICKS: LazyLock<u64> = LazyLock::new(|| {
    const READINGS: usize = 2000;
    let mut before = sys::ticks();
    let difference = |at| {
        // The work has different lengths; otherwise the work itself would look like a step.
        (0..at % 61).for_each(|n| _ = black_box(n));
        let now = sys::ticks();
        now.wrapping_sub(std::mem::replace(&mut before, now))
    };
    step_of(&(0..READINGS).map(difference).collect::<Vec<_>>())
});

/// The step by which a counter moves, from the differences between readings. On some processors a
/// step is about as long as a reading takes: then nearly all differences are multiples of the step,
/// give or take a tick where a virtual machine scales the counter. On others the step is one tick.
fn step_of(differences: &[u64]) -> u64 {
    // Shorter steps do not matter, and cannot be told from one tick.
    const STEPS: Range<u64> = 8..512;
    // Differences of 0 and 1 say nothing about a step; a coarse counter, whose ticks are long, has
    // hardly any others.
    let moved = || differences.iter().copied().filter(|&ticks| ticks > 1);
    let explains = |&step: &u64| {
        // Over many steps the ticks that a scaled counter lacks add up.
        let few = || moved().filter(|&ticks| ticks < 8 * step);
        let multiples = few().filter(|ticks| ticks + 1 >= step && (ticks + 1) % step <= 2);
        let (multiples, few) = (multiples.count(), few().count());
        multiples * 100 > few * 95 && few * 10 > differences.len()
    };
    STEPS.rev().find(explains).unwrap_or(1)
}

/// How long a PAUSE takes, ns, rounded; 10 to 60, depending on the processor.
static PAUSE_NS: LazyLock<u32> = LazyLock::new(measure_pause_ns);

/// How long a PAUSE takes on the CPU of this thread, ns; measured now, which takes microseconds.
pub fn measure_pause_ns() -> u32 {
    const TRIED: u32 = 64;
    let lasts = || {
        let before = now_ns();
        (0..TRIED).for_each(|_| spin_loop());
        now_ns() - before
    };
    // The shortest of several: this thread may lose its CPU in between.
    let ns = (0..8).map(|_| lasts()).min().expect("eight tries");
    (ns / u64::from(TRIED)).clamp(1, 1000) as u32
}

/// How long a PAUSE takes here, ns. Measured by the first call, which takes microseconds.
pub(crate) fn pause_ns() -> u32 {
    *PAUSE_NS
}

/// Sleeps until the monotonic clock shows `until_ns`; returns at once if that is past.
pub fn sleep_until(until_ns: u64) {
    let until = timespec(until_ns);
    // A signal ends the sleep early; then the rest is slept.
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err() {}
}

fn ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Counter and clock at the same moment: of several tries the one with the least time between.
fn both() -> (u64, u64) {
    let read = || {
        let before = now_ns();
        let ticks = sys::ticks();
        let after = now_ns();
        (after - before, ticks, before + (after - before) / 2)
    };
    let (_, ticks, ns) = (0..16).map(|_| read()).min().expect("sixteen tries");
    (ticks, ns)
}

fn counter_is_constant() -> bool {
    if cfg!(target_arch = "aarch64") {
        return true;
    }
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpu.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    cfg!(target_arch = "x86_64") && has("constant_tsc") && has("nonstop_tsc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_agrees_with_the_monotonic_clock() {
        let clock = Clock::calibrate();
        let (ticks, start) = (clock.ticks(), now_ns());
        sleep_until(start + 20_000_000);
        let (by_ticks, by_clock) = (clock.ns(clock.ticks() - ticks), now_ns() - start);
        // Whatever the scheduler did, both clocks saw it, to within a preemption between the reads.
        let ratio = by_ticks as f64 / by_clock as f64;
        assert!((0.5..2.0).contains(&ratio), "{by_ticks} ns by ticks, {by_clock} ns by the clock");
    }

    #[test]
    fn the_step_of_a_counter_is_what_its_differences_are_multiples_of() {
        let times = |pattern: &[u64]| pattern.repeat(200);
        // An AMD EPYC whose counter a virtual machine scales.
        assert_eq!(step_of(&times(&[26, 52, 26, 25, 1, 26, 78, 26, 51, 26])), 26);
        // The same with long work between readings, where 50 steps are two ticks short.
        assert_eq!(step_of(&times(&[26, 52, 26, 78, 1298, 1298, 1298])), 26);
        // A fine counter; a reading of it takes some twenty ticks.
        assert_eq!(step_of(&times(&[18, 20, 22, 35, 44, 19, 61])), 1);
        // Coarse counters: ticks of 40 ns, and one that stands still.
        assert_eq!(step_of(&times(&[0, 1, 0, 0, 1, 2, 1, 3])), 1);
        assert_eq!(step_of(&times(&[0, 1, 1])), 1);
        assert_eq!(step_of(&times(&[0])), 1);
        let step_ns = Clock::calibrate().step_ns();
        assert!(step_ns > 0.0 && Clock::from_rate(0.0).step_ns() == 1.0, "{step_ns}");
    }

    #[test]
    fn a_moment_shortly_after_another_lies_between_it_and_the_next_reading() {
        for clock in [Clock::calibrate(), Clock::from_rate(0.0)] {
            let earlier = clock.moment();
            sleep_until(earlier.ns + 100_000);
            let (moment, now) = (clock.moment_after(earlier), now_ns());
            // Whatever the scheduler did, both clocks saw it, to within a preemption in between.
            let passed = [moment.ns, now].map(|ns| ns - earlier.ns);
            assert!(passed[0] > 0 && passed[0] < 2 * passed[1], "{earlier:?} {moment:?} {now}");
        }
    }

    #[test]
    fn a_moment_long_after_another_is_read_from_the_monotonic_clock() {
        for clock in [Clock::calibrate(), Clock::from_rate(0.0)] {
            // By the counter alone it would be shortly after `long_ago`.
            let long_ago = Moment { ns: 5, ticks: clock.ticks() - clock.ticks_of(2 * CALIBRATION) };
            let now = now_ns();
            assert!(clock.moment_after(long_ago).ns >= now);
        }
    }

    #[test]
    fn without_a_counter_the_clock_stands_in() {
        let clock = Clock::from_rate(0.0);
        assert_eq!(clock.ns(1234), 1234);
        assert!(clock.ticks() <= now_ns());
    }
}
