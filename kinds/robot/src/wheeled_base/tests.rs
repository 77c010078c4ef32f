//! How `wheeled_base` moves, against the place where it must be by geometry.

use std::f64::consts::TAU;
use std::path::Path;

use rs_opw_kinematics::glam::{DQuat, DVec3};
use zerocopy::IntoBytes;

use super::*;
use crate::testing::fixture;
use crate::tuning_tests::tune;
use sinew_core::NodeFixture;

const AHEAD: TwistTarget =
    TwistTarget { linear_m_per_s: [0.5, 0.0, 0.0], angular_rad_per_s: [0.0; 3] };

fn base() -> NodeFixture {
    fixture(&NODE, Path::new("."), &[]).expect("makes")
}

fn run(base: &mut NodeFixture, target: &TwistTarget, cycles: usize) -> BaseState {
    for _ in 0..cycles {
        base.put(IN, target);
        base.update().expect("a cycle");
    }
    base.get::<BaseState>(OUT).expect("it says so every cycle")
}

#[test]
fn it_goes_around_in_a_circle() {
    let mut base = base();
    let target = TwistTarget { angular_rad_per_s: [0.0, 0.0, 1.25], ..AHEAD };
    // Until the wheels have reached their speed.
    let begun = run(&mut base, &target, 200);
    assert_eq!(
        (begun.linear_m_per_s, begun.angular_rad_per_s),
        ([0.5, 0.0, 0.0], [0.0, 0.0, 1.25])
    );
    let [qx, qy, qz, qw] = begun.orientation_xyzw;
    let ahead = DQuat::from_xyzw(qx, qy, qz, qw) * DVec3::X;
    let centre = DVec3::from(begun.position_m) + DVec3::Z.cross(ahead) * 0.4;
    let cycles = (TAU / 1.25 / 1e-3) as usize;
    for _ in 0..cycles {
        let place = DVec3::from(run(&mut base, &target, 1).position_m);
        assert!((place.distance(centre) - 0.4).abs() < 1e-9, "its radius is v / w: {place}");
    }
    let ended = run(&mut base, &target, 0);
    let gap = DVec3::from(ended.position_m).distance(begun.position_m.into());
    assert!(gap < 0.5e-3, "once around but for a part of a cycle: {gap} m");
    let [left, right] =
        [0, 1].map(|at| ended.wheel_position_rad[at] - begun.wheel_position_rad[at]);
    // The inner wheel is 0.2 m from the centre, the outer one 0.6 m.
    assert!((right / left - 3.0).abs() < 1e-9, "{left} and {right} rad");
}

#[test]
fn other_wheels_turn_as_fast_at_first_where_it_is() {
    let mut base = base();
    let before = run(&mut base, &AHEAD, 1000);
    tune(&mut base, &NODE, Path::new("."), &[("wheel_radius_m", "0.1"), ("track_m", "0.6")]);
    let after = run(&mut base, &AHEAD, 1);
    assert_eq!(before.wheel_velocity_rad_per_s, [10.0; 2]);
    // 100 rad/s2 for 1 ms change the speed by 0.1 rad/s.
    assert!((after.wheel_velocity_rad_per_s[0] - 9.9).abs() < 1e-9, "{after:?}");
    assert!((after.position_m[0] - before.position_m[0] - 0.99e-3).abs() < 1e-9, "{after:?}");
    assert_eq!(run(&mut base, &AHEAD, 100).wheel_velocity_rad_per_s, [5.0; 2]);
}

#[test]
fn its_wheels_take_time_and_have_limits() {
    let mut base = base();
    // 100 rad/s2 at 0.05 m are 5 m/s2; 40 rad/s are 2 m/s.
    assert!((run(&mut base, &AHEAD, 10).linear_m_per_s[0] - 0.05).abs() < 1e-12);
    let far = TwistTarget { linear_m_per_s: [-100.0, 3.0, 1.0], ..AHEAD };
    let state = run(&mut base, &far, 1000);
    assert_eq!((state.linear_m_per_s, state.position_m[1]), ([-2.0, 0.0, 0.0], 0.0));
    assert!(!base.at_rest());
    let mut stand = TwistTarget::default();
    safe(IN, 0, stand.as_mut_bytes());
    for _ in 0..400 {
        base.put_safe(IN, &stand);
        base.update().expect("a cycle");
    }
    assert!(base.at_rest());
}

#[test]
fn periods_that_were_lost_are_part_of_its_way() {
    let mut base = base();
    let before = run(&mut base, &AHEAD, 500);
    base.cycle.skipped = 9;
    let after = run(&mut base, &AHEAD, 1);
    assert!((after.position_m[0] - before.position_m[0] - 0.005).abs() < 1e-12, "10 ms at 0.5 m/s");
}
