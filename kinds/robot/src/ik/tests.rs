//! What `ik` writes and refuses.

use super::*;
use crate::testing::{fixture, graph};

fn ik(given: &[(&str, &str)]) -> Result<sinew_core::NodeFixture, Fault> {
    let mut given = given.to_vec();
    given.push(("arm", "irb120.urdf"));
    fixture(&NODE, &graph(), &given)
}

fn target(joints_deg: [f64; 6], sequence: u64) -> CartesianTarget {
    let margins = super::super::kinematics::Margins { angle_rad: 0.01, shoulder_m: 0.001 };
    let solver = arm::read(&graph().join("irb120.urdf"), margins).expect("the arm");
    let mut target = CartesianTarget { sequence, ..CartesianTarget::default() };
    target.set_pose(&solver.forward(&arm::joints_rad(&joints_deg)));
    target
}

#[test]
fn targets_near_home_become_joints_and_speeds() {
    let mut ik = ik(&[]).expect("makes");
    ik.put(IN, &target([0.0, 0.0, 0.0, 0.0, 90.0, 0.0], 1));
    ik.update().expect("home");
    ik.put(IN, &target([0.1, -0.1, 0.05, 0.2, 90.1, -0.3], 2));
    ik.update().expect("a small step");
    let joints = ik.get::<JointTargets>(OUT).expect("sends");
    let expected = [0.1f64, -0.1, 0.05, 0.2, 90.1, -0.3].map(f64::to_radians);
    for (i, expected) in expected.into_iter().enumerate() {
        assert!((joints.position_rad[i] - expected).abs() < 1e-9, "joint {i}: {joints:?}");
    }
    let speed = 0.2f64.to_radians() / 1e-3;
    assert!((joints.velocity_rad_per_s[3] - speed).abs() < 1e-6);
    assert_eq!(joints.sequence, 2);
}

#[test]
fn a_step_faster_than_a_joint_is_a_fault_and_nothing_is_sent() {
    let mut ik = ik(&[]).expect("makes");
    ik.put(IN, &target([2.0, 0.0, 0.0, 0.0, 90.0, 0.0], 1));
    let fault = ik.update().expect_err("2 deg in 1 ms");
    assert_eq!(
        fault.text(),
        "joint 1 would turn at 2000.0 deg/s, its limit is 250.0 deg/s; lower the path \
         speed"
    );
    assert_eq!(ik.get::<JointTargets>(OUT), None);
}

#[test]
fn a_target_out_of_reach_is_a_fault() {
    let mut ik = ik(&[]).expect("makes");
    let mut far = target([0.0, 0.0, 0.0, 0.0, 90.0, 0.0], 1);
    far.position_m = [1.0, 0.0, 0.5];
    ik.put(IN, &far);
    let fault = ik.update().expect_err("1 m away");
    assert!(fault.text().contains("out of reach: wrist centre 1.0390 m"), "{fault}");
    assert!(fault.text().contains("0.0400 to 0.5800 m"), "{fault}");
    assert_eq!(ik.get::<JointTargets>(OUT), None);
}

#[test]
fn a_target_without_a_rotation_is_a_fault() {
    for (orientation_xyzw, length) in
        [([0.0; 4], "0.000"), ([0.0, 0.0, 0.0, 1.2], "1.200"), ([f64::NAN; 4], "NaN")]
    {
        let mut ik = ik(&[]).expect("makes");
        let home = target([0.0, 0.0, 0.0, 0.0, 90.0, 0.0], 1);
        ik.put(IN, &CartesianTarget { orientation_xyzw, ..home });
        let fault = ik.update().expect_err("no rotation");
        assert_eq!(
            fault.text(),
            format!(
                "the target's orientation is no rotation: the quaternion has length {length}, \
                 expected 1 within 0.1; send a unit quaternion x, y, z, w"
            )
        );
        assert_eq!(ik.get::<JointTargets>(OUT), None);
    }
    // Rounded figures are one.
    let mut ik = ik(&[]).expect("makes");
    let mut home = target([0.0, 0.0, 0.0, 0.0, 90.0, 0.0], 1);
    home.orientation_xyzw = home.orientation_xyzw.map(|part| part * 0.99);
    ik.put(IN, &home);
    ik.update().expect("a rotation");
}

#[test]
fn a_target_outside_the_floor_or_the_box_is_a_fault() {
    for (given, text) in [
        (("floor_mm", "557.9"), "below the floor: z is 557.500 mm, floor_mm says 557.900"),
        (("box_max_mm", "[302.1, 900, 900]"), "beyond the box: x is 302.500 mm, box_max_mm says"),
    ] {
        let mut ik = ik(&[given]).expect("makes");
        let mut low = target([0.0, 0.0, 0.0, 0.0, 90.0, 0.0], 1);
        let [x, y, z] = low.position_m;
        low.position_m = [x + 0.5e-3, y, z - 0.5e-3];
        ik.put(IN, &low);
        let fault = ik.update().expect_err("half a millimetre outside");
        assert!(fault.text().starts_with("0.400 mm "), "{fault}");
        assert!(fault.text().contains(text), "{fault}");
        assert_eq!(ik.get::<JointTargets>(OUT), None);
    }
}

#[test]
fn of_a_limit_and_a_speed_the_limit_is_told() {
    let mut ik = ik(&[]).expect("makes");
    // Joint 1 would have to jump, and joint 3 would be beyond its limit.
    ik.put(IN, &target([2.0, 0.0, 70.5, 0.0, 90.0, 0.0], 1));
    let fault = ik.update().expect_err("beyond the limit");
    assert!(fault.text().starts_with("joint 3 would stand at 70.50 deg"), "{fault}");
}

#[test]
fn without_a_new_target_nothing_is_sent() {
    let mut ik = ik(&[]).expect("makes");
    ik.update().expect("nothing to do");
    assert_eq!(ik.get::<JointTargets>(OUT), None);
}

#[test]
fn a_home_where_the_arm_may_not_stand_is_refused() {
    let straight = ik(&[("home_deg", "[0, 0, 0, 0, 1, 0]")]).err().expect("a straight wrist");
    assert!(straight.text().starts_with("home_deg: wrist singularity: joint 5"), "{straight}");
    let beyond = ik(&[("home_deg", "[0, 0, 75, 0, 30, 0]")]).err().expect("joint 3 at 75 deg");
    assert!(beyond.text().contains("joint 3 would stand at 75.00 deg"), "{beyond}");
    assert!(beyond.text().contains("-110.00 to 70.00 deg"), "{beyond}");
}
