//! The verdicts on the bars, each with what was measured of it.

use super::setup::Company;
use crate::bar::Holds;
use crate::report::{Row, Verdict};
use crate::scenario::beside::{BesideEvidence, Judged};

/// Fewest kills for a verdict on how long it takes until a service is back.
const KILLS_MIN: u64 = 30;
const READY_MS_MAX: f64 = 300.0;
const CPU_PERCENT_MAX: f64 = 0.1;
const RESIDENT_MB_MAX: f64 = 10.0;

/// One verdict for each bar.
pub(super) fn verdicts(evidence: &BesideEvidence<'_>) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (beside, pause) in [(Company::CrashLoop, "10 ms"), (Company::CrashLoop100Ms, "100 ms")] {
        let who = format!("services that crash-loop with pauses of {pause}");
        verdicts.extend(evidence.undisturbed(beside.word(), &who, &who));
    }
    verdicts.extend([
        Verdict::of(
            "a service is back soon after a kill, without the policy's pause",
            "each of 30 or more in less than 300 ms",
            back(evidence),
        ),
        Verdict::of(
            "the supervisor uses hardly any CPU when nothing happens",
            "less than 0.1 % of a core",
            cpu(evidence),
        ),
        Verdict::of(
            "the supervisor needs little memory",
            "less than 10 MB resident",
            memory(evidence),
        ),
    ]);
    verdicts
}

fn back(evidence: &BesideEvidence<'_>) -> Judged {
    let times = &evidence.row(Company::Killed.word())?.measure("ready_again")?.distribution;
    let ms = |ns: f64| ns * 1e-6;
    let (mean, max) = (times.mean()?, times.max()?);
    let median = times.quantile(0.5).map(|ns| format!("P50 {:.1} ms, ", ms(ns as f64)));
    let (median, n) = (median.unwrap_or_default(), times.n());
    let ours =
        format!("{median}mean {:.1} ms, max {:.1} ms of {n} kills", ms(mean), ms(max as f64));
    let holds = match () {
        () if ms(max as f64) >= READY_MS_MAX => Holds::No,
        () if n < KILLS_MIN => Holds::Partly,
        () => Holds::Yes,
    };
    Some((ours, holds))
}

/// The row of the supervisor that has `beside` to run.
fn supervisor<'a>(evidence: &'a BesideEvidence<'_>, beside: &str) -> Option<&'a Row> {
    let axes = [("measured", "supervisor"), ("beside", beside)];
    evidence.rows.iter().find(|row| row.is(&axes))
}

fn cpu(evidence: &BesideEvidence<'_>) -> Judged {
    let of = |beside| supervisor(evidence, beside)?.figure("supervisor_cpu");
    let (alone, program) = (of("services_alone")?, of("arm_and_log")?);
    let ours = format!("{alone:.3} % with services only, {program:.3} % with a core at 1 kHz");
    let holds = match (alone < CPU_PERCENT_MAX, program < CPU_PERCENT_MAX) {
        (true, true) => Holds::Yes,
        (true, false) => Holds::Partly,
        (false, _) => Holds::No,
    };
    Some((ours, holds))
}

fn memory(evidence: &BesideEvidence<'_>) -> Judged {
    let kib = supervisor(evidence, "arm_and_log")?.figure("supervisor_resident")?;
    let mb = kib * 1024e-6;
    let ours = format!("{mb:.1} MB, program text and links included");
    Some((ours, if mb < RESIDENT_MB_MAX { Holds::Yes } else { Holds::No }))
}
