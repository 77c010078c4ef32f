//! A graph that really runs, and its events.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sinew_control::Spec;
use sinew_control::status::{Event, EventKind};
use sinew_core::privileges;
use sinew_runtime::run::{Outcome, Run, RunRequest};
use sinew_spec::plan::{Plan, TargetMachine};
use sinew_spec::{SpecSource, compile, render};

use crate::all_kinds;

/// A wait that is longer than this is a hang. This is never a statement about speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Interval between two polls of a run.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// A run.
pub(crate) struct Stage {
    pub(crate) run: Run,
    pub(crate) base: PathBuf,
    /// For each domain the numbers of the cycles that ran, and the signals of the last one.
    pub(crate) core: Vec<(Vec<u64>, Vec<f64>)>,
}

impl Stage {
    /// Starts a graph whose files are in this folder, with these parameters instead of its own.
    pub(crate) fn start(text: &str, base: PathBuf, overrides: &[(&str, &str)]) -> Stage {
        let request = request(text, base.clone(), overrides);
        let core = vec![Default::default(); request.plan.domains.len()];
        Stage { run: Run::start(request).expect("it starts"), base, core }
    }

    fn poll(&mut self) -> bool {
        let core = &mut self.core;
        self.run.poll(LOOK, &mut |id, record| {
            let (numbers, signals) = &mut core[id.domain];
            numbers.push(record.number());
            signals.clear();
            signals.extend(record.signals());
        })
    }

    /// Lets it run until `condition` holds, which is described by `what`.
    pub(crate) fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Stage) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}: {}", self.story());
            assert!(self.poll(), "ended before {what}: {}", self.story());
        }
    }

    /// Cycles of a domain so far.
    pub(crate) fn cycles(&self, domain: usize) -> usize {
        self.core[domain].0.len()
    }

    /// Reads what has happened until now.
    pub(crate) fn look(&mut self) {
        assert!(self.poll(), "ended: {}", self.story());
    }

    /// Stops it; the run must end in order, because nothing that a service did reached the core.
    pub(crate) fn stop(&mut self) {
        self.run.stop();
        let begun = Instant::now();
        while self.poll() {
            assert!(begun.elapsed() < PATIENCE, "does not stop: {}", self.story());
        }
        let faults: Vec<_> = self.run.faults().iter().map(|(_, at)| at.fault.to_string()).collect();
        let (outcome, story) = (self.run.outcome(), self.story());
        assert_eq!((outcome, faults), (Outcome::Stopped, Vec::new()), "{story}");
    }

    /// The texts of the events of a kind in a domain.
    pub(crate) fn texts(&self, what: EventKind, domain: &str) -> Vec<&str> {
        texts(self.run.events().after(0), what, domain)
    }

    /// How many of these texts contain this one.
    pub(crate) fn count(&self, what: EventKind, domain: &str, text: &str) -> usize {
        self.texts(what, domain).iter().filter(|it| it.contains(text)).count()
    }

    /// The current process of a service.
    pub(crate) fn process(&self, domain: &str) -> Pid {
        let started = self.texts(EventKind::Started, domain);
        let number = started.last().and_then(|text| text.strip_prefix("process "));
        let number = number.and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
        number.expect("its process")
    }

    /// Sends a signal to this process.
    pub(crate) fn signal(&self, domain: &str, signal: Signal) {
        kill_process(self.process(domain), signal).expect("it is there");
    }

    pub(crate) fn story(&self) -> String {
        story(self.run.events().after(0))
    }
}

/// The texts of the events of a kind in a domain.
pub(crate) fn texts<'a>(
    events: impl Iterator<Item = &'a Event>,
    what: EventKind,
    domain: &str,
) -> Vec<&'a str> {
    let ours = events.filter(|it| it.what == what && it.domain.as_deref() == Some(domain));
    ours.map(|event| event.text.as_str()).collect()
}

/// Everything that has happened, a line each.
pub(crate) fn story<'a>(events: impl Iterator<Item = &'a Event>) -> String {
    events.map(|it| format!("\n{:?} {}: {}", it.domain, it.what, it.text)).collect()
}

/// The plan of a graph, with these parameters instead of its own.
pub(crate) fn plan(text: &str, overrides: &[(String, String)], cpus: &[u32]) -> Plan {
    let source = SpecSource { overrides, ..SpecSource::of("graph.yaml", text) };
    compile(&source, &all_kinds().catalogue(), &TargetMachine::of(cpus.to_vec()))
        .unwrap_or_else(|bad| panic!("{}", render(&bad, text, false)))
}

/// The request to run such a graph.
pub(crate) fn request(text: &str, base: PathBuf, overrides: &[(&str, &str)]) -> RunRequest {
    let overrides = owned(overrides);
    let cpus = privileges::cpus().expect("affinity");
    let plan = plan(text, &overrides, &cpus);
    let (file, text) = ("graph.yaml".into(), text.into());
    let machine = TargetMachine::of(cpus);
    RunRequest::new(Spec { file, text, base, overrides, machine, ..Spec::default() }, plan)
}

/// Names and values in the form of a request.
pub(crate) fn owned(overrides: &[(&str, &str)]) -> Vec<(String, String)> {
    overrides.iter().map(|&(at, value)| (at.to_owned(), value.to_owned())).collect()
}

/// The folder of the arm.
pub(crate) fn arm() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm")
}

/// An empty folder for a test.
pub(crate) fn empty_folder(name: &str) -> PathBuf {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may exist from the run before.
    let _ = fs::remove_dir_all(&base);
    fs::create_dir_all(&base).expect("a folder for the test");
    base
}

/// The Python interpreter.
pub(crate) fn python() -> String {
    std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Reports what is missing for a test; with `CI=true` the test fails.
pub(crate) fn skip(missing: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
    println!("skipped: {missing}");
}
