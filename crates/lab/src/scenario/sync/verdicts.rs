//! Each entry of the article's two tables of costs beside our figures, and what decides the cost of
//! a wake-up.

use sinew_figures::interval::{Interval, NEEDS_ROUNDS};
use sinew_figures::units::time;

use super::case::{SLEEPERS, WAKES};
use crate::bar::{Bar, Holds};
use crate::harness::THOUSAND;
use crate::report::{Measure, Row, Table, Verdict};

/// A row by its values: operation, threads, CPUs, scheduling, target.
type Key = [&'static str; 5];

/// The measure of operations that are too short to be timed one by one.
pub(super) const THOUSAND_OPERATIONS: &str = "thousand_operations";

/// An entry agrees up to this factor beyond its range, because the article does not name its
/// machine.
const BEYOND: f64 = 1.5;
/// An operation that calls the kernel takes at least as long as a call; half of that leaves room
/// for noise.
const NO_KERNEL: Bar = Bar::AtMost(0.5);
/// A difference below this counts as no cost: two batches of the same differ by some hundredths.
const NO_COST: Bar = Bar::Within(0.1);
/// From here on, idling is more than half of the cost.
const IS_DEAR: Bar = Bar::AtLeast(2.0);
/// A difference below a quarter counts as no change: wake-ups of one row differ as much between two
/// runs.
const NO_CHANGE: Bar = Bar::Within(0.25);

const LOCK_ALONE: Key = ["mutex_lock", "1", "one", "normal", "-"];
const LOCK_OF_2: Key = ["mutex_lock", "2", "two", "normal", "-"];
const LOCK_OF_4: Key = ["mutex_lock", "4", "two", "normal", "-"];
const LOCK_OF_8: Key = ["mutex_lock", "8", "two", "normal", "-"];
const CONDVAR: Key = ["condvar", "2", "two", "normal", "idle"];
const CONDVAR_BUSY: Key = ["condvar", "2", "two", "normal", "busy"];
const CONDVAR_ONE: Key = ["condvar", "2", "one", "normal", "busy"];
const MESSAGE: Key = ["message", "2", "two", "normal", "idle"];
const MESSAGE_BUSY: Key = ["message", "2", "two", "normal", "busy"];
const MESSAGE_ONE: Key = ["message", "2", "one", "normal", "busy"];
const YIELD: Key = ["sched_yield", "1", "one", "normal", "-"];
const YIELD_OF_2: Key = ["sched_yield", "2", "one", "normal", "-"];

/// The key of an operation in which no other thread takes part.
const fn alone(operation: &'static str) -> Key {
    [operation, "1", "one", "normal", "-"]
}

/// An entry of the article's tables.
struct CostEntry {
    claim: &'static str,
    theirs: &'static str,
    range_ns: [f64; 2],
    measure: &'static str,
    /// The rows that can be judged: the first one of them that was measured counts. The later ones
    /// are for machines with only one CPU.
    judged: &'static [Key],
    /// Further rows that are shown.
    beside: &'static [(&'static str, Key)],
}

const ENTRIES: &[CostEntry] = &[
    CostEntry {
        claim: "an uncontended mutex lock takes 25-75 ns",
        theirs: "~25-75 ns",
        range_ns: [25.0, 75.0],
        measure: THOUSAND_OPERATIONS,
        judged: &[LOCK_ALONE],
        beside: &[],
    },
    CostEntry {
        claim: "a contended mutex lock takes 1-15 us",
        theirs: "~1-15 us (kernel futex call)",
        range_ns: [1e3, 15e3],
        measure: "found_taken",
        judged: &[LOCK_OF_2],
        beside: &[("4 threads on two CPUs", LOCK_OF_4), ("8 threads on two CPUs", LOCK_OF_8)],
    },
    CostEntry {
        claim: "to notify a condition variable takes 2-10 us",
        theirs: "~2-10 us",
        range_ns: [2e3, 10e3],
        measure: "call",
        judged: &[CONDVAR, CONDVAR_ONE],
        beside: &[("sleeper's CPU busy", CONDVAR_BUSY), ("one CPU", CONDVAR_ONE)],
    },
    CostEntry {
        claim: "the wake-up of a thread takes 10-50 us",
        theirs: "~10-50 us (context switching)",
        range_ns: [10e3, 50e3],
        measure: "wake_up",
        judged: &[CONDVAR, CONDVAR_ONE],
        beside: &[("sleeper's CPU busy", CONDVAR_BUSY), ("one CPU", CONDVAR_ONE)],
    },
    CostEntry {
        claim: "a message by mutex and condition variable takes 50-100 us in all",
        theirs: "~50-100 us",
        range_ns: [50e3, 100e3],
        measure: "message",
        judged: &[MESSAGE, MESSAGE_ONE],
        beside: &[("CPUs kept awake", MESSAGE_BUSY), ("one CPU", MESSAGE_ONE)],
    },
    CostEntry {
        claim: "an atomic store with release takes 10-20 ns",
        theirs: "~10-20 ns",
        range_ns: [10.0, 20.0],
        measure: THOUSAND_OPERATIONS,
        judged: &[alone("store_release")],
        beside: &[("seq_cst", alone("store_seq_cst")), ("the loop alone", alone("nothing"))],
    },
    CostEntry {
        claim: "an atomic load with acquire takes 10-20 ns",
        theirs: "~10-20 ns",
        range_ns: [10.0, 20.0],
        measure: THOUSAND_OPERATIONS,
        judged: &[alone("load_acquire")],
        beside: &[("fetch_add", alone("fetch_add")), ("the loop alone", alone("nothing"))],
    },
    CostEntry {
        claim: "a yield takes 100-500 ns",
        theirs: "~100-500 ns",
        range_ns: [100.0, 500.0],
        measure: THOUSAND_OPERATIONS,
        judged: &[YIELD],
        beside: &[("with another thread that yields", YIELD_OF_2)],
    },
];

/// All verdicts: first the article's entries in their order, then our own.
pub(super) fn of(rows: &[Row]) -> Vec<Verdict> {
    let mut verdicts: Vec<_> = ENTRIES.iter().map(|entry| entry.verdict(rows)).collect();
    verdicts.push(no_kernel(rows));
    verdicts.push(idle_is_dear(rows));
    verdicts.push(fifo_changes(rows));
    verdicts.push(primitives_are_equal(rows));
    verdicts.push(orders_are_free(rows));
    verdicts
}

impl CostEntry {
    fn verdict(&self, rows: &[Row]) -> Verdict {
        let judged = self.judged.iter().find_map(|key| {
            let measure = measure(rows, *key, self.measure)?;
            Some((measure, each(measure)?, *key == self.judged[0]))
        });
        let found = judged.map(|(of, spread, is_first)| {
            let beside = self.beside.iter().filter_map(|(what, key)| {
                Some(format!("; {what}: {}", shown(measure(rows, *key, self.measure)?)?))
            });
            let place = if is_first { "" } else { " on one CPU" };
            let ours = shown(of).unwrap_or_default();
            let text = format!("{ours}{place}{}", beside.collect::<String>());
            (self.with_criterion(&text), self.judge(spread))
        });
        Verdict::of(self.claim, self.theirs, found)
    }

    fn with_criterion(&self, text: &str) -> String {
        let [low, high] = self.range();
        let (low, high) = (time(low), time(high));
        format!("{text} (holds if: the interval is within {low} to {high}, 1.5 beyond the range)")
    }

    fn range(&self) -> [f64; 2] {
        let [low, high] = self.range_ns;
        [low / BEYOND, high * BEYOND]
    }

    fn judge(&self, ns: Interval) -> Holds {
        let [low, high] = self.range();
        let holds = match ns {
            Interval { low: from, high: to, .. } if from >= low && to <= high => Holds::Yes,
            Interval { low: from, high: to, .. } if to < low || from > high => Holds::No,
            _ => Holds::NotDistinguishable,
        };
        holds.if_firm(&[ns])
    }
}

fn measure<'a>(rows: &'a [Row], key: Key, name: &str) -> Option<&'a Measure> {
    let is_it = |row: &&Row| row.axes.iter().map(|(_, value)| value.as_str()).eq(key);
    rows.iter().find(is_it)?.measure(name)
}

/// The time of one operation, ns.
fn each(measure: &Measure) -> Option<Interval> {
    let Interval { median, low, high, rounds } = measure.spread()?;
    let all = operations(measure);
    Some(Interval { median: median / all, low: low / all, high: high / all, rounds })
}

/// How many operations one of its values contains.
fn operations(measure: &Measure) -> f64 {
    if measure.name == THOUSAND_OPERATIONS { THOUSAND } else { 1.0 }
}

/// Median, its interval, and the greatest value, as text.
fn shown(measure: &Measure) -> Option<String> {
    let spread = each(measure)?;
    let Interval { median, low, high, .. } = spread;
    let max = measure.distribution.max()? as f64 / operations(measure);
    let few = if spread.is_firm() { String::new() } else { format!("; {NEEDS_ROUNDS}") };
    Some(format!("{} ({} to {}; max {}{few})", time(median), time(low), time(high), time(max)))
}

fn over(rows: &[Row], name: &str, of: Key, other: Key) -> Option<Interval> {
    measure(rows, of, name)?.over(measure(rows, other, name)?)
}

/// Ratios that together decide one claim, each with its name, and when the claim holds.
fn ratios(ratios: &[(String, Interval)], bar: Bar, criterion: &str) -> Option<(String, Holds)> {
    let holds: Vec<_> = ratios.iter().map(|(_, ratio)| bar.holds(*ratio)).collect();
    let text: Vec<_> = ratios.iter().map(|(what, ratio)| format!("{what} {ratio}")).collect();
    let text = format!("{} (holds if: {criterion})", text.join(", "));
    (!ratios.is_empty()).then(|| (text, Holds::of_all(&holds)))
}

fn no_kernel(rows: &[Row]) -> Verdict {
    let call = alone("futex_wake_nobody");
    let ratio = |operation: &'static str| {
        let ratio = over(rows, THOUSAND_OPERATIONS, alone(operation), call)?;
        Some((operation.to_string(), ratio))
    };
    let operations = ["store_release", "load_acquire", "fetch_add"];
    let found: Vec<_> = operations.into_iter().filter_map(ratio).collect();
    let criterion = "each takes at most half of a futex wake without a sleeper, the cheapest call \
                     into the kernel here";
    let mut found = ratios(&found, NO_KERNEL, criterion);
    if let Some((text, _)) = &mut found
        && let Some((_, lock)) = ratio("mutex_lock")
    {
        *text = format!("{text}; an uncontended mutex: {lock}");
    }
    Verdict::of("lock-free needs no intervention of the kernel", "none", found)
}

fn idle_is_dear(rows: &[Row]) -> Verdict {
    let ratio = |operation: &'static str| {
        let at = |target| [operation, "2", "two", "normal", target];
        Some((operation.to_string(), over(rows, "wake_up", at("idle"), at("busy"))?))
    };
    let found: Vec<_> = WAKES.iter().filter_map(|of| ratio(of.word())).collect();
    let criterion = "for every primitive, a wake-up takes at least twice as long if the sleeper's \
                     CPU is idle as if it is kept awake";
    let found = ratios(&found, IS_DEAR, criterion);
    Verdict::of("the expensive part is the wake-up of an idle CPU", IS_DEAR.to_string(), found)
}

fn fifo_changes(rows: &[Row]) -> Verdict {
    let mut found = vec![];
    for (cpus, target) in SLEEPERS {
        let at = |scheduling| ["futex", "2", cpus.word(), scheduling, target.word()];
        let ratio = over(rows, "wake_up", at("fifo"), at("normal"));
        let place =
            format!("{} CPU, {}:", cpus.word(), target.word()).replace("two CPU", "two CPUs");
        found.extend(ratio.map(|ratio| (place, ratio)));
    }
    let criterion = "FIFO is within a quarter of normal scheduling, in each place, with a futex";
    let found = ratios(&found, NO_CHANGE, criterion);
    let claim = "FIFO does not change an uncontended wake-up";
    Verdict::of(claim, NO_CHANGE.to_string(), found)
}

fn primitives_are_equal(rows: &[Row]) -> Verdict {
    let at = |operation| [operation, "2", "two", "normal", "idle"];
    let ratio = |operation: &'static str| {
        Some((operation.to_string(), over(rows, "wake_up", at(operation), at("futex"))?))
    };
    let others = WAKES.iter().map(|of| of.word()).filter(|of| *of != "futex");
    let found: Vec<_> = others.filter_map(ratio).collect();
    let criterion = "each is within a quarter of a futex, idle CPU, normal scheduling";
    let found = ratios(&found, NO_CHANGE, criterion);
    let claim = "the choice of primitive makes no difference to a wake-up";
    Verdict::of(claim, NO_CHANGE.to_string(), found)
}

fn orders_are_free(rows: &[Row]) -> Verdict {
    let pairs = [("store_release", "store_relaxed"), ("load_acquire", "load_relaxed")];
    let ratio = |(of, other): (&'static str, &'static str)| {
        let ratio = over(rows, THOUSAND_OPERATIONS, alone(of), alone(other))?;
        Some((format!("{of} / {other}"), ratio))
    };
    let found: Vec<_> = pairs.into_iter().filter_map(ratio).collect();
    let found = ratios(&found, NO_COST, "both are within a tenth of relaxed");
    let found = found.map(|(text, holds)| match cfg!(target_arch = "x86_64") {
        true => (text, holds),
        false => (format!("{text}; this is not an x86"), Holds::NotMeasured),
    });
    Verdict::of("release and acquire cost nothing on x86", "effectively zero overhead", found)
}

/// The tables of what a wake-up depends on.
pub(super) fn tables(rows: &[Row]) -> Vec<Table> {
    let cell = |name, of, other| {
        over(rows, name, of, other).map_or("-".to_string(), |ratio| ratio.to_string())
    };
    let line = |operation: &'static str| {
        let name = if operation == "message" { "message" } else { "wake_up" };
        let at = |cpus, scheduling, target| [operation, "2", cpus, scheduling, target];
        let busy = at("two", "normal", "busy");
        let fifo = |cpus, target| cell(name, at(cpus, "fifo", target), at(cpus, "normal", target));
        vec![
            operation.to_string(),
            cell(name, at("two", "normal", "idle"), busy),
            cell(name, at("one", "normal", "busy"), busy),
            fifo("two", "idle"),
            fifo("two", "busy"),
            fifo("one", "busy"),
        ]
    };
    let columns = [
        "operation",
        "idle / busy",
        "one CPU / busy",
        "FIFO / normal, idle",
        "FIFO / normal, busy",
        "FIFO / normal, one CPU",
    ];
    let operations = WAKES.iter().map(|of| of.word()).chain(["message"]);
    vec![Table::of("what a wake-up depends on", columns, operations.map(line).collect())]
}

#[cfg(test)]
mod tests;
