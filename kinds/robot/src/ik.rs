//! Kind `ik`: joint targets for Cartesian targets, on the branch that the arm is already on.

use rs_opw_kinematics::kinematic_traits::Pose;
use sinew_core::catalogue::{Kind, Port, RunsIn, Signal};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters, fault};

use super::arm;
use super::kinematics::{Joints, Solver};
use super::messages::{CartesianTarget, JointTargets, ROTATION_TOLERANCE};
use super::workspace::Workspace;

const IN: usize = 0;
const OUT: usize = 1;

const JOINT_RAD: usize = 0;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "ik",
    runs_in: RunsIn::Realtime,
    doc: "Analytic inverse kinematics of a six-axis arm with a spherical wrist. Takes the solution \
          nearest to the one before. A target that is outside the floor and the box, out of reach, \
          too near a singularity, beyond a joint's limit, faster than a joint, or whose quaternion \
          is no rotation, stops the graph before anything moves there.",
    ports: &[
        Port::input("in", "Pose of the flange in the arm's base frame.", CartesianTarget::TYPE),
        Port::output("out", "Joint angles that reach it.", JointTargets::TYPE),
    ],
    parameters: &arm::PLACE,
    signals: &[Signal::new("joint_rad", "Joint targets.", "rad", 6)],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let solver = arm::solver(parameters)?;
    let previous = arm::home(parameters, &solver)?;
    let workspace = Workspace::new(parameters, solver.forward(&previous).translation)?;
    Ok(Box::new(Ik { solver, workspace, previous }))
}

struct Ik {
    solver: Solver,
    workspace: Workspace,
    previous: Joints,
}

impl Ik {
    fn solve(&self, pose: &Pose, cycle: &Cycle) -> Result<Joints, Fault> {
        self.workspace.check(pose.translation).map_err(|outside| fault!("{outside}"))?;
        self.solver
            .follow(pose, &self.previous, cycle.period_s())
            .map_err(|trouble| fault!("{trouble}"))
    }
}

impl Node for Ik {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if io.fresh(IN) != Fresh::New {
            return Ok(());
        }
        let target = *io.read::<CartesianTarget>(IN);
        let Some(pose) = target.pose() else { return Err(no_rotation(&target)) };
        let joints = self.solve(&pose, cycle)?;
        let out = io.write::<JointTargets>(OUT);
        out.position_rad = joints;
        out.velocity_rad_per_s =
            std::array::from_fn(|i| (joints[i] - self.previous[i]) / cycle.period_s());
        out.sequence = target.sequence;
        io.signal(JOINT_RAD).copy_from_slice(&joints);
        self.previous = joints;
        Ok(())
    }
}

fn no_rotation(target: &CartesianTarget) -> Fault {
    let length = target.orientation_xyzw.iter().map(|part| part * part).sum::<f64>().sqrt();
    fault!(
        "the target's orientation is no rotation: the quaternion has length {length:.3}, expected \
         1 within {ROTATION_TOLERANCE}; send a unit quaternion x, y, z, w"
    )
}

#[cfg(test)]
mod tests;
