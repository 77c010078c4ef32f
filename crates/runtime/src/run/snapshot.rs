//! The status of a run: what a supervisor knows, for whoever asks.

use std::fs;
use std::os::unix::fs::MetadataExt;

use sinew_spec::catalogue::Direction;
use sinew_spec::plan::{End, Link};

use super::Run;
use super::core::domain::Domain;
use super::process::Process;
use super::services::supervised::{Phase as ServicePhase, Supervised};
use crate::assemble::link_ends;
use crate::board::State;
use crate::clock::now_ns;
use crate::privileges::Asked;
use crate::status::{
    DomainRole, DomainState, DomainStatus, FlowStatus, LimitStatus, LinkStatus, NodeStatus,
    PrivilegesStatus, Status, ThreadStatus,
};
use crate::transport;

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
    /// The run at this moment. It reads some files of /proc, so it is not for every cycle.
    pub fn status(&self) -> Status {
        let realtime = (0..self.domains.len()).map(|at| self.realtime_status(at));
        let services = (0..self.services.len()).map(|at| self.service_status(at));
        Status {
            graph: self.plan().name.clone(),
            file: self.request.file.clone(),
            pid: std::process::id(),
            phase: self.phase(),
            elapsed_ms: (now_ns() - self.begun_ns) / 1_000_000,
            domains: realtime.chain(services).collect(),
            links: self.link_statuses(),
            notes: self.plan().notes.clone(),
            stop: self.stop_status(),
        }
    }

    fn realtime_status(&self, at: usize) -> DomainStatus {
        let domain = &self.domains[at];
        let threads = (0..domain.threads.len()).map(|thread| self.thread_status(at, thread));
        let threads = threads.collect();
        let reason = domain.fault().map(|at| at.fault.to_string());
        let nodes = self.node_statuses(at, std::iter::empty());
        let mut status = self.domain_status(at, DomainRole::Realtime, domain.state(), nodes);
        (status.threads, status.last_reason) = (threads, reason);
        status.restarts = self.resets;
        status
    }

    fn thread_status(&self, domain: usize, thread: usize) -> ThreadStatus {
        let running = &self.domains[domain];
        let (counts, records_lost) =
            (&running.threads[thread].counts, running.threads[thread].records_lost());
        let (latency_ns_last, latency_ns_max) = counts.latency_ns(self.clock);
        let planned = self.plan().domains[domain].realtime();
        let asked = Asked {
            priority: planned.map_or(0, |realtime| realtime.priority),
            cpu: planned.and_then(|realtime| realtime.threads[thread].cpu),
        };
        ThreadStatus {
            cycles: counts.totals.cycles,
            records_lost,
            overruns: counts.totals.overruns,
            skipped: counts.totals.skipped,
            latency_ns_last,
            latency_ns_max,
            cpu: asked.cpu,
            priority: asked.priority,
            privileges: PrivilegesStatus::of(&asked, &running.board.obtained(thread)),
        }
    }

    fn service_status(&self, place: usize) -> DomainStatus {
        let service = &self.services[place];
        let at = self.domains.len() + place;
        let nodes = self.node_statuses(at, service.counts());
        let mut status = self.domain_status(at, DomainRole::Service, service.state(), nodes);
        status.restarts = service.restarts;
        status.last_reason.clone_from(&service.reason);
        status.address.clone_from(&service.address);
        if let ServicePhase::Due { at_ns } = service.phase {
            status.next_restart_ms = Some(at_ns.saturating_sub(now_ns()) / 1_000_000);
        }
        status
    }

    fn domain_status(
        &self,
        at: usize,
        role: DomainRole,
        state: DomainState,
        nodes: Vec<NodeStatus>,
    ) -> DomainStatus {
        let process = match self.domains.get(at) {
            Some(domain) => Some(&domain.process).filter(|process| process.ended().is_none()),
            None => self.services[at - self.domains.len()].process.as_ref(),
        };
        let planned = &self.plan().domains[at];
        let up = |process: &Process| (now_ns() - process.started_ns) / 1_000_000;
        DomainStatus {
            name: planned.name.clone(),
            role,
            state,
            pid: process.map(Process::id),
            user: planned.user.clone().or(process.and_then(user)).unwrap_or_default(),
            up_ms: process.map_or(0, up),
            restarts: 0,
            last_reason: None,
            next_restart_ms: None,
            address: None,
            resident_kib: process.and_then(|process| resident_kib(process.id())),
            threads: Vec::new(),
            nodes,
            limits: process.map_or(Vec::new(), |process| self.limits(at, process.id())),
        }
    }

    fn limits(&self, at: usize, pid: u32) -> Vec<LimitStatus> {
        let confinement = match self.domains.get(at) {
            Some(domain) => &domain.confinement,
            None => &self.services[at - self.domains.len()].confinement,
        };
        confinement.read_back(pid)
    }

    fn node_statuses(
        &self,
        domain: usize,
        mut counts: impl Iterator<Item = (u64, [u64; 4])>,
    ) -> Vec<NodeStatus> {
        let plan = self.plan();
        let here: Vec<usize> = match plan.domains[domain].service() {
            Some(service) => service.nodes.clone(),
            None => plan.domains[domain].threads().iter().flat_map(|it| it.nodes.clone()).collect(),
        };
        let status = |node: usize| {
            let (beats, [received, lost, sent, dropped]) = counts.next().unwrap_or_default();
            let node = &plan.nodes[node];
            let (name, kind) = (node.name.clone(), node.kind.name.to_owned());
            let flow = self.flow_status(domain, &name);
            NodeStatus { name, kind, beats, received, lost, sent, dropped, flow }
        };
        here.into_iter().map(status).collect()
    }

    /// The flow nodes of a service, in the order of the plan.
    pub(super) fn node_states(&self, service: &Supervised) -> Vec<NodeState> {
        let plan = &self.request.plan;
        let nodes = plan.domains[service.at].service().map_or(&[][..], |domain| &domain.nodes);
        let state = |node: &usize| {
            let node = &plan.nodes[*node];
            let status = *service.flows.get(&node.name)?;
            let is_source = !node.kind.ports.iter().any(|port| port.direction == Direction::In);
            Some(NodeState { name: node.name.clone(), is_source, status })
        };
        nodes.iter().filter_map(state).collect()
    }

    fn flow_status(&self, domain: usize, node: &str) -> Option<FlowStatus> {
        let service = &self.services[domain.checked_sub(self.domains.len())?];
        service.flows.get(node).copied()
    }

    fn link_statuses(&self) -> Vec<LinkStatus> {
        let plan = self.plan();
        let mut all: Vec<LinkStatus> =
            (0..plan.links.len()).map(|at| self.link_status(at)).collect();
        // What the threads of the core say of their ends.
        for (id, _, _) in self.threads() {
            let nodes = &plan.domains[id.domain].threads()[id.thread].nodes;
            let counted = &self.domains[id.domain].threads[id.thread].counts.links;
            for (link, &(count, broken)) in link_ends(plan, nodes).into_iter().zip(counted) {
                let reads = nodes.contains(&plan.links[link].to.node);
                let status = &mut all[link];
                *(if reads { &mut status.lost } else { &mut status.dropped }) = Some(count);
                status.broken |= broken;
            }
        }
        all
    }

    /// What the node at this end has counted for the link: a service counts for all its links, so
    /// that is known if it has no other one like it. In the core nothing is counted before the
    /// first cycle.
    fn counted(&self, end: End, at_end: impl Fn(&Link) -> usize) -> Option<[u64; 4]> {
        let plan = self.plan();
        let node = &plan.nodes[end.node];
        let Some(place) = node.domain.checked_sub(self.domains.len()) else { return Some([0; 4]) };
        let alone = plan.links.iter().filter(|link| at_end(link) == end.node).count() == 1;
        let nodes = &plan.domains[node.domain].service()?.nodes;
        let at = nodes.iter().position(|&node| node == end.node).filter(|_| alone)?;
        self.services[place].counts().nth(at).map(|(_, messages)| messages)
    }

    fn link_status(&self, at: usize) -> LinkStatus {
        let plan = self.plan();
        let link: &Link = &plan.links[at];
        let end = |end: End| format!("{}.{}", plan.nodes[end.node].name, plan.port(end).name);
        let region = self.carriers.region(plan, at);
        let seen = region.and_then(|region| transport::look(region, &transport::Shape::of(link)));
        LinkStatus {
            from: end(link.from),
            to: end(link.to),
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

impl Domain {
    /// In the words of the status.
    fn state(&self) -> DomainState {
        match self.board.state() {
            _ if self.fault().is_some() => DomainState::Faulted,
            State::Finished => DomainState::Finished,
            _ if self.has_ended() => DomainState::Ended,
            State::Starting => DomainState::Starting,
            State::Ready => DomainState::Ready,
            State::Running => DomainState::Running,
            State::Faulted => DomainState::Faulted,
        }
    }
}

/// The user of a process, as the kernel has it.
fn user(process: &Process) -> Option<String> {
    let uid = fs::metadata(format!("/proc/{}", process.id())).ok()?.uid();
    Some(format!("uid {uid}"))
}

/// Resident memory of a process.
fn resident_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
