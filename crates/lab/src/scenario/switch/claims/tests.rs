//! Verdicts from made-up rows: of a machine like the source's, and of others.

use super::*;
use crate::report::Figure;

/// A row whose turn takes `cost_us` more than its walk of 50 us and its calls of 1 us.
fn row(case: SwitchCase, cost_us: f64) -> Row {
    let mut row = case.row();
    row.figures = vec![Figure::of(SWITCHES, "", 1.0)];
    let rounds = |us: f64| [us * 990.0, us * 1000.0, us * 1010.0].to_vec();
    let walk_us = if case.array == 0 { 0.0 } else { 50.0 };
    // Rounds differ only in their cost.
    let turns = rounds(cost_us).iter().map(|ns| ns + walk_us * 1e3 + 1e3).collect();
    row.measure_mut("turn").rounds = turns;
    row.measure_mut("walk_alone").rounds = vec![walk_us * 1e3; 3];
    if case.array == 0 && case.by != HandedBy::Yield {
        row.measure_mut("calls_alone").rounds = vec![1e3; 3];
    }
    row
}

fn sized(array: usize, cost_us: f64) -> Row {
    row(SwitchCase { array, ..SOURCE }, cost_us)
}

const SIZES: [usize; 7] = [32 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 8 << 20];

/// The machine of the source: 3.8 us without an array, and these costs with arrays.
fn like_theirs(costs: [f64; 7]) -> Vec<Row> {
    let mut rows: Vec<_> = SIZES.into_iter().zip(costs).map(|(at, us)| sized(at, us)).collect();
    rows.push(row(SOURCE, 3.8));
    rows
}

const THEIRS: [f64; 7] = [4.2, 6.0, 39.0, 203.0, 500.0, 900.0, 2000.0];

fn holds(rows: &[Row], l2: usize, claim: &str) -> Holds {
    let all = verdicts(rows, Some(l2));
    let found: Vec<_> = all.iter().filter(|verdict| verdict.claim.contains(claim)).collect();
    assert_eq!(found.len(), 1, "{claim}");
    found[0].holds
}

#[test]
fn on_the_machine_of_the_source_its_claims_hold() {
    let mut rows = like_theirs(THEIRS);
    rows[3] = sized(512 << 10, 116.5);
    rows.push(row(SwitchCase { array: 512 << 10, stride: 128, ..SOURCE }, 825.3));
    for claim in ["3.8 us", "up to 200 KB", "from 256 to 512 KB", "consecutive words", "at 512 KiB"]
    {
        let claim = if claim == "consecutive words" { "L2, consecutive words" } else { claim };
        assert_eq!(holds(&rows, 512 << 10, claim), Holds::Yes, "{claim}");
    }
}

#[test]
fn a_cache_of_two_mebibytes_moves_the_jump_and_the_figures_fail() {
    let rows = like_theirs([1.4, 1.5, 1.6, 3.2, 5.0, 30.0, 90.0]);
    assert_eq!(holds(&rows, 2 << 20, "from 256 to 512 KB"), Holds::Partly, "twice as much");
    assert_eq!(holds(&rows, 2 << 20, "L2, consecutive words"), Holds::Yes);
    assert_eq!(below(&rows, 2 << 20, Walk::Read), Some(512 << 10));
    assert_eq!(above(&rows, 2 << 20, Walk::Read), Some(2 << 20));
    // Less than without an array: neither like the source's cost nor more expensive.
    assert_eq!(holds(&rows, 2 << 20, "up to 200 KB"), Holds::Partly);
    let mut flat = like_theirs([4.0; 7]);
    assert_eq!(holds(&flat, 2 << 20, "from 256 to 512 KB"), Holds::No);
    flat[3].measure_mut("turn").rounds[0] += 8e3;
    assert_eq!(holds(&flat, 2 << 20, "from 256 to 512 KB"), Holds::NotDistinguishable);
    let rows = like_theirs([30.0, 30.0, 20.0, 20.0, 20.0, 20.0, 20.0]);
    assert_eq!(holds(&rows, 2 << 20, "from 256 to 512 KB"), Holds::No);
    assert_eq!(holds(&rows, 2 << 20, "up to 200 KB"), Holds::No);
}

#[test]
fn nothing_follows_from_a_row_without_the_proof() {
    let mut rows = like_theirs(THEIRS);
    rows.iter_mut().for_each(|row| row.figures[0].value = 0.97);
    let all = verdicts(&rows, Some(512 << 10));
    assert!(all.iter().all(|verdict| verdict.holds == Holds::NotMeasured), "{all:?}");
    assert!(tables(&rows, None)[1].rows.iter().all(|line| line[2..].iter().all(|it| it == "-")));
}

#[test]
fn a_cache_of_unknown_size_is_said_and_not_judged() {
    let all = verdicts(&like_theirs(THEIRS), None);
    let of_l2: Vec<_> = all.iter().filter(|verdict| verdict.claim.contains("fill L2")).collect();
    assert_eq!(of_l2.len(), 2);
    assert!(of_l2.iter().all(|verdict| verdict.holds == Holds::NotMeasured));
}

#[test]
fn what_is_lost_in_noise_is_not_distinguishable() {
    let mut rows = like_theirs(THEIRS);
    let stride = SwitchCase { array: 512 << 10, stride: 128, ..SOURCE };
    rows[3].measure_mut("turn").rounds[1] = 0.0;
    rows.push(row(stride, 800.0));
    assert_eq!(holds(&rows, 512 << 10, "at 512 KiB"), Holds::NotDistinguishable);
}

#[test]
fn threads_are_judged_by_every_way() {
    let between = |threads_us: [f64; 2]| {
        let ways = [HandedBy::Futex, HandedBy::Pipe].into_iter().zip(threads_us);
        let rows = ways.flat_map(|(by, us)| {
            let threads = SwitchCase { by, between: Placement::Threads, ..SOURCE };
            let mut threads = row(threads, us);
            threads.measure_mut("turn").rounds.reverse();
            [row(SwitchCase { by, ..SOURCE }, 3.0), threads]
        });
        threads(&rows.collect::<Vec<_>>()).holds
    };
    assert_eq!(between([2.0, 2.0]), Holds::Yes);
    assert_eq!(between([2.0, 3.0]), Holds::Partly);
    assert_eq!(between([4.0, 4.0]), Holds::No);
    assert_eq!(between([2.99, 3.02]), Holds::NotDistinguishable);
    assert_eq!(threads(&[]).holds, Holds::NotMeasured);
}

#[test]
fn a_program_of_somebody_else_stands_beside_the_same_turn() {
    let mut perf = OTHERS[0].row();
    perf.measure_mut("turn").rounds = vec![4.8e3; 3];
    let mut lat_ctx = OTHERS[1].row();
    lat_ctx.measure_mut("turn").rounds = vec![7.6e3; 3];
    let rows = [row(SOURCE, 3.8), perf, lat_ctx];
    assert_eq!(beside(&rows, "perf").holds, Holds::Yes);
    assert_eq!(beside(&rows, "lat_ctx").holds, Holds::No);
    assert_eq!(beside(&rows[..1], "perf").holds, Holds::NotMeasured);
}
