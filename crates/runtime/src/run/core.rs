//! The core, as the supervisor sees it: the realtime domains, which start, stop and start again as
//! a whole.

mod domain;
mod lines;
mod thread;

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags};
use sinew_control::status::{EventKind, Events};
use sinew_core::bell::Bell;
use sinew_core::board::FaultAt;
use sinew_core::clock::Clock;
use sinew_core::trace::Record;
use sinew_core::trace::ThreadId;
use sinew_spec::plan::{Domain as Planned, Plan};

pub(super) use self::domain::Domain;
use self::thread::Thread;
use super::process::Spawner;
use crate::confine::Confinement;

/// How long a realtime domain may take to make its nodes and links.
pub(super) const START_NS_MAX: u64 = 10_000_000_000;

pub(super) struct Core {
    /// The realtime domains, which are the first ones of the plan.
    pub(super) domains: Vec<Domain>,
    /// The bell that all of them ring.
    pub(super) bell: Bell,
    /// How often they were started again.
    pub(super) resets: u32,
    /// Start of the first cycle of all lives; `u64::MAX` before.
    pub(super) started_ns: u64,
    /// Names of all nodes in the plan that they were started with.
    born: Vec<String>,
    /// What went wrong in the lives before this one: the number of the life, from 1, and domain.
    pub(super) earlier_faults: Vec<(u32, usize, FaultAt)>,
}

impl Core {
    /// Starts the realtime domains of the plan, with the next ones of all bounds.
    pub(super) fn start(
        bounds: &mut dyn Iterator<Item = Confinement>,
        spawner: &Spawner<'_>,
        events: &mut Events,
    ) -> io::Result<Core> {
        let plan = &spawner.request.plan;
        let mut core = Core {
            domains: Vec::new(),
            bell: Bell::create()?,
            resets: 0,
            started_ns: u64::MAX,
            born: names(plan),
            earlier_faults: Vec::new(),
        };
        let planned = plan.domains.iter().map_while(Planned::realtime);
        for ((at, planned), bounds) in planned.enumerate().zip(bounds) {
            core.domains.push(Domain::start(at, planned, bounds, &core.bell, spawner)?);
            core.tell_start(at, plan, events);
        }
        Ok(core)
    }

    /// Starts all domains again, in new processes.
    ///
    /// # Errors
    /// The kernel refuses one of them: then everything is as it was.
    pub(super) fn start_again(
        &mut self,
        spawner: &Spawner<'_>,
        events: &mut Events,
    ) -> io::Result<()> {
        // All of them, before anything of the last life is forgotten.
        let domains = self.domains.iter().enumerate();
        let processes = domains.map(|(at, domain)| domain.spawn(at, &self.bell, spawner));
        let processes = processes.collect::<io::Result<Vec<_>>>()?;
        let plan = &spawner.request.plan;
        let faults = self.faults(plan).into_iter();
        let faults: Vec<_> = faults.map(|(domain, at)| (spawner.life, domain, at)).collect();
        self.earlier_faults.extend(faults);
        for (at, process) in processes.into_iter().enumerate() {
            self.domains[at].begin_again(process);
            self.tell_start(at, plan, events);
        }
        (self.resets, self.born) = (spawner.life, names(plan));
        Ok(())
    }

    fn tell_start(&self, at: usize, plan: &Plan, events: &mut Events) {
        let text = format!("process {}", self.domains[at].process.id());
        events.add(EventKind::Started, Some(&plan.domains[at].name), text);
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ThreadId> + '_ {
        let domains = self.domains.iter().enumerate();
        domains.flat_map(|(domain, it)| {
            (0..it.threads.len()).map(move |thread| ThreadId { domain, thread })
        })
    }

    pub(super) fn thread(&self, id: ThreadId) -> &Thread {
        &self.domains[id.domain].threads[id.thread]
    }

    /// Domain, thread and descriptor of each trace, for reading only.
    pub(super) fn observed(&self) -> Vec<(usize, usize, RawFd)> {
        self.ids().map(|id| (id.domain, id.thread, self.thread(id).shown())).collect()
    }

    /// The same traces as descriptors of their own, for a peer that asks.
    pub(super) fn shown(&self) -> io::Result<Vec<OwnedFd>> {
        self.ids().map(|id| self.thread(id).to_show()).collect()
    }

    pub(super) fn wait_for<'a>(&'a self, waits: &mut Vec<PollFd<'a>>) {
        waits.push(PollFd::new(&self.bell, PollFlags::IN));
        let alive = self.domains.iter().filter(|domain| !domain.has_ended());
        waits.extend(alive.map(|domain| PollFd::new(&domain.process, PollFlags::IN)));
    }

    /// Hands every new record to `each`, and makes events of what the nodes log and print.
    pub(super) fn read(
        &mut self,
        plan: &Plan,
        clock: Clock,
        events: &mut Events,
        each: &mut dyn FnMut(ThreadId, &Record),
    ) {
        for (at, domain) in self.domains.iter_mut().enumerate() {
            domain.read_traces(clock, &mut |thread, record| {
                each(ThreadId { domain: at, thread }, record);
            });
            domain.listen();
            domain.read_lines(&plan.domains[at].name, events);
            domain.read_output(&plan.domains[at].name, events);
        }
    }

    pub(super) fn order_run(&mut self, start_ns: u64) {
        self.started_ns = self.started_ns.min(start_ns);
        self.domains.iter_mut().for_each(|domain| domain.order_run(start_ns));
    }

    pub(super) fn has_ended(&self) -> bool {
        self.domains.iter().all(Domain::has_ended)
    }

    /// What went wrong in this life, by domain.
    pub(super) fn faults(&self, plan: &Plan) -> Vec<(usize, FaultAt)> {
        let fault = |(index, domain): (usize, &Domain)| {
            let mut at = domain.fault()?;
            // A domain may write anything, and an edit may have moved the node.
            let name = at.node.and_then(|node| self.born.get(node));
            at.node = name.and_then(|name| find(plan, name));
            Some((index, at))
        };
        self.domains.iter().enumerate().filter_map(fault).collect()
    }

    /// An edited graph, `new`, takes the place of `old`: from now on earlier faults name their
    /// nodes in the new one.
    pub(super) fn adopt(&mut self, old: &Plan, new: &Plan) {
        for (_, _, at) in &mut self.earlier_faults {
            at.node = at.node.and_then(|node| find(new, &old.nodes[node].name));
        }
    }
}

fn names(plan: &Plan) -> Vec<String> {
    plan.nodes.iter().map(|node| node.name.clone()).collect()
}

fn find(plan: &Plan, name: &str) -> Option<usize> {
    plan.nodes.iter().position(|node| node.name == name)
}
