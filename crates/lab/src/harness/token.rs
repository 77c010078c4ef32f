//! The least that a round trip can cost on two CPUs, measured like every contender.
//!
//! The *token* is one word on a line of its own that both sides write in turn. Two one-way links
//! cannot do with one line, so there is also the *pair*: a line for each way. On some CPUs a line
//! that both write moves in half the time, on others both cost the same.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sinew_runtime::clock::{Clock, now_ns};

use super::place::{Cpus, on_threads};
use super::{Gone, Life};
use crate::distribution::Distribution;

/// Lines that the word moves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// The token: one line, there and back.
    One,
    /// The pair: a line for each way.
    Two,
}

/// Trips between two looks at the time.
const BATCH: u32 = 256;
/// Trips before the first that counts.
const WARM_UP: u32 = 1024;

/// Ends the far side. Trips are numbered far below it: at 50 ns each, it is 100 s away.
const STOP: u32 = u32::MAX;

/// A line of its own; 128 bytes, because some CPUs fetch lines in twos.
#[repr(align(128))]
struct Line(AtomicU32);

/// The time of every trip, ns, for about `budget`.
///
/// # Errors
/// There is only one CPU, or the kernel refuses to keep the sides on theirs.
pub fn measure(
    lines: Lines,
    cpus: Cpus,
    clock: Clock,
    budget: Duration,
) -> Result<Distribution, Gone> {
    if !cpus.are_two() {
        return Err(Gone("both sides spin: that needs two CPUs, and there is one".into()));
    }
    let words = [Line(AtomicU32::new(0)), Line(AtomicU32::new(0))];
    let [there, back] = match lines {
        Lines::One => [&words[0].0; 2],
        Lines::Two => [&words[0].0, &words[1].0],
    };
    let near = |life: &Life| {
        let found = trips(there, back, life, clock, budget);
        there.store(STOP, Ordering::Release);
        found
    };
    on_threads(cpus, near, |life| echo(there, back, life, lines))
}

/// The near side sends odd numbers and waits for the even ones after them.
fn trips(
    there: &AtomicU32,
    back: &AtomicU32,
    life: &Life,
    clock: Clock,
    budget: Duration,
) -> Result<Distribution, Gone> {
    let mut distribution = Distribution::new();
    let mut number = 1;
    for _ in 0..WARM_UP {
        trip(there, back, life, number)?;
        number += 2;
    }
    let until_ns = now_ns() + budget.as_nanos() as u64;
    while now_ns() < until_ns && number < STOP / 2 {
        let mut before = clock.ticks();
        for _ in 0..BATCH {
            trip(there, back, life, number)?;
            let now = clock.ticks();
            number += 2;
            distribution.add(clock.ns(now.wrapping_sub(before)));
            before = clock.ticks();
        }
    }
    Ok(distribution)
}

#[inline(always)]
fn trip(there: &AtomicU32, back: &AtomicU32, life: &Life, number: u32) -> Result<(), Gone> {
    // Release and acquire, as a link needs them to hand over a payload.
    there.store(number, Ordering::Release);
    let mut patience = life.patience();
    while back.load(Ordering::Acquire) != number + 1 {
        patience.poll()?;
    }
    Ok(())
}

fn echo(there: &AtomicU32, back: &AtomicU32, life: &Life, lines: Lines) -> Result<(), Gone> {
    let mut last = 0;
    loop {
        let mut patience = life.patience();
        let number = loop {
            let number = there.load(Ordering::Acquire);
            if number != last {
                break number;
            }
            patience.poll()?;
        };
        if number == STOP {
            return Ok(());
        }
        back.store(number + 1, Ordering::Release);
        last = if lines == Lines::One { number + 1 } else { number };
    }
}

#[cfg(test)]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
mod tests {
    use super::*;
    use sinew_runtime::privileges;

    #[test]
    fn the_word_moves_to_and_fro() {
        let cpus = privileges::cpus().expect("affinity");
        let [near, far, ..] = cpus[..] else {
            assert!(std::env::var_os("CI").is_none(), "CI has two CPUs");
            return eprintln!("skipped: needs two CPUs");
        };
        for lines in [Lines::One, Lines::Two] {
            let found =
                measure(lines, Cpus { near, far }, Clock::calibrate(), Duration::from_millis(2));
            let found = found.expect("two CPUs");
            assert!(found.n() >= u64::from(BATCH) && found.min() > Some(0), "{found:?}");
        }
    }

    #[test]
    fn one_cpu_is_refused() {
        let cpus = Cpus { near: 0, far: 0 };
        let clock = Clock::from_rate(0.0);
        let Gone(why) = measure(Lines::One, cpus, clock, Duration::ZERO).expect_err("one CPU");
        assert_eq!(why, "both sides spin: that needs two CPUs, and there is one");
    }
}
