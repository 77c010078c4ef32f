//! Figures of flow nodes: counted by their worker with plain stores, read by anyone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Buckets in each power of two: a value is known to an eighth.
const PARTS: usize = 8;
const BUCKETS: usize = 62 * PARTS;

/// No percentile is told with fewer values beyond it.
const BEYOND_MIN: u64 = 10;

/// The figures of a domain's nodes in one worker, by name: a node keeps them when its graph is
/// replaced by an edited one. The lock is taken when a program is made or somebody looks, never by
/// a flow.
#[derive(Debug, Default)]
pub struct Figures(Mutex<BTreeMap<String, Arc<NodeFigures>>>);

impl Figures {
    /// The figures of a node; new ones if it has none.
    pub fn node(&self, name: &str) -> Arc<NodeFigures> {
        Arc::clone(self.all().entry(name.to_owned()).or_default())
    }

    /// Whether a node has figures.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all().contains_key(name)
    }

    /// Forgets nodes that no program has any more.
    pub(crate) fn forget_gone(&self) {
        self.all().retain(|_, figures| Arc::strong_count(figures) > 1);
    }

    /// Shows the figures of all nodes to `each`.
    pub(crate) fn look(&self, mut each: impl FnMut(&str, &NodeFigures)) {
        self.all().iter().for_each(|(name, figures)| each(name, figures));
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<NodeFigures>>> {
        // A poisoned lock is still good: no panic can leave the map half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The figures of a node in one worker.
#[derive(Debug)]
pub struct NodeFigures {
    errors: AtomicU64,
    refused: AtomicU64,
    waiting: AtomicU64,
    ticks_max: AtomicU64,
    /// Packets by how long they took.
    buckets: [AtomicU64; BUCKETS],
}

impl Default for NodeFigures {
    fn default() -> NodeFigures {
        let zero = || AtomicU64::new(0);
        let buckets = [const { AtomicU64::new(0) }; BUCKETS];
        NodeFigures { errors: zero(), refused: zero(), waiting: zero(), ticks_max: zero(), buckets }
    }
}

/// Adds to a counter of which this thread is the only writer. Relaxed: a reader needs the number
/// alone; no other data goes with it.
#[inline(always)]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// A flow that waits in a node; it counts as waiting until this is dropped.
pub(crate) struct Waits<'a>(&'a NodeFigures);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        add(&self.0.waiting, u64::MAX);
    }
}

impl NodeFigures {
    #[inline]
    pub(crate) fn record(&self, ticks: u64) {
        add(&self.buckets[bucket(ticks)], 1);
        if ticks > self.ticks_max.load(Ordering::Relaxed) {
            self.ticks_max.store(ticks, Ordering::Relaxed);
        }
    }

    pub(crate) fn failed(&self) {
        add(&self.errors, 1);
    }

    pub(crate) fn refused(&self) {
        add(&self.refused, 1);
    }

    pub(crate) fn waits(&self) -> Waits<'_> {
        add(&self.waiting, 1);
        Waits(self)
    }

    /// Packets that the node took and has finished.
    pub fn packets(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// Packets at which it failed.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// How often a source refused something because there was no room.
    pub fn refusals(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Flows that wait in the node now.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The longest time that the node took for a packet, in ticks.
    pub fn ticks_max(&self) -> u64 {
        self.ticks_max.load(Ordering::Relaxed)
    }
}

/// The figures of a node, all workers together.
#[derive(Debug)]
pub(crate) struct Sum {
    pub(crate) packets: u64,
    pub(crate) errors: u64,
    pub(crate) refused: u64,
    pub(crate) waiting: u64,
    pub(crate) ticks_max: u64,
    buckets: Vec<u64>,
}

impl Default for Sum {
    fn default() -> Sum {
        let buckets = vec![0; BUCKETS];
        Sum { packets: 0, errors: 0, refused: 0, waiting: 0, ticks_max: 0, buckets }
    }
}

impl Sum {
    /// Adds the figures of a worker.
    pub(crate) fn add(&mut self, figures: &NodeFigures) {
        self.errors += figures.errors();
        self.refused += figures.refusals();
        self.waiting += figures.waiting();
        self.ticks_max = self.ticks_max.max(figures.ticks_max());
        for (sum, bucket) in self.buckets.iter_mut().zip(&figures.buckets) {
            // Relaxed: as in `add`.
            let packets = bucket.load(Ordering::Relaxed);
            *sum += packets;
            self.packets += packets;
        }
    }

    /// The time of all packets together, in ticks. The longest is exact; each other one counts as
    /// the middle of its bucket.
    pub(crate) fn ticks(&self) -> u64 {
        let middle = |at: usize| {
            let lowest = if at == 0 { 0 } else { highest(at - 1) + 1 };
            lowest + (highest(at).min(self.ticks_max.max(lowest)) - lowest) / 2
        };
        let products = self.buckets.iter().enumerate().filter(|(_, packets)| **packets > 0);
        let sum = products.fold(0, |sum: u64, (at, packets)| {
            sum.saturating_add(middle(at).saturating_mul(*packets))
        });
        let longest = self.buckets.iter().rposition(|packets| *packets > 0).map_or(0, middle);
        (sum - longest.min(sum)).saturating_add(self.ticks_max)
    }

    /// How many packets took at most `ticks`, in whole buckets: a bucket counts if its highest
    /// value is within `ticks`.
    pub(crate) fn within(&self, ticks: u64) -> u64 {
        let ends = |at: &usize| highest(*at) <= ticks;
        (0..BUCKETS).take_while(ends).map(|at| self.buckets[at]).sum()
    }

    /// The time, in ticks, that this part of all packets took at most, rounded up by at most an
    /// eighth. `None` with fewer than [`BEYOND_MIN`] packets beyond it.
    pub(crate) fn quantile(&self, part: f64) -> Option<u64> {
        let below = (self.packets as f64 * part).ceil() as u64;
        if self.packets - below.min(self.packets) < BEYOND_MIN {
            return None;
        }
        let mut seen = 0;
        let reached = |bucket: &u64| {
            seen += bucket;
            seen >= below
        };
        self.buckets.iter().position(reached).map(|at| highest(at).min(self.ticks_max))
    }
}

/// The highest value of a bucket.
fn highest(bucket: usize) -> u64 {
    if bucket < PARTS {
        return bucket as u64;
    }
    let (power, part) = (bucket / PARTS + 2, bucket as u64 % PARTS as u64);
    let step = 1u64 << (power - 3);
    // Subtracts 1 before it adds: the last bucket ends with `u64::MAX`, and so the sum must not
    // overflow.
    (1u64 << power) - 1 + (part + 1) * step
}

/// The bucket of a value.
#[inline]
fn bucket(value: u64) -> usize {
    if value < PARTS as u64 {
        return value as usize;
    }
    let power = 63 - value.leading_zeros() as usize;
    let part = (value >> (power - 3)) as usize & (PARTS - 1);
    (power - 2) * PARTS + part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bucket_and_greater_values_have_no_lower_one() {
        let mut last = 0;
        for power in 0..64 {
            for part in 0..8 {
                let value = (1u64 << power) + part * ((1u64 << power) / 8);
                let at = bucket(value);
                assert!(at >= last && at < BUCKETS, "{value}: {at} after {last}");
                last = at;
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(highest(BUCKETS - 1), u64::MAX);
        for value in (0..5000).chain([u64::MAX / 3]) {
            let highest = highest(bucket(value));
            assert!(value <= highest && highest <= value + value / 8, "{value}: {highest}");
            assert_eq!(bucket(highest), bucket(value));
        }
        assert_eq!((0..16).map(bucket).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn sums_and_ranges_are_those_of_what_was_recorded() {
        let node = NodeFigures::default();
        (1..=1000).for_each(|at| node.record(at * 1000));
        let mut sum = Sum::default();
        sum.add(&node);
        let (exact, told) = (500_500_000, sum.ticks());
        assert!(told.abs_diff(exact) <= exact / 16, "{told}");
        let half = sum.within(500_000);
        assert!((430..=500).contains(&half), "{half}");
        assert_eq!((sum.within(0), sum.within(u64::MAX)), (0, 1000));
        assert_eq!((Sum::default().ticks(), Sum::default().within(u64::MAX)), (0, 0));
    }

    #[test]
    fn the_longest_is_no_more_than_the_sum() {
        for longest in [1, 15, 16, 17, 3_212_223, 3_276_799, u64::MAX / 2] {
            let node = NodeFigures::default();
            [longest, 1, 1, 1].into_iter().for_each(|ticks| node.record(ticks));
            let mut sum = Sum::default();
            sum.add(&node);
            assert_eq!(sum.ticks(), longest + 3);
        }
    }

    #[test]
    fn a_percentile_has_ten_values_beyond_it() {
        let node = NodeFigures::default();
        (1..=1000).for_each(|at| node.record(at * 1000));
        let mut sum = Sum::default();
        sum.add(&node);
        let p99 = sum.quantile(0.99).expect("ten beyond");
        assert!((990_000..=1_000_000).contains(&p99), "{p99}");
        assert_eq!(sum.quantile(0.991), None);
        let p50 = sum.quantile(0.5).expect("many beyond");
        assert!((500_000..=500_000 * 9 / 8).contains(&p50), "{p50}");
        assert_eq!(Sum::default().quantile(0.5), None);
    }
}
