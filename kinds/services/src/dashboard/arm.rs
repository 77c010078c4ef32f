//! The arm that the page draws, from its URDF.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sinew_core::{Fault, fault};
use urdf_rs::{JointType, Robot};

use super::protocol::{Arm, Joint};

/// Largest URDF that is read, bytes: far larger than any arm without meshes; a larger file is a
/// mistake.
const URDF_BYTES_MAX: u64 = 1 << 20;

/// Reads an arm.
///
/// # Errors
/// If the file cannot be read, or is not a URDF of a serial chain.
pub(super) fn read(path: &Path) -> Result<Arm, Fault> {
    let shown = path.display();
    let mut text = String::new();
    let read = File::open(path)
        .and_then(|file| file.take(URDF_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| {
            fault!("{shown}: {error}; give a URDF file in 'arm', or leave it empty")
        })?;
    if read as u64 > URDF_BYTES_MAX {
        return Err(fault!("{shown}: longer than {URDF_BYTES_MAX} bytes, the limit"));
    }
    let robot = urdf_rs::read_from_string(&text)
        .map_err(|error| fault!("{shown}: is not a URDF ({error}); expected '<robot>'"))?;
    chain(&robot).map_err(|error| fault!("{shown}: {error}"))
}

/// The joints from the base to the end, each relative to the one before it.
fn chain(robot: &Robot) -> Result<Arm, Fault> {
    let is_child = |link: &str| robot.joints.iter().any(|joint| joint.child.link == link);
    let mut roots = robot.links.iter().filter(|link| !is_child(&link.name));
    let mut link = match (roots.next(), roots.next()) {
        (Some(root), None) => root.name.as_str(),
        _ => return Err(fault!("expected one link that is not a joint's child, the base")),
    };
    let mut joints = Vec::new();
    loop {
        let mut next = robot.joints.iter().filter(|joint| joint.parent.link == link);
        let joint = match (next.next(), next.next()) {
            (None, _) => break,
            (Some(joint), None) => joint,
            (Some(_), Some(other)) => {
                let name = &other.name;
                return Err(fault!("joint '{name}' branches off at '{link}'; expected one chain"));
            }
        };
        joints.push(convert(joint)?);
        // A chain visits each joint once: a longer one is a loop.
        if joints.len() > robot.joints.len() {
            return Err(fault!("its joints form a ring; expected a chain from base to end"));
        }
        link = &joint.child.link;
    }
    if joints.iter().all(|joint| !joint.moves) {
        return Err(fault!("has no joint that turns"));
    }
    Ok(Arm { name: robot.name.clone(), joints })
}

fn convert(joint: &urdf_rs::Joint) -> Result<Joint, Fault> {
    let moves = match joint.joint_type {
        JointType::Revolute | JointType::Continuous => true,
        JointType::Fixed => false,
        ref other => {
            let name = &joint.name;
            return Err(fault!("joint '{name}' is {other:?}; expected revolute or fixed"));
        }
    };
    Ok(Joint {
        name: joint.name.clone(),
        moves,
        origin_xyz_m: joint.origin.xyz.0,
        origin_rpy_rad: joint.origin.rpy.0,
        axis: joint.axis.xyz.0,
        lower_rad: joint.limit.lower,
        upper_rad: joint.limit.upper,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arm_of_the_example_has_six_joints_that_turn() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm/irb120.urdf");
        let arm = read(&path).expect("an arm");
        assert_eq!(arm.joints.iter().filter(|joint| joint.moves).count(), 6);
        assert!(arm.joints.iter().all(|joint| joint.lower_rad <= joint.upper_rad));
    }

    #[test]
    fn what_is_no_arm_is_refused_with_what_was_expected() {
        let joint = |name: &str, kind: &str, parent: &str, child: &str| {
            format!(
                r#"<joint name="{name}" type="{kind}"><parent link="{parent}"/>
                   <child link="{child}"/><axis xyz="0 0 1"/>
                   <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>"#
            )
        };
        let links = ["a", "b", "c"].map(|name| format!(r#"<link name="{name}"/>"#)).concat();
        let cases = [
            (joint("j", "prismatic", "a", "b"), "one link that is not a joint's child"),
            (joint("j", "prismatic", "a", "b") + &joint("k", "fixed", "b", "c"), "Prismatic"),
            (joint("j", "fixed", "a", "b") + &joint("k", "fixed", "a", "c"), "branches off"),
            (joint("j", "fixed", "a", "b") + &joint("k", "fixed", "b", "c"), "no joint that turns"),
        ];
        for (joints, expected) in cases {
            let text = format!(r#"<robot name="r">{links}{joints}</robot>"#);
            let robot = urdf_rs::read_from_string(&text).expect("URDF");
            let error = chain(&robot).expect_err("no arm").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_missing_or_no_urdf_is_named() {
        let error = read(Path::new("/nowhere/arm.urdf")).expect_err("missing").to_string();
        assert!(error.contains("/nowhere/arm.urdf") && error.contains("'arm'"), "{error}");
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let error = read(&manifest).expect_err("no URDF").to_string();
        assert!(error.contains("is not a URDF"), "{error}");
    }
}
