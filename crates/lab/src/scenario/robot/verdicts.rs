//! What follows: the bars of the services that people see, each with what was measured of it.

use super::setup::{Beside, CROWD};
use crate::bar::Holds;
use crate::report::{Table, Verdict};
use crate::scenario::beside::{Evidence, Found, NOT_MEASURED, RATIOS, verdict};

/// Shares of a core, in percent, that a service may take.
const CPU_PERCENT_MAX: [(&str, f64); 3] =
    [("dashboard", 15.0), ("recorder", 10.0), ("camera", 25.0)];
/// A viewer who gets so much of what one alone gets is unharmed.
const UNHARMED: f64 = 0.95;
/// Without so many recorded cycles nothing is said of loss: a minute at 1 kHz.
const RECORDED_MIN: f64 = 60_000.0;

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
    let (one, crowd) = (Beside::Services.word(), Beside::Crowd.word());
    let many = format!("the same with {CROWD} viewers, one of whom takes nothing");
    let mut verdicts = vec![
        verdict(
            "all services and one viewer leave the core's cycle latency as it is: P50",
            "within 5 % of the core alone",
            evidence.same_median(one),
        ),
        verdict(
            "the same: P99",
            "not distinguishable from the core alone",
            evidence.indistinct_p99(one),
        ),
        verdict(
            "they cause no overrun",
            "0; here: no more than the core has alone, which are the machine's",
            evidence.none_more(one),
        ),
        verdict(
            &format!("{many}: P50"),
            "not distinguishable from the core alone",
            evidence.indistinct_median(crowd),
        ),
        verdict(
            &format!("{many}: P99"),
            "not distinguishable from the core alone",
            evidence.indistinct_p99(crowd),
        ),
        verdict(
            &format!("{many}: the others are unharmed"),
            "each gets as many frames as one viewer alone",
            unharmed(evidence),
        ),
    ];
    verdicts.extend(CPU_PERCENT_MAX.map(|(service, max)| {
        verdict(
            &format!("{service} takes little CPU, with one viewer"),
            &format!("less than {max:.0} % of a core"),
            cpu(evidence, service, max),
        )
    }));
    verdicts.push(verdict(
        "the recorder loses no cycle, all links, 60 s at 1 kHz",
        "no loss",
        recorded(evidence),
    ));
    verdicts
}

fn unharmed(evidence: &Evidence<'_>) -> Found {
    let frames = |beside: Beside| evidence.row(beside.word())?.figure("frames_least");
    let Some((alone, least)) = frames(Beside::Services).zip(frames(Beside::Crowd)) else {
        return NOT_MEASURED;
    };
    let ours = format!("{least:.1} Hz the least, alone {alone:.1} Hz");
    (ours, if least >= alone * UNHARMED { Holds::Yes } else { Holds::No })
}

fn cpu(evidence: &Evidence<'_>, service: &str, max: f64) -> Found {
    let row = evidence.row(Beside::Services.word());
    let Some(percent) = row.and_then(|row| row.figure(&format!("{service}_cpu"))) else {
        return NOT_MEASURED;
    };
    (format!("{percent:.1} %"), if percent < max { Holds::Yes } else { Holds::No })
}

fn recorded(evidence: &Evidence<'_>) -> Found {
    let of = |name| {
        let rows = [Beside::Services, Beside::Crowd].into_iter();
        rows.filter_map(|beside| evidence.row(beside.word())?.figure(name)).reduce(|a, b| a + b)
    };
    let Some((cycles, recorded)) = of("cycles").zip(of("cycles_recorded")) else {
        return NOT_MEASURED;
    };
    let holds = match () {
        () if recorded != cycles => Holds::No,
        () if cycles < RECORDED_MIN => Holds::Partly,
        () => Holds::Yes,
    };
    (format!("{recorded} of {cycles} cycles are in the files"), holds)
}
