//! The whole loop: planner, ik, master, drives.

mod support;

use sinew_core::{Fault, NodeFixture};
use sinew_robot::messages::{PLANNER_CHOOSE, PLANNER_PAUSE, PLANNER_RESUME, PlannerCommand};
use support::Arm;

/// Far more cycles than any path here needs.
const CYCLES_MAX: u64 = 60_000;

fn signal<'a>(fixture: &'a NodeFixture, kind: &str, name: &str) -> &'a [f64] {
    fixture.signal(support::signal(kind, name))
}

struct Trip {
    cycles: u64,
    /// Where the flange was, according to the encoders.
    trace_m: Vec<[f64; 3]>,
}

/// Runs to the end; the tool is never far from the path.
fn run(arm: &mut Arm) -> Trip {
    let mut trip = Trip { cycles: 0, trace_m: Vec::new() };
    while !arm.is_finished() {
        arm.cycle().unwrap_or_else(|fault| panic!("cycle {}: {fault}", trip.cycles));
        let error_m = signal(&arm.planner, "path_planner", "tracking_error_m")[0];
        assert!(error_m < 0.1e-3, "cycle {}: {error_m} m", trip.cycles);
        let actual = signal(&arm.planner, "path_planner", "actual_m");
        trip.trace_m.push(actual.try_into().expect("three numbers"));
        trip.cycles += 1;
        assert!(trip.cycles < CYCLES_MAX, "does not finish");
    }
    trip
}

#[test]
fn the_arm_follows_the_square_and_finishes() {
    let mut arm = Arm::new(&[("path", "square.csv"), ("laps", "2")], &[]).expect("makes");
    let trip = run(&mut arm);
    for corner in [[275.0, -75.0], [425.0, -75.0], [425.0, 75.0], [275.0, 75.0]] {
        let away = |at: &[f64; 3]| (at[0] * 1e3 - corner[0]).hypot(at[1] * 1e3 - corner[1]);
        let nearest_mm = trip.trace_m.iter().map(away).fold(f64::MAX, f64::min);
        assert!(nearest_mm < 0.1, "{corner:?} is passed at {nearest_mm} mm");
    }
}

#[test]
fn the_arm_bears_a_machine_that_falls_silent_for_a_while() {
    let mut arm = Arm::new(&[("path", "square.csv"), ("laps", "0")], &[]).expect("makes");
    let mut worst_m: f64 = 0.0;
    let mut silent = 0;
    for number in 0..6_000 {
        // Every 500 cycles the drives do not run for a while: 1 to 40 cycles.
        arm.drives_run = number % 500 >= [1, 2, 3, 5, 8, 40, 3, 2, 1, 20, 3, 5][number / 500];
        silent += u32::from(!arm.drives_run);
        arm.cycle().unwrap_or_else(|fault| panic!("cycle {number}: {fault}"));
        worst_m = worst_m.max(signal(&arm.planner, "path_planner", "tracking_error_m")[0]);
    }
    assert!(silent > 30 && worst_m < 0.1e-3, "{worst_m} m");
}

/// The controller loses `periods` periods, in which the machine runs alone.
fn lose(arm: &mut Arm, periods: u64) -> Result<(), Fault> {
    for _ in 0..periods {
        arm.drives.update()?;
    }
    let skip = |arm: &mut Arm, periods| {
        for fixture in [&mut arm.planner, &mut arm.ik, &mut arm.master] {
            fixture.cycle.skipped = periods;
        }
    };
    skip(arm, periods);
    arm.cycle()?;
    skip(arm, 0);
    Ok(())
}

#[test]
fn the_arm_bears_a_controller_that_loses_cycles() {
    // As many lost periods as the examples bear, in one cycle or in consecutive cycles, and with
    // their limit of the following error.
    let losses = [(1, 1), (3, 1), (6, 1), (20, 1), (49, 1), (1, 5), (1, 49), (2, 2), (2, 20)];
    for path in ["square.csv", "../robot/sinew.csv"] {
        for (lost, cycles) in losses {
            let given = [("path", path), ("laps", "0"), ("following_mm", "4")];
            let mut arm = Arm::new(&given, &[]).expect("makes");
            for number in 0..10_000 {
                let loses = number % 271 >= 271 - cycles;
                let answer = if loses { lose(&mut arm, lost) } else { arm.cycle() };
                answer.unwrap_or_else(|fault| panic!("{path}, {lost} lost, {number}: {fault}"));
            }
        }
    }
}

#[test]
fn the_arm_waits_for_a_machine_that_comes_late() {
    let mut arm = Arm::new(&[("path", "square.csv")], &[]).expect("makes");
    arm.drives_run = false;
    for number in 0..1_000 {
        arm.cycle().unwrap_or_else(|fault| panic!("cycle {number}: {fault}"));
    }
    arm.drives_run = true;
    run(&mut arm);
}

#[test]
fn the_arm_follows_g_code_and_finishes() {
    let given = [("path", "plate.gcode"), ("work_origin_mm", "[290, -40, 340]")];
    let mut arm = Arm::new(&given, &[]).expect("makes");
    run(&mut arm);
}

#[test]
fn the_arm_writes_the_name_of_the_house() {
    let mut arm = Arm::new(&[("path", "../robot/sinew.csv")], &[]).expect("makes");
    let trip = run(&mut arm);
    let upright = |at: &&[f64; 3]| (at[0] - 0.4).abs() < 1e-4;
    let written: Vec<_> = trip.trace_m.iter().filter(upright).collect();
    assert!(written.len() > trip.trace_m.len() * 3 / 4, "{} of {}", written.len(), trip.cycles);
}

#[test]
fn the_arm_follows_a_pause_and_another_path() {
    let given = [
        ("path", "square.csv"),
        ("other_paths", "[plate.gcode]"),
        ("work_origin_mm", "[290, -40, 340]"),
    ];
    let mut arm = Arm::new(&given, &[]).expect("makes");
    let commands =
        [(2_000, PLANNER_PAUSE, 0), (4_000, PLANNER_RESUME, 0), (4_500, PLANNER_CHOOSE, 1)];
    let mut still = [0.0; 3];
    for cycle in 0..5_000 {
        if let Some((sequence, what, path)) = commands.iter().find(|row| row.0 == cycle) {
            arm.command(&PlannerCommand { sequence: *sequence, what: *what, path: *path });
        }
        arm.cycle().unwrap_or_else(|fault| panic!("cycle {cycle}: {fault}"));
        let target = signal(&arm.planner, "path_planner", "target_m");
        match cycle {
            3_500 => still.copy_from_slice(target),
            3_999 => assert_eq!(target, still),
            _ => {}
        }
    }
    // The run can end only on the plate, so the square was left.
    run(&mut arm);
    assert_eq!(signal(&arm.planner, "path_planner", "path"), [1.0]);
}
