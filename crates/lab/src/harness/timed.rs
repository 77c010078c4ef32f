//! How long to measure: batches until the time is over, none of them before the links are warm.

use std::time::Duration;

use sinew_runtime::clock::{Clock, now_ns};

use super::{Gone, Side, round_trips, stream};
use crate::distribution::Distribution;

/// Fewest values of a round: the median needs ten on either side.
const VALUES_MIN: u64 = 20;
/// Trips before the first that counts: caches, page tables and the kernel's buffers are warm then.
const WARM_UP: u64 = 16;
/// Least time of a batch of trips. Looking at the time between two batches is no part of a trip.
const TRIPS_NS: u64 = 200_000;
/// Least time of a batch of messages: the way back of the last one is part of it, and ought not to
/// show. A parked side takes 50 us for it.
const STREAM_NS: u64 = 4_000_000;
/// Fewest batches of messages of a round.
const BATCHES_MIN: usize = 3;

/// The time of every round trip, ns, for about `budget`, after a warm-up.
///
/// # Errors
/// As for [`round_trips`].
pub fn time_round_trips(
    side: &mut impl Side,
    clock: Clock,
    budget: Duration,
) -> Result<Distribution, Gone> {
    let mut distribution = Distribution::new();
    let started_ns = now_ns();
    round_trips(side, clock, WARM_UP, |_| {})?;
    let trip_ns = ((now_ns() - started_ns) / WARM_UP).max(1);
    let batch = (TRIPS_NS / trip_ns).max(1);
    round_trips(side, clock, batch, |_| {})?;
    let until_ns = now_ns() + budget.as_nanos() as u64;
    while now_ns() < until_ns || distribution.n() < VALUES_MIN {
        round_trips(side, clock, batch, |ns| distribution.add(ns))?;
    }
    Ok(distribution)
}

/// The time per message, ns, of each of some batches that take about `budget` together, after a
/// warm-up that finds how many messages a batch is to have.
///
/// # Errors
/// As for [`stream`].
pub fn time_stream(side: &mut impl Side, clock: Clock, budget: Duration) -> Result<Vec<f64>, Gone> {
    let mut messages = WARM_UP;
    while stream(side, clock, messages)? * messages as f64 <= STREAM_NS as f64 {
        messages *= 2;
    }
    let mut found = Vec::new();
    let until_ns = now_ns() + budget.as_nanos() as u64;
    while now_ns() < until_ns || found.len() < BATCHES_MIN {
        found.push(stream(side, clock, messages)?);
    }
    Ok(found)
}
