//! Every mistake matters on a machine on which it costs, and does not matter where it costs
//! nothing.

use super::*;
use crate::report::Figure;
use crate::scenario::mistakes::case::MistakeCase;

/// All rows; the wrong forms take `factor` times as long, and go wrong `wrong` times.
fn rows(factor: f64, wrong: f64) -> Vec<Row> {
    let right = ["fetch_add", "seqlock", "release_acquire", "apart", "mask", "in_slot"];
    let fill = |case: MistakeCase| {
        let mut row = case.row();
        let is_right = right.contains(&case.form.word());
        let names: &[&str] = match (case.mistake.word(), case.cpus.word()) {
            ("lines" | "capacity", _) => &["thousand_messages"],
            ("allocation", "one") => &["message", "message_p99"],
            ("allocation", _) => &["round_trip", "round_trip_p99"],
            _ => &["thousand_operations"],
        };
        for name in names {
            let ns = if is_right { 100.0 } else { 100.0 * factor };
            row.measure_mut(name).rounds = vec![ns; 3];
        }
        let wrong = if is_right { 0.0 } else { wrong };
        let figures = [("done", 1000.0), ("lost", wrong), ("torn", wrong), ("stale", wrong)];
        row.figures = figures.map(|(name, value)| Figure::of(name, "", value)).into();
        row
    };
    MistakeCase::all().into_iter().map(fill).collect()
}

fn judged(rows: &[Row]) -> Vec<Holds> {
    of(rows).into_iter().map(|verdict| verdict.holds).collect()
}

/// The result of a verdict on relaxed, which x86 cannot give.
fn off_x86(holds: Holds) -> Holds {
    if cfg!(target_arch = "x86_64") { Holds::NotMeasured } else { holds }
}

#[test]
fn mistakes_that_cost_matter() {
    use Holds::Yes;
    let all = [Yes, Yes, off_x86(Yes), Yes, Yes, Yes, Yes];
    assert_eq!(judged(&rows(2.0, 7.0)), all);
    let table = tables(&rows(2.0, 7.0)).swap_remove(0);
    assert!(table.rows.iter().all(|row| row[3] == "yes"), "{:?}", table.rows);
}

#[test]
fn mistakes_that_cost_nothing_do_not_matter() {
    use Holds::No;
    assert_eq!(judged(&rows(1.1, 0.0)), [No, No, off_x86(No), No, No, No, No]);
}

#[test]
fn what_is_right_and_goes_wrong_all_the_same_proves_nothing() {
    let mut rows = rows(2.0, 7.0);
    for row in &mut rows {
        row.figures.iter_mut().for_each(|figure| figure.value = 7.0);
    }
    assert_eq!(judged(&rows)[..2], [Holds::No; 2]);
}

#[test]
fn a_factor_within_the_noise_is_not_judged() {
    let mut rows = rows(2.0, 7.0);
    for (polled, expected) in [("at_once", Holds::Partly), ("later", Holds::NotDistinguishable)] {
        let is_it = |row: &&mut Row| row.is(&[("form", "one_line"), ("poll", polled)]);
        let row = rows.iter_mut().find(is_it).expect("it is there");
        row.measure_mut("thousand_messages").rounds = vec![110.0, 130.0, 150.0];
        assert_eq!(judged(&rows)[3], expected);
    }
}

#[test]
fn relaxed_is_judged_where_a_cpu_reorders_and_only_there() {
    let of = |wrong, is_x86| relaxed(&rows(1.0, wrong), is_x86);
    assert_eq!((of(7.0, false).holds, of(0.0, false).holds), (Holds::Yes, Holds::No));
    let here = of(7.0, true);
    assert_eq!(here.holds, Holds::NotMeasured);
    assert!(here.ours.contains("cargo test -p sinew-link --release --lib proofs"), "{here:?}");
    assert!(here.ours.contains("flag stored first, which relaxed allows: 7 of 1000"), "{here:?}");
    assert_eq!(relaxed(&[], false).holds, Holds::NotMeasured);
}

#[test]
fn one_cpu_is_judged_by_what_one_thread_shows() {
    let mut rows = rows(2.0, 7.0);
    rows.retain(|row| row.axis("cpus") == Some("one"));
    use Holds::{NotMeasured, Yes};
    let none = NotMeasured;
    assert_eq!(judged(&rows), [none, none, none, none, Yes, Yes, Yes]);
    assert!(of(&rows)[4].ours.starts_with("one thread: 2.00"), "{:?}", of(&rows)[4]);
    assert!(judged(&[]).iter().all(|holds| *holds == NotMeasured));
}
