//! The graphs that the lab and its drills run: a graph of the user's, or one with the arm, whose
//! files are part of this program so that both work from anywhere.

use std::fs;
use std::path::PathBuf;

use sinew_agent::boards::BoardRow;
use sinew_agent::image;
use sinew_control::{Spec, outside};
use sinew_core::board::FaultAt;
use sinew_core::catalogue::Kind;
use sinew_core::trace::ThreadId;
use sinew_runtime::Kinds;
use sinew_runtime::run::{Run, RunRequest};
use sinew_spec::plan::{Board, Plan, Release, TargetMachine, Thread};
use sinew_spec::{GuestImage, SpecSource, compile, images_of, wanted_of};

/// The arm's spec, as in `graphs/arm`.
pub(crate) const ARM: &str = include_str!("../../../graphs/arm/arm.yaml");
/// The arm with services beside it that write files and serve HTTP.
const BESIDE: &str = include_str!("drill/beside.yaml");
/// The files that the arm's spec names.
const FILES: [(&str, &str); 2] = [
    ("irb120.urdf", include_str!("../../../graphs/arm/irb120.urdf")),
    ("square.csv", include_str!("../../../graphs/arm/square.csv")),
];

/// The arm, which goes around its square until it is stopped.
///
/// # Errors
/// What is wrong with its spec on this machine.
pub fn arm(nodes: &Kinds, cpus: &[u32]) -> Result<RunRequest, String> {
    let overrides = vec![("planner.laps".into(), "0".into())];
    compiled("arm.yaml", ARM.into(), overrides, &nodes.catalogue(), cpus)
}

/// The arm with services beside it, if `nodes` has all the kinds that it needs.
///
/// # Errors
/// As for [`arm`].
pub fn beside(nodes: &Kinds, cpus: &[u32]) -> Result<RunRequest, String> {
    compiled("beside.yaml", BESIDE.into(), vec![], &nodes.catalogue(), cpus)
}

/// Compiles a spec that may use the files in [`folder`], among them the arm's. The graph runs as
/// planned, without an injected fault.
///
/// # Errors
/// What is wrong with it on this machine.
pub(crate) fn compiled(
    file: &str,
    text: String,
    overrides: Vec<(String, String)>,
    kinds: &[&'static Kind],
    cpus: &[u32],
) -> Result<RunRequest, String> {
    let machine = TargetMachine::of(cpus.to_vec());
    let images = images_of(&text).into_iter().map(read_image).collect::<Vec<_>>();
    let outside = outside::bring(wanted_of(&text, &overrides), &folder());
    let source = SpecSource {
        overrides: &overrides,
        images: &images,
        outside: &outside,
        ..SpecSource::of(file, &text)
    };
    let plan = compile(&source, kinds, &machine)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    let (file, base) = (file.into(), folder());
    Ok(RunRequest::new(
        Spec { file, text, base, overrides, images, outside, machine, ..Spec::default() },
        plan,
    ))
}

/// Reads the table of an image that a spec names.
fn read_image((image, board): (String, Board)) -> GuestImage {
    let table = image::read(&folder().join(&image), BoardRow::of(board));
    GuestImage { image, board, table: table.map(|image| image.table().to_vec()) }
}

/// Where the arm's files are while this process needs them.
pub(crate) fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("sinew-lab-{}", std::process::id()))
}

/// The arm's files, in a folder of their own until this is dropped.
#[derive(Debug)]
pub struct Files(());

impl Files {
    /// Writes them.
    ///
    /// # Errors
    /// What the file system says, and what to change.
    pub fn write() -> Result<Files, String> {
        let cannot = |error| {
            format!("cannot write the arm's files: {error}; set TMPDIR to a folder of yours")
        };
        fs::create_dir(folder()).map_err(cannot)?;
        let files = Files(());
        for (name, text) in FILES {
            fs::write(folder().join(name), text).map_err(cannot)?;
        }
        Ok(files)
    }

    /// Removes the files; for a process that is about to end without dropping this.
    pub fn remove() {
        // What cannot be removed is in the folder for temporary files.
        let _ = fs::remove_dir_all(folder());
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        Files::remove();
    }
}

/// The thread whose cycles go around the whole loop: the first that the clock releases.
pub(crate) fn leader(plan: &Plan) -> Option<ThreadId> {
    let mut domains = plan.domains.iter().enumerate();
    domains.find_map(|(domain, planned)| {
        let by_timer = |thread: &Thread| thread.release == Release::Timer;
        let thread = planned.threads().iter().position(by_timer)?;
        Some(ThreadId { domain, thread })
    })
}

/// What went wrong, in the words of `sinew run`.
pub(crate) fn faults(run: &Run) -> String {
    let fault = |(domain, at): (usize, FaultAt)| {
        let plan = run.plan();
        let node = at.node.map(|node| format!(", node '{}'", plan.nodes[node].name));
        let cycle = at.cycle.map(|cycle| format!(", cycle {cycle}"));
        let (node, cycle) = (node.unwrap_or_default(), cycle.unwrap_or_default());
        format!("domain '{}'{node}{cycle}: {}", plan.domains[domain].name, at.fault)
    };
    let faults: Vec<_> = run.faults().into_iter().map(fault).collect();
    format!("the graph faulted: {}", faults.join("; "))
}

/// The nodes of the arm as in graphs/arm/arm.yaml. `domain` gives the domain of each node, and
/// `options` the options of a link from one node to another, after a comma. `listeners` are further
/// targets of what the drives report, each after a comma.
pub(crate) fn arm_nodes(
    domain: impl Fn(&str) -> String,
    options: impl Fn(&str, &str) -> String,
    listeners: &str,
) -> String {
    let [planner, ik, ethercat, drives] = ["planner", "ik", "ethercat", "drives"].map(domain);
    let to_ik = options("planner", "ik");
    let to_ethercat = options("ik", "ethercat");
    let to_planner = options("ethercat", "planner");
    let to_drives = options("ethercat", "drives");
    let from_drives = options("drives", "ethercat");
    format!(
        "  - kind: path_planner
    name: planner
    domain: {planner}
    path: square.csv
    arm: irb120.urdf
    laps: 0
    ports: {{out: [{{name: ik, port: in{to_ik}}}]}}
  - kind: ik
    domain: {ik}
    arm: irb120.urdf
    ports: {{out: [{{name: ethercat, port: in{to_ethercat}}}]}}
  - kind: ethercat_master
    name: ethercat
    domain: {ethercat}
    lost_frames_max: 100
    ports:
      out: [{{name: drives, port: in{to_drives}}}]
      feedback: [{{name: planner, port: feedback, delay: 1{to_planner}}}{listeners}]
  - kind: drives
    domain: {drives}
    safe: {{in: {{value: quick_stop, after: 100}}}}
    ports: {{out: [{{name: ethercat, port: frame, delay: 1{from_drives}}}]}}
"
    )
}

/// Greatest and least angle of each joint, rad, as the arm's file says.
pub(crate) fn joint_limits_rad() -> Vec<(f64, f64)> {
    let bound = |line: &str, name: &str| -> Option<f64> {
        let (_, rest) = line.split_once(&format!("{name}=\""))?;
        rest.split('"').next()?.parse().ok()
    };
    let limits = FILES[0].1.lines().filter(|line| line.contains("<limit "));
    limits.filter_map(|line| Some((bound(line, "lower")?, bound(line, "upper")?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arm_has_six_joints_with_limits() {
        let limits = joint_limits_rad();
        assert_eq!(limits.len(), 6);
        assert!(limits.iter().all(|(low, high)| low < &0.0 && high > &0.0), "{limits:?}");
    }
}
