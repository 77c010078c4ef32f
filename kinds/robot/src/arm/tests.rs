//! The arm of the example, and files that are refused.

use std::path::PathBuf;

use super::*;

const MARGINS: Margins = Margins { angle_rad: 0.1, shoulder_m: 0.05 };

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm/irb120.urdf")
}

fn text() -> String {
    std::fs::read_to_string(file()).expect("the file is there")
}

fn parse(text: &str) -> Result<Solver, Fault> {
    of_text(text, MARGINS).map(|(_, solver)| solver)
}

/// The error for the example's arm with one change.
fn changed(from: &str, to: &str) -> String {
    let text = text();
    assert!(text.contains(from), "{from}");
    let fault = parse(&text.replacen(from, to, 1)).expect_err("does not fit");
    fault.text().to_owned()
}

#[test]
fn the_example_is_the_arm_that_the_library_knows() {
    let robot = urdf_rs::read_from_string(&text()).expect("a URDF");
    let ours = KinematicChain::of(&robot).expect("a chain").geometry().expect("fits");
    let theirs = Geometry::irb120_3_58();
    let lengths = |g: &Geometry| [g.a1, g.a2, g.b, g.c1, g.c2, g.c3, g.c4];
    for (our, their) in lengths(&ours).into_iter().zip(lengths(&theirs)) {
        assert!((our - their).abs() < 1e-12, "{ours:?}");
    }
    for (our, their) in ours.offsets.into_iter().zip(theirs.offsets) {
        assert!((our - their).abs() < 1e-12, "{ours:?}");
    }
    assert_eq!(ours.sign_corrections, theirs.sign_corrections);
}

#[test]
fn limits_are_those_of_the_maker() {
    let robot = urdf_rs::read_from_string(&text()).expect("a URDF");
    let limits = KinematicChain::of(&robot).expect("a chain").limits;
    let deg = |rad: f64| (rad.to_degrees() * 1e6).round() / 1e6;
    assert_eq!(limits.map(|l| deg(l.min_rad)), [-165.0, -110.0, -110.0, -160.0, -120.0, -400.0]);
    assert_eq!(limits.map(|l| deg(l.max_rad)), [165.0, 110.0, 70.0, 160.0, 120.0, 400.0]);
    let speeds = limits.map(|l| deg(l.speed_max_rad_per_s));
    assert_eq!(speeds, [250.0, 250.0, 250.0, 320.0, 320.0, 420.0]);
}

#[test]
fn an_axis_may_turn_the_other_way() {
    let text = text().replacen(r#"<axis xyz="0 1 0"/>"#, r#"<axis xyz="0 -1 0"/>"#, 2);
    let turned = parse(&text).expect("fits");
    let plain = read(&file(), MARGINS).expect("fits");
    let joints = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
    let mirrored = [0.1, -0.2, -0.3, 0.4, 0.5, 0.6];
    let apart = plain.forward(&joints).translation - turned.forward(&mirrored).translation;
    assert!(apart.length() < 1e-12);
}

#[test]
fn what_does_not_fit_is_named() {
    let wrist = changed(r#"<origin xyz="0.072 0 0""#, r#"<origin xyz="0.072 0.01 0""#);
    assert!(wrist.starts_with("axis 6 passes the wrist centre at 0.010000 m"), "{wrist}");
    let base = changed(r#"<axis xyz="0 0 1"/>"#, r#"<axis xyz="0 1 0"/>"#);
    assert!(base.starts_with("axis 1 is not parallel to z"), "{base}");
    let elbow = changed(r#"<axis xyz="0 1 0"/>"#, r#"<axis xyz="1 0 0"/>"#);
    assert!(elbow.starts_with("axis 2 is not parallel to y"), "{elbow}");
    let tilted = changed(r#"rpy="0 1.5707963267948966 0""#, r#"rpy="0 1.2 0""#);
    assert!(tilted.contains("and the six-axis model differ by"), "{tilted}");
    let five = changed(
        r#"<joint name="joint_6" type="revolute">"#,
        r#"<joint name="joint_6" type="fixed">"#,
    );
    assert_eq!(five, "has 5 revolute joints in its chain; expected 6");
    let slide = changed(r#"type="revolute""#, r#"type="prismatic""#);
    assert_eq!(slide, "joint 'joint_1' is Prismatic; expected Revolute or Fixed");
    let fork = changed(r#"<parent link="link_2"/>"#, r#"<parent link="link_1"/>"#);
    assert!(fork.starts_with("link 'link_1' carries joints 'joint_2' and 'joint_3'"), "{fork}");
    let still = changed(r#"velocity="4.3633231299858233""#, r#"velocity="0""#);
    assert!(still.starts_with("joint 'joint_1' has limits"), "{still}");
    let lost = changed(r#"<child link="link_6"/>"#, r#"<child link="nothing"/>"#);
    assert!(lost.contains("has no such child") || lost.contains("is not a URDF"), "{lost}");
    let ring = changed(r#"<parent link="base_link"/>"#, r#"<parent link="tool0"/>"#);
    assert!(ring.contains("ring") || ring.contains("revolute joints"), "{ring}");
}

#[test]
fn files_that_are_no_arm_are_refused() {
    let missing = read(Path::new("nowhere/arm.urdf"), MARGINS).expect_err("is not there");
    assert!(missing.text().starts_with("nowhere/arm.urdf: "), "{missing}");
    for text in ["", "no xml", "<robot", "<robot name='x'></robot>", "<a><b/></a>"] {
        assert!(parse(text).is_err(), "{text}");
    }
}
