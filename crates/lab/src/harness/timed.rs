//! Measures for a given time: bursts until the time is over, all of them after the links are warm.

use std::time::Duration;

use sinew_core::clock::{Clock, now_ns};
use sinew_figures::Distribution;

use super::{Gone, Side, round_trips, stream};
use crate::words::words;

words! {
    /// What is measured of a pair of links.
    pub enum What {
        /// One message in both directions.
        RoundTrip = "round_trip",
        /// Many one after the other, one way.
        PerMessage = "per_message",
    }
}

/// What a measurement found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Of round trips the time of each; of messages the mean of every burst, to the nanosecond.
    pub values: Distribution,
    /// The median of the values, ns, with its fraction; for trips it is interpolated within a step
    /// of the clock.
    pub median_ns: f64,
}

/// Fewest values of a round: the median needs ten on either side.
const VALUES_MIN: u64 = 20;
/// Trips before the first that counts: after them caches, page tables and the kernel's buffers are
/// warm.
const WARM_UP: u64 = 16;
/// Least time of a burst of trips, ns. Looking at the time between two bursts is not part of a
/// trip.
const TRIPS_NS: u64 = 200_000;
/// Time of a burst of messages, ns. The way back of the last one is part of the burst, and should
/// not show. A parked side takes 50 us for it.
const STREAM_NS: f64 = 4e6;
/// A burst fills its link at least this often: the messages that fit into it at once cost less.
const FILLS_MIN: u64 = 16;
/// Bursts that tell how long one should be. The faster one counts, because the other may have been
/// interrupted.
const TRIED: usize = 2;
/// Fewest bursts of a round.
const BURSTS_MIN: usize = 3;

/// Measures for about `budget`, after a warm-up. A link holds `capacity` messages.
///
/// # Errors
/// As for [`round_trips`] and [`stream`].
pub fn time(
    side: &mut impl Side,
    what: What,
    capacity: u32,
    clock: Clock,
    budget: Duration,
) -> Result<Found, Gone> {
    match what {
        What::RoundTrip => time_round_trips(side, clock, budget),
        What::PerMessage => time_stream(side, capacity, clock, budget),
    }
}

fn time_round_trips(side: &mut impl Side, clock: Clock, budget: Duration) -> Result<Found, Gone> {
    // The first trips also wait until the far side has started.
    round_trips(side, clock, WARM_UP, |_| {})?;
    let mut fastest_ns = u64::MAX;
    round_trips(side, clock, WARM_UP, |ns| fastest_ns = fastest_ns.min(ns))?;
    let burst = (TRIPS_NS / fastest_ns.max(1)).max(1);
    let mut values = Distribution::new();
    let until_ns = now_ns() + budget.as_nanos() as u64;
    while now_ns() < until_ns || values.n() < VALUES_MIN {
        round_trips(side, clock, burst, |ns| values.add(ns))?;
    }
    let median_ns = values.median_of_steps(clock.step_ns());
    let median_ns = median_ns.ok_or_else(|| Gone("too few round trips".into()))?;
    Ok(Found { values, median_ns })
}

fn time_stream(
    side: &mut impl Side,
    capacity: u32,
    clock: Clock,
    budget: Duration,
) -> Result<Found, Gone> {
    let capacity = u64::from(capacity.max(1));
    let fills = FILLS_MIN * capacity;
    // The first burst also waits until the far side has started, and touches every slot.
    stream(side, clock, capacity)?;
    let mut fastest_ns = f64::INFINITY;
    for _ in 0..TRIED {
        fastest_ns = fastest_ns.min(stream(side, clock, fills)?);
    }
    let messages = fills.max((STREAM_NS / fastest_ns.max(0.1)) as u64);
    let mut bursts = Vec::new();
    let until_ns = now_ns() + budget.as_nanos() as u64;
    while now_ns() < until_ns || bursts.len() < BURSTS_MIN {
        bursts.push(stream(side, clock, messages)?);
    }
    Ok(of_means(bursts, clock.step_ns() / messages as f64))
}

/// Values to the nanosecond, and their median, from means of bursts, of which there is at least
/// one. A mean is known to `step_ns`; if many are the same, the median is interpolated between the
/// steps.
pub(crate) fn of_means(mut means: Vec<f64>, step_ns: f64) -> Found {
    /// Means are counted in picoseconds: small compared with a step of the clock over a burst.
    const FINE: f64 = 1000.0;
    means.sort_by(f64::total_cmp);
    let (mut values, mut fine) = (Distribution::new(), Distribution::new());
    for &ns in &means {
        values.add(ns.round() as u64);
        fine.add((ns * FINE).round() as u64);
    }
    let middle = f64::midpoint(means[(means.len() - 1) / 2], means[means.len() / 2]);
    let median_ns = fine.median_of_steps(step_ns * FINE).map_or(middle, |median| median / FINE);
    Found { values, median_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_bursts_keeps_its_fractions() {
        let Found { values, median_ns } = of_means(vec![17.5, 17.25, 90.0], 0.1);
        assert_eq!((values.n(), values.max(), median_ns), (3, Some(90), 17.5));
    }

    /// Counts the messages that it is sent, and takes long over the first one.
    #[derive(Default)]
    struct Slow {
        sent: u64,
        last: u64,
        bursts: Vec<u64>,
    }

    impl Side for Slow {
        fn send(&mut self, word: u64) -> Result<(), Gone> {
            if self.bursts.is_empty() && self.sent == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
            (self.sent, self.last) = (self.sent + 1, word);
            Ok(())
        }

        fn receive(&mut self) -> Result<u64, Gone> {
            self.bursts.push(std::mem::take(&mut self.sent));
            Ok(self.last)
        }
    }

    #[test]
    fn a_far_side_that_starts_slowly_does_not_make_short_bursts() {
        let mut side = Slow::default();
        let found = time(&mut side, What::PerMessage, 8, Clock::calibrate(), Duration::ZERO);
        assert_eq!(found.expect("it answers").values.n(), BURSTS_MIN as u64);
        let fills = FILLS_MIN * 8;
        assert_eq!(side.bursts[0], 8);
        assert_eq!(side.bursts.len(), 1 + TRIED + BURSTS_MIN);
        assert!(side.bursts[1..].iter().all(|&burst| burst >= fills), "{:?}", side.bursts);
    }
}
