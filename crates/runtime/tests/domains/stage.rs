//! A run with services, watched: what the core got, what the events say, until something holds.

use std::fmt::Write;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use sinew_control::status::{DomainState, DomainStatus, Event, EventKind};
use sinew_core::trace::Record;
use sinew_runtime::run::{Outcome, Run, RunRequest};

use crate::request;
use crate::service_kinds::INPUTS;

/// What has not happened by then never happens.
const NEVER: Duration = Duration::from_secs(20);

/// A policy that brings a service back at once, as often as a test may need.
pub(crate) const QUICK: &str = "restart: {policy: always, backoff: 1ms, backoff_max: 5ms, \
                                restarts_max: 1000}, stop_deadline: 300ms, heartbeat: 500ms";

/// A service domain with one servant.
#[derive(Clone, Copy)]
pub(crate) struct Service<'a> {
    /// Of the domain, and of the node.
    pub(crate) name: &'a str,
    /// Keys of the domain.
    pub(crate) domain: &'a str,
    /// Parameters of the node.
    pub(crate) node: &'a str,
    /// The hub's input that it writes to, with the options of the link; empty for none.
    pub(crate) to: &'a str,
    /// The options of the link from the hub; empty for none.
    pub(crate) from: &'a str,
}

impl Service<'_> {
    /// One that only lives.
    pub(crate) const ALONE: Service<'static> =
        Service { name: "servant", domain: QUICK, node: "mood: serve", to: "", from: "" };
}

/// A core, a hub in it, and services. With `motor` there is one that a source commands: the core is
/// then two domains, `core` and `plant`.
pub(crate) fn graph(motor: bool, services: &[Service<'_>]) -> String {
    let mut text = "name: test\ndomains:\n".to_owned();
    let (mut nodes, mut links) = (String::new(), String::new());
    for &Service { name, domain, node, to, from } in services {
        writeln!(text, "  {name}: {{{domain}}}").expect("a string takes it");
        let to = if to.is_empty() { "".into() } else { format!("{{name: hub, port: {to}}}") };
        let node = format!("{{kind: servant, name: {name}, domain: {name}, {node}, ");
        writeln!(nodes, "  - {node}ports: {{out: [{to}]}}}}").expect("a string takes it");
        if !from.is_empty() {
            write!(links, "{{name: {name}, port: in, {from}}}, ").expect("a string takes it");
        }
    }
    text += "  core: {realtime: {period: 2ms, overrun: {policy: count}}}\n";
    let mut source = "";
    if motor {
        text += "  plant: {realtime: {trigger: input, overrun: {policy: count}}}\n";
        source = "  - {kind: source, domain: core, ports: {out: [{name: motor, port: in, delivery: \
                  latest}]}}\n";
        nodes += "  - {kind: motor, domain: plant, coast_cycles: 5, safe: {in: {value: halt, \
                  after: 10}}}\n";
    }
    let hub = format!("  - {{kind: hub, domain: core, ports: {{out: [{links}]}}}}\n");
    format!("{text}nodes:\n{source}{hub}{nodes}")
}

/// A run, and what was seen of it.
pub(crate) struct Stage {
    pub(crate) run: Run,
    lives: bool,
    /// Numbers of the core's cycles.
    pub(crate) cycles: Vec<u64>,
    /// The numbers that came to each input of the hub.
    pub(crate) arrived: [Vec<u64>; INPUTS],
    /// Messages that were not whole.
    pub(crate) torn: f64,
    /// Velocity and whether it was a safe value, of the motor's last cycle.
    pub(crate) motor: Option<(f64, bool)>,
    /// The events, also those that the run keeps no more.
    events: Vec<Event>,
}

impl Stage {
    pub(crate) fn start(text: &str) -> Stage {
        Stage::asked(request(text))
    }

    pub(crate) fn asked(request: RunRequest) -> Stage {
        Stage {
            run: Run::start(request).expect("the run starts"),
            lives: true,
            cycles: Vec::new(),
            arrived: Default::default(),
            torn: 0.0,
            motor: None,
            events: Vec::new(),
        }
    }

    /// A core without a motor, and these services beside it.
    pub(crate) fn beside(services: &[Service<'_>]) -> Stage {
        Stage::start(&graph(false, services))
    }

    /// One look. Returns whether the graph still runs.
    pub(crate) fn look(&mut self) -> bool {
        let Stage { run, cycles, arrived, torn, motor, .. } = self;
        self.lives = run.poll(Duration::from_millis(5), &mut |id, record: &Record| {
            let signals: Vec<f64> = record.signals().collect();
            if id.domain == 1 {
                *motor = Some((signals[0], signals[1] == 1.0));
            } else if !record.is_stopping() {
                cycles.push(record.number());
                // A source before the hub shows a signal of its own.
                let at = signals.len() - 2 * INPUTS;
                let hub = &signals[at..];
                let new = arrived.iter_mut().zip(hub).filter(|(_, number)| **number > 0.0);
                new.for_each(|(arrived, &number)| arrived.push(number as u64));
                *torn = hub[INPUTS..].iter().sum();
            }
        });
        let known = self.events.last().map_or(0, |event| event.number);
        self.events.extend(self.run.events().after(known).cloned());
        self.lives
    }

    /// Looks until `holds`, which must come before the end of the run.
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&Stage) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < NEVER, "waited in vain for {what}: {:#?}", self.story());
            assert!(self.look(), "the run ended before {what}: {:#?}", self.story());
        }
    }

    /// Looks until the core has run this many more cycles: it lives, and so does its supervisor.
    pub(crate) fn run_on(&mut self, cycles: usize) {
        let goal = self.cycles.len() + cycles;
        self.until("more cycles of the core", |stage| stage.cycles.len() >= goal);
    }

    /// Looks until `domain` has had `count` events of this sort.
    pub(crate) fn until_event(&mut self, domain: &str, what: EventKind, count: usize) {
        let wanted = format!("event {count} '{what}' of {domain}");
        self.until(&wanted, |stage| stage.texts(domain, what).len() >= count);
    }

    /// Looks until the run has ended.
    pub(crate) fn end(&mut self) -> Outcome {
        let begun = Instant::now();
        while self.lives && self.look() {
            assert!(begun.elapsed() < NEVER, "the run does not end: {:#?}", self.story());
        }
        self.run.outcome()
    }

    /// Stops the run in order, with a core that nothing has harmed.
    pub(crate) fn stop_unharmed(&mut self) {
        self.run.stop();
        assert_eq!(self.end(), Outcome::Stopped, "{:?}", self.run.faults());
        self.assert_unharmed();
    }

    /// The core has run every cycle, without a fault, and got nothing that was not whole.
    pub(crate) fn assert_unharmed(&self) {
        assert!(self.run.faults().is_empty(), "{:?}", self.run.faults());
        // Records that were lost before a look are counted.
        let gaps = self.cycles.windows(2).map(|pair| pair[1].checked_sub(pair[0] + 1));
        let missing: Option<u64> = gaps.sum();
        let lost = self.run.records_lost();
        assert!(missing.is_some_and(|missing| missing <= lost), "{missing:?} cycles are missing");
        assert_eq!(self.torn, 0.0);
    }

    /// The numbers that came to an input rise: none came twice, none overtook another.
    pub(crate) fn assert_in_order(&self, input: usize) {
        let wrong = self.arrived[input].windows(2).find(|pair| pair[1] <= pair[0]);
        assert_eq!(wrong, None, "not in order at input {input}");
    }

    fn of(&self, what: EventKind) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.what == what)
    }

    /// Texts of the events of this sort.
    pub(crate) fn texts(&self, domain: &str, what: EventKind) -> Vec<&str> {
        let of_it = self.of(what).filter(|event| event.domain.as_deref() == Some(domain));
        of_it.map(|event| &*event.text).collect()
    }

    /// Texts of the events of this sort, of no domain or any.
    pub(crate) fn told(&self, what: EventKind) -> Vec<&str> {
        self.of(what).map(|event| &*event.text).collect()
    }

    /// Domains of all events of this sort, in order.
    pub(crate) fn order(&self, what: EventKind) -> Vec<&str> {
        self.of(what).filter_map(|event| event.domain.as_deref()).collect()
    }

    /// All events, in words.
    pub(crate) fn story(&self) -> Vec<String> {
        let told = |event: &Event| {
            let domain = event.domain.as_deref().unwrap_or("-");
            format!("{} {domain} {}: {}", event.number, event.what, event.text)
        };
        self.events.iter().map(told).collect()
    }

    /// What the status says of a domain.
    pub(crate) fn status(&self, domain: &str) -> DomainStatus {
        let mut domains = self.run.status().domains.into_iter();
        domains.find(|status| status.name == domain).expect("there is such a domain")
    }

    pub(crate) fn is(&self, domain: &str, state: DomainState) -> bool {
        self.status(domain).state == state
    }

    /// The process of a domain, once there is one.
    pub(crate) fn process(&mut self, domain: &str) -> u32 {
        self.until("a process", |stage| stage.status(domain).pid.is_some());
        self.status(domain).pid.expect("nobody looked since")
    }

    /// The marker of the processes of this run, without the number of the domain.
    pub(crate) fn marker(&self) -> String {
        let core = self.run.processes()[0];
        let environment = fs::read(format!("/proc/{core}/environ")).expect("it lives");
        let mut entries = environment.split(|&byte| byte == 0);
        let mark = entries.find_map(|entry| entry.strip_prefix(b"SINEW_DOMAIN="));
        let mark = String::from_utf8_lossy(mark.expect("it is marked")).into_owned();
        mark.rsplit_once('-').expect("it ends in a number").0.to_owned()
    }
}

/// Looks at these runs until `body`, on a thread of its own, is done.
pub(crate) fn beside<T: Send + 'static>(
    stages: &mut [Stage],
    body: impl FnOnce() -> T + Send + 'static,
) -> T {
    let thread = thread::spawn(body);
    while !thread.is_finished() {
        stages.iter_mut().for_each(|stage| assert!(stage.look()));
    }
    thread.join().expect("no panic")
}

/// The processes whose mark begins with this, except those that are ending.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let mark = format!("SINEW_DOMAIN={mark}");
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let bears = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry.starts_with(mark.as_bytes()))
    };
    pids.filter(bears).collect()
}
