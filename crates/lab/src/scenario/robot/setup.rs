//! The graphs of the rows: the core that the scenario `services` has too, and beside it the
//! services that people see.

use crate::scenario::services::{CORE_DOMAINS, core};
use crate::words::words;

words! {
    /// What stands beside the core.
    pub(super) enum Audience {
        /// It is alone.
        Nothing = "nothing",
        /// All services, and one who looks on.
        Services = "services",
        /// All services, and many who look on, one of whom takes nothing.
        Crowd = "services_and_50_viewers",
    }
}

/// Those who look on where there are many, the one who takes nothing among them.
pub(super) const CROWD: usize = 50;

/// The services, by their kinds, which are also the names of their nodes and domains.
pub(super) const SERVICES: [&str; 4] = ["camera", "dashboard", "recorder", "monitor"];

/// The folder of the recordings, in that of the scenario.
pub(super) const RECORDINGS: &str = "recordings";

impl Audience {
    /// Viewers, and how many of them take nothing.
    pub(super) fn viewers(self) -> (usize, usize) {
        match self {
            Audience::Nothing => (0, 0),
            Audience::Services => (1, 0),
            Audience::Crowd => (CROWD, 1),
        }
    }

    /// The graph of a core with them.
    pub(super) fn text(self) -> String {
        if self == Audience::Nothing {
            return format!("name: robot\ndomains:\n{CORE_DOMAINS}nodes:\n{}", core(""));
        }
        let domains: String = SERVICES.iter().map(|name| format!("  {name}: {{}}\n")).collect();
        let core = core(", {name: camera, port: pose}");
        format!("name: robot\ndomains:\n{CORE_DOMAINS}{domains}nodes:\n{core}{SERVICE_NODES}")
    }
}

/// As in graphs/robot/robot.yaml, but at ports that are free.
const SERVICE_NODES: &str = "  - kind: camera
    domain: camera
    arm: irb120.urdf
    ports: {out: [{name: dashboard, port: image, capacity: 4}]}
  - kind: dashboard
    domain: dashboard
    listen: 127.0.0.1:0
    arm: irb120.urdf
    ports: {command: [{name: planner, port: command, capacity: 8}]}
  - {kind: recorder, domain: recorder, folder: recordings}
  - {kind: monitor, domain: monitor, listen: '127.0.0.1:0'}
";
