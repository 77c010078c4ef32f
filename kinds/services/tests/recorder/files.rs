//! The graph with a recorder, and what Python reads from its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sinew_control::status::EventKind;

use crate::stage::{self, Stage, skip};

/// Reads the files.
const SCRIPT: &str = include_str!("read.py");

/// Three nodes in two domains, and a recorder.
const GRAPH: &str = "
name: noise
domains:
  control: {realtime: {period: 2ms, overrun: {policy: count}}}
  plant: {realtime: {trigger: input, overrun: {policy: count}}}
  recorder: {restart: {policy: always, backoff: 300ms}}
nodes:
  - {kind: source, name: source, domain: control, ports: {out: [{name: relay, port: in}]}}
  - kind: relay
    name: relay
    domain: control
    ports: {out: [{name: sink, port: in, transport: shared_memory, delivery: latest}]}
  - {kind: sink, name: sink, domain: plant}
";

/// Starts the graph in an empty folder of its own, with these parameters of the recorder and lines
/// of the spec.
pub(super) fn start(name: &str, parameters: &str, lines: &[&str]) -> Stage {
    let base = empty_folder(name);
    fs::create_dir(folder(&base)).expect("a folder for the files");
    start_in(base, parameters, lines)
}

/// Starts the graph in this folder.
pub(super) fn start_in(base: PathBuf, parameters: &str, lines: &[&str]) -> Stage {
    fs::write(base.join("notes.txt"), "what the source reads").expect("a file");
    let folder = if parameters.contains("folder") { "" } else { "folder: recordings, " };
    let recorder =
        format!("  - {{kind: recorder, name: recorder, domain: recorder, {folder}{parameters}}}\n");
    Stage::start(&[lines.join("\n").as_str(), GRAPH, &recorder].concat(), base, &[])
}

pub(super) fn empty_folder(name: &str) -> PathBuf {
    stage::empty_folder(&format!("recorder_{name}"))
}

/// The folder of the files.
pub(super) fn folder(base: &Path) -> PathBuf {
    base.join("recordings")
}

/// Stops the run; returns the numbers of the cycles that ran, by thread.
pub(super) fn stop(stage: &mut Stage) -> [Vec<u64>; 2] {
    stage.stop();
    let lost = stage.run.records_lost();
    assert_eq!(lost, 0, "this test cannot say what ran; give it more CPU time");
    [0, 1].map(|thread| std::mem::take(&mut stage.core[thread].0))
}

/// The events of the recorder.
pub(super) fn events(stage: &Stage, what: EventKind) -> Vec<&str> {
    stage.texts(what, "recorder")
}

/// How often the recorder has printed a text that begins like this.
pub(super) fn said(stage: &Stage, begin: &str) -> usize {
    let texts = events(stage, EventKind::Output);
    texts.iter().filter(|text| text.starts_with(begin)).count()
}

/// The numbers of cycles in parts.
pub(super) struct Recorded<'a>(pub(super) &'a [Value]);

impl Recorded<'_> {
    /// The numbers of a topic, in the order of the files.
    pub(super) fn numbers(&self, topic: &str) -> Vec<u64> {
        let of_part = |part: &Value| part["numbers"][topic].as_array().cloned().unwrap_or_default();
        let numbers = self.0.iter().flat_map(of_part);
        numbers.map(|number| number.as_u64().expect("a number")).collect()
    }
}

/// An interpreter that can read the files.
pub(super) struct Python(String);

/// Finds it. If it or its packages are missing, this is reported, and fails with `CI=true`.
pub(super) fn python() -> Option<Python> {
    let python = stage::python();
    let tried = Command::new(&python).args(["-c", "import mcap, mcap_ros2"]).output();
    if tried.is_ok_and(|output| output.status.success()) {
        return Some(Python(python));
    }
    skip(&format!(
        "'{python}' cannot import mcap and mcap_ros2; 'pip install mcap mcap-ros2-support', or \
         name another interpreter in SINEW_TEST_PYTHON"
    ));
    None
}

impl Python {
    /// The contents of the parts in a folder, each of them finished.
    pub(super) fn read(&self, folder: &Path) -> Vec<Value> {
        self.run(folder, &[])
    }

    /// The same for unfinished parts, read from the beginning as far as possible.
    pub(super) fn read_broken(&self, folder: &Path) -> Vec<Value> {
        self.run(folder, &["--broken"])
    }

    fn run(&self, folder: &Path, arguments: &[&str]) -> Vec<Value> {
        let output =
            Command::new(&self.0).args(["-c", SCRIPT]).arg(folder).args(arguments).output();
        let output = output.expect("python runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "python cannot read the files: {errors}");
        serde_json::from_slice(&output.stdout).expect("the script says JSON")
    }
}
