//! One axis: which target it follows, where it stops, and which torque it can exert.

use fastrand::Rng;
use sinew_ethercat::cia402::control;

use super::*;

const PERIOD_S: f64 = 1e-3;

const PHYSICS: Physics = Physics {
    inertia_kg_m2: 0.5,
    friction_n_m_s_per_rad: 2.0,
    torque_max_n_m: 50.0,
    brake_torque_n_m: 30.0,
    quick_stop_rad_per_s2: 20.0,
    following_rad: 0.05,
    counts_per_rad: 1e6,
};

fn send(axis: &mut Axis, control: u16, target_rad: f64) {
    let target_counts = (target_rad * axis.physics.counts_per_rad).round() as i32;
    axis.command(&Command { control, mode: CYCLIC_SYNCHRONOUS_POSITION, target_counts });
    axis.pass(PERIOD_S);
}

fn enabled() -> Axis {
    let mut axis = Axis::new(PHYSICS, 0.25);
    for control in [0, control::SHUTDOWN, control::SWITCH_ON, control::ENABLE_OPERATION] {
        assert!(axis.brake_closed());
        send(&mut axis, control, 0.25);
    }
    assert_eq!(axis.state, DriveState::OperationEnabled);
    assert!(!axis.brake_closed());
    axis
}

/// An axis that moves at 1 rad/s.
fn moving() -> Axis {
    let mut axis = enabled();
    let mut target = 0.25;
    for cycle in 0..300 {
        target += PERIOD_S * (f64::from(cycle) / 100.0).min(1.0);
        send(&mut axis, control::ENABLE_OPERATION, target);
    }
    assert!((axis.velocity_rad_per_s - 1.0).abs() < 1e-3, "{}", axis.velocity_rad_per_s);
    axis
}

#[test]
fn a_smooth_target_is_followed_closely() {
    let mut axis = enabled();
    let mut worst: f64 = 0.0;
    for cycle in 0..2_000 {
        let time = f64::from(cycle) * PERIOD_S;
        let target = 0.25 + 0.1 * (1.0 - (3.0 * time).cos());
        send(&mut axis, control::ENABLE_OPERATION, target);
        worst = worst.max((axis.position_rad - target).abs());
    }
    assert!(worst < 5e-5, "{worst} rad");
}

#[test]
fn torque_never_exceeds_its_limit() {
    let mut axis = enabled();
    send(&mut axis, control::ENABLE_OPERATION, 0.29);
    let mut reached: f64 = 0.0;
    for _ in 0..500 {
        let before = axis.velocity_rad_per_s;
        send(&mut axis, control::ENABLE_OPERATION, 0.29);
        reached = reached.max(axis.torque_n_m.abs());
        let acceleration = (axis.velocity_rad_per_s - before).abs() / PERIOD_S;
        let limit = PHYSICS.torque_max_n_m + PHYSICS.friction_n_m_s_per_rad * before.abs() + 1.0;
        assert!(acceleration <= limit / PHYSICS.inertia_kg_m2, "{acceleration} rad/s2");
    }
    assert_eq!(reached, PHYSICS.torque_max_n_m);
    assert!((axis.position_rad - 0.29).abs() < 1e-4, "{}", axis.position_rad);
}

#[test]
fn a_target_beyond_the_following_window_is_a_fault_that_ends_behind_the_brake() {
    let mut axis = enabled();
    send(&mut axis, control::ENABLE_OPERATION, 0.5);
    assert_eq!(axis.state, DriveState::FaultReactionActive);
    for _ in 0..1_000 {
        send(&mut axis, control::ENABLE_OPERATION, 0.5);
    }
    assert_eq!(axis.state, DriveState::Fault);
    assert!(axis.at_rest());
    send(&mut axis, control::FAULT_RESET, 0.5);
    assert_eq!(axis.state, DriveState::SwitchOnDisabled);
}

#[test]
fn a_path_of_which_every_second_target_is_lost_is_followed() {
    let mut axis = moving();
    let (mut target, mut worst) = (axis.target_rad, 0.0_f64);
    for period in 0..1_000 {
        target += PERIOD_S;
        if period % 2 == 0 {
            axis.pass(PERIOD_S);
        } else {
            send(&mut axis, control::ENABLE_OPERATION, target);
        }
        worst = worst.max((axis.position_rad - target).abs());
    }
    assert!(worst < 1e-4, "{worst} rad");
    // After more than one lost frame it holds the last target.
    (0..300).for_each(|_| axis.pass(PERIOD_S));
    let way = axis.position_rad - target;
    assert!((way - PERIOD_S).abs() < 1e-5, "{way} rad beyond the last target");
}

/// The states of an axis, one for each period, until it has left its ramp for good.
fn states_until_rest(axis: &mut Axis, control: u16) -> Vec<DriveState> {
    let mut states = vec![axis.state];
    for _ in 0..300 {
        send(axis, control, 0.5);
        if states.last() != Some(&axis.state) {
            states.push(axis.state);
        }
    }
    states
}

#[test]
fn a_fault_is_shown_whenever_in_a_period_its_reaction_ends() {
    // The ramp's end falls into another part of the period for each of these speeds.
    for hundredth in 0..100 {
        let mut axis = moving();
        axis.velocity_rad_per_s *= f64::from(hundredth) / 100.0;
        axis.enter(DriveState::FaultReactionActive);
        let states = states_until_rest(&mut axis, control::ENABLE_OPERATION);
        assert_eq!(states, [DriveState::FaultReactionActive, DriveState::Fault], "{hundredth}");
        assert!(axis.at_rest());
    }
}

#[test]
fn only_a_reset_that_rises_leaves_a_fault() {
    let mut axis = moving();
    axis.enter(DriveState::FaultReactionActive);
    // The reset bit rises while the drive still brakes, and stays set.
    let states = states_until_rest(&mut axis, control::FAULT_RESET);
    assert_eq!(states, [DriveState::FaultReactionActive, DriveState::Fault]);
    for control in (0..0x80).chain(0x100..0x180) {
        send(&mut axis, control, 0.5);
        assert_eq!(axis.state, DriveState::Fault, "{control:#06x}");
    }
    axis.disable();
    assert_eq!(axis.state, DriveState::Fault, "a watchdog resets nothing");
    send(&mut axis, control::FAULT_RESET, 0.5);
    assert_eq!(axis.state, DriveState::SwitchOnDisabled);
    send(&mut axis, control::FAULT_RESET, 0.5);
    assert_eq!(axis.state, DriveState::SwitchOnDisabled);
}

#[test]
fn a_quick_stop_cannot_be_called_off() {
    let mut axis = moving();
    send(&mut axis, control::QUICK_STOP, 0.0);
    assert_eq!(axis.state, DriveState::QuickStopActive);
    let states = states_until_rest(&mut axis, control::ENABLE_OPERATION);
    assert_eq!(states, [DriveState::QuickStopActive, DriveState::SwitchOnDisabled]);
}

#[test]
fn every_ramp_of_every_motor_ends_behind_the_brake() {
    let mut random = Rng::with_seed(11);
    for round in 0..200 {
        let mut between = |min: f64, max: f64| min * (max / min).powf(random.f64());
        let (inertia_kg_m2, friction) = (between(0.01, 2.0), between(0.01, 5.0));
        let physics = Physics {
            inertia_kg_m2,
            friction_n_m_s_per_rad: friction,
            // Enough torque to keep the speed without the ramp.
            torque_max_n_m: friction + inertia_kg_m2 * between(1.0, 500.0),
            brake_torque_n_m: inertia_kg_m2 * between(5.0, 500.0),
            quick_stop_rad_per_s2: between(2.0, 200.0),
            following_rad: 10.0,
            counts_per_rad: between(1000.0, 1e8) / TAU,
        };
        for (begin, end) in [
            (DriveState::QuickStopActive, DriveState::SwitchOnDisabled),
            (DriveState::FaultReactionActive, DriveState::Fault),
        ] {
            let mut axis = Axis { physics, state: DriveState::OperationEnabled, ..moving() };
            axis.enter(begin);
            // A coarse encoder does not show motion of less than a count. Such a motor may creep
            // for seconds before it stands.
            let mut passed = 0;
            while axis.state != end && passed < 10_000 {
                axis.advance(PERIOD_S);
                passed += 1;
            }
            (0..300).for_each(|_| axis.advance(PERIOD_S));
            assert_eq!(axis.state, end, "round {round}: {axis:?}");
            assert!(axis.at_rest(), "round {round}");
        }
    }
}

#[test]
fn quick_stop_brakes_along_its_ramp_and_ends_behind_the_brake() {
    let mut axis = moving();
    let start = axis.position_rad;
    let mut cycles = 0;
    while axis.state != DriveState::SwitchOnDisabled {
        send(&mut axis, control::QUICK_STOP, 0.0);
        let target_velocity = (1.0 - 0.02 * f64::from(cycles + 1)).max(0.0);
        assert!((axis.velocity_rad_per_s - target_velocity).abs() < 0.03);
        cycles += 1;
        assert!(cycles < 200, "still in {:?}", axis.state);
    }
    let way = axis.position_rad - start;
    // v² / 2a = 25 mrad.
    assert!((way - 0.025).abs() < 0.002, "{way} rad");
    send(&mut axis, control::QUICK_STOP, 0.0);
    assert!(axis.at_rest());
}

#[test]
fn without_voltage_the_brake_stops_the_axis() {
    let mut axis = moving();
    send(&mut axis, control::DISABLE_VOLTAGE, 0.0);
    assert!(axis.brake_closed() && axis.torque_n_m == 0.0);
    // 30 N m on 0.5 kg m2: 1 rad/s is lost in 17 ms.
    for _ in 0..20 {
        axis.advance(PERIOD_S);
    }
    assert!(axis.at_rest());
    let stands = axis.position_rad;
    axis.advance(PERIOD_S);
    assert_eq!(axis.position_rad, stands);
}

#[test]
fn a_target_that_stays_away_is_held() {
    let mut axis = moving();
    let held = axis.target_rad;
    for _ in 0..500 {
        axis.advance(PERIOD_S);
    }
    assert!((axis.position_rad - held).abs() < 1e-5, "{}", axis.position_rad);
    assert_eq!(axis.state, DriveState::OperationEnabled);
}

#[test]
fn the_encoder_counts() {
    let axis = Axis::new(PHYSICS, -0.123_456_7);
    assert_eq!(axis.report().position_counts, -123_457);
    let far = Axis::new(PHYSICS, 1e9);
    assert_eq!(far.report().position_counts, i32::MAX);
}

#[test]
fn other_modes_of_operation_are_not_followed() {
    let mut axis = enabled();
    axis.command(&Command { control: control::ENABLE_OPERATION, mode: 1, target_counts: 0 });
    axis.advance(PERIOD_S);
    let report = axis.report();
    assert_eq!((report.mode, report.status & STATUS_FOLLOWS), (0, 0));
    assert!((axis.position_rad - 0.25).abs() < 1e-5);
}
