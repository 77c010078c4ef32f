//! The article's claims, each with its figures and with the criterion by which it is judged here.
//! The limits leave enough room for two runs to judge alike. The article's tables of costs belong
//! to the scenario `sync`.

use sinew_figures::interval::{Interval, NEEDS_ROUNDS};

use super::article::{PUBLISHED, find};
use crate::bar::{Bar, Holds};
use crate::report::{Row, Table, Verdict};

/// The rows by which claims are judged.
pub(super) struct Evidence<'a> {
    pub(super) rows: &'a [Row],
    pub(super) cpus: usize,
}

/// A claim.
struct Claim {
    text: &'static str,
    theirs: &'static str,
    /// When the claim holds, in words.
    criterion: &'static str,
    /// Returns figures and judgement; `None` if the rows for it are missing.
    judge: fn(&Evidence<'_>) -> Option<(String, Holds)>,
}

/// "About a hundred times": a third of that to three times that.
const HUNDREDFOLD: [f64; 2] = [30.0, 300.0];
/// "Identical", "no change": less apart than two runs are from each other.
const SAME_MAX: f64 = 1.25;
/// The most by which latencies at several periods may differ and still count as the same; in the
/// article they differ by 1.11.
const SAME_AT_PERIODS_MAX: f64 = 1.3;
/// Four spinning threads, us: the article has 0.74 to 0.82; another machine may be twice as fast or
/// as slow.
const FOUR_SPINNING_US: [f64; 2] = [0.37, 1.64];
/// The share of cycles past the deadline that may be caused by the machine.
const OVERRUNS_MAX: f64 = 0.05;
/// The fewest cycles without a miss that are as good as what the article saw.
const CYCLES_AS_THEIRS: u64 = 18_500;

const FUSED: [&str; 5] = ["none", "fused", "-", "-", "-"];
const THREADS: [&str; 5] = ["none", "2_threads", "in_process", "lock_free", "spin"];
const THREADS_PARK: [&str; 5] = ["none", "2_threads", "in_process", "lock_free", "park"];
const THREADS_MUTEX_SPIN: [&str; 5] = ["none", "2_threads", "in_process", "mutex", "spin"];
const THREADS_MUTEX: [&str; 5] = ["none", "2_threads", "in_process", "mutex", "park"];
const PROCESSES: [&str; 5] = ["none", "2_processes", "shared_memory", "lock_free", "spin"];
const PROCESSES_MUTEX: [&str; 5] = ["none", "2_processes", "shared_memory", "mutex", "park"];
const PROCESSES_PIPE: [&str; 5] = ["none", "2_processes", "pipe", "-", "park"];
const FOUR: [&str; 5] = ["none", "4_threads", "in_process", "lock_free", "yield"];

const CLAIMS: &[Claim] = &[
    Claim {
        text: "in one process, lock-free is about 100 times faster than a mutex",
        theirs: "78-103 us to 0.74-0.82 us",
        criterion: "a ratio of 30 to 300, two threads, free-running, each with its way of waiting",
        judge: |evidence| {
            let ratio = evidence.ratio(&THREADS_MUTEX, &THREADS, "free")?;
            let at_1ms = evidence.ratio(&THREADS_MUTEX, &THREADS, "1ms").map(times);
            let at_1ms = at_1ms.map(|ratio| format!("; at 1 ms {ratio}")).unwrap_or_default();
            Some((format!("{}{at_1ms}", times(ratio)), hundredfold(ratio)))
        },
    },
    Claim {
        text: "with lock-free, in_process and shared_memory are equal",
        theirs: "0.74 us and 0.75 us",
        criterion: "less than a quarter apart, two threads or processes that spin, free-running",
        judge: |evidence| {
            let ratio = evidence.ratio(&PROCESSES, &THREADS, "free")?;
            Some((format!("shared_memory takes {}", times(ratio)), same(ratio)))
        },
    },
    Claim {
        text: "for shared_memory, lock-free instead of a mutex is not a change",
        theirs: "0.7-0.8 us and 0.75-0.78 us",
        criterion: "less than a quarter apart, two processes, free-running, each with its way of \
                    waiting",
        judge: |evidence| {
            let ratio = evidence.ratio(&PROCESSES_MUTEX, &PROCESSES, "free")?;
            Some((format!("the mutex takes {}", times(ratio)), same(ratio)))
        },
    },
    Claim {
        text: "a pipe is about 90 times slower than lock-free",
        theirs: "68.92 us and 0.75 us",
        criterion: "a ratio of 30 to 300, two processes, free-running",
        judge: |evidence| {
            let ratio = evidence.ratio(&PROCESSES_PIPE, &PROCESSES, "free")?;
            Some((times(ratio), hundredfold(ratio)))
        },
    },
    Claim {
        text: "the synchronisation mechanism, not the process boundary, decides",
        theirs: "mutex in_process 78-103 us, lock-free shared_memory 0.7-0.8 us",
        criterion: "two parts: the boundary changes less than a quarter; the lock at the same way \
                    of waiting changes more than the way of waiting at the same lock",
        judge: mechanism,
    },
    Claim {
        text: "four spinning threads go around in 0.74 to 0.82 us",
        theirs: "0.74-0.82 us",
        criterion: "half to twice that as mean at 1 ms; needs four CPUs",
        judge: four_spinning,
    },
    Claim {
        text: "no deadline is missed",
        theirs: "0 in some 18 500 cycles of each transport",
        criterion: "none in as many cycles; in part if fewer than 1 in 20",
        judge: misses,
    },
    Claim {
        text: "the 'jitter' column is a variation of latency",
        theirs: "931 to 9999 us",
        criterion: "it is not the period minus the mean, which is slack",
        judge: jitter,
    },
    Claim {
        text: "latency does not depend on the period",
        theirs: "0.74-0.82 us from 1 to 10 ms",
        criterion: "P50 less than 1.3 times apart, both from 1 to 10 ms in the article's rows and \
                    from free-running to 1 ms, two threads that spin",
        judge: periods,
    },
    Claim {
        text: "fail-stop in one process is safer than a partial failure; a hybrid is best",
        theirs: "an argument, no figures",
        criterion: "no latency can show it; how a domain fails is tested in crates/runtime",
        judge: |_| None,
    },
];

/// All verdicts, in the order of the article.
pub(super) fn verdicts(evidence: &Evidence<'_>) -> Vec<Verdict> {
    let verdict = |claim: &Claim| {
        let judged = (claim.judge)(evidence);
        let (mut ours, holds) = judged.unwrap_or(("-".into(), Holds::NotMeasured));
        if holds == Holds::NotDistinguishable && !ours.contains(NEEDS_ROUNDS) {
            ours = format!("{ours}; {NEEDS_ROUNDS}");
        }
        Verdict {
            claim: claim.text.into(),
            theirs: claim.theirs.into(),
            ours: format!("{ours} (holds if: {})", claim.criterion),
            holds,
        }
    };
    CLAIMS.iter().map(verdict).collect()
}

impl<'a> Evidence<'a> {
    fn row(&self, values: &[&str; 5], period: &str) -> Option<&'a Row> {
        find(self.rows, &[values.as_slice(), &[period]].concat())
    }

    /// The medians of the rounds, ns.
    fn spread(&self, values: &[&str; 5], period: &str) -> Option<Interval> {
        self.row(values, period)?.measure("cycle_latency")?.spread()
    }

    /// The cycle latency of one row over that of another, round by round.
    fn ratio(&self, of: &[&str; 5], over: &[&str; 5], period: &str) -> Option<Interval> {
        let latency = |values| self.row(values, period)?.measure("cycle_latency");
        latency(of)?.over(latency(over)?)
    }

    /// A median, as text.
    fn shown(&self, values: &[&str; 5], period: &str) -> String {
        self.spread(values, period).map_or("-".into(), |ns| us(ns.median))
    }
}

fn us(ns: f64) -> String {
    format!("{:.2} us", ns / 1000.0)
}

fn times(ratio: Interval) -> String {
    let digits = if ratio.median < 10.0 { 2 } else { 0 };
    format!("{ratio:.digits$} times")
}

fn hundredfold(ratio: Interval) -> Holds {
    let [low, high] = HUNDREDFOLD;
    let holds = match ratio.median {
        ratio if (low..=high).contains(&ratio) => Holds::Yes,
        ratio if ratio > SAME_MAX => Holds::Partly,
        _ => Holds::No,
    };
    holds.if_firm(&[ratio])
}

fn is_same(ratio: f64) -> bool {
    (1.0 / SAME_MAX..=SAME_MAX).contains(&ratio)
}

fn same(ratio: Interval) -> Holds {
    let holds = if is_same(ratio.median) { Holds::Yes } else { Holds::No };
    holds.if_firm(&[ratio])
}

fn parts(parts: &[bool]) -> Holds {
    match parts.iter().filter(|&&holds| holds).count() {
        0 => Holds::No,
        count if count == parts.len() => Holds::Yes,
        _ => Holds::Partly,
    }
}

fn mechanism(evidence: &Evidence<'_>) -> Option<(String, Holds)> {
    let boundary = evidence.ratio(&PROCESSES, &THREADS, "free")?;
    let lock = evidence.ratio(&THREADS_MUTEX_SPIN, &THREADS, "free")?;
    let lock_parked = evidence.ratio(&THREADS_MUTEX, &THREADS_PARK, "free")?;
    let waiting = evidence.ratio(&THREADS_PARK, &THREADS, "free")?;
    let ours = format!(
        "the boundary takes {}; a mutex instead of lock-free takes {} if both spin and {} if both \
         park; parking instead of spinning, both lock-free, takes {}: the wake-up of a sleeper \
         decides",
        times(boundary),
        times(lock),
        times(lock_parked),
        times(waiting)
    );
    let by_lock = lock.median.max(lock_parked.median) > waiting.median;
    let holds = parts(&[is_same(boundary.median), by_lock]);
    Some((ours, holds.if_firm(&[boundary, lock, lock_parked, waiting])))
}

fn four_spinning(evidence: &Evidence<'_>) -> Option<(String, Holds)> {
    let row = evidence.row(&FOUR, "1ms")?;
    let latency = row.measure("cycle_latency")?;
    let mean_us = latency.distribution.mean()? / 1000.0;
    let ours = format!(
        "at 1 ms, P50: fused {}, two threads that spin {}, four threads {}; \
         free-running {}, {} and {}; four threads on {} CPUs",
        evidence.shown(&FUSED, "1ms"),
        evidence.shown(&THREADS, "1ms"),
        evidence.shown(&FOUR, "1ms"),
        evidence.shown(&FUSED, "free"),
        evidence.shown(&THREADS, "free"),
        evidence.shown(&FOUR, "free"),
        evidence.cpus
    );
    let [low, high] = FOUR_SPINNING_US;
    let holds = match evidence.cpus {
        0..=3 => Holds::NotMeasured,
        _ if (low..=high).contains(&mean_us) => Holds::Yes.if_firm(&[latency.spread()?]),
        _ => Holds::No.if_firm(&[latency.spread()?]),
    };
    Some((ours, holds))
}

fn misses(evidence: &Evidence<'_>) -> Option<(String, Holds)> {
    let (mut cycles, mut overruns, mut spreads) = (0, 0.0, vec![]);
    for row in PUBLISHED.iter().filter_map(|published| published.ours(evidence.rows)) {
        let latency = row.measure("cycle_latency")?;
        cycles += latency.distribution.n();
        overruns += row.figure("overruns")?;
        spreads.extend(latency.spread());
    }
    let share = (cycles > 0).then_some(overruns / cycles as f64)?;
    let holds = match share {
        share if share > OVERRUNS_MAX => Holds::No,
        0.0 if cycles >= CYCLES_AS_THEIRS => Holds::Yes,
        _ => Holds::Partly,
    };
    let ours = format!("{overruns} in {cycles} cycles of the same rows");
    Some((ours, holds.if_firm(&spreads)))
}

fn jitter(evidence: &Evidence<'_>) -> Option<(String, Holds)> {
    let is_slack = PUBLISHED.iter().all(|row| {
        let slack_us = f64::from(row.period_ms) * 1000.0 - row.mean_us;
        (slack_us - row.jitter_us).abs() < 0.01
    });
    let row = evidence.row(&THREADS, "1ms")?;
    let deviation = row.measure("cycle_latency")?.distribution.stddev()?;
    let start = row.measure("activation_jitter")?.distribution.stddev()?;
    let ours = format!(
        "in all {} rows theirs is the period minus the mean; here, two threads that spin at 1 ms: \
         slack {}, standard deviation of latency {}, of the start {}",
        PUBLISHED.len(),
        us(row.figure("slack_mean")?),
        us(deviation),
        us(start)
    );
    Some((ours, if is_slack { Holds::No } else { Holds::Yes }))
}

fn periods(evidence: &Evidence<'_>) -> Option<(String, Holds)> {
    let of = |transport| -> Option<Vec<Interval>> {
        let rows = PUBLISHED.iter().filter(|row| row.transport == transport);
        rows.map(|row| row.ours(evidence.rows)?.measure("cycle_latency")?.spread()).collect()
    };
    let apart = |of: &[Interval]| {
        let medians = || of.iter().map(|ns| ns.median);
        medians().fold(0.0, f64::max) / medians().fold(f64::INFINITY, f64::min)
    };
    let (threads, processes) = (of("in_process")?, of("shared_memory")?);
    let free_ns = evidence.spread(&THREADS, "free")?;
    let at_1ms_ns = evidence.spread(&THREADS, "1ms")?;
    let by_period = apart(&threads).max(apart(&processes));
    let from_free = at_1ms_ns.median / free_ns.median;
    let ours = format!(
        "from 1 to 10 ms {:.2} times apart in_process and {:.2} in shared_memory; two threads that \
         spin: {} free-running, {} at 1 ms, because a CPU that slept has cold caches",
        apart(&threads),
        apart(&processes),
        us(free_ns.median),
        us(at_1ms_ns.median)
    );
    // The greater one decides: the first one alone moves across the limit from run to run.
    let is_same = by_period.max(from_free) < SAME_AT_PERIODS_MAX;
    let holds = if is_same { Holds::Yes } else { Holds::No };
    let all = [threads, processes, vec![free_ns, at_1ms_ns]].concat();
    Some((ours, holds.if_firm(&all)))
}

/// What must be reached, and whether it is.
pub(super) fn bars(evidence: &Evidence<'_>) -> Table {
    let free = |of, over| evidence.ratio(of, over, "free");
    let token = |values| evidence.row(values, "free")?.measure("cycle_latency")?.ratio();
    let rows = [
        ("lock-free, two threads that spin: P50 / token", Bar::AtMost(1.7), token(&THREADS)),
        (
            "a mutex that parks / lock-free that spins, two threads",
            Bar::AtLeast(30.0),
            free(&THREADS_MUTEX, &THREADS),
        ),
        (
            "a mutex that parks, two threads / fused",
            Bar::AtLeast(300.0),
            free(&THREADS_MUTEX, &FUSED),
        ),
        (
            "shared_memory / in_process, two that spin",
            Bar::Within(0.05),
            free(&PROCESSES, &THREADS),
        ),
    ];
    Table::of_bars("bars, free-running", rows.map(|(what, bar, here)| (what.into(), bar, here)))
}

#[cfg(test)]
mod tests;
