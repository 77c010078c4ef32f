//! What follows: the bars, each with what was measured of it.

use std::collections::BTreeMap;

use super::Round;
use super::setup::Beside;
use crate::interval::{Bar, Interval};
use crate::report::{Holds, Row, Table, Verdict};

/// Fewest kills that say something about how long it takes to come back.
const KILLS_MIN: u64 = 30;
const READY_MS_MAX: f64 = 300.0;
const CPU_PERCENT_MAX: f64 = 0.1;
const RESIDENT_MB_MAX: f64 = 10.0;
/// A share of the median that is no difference.
const SAME: f64 = 0.05;

/// What bars are judged by.
pub(super) struct Evidence<'a> {
    pub(super) rows: &'a [Row],
    /// Of each row with a core, by what stands beside it.
    pub(super) rounds: &'a BTreeMap<&'static str, Vec<Round>>,
}

impl Evidence<'_> {
    fn row(&self, measured: &str, beside: &str) -> Option<&Row> {
        let is = |row: &&Row| {
            row.axis("measured") == Some(measured) && row.axis("beside") == Some(beside)
        };
        self.rows.iter().find(is)
    }

    /// Median of `measure` over that of the core alone, round by round.
    fn median(&self, beside: Beside, measure: &str) -> Option<Interval> {
        let of = |beside: Beside| self.row("core", beside.word())?.measure(measure);
        of(beside)?.over(of(Beside::Nothing)?)
    }

    /// P99 over that of the core alone, round by round.
    fn p99(&self, beside: Beside, of: fn(&Round) -> Option<u64>) -> Option<Interval> {
        let ratio = |(this, alone): (&Round, &Round)| Some(of(this)? as f64 / of(alone)? as f64);
        let ratios: Vec<f64> = self.pairs(beside)?.filter_map(ratio).collect();
        Interval::of(&ratios)
    }

    /// Overruns more than the core has alone, round by round.
    fn overruns(&self, beside: Beside) -> Option<Interval> {
        let more = |(this, alone): (&Round, &Round)| this.overruns as f64 - alone.overruns as f64;
        Interval::of(&self.pairs(beside)?.map(more).collect::<Vec<_>>())
    }

    fn pairs(&self, beside: Beside) -> Option<impl Iterator<Item = (&Round, &Round)>> {
        let alone = self.rounds.get(Beside::Nothing.word())?;
        Some(self.rounds.get(beside.word())?.iter().zip(alone))
    }
}

/// Every row beside the core alone.
pub(super) fn ratios(evidence: &Evidence<'_>) -> Table {
    let cell = |of: Option<Interval>| of.map_or("-".into(), |of| of.to_string());
    let row = |&beside: &Beside| {
        vec![
            beside.word().to_owned(),
            cell(evidence.median(beside, "cycle_latency")),
            cell(evidence.p99(beside, |round| round.latency_p99_ns)),
            cell(evidence.median(beside, "activation_jitter")),
            cell(evidence.p99(beside, |round| round.jitter_p99_ns)),
            evidence.overruns(beside).map_or("-".into(), |of| format!("{of:.0}")),
        ]
    };
    let columns = [
        "beside",
        "cycle latency P50",
        "cycle latency P99",
        "activation jitter P50",
        "activation jitter P99",
        "overruns more per round",
    ];
    Table {
        title: "over the core alone, round by round: median and where the true one lies".into(),
        columns: columns.map(Into::into).to_vec(),
        rows: Beside::ALL[1..].iter().map(row).collect(),
    }
}

/// One for each bar.
pub(super) fn verdicts(evidence: &Evidence<'_>) -> Vec<Verdict> {
    let verdict = |claim: &str, theirs: &str, (ours, holds): (String, Holds)| Verdict {
        claim: claim.into(),
        theirs: theirs.into(),
        ours,
        holds,
    };
    let mut verdicts = Vec::new();
    for (beside, pause) in [(Beside::CrashLoop, "10 ms"), (Beside::CrashLoop100Ms, "100 ms")] {
        let who = format!("services that crash-loop with pauses of {pause}");
        verdicts.push(verdict(
            &format!("{who} leave the core's cycle latency as it is: P50"),
            "within 5 % of the core alone",
            within(evidence.median(beside, "cycle_latency")),
        ));
        verdicts.push(verdict(
            "the same: P99",
            "not distinguishable from the core alone",
            indistinct(evidence.p99(beside, |round| round.latency_p99_ns)),
        ));
        verdicts.push(verdict(
            &format!("{who} cause no overrun"),
            "0; here: no more than the core has alone, which are the machine's",
            none_more(evidence, beside),
        ));
    }
    verdicts.extend([
        verdict(
            "a service is back soon after a kill, the policy's pause apart",
            "each of 30 or more in less than 300 ms",
            back(evidence),
        ),
        verdict(
            "the supervisor takes no CPU when nothing happens",
            "less than 0.1 % of a core",
            cpu(evidence),
        ),
        verdict("the supervisor needs little memory", "less than 10 MB resident", memory(evidence)),
    ]);
    verdicts
}

const NOT_MEASURED: (String, Holds) = (String::new(), Holds::NotMeasured);

fn within(ratio: Option<Interval>) -> (String, Holds) {
    ratio.map_or(NOT_MEASURED, |ratio| (ratio.to_string(), Bar::Within(SAME).holds(ratio)))
}

fn indistinct(ratio: Option<Interval>) -> (String, Holds) {
    let Some(ratio) = ratio else { return NOT_MEASURED };
    let holds = if ratio.low > 1.0 { Holds::No } else { Holds::Yes };
    (ratio.to_string(), Interval::judge(&[ratio], holds))
}

fn none_more(evidence: &Evidence<'_>, beside: Beside) -> (String, Holds) {
    let Some(more) = evidence.overruns(beside) else { return NOT_MEASURED };
    let all = |beside: Beside| {
        let row = evidence.row("core", beside.word())?;
        Some((row.figure("overruns")?, row.measure("cycle_latency")?.distribution.n()))
    };
    let text = |beside| match all(beside) {
        Some((overruns, cycles)) => format!("{overruns} in {cycles} cycles"),
        None => "-".into(),
    };
    let ours =
        format!("{}, alone {}; {more:.0} more in a round", text(beside), text(Beside::Nothing));
    let holds = match () {
        () if more.low > 0.0 => Holds::No,
        () if more.high <= 0.0 => Holds::Yes,
        () => Holds::NotDistinguishable,
    };
    (ours, Interval::judge(&[more], holds))
}

fn back(evidence: &Evidence<'_>) -> (String, Holds) {
    let killed = evidence.row("core", Beside::Killed.word());
    let measured = killed.and_then(|row| row.measure("ready_again"));
    let Some(times) = measured.map(|measure| &measure.distribution) else { return NOT_MEASURED };
    let ms = |ns: f64| ns * 1e-6;
    let (Some(mean), Some(max)) = (times.mean(), times.max()) else { return NOT_MEASURED };
    let median = times.quantile(0.5).map(|ns| format!("P50 {:.1} ms, ", ms(ns as f64)));
    let (median, n) = (median.unwrap_or_default(), times.n());
    let ours =
        format!("{median}mean {:.1} ms, max {:.1} ms of {n} kills", ms(mean), ms(max as f64));
    let holds = match () {
        () if ms(max as f64) >= READY_MS_MAX => Holds::No,
        () if n < KILLS_MIN => Holds::Partly,
        () => Holds::Yes,
    };
    (ours, holds)
}

fn cpu(evidence: &Evidence<'_>) -> (String, Holds) {
    let of = |beside| evidence.row("supervisor", beside)?.figure("supervisor_cpu");
    let (Some(alone), Some(program)) = (of("services_alone"), of("arm_and_log")) else {
        return NOT_MEASURED;
    };
    let ours = format!("{alone:.3} % with services only, {program:.3} % with a core at 1 kHz");
    (ours, below(alone, program, CPU_PERCENT_MAX))
}

/// Whether both are below, or the first at least.
fn below(first: f64, second: f64, max: f64) -> Holds {
    match (first < max, second < max) {
        (true, true) => Holds::Yes,
        (true, false) => Holds::Partly,
        (false, _) => Holds::No,
    }
}

fn memory(evidence: &Evidence<'_>) -> (String, Holds) {
    let row = evidence.row("supervisor", "arm_and_log");
    let kib = row.and_then(|row| row.figure("supervisor_resident"));
    let Some(mb) = kib.map(|kib| kib * 1024e-6) else { return NOT_MEASURED };
    let ours = format!("{mb:.1} MB, program text and links included");
    (ours, if mb < RESIDENT_MB_MAX { Holds::Yes } else { Holds::No })
}
