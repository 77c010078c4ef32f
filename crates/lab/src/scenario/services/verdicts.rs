//! What follows: the bars, each with what was measured of it.

use super::setup::Beside;
use crate::bar::Holds;
use crate::report::{Row, Table, Verdict};
use crate::scenario::beside::{Evidence, Found, NOT_MEASURED, RATIOS, verdict};

/// Fewest kills that say something about how long it takes to come back.
const KILLS_MIN: u64 = 30;
const READY_MS_MAX: f64 = 300.0;
const CPU_PERCENT_MAX: f64 = 0.1;
const RESIDENT_MB_MAX: f64 = 10.0;
/// Every row beside the core alone.
pub(super) fn ratios(evidence: &Evidence<'_>) -> Table {
    let row = |beside: &Beside| evidence.ratios(beside.word());
    Table {
        title: "over the core alone, round by round: median and where the true one lies".into(),
        columns: RATIOS.map(Into::into).to_vec(),
        rows: Beside::ALL[1..].iter().map(row).collect(),
    }
}

/// One for each bar.
pub(super) fn verdicts(evidence: &Evidence<'_>) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (beside, pause) in [(Beside::CrashLoop, "10 ms"), (Beside::CrashLoop100Ms, "100 ms")] {
        let who = format!("services that crash-loop with pauses of {pause}");
        verdicts.push(verdict(
            &format!("{who} leave the core's cycle latency as it is: P50"),
            "within 5 % of the core alone",
            evidence.same_median(beside.word()),
        ));
        verdicts.push(verdict(
            "the same: P99",
            "not distinguishable from the core alone",
            evidence.indistinct_p99(beside.word()),
        ));
        verdicts.push(verdict(
            &format!("{who} cause no overrun"),
            "0; here: no more than the core has alone, which are the machine's",
            evidence.none_more(beside.word()),
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

fn back(evidence: &Evidence<'_>) -> Found {
    let killed = evidence.row(Beside::Killed.word());
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

/// The row of the supervisor of these.
fn supervisor<'a>(evidence: &'a Evidence<'_>, beside: &str) -> Option<&'a Row> {
    let is = |row: &&Row| {
        row.axis("measured") == Some("supervisor") && row.axis("beside") == Some(beside)
    };
    evidence.rows.iter().find(is)
}

fn cpu(evidence: &Evidence<'_>) -> Found {
    let of = |beside| supervisor(evidence, beside)?.figure("supervisor_cpu");
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

fn memory(evidence: &Evidence<'_>) -> Found {
    let row = supervisor(evidence, "arm_and_log");
    let kib = row.and_then(|row| row.figure("supervisor_resident"));
    let Some(mb) = kib.map(|kib| kib * 1024e-6) else { return NOT_MEASURED };
    let ours = format!("{mb:.1} MB, program text and links included");
    (ours, if mb < RESIDENT_MB_MAX { Holds::Yes } else { Holds::No })
}
