//! A graph with a recorder, run for real, and what Python reads of its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use sinew_control::status::{Event, EventKind};
use sinew_core::pace::Pace;
use sinew_core::privileges;
use sinew_runtime::Kinds;
use sinew_runtime::run::{Outcome, Request, Run};
use sinew_services::recorder;
use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile, render};

use crate::kinds::CORE;

/// A wait that is longer than this is a hang. Never a statement about speed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a run.
const LOOK: Duration = Duration::from_millis(20);
/// What reads the files.
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

/// The kinds of the core, and the recorder.
pub(crate) fn kinds() -> Kinds {
    Kinds { nodes: CORE.to_vec(), services: vec![recorder::NODE], ..Kinds::default() }
}

/// A run.
pub(crate) struct Stage {
    pub(crate) run: Run,
    pub(crate) folder: PathBuf,
    /// Of each cycle that ran, by thread.
    pub(crate) numbers: [Vec<u64>; 2],
}

/// What was run.
pub(crate) struct Ran {
    pub(crate) folder: PathBuf,
    pub(crate) numbers: [Vec<u64>; 2],
}

impl Stage {
    /// Starts it in an empty folder of its own, with these parameters of the recorder and lines
    /// of the spec.
    pub(crate) fn start(name: &str, parameters: &str, lines: &[&str]) -> Stage {
        let base = empty_folder(name);
        fs::create_dir(base.join("recordings")).expect("a folder for the files");
        Stage::start_in(base, parameters, lines)
    }

    /// Starts it in this folder.
    pub(crate) fn start_in(base: PathBuf, parameters: &str, lines: &[&str]) -> Stage {
        fs::write(base.join("notes.txt"), "what the source reads").expect("a file");
        let folder = if parameters.contains("folder") { "" } else { "folder: recordings, " };
        let recorder = format!(
            "  - {{kind: recorder, name: recorder, domain: recorder, {folder}{parameters}}}\n"
        );
        let text = [lines.join("\n").as_str(), GRAPH, &recorder].concat();
        let cpus = privileges::cpus().expect("affinity");
        let source = Source { file: "noise.yaml", text: &text, overrides: &[] };
        let kinds = kinds().catalogue();
        let plan = compile(&source, &kinds, &Machine { cpus: cpus.clone() })
            .unwrap_or_else(|bad| panic!("{}", render(&bad, &text, false)));
        let request = Request {
            file: "noise.yaml".into(),
            text: text.clone(),
            base: base.clone(),
            overrides: Vec::new(),
            cpus,
            plan,
            strict: false,
            pace: Pace::AsPlanned,
            injections: Vec::new(),
        };
        let run = Run::start(request).expect("it starts");
        Stage { run, folder: base.join("recordings"), numbers: Default::default() }
    }

    fn poll(&mut self) -> bool {
        let numbers = &mut self.numbers;
        self.run.poll(LOOK, &mut |id, record| numbers[id.domain].push(record.number()))
    }

    /// Cycles of a thread so far.
    pub(crate) fn cycles(&self, thread: usize) -> usize {
        self.numbers[thread].len()
    }

    /// Lets it run until `condition`, which is described by `what`.
    pub(crate) fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Stage) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}: {}", self.story());
            assert!(self.poll(), "ended before {what}: {}", self.story());
        }
    }

    /// Stops it; how it ended, and what ran.
    pub(crate) fn stop(mut self) -> (Outcome, Ran) {
        self.run.stop();
        let begun = Instant::now();
        while self.poll() {
            assert!(begun.elapsed() < PATIENCE, "does not stop: {}", self.story());
        }
        let records_lost = self.run.records_lost();
        assert_eq!(records_lost, 0, "this test cannot say what ran; give it more of a CPU");
        (self.run.outcome(), Ran { folder: self.folder, numbers: self.numbers })
    }

    /// What has happened to the recorder.
    pub(crate) fn events(&self, what: EventKind) -> Vec<&Event> {
        let of_recorder = |event: &&Event| event.domain.as_deref() == Some("recorder");
        let events = self.run.events().after(0).filter(of_recorder);
        events.filter(|event| event.what == what).collect()
    }

    /// What the recorder has said that begins like this.
    pub(crate) fn said(&self, begin: &str) -> Vec<&str> {
        let events = self.events(EventKind::Output).into_iter();
        events.map(|event| event.text.as_str()).filter(|text| text.starts_with(begin)).collect()
    }

    pub(crate) fn story(&self) -> String {
        let line = |event: &Event| format!("\n{:?} {}: {}", event.domain, event.what, event.text);
        self.run.events().after(0).map(line).collect()
    }
}

/// An empty folder for a test.
pub(crate) fn empty_folder(name: &str) -> PathBuf {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recorder_{name}"));
    // It may be there, from the run before.
    let _ = fs::remove_dir_all(&base);
    fs::create_dir_all(&base).expect("a folder for the test");
    base
}

/// The numbers of cycles in parts.
pub(crate) struct Recorded<'a>(pub(crate) &'a [Value]);

impl Recorded<'_> {
    /// Those of a topic, in the order of the files.
    pub(crate) fn numbers(&self, topic: &str) -> Vec<u64> {
        let of_part = |part: &Value| part["numbers"][topic].as_array().cloned().unwrap_or_default();
        let numbers = self.0.iter().flat_map(of_part);
        numbers.map(|number| number.as_u64().expect("a number")).collect()
    }
}

/// The interpreter that reads the files.
pub(crate) struct Python(String);

/// Finds it; says so if it or its packages are missing, which fails with `CI=true`.
pub(crate) fn python() -> Option<Python> {
    let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
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

/// Says what is missing for a test.
pub(crate) fn skip(missing: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
    println!("skipped: {missing}");
}

impl Python {
    /// What is in the parts in a folder, each of them finished.
    pub(crate) fn read(&self, folder: &Path) -> Vec<Value> {
        self.run(folder, &[])
    }

    /// The same, read from the beginning as far as they go.
    pub(crate) fn read_broken(&self, folder: &Path) -> Vec<Value> {
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
