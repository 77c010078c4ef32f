//! The firewall: the proof, as data, that no realtime thread can be made to wait by a service.
//!
//! The compiler refuses a spec that would break the firewall. This module checks it a second time,
//! on the plan itself and by its own rules: which links leave the core and why the core cannot wait
//! on them, everything that each realtime thread can wait for, and how many threads poll on how
//! many CPUs. It shares with the compiler only the function that finds polling threads: `assemble`
//! uses that to let links park.

mod rules;
mod show;

use std::collections::HashMap;

use sinew_plan::catalogue::Direction;
use sinew_plan::option_enum;
use sinew_plan::plan::{Delivery, Full, Link, Plan, Release, Sync, TargetMachine, Wait};

/// What keeps the core apart from the services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firewall {
    /// The links between the core and services, as indices into [`Plan::links`].
    pub crossings: Vec<usize>,
    /// The nodes that observe the core, as indices into [`Plan::nodes`]: services that read the
    /// records of its cycles, in memory that they cannot write.
    pub observers: Vec<usize>,
    /// Each realtime thread, in the order of the plan.
    pub threads: Vec<ThreadWaits>,
    /// CPUs that the graph may use.
    pub cpus: usize,
    /// Violations of the firewall; a sentence each. A compiled plan has none.
    pub violations: Vec<String>,
}

/// What a realtime thread can wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadWaits {
    /// Index into [`Plan::domains`].
    pub domain: usize,
    /// Index into its threads.
    pub thread: usize,
    /// Everything that it can wait for.
    pub waits: Vec<WaitsFor>,
    /// Whether it polls while it waits, and so keeps its CPU to itself.
    pub polls: bool,
}

/// Something that a realtime thread can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Its release time.
    Clock,
    /// Something on a link, an index into [`Plan::links`].
    Link(On, usize),
}

option_enum! {
    /// What a thread waits for on a link.
    pub On {
        /// The message that releases the thread, or the time at which it runs without one.
        Message = "message",
        /// Feedback at the end of its cycle, until the deadline.
        Feedback = "feedback",
        /// Room in a queue with `full: wait`, until the deadline.
        Room = "room",
        /// The other end of a link with `sync: mutex`, while it copies a message.
        Mutex = "mutex",
    }
}

impl Firewall {
    /// The firewall of a plan on a machine.
    pub fn of(plan: &Plan, machine: &TargetMachine) -> Firewall {
        let leaves_core = |at: &usize| plan.leaves_core(&plan.links[*at]);
        let mut firewall = Firewall {
            crossings: (0..plan.links.len()).filter(leaves_core).collect(),
            observers: (0..plan.nodes.len()).filter(|&node| plan.observes(node)).collect(),
            threads: threads(plan),
            cpus: machine.cpus.len(),
            violations: Vec::new(),
        };
        firewall.violations = rules::violations(plan, &firewall);
        firewall
    }

    /// How many realtime threads poll while they wait.
    pub fn polling(&self) -> usize {
        self.threads.iter().filter(|thread| thread.polls).count()
    }
}

/// `Out` leads from the core to a service.
fn direction(plan: &Plan, link: &Link) -> Direction {
    if plan.is_service(link.to.node) { Direction::Out } else { Direction::In }
}

/// Why the core cannot wait on a crossing: what the core does there instead.
fn why(plan: &Plan, link: &Link) -> &'static str {
    match (direction(plan, link), link.delivery) {
        (Direction::Out, Delivery::Latest) => "the core overwrites the last value, read or not",
        (Direction::Out, Delivery::Broadcast) => {
            "the core overwrites the oldest message, read or not"
        }
        (Direction::In, Delivery::Queue) => {
            "the core takes one a cycle at most; full, the service drops"
        }
        (Direction::In, Delivery::Latest) => "the core copies the newest value, or keeps the old",
        (Direction::Out, Delivery::Queue) | (Direction::In, Delivery::Broadcast) => {
            "nothing: this delivery must not leave the core"
        }
    }
}

/// Everything that each realtime thread can wait for, read from the plan: what the executor does.
pub(crate) fn threads(plan: &Plan) -> Vec<ThreadWaits> {
    let mut threads = Vec::new();
    let mut place = HashMap::new();
    for (domain, row) in plan.domains.iter().enumerate() {
        for (thread, row) in row.threads().iter().enumerate() {
            place.insert((domain, thread), threads.len());
            let release = match row.release {
                Release::Timer => WaitsFor::Clock,
                Release::Input(link) => WaitsFor::Link(On::Message, link),
            };
            threads.push(ThreadWaits { domain, thread, waits: vec![release], polls: false });
        }
    }
    let home = |node: usize| (plan.nodes[node].domain, plan.nodes[node].thread);
    for (at, link) in plan.links.iter().enumerate().filter(|(_, link)| !link.fused) {
        let (from, to) = (place.get(&home(link.from.node)), place.get(&home(link.to.node)));
        let mutex = link.sync == Sync::Mutex;
        if let Some(&reader) = to {
            let waits = &mut threads[reader].waits;
            if plan.is_feedback(link) {
                waits.push(WaitsFor::Link(On::Feedback, at));
            }
            if mutex {
                waits.push(WaitsFor::Link(On::Mutex, at));
            }
        }
        if let Some(&writer) = from {
            let waits = &mut threads[writer].waits;
            if (link.delivery, link.full) == (Delivery::Queue, Full::Wait) {
                waits.push(WaitsFor::Link(On::Room, at));
            }
            if mutex {
                waits.push(WaitsFor::Link(On::Mutex, at));
            }
        }
    }
    let one_priority = have_one_priority(plan);
    for thread in &mut threads {
        // What it waits for in every cycle; a full queue or a locked mutex is the exception.
        let mut links = thread.waits.iter().filter_map(|wait| match wait {
            WaitsFor::Link(On::Message | On::Feedback, link) => Some(&plan.links[*link]),
            _ => None,
        });
        thread.polls = links.any(|link| polls(link.wait, one_priority));
    }
    threads
}

/// Whether all threads of the core have the same priority.
pub(crate) fn have_one_priority(plan: &Plan) -> bool {
    let mut priorities = plan.domains.iter().filter_map(|row| Some(row.realtime()?.priority));
    let first = priorities.next();
    priorities.all(|priority| Some(priority) == first)
}

/// Whether a thread that waits like this keeps its CPU: a thread that yields gives it up, but only
/// to threads of its own priority.
pub(crate) fn polls(wait: Wait, one_priority: bool) -> bool {
    match wait {
        Wait::Spin => true,
        Wait::Yield => !one_priority,
        Wait::Park | Wait::SpinThenPark => false,
    }
}
