//! How `twist_limiter` drives, against numerical differences and against Ruckig, and the inputs
//! that it refuses.

use std::path::Path;

use rsruckig::prelude::{
    ControlInterface, DataArrayOrVec, InputParameter, Ruckig, ThrowErrorHandler, Trajectory,
};

use super::*;
use crate::testing::fixture;
use crate::tuning_tests::tune;
use sinew_core::NodeFixture;

const PERIOD_S: f64 = 1e-3;

/// Limits of speed, acceleration and jerk.
type Bounds = [f64; 3];

const MOVEMENT: Bounds = [0.5, 1.0, 10.0];
const TURN: Bounds = [1.0, 2.0, 20.0];

fn limiter(given: &[(&str, &str)]) -> NodeFixture {
    fixture(&NODE, Path::new("."), given).expect("makes")
}

/// A limiter with these limits of its movement, and the usual limits of its turn.
fn limiter_of(bounds: Bounds) -> NodeFixture {
    let [speed, acceleration, jerk] = bounds.map(|it| it.to_string());
    limiter(&[
        ("speed_m_per_s", &speed),
        ("acceleration_m_per_s2", &acceleration),
        ("jerk_m_per_s3", &jerk),
    ])
}

fn target(linear_m_per_s: [f64; 3], angular_rad_per_s: [f64; 3]) -> TwistTarget {
    TwistTarget { linear_m_per_s, angular_rad_per_s }
}

/// The outputs of `cycles` cycles.
fn run(limiter: &mut NodeFixture, goal: Option<&TwistTarget>, cycles: usize) -> Vec<TwistTarget> {
    let cycle = |_| {
        if let Some(goal) = goal {
            limiter.put(IN, goal);
        }
        limiter.update().expect("a cycle");
        limiter.get::<TwistTarget>(OUT).expect("it says so every cycle")
    };
    (0..cycles).map(cycle).collect()
}

/// The greatest speed, acceleration and jerk of a sequence of speeds that begins at rest.
fn greatest(speeds: impl Iterator<Item = [f64; 3]>) -> Bounds {
    let (mut speed, mut acceleration) = (DVec3::ZERO, DVec3::ZERO);
    let mut most = [0f64; 3];
    for next in speeds.map(DVec3::from_array) {
        let next_acceleration = (next - speed) / PERIOD_S;
        let jerk = (next_acceleration - acceleration) / PERIOD_S;
        (speed, acceleration) = (next, next_acceleration);
        for (most, it) in most.iter_mut().zip([speed, acceleration, jerk]) {
            *most = most.max(it.length());
        }
    }
    most
}

/// Checks that no figure is past its limit by more than rounding. Each difference makes the
/// rounding a thousand times larger.
#[track_caller]
fn keeps(most: Bounds, bounds: Bounds) {
    for ((most, bound), rounding) in most.iter().zip(bounds).zip([1e-9, 1e-8, 1e-5]) {
        assert!(*most <= bound * (1.0 + rounding), "{most:?} with limits {bounds:?}");
    }
}

#[test]
fn it_gets_there_as_fast_as_it_may_and_no_faster() {
    let mut limiter = limiter(&[]);
    let goal = target([0.3, -0.4, 0.0], [0.0, 0.0, 5.0]);
    let all = run(&mut limiter, Some(&goal), 700);
    let movement = greatest(all.iter().map(|it| it.linear_m_per_s));
    keeps(movement, MOVEMENT);
    assert!(movement[1] > 0.99 && movement[2] > 9.9, "it takes what it may: {movement:?}");
    keeps(greatest(all.iter().map(|it| it.angular_rad_per_s)), TURN);
    let last = all.last().expect("many");
    assert!(DVec3::from(last.linear_m_per_s).distance([0.3, -0.4, 0.0].into()) < 1e-12);
    assert!((last.angular_rad_per_s[2] - 1.0).abs() < 1e-9, "as fast as it may: {last:?}");
    let speeds =
        all.windows(2).map(|it| [0, 1].map(|i| DVec3::from(it[i].linear_m_per_s).length()));
    let mut falls = speeds.filter(|[before, now]| *now < before - 1e-12);
    assert_eq!(falls.next(), None, "it never slows down, nor goes past the target");
}

/// Targets that jump in all directions, cease, and ask for too much.
#[test]
fn no_target_makes_it_leave_its_limits() {
    let mut random = fastrand::Rng::with_seed(21);
    let jerks =
        [(0.5, 0.3, 0.5), MOVEMENT.into(), (2.0, 8.0, 1e4), (1.0, 1e6, 1e6), (10.0, 1.0, 1e6)];
    for (speed, acceleration, jerk) in jerks {
        let bounds = [speed, acceleration, jerk];
        let mut limiter = limiter_of(bounds);
        let mut all = Vec::new();
        for _ in 0..300 {
            let size = if random.u8(..4) == 0 { 1e3 } else { 1.5 };
            let mut vector = |most: f64| [(); 3].map(|()| (random.f64() * 2.0 - 1.0) * most * size);
            let goal = target(vector(speed), vector(1.0));
            let goal = (random.u8(..5) > 0).then_some(&goal);
            let cycles = random.usize(1..400);
            all.extend(run(&mut limiter, goal, cycles));
        }
        keeps(greatest(all.iter().map(|it| it.linear_m_per_s)), bounds);
        keeps(greatest(all.iter().map(|it| it.angular_rad_per_s)), TURN);
        let goal = target([0.1, 0.2, -0.1], [0.0; 3]);
        let last = run(&mut limiter, Some(&goal), 40_000).pop().expect("many");
        let behind = DVec3::from(last.linear_m_per_s).distance(goal.linear_m_per_s.into());
        assert!(behind < 1e-9, "in the end it does as it is told: {last:?} with {bounds:?}");
    }
}

/// The least time in which Ruckig, whose profiles are optimal, changes a speed and an acceleration
/// into another speed with zero acceleration.
fn least_s(speed: f64, acceleration: f64, goal: f64) -> f64 {
    let mut input = InputParameter::<1>::new(None);
    input.control_interface = ControlInterface::Velocity;
    input.current_velocity = DataArrayOrVec::Stack([speed]);
    input.current_acceleration = DataArrayOrVec::Stack([acceleration]);
    input.target_velocity = DataArrayOrVec::Stack([goal]);
    input.max_acceleration = DataArrayOrVec::Stack([MOVEMENT[1]]);
    input.max_jerk = DataArrayOrVec::Stack([MOVEMENT[2]]);
    let mut profile = Trajectory::<1>::new(None);
    let mut ruckig = Ruckig::<1, ThrowErrorHandler>::new(None, PERIOD_S);
    ruckig.calculate(&input, &mut profile).expect("a profile");
    profile.duration
}

#[test]
fn it_is_as_quick_as_ruckig() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut limiter = limiter(&[]);
    for _ in 0..200 {
        // A new target comes while it is on its way to another one.
        let [first, speed] = [(); 2].map(|()| random.f64() - 0.5);
        let goal = |speed| target([speed, 0.0, 0.0], [0.0; 3]);
        let begun = run(&mut limiter, Some(&goal(first)), random.usize(2..600));
        let [.., before, now] = &begun[..] else { panic!("two cycles or more") };
        let [before, now] = [before, now].map(|it| it.linear_m_per_s[0]);
        let least = least_s(now, (now - before) / PERIOD_S, speed) / PERIOD_S;
        let all = run(&mut limiter, Some(&goal(speed)), 2000);
        let is_there = |it: &TwistTarget| (it.linear_m_per_s[0] - speed).abs() < 1e-12;
        let cycles = all.iter().rposition(|it| !is_there(it)).map_or(0, |at| at + 1);
        // Ruckig can change the acceleration at any time, the limiter only from cycle to cycle.
        let off = cycles as f64 - least;
        assert!((-2.0..4.0).contains(&off), "{now} to {speed}: {cycles}, not {least} cycles");
    }
}

#[test]
fn it_comes_down_to_a_lower_limit_as_quickly_as_ruckig() {
    let goal = target([0.5, 0.0, 0.0], [0.0, 0.0, 1.0]);
    for begun in (3..900).step_by(7) {
        let mut limiter = limiter(&[]);
        let mut all = run(&mut limiter, Some(&goal), begun);
        let [before, now] = [&all[begun - 2], &all[begun - 1]].map(|it| it.linear_m_per_s[0]);
        // The mean, as if the acceleration had changed linearly since the cycle before.
        let least = least_s(f64::midpoint(before, now), (now - before) / PERIOD_S, 0.2) / PERIOD_S;
        let lower = [("speed_m_per_s", "0.2"), ("turn_speed_rad_per_s", "0.4")];
        tune(&mut limiter, &NODE, Path::new("."), &lower);
        let tuned = run(&mut limiter, Some(&goal), 1000);
        let is_there = |it: &TwistTarget| it.linear_m_per_s == [0.2, 0.0, 0.0];
        let cycles = tuned.iter().rposition(|it| !is_there(it)).map_or(0, |at| at + 1);
        let off = cycles as f64 - least;
        assert!((-3.0..4.0).contains(&off), "{now} m/s: {cycles}, not {least} cycles");
        assert_eq!(tuned[999].angular_rad_per_s, [0.0, 0.0, 0.4]);
        all.extend(tuned);
        keeps(greatest(all.iter().map(|it| it.linear_m_per_s)), MOVEMENT);
        keeps(greatest(all.iter().map(|it| it.angular_rad_per_s)), TURN);
    }
}

#[test]
fn limits_that_change_in_any_motion_bump_nothing() {
    let mut random = fastrand::Rng::with_seed(8);
    let mut limiter = limiter(&[]);
    let (mut speed, mut acceleration) = (DVec3::ZERO, DVec3::ZERO);
    for _ in 0..400 {
        let bounds = MOVEMENT.map(|it| it * 10f64.powf(random.f64() - 0.5));
        let [speed_max, acceleration_max, jerk_max] = bounds;
        let given = bounds.map(|it| it.to_string());
        let names = ["speed_m_per_s", "acceleration_m_per_s2", "jerk_m_per_s3"];
        let given: Vec<_> = names.into_iter().zip(given.iter().map(String::as_str)).collect();
        assert_eq!(tune(&mut limiter, &NODE, Path::new("."), &given), 0);
        let goal = target([(); 3].map(|()| random.f64() * 2.0 - 1.0), [0.0; 3]);
        let most = acceleration.length().max(acceleration_max);
        let most_cycles = if random.bool() { 100 } else { 5000 };
        let cycles = random.usize(1..most_cycles);
        for (at, next) in run(&mut limiter, Some(&goal), cycles).iter().enumerate() {
            let next = DVec3::from(next.linear_m_per_s);
            let next_acceleration = (next - speed) / PERIOD_S;
            let jerk = (next_acceleration - acceleration).length() / PERIOD_S;
            (speed, acceleration) = (next, next_acceleration);
            assert!(jerk <= jerk_max * (1.0 + 1e-6), "{jerk} with {bounds:?}");
            assert!(acceleration.length() <= most * (1.0 + 1e-7), "{acceleration} of {most}");
            assert!(at < 4000 || speed.length() <= speed_max * (1.0 + 1e-8), "{speed} {bounds:?}");
        }
    }
}

#[test]
fn without_a_new_target_it_brakes_until_it_stands() {
    let mut limiter = limiter(&[("brake_after", "20ms")]);
    let goal = target([0.5, 0.0, 0.0], [0.0, 0.0, 1.0]);
    let mut all = run(&mut limiter, Some(&goal), 1000);
    assert_eq!(limiter.signal(BRAKES), [0.0]);
    all.extend(run(&mut limiter, None, 19));
    assert_eq!(all.last(), all.get(999), "the target lasts for 20 ms");
    // It takes 0.5 s to brake from 0.5 m/s, and 0.1 s in which the acceleration rises and falls.
    all.extend(run(&mut limiter, None, 610));
    keeps(greatest(all.iter().map(|it| it.linear_m_per_s)), MOVEMENT);
    keeps(greatest(all.iter().map(|it| it.angular_rad_per_s)), TURN);
    assert_eq!(
        (all.last(), limiter.signal(BRAKES)),
        (Some(&target([0.0; 3], [0.0; 3])), &[1.0][..])
    );
    let again = run(&mut limiter, Some(&goal), 700);
    assert!((again[699].linear_m_per_s[0] - 0.5).abs() < 1e-9, "it is told again");

    limiter.cycle.stopping = true;
    let stopped = run(&mut limiter, Some(&goal), 610);
    assert_eq!(stopped.last(), Some(&target([0.0; 3], [0.0; 3])), "while the graph stops");
}

#[test]
fn periods_that_were_lost_count_as_silence() {
    let mut limiter = limiter(&[]);
    let goal = target([0.5, 0.0, 0.0], [0.0; 3]);
    run(&mut limiter, Some(&goal), 1);
    limiter.cycle.skipped = 198;
    run(&mut limiter, None, 1);
    assert_eq!(limiter.signal(BRAKES), [0.0], "199 ms");
    limiter.cycle.skipped = 1;
    run(&mut limiter, None, 1);
    assert_eq!(limiter.signal(BRAKES), [1.0], "201 ms");
}

#[test]
fn what_nothing_can_be_is_counted_and_not_taken() {
    let mut limiter = limiter(&[("brake_after", "20ms")]);
    let good = target([0.25, 0.0, 0.0], [0.0; 3]);
    run(&mut limiter, Some(&good), 1000);
    for wrong in [f64::NAN, f64::INFINITY, -1e200] {
        run(&mut limiter, Some(&target([0.0, wrong, 0.0], [0.0; 3])), 1);
        run(&mut limiter, Some(&target([0.0; 3], [0.0, 0.0, wrong])), 1);
    }
    assert_eq!((limiter.signal(REFUSED), limiter.signal(BRAKES)), (&[6.0][..], &[0.0][..]));
    // A wrong target does not prove that the sender is still there.
    let wrong = target([f64::NAN; 3], [0.0; 3]);
    let last = run(&mut limiter, Some(&wrong), 600).pop().expect("many");
    assert_eq!((last, limiter.signal(BRAKES)), (target([0.0; 3], [0.0; 3]), &[1.0][..]));
}
