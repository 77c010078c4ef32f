//! The four kinds in a loop, linked by hand as graphs/arm/arm.yaml links them.

#[path = "../../src/testing.rs"]
pub(crate) mod testing;

use sinew_core::{Fault, NodeEntry, NodeFixture};
use sinew_robot::NODES;
use sinew_robot::messages::{AxisFeedback, CartesianTarget, Frame, JointTargets, PlannerCommand};

pub(crate) const IRB120: (&str, &str) = ("arm", "irb120.urdf");

pub(crate) fn entry(kind: &str) -> &'static NodeEntry {
    NODES.iter().find(|entry| entry.kind.name == kind).expect("the kind is in the table")
}

pub(crate) fn port(kind: &str, name: &str) -> usize {
    entry(kind).kind.ports.iter().position(|port| port.name == name).expect("the port")
}

pub(crate) fn signal(kind: &str, name: &str) -> usize {
    entry(kind).kind.signals.iter().position(|signal| signal.name == name).expect("the signal")
}

/// Planner, ik, master and drives. The links back have a delay of one cycle.
pub(crate) struct Arm {
    pub(crate) planner: NodeFixture,
    pub(crate) ik: NodeFixture,
    pub(crate) master: NodeFixture,
    pub(crate) drives: NodeFixture,
    pub(crate) feedback: Option<AxisFeedback>,
    pub(crate) returned: Option<Frame>,
    /// Whether the drives run.
    pub(crate) drives_run: bool,
}

impl Arm {
    /// The arm on path `path`.
    pub(crate) fn new(planner: &[(&str, &str)], drives: &[(&str, &str)]) -> Result<Arm, Fault> {
        let make = |kind: &str, given: &[(&str, &str)]| {
            testing::fixture(entry(kind), &testing::graph(), given)
        };
        let mut planner = planner.to_vec();
        planner.push(IRB120);
        Ok(Arm {
            planner: make("path_planner", &planner)?,
            ik: make("ik", &[IRB120])?,
            master: make("ethercat_master", &[("lost_frames_max", "50")])?,
            drives: make("drives", drives)?,
            feedback: None,
            returned: None,
            drives_run: true,
        })
    }

    /// Puts a command into the planner's mailbox.
    pub(crate) fn command(&mut self, command: &PlannerCommand) {
        self.planner.put(port("path_planner", "command"), command);
    }

    /// One cycle of the whole machine.
    pub(crate) fn cycle(&mut self) -> Result<(), Fault> {
        if let Some(message) = self.feedback.take() {
            self.planner.put(port("path_planner", "feedback"), &message);
        }
        self.planner.update()?;
        if let Some(message) = self.planner.get::<CartesianTarget>(port("path_planner", "out")) {
            self.ik.put(port("ik", "in"), &message);
        }
        self.ik.update()?;
        if let Some(message) = self.ik.get::<JointTargets>(port("ik", "out")) {
            self.master.put(port("ethercat_master", "in"), &message);
        }
        if let Some(message) = self.returned.take() {
            self.master.put(port("ethercat_master", "frame"), &message);
        }
        self.master.update()?;
        self.feedback = self.master.get::<AxisFeedback>(port("ethercat_master", "feedback"));
        if let Some(message) = self.master.get::<Frame>(port("ethercat_master", "out")) {
            self.drives.put(port("drives", "in"), &message);
        }
        if !self.drives_run {
            return Ok(());
        }
        self.drives.update()?;
        self.returned = self.drives.get::<Frame>(port("drives", "out"));
        Ok(())
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.planner.cycle.is_finished()
    }
}
