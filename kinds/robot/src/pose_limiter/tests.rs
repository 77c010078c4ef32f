//! How `pose_limiter` moves, and the inputs that it refuses.

mod joints;

use rs_opw_kinematics::glam::DQuat;

use super::motion::turn_between;
use super::*;
use crate::testing::{fixture, graph};
use crate::tuning_tests::tune;
use sinew_core::NodeFixture;

const PERIOD_S: f64 = 1e-3;

fn limiter(given: &[(&str, &str)]) -> NodeFixture {
    let given: Vec<_> = given.iter().copied().chain([("arm", "irb120.urdf")]).collect();
    fixture(&NODE, &graph(), &given).expect("makes")
}

fn sent(limiter: &NodeFixture) -> CartesianTarget {
    limiter.get::<CartesianTarget>(OUT).expect("sends every cycle")
}

/// The first target that it writes: home.
fn home(limiter: &mut NodeFixture) -> CartesianTarget {
    limiter.update().expect("a cycle");
    sent(limiter)
}

fn moved(from: &CartesianTarget, by_m: [f64; 3], turn_rad: f64, sequence: u64) -> CartesianTarget {
    let mut pose = from.pose().expect("a rotation");
    pose.translation += DVec3::from_array(by_m);
    pose.rotation = DQuat::from_rotation_z(turn_rad) * pose.rotation;
    let mut target = CartesianTarget { sequence, ..*from };
    target.set_pose(&pose);
    target
}

/// Runs until it stands, at most `most` cycles. Returns all targets on the way.
fn run(
    limiter: &mut NodeFixture,
    goal: Option<&CartesianTarget>,
    most: usize,
) -> Vec<CartesianTarget> {
    let mut all = vec![sent(limiter)];
    for _ in 0..most {
        if let Some(goal) = goal {
            limiter.put(IN, goal);
        }
        limiter.update().expect("a cycle");
        all.push(sent(limiter));
    }
    all
}

/// The greatest speed and acceleration of targets, each of place (m) and turn (rad).
fn greatest(all: &[CartesianTarget]) -> [f64; 4] {
    let steps: Vec<(DVec3, DVec3)> = all
        .windows(2)
        .map(|pair| {
            let (a, b) = (pair[0].pose().expect("a rotation"), pair[1].pose().expect("a rotation"));
            let turn = turn_between(a.rotation, b.rotation);
            ((b.translation - a.translation) / PERIOD_S, turn / PERIOD_S)
        })
        .collect();
    let mut most = [0f64; 4];
    for (place, turn) in &steps {
        most[0] = most[0].max(place.length());
        most[2] = most[2].max(turn.length());
    }
    for pair in steps.windows(2) {
        most[1] = most[1].max((pair[1].0 - pair[0].0).length() / PERIOD_S);
        most[3] = most[3].max((pair[1].1 - pair[0].1).length() / PERIOD_S);
    }
    most
}

#[test]
fn it_goes_there_as_fast_as_it_may_and_no_faster() {
    let mut limiter = limiter(&[]);
    let home = home(&mut limiter);
    let goal = moved(&home, [0.1, -0.05, -0.1], 0.5, 7);
    let all = run(&mut limiter, Some(&goal), 2000);
    let [speed, acceleration, turn_speed, turn_acceleration] = greatest(&all);
    assert!(speed > 0.49 && speed <= 0.5 + 1e-9, "{speed} m/s");
    assert!(acceleration > 4.9 && acceleration <= 5.0 + 1e-6, "{acceleration} m/s2");
    assert!(turn_speed <= 120f64.to_radians() + 1e-6, "{turn_speed} rad/s");
    assert!(turn_acceleration <= 1000f64.to_radians() + 1e-3, "{turn_acceleration} rad/s2");
    let last = all.last().expect("many").pose().expect("a rotation");
    assert!((last.translation - goal.pose().expect("a rotation").translation).length() < 1e-9);
    assert!(turn_between(last.rotation, goal.pose().expect("a rotation").rotation).length() < 1e-9);
    // It never went past the goal.
    let far = |it: &CartesianTarget| {
        (it.pose().expect("a rotation").translation - goal.pose().expect("a rotation").translation)
            .length()
    };
    assert!(all.windows(2).all(|pair| far(&pair[1]) <= far(&pair[0]) + 1e-12));
}

#[test]
fn a_goal_that_jumps_makes_no_jump() {
    let mut limiter = limiter(&[]);
    let home = home(&mut limiter);
    let mut random = fastrand::Rng::with_seed(5);
    let mut all = Vec::new();
    for sequence in 0..200 {
        let mut by = || random.f64() * 0.1 - 0.05;
        let goal = moved(&home, [by(), by(), by()], by() * 10.0, sequence);
        let cycles = random.usize(1..40);
        all.extend(run(&mut limiter, Some(&goal), cycles).into_iter().skip(1));
    }
    let [speed, acceleration, turn_speed, turn_acceleration] = greatest(&all);
    assert!(speed <= 0.5 + 1e-9 && acceleration <= 5.0 + 1e-6, "{speed} {acceleration}");
    assert!(turn_speed <= 120f64.to_radians() + 1e-6, "{turn_speed}");
    assert!(turn_acceleration <= 1000f64.to_radians() + 1e-3, "{turn_acceleration}");
}

#[test]
fn it_brakes_to_a_lower_speed_and_arrives() {
    for begun in (1..500).step_by(9) {
        let mut limiter = limiter(&[]);
        let home = home(&mut limiter);
        let goal = moved(&home, [0.1, 0.2, 0.0], 1.0, 1);
        let mut all = run(&mut limiter, Some(&goal), begun);
        let lower = [("speed_mm_per_s", "100"), ("turn_speed_deg_per_s", "30")];
        let lower = [&[("arm", "irb120.urdf")], &lower[..]].concat();
        tune(&mut limiter, &NODE, &graph(), &lower);
        let tuned = run(&mut limiter, Some(&goal), 3000);
        // It brakes from 0.5 m/s in 80 cycles, from 120 deg/s in 90.
        let [speed, _, turn_speed, _] = greatest(&tuned[91..]);
        assert!(speed <= 0.1 + 1e-9 && turn_speed <= 30f64.to_radians() + 1e-6, "{speed}");
        all.extend(&tuned[1..]);
        let [_, acceleration, _, turn_acceleration] = greatest(&all);
        assert!(acceleration <= 5.0 + 1e-6, "{acceleration}");
        assert!(turn_acceleration <= 1000f64.to_radians() + 1e-3, "{turn_acceleration}");
        let last = sent(&limiter).pose().expect("a rotation");
        assert!(last.translation.distance(goal.pose().expect("a rotation").translation) < 1e-9);
        assert!(
            turn_between(last.rotation, goal.pose().expect("a rotation").rotation).length() < 1e-9
        );
    }
}

#[test]
fn without_a_new_pose_it_brakes_and_holds() {
    let mut limiter = limiter(&[("hold_after", "20ms")]);
    let home = home(&mut limiter);
    let goal = moved(&home, [0.1, 0.0, -0.1], 0.0, 7);
    run(&mut limiter, Some(&goal), 50);
    assert!(sent(&limiter).flags & TARGET_MOVING != 0);
    // A goal is valid for 20 ms. Then it needs 100 ms to brake from 0.5 m/s.
    let all = run(&mut limiter, None, 150);
    assert!(greatest(&all)[1] <= 5.0 + 1e-6);
    let held = sent(&limiter);
    assert_eq!((held.flags & TARGET_MOVING, held.sequence), (0, 0));
    assert!(
        (held.pose().expect("a rotation").translation
            - goal.pose().expect("a rotation").translation)
            .length()
            > 0.01,
        "it is not there"
    );
    let all = run(&mut limiter, None, 50);
    assert_eq!(greatest(&all), [0.0; 4]);
    // The next good pose is taken again.
    let all = run(&mut limiter, Some(&goal), 1000);
    assert_eq!(all.last().expect("many").sequence, 7);
}

#[test]
fn what_the_arm_must_not_or_cannot_take_is_counted_and_not_taken() {
    let mut limiter = limiter(&[("floor_mm", "100")]);
    let home = home(&mut limiter);
    for wrong in [[2.0, 0.0, 0.0], [0.0, 0.0, -0.6]] {
        limiter.put(IN, &moved(&home, wrong, 0.0, 1));
        limiter.update().expect("no fault");
    }
    assert_eq!(limiter.signal(REFUSED), [2.0]);
    assert_eq!(sent(&limiter).position_m, home.position_m);
}

#[test]
fn a_pose_is_answered_once_the_target_is_near() {
    let mut limiter = limiter(&[("near_mm", "10")]);
    let home = home(&mut limiter);
    let goal = moved(&home, [0.05, 0.0, 0.0], 0.0, 9);
    let all = run(&mut limiter, Some(&goal), 500);
    for sent in &all[1..] {
        let far_m = (sent.pose().expect("a rotation").translation
            - goal.pose().expect("a rotation").translation)
            .length();
        assert_eq!(sent.sequence, if far_m <= 0.01 { 9 } else { 0 }, "{far_m}");
    }
}

#[test]
fn a_pose_is_answered_only_once_the_turn_is_near_too() {
    let mut limiter = limiter(&[("near_deg", "3")]);
    let home = home(&mut limiter);
    let goal = moved(&home, [0.005, 0.0, 0.0], 0.5, 9);
    let all = run(&mut limiter, Some(&goal), 1000);
    let (mut near, mut far) = (0, 0);
    for sent in &all[1..] {
        let here = sent.pose().expect("a rotation").rotation;
        let turn = turn_between(here, goal.pose().expect("a rotation").rotation).length();
        let is_near = turn <= 3f64.to_radians();
        assert_eq!(sent.sequence, if is_near { 9 } else { 0 }, "{turn}");
        *(if is_near { &mut near } else { &mut far }) += 1;
    }
    assert!(near > 100 && far > 100, "{near} {far}");
}
