//! Every verdict holds on a machine on which everything is as claimed, and fails on a different
//! one.

use sinew_figures::Distribution;

use super::*;
use crate::scenario::sync::case::SyncCase;

/// How long an operation takes on a machine like the article's.
fn claimed_ns(row: &Row, name: &str) -> u64 {
    let value = |axis| row.axis(axis).expect("every row has it");
    match (value("operation"), name) {
        ("sched_yield" | "futex_wake_nobody", _) => 300_000,
        ("mutex_lock", THOUSAND_OPERATIONS) => 50_000,
        (_, THOUSAND_OPERATIONS) => 15_000,
        ("mutex_lock", _) => 5000,
        ("message", _) => 70_000,
        (_, "call") => 5000,
        _ if value("target") == "idle" => 30_000,
        _ => 10_000,
    }
}

/// All rows, three rounds long; `ns` gives the time of each measure.
fn rows(ns: impl Fn(&Row, &str) -> u64) -> Vec<Row> {
    let fill = |case: SyncCase| {
        let mut row = case.row();
        let names: &[&str] = match (row.axis("operation"), row.axis("target")) {
            (Some("message"), _) => &["message"],
            (Some("mutex_lock"), _) if case.threads() > 1 => &["lock", "found_taken"],
            (_, Some("-")) => &[THOUSAND_OPERATIONS],
            _ => &["call", "wake_up"],
        };
        for name in names {
            let ns = ns(&row, name);
            let mut times = Distribution::new();
            (0..20).for_each(|_| times.add(ns));
            (0..3).for_each(|_| row.measure_mut(name).add_round(&times, ns as f64, None));
        }
        row
    };
    SyncCase::all().into_iter().map(fill).collect()
}

fn judged(rows: &[Row]) -> Vec<Holds> {
    of(rows).into_iter().map(|verdict| verdict.holds).collect()
}

/// The result of the last verdict, which is about x86.
fn on_x86(holds: Holds) -> Holds {
    if cfg!(target_arch = "x86_64") { holds } else { Holds::NotMeasured }
}

#[test]
fn a_machine_like_the_article_s_meets_its_claims() {
    let rows = rows(claimed_ns);
    let mut expected = vec![Holds::Yes; 13];
    expected[12] = on_x86(Holds::Yes);
    assert_eq!(judged(&rows), expected);
    let table = tables(&rows).swap_remove(0);
    assert_eq!(table.rows[0][..3], ["condvar", "3.00 (3.00 to 3.00)", "1.00 (1.00 to 1.00)"]);
}

#[test]
fn every_claim_can_fail() {
    let other = rows(|row, name| {
        let fifo = if row.axis("scheduling") == Some("fifo") { 3 } else { 1 };
        match (row.axis("operation").expect("it has one"), name) {
            ("store_relaxed" | "load_relaxed" | "futex_wake_nobody", _) => 1,
            (_, THOUSAND_OPERATIONS) => 5_000_000,
            ("futex", "wake_up") => 100_000 * fifo,
            (_, "wake_up") => 200_000 * fifo,
            _ => 10,
        }
    });
    let mut expected = vec![Holds::No; 13];
    expected[12] = on_x86(Holds::No);
    assert_eq!(judged(&other), expected);
}

#[test]
fn an_entry_whose_limit_lies_within_the_noise_is_not_judged() {
    let mut rows = rows(claimed_ns);
    let is_it = |row: &&mut Row| row.is(&[("operation", "mutex_lock"), ("threads", "1")]);
    let lock = rows.iter_mut().find(is_it).expect("it is there");
    lock.measure_mut(THOUSAND_OPERATIONS).rounds = vec![16e3, 17e3, 18e3];
    assert_eq!(judged(&rows)[0], Holds::NotDistinguishable, "17 ns are 25 / 1.5 or less");
}

#[test]
fn what_one_primitive_shows_holds_in_part() {
    let some = rows(|row, name| match row.axis("operation") {
        Some("eventfd") if name == "wake_up" => 10_000,
        _ => claimed_ns(row, name),
    });
    assert_eq!(judged(&some)[9..12], [Holds::Partly, Holds::Yes, Holds::Partly]);
}

#[test]
fn one_cpu_is_judged_by_what_it_has() {
    let mut rows = rows(claimed_ns);
    rows.retain(|row| row.axis("cpus") == Some("one"));
    use Holds::{NotMeasured, Yes};
    let yes = on_x86(Yes);
    // On the waker's own CPU a wake-up takes 10 us in these rows, and a message 70.
    let expected =
        [Yes, NotMeasured, Yes, Yes, Yes, Yes, Yes, Yes, Yes, NotMeasured, Yes, NotMeasured, yes];
    assert_eq!(judged(&rows), expected);
    assert!(of(&rows)[3].ours.contains("on one CPU"), "{:?}", of(&rows)[3]);
}

#[test]
fn fewer_than_three_rounds_decide_nothing() {
    let mut rows = rows(claimed_ns);
    for measure in rows.iter_mut().flat_map(|row| &mut row.measures) {
        measure.rounds.truncate(2);
    }
    let expected =
        |at| if at == 12 { on_x86(Holds::NotDistinguishable) } else { Holds::NotDistinguishable };
    for (at, verdict) in of(&rows).into_iter().enumerate() {
        assert_eq!(verdict.holds, expected(at), "{verdict:?}");
        assert!(verdict.ours.contains(NEEDS_ROUNDS), "{verdict:?}");
    }
    assert!(judged(&[]).iter().all(|holds| *holds == Holds::NotMeasured));
}
