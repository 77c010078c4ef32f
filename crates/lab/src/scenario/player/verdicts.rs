//! The paper's figures beside ours, and whether the bars are reached. A row that was requested but
//! could not be seen counts as not reached.

use sinew_figures::units::ratio;

use super::case::{CpuLoad, Decoder, PlayerCase};
use crate::bar::{Bar, Holds};
use crate::report::{Row, Table, Verdict};
use crate::scenario::beside::Judged;

/// The paper's section 5.3 and figure 13: seconds before and after its improvement.
const PUBLISHED_S: [f64; 2] = [0.019, 0.024];
/// How far apart sound and picture may be, ms: for 95 of 100 pictures, and for all of them.
const P95_MS_MAX: f64 = 20.0;
const MS_MAX: f64 = 40.0;
/// A difference up to this share counts as none: it is some microseconds here, far below the
/// lateness of a timer.
const SAME: f64 = 0.05;

/// What is compared round by round: its name and its measure.
const PERCENTILES: [(&str, &str); 2] = [("P50", "av_difference"), ("P95", "av_difference_p95")];

/// What is known of a row.
enum Seen<'a> {
    /// It was not requested, or the run was interrupted before it.
    NotAsked,
    /// It was requested, but could not be seen to the end.
    NotShown(&'a str),
    Shown(&'a Row),
}

fn seen(rows: &[Row], decoder: Decoder, load: CpuLoad) -> Seen<'_> {
    let axes = PlayerCase { decoder, load }.row().axes;
    match rows.iter().find(|row| row.axes == axes) {
        None => Seen::NotAsked,
        Some(row) => match (&row.skipped, row.measure("decode")) {
            (Some(why), _) => Seen::NotShown(why),
            (None, None) => Seen::NotAsked,
            (None, Some(_)) => Seen::Shown(row),
        },
    }
}

fn not_shown(why: &str) -> Judged {
    Some((format!("not shown: {why}"), Holds::No))
}

/// The paper's figures and ours, ms.
pub(super) fn table(rows: &[Row]) -> Table {
    let dash = || "-".to_owned();
    let theirs = ["the paper, before its improvement", "the paper, after it"];
    let theirs = theirs.into_iter().zip(PUBLISHED_S).map(|(what, seconds)| {
        vec![what.into(), format!("{:.0}", seconds * 1e3), dash(), dash(), dash(), dash()]
    });
    let ours = rows.iter().map(|row| {
        let all = row.measure("av_difference").map(|of| &of.distribution);
        let cell = |ns: Option<u64>| ns.map_or_else(dash, ms);
        let cells = [0.5, 0.95].map(|share| cell(all.and_then(|all| all.quantile(share))));
        let [p50, p95] = cells;
        let n = all.map_or_else(dash, |all| all.n().to_string());
        vec![row.id(), dash(), p50, p95, cell(all.and_then(|all| all.max())), n]
    });
    let title = "how far apart sound and picture are, ms: the paper's figures next to ours";
    let columns = ["", "stated", "P50", "P95", "max", "n"];
    Table::of(title, columns, theirs.chain(ours).collect())
}

/// All verdicts.
pub(super) fn of(rows: &[Row]) -> Vec<Verdict> {
    let mut verdicts = vec![the_paper()];
    verdicts.extend(PERCENTILES.map(|(name, measure)| {
        let when = format!("without load: {name}");
        closer(rows, &when, measure, [CpuLoad::None; 2])
    }));
    verdicts.extend(PERCENTILES.map(|(name, measure)| {
        let when = format!("under a load on the decoder's CPU: {name}");
        closer(rows, &when, measure, [CpuLoad::Sound, CpuLoad::Decoder])
    }));
    for (who, decoder) in [("two CPUs", Decoder::TwoCpus), ("a guest's decoder", Decoder::Guest)] {
        let claim = |what: &str| format!("{who}, no load: sound and picture apart, {what}");
        let row = || seen(rows, decoder, CpuLoad::None);
        let most = format!("<= {P95_MS_MAX:.0} ms");
        verdicts.push(judged(claim("P95"), &most, row(), p95_at_most));
        let most = format!("<= {MS_MAX:.0} ms");
        verdicts.push(judged(claim("at most"), &most, row(), most_at_most));
    }
    for (who, decoder) in [("one CPU", Decoder::OneCpu), ("two CPUs", Decoder::TwoCpus)] {
        let claim = format!("{who}, no load: no picture late or dropped");
        let theirs = "0; partly: 0, but some were not decoded, or were shown longer than their \
                      time";
        verdicts.push(judged(claim, theirs, seen(rows, decoder, CpuLoad::None), all_in_time));
    }
    verdicts.extend(Decoder::ALL.iter().map(|decoder| {
        Verdict::of(
            format!("{}: no picture is copied", decoder.word()),
            "0",
            copies(rows, *decoder),
        )
    }));
    verdicts
}

/// The verdict that follows from the paper's figures alone.
fn the_paper() -> Verdict {
    let [before, after] = PUBLISHED_S;
    let (ratio, percent) = (after / before, (after / before - 1.0) * 100.0);
    let ours = format!(
        "by its own figures it is worse: {after} s is {ratio:.2} of {before} s, {percent:+.0} %: \
         sound and picture are farther apart"
    );
    let theirs = format!("{before} s before, {after} s after, called more than 10 % better");
    let claim = "the paper: with its shared memory the A-V synchronisation of a player is better";
    Verdict::of(claim, theirs, Some((ours, Holds::No)))
}

fn judged(claim: String, theirs: &str, row: Seen<'_>, judge: fn(&Row) -> Judged) -> Verdict {
    let found = match row {
        Seen::NotAsked => None,
        Seen::NotShown(why) => not_shown(why),
        Seen::Shown(row) => judge(row),
    };
    Verdict::of(claim, theirs, found)
}

/// Whether a second CPU brings sound and picture closer together: two CPUs over one, round by
/// round. `loads` are the loads with one CPU and with two.
fn closer(rows: &[Row], when: &str, measure: &str, loads: [CpuLoad; 2]) -> Verdict {
    let [with_one, with_two] = loads;
    let pair = [seen(rows, Decoder::TwoCpus, with_two), seen(rows, Decoder::OneCpu, with_one)];
    let found = match pair {
        [Seen::NotShown(why), _] | [_, Seen::NotShown(why)] => not_shown(why),
        [Seen::Shown(two), Seen::Shown(one)] => ratio_of(measure, two, one),
        _ => None,
    };
    let claim = format!("a second CPU brings sound and picture closer, {when}");
    Verdict::of(claim, "two_cpus / one_cpu below 1, round by round", found)
}

fn ratio_of(measure: &str, two: &Row, one: &Row) -> Judged {
    let (two, one) = (two.measure(measure)?, one.measure(measure)?);
    let over = two.over(one)?;
    let holds = match Bar::AtMost(1.0).holds(over) {
        _ if !over.differs_from_one() => Holds::NotDistinguishable,
        _ if Bar::Within(SAME).holds(over) == Holds::Yes => Holds::NotDistinguishable,
        holds => holds,
    };
    let medians = two.spread().zip(one.spread());
    let medians = medians.map_or(String::new(), |(two, one)| {
        format!("; {} ms and {} ms", ms(two.median as u64), ms(one.median as u64))
    });
    Some((format!("{over}{medians}"), holds))
}

fn p95_at_most(row: &Row) -> Judged {
    let all = &row.measure("av_difference")?.distribution;
    let (most, n) = (all.max()?, all.n());
    match all.quantile(0.95) {
        Some(p95) => Some((format!("{} ms, n {n}", ms(p95)), holds(p95, P95_MS_MAX))),
        // If all pictures are within the limit, P95 is, too.
        None if holds(most, P95_MS_MAX) == Holds::Yes => {
            Some((format!("not known of {n} pictures; at most {} ms", ms(most)), Holds::Yes))
        }
        None => Some((format!("not known of {n} pictures; needs 200"), Holds::NotMeasured)),
    }
}

fn most_at_most(row: &Row) -> Judged {
    let all = &row.measure("av_difference")?.distribution;
    let most = all.max()?;
    Some((format!("{} ms, n {}", ms(most), all.n()), holds(most, MS_MAX)))
}

fn holds(ns: u64, most_ms: f64) -> Holds {
    if ns as f64 <= most_ms * 1e6 { Holds::Yes } else { Holds::No }
}

fn all_in_time(row: &Row) -> Judged {
    let of = |name| row.figure(name).unwrap_or_default();
    let [late, dropped, skipped, repeated] = ["late", "dropped", "skipped", "repeated"].map(of);
    let ours = format!(
        "{late} late of {} shown, {dropped} dropped; {skipped} not decoded, {repeated} repeated",
        of("shown")
    );
    let holds = match () {
        () if late + dropped > 0.0 => Holds::No,
        () if skipped + repeated > 0.0 => Holds::Partly,
        () => Holds::Yes,
    };
    Some((ours, holds))
}

/// The copies of all rows with this decoder.
fn copies(rows: &[Row], decoder: Decoder) -> Judged {
    let (mut copies, mut shown) = (0.0, None);
    for load in CpuLoad::ALL {
        match seen(rows, decoder, *load) {
            Seen::NotAsked => {}
            Seen::NotShown(why) => return not_shown(why),
            Seen::Shown(row) => {
                copies += row.figure("copies").unwrap_or_default();
                shown = Some(shown.unwrap_or(0.0) + row.figure("shown").unwrap_or_default());
            }
        }
    }
    let shown = shown?;
    let holds = if copies == 0.0 { Holds::Yes } else { Holds::No };
    Some((format!("{copies} copies of {shown} pictures shown"), holds))
}

/// Milliseconds, to three digits.
fn ms(ns: u64) -> String {
    ratio(ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use sinew_figures::Distribution;

    use super::*;
    use crate::report::Figure;

    /// A row whose pictures are this far from the sound in each of some rounds, us.
    fn row(decoder: Decoder, load: CpuLoad, rounds: &[u64]) -> Row {
        let mut row = PlayerCase { decoder, load }.row();
        for us in rounds {
            let mut all = Distribution::new();
            (0..100).for_each(|_| all.add(us * 1000));
            row.measure_mut("decode").add_round(&all, *us as f64, None);
            row.measure_mut("av_difference").add_round(&all, (us * 1000) as f64, None);
        }
        row.figures = vec![Figure::of("shown", "", 300.0), Figure::of("copies", "", 0.0)];
        row
    }

    fn found(rows: &[Row], claim: &str) -> Verdict {
        let verdicts = of(rows);
        verdicts.into_iter().find(|it| it.claim.contains(claim)).expect(claim)
    }

    #[test]
    fn the_paper_is_judged_by_its_own_figures() {
        let verdict = found(&[], "the paper");
        assert_eq!(verdict.holds, Holds::No);
        assert!(verdict.ours.contains("0.024 s is 1.26 of 0.019 s, +26 %"), "{}", verdict.ours);
    }

    #[test]
    fn a_second_cpu_is_judged_round_by_round() {
        let judged = |one: &[u64], two: &[u64]| {
            let rows = [
                row(Decoder::OneCpu, CpuLoad::None, one),
                row(Decoder::TwoCpus, CpuLoad::None, two),
            ];
            found(&rows, "closer, without load: P50").holds
        };
        assert_eq!(judged(&[200, 220, 210], &[100, 110, 105]), Holds::Yes);
        assert_eq!(judged(&[100, 110, 105], &[200, 220, 210]), Holds::No);
        assert_eq!(judged(&[100, 110, 105], &[90, 120, 105]), Holds::NotDistinguishable);
        assert_eq!(judged(&[100; 3], &[100; 3]), Holds::NotDistinguishable);
        assert_eq!(judged(&[100; 3], &[102, 103, 102]), Holds::NotDistinguishable, "too little");
        assert_eq!(judged(&[200, 220], &[100, 110]), Holds::NotDistinguishable, "two rounds");
    }

    #[test]
    fn bars_hold_for_what_was_shown_and_not_for_what_was_not() {
        let holds = |row: &Row, claim: &str| found(std::slice::from_ref(row), claim).holds;
        let (p95, most) = ("two CPUs, no load: sound and picture apart, P95", "apart, at most");
        let good = row(Decoder::TwoCpus, CpuLoad::None, &[100, 200, 300]);
        assert_eq!((holds(&good, p95), holds(&good, most)), (Holds::Yes, Holds::Yes));
        let far = row(Decoder::TwoCpus, CpuLoad::None, &[100, 200, 41_000]);
        assert_eq!((holds(&far, p95), holds(&far, most)), (Holds::No, Holds::No));
        let few = row(Decoder::TwoCpus, CpuLoad::None, &[21_000]);
        assert_eq!((holds(&few, p95), holds(&few, most)), (Holds::NotMeasured, Holds::Yes));
        assert_eq!(found(&[], p95).holds, Holds::NotMeasured, "nobody asked");
        let broken = Row { skipped: Some("it broke".into()), ..good };
        for claim in [p95, most, "closer, without", "two_cpus: no picture is copied"] {
            let verdict = found(std::slice::from_ref(&broken), claim);
            assert_eq!((verdict.ours.as_str(), verdict.holds), ("not shown: it broke", Holds::No));
        }
    }

    #[test]
    fn pictures_that_were_left_out_are_not_hidden_by_none_being_late() {
        let mut row = row(Decoder::TwoCpus, CpuLoad::None, &[100]);
        let mut judge = |name: &str, count: f64| {
            row.figures.push(Figure::of(name, "", count));
            found(std::slice::from_ref(&row), "two CPUs, no load: no picture late").holds
        };
        assert_eq!(judge("late", 0.0), Holds::Yes);
        assert_eq!(judge("skipped", 3.0), Holds::Partly);
        assert_eq!(judge("dropped", 1.0), Holds::No);
    }
}
