//! How far an automatic pool, which finds its own size, is from the best fixed one, and how soon it
//! has found the size.

use sinew_figures::Interval;
use sinew_figures::units::time;

use super::case::{AUTO, PoolLoad};
use super::driver::Step;
use super::sizes::SizeSeen;
use crate::bar::{Bar, Holds};
use crate::report::{Figure, Row, Table, Verdict};
use crate::scenario::beside::Judged;

/// The share of requests a second, and of P95, that an automatic pool may lose.
const NEAR: f64 = 0.05;
/// Within this many seconds it must have found its size, in every round: that is two or three
/// changes, one a second.
const SETTLED_S_MAX: f64 = 3.0;
/// Changes are at least a second apart. That is seen to some hundredths, because the status is
/// looked at that often.
const BETWEEN_CHANGES_S_MIN: f64 = 0.95;

/// An automatic pool beside the best fixed one under the same load.
struct Found<'a> {
    load: PoolLoad,
    auto: &'a Row,
    best: &'a Row,
    /// Requests a second and P95, over those of the best fixed pool.
    rate: Interval,
    p95: Interval,
}

/// The automatic pools that were measured, in the order of loads.
fn found(rows: &[Row]) -> Vec<Found<'_>> {
    PoolLoad::JUDGED.into_iter().filter_map(|load| one(rows, load)).collect()
}

/// The best is the fixed size with the most requests a second, by the median of its rounds.
fn one(rows: &[Row], load: PoolLoad) -> Option<Found<'_>> {
    let closed = [("load", load.word()), ("arrivals", "closed")];
    let is_auto = |row: &&Row| row.axis("threads") == Some(AUTO);
    let mut under = rows.iter().filter(|row| row.is(&closed) && row.skipped.is_none());
    let auto = under.clone().find(is_auto)?;
    let ns = |row: &Row| Some(row.measure("time_per_request")?.spread()?.median);
    let database = auto.axis("database");
    let fixed = under.by_ref().filter(|row| !is_auto(row) && row.axis("database") == database);
    let timed = fixed.filter_map(|row| Some((ns(row)?, row)));
    let (_, best) = timed.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let rate = best.measure("time_per_request")?.over(auto.measure("time_per_request")?)?;
    let p95 = auto.measure("latency_p95")?.over(best.measure("latency_p95")?)?;
    Some(Found { load, auto, best, rate, p95 })
}

impl Found<'_> {
    /// The longest time that it took to settle, s; `None` if it did not settle in some round.
    fn settled_s(&self) -> Option<f64> {
        let longest = self.auto.measure("settling")?.distribution.max()? as f64 * 1e-9;
        (self.auto.figure("not_settled") == Some(0.0)).then_some(longest)
    }

    /// The figures of both, in words, and whether the pool is near enough and settled soon enough.
    fn judged(&self) -> (String, Holds) {
        let settled_s = self.settled_s();
        let settled = settled_s.map_or("not settled".into(), |s| format!("settled in {s:.1} s"));
        let text = format!(
            "against {} threads: requests a second {}, P95 {}; {settled}",
            self.best.axis("threads").unwrap_or_default(),
            self.rate,
            self.p95
        );
        let ratios =
            [Bar::AtLeast(1.0 - NEAR).holds(self.rate), Bar::AtMost(1.0 + NEAR).holds(self.p95)];
        let is_late = settled_s.is_none_or(|s| s > SETTLED_S_MAX);
        let holds = match () {
            () if is_late || ratios.contains(&Holds::No) => Holds::No,
            () if ratios == [Holds::Yes; 2] => Holds::Yes,
            () => Holds::NotDistinguishable,
        };
        (text, holds.if_firm(&[self.rate, self.p95]))
    }
}

/// Writes into the rows how far they are from the best, in hundredths of the best: for the plot.
pub(super) fn place(rows: &mut [Row]) {
    let placed: Vec<_> = found(rows)
        .iter()
        .map(|it| (it.load, 100.0 * (1.0 - it.rate.median), 100.0 * (it.p95.median - 1.0)))
        .collect();
    for (load, rate, p95) in placed {
        let axes = [("load", load.word()), ("arrivals", "closed"), ("threads", AUTO)];
        if let Some(row) = rows.iter_mut().find(|row| row.is(&axes)) {
            row.figures.push(Figure::of("below_best", "%", rate));
            row.figures.push(Figure::of("p95_above_best", "%", p95));
        }
    }
}

/// All tables.
pub(super) fn tables(rows: &[Row], steps: &[Vec<Step>]) -> Vec<Table> {
    let found = found(rows);
    let mut tables = vec![];
    if !found.is_empty() {
        let lines = found.iter().map(|it| {
            let threads = |row: &Row| row.axis("threads").unwrap_or_default().to_owned();
            let figure = |name| it.auto.figure(name);
            let settled = it.auto.measure("settling").and_then(|of| of.spread());
            let settled = settled.map_or("-".into(), |of| time(of.median));
            let longest = it.settled_s().map_or("not always".into(), |s| time(s * 1e9));
            let end = figure("threads_at_end").map_or("-".into(), |it| format!("{it:.0}"));
            let (rate, p95) = (it.rate.to_string(), it.p95.to_string());
            vec![it.load.word().into(), threads(it.best), end, rate, p95, settled, longest]
        });
        tables.push(Table::of(
            "a pool that finds its size over the best fixed one, round by round",
            [
                "load",
                "best fixed",
                "auto at end",
                "requests/s",
                "P95",
                "settled, median",
                "settled, longest",
            ],
            lines.collect(),
        ));
    }
    if !steps.is_empty() {
        tables.push(of_steps(steps));
    }
    tables
}

/// Sizes over time, step by step.
fn of_steps(steps: &[Vec<Step>]) -> Table {
    let line = |(round, step): (usize, &Step)| {
        let changes = step.sizes.len().saturating_sub(1).to_string();
        let settled = step.settled.map_or("not".into(), |it| time(it.as_nanos() as f64));
        vec![
            (round + 1).to_string(),
            step.load.word().into(),
            over_time(&step.sizes),
            changes,
            settled,
        ]
    };
    let all = steps.iter().enumerate().flat_map(|(at, all)| all.iter().map(move |it| (at, it)));
    Table::of(
        "load steps of 4 s on one running graph: threads, and when they changed",
        ["round", "load", "threads", "changes", "settled after"],
        all.map(line).collect(),
    )
}

fn over_time(sizes: &[SizeSeen]) -> String {
    let Some(first) = sizes.first() else { return "-".into() };
    let later = sizes[1..].iter().map(|it| {
        let after_s = (it.ns - first.ns) as f64 * 1e-9;
        format!(", {} at {after_s:.1} s", it.threads)
    });
    first.threads.to_string() + &later.collect::<String>()
}

/// All verdicts.
pub(super) fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let found = found(rows);
    let judged =
        |load: PoolLoad| -> Judged { found.iter().find(|it| it.load == load).map(Found::judged) };
    let near = 100.0 * NEAR;
    let bar = format!(
        "requests a second and P95 within {near:.0} % of the best fixed size, settled within \
         {SETTLED_S_MAX} s in every round"
    );
    let each = PoolLoad::JUDGED.map(|load| (load, judged(load)));
    let all = each.iter().map(|(_, of)| of.as_ref().map(|(_, holds)| *holds)).collect::<Vec<_>>();
    let mut verdicts: Vec<_> = each
        .into_iter()
        .map(|(load, found)| {
            let claim =
                format!("a pool that finds its size is as good as the best: {}", load.word());
            Verdict::of(claim, bar.clone(), found)
        })
        .collect();
    verdicts.push(Verdict::of(
        "a pool that finds its size is as good as the best, whatever the load",
        "5 of 5 loads",
        of_all(&all),
    ));
    verdicts.push(Verdict::of(
        "its size changes once a second at most",
        format!(">= {BETWEEN_CHANGES_S_MIN} s between two changes, in every run"),
        between_changes(rows),
    ));
    verdicts
}

fn of_all(all: &[Option<Holds>]) -> Judged {
    let known: Vec<Holds> = all.iter().flatten().copied().collect();
    let good = known.iter().filter(|holds| **holds == Holds::Yes).count();
    let holds = match () {
        () if known.is_empty() => return None,
        () if known.contains(&Holds::No) => Holds::No,
        () if good == all.len() => Holds::Yes,
        () if known.len() < all.len() => Holds::NotMeasured,
        () => Holds::NotDistinguishable,
    };
    Some((format!("{good} of {}, {} measured", all.len(), known.len()), holds))
}

fn between_changes(rows: &[Row]) -> Judged {
    let times = rows.iter().filter_map(|row| row.figure("least_between_changes"));
    let least = times.min_by(f64::total_cmp)?;
    let holds = if least >= BETWEEN_CHANGES_S_MIN { Holds::Yes } else { Holds::No };
    Some((format!("{least:.2} s"), holds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinew_figures::Distribution;

    /// A row of three rounds with this time per request, P95, and time to settle in s.
    fn row(load: PoolLoad, threads: &str, [ns, p95, settled_s]: [f64; 3]) -> Row {
        let axes = [("load", load.word()), ("arrivals", "closed"), ("threads", threads)];
        let mut row = Row::of(&[&axes[..], &[("database", "-")]].concat());
        for _ in 0..3 {
            for (name, ns) in [("time_per_request", ns), ("latency_p95", p95)] {
                row.measure_mut(name).add_round(&Distribution::new(), ns, None);
            }
            let mut values = Distribution::new();
            values.add((settled_s * 1e9) as u64);
            row.measure_mut("settling").add_round(&values, settled_s * 1e9, None);
        }
        row.figures = vec![
            Figure::of("not_settled", "", f64::from(u8::from(settled_s >= 4.0))),
            Figure::of("least_between_changes", "s", 1.02),
        ];
        row
    }

    /// The verdicts if the best of two fixed sizes takes 100 for a request.
    fn judged(autos: &[(PoolLoad, [f64; 3])]) -> Vec<Holds> {
        let of = |&(load, auto): &(PoolLoad, [f64; 3])| {
            let fixed = [("2", [130.0, 90.0, 0.0]), ("15", [100.0, 100.0, 0.0])];
            [fixed[0], fixed[1], (AUTO, auto)].map(|(threads, values)| row(load, threads, values))
        };
        let mut rows: Vec<_> = autos.iter().flat_map(of).collect();
        assert_eq!(tables(&rows, &[])[0].rows.len(), autos.len());
        place(&mut rows);
        assert!(rows[2].figure("below_best").is_some() && rows[1].figure("below_best").is_none());
        verdicts(&rows).iter().map(|verdict| verdict.holds).collect()
    }

    #[test]
    fn it_must_be_near_the_best_in_both_and_there_in_time() {
        let good = PoolLoad::JUDGED.map(|load| (load, [102.0, 97.0, 2.5]));
        assert_eq!(judged(&good), [Holds::Yes; 7]);
        for bad in [[110.0, 97.0, 2.5], [102.0, 110.0, 2.5], [102.0, 97.0, 3.5], [99.0, 97.0, 4.0]]
        {
            let mut autos = good;
            autos[1].1 = bad;
            let found = judged(&autos);
            assert_eq!(
                (found[0], found[1], found[5]),
                (Holds::Yes, Holds::No, Holds::No),
                "{bad:?}"
            );
        }
        let found = judged(&good[..1]);
        assert_eq!(
            (found[0], found[1], found[5]),
            (Holds::Yes, Holds::NotMeasured, Holds::NotMeasured)
        );
    }

    #[test]
    fn nothing_is_said_of_what_was_not_measured() {
        assert!(verdicts(&[]).iter().all(|verdict| verdict.holds == Holds::NotMeasured));
        assert_eq!(tables(&[], &[]), []);
    }

    #[test]
    fn sizes_over_time_are_a_line_of_words() {
        let at = |s: u64, threads| SizeSeen { ns: s * 1_000_000_000, threads, changes: s };
        let sizes = vec![at(1, 2), at(2, 8), at(4, 6)];
        let step = Step { load: PoolLoad::Cpu, sizes, settled: None };
        let table = of_steps(&[vec![step]]);
        assert_eq!(table.rows, [["1", "cpu", "2, 8 at 1.0 s, 6 at 3.0 s", "2", "not"]]);
    }
}
