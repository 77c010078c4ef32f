//! The least that a round trip can cost on two CPUs, measured like every contender.
//!
//! The *token* is one word on a cache line of its own that both sides write in turn. Two one-way
//! links need more than one line, so there is also the *pair*: a line for each direction. On some
//! CPUs a line that both write moves in half the time, on others both cost the same.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sinew_core::clock::{Clock, now_ns};
use sinew_figures::Distribution;

use super::place::{Cpus, on_threads};
use super::{Gone, Life};

/// Lines that the word moves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// The token: one line, there and back.
    One,
    /// The pair: a line for each direction.
    Two,
}

/// Token times within a run may differ by this factor. Beyond it the distance of the CPUs has
/// changed.
pub const MOVED: f64 = 1.5;

/// Trips on a line before the next line is used and the time is read.
const BATCH: u32 = 256;
/// Lines that are used in turn. The distance of a line to both CPUs depends on its address; it
/// differs by about 10 % if parts of the last-level cache have different distances.
const PLACES: usize = 32;
/// Batches before the first that counts.
const WARM_UP: usize = 4;

/// Tells the far side to stop. Trips have lower numbers: at 50 ns each, it would be reached after
/// 100 s.
const STOP: u32 = u32::MAX;

/// A cache line of its own. It has 128 bytes, because some CPUs fetch lines in pairs.
#[repr(align(128))]
struct Line(AtomicU32);

/// A word on one line or on two: where the near side writes, and where the far side writes.
#[derive(Clone, Copy)]
struct Ways<'a> {
    there: &'a AtomicU32,
    back: &'a AtomicU32,
}

/// The time of every trip, ns, measured for about `budget`.
///
/// # Errors
/// There is only one CPU, or the kernel refuses to keep the sides on theirs.
pub fn measure(
    lines: Lines,
    cpus: Cpus,
    clock: Clock,
    budget: Duration,
) -> Result<Distribution, Gone> {
    both(lines, cpus, clock, budget).map(|(trips, _)| trips)
}

/// The mean of each batch of trips, ns: it is finer than the resolution of the clock.
///
/// # Errors
/// As for [`measure`].
pub fn means(lines: Lines, cpus: Cpus, clock: Clock, budget: Duration) -> Result<Vec<f64>, Gone> {
    both(lines, cpus, clock, budget).map(|(_, means)| means)
}

/// The trips, and the means of batches.
type Measured = (Distribution, Vec<f64>);

fn both(lines: Lines, cpus: Cpus, clock: Clock, budget: Duration) -> Result<Measured, Gone> {
    if !cpus.are_two() {
        return Err(Gone("both sides spin: that needs two CPUs, and there is one".into()));
    }
    let words: Vec<_> = (0..2 * PLACES).map(|_| Line(AtomicU32::new(0))).collect();
    let near = |life: &Life| near(&words, lines, life, clock, budget);
    on_threads(cpus, near, |life| far(&words, lines, life))
}

/// The places in turn, without end.
fn places(words: &[Line], lines: Lines) -> impl Iterator<Item = Ways<'_>> {
    let back = match lines {
        Lines::One => 0,
        Lines::Two => 1,
    };
    let (pairs, _) = words.as_chunks::<2>();
    pairs.iter().cycle().map(move |pair| Ways { there: &pair[0].0, back: &pair[back].0 })
}

/// Sends odd numbers and waits for the even ones after them.
fn near(
    words: &[Line],
    lines: Lines,
    life: &Life,
    clock: Clock,
    budget: Duration,
) -> Result<Measured, Gone> {
    let (mut distribution, mut means) = (Distribution::new(), Vec::new());
    let until_ns = now_ns() + budget.as_nanos() as u64;
    let mut number = 1;
    for (batch, ways) in places(words, lines).enumerate() {
        if number > STOP / 2 || (batch > WARM_UP && now_ns() >= until_ns) {
            ways.there.store(STOP, Ordering::Release);
            break;
        }
        let (mut before, mut sum_ns) = (clock.ticks(), 0);
        for _ in 0..BATCH {
            // Release and acquire, as a link needs them to hand over a payload.
            ways.there.store(number, Ordering::Release);
            await_number(ways.back, number + 1, life)?;
            let now = clock.ticks();
            number += 2;
            if batch >= WARM_UP {
                let ns = clock.ns(now.wrapping_sub(before));
                distribution.add(ns);
                sum_ns += ns;
            }
            before = clock.ticks();
        }
        if batch >= WARM_UP {
            means.push(sum_ns as f64 / f64::from(BATCH));
        }
    }
    Ok((distribution, means))
}

/// Answers each odd number with the next even one, until it is told to stop.
fn far(words: &[Line], lines: Lines, life: &Life) -> Result<(), Gone> {
    let mut number = 1;
    for ways in places(words, lines) {
        for _ in 0..BATCH {
            if !await_number(ways.there, number, life)? {
                return Ok(());
            }
            ways.back.store(number + 1, Ordering::Release);
            number += 2;
        }
    }
    Ok(())
}

/// Waits for a number. `false` means stop.
#[inline(always)]
fn await_number(word: &AtomicU32, number: u32, life: &Life) -> Result<bool, Gone> {
    let mut patience = life.patience();
    loop {
        match word.load(Ordering::Acquire) {
            found if found == number => return Ok(true),
            STOP => return Ok(false),
            _ => patience.poll()?,
        }
    }
}

#[cfg(test)]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
mod tests {
    use super::*;
    use sinew_core::privileges;

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
            let cpus = Cpus { near, far };
            let means = means(lines, cpus, Clock::calibrate(), Duration::from_millis(2));
            let means = means.expect("two CPUs");
            assert!(!means.is_empty() && means.iter().all(|&ns| ns > 0.0), "{means:?}");
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
