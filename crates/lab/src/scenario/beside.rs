//! A core with something beside it, compared with the same core alone: what is taken of its cycles,
//! and what follows, round by round.

use std::collections::BTreeMap;
use std::fs;

use sinew_core::clock::Clock;
use sinew_core::trace::Record;
use sinew_core::trace::ThreadId;
use sinew_figures::Distribution;
use sinew_figures::Interval;
use sinew_runtime::run::{Outcome, Run};

use crate::bar::{Bar, Holds};
use crate::report::{Figure, Row, Verdict};

/// The thread whose cycles go around: the first of the domain with a period.
const LEADER: ThreadId = ThreadId { domain: 0, thread: 0 };

/// A share of the median that is no difference.
const SAME: f64 = 0.05;

/// What was seen of a core.
pub(super) struct Seen {
    /// Cycles that do not count, after each start.
    warm_up: u64,
    pub(super) latency: Distribution,
    pub(super) jitter: Distribution,
    overruns: u64,
    skipped: u64,
    stolen_ns: u64,
    /// What the host had taken before.
    stolen_before_ns: Option<u64>,
    /// All cycles, those that do not count among them.
    pub(super) cycles: u64,
    /// What comes now does not count.
    is_over: bool,
}

impl Seen {
    /// Nothing yet.
    pub(super) fn new(warm_up: u64) -> Seen {
        Seen {
            warm_up,
            latency: Distribution::new(),
            jitter: Distribution::new(),
            overruns: 0,
            skipped: 0,
            stolen_ns: 0,
            stolen_before_ns: None,
            cycles: 0,
            is_over: false,
        }
    }

    /// Takes a cycle.
    pub(super) fn take(&mut self, id: ThreadId, record: &Record, clock: Clock) {
        self.cycles += u64::from(id == LEADER);
        let counts = id == LEADER && record.number() >= self.warm_up && !record.is_stopping();
        if !counts || self.is_over {
            return;
        }
        self.latency.add(clock.ns(record.latency_ticks()));
        self.jitter.add(record.start_ns().saturating_sub(record.release_ns()));
        self.overruns += u64::from(record.is_overrun()) + record.skipped();
        self.skipped += record.skipped();
    }

    /// From now on the host's share counts.
    pub(super) fn begin(&mut self) {
        self.stolen_before_ns = stolen_ns();
    }

    /// What comes now does not count any more.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// Whether that was said.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Why a run that has ended says nothing, if it does not.
    ///
    /// # Errors
    /// That.
    pub(super) fn check(&mut self, run: &Run) -> Result<(), String> {
        if run.outcome() == Outcome::Faulted {
            let faults: Vec<_> = run.faults().iter().map(|(_, at)| at.fault.to_string()).collect();
            return Err(format!("the graph faulted: {}", faults.join("; ")));
        }
        if run.records_lost() > 0 {
            return Err(format!("{} records were not read in time", run.records_lost()));
        }
        let stolen = stolen_ns().zip(self.stolen_before_ns);
        self.stolen_ns = stolen.map_or(0, |(now, before)| now.saturating_sub(before));
        Ok(())
    }

    /// Adds another round.
    pub(super) fn merge(&mut self, other: &Seen) {
        self.latency.merge(&other.latency);
        self.jitter.merge(&other.jitter);
        self.overruns += other.overruns;
        self.skipped += other.skipped;
        self.stolen_ns += other.stolen_ns;
        self.cycles += other.cycles;
    }

    /// Adds this round to its row's measures; what medians do not tell comes back.
    pub(super) fn measured(&self, row: &mut Row) -> Round {
        let mut measure = |name, distribution: &Distribution| {
            if let Some(median) = distribution.quantile(0.5) {
                row.measure_mut(name).add_round(distribution, median as f64, None);
            }
        };
        measure("cycle_latency", &self.latency);
        measure("activation_jitter", &self.jitter);
        Round {
            latency_p99_ns: self.latency.quantile(0.99),
            jitter_p99_ns: self.jitter.quantile(0.99),
            overruns: self.overruns,
        }
    }

    /// Single figures of a row.
    pub(super) fn figures(&self) -> Vec<Figure> {
        vec![
            figure("overruns", "", self.overruns as f64),
            figure("skipped", "", self.skipped as f64),
            figure("stolen_by_host", "ms", self.stolen_ns as f64 * 1e-6),
        ]
    }
}

/// A figure.
pub(super) fn figure(name: &str, unit: &str, value: f64) -> Figure {
    Figure { name: name.into(), unit: unit.into(), value }
}

/// What the host has taken from all CPUs so far, if the kernel says it.
fn stolen_ns() -> Option<u64> {
    /// The kernel counts in hundredths of a second (proc(5), USER_HZ).
    const UNIT_NS: u64 = 10_000_000;
    let text = fs::read_to_string("/proc/stat").ok()?;
    let steal = text.lines().next()?.split_whitespace().nth(8)?;
    Some(steal.parse::<u64>().ok()? * UNIT_NS)
}

/// A round of a row: what is compared with another row in the same round.
pub(super) struct Round {
    pub(super) latency_p99_ns: Option<u64>,
    pub(super) jitter_p99_ns: Option<u64>,
    pub(super) overruns: u64,
}

/// What bars are judged by: rows with a core, told apart by what stands beside it.
pub(super) struct Evidence<'a> {
    pub(super) rows: &'a [Row],
    /// Of each of them.
    pub(super) rounds: &'a BTreeMap<&'static str, Vec<Round>>,
    /// The one without anything beside it.
    pub(super) alone: &'static str,
}

impl Evidence<'_> {
    /// The row with a core and this beside it.
    pub(super) fn row(&self, beside: &str) -> Option<&Row> {
        let is = |row: &&Row| {
            row.axis("beside") == Some(beside)
                && matches!(row.axis("measured"), None | Some("core"))
        };
        self.rows.iter().find(is)
    }

    /// Median of `measure` over that of the core alone, round by round.
    pub(super) fn median(&self, beside: &str, measure: &str) -> Option<Interval> {
        let of = |beside: &str| self.row(beside)?.measure(measure);
        of(beside)?.over(of(self.alone)?)
    }

    /// P99 over that of the core alone, round by round.
    pub(super) fn p99(&self, beside: &str, of: fn(&Round) -> Option<u64>) -> Option<Interval> {
        let ratio = |(this, alone): (&Round, &Round)| Some(of(this)? as f64 / of(alone)? as f64);
        let ratios: Vec<f64> = self.pairs(beside)?.filter_map(ratio).collect();
        Interval::of(&ratios)
    }

    /// Overruns more than the core has alone, round by round.
    pub(super) fn overruns(&self, beside: &str) -> Option<Interval> {
        let more = |(this, alone): (&Round, &Round)| this.overruns as f64 - alone.overruns as f64;
        Interval::of(&self.pairs(beside)?.map(more).collect::<Vec<_>>())
    }

    fn pairs(&self, beside: &str) -> Option<impl Iterator<Item = (&Round, &Round)>> {
        let alone = self.rounds.get(self.alone)?;
        Some(self.rounds.get(beside)?.iter().zip(alone))
    }

    /// The cells of a row in a table of ratios with [`RATIOS`] as its columns.
    pub(super) fn ratios(&self, beside: &str) -> Vec<String> {
        let cell = |of: Option<Interval>| of.map_or("-".into(), |of| of.to_string());
        vec![
            beside.to_owned(),
            cell(self.median(beside, "cycle_latency")),
            cell(self.p99(beside, |round| round.latency_p99_ns)),
            cell(self.median(beside, "activation_jitter")),
            cell(self.p99(beside, |round| round.jitter_p99_ns)),
            self.overruns(beside).map_or("-".into(), |of| format!("{of:.0}")),
        ]
    }

    /// Whether the median of cycle latency is within [`SAME`] of that of the core alone.
    pub(super) fn same_median(&self, beside: &str) -> Found {
        let ratio = self.median(beside, "cycle_latency");
        ratio.map_or(NOT_MEASURED, |ratio| (ratio.to_string(), Bar::Within(SAME).holds(ratio)))
    }

    /// Whether the median of cycle latency is greater than that of the core alone.
    pub(super) fn indistinct_median(&self, beside: &str) -> Found {
        indistinct(self.median(beside, "cycle_latency"))
    }

    /// Whether the P99 of cycle latency is greater than that of the core alone.
    pub(super) fn indistinct_p99(&self, beside: &str) -> Found {
        indistinct(self.p99(beside, |round| round.latency_p99_ns))
    }

    /// Whether there are more overruns than the core has alone.
    pub(super) fn none_more(&self, beside: &str) -> Found {
        let Some(more) = self.overruns(beside) else { return NOT_MEASURED };
        let all = |beside: &str| {
            let row = self.row(beside)?;
            Some((row.figure("overruns")?, row.measure("cycle_latency")?.distribution.n()))
        };
        let text = |beside| match all(beside) {
            Some((overruns, cycles)) => format!("{overruns} in {cycles} cycles"),
            None => "-".into(),
        };
        let ours =
            format!("{}, alone {}; {more:.0} more in a round", text(beside), text(self.alone));
        let holds = match () {
            () if more.low > 0.0 => Holds::No,
            () if more.high <= 0.0 => Holds::Yes,
            () => Holds::NotDistinguishable,
        };
        (ours, holds.if_firm(&[more]))
    }
}

/// Columns of a table of ratios, after what stands beside the core.
pub(super) const RATIOS: [&str; 6] = [
    "beside",
    "cycle latency P50",
    "cycle latency P99",
    "activation jitter P50",
    "activation jitter P99",
    "overruns more per round",
];

/// Figures in words, and what follows from them.
pub(super) type Found = (String, Holds);

/// Nothing does.
pub(super) const NOT_MEASURED: Found = (String::new(), Holds::NotMeasured);

/// Whether a ratio is greater than one.
fn indistinct(ratio: Option<Interval>) -> Found {
    let Some(ratio) = ratio else { return NOT_MEASURED };
    let holds = if ratio.low > 1.0 { Holds::No } else { Holds::Yes };
    (ratio.to_string(), holds.if_firm(&[ratio]))
}

/// A verdict.
pub(super) fn verdict(claim: &str, theirs: &str, (ours, holds): Found) -> Verdict {
    Verdict { claim: claim.into(), theirs: theirs.into(), ours, holds }
}
