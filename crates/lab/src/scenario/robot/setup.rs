//! The graphs of the rows: the same core as in the scenario `services`, and beside it the services
//! with a user interface.

use crate::scenario::services::{CORE_DOMAINS, core};
use crate::words::words;

words! {
    /// What runs beside the core.
    pub(super) enum Audience {
        /// Nothing.
        Nothing = "nothing",
        /// All services, and one viewer.
        Services = "services",
        /// All services, and many viewers, one of which reads nothing.
        Crowd = "services_and_50_viewers",
    }
}

/// The number of viewers in a crowd, with the one that reads nothing.
pub(super) const CROWD: usize = 50;

/// The services, by their kinds, which are also the names of their nodes and domains.
pub(super) const SERVICES: [&str; 4] = ["camera", "dashboard", "recorder", "monitor"];

/// The folder of the recordings, in the folder of the scenario.
pub(super) const RECORDINGS: &str = "recordings";

impl Audience {
    /// The number of viewers, and how many of them read nothing.
    pub(super) fn viewers(self) -> (usize, usize) {
        match self {
            Audience::Nothing => (0, 0),
            Audience::Services => (1, 0),
            Audience::Crowd => (CROWD, 1),
        }
    }

    /// The spec of a core with this audience.
    pub(super) fn text(self) -> String {
        if self == Audience::Nothing {
            return format!("name: robot\ndomains:\n{CORE_DOMAINS}nodes:\n{}", core(""));
        }
        let domains: String = SERVICES.iter().map(|name| format!("  {name}: {{}}\n")).collect();
        let core = core(", {name: camera, port: pose}");
        format!("name: robot\ndomains:\n{CORE_DOMAINS}{domains}nodes:\n{core}{SERVICE_NODES}")
    }
}

/// As in graphs/robot/robot.yaml, but at free ports.
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
