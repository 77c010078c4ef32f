//! What a run looks like at a moment: what its supervisor knows, for those that ask.

use std::fs;
use std::os::unix::fs::MetadataExt;

use sinew_control::outside;
use sinew_control::status::{
    DomainRole, DomainState, DomainStatus, EventKind, Events, FlowStatus, LinkStatus, NodeStatus,
    PrivilegesStatus, Status, ThreadStatus,
};
use sinew_core::board::FaultAt;
use sinew_core::clock::{Clock, now_ns};
use sinew_core::ends::link_ends;
use sinew_core::fault::{Cause, Fault};
use sinew_core::privileges::{Asked, Obtained};
use sinew_core::trace::ThreadId;
use sinew_core::transport;
use sinew_figures::process::resident_kib;
use sinew_spec::catalogue::Direction;
use sinew_spec::plan::{End, Link, Plan};

use super::Run;
use super::core::Domain;
use super::lifecycle::Stage;
use super::process::Process;
use super::services::Supervised;
use crate::confine::Confinement;

/// A service domain at a moment, in short; [`Run::status`] tells more, and costs more.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceState {
    /// Index into [`Plan::domains`].
    pub domain: usize,
    /// How far it is.
    pub state: DomainState,
    /// Its process, if there is one.
    pub pid: Option<u32>,
    /// How often it was started again.
    pub restarts: u32,
    /// Why it ended last.
    pub last_reason: Option<String>,
    /// Where people find what it serves.
    pub address: Option<String>,
    /// Its flow nodes, in the order of the plan.
    pub flows: Vec<NodeState>,
}

/// A flow node at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeState {
    /// Its name.
    pub name: String,
    /// Whether it is a source: then its packets are flows.
    pub is_source: bool,
    /// What it has done.
    pub status: FlowStatus,
}

impl Run {
    /// The plan that runs.
    pub fn plan(&self) -> &Plan {
        &self.request.plan
    }

    /// Turns the ticks of records into nanoseconds.
    pub fn clock(&self) -> Clock {
        self.origin.clock
    }

    /// Time of the first release of all, monotonic ns; `u64::MAX` as long as there is none.
    pub fn started_ns(&self) -> u64 {
        self.core.started_ns
    }

    /// What has happened so far.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Adds an event that the caller knows of.
    pub fn note(&mut self, what: EventKind, domain: Option<&str>, text: impl Into<String>) {
        self.events.add(what, domain, text);
    }

    /// What the kernel gave to each realtime thread, and what the plan asked for.
    pub fn privileges(&self) -> Vec<(ThreadId, Asked, Obtained)> {
        let row = |id| (id, self.asked(id), self.obtained(id));
        self.core.ids().map(row).collect()
    }

    fn asked(&self, id: ThreadId) -> Asked {
        let planned = self.plan().domains[id.domain].realtime();
        Asked {
            priority: planned.map_or(0, |realtime| realtime.priority),
            cpu: planned.and_then(|realtime| realtime.threads[id.thread].cpu),
        }
    }

    fn obtained(&self, id: ThreadId) -> Obtained {
        self.core.domains[id.domain].process.board.obtained(id.thread)
    }

    /// Each realtime thread that has started, with its process and its number in the kernel.
    pub fn threads(&self) -> Vec<(ThreadId, u32, u32)> {
        let started = |id: ThreadId| {
            let process = &self.core.domains[id.domain].process;
            Some((id, process.id(), process.board.thread_id(id.thread)?))
        };
        self.core.ids().filter_map(started).collect()
    }

    /// How often the core was started again.
    pub fn resets(&self) -> u32 {
        self.core.resets
    }

    /// Process of each domain, in the order of the plan; `None` for a service that has none now,
    /// and for a core that is held.
    pub fn pids(&self) -> Vec<Option<u32>> {
        let is_held = self.lifecycle.stage == Stage::Held;
        let id = |domain: &Domain| (!is_held).then(|| domain.process.id());
        let realtime = self.core.domains.iter().map(id);
        let services = self.services.iter().map(|it| it.process().map(Process::id));
        realtime.chain(services).collect()
    }

    /// Process of each realtime domain.
    pub fn processes(&self) -> Vec<u32> {
        self.core.domains.iter().map(|domain| domain.process.id()).collect()
    }

    /// The service domains.
    pub fn services(&self) -> Vec<ServiceState> {
        let state = |service: &Supervised| ServiceState {
            domain: service.at,
            state: service.state(),
            pid: service.process().map(Process::id),
            restarts: service.history.restarts,
            last_reason: service.history.reason.clone(),
            address: service.address.clone(),
            flows: self.node_states(service),
        };
        self.services.iter().map(state).collect()
    }

    /// A text for each CPU profile that was asked for and is incomplete; call it at the end.
    pub fn profiles_lack(&self) -> Vec<String> {
        self.services.iter().filter_map(Supervised::profile_lacks).collect()
    }

    /// Records that came too fast for [`Run::poll`], in all.
    pub fn records_lost(&self) -> u64 {
        self.core.ids().fold(0, |sum, id| sum.saturating_add(self.records_lost_of(id)))
    }

    /// The same for one thread of the core.
    pub fn records_lost_of(&self, id: ThreadId) -> u64 {
        let thread = self.core.domains.get(id.domain).and_then(|it| it.threads.get(id.thread));
        thread.map_or(0, |thread| thread.records_lost_ever())
    }

    /// What went wrong in lives of the core before this one, with the number of the life, from 1.
    pub fn earlier_faults(&self) -> &[(u32, usize, FaultAt)] {
        &self.core.earlier_faults
    }

    /// What went wrong, by domain; it is not known which domain reported first, so the order is
    /// that of stopping. A service's faults are events, unless there is no core: then a service
    /// that has failed for good is the graph's fault. A failed job is always a fault.
    pub fn faults(&self) -> Vec<(usize, FaultAt)> {
        let lost = |service: &Supervised| {
            let loss = service.loss().filter(|_| self.core.domains.is_empty())?;
            let fault = Fault::new(Cause::Died, format_args!("{loss}"));
            Some((service.at, FaultAt { fault, node: None, cycle: None }))
        };
        let mut faults = self.core.faults(&self.request.plan);
        faults.extend(self.services.iter().filter_map(lost));
        faults.extend(self.lifecycle.stop.as_ref().and_then(|stop| stop.failure.clone()));
        faults
    }
}

/// The status.
impl Run {
    /// The run at this moment. It reads some files of /proc, so it is not for every cycle.
    pub fn status(&self) -> Status {
        let realtime = self.core.domains.iter().enumerate();
        let realtime = realtime.map(|(at, domain)| self.realtime_status(at, domain));
        let services = self.services.iter().map(|service| self.service_status(service));
        Status {
            graph: self.plan().name.clone(),
            host: self.plan().own_host().map(|host| host.name.clone()),
            file: self.request.spec.file.clone(),
            pid: std::process::id(),
            phase: self.phase(),
            elapsed_ms: (now_ns() - self.origin.begun_ns) / 1_000_000,
            domains: realtime.chain(services).collect(),
            links: self.link_statuses(),
            notes: self.plan().notes.clone(),
            stop: self.stop_status(),
        }
    }

    fn realtime_status(&self, at: usize, domain: &Domain) -> DomainStatus {
        let process = (!domain.has_ended()).then_some(&domain.process);
        let threads = self.core.ids().filter(|id| id.domain == at);
        DomainStatus {
            state: domain.state_shown(),
            restarts: self.core.resets,
            last_reason: domain.fault().map(|at| outside::hidden(at.fault.to_string())),
            threads: threads.map(|id| self.thread_status(id)).collect(),
            ..self.domain_status(at, process, &domain.confinement)
        }
    }

    fn thread_status(&self, id: ThreadId) -> ThreadStatus {
        let (thread, asked) = (self.core.thread(id), self.asked(id));
        let totals = thread.counts.totals;
        let (latency_ns_last, latency_ns_max) = thread.counts.latency_ns(self.origin.clock);
        ThreadStatus {
            cycles: totals.cycles,
            records_lost: thread.records_lost(),
            overruns: totals.overruns,
            skipped: totals.skipped,
            latency_ns_last,
            latency_ns_max,
            cpu: asked.cpu,
            priority: asked.priority,
            privileges: PrivilegesStatus::of(&asked, &self.obtained(id)),
        }
    }

    fn service_status(&self, service: &Supervised) -> DomainStatus {
        let left_ms = |ns: u64| ns.saturating_sub(now_ns()) / 1_000_000;
        DomainStatus {
            state: service.state(),
            restarts: service.history.restarts,
            last_reason: service.history.reason.clone(),
            next_restart_ms: service.back_ns().map(left_ms),
            address: service.address.clone(),
            pool: service.pool.clone(),
            hosts: service.hosts.clone(),
            ..self.domain_status(service.at, service.process(), &service.confinement)
        }
    }

    /// The service that is this domain of the plan.
    fn service_at(&self, domain: usize) -> Option<&Supervised> {
        self.services.get(domain.checked_sub(self.core.domains.len())?)
    }

    /// The status that every domain has.
    fn domain_status(
        &self,
        at: usize,
        process: Option<&Process>,
        confinement: &Confinement,
    ) -> DomainStatus {
        let planned = &self.plan().domains[at];
        let limits = process.map(|process| confinement.read_back(process.id()));
        let resident = process.and_then(|process| resident_kib(process.id()).ok());
        DomainStatus {
            name: planned.name.clone(),
            role: DomainRole::of(planned),
            pid: process.map(Process::id),
            user: planned.user.clone().or(process.and_then(user)).unwrap_or_default(),
            up_ms: process.map_or(0, |process| (now_ns() - process.started_ns) / 1_000_000),
            resident_kib: resident.map(|(now_kib, _)| now_kib),
            nodes: self.node_statuses(at),
            limits: limits.unwrap_or_default(),
            ..DomainStatus::default()
        }
    }

    fn node_statuses(&self, domain: usize) -> Vec<NodeStatus> {
        let plan = self.plan();
        let service = self.service_at(domain);
        let mut counts = service.into_iter().flat_map(|service| service.hearts.counts());
        let planned = &plan.domains[domain];
        let served = planned.service().into_iter().flat_map(|service| &service.nodes);
        let status = |&node: &usize| {
            let (beats, [received, lost, sent, dropped]) = counts.next().unwrap_or_default();
            let node = &plan.nodes[node];
            let (name, kind) = (node.name.clone(), node.kind.name.to_owned());
            let flow = service.and_then(|service| service.flows.get(&name).copied());
            NodeStatus { name, kind, beats, received, lost, sent, dropped, flow }
        };
        planned
            .threads()
            .iter()
            .flat_map(|thread| &thread.nodes)
            .chain(served)
            .map(status)
            .collect()
    }

    /// The flow nodes of a service, in the order of the plan.
    fn node_states(&self, service: &Supervised) -> Vec<NodeState> {
        let plan = &self.request.plan;
        let nodes = plan.domains[service.at].service().map_or(&[][..], |domain| &domain.nodes);
        let state = |node: &usize| {
            let node = &plan.nodes[*node];
            let status = *service.flows.get(&node.name)?;
            // A node without any port has no packets to count.
            node.kind.ports.first()?;
            let is_source = !node.kind.ports.iter().any(|port| port.direction == Direction::In);
            Some(NodeState { name: node.name.clone(), is_source, status })
        };
        nodes.iter().filter_map(state).collect()
    }

    fn link_statuses(&self) -> Vec<LinkStatus> {
        let plan = self.plan();
        let mut all: Vec<LinkStatus> =
            (0..plan.links.len()).map(|at| self.link_status(at)).collect();
        // What the threads of the core say about their ends.
        for (id, _, _) in self.threads() {
            let nodes = &plan.domains[id.domain].threads()[id.thread].nodes;
            let counted = &self.core.thread(id).counts.links;
            for (link, &(count, broken)) in link_ends(plan, nodes).into_iter().zip(counted) {
                let reads = nodes.contains(&plan.links[link].to.node);
                let status = &mut all[link];
                *(if reads { &mut status.lost } else { &mut status.dropped }) = Some(count);
                status.broken |= broken;
            }
        }
        all
    }

    /// What the node at this end has counted for the link: a service counts for all its links
    /// together, so the count is known only if it has no other link of this direction. In the core
    /// nothing is counted before the first cycle.
    fn counted(&self, end: End, at_end: impl Fn(&Link) -> usize) -> Option<[u64; 4]> {
        let plan = self.plan();
        let node = &plan.nodes[end.node];
        let Some(service) = self.service_at(node.domain) else { return Some([0; 4]) };
        let alone = plan.links.iter().filter(|link| at_end(link) == end.node).count() == 1;
        let nodes = &plan.domains[node.domain].service()?.nodes;
        let at = nodes.iter().position(|&node| node == end.node).filter(|_| alone)?;
        service.hearts.counts().nth(at).map(|(_, messages)| messages)
    }

    fn link_status(&self, at: usize) -> LinkStatus {
        let plan = self.plan();
        let link: &Link = &plan.links[at];
        let region = self.links.region(plan, at);
        let seen =
            region.and_then(|region| transport::look(region, &transport::LinkShape::of(link)));
        LinkStatus {
            from: plan.end_name(link.from),
            to: plan.end_name(link.to),
            transport: if link.fused { "fused".into() } else { link.transport.word().into() },
            delivery: link.delivery.word().into(),
            capacity: link.capacity,
            fill: seen.map(|seen| seen.fill),
            written: seen.map(|seen| seen.written.into()),
            lost: self.counted(link.to, |other| other.to.node).map(|[_, lost, _, _]| lost),
            dropped: self.counted(link.from, |other| other.from.node).map(|[.., dropped]| dropped),
            broken: region.is_some() && seen.is_none() && link.sync.word() == "lock_free",
        }
    }
}

fn user(process: &Process) -> Option<String> {
    let uid = fs::metadata(format!("/proc/{}", process.id())).ok()?.uid();
    Some(format!("uid {uid}"))
}
