//! Cycles that are lost while the arm moves, because one of its processes stands still: what was
//! commanded meanwhile, by differences over the rows that `--csv` wrote.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::program::{Running, folder, is_alive, send, wait_until};

/// Of `calm.yaml`.
const PERIOD_S: f64 = 5e-3;
/// Speed, acceleration and jerk of the planner's defaults, in m.
const BOUNDS: [f64; 3] = [0.25, 2.0, 20.0];
/// What differences over a cycle may be more than what they stand for.
const TOLERANCE: f64 = 1.002;

/// The targets of all cycles before the stop, and how many periods were lost.
fn targets(csv: &Path) -> (Vec<[f64; 3]>, u64) {
    let text = fs::read_to_string(csv).unwrap_or_default();
    // The last line may still be cut.
    let text = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let Some(names) = rows.next() else { return (vec![], 0) };
    let column = |name: &str| names.iter().position(|it| *it == name).expect("the column");
    let [stopping, skipped, target] = ["stopping", "skipped", "planner.target_m.0"].map(column);
    let (mut targets, mut lost) = (vec![], 0);
    for row in rows.take_while(|row| row[stopping] == "0") {
        let number = |at: usize| row[at].parse::<f64>().expect("a number");
        targets.push([number(target), number(target + 1), number(target + 2)]);
        lost += row[skipped].parse::<u64>().expect("a number");
    }
    (targets, lost)
}

/// The greatest speed, acceleration and jerk.
fn worst(targets: Vec<[f64; 3]>) -> [f64; 3] {
    let mut values = targets;
    std::array::from_fn(|_| {
        let rate = |pair: &[[f64; 3]]| -> [f64; 3] {
            std::array::from_fn(|axis| (pair[1][axis] - pair[0][axis]) / PERIOD_S)
        };
        values = values.windows(2).map(rate).collect();
        let length = |value: &[f64; 3]| value.iter().map(|part| part * part).sum::<f64>().sqrt();
        values.iter().map(length).fold(0.0, f64::max)
    })
}

#[test]
fn a_process_that_stands_still_makes_no_jump_of_the_command() {
    let csv = folder("lost_cycles").join("run.csv");
    let running =
        Running::arm(&["--csv", &csv.display().to_string(), "--set", "drives.watchdog_ms=5000"]);
    let domains = running.domains(2);
    let moves = |at: &[[f64; 3]]| at.first() != at.last();
    wait_until("the arm moves", || {
        assert!(is_alive(domains[0]), "the run ended before the arm moved");
        moves(&targets(&csv).0)
    });
    for round in 0..12 {
        // 30 to 140 ms, each of the two: six and more of their cycles.
        let pid = domains[round % 2];
        assert!(is_alive(pid), "the run ended in round {round}");
        send(pid, Signal::STOP);
        sleep(Duration::from_millis(30 + 10 * round as u64));
        send(pid, Signal::CONT);
        sleep(Duration::from_millis(300));
    }
    running.signal(Signal::INT);
    running.answer().ended_with(0);
    let (targets, lost) = targets(&csv);
    assert!(moves(&targets) && lost > 30, "{lost} periods were lost");
    let found = worst(targets);
    for (found, bound) in found.into_iter().zip(BOUNDS) {
        assert!(found <= bound * TOLERANCE, "{found} of {bound}");
    }
}
