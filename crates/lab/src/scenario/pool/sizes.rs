//! How the size of an automatic pool moves: what was seen of it, and when it has settled.

use std::cell::RefCell;
use std::time::Duration;

use sinew_core::clock::now_ns;
use sinew_runtime::run::Run;

/// A size has settled when it stays this near to its last value, or within one thread of it. Sizes
/// of the sweep are a factor of two apart; a quarter is half of such a step.
const NEAR: f64 = 0.25;
/// It must have stayed there for this long; otherwise it is not known whether it will.
const STILL: Duration = Duration::from_secs(1);

/// A size, and since when the pool has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SizeSeen {
    pub(super) ns: u64,
    pub(super) threads: u32,
    /// Changes since the pool was made.
    pub(super) changes: u64,
}

/// All sizes that were seen in a run, in order.
#[derive(Default)]
pub(super) struct Sizes(RefCell<Vec<SizeSeen>>);

impl Sizes {
    /// Looks at the pool of the first domain.
    pub(super) fn look(&self, run: &Run) {
        let status = run.status();
        let Some(pool) = &status.domains[0].pool else { return };
        let (threads, changes) = (pool.threads, pool.changes);
        let mut seen = self.0.borrow_mut();
        if seen.last().is_none_or(|last| (last.threads, last.changes) != (threads, changes)) {
            // The status is published twice a second, but it also says how long ago the change was.
            let ago_ms = pool.last_change.as_ref().map_or(0, |change| change.ago_ms);
            let ns = now_ns() - ago_ms * 1_000_000;
            seen.push(SizeSeen { ns, threads, changes });
        }
    }

    /// The least time between two changes; `None` with fewer than two.
    pub(super) fn least_between(&self) -> Option<Duration> {
        least_between(&self.0.borrow())
    }

    /// How often the size changed after a time.
    pub(super) fn changes_after(&self, ns: u64) -> u64 {
        let seen = self.0.borrow();
        let before = seen.iter().rfind(|it| it.ns <= ns).or(seen.first());
        seen.last().zip(before).map_or(0, |(last, before)| last.changes - before.changes)
    }

    /// The sizes that were seen between two times; the first is the size at the beginning.
    pub(super) fn between(&self, from_ns: u64, to_ns: u64) -> Vec<SizeSeen> {
        let seen = self.0.borrow();
        let first = seen.iter().rfind(|it| it.ns <= from_ns).or(seen.first());
        let first = first.map(|it| SizeSeen { ns: from_ns, ..*it });
        let is_later = |it: &&SizeSeen| {
            from_ns < it.ns && it.ns <= to_ns && first.is_some_and(|of| it.changes > of.changes)
        };
        let others = seen.iter().filter(is_later);
        first.into_iter().chain(others.copied()).collect()
    }
}

/// How long after the first of these sizes the pool came near to the last one and stayed there
/// until `to_ns`; `None` if it has not stayed for [`STILL`].
pub(super) fn settled(sizes: &[SizeSeen], to_ns: u64) -> Option<Duration> {
    let (first, last) = (sizes.first()?, sizes.last()?);
    let end = f64::from(last.threads);
    let is_near = |it: &SizeSeen| (f64::from(it.threads) - end).abs() <= (NEAR * end).max(1.0);
    let there = sizes.iter().rev().take_while(|it| is_near(it)).last()?;
    let stays = to_ns.saturating_sub(there.ns) >= STILL.as_nanos() as u64;
    stays.then(|| Duration::from_nanos(there.ns - first.ns))
}

/// The least time between two changes of the size; `None` with fewer than two. Changes that came
/// between two looks have no known distance.
fn least_between(sizes: &[SizeSeen]) -> Option<Duration> {
    let pairs = sizes.windows(2).map(|pair| (pair[0], pair[1]));
    let gaps = pairs.filter(|(before, after)| before.changes > 0 && after.changes > before.changes);
    let gaps = gaps.map(|(before, after)| match after.changes - before.changes {
        1 => after.ns.saturating_sub(before.ns),
        _ => 0,
    });
    gaps.min().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sizes at times in ms.
    fn seen(sizes: &[(u64, u32)]) -> Vec<SizeSeen> {
        let each = |(at, &(ms, threads))| SizeSeen { ns: ms * MS, threads, changes: at as u64 };
        sizes.iter().enumerate().map(each).collect()
    }

    #[test]
    fn a_pool_has_settled_when_it_stays_near_its_last_size() {
        let settled = |sizes: &[(u64, u32)], to_ms: u64| settled(&seen(sizes), to_ms * MS);
        assert_eq!(settled(&[(0, 8)], 4000), Some(Duration::ZERO));
        let moving = [(0, 2), (1000, 8), (2000, 14), (3000, 16)];
        assert_eq!(settled(&moving, 4000), Some(Duration::from_secs(2)), "14 is near 16");
        assert_eq!(settled(&[(0, 2), (1000, 8), (3500, 32)], 4000), None, "not still for a second");
        assert_eq!(settled(&[(0, 2), (500, 3)], 4000), Some(Duration::ZERO), "a thread is near");
        assert_eq!(settled(&[], 4000), None);
    }

    #[test]
    fn changes_are_counted_and_timed() {
        let all = Sizes(RefCell::new(seen(&[(0, 2), (1000, 8), (2100, 14), (3900, 2)])));
        assert_eq!(all.least_between(), Some(Duration::from_millis(1100)), "0 is not a change");
        assert_eq!(all.changes_after(1500 * MS), 2);
        let part = all.between(1500 * MS, 3000 * MS);
        let part: Vec<_> = part.iter().map(|it| (it.ns / MS, it.threads)).collect();
        assert_eq!(part, [(1500, 8), (2100, 14)]);
        let late = Sizes(RefCell::new(seen(&[(500, 2), (1000, 8)])));
        let part: Vec<_> = late.between(0, 3000 * MS).iter().map(|it| it.ns / MS).collect();
        assert_eq!(part, [0, 1000], "what is first seen later is not a change");
        all.0.borrow_mut().push(SizeSeen { ns: 9000 * MS, threads: 4, changes: 5 });
        assert_eq!(all.least_between(), Some(Duration::ZERO), "one of two was not seen");
    }
}
