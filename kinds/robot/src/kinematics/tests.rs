//! The closed form against forward kinematics, and against the library's own inverse.

use std::path::Path;

use fastrand::Rng;
use rs_opw_kinematics::kinematic_traits::Kinematics;

use super::*;
use crate::arm;

const LOOSE: Margins = Margins { angle_rad: 1e-4, shoulder_m: 1e-4 };

fn irb120(margins: Margins) -> Solver {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm/irb120.urdf");
    arm::read(&file, margins).expect("the arm")
}

fn anywhere(solver: &Solver, random: &mut Rng) -> Joints {
    solver.limits.map(|limits| limits.min_rad + (limits.max_rad - limits.min_rad) * random.f64())
}

fn is_regular(solver: &Solver, joints: &Joints) -> bool {
    let margins = Margins { angle_rad: 0.02, shoulder_m: 0.005 };
    let strict = Solver { margins, ..*solver };
    let centre = solver.wrist_centre(&solver.forward(joints));
    centre.x.hypot(centre.y) > margins.shoulder_m && strict.check_stand(joints, &[0.0; 6]).is_ok()
}

/// Largest difference of angles, without whole turns.
fn difference(a: &Joints, b: &Joints) -> f64 {
    (0..6).map(|i| wrapped(a[i] - b[i]).abs()).fold(0.0, f64::max)
}

#[test]
fn every_branch_reaches_the_pose_and_one_is_where_it_came_from() {
    let solver = irb120(LOOSE);
    let mut random = Rng::with_seed(1);
    let mut tried = 0;
    for _ in 0..10_000 {
        let joints = anywhere(&solver, &mut random);
        if !is_regular(&solver, &joints) {
            continue;
        }
        tried += 1;
        let pose = solver.forward(&joints);
        let branches = solver.inverse(&pose);
        for branch in branches.as_slice() {
            let back = solver.forward(branch);
            assert!((back.translation - pose.translation).length() < 1e-9, "{joints:?} {branch:?}");
            let turn = (back.rotation.inverse() * pose.rotation).xyz().length();
            assert!(turn < 0.5e-9, "{joints:?} {branch:?}: {turn}");
        }
        let nearest =
            branches.as_slice().iter().map(|b| difference(b, &joints)).fold(f64::MAX, f64::min);
        assert!(nearest < 1e-9, "{joints:?}: {nearest}");
    }
    assert!(tried > 5_000, "{tried}");
}

#[test]
fn the_branches_are_those_of_the_library() {
    let solver = irb120(LOOSE);
    let mut random = Rng::with_seed(2);
    let mut tried = 0;
    for _ in 0..2_000 {
        let joints = anywhere(&solver, &mut random);
        if !is_regular(&solver, &joints) {
            continue;
        }
        let pose = solver.forward(&joints);
        let ours = solver.inverse(&pose);
        let theirs = solver.opw.inverse(&pose);
        assert_eq!(ours.as_slice().len(), theirs.len(), "{joints:?}");
        tried += 1;
        for their in &theirs {
            assert!(
                ours.as_slice().iter().any(|our| difference(our, their) < 1e-7),
                "{joints:?}: {their:?} is not among {:?}",
                ours.as_slice()
            );
        }
    }
    assert!(tried > 1_000, "{tried}");
}

#[test]
fn an_arm_with_shoulder_offsets_has_the_librarys_branches_too() {
    let parameters = Parameters { a1: 0.15, b: 0.03, ..Parameters::irb2400_10() };
    let free = JointLimits { min_rad: -PI, max_rad: PI, speed_max_rad_per_s: 1.0 };
    let solver = Solver::new(parameters, [free; 6], LOOSE);
    let mut random = Rng::with_seed(3);
    for _ in 0..1_000 {
        let joints = anywhere(&solver, &mut random);
        let centre = solver.wrist_centre(&solver.forward(&joints));
        if centre.x.hypot(centre.y) < 0.05 || solver.check_stand(&joints, &[0.0; 6]).is_err() {
            continue;
        }
        let pose = solver.forward(&joints);
        let ours = solver.inverse(&pose);
        for their in solver.opw.inverse(&pose) {
            let near = |our: &Joints| difference(our, &their) < 1e-6;
            assert!(ours.as_slice().iter().any(near), "{joints:?} {their:?}");
        }
    }
}

#[test]
fn following_a_way_through_joint_space_stays_on_its_branch() {
    let solver = irb120(LOOSE);
    let mut random = Rng::with_seed(4);
    for _ in 0..100 {
        let from = anywhere(&solver, &mut random);
        let to = anywhere(&solver, &mut random);
        let mut joints = from;
        for step in 0..=2_000 {
            let part = f64::from(step) / 2_000.0;
            let wanted = std::array::from_fn(|i| from[i] + (to[i] - from[i]) * part);
            if !is_regular(&solver, &wanted) {
                joints = wanted;
                continue;
            }
            joints = solver.follow(&solver.forward(&wanted), &joints, 1.0).expect("regular");
            // Not wrapped, as joint 6 turns more than once.
            let away = (0..6).map(|i| (joints[i] - wanted[i]).abs()).fold(0.0, f64::max);
            assert!(away < 1e-7, "{away} at {wanted:?}, got {joints:?}");
        }
    }
}

#[test]
fn joints_turn_further_than_once_up_to_their_limit() {
    let solver = irb120(LOOSE);
    let at = |deg: f64| [0.0, 0.0, 0.0, 0.0, 1.0, deg.to_radians()];
    let near = solver.follow(&solver.forward(&at(399.0)), &at(390.0), 10.0).expect("within");
    assert!((near[5] - 399f64.to_radians()).abs() < 1e-9, "{near:?}");
    let past = solver.follow(&solver.forward(&at(401.0)), &at(399.0), 10.0);
    assert!(matches!(past, Err(Trouble::Limit { joint: 5, .. })), "{past:?}");
}

fn trouble(joints_deg: [f64; 6], before_deg: [f64; 6]) -> String {
    let solver = irb120(Margins { angle_rad: 5f64.to_radians(), shoulder_m: 0.05 });
    let joints = arm::joints_rad(&joints_deg);
    let before = arm::joints_rad(&before_deg);
    solver.follow(&solver.forward(&joints), &before, 1e-3).expect_err("a trouble").to_string()
}

#[test]
fn troubles_name_joint_figure_and_limit() {
    let home = [0.0, 0.0, 0.0, 0.0, 90.0, 0.0];
    let near = |joints: [f64; 6]| trouble(joints, joints);
    assert_eq!(
        near([0.0, 0.0, 0.0, 0.0, 4.0, 0.0]),
        "wrist singularity: joint 5 would be 4.00 deg from straight, singularity_deg is 5.00; turn \
         the tool or move the path"
    );
    // The elbow is straight where joint 3 compensates the forearm's offset of 70 mm.
    let straight = 0.070f64.atan2(0.302).to_degrees() - 90.0;
    let elbow = near([0.0, 30.0, straight + 2.0, 0.0, 60.0, 0.0]);
    assert!(elbow.starts_with("elbow singularity: joint 3 would be 2.0"), "{elbow}");
    assert!(elbow.contains("singularity_deg is 5.00"), "{elbow}");
    let over = near([0.0, -41.0, 0.0, 0.0, 90.0, 0.0]);
    assert!(over.starts_with("shoulder singularity: wrist centre would be 0.0"), "{over}");
    assert!(over.contains("axis 1 (joint 1), shoulder_m is 0.0500"), "{over}");
    assert_eq!(
        near([0.0, 0.0, 71.0, 0.0, 60.0, 0.0]),
        "joint 3 would stand at 71.00 deg, its limits are -110.00 to 70.00 deg; move the path or \
         turn the tool"
    );
    assert_eq!(
        trouble([0.0, 0.0, 0.0, 0.5, 90.0, 0.0], home),
        "joint 4 would turn at 500.0 deg/s, its limit is 320.0 deg/s; lower the path speed"
    );
}

#[test]
fn poses_without_meaning_are_out_of_reach() {
    let solver = irb120(LOOSE);
    let mut pose = solver.forward(&[0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    pose.translation.x = f64::NAN;
    let answer = solver.follow(&pose, &[0.0; 6], 1.0);
    assert!(matches!(answer, Err(Trouble::Unreachable { .. })), "{answer:?}");
}

#[test]
fn the_branch_that_is_stayed_on_is_the_nearest_one() {
    let solver = irb120(Margins { angle_rad: 0.01, shoulder_m: 0.005 });
    let mut random = Rng::with_seed(7);
    let mut kept = 0;
    for _ in 0..10_000 {
        let from = anywhere(&solver, &mut random);
        let to = from.map(|angle| angle + 0.01 * (random.f64() - 0.5));
        let pose = solver.forward(&to);
        let (near, same) = (solver.stand(&pose, &from), solver.stay(&pose, &from));
        if is_regular(&solver, &from) && is_regular(&solver, &to) {
            let [near, same] = [near, same].map(|joints| joints.expect("stands"));
            assert!((0..6).all(|i| (near[i] - same[i]).abs() < 1e-9), "{from:?} {near:?} {same:?}");
            kept += 1;
        }
    }
    assert!(kept > 5_000, "{kept}");
}
