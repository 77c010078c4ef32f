//! The bars of the services with a user interface, each with what was measured of it.

use super::setup::{Audience, CROWD};
use crate::bar::Holds;
use crate::report::Verdict;
use crate::scenario::beside::{BesideEvidence, Judged};

/// The share of a core that a service may take, in percent.
const CPU_PERCENT_MAX: [(&str, f64); 3] =
    [("dashboard", 15.0), ("recorder", 10.0), ("camera", 25.0)];
/// A viewer that gets at least this share of the motions that a single viewer gets is unharmed.
const UNHARMED: f64 = 0.95;
/// The fewest recorded cycles for a verdict on loss: a minute at 1 kHz.
const RECORDED_MIN: f64 = 60_000.0;

/// One verdict for each bar.
pub(super) fn verdicts(evidence: &BesideEvidence<'_>) -> Vec<Verdict> {
    let (one, crowd) = (Audience::Services.word(), Audience::Crowd.word());
    let many = format!("the same with {CROWD} viewers, one of which reads nothing");
    let who = "all services and one viewer";
    let mut verdicts = evidence.undisturbed(one, who, "they").to_vec();
    verdicts.extend([
        evidence.indistinct_median(&format!("{many}: P50"), crowd),
        evidence.indistinct_p99(&format!("{many}: P99"), crowd),
        Verdict::of(
            format!("{many}: the others lose nothing"),
            "each gets as many frames as one viewer alone",
            unharmed(evidence),
        ),
    ]);
    verdicts.extend(CPU_PERCENT_MAX.map(|(service, max)| {
        Verdict::of(
            format!("{service} uses little CPU, with one viewer"),
            format!("less than {max:.0} % of a core"),
            cpu(evidence, service, max),
        )
    }));
    verdicts.push(Verdict::of(
        "the recorder loses no cycle, all links, 60 s at 1 kHz",
        "no loss",
        recorded(evidence),
    ));
    verdicts
}

fn unharmed(evidence: &BesideEvidence<'_>) -> Judged {
    let frames = |beside: Audience| evidence.row(beside.word())?.figure("frames_least");
    let (alone, least) = (frames(Audience::Services)?, frames(Audience::Crowd)?);
    let ours = format!("{least:.1} Hz the least, alone {alone:.1} Hz");
    Some((ours, if least >= alone * UNHARMED { Holds::Yes } else { Holds::No }))
}

fn cpu(evidence: &BesideEvidence<'_>, service: &str, max: f64) -> Judged {
    let percent = evidence.row(Audience::Services.word())?.figure(&format!("{service}_cpu"))?;
    Some((format!("{percent:.1} %"), if percent < max { Holds::Yes } else { Holds::No }))
}

fn recorded(evidence: &BesideEvidence<'_>) -> Judged {
    let of = |name| {
        let rows = [Audience::Services, Audience::Crowd].into_iter();
        rows.filter_map(|beside| evidence.row(beside.word())?.figure(name)).reduce(|a, b| a + b)
    };
    let (cycles, recorded) = (of("cycles")?, of("cycles_recorded")?);
    let holds = match () {
        () if recorded != cycles => Holds::No,
        () if cycles < RECORDED_MIN => Holds::Partly,
        () => Holds::Yes,
    };
    Some((format!("{recorded} of {cycles} cycles are in the files"), holds))
}
