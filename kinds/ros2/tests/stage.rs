//! A graph that is run for real, and what has happened in it.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sinew_control::Spec;
use sinew_control::status::{Event, EventKind, NodeStatus};
use sinew_core::privileges;
use sinew_runtime::run::{Outcome, Run, RunRequest};
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile, render};

use crate::all_kinds;

/// A wait that is longer than this is a hang. This says nothing of speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a run.
const LOOK: Duration = Duration::from_millis(5);

/// A run.
pub(crate) struct Stage {
    run: Run,
    /// The signals of the last cycle.
    pub(crate) signals: Vec<f64>,
}

/// A domain of DDS that no other run of these tests has. It is below 100, so that its ports are not
/// among those that the system assigns.
pub(crate) fn domain() -> String {
    (1 + std::process::id() % 99).to_string()
}

/// The graph with that domain in it.
fn with_domain(text: &str) -> String {
    text.replace("DOMAIN", &domain())
}

fn request(text: &str) -> Result<RunRequest, String> {
    let cpus = privileges::cpus().expect("affinity");
    let machine = TargetMachine::of(cpus);
    let overrides = Vec::new();
    let source = SpecSource { overrides: &overrides, ..SpecSource::of("graph.yaml", text) };
    let plan = compile(&source, &all_kinds().catalogue(), &machine)
        .map_err(|bad| render(&bad, text, false))?;
    let (file, text) = ("graph.yaml".into(), text.into());
    let base = env!("CARGO_TARGET_TMPDIR").into();
    let spec = Spec { file, text, base, overrides, machine, ..Spec::default() };
    Ok(RunRequest::new(spec, plan))
}

/// All that `sinew check` says of a graph; nothing if the graph is good.
pub(crate) fn refusals(text: &str) -> Vec<String> {
    let text = with_domain(text);
    let plan = match request(&text) {
        Err(wrong) => return vec![wrong],
        Ok(request) => request.plan,
    };
    let kinds = all_kinds();
    let made = (0..plan.nodes.len()).map(|node| kinds.check_node(&plan, node, ".".as_ref()));
    let place = |refusal: sinew_core::Refusal| {
        let start = refusal.span.map_or(0, |span| span.start as usize);
        let rest: String = text[start..].chars().take(12).collect();
        format!("at '{rest}': {refusal}")
    };
    made.filter_map(Result::err).flatten().map(place).collect()
}

impl Stage {
    /// Starts a graph.
    pub(crate) fn start(text: &str) -> Stage {
        let request = request(&with_domain(text)).unwrap_or_else(|wrong| panic!("{wrong}"));
        Stage { run: Run::start(request).expect("it starts"), signals: Vec::new() }
    }

    fn poll(&mut self) -> bool {
        let signals = &mut self.signals;
        self.run.poll(LOOK, &mut |_, record| {
            signals.clear();
            signals.extend(record.signals());
        })
    }

    /// Lets it run until `condition`, which is described by `what`.
    pub(crate) fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Stage) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            let so_far = (self.signals.clone(), self.story());
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}: {so_far:?}");
            assert!(self.poll(), "ended before {what}: {}", self.story());
        }
    }

    /// Lets it run for so long.
    pub(crate) fn pass(&mut self, time: Duration) {
        let begun = Instant::now();
        self.until("time passes", |_| begun.elapsed() >= time);
    }

    /// Stops the run, which must end in order: nothing that a service did reached the core.
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

    /// Lets it run for a moment. Returns whether it has not ended by itself.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.poll()
    }

    /// The texts of the events of a kind in a domain.
    pub(crate) fn texts(&self, what: EventKind, domain: &str) -> Vec<&str> {
        let events = self.run.events().after(0);
        let ours = events.filter(|it| it.what == what && it.domain.as_deref() == Some(domain));
        ours.map(|event| event.text.as_str()).collect()
    }

    /// Whether the domain has said this.
    pub(crate) fn said(&self, domain: &str, text: &str) -> bool {
        self.texts(EventKind::Output, domain).iter().any(|it| it.contains(text))
    }

    /// Sends the process of a service a signal.
    pub(crate) fn signal(&self, domain: &str, signal: Signal) {
        let started = self.texts(EventKind::Started, domain);
        let number = started.last().and_then(|text| text.strip_prefix("process "));
        let number = number.and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
        kill_process(number.expect("its process"), signal).expect("it is there");
    }

    /// All that has happened, and the counts of the services' nodes.
    pub(crate) fn told(&self) -> String {
        let status = self.run.status();
        let nodes = status.domains.iter().flat_map(|domain| &domain.nodes);
        let line = |it: &NodeStatus| {
            let NodeStatus { name, received, lost, sent, dropped, .. } = it;
            format!("\n{name}: received {received}, lost {lost}, sent {sent}, dropped {dropped}")
        };
        self.story() + &nodes.map(line).collect::<String>()
    }

    fn story(&self) -> String {
        let line =
            |it: &Event| format!("\n{} {:?} {}: {}", it.unix_ms, it.domain, it.what, it.text);
        self.run.events().after(0).map(line).collect()
    }
}

/// Says what is missing for a test. With `CI=true` that fails.
pub(crate) fn skip(missing: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
    println!("skipped: {missing}");
}
