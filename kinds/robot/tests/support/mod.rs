//! The four kinds in a loop, joined by hand as graphs/arm/arm.yaml joins them.

#[path = "../../src/testing.rs"]
pub(crate) mod testing;

use std::path::{Path, PathBuf};

use sinew_core::{Fault, Fixture, NodeEntry};
use sinew_robot::NODES;
use sinew_robot::messages::{AxisFeedback, CartesianTarget, Frame, JointTargets, PlannerCommand};

pub(crate) const IRB120: (&str, &str) = ("arm", "irb120.urdf");

/// The folder of the example.
pub(crate) fn graph() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm")
}

pub(crate) fn entry(kind: &str) -> &'static NodeEntry {
    NODES.iter().find(|entry| entry.kind.name == kind).expect("the kind is in the table")
}

pub(crate) fn port(kind: &str, name: &str) -> usize {
    entry(kind).kind.ports.iter().position(|port| port.name == name).expect("the port")
}

pub(crate) fn signal(kind: &str, name: &str) -> usize {
    entry(kind).kind.signals.iter().position(|signal| signal.name == name).expect("the signal")
}

/// Planner, ik, master and drives, with links of one cycle's delay back.
pub(crate) struct Arm {
    pub(crate) planner: Fixture,
    pub(crate) ik: Fixture,
    pub(crate) master: Fixture,
    pub(crate) drives: Fixture,
    pub(crate) feedback: Option<AxisFeedback>,
    pub(crate) returned: Option<Frame>,
    /// Whether the machine takes part.
    pub(crate) drives_run: bool,
    ports: [usize; 8],
    command: usize,
}

impl Arm {
    /// The arm on path `path`.
    pub(crate) fn new(planner: &[(&str, &str)], drives: &[(&str, &str)]) -> Result<Arm, Fault> {
        let make =
            |kind: &str, given: &[(&str, &str)]| testing::fixture(entry(kind), &graph(), given);
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
            ports: [
                port("path_planner", "feedback"),
                port("path_planner", "out"),
                port("ik", "in"),
                port("ik", "out"),
                port("ethercat_master", "in"),
                port("ethercat_master", "frame"),
                port("ethercat_master", "out"),
                port("ethercat_master", "feedback"),
            ],
            command: port("path_planner", "command"),
        })
    }

    /// Puts a command into the planner's mailbox.
    pub(crate) fn command(&mut self, command: &PlannerCommand) {
        self.planner.put(self.command, command);
    }

    /// One cycle of the whole machine.
    pub(crate) fn cycle(&mut self) -> Result<(), Fault> {
        let [feedback, target, ik_in, ik_out, master_in, frame_in, frame_out, master_feedback] =
            self.ports;
        if let Some(message) = self.feedback.take() {
            self.planner.put(feedback, &message);
        }
        self.planner.update()?;
        if let Some(message) = self.planner.get::<CartesianTarget>(target) {
            self.ik.put(ik_in, &message);
        }
        self.ik.update()?;
        if let Some(message) = self.ik.get::<JointTargets>(ik_out) {
            self.master.put(master_in, &message);
        }
        if let Some(message) = self.returned.take() {
            self.master.put(frame_in, &message);
        }
        self.master.update()?;
        self.feedback = self.master.get::<AxisFeedback>(master_feedback);
        if let Some(message) = self.master.get::<Frame>(frame_out) {
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
