//! The whole loop: planner, ik, master, drives.

mod support;

use sinew_runtime::Fixture;
use support::{Arm, entry};

/// Far more cycles than any path here needs.
const CYCLES_MAX: u64 = 60_000;

fn signal(fixture: &Fixture, kind: &str, name: &str) -> f64 {
    let at = entry(kind).kind.signals.iter().position(|signal| signal.name == name);
    fixture.signal(at.expect("the signal"))[0]
}

struct Trip {
    cycles: u64,
    tracking_error_m_max: f64,
}

fn run(arm: &mut Arm) -> Trip {
    let mut trip = Trip { cycles: 0, tracking_error_m_max: 0.0 };
    while !arm.is_finished() {
        arm.cycle().unwrap_or_else(|fault| panic!("cycle {}: {fault}", trip.cycles));
        let error_m = signal(&arm.planner, "path_planner", "tracking_error_m");
        trip.tracking_error_m_max = trip.tracking_error_m_max.max(error_m);
        trip.cycles += 1;
        assert!(trip.cycles < CYCLES_MAX, "does not finish");
    }
    trip
}

#[test]
fn the_arm_follows_the_square_and_finishes() {
    let mut arm = Arm::new(&[("path", "square.csv"), ("laps", "2")], &[]).expect("makes");
    let trip = run(&mut arm);
    assert!(trip.tracking_error_m_max < 0.1e-3, "{} m", trip.tracking_error_m_max);
}

#[test]
fn the_arm_follows_g_code_and_finishes() {
    let given = [("path", "plate.gcode"), ("work_origin_mm", "[290, -40, 340]")];
    let mut arm = Arm::new(&given, &[]).expect("makes");
    let trip = run(&mut arm);
    assert!(trip.tracking_error_m_max < 0.1e-3, "{} m", trip.tracking_error_m_max);
}
