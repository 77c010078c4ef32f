//! Cycles that are lost while the arm moves, because one of its processes is stopped. What was
//! commanded meanwhile is checked by differences between the rows that `--csv` wrote.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::program::{Running, folder, is_alive, send, wait_until};

/// The period in `calm.yaml`.
const PERIOD_S: f64 = 5e-3;
/// Speed, acceleration and jerk, as in the planner's defaults, in m.
const BOUNDS: [f64; 3] = [0.25, 2.0, 20.0];
/// Factor by which a difference over a cycle may exceed the bound.
const TOLERANCE: f64 = 1.002;

/// Periods in a row that may be lost without the path slowing down: `SILENT_MAX` of the planner.
const LOST_MAX: u64 = 2;

/// The commands before the stop.
#[derive(Default)]
struct Commanded {
    /// The targets, one period apart. A stretch ends where the controller lost more periods than
    /// allowed, or where a row is missing.
    stretches: Vec<Vec<[f64; 3]>>,
    lost: u64,
    /// Of these, the periods that were lost in a row up to the last row.
    in_a_row: u64,
}

impl Commanded {
    fn read(csv: &Path) -> Commanded {
        let text = fs::read_to_string(csv).unwrap_or_default();
        // The last line may be incomplete.
        let text = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let mut commanded = Commanded::default();
        let Some(names) = rows.next() else { return commanded };
        let column =
            |name: &str| names.iter().position(|it| *it == name).expect("the column is there");
        let [stopping, number] = ["stopping", "cycle"].map(column);
        let [skipped, target] = ["skipped", "planner.target_m.0"].map(column);
        let mut next = None;
        for row in rows.take_while(|row| row[stopping] == "0") {
            let whole = |at: usize| row[at].parse::<u64>().expect("a whole number");
            let place = |axis: usize| row[target + axis].parse().expect("a number");
            let follows = next == Some(whole(number));
            next = Some(whole(number) + 1);
            commanded.add(whole(skipped), follows, std::array::from_fn(place));
        }
        commanded
    }

    fn add(&mut self, skipped: u64, follows: bool, target: [f64; 3]) {
        self.lost += skipped;
        self.in_a_row = if skipped == 0 { 0 } else { self.in_a_row + skipped };
        let before = self.stretches.last().and_then(|stretch| stretch.last().copied());
        match (self.stretches.last_mut(), before) {
            (Some(stretch), _) if follows && self.in_a_row <= LOST_MAX => stretch.push(target),
            // Nothing was commanded: the machine was at rest where it had been told to be.
            (_, Some(here)) if follows => self.stretches.push(vec![here, here, here, target]),
            _ => self.stretches.push(vec![target]),
        }
    }

    fn moves(&self) -> bool {
        let mut all = self.stretches.iter().flatten();
        let first = all.next();
        all.any(|target| Some(target) != first)
    }

    /// The greatest speed, acceleration and jerk.
    fn worst(&self) -> [f64; 3] {
        let all = self.stretches.iter().map(|stretch| worst(stretch.clone()));
        all.fold([0.0; 3], |most, one| std::array::from_fn(|at| f64::max(most[at], one[at])))
    }
}

/// The greatest speed, acceleration and jerk of a stretch.
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
    wait_until("the arm moves", || {
        assert!(is_alive(domains[0]), "the run ended before the arm moved");
        Commanded::read(&csv).moves()
    });
    for round in 0..12 {
        // 30 to 140 ms, alternately for both processes: at least six of their cycles.
        let pid = domains[round % 2];
        assert!(is_alive(pid), "the run ended in round {round}");
        send(pid, Signal::STOP);
        sleep(Duration::from_millis(30 + 10 * round as u64));
        send(pid, Signal::CONT);
        sleep(Duration::from_millis(300));
    }
    running.signal(Signal::INT);
    // A busy machine may lose records. Then the status says that rows are missing in the file.
    let report = running.answer().json();
    assert_eq!(report["outcome"], "stopped", "{}", report["faults"]);
    let commanded = Commanded::read(&csv);
    assert!(commanded.moves() && commanded.lost > 30, "{} periods were lost", commanded.lost);
    for (found, bound) in commanded.worst().into_iter().zip(BOUNDS) {
        assert!(found <= bound * TOLERANCE, "{found} of {bound}, in '{}'", csv.display());
    }
}
