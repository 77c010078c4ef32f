//! Every claim holds on a machine like the article's, and fails on a different one.

use sinew_figures::Distribution;

use super::*;
use crate::report::Figure;

/// A row whose cycles all take this long.
fn row(values: &[&str], period: &str, ns: u64) -> Row {
    let names = ["work", "placement", "transport", "sync", "wait", "period"];
    let values = values.iter().chain([&period]);
    let axes: Vec<_> = names.into_iter().zip(values.copied()).collect();
    let mut row = Row::of(&axes);
    for name in ["cycle_latency", "activation_jitter"] {
        let measure = row.measure_mut(name);
        let mut distribution = Distribution::new();
        (0..2000).for_each(|_| distribution.add(ns));
        measure.distribution = distribution;
        measure.rounds = vec![ns as f64; 3];
        // The token takes 500 ns.
        measure.ratios = vec![ns as f64 / 500.0; 3];
    }
    for name in ["overruns", "slack_mean"] {
        row.figures.push(Figure::of(name, "", 0.0));
    }
    row
}

/// A machine on which everything is as in the article, except for `changed`.
fn rows(changed: &[(&[&str; 5], &str, u64)]) -> Vec<Row> {
    let mut rows = Vec::new();
    for period in ["free", "1ms"] {
        for (values, ns) in [
            (&FUSED, 100),
            (&THREADS, 1000),
            (&THREADS_PARK, 1500),
            (&THREADS_MUTEX_SPIN, 90_000),
            (&THREADS_MUTEX, 100_000),
            (&PROCESSES, 1000),
            (&PROCESSES_MUTEX, 1000),
            (&PROCESSES_PIPE, 90_000),
        ] {
            rows.push(row(values, period, ns));
        }
    }
    for period in ["1ms", "2ms", "4ms", "10ms"] {
        rows.push(row(&FOUR, period, 800));
        rows.push(row(
            &["none", "4_processes", "shared_memory", "lock_free", "yield"],
            period,
            800,
        ));
        rows.push(row(&["none", "4_processes", "pipe", "-", "park"], period, 80_000));
    }
    for &(values, period, ns) in changed {
        let new = row(values, period, ns);
        let at = rows.iter().position(|row| row.axes == new.axes).expect("it is there");
        rows[at] = new;
    }
    rows
}

fn judged(rows: &[Row], cpus: usize) -> Vec<Holds> {
    let evidence = Evidence { rows, cpus };
    verdicts(&evidence).into_iter().map(|verdict| verdict.holds).collect()
}

#[test]
fn a_machine_like_the_article_s_meets_its_claims() {
    use Holds::{No, NotMeasured, Yes};
    let expected = [Yes, Yes, Yes, Yes, Yes, Yes, Yes, No, Yes, NotMeasured];
    assert_eq!(judged(&rows(&[]), 4), expected);
}

#[test]
fn every_claim_can_fail() {
    use Holds::{No, NotMeasured};
    let mut other = rows(&[
        (&THREADS_MUTEX, "free", 1100),
        (&THREADS_MUTEX_SPIN, "free", 1000),
        (&PROCESSES, "free", 2000),
        (&PROCESSES_MUTEX, "free", 200_000),
        (&PROCESSES_PIPE, "free", 2000),
        (&THREADS, "1ms", 3000),
        (&FOUR, "1ms", 2000),
    ]);
    for row in &mut other {
        row.figures[0].value = 200.0;
    }
    let expected = [No, No, No, No, No, No, No, No, No, NotMeasured];
    assert_eq!(judged(&other, 4), expected);
}

#[test]
fn what_was_not_measured_is_not_judged() {
    let none = Evidence { rows: &[], cpus: 4 };
    let verdicts = verdicts(&none);
    assert!(verdicts.iter().all(|verdict| verdict.holds == Holds::NotMeasured), "{verdicts:?}");
    assert!(bars(&none).rows.iter().all(|row| row[3] == "not measured"));
    assert_eq!(judged(&rows(&[]), 2)[5], Holds::NotMeasured, "two CPUs are too few");
}

#[test]
fn fewer_than_three_rounds_decide_nothing() {
    let mut rows = rows(&[]);
    for measure in rows.iter_mut().flat_map(|row| &mut row.measures) {
        measure.rounds.truncate(2);
        measure.ratios.truncate(2);
    }
    let evidence = Evidence { rows: &rows, cpus: 4 };
    for (at, verdict) in verdicts(&evidence).into_iter().enumerate() {
        // The claim about the name 'jitter' is judged by the article's figures alone.
        let expected = match at {
            7 => Holds::No,
            9 => Holds::NotMeasured,
            _ => Holds::NotDistinguishable,
        };
        assert_eq!(verdict.holds, expected, "{verdict:?}");
        let says = verdict.ours.contains("needs three rounds");
        assert_eq!(says, expected == Holds::NotDistinguishable, "{verdict:?}");
    }
    assert!(bars(&evidence).rows.iter().all(|row| row[3] == "not distinguishable"));
}

#[test]
fn waiting_that_decides_is_told_from_the_lock() {
    let rows = rows(&[(&THREADS_PARK, "free", 100_000), (&THREADS_MUTEX_SPIN, "free", 1600)]);
    assert_eq!(judged(&rows, 4)[4], Holds::Partly);
    let evidence = Evidence { rows: &rows, cpus: 4 };
    let reached: Vec<_> = bars(&evidence).rows.into_iter().map(|row| row[3].clone()).collect();
    assert_eq!(reached, ["no", "yes", "yes", "yes"]);
}
