//! The heartbeats of a service: for each node a page of counters that outlives its process.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;

use sinew_control::counters::{Counted, open_counters};
use sinew_core::sys::Region;
use sinew_spec::plan::{Plan, ServiceDomain};

use crate::run::doors::number;

/// The nodes of a service, in the order of the plan.
pub(crate) struct Hearts(Vec<Heart>);

/// A node and its heartbeat.
#[derive(Clone)]
struct Heart {
    name: String,
    region: Region,
    counted: Rc<Counted>,
    /// Whether the region is that of another flow node of this life of the domain, because an edit
    /// brought this node. All flow nodes of a domain have one heartbeat.
    is_lent: bool,
    is_flow: bool,
    beats: u64,
    heard_ns: u64,
    /// Ends in earlier lives of its domain.
    ends_before: u64,
}

impl Hearts {
    pub(super) fn open(policy: &ServiceDomain, plan: &Plan) -> io::Result<Hearts> {
        let nodes = policy.nodes.iter();
        let heart = |&node: &usize| Heart::open(plan.nodes[node].name.clone(), plan.is_flow(node));
        Ok(Hearts(nodes.map(heart).collect::<io::Result<_>>()?))
    }

    /// Descriptors of the counters for a new process, in which each node has counters of its own.
    pub(super) fn for_process(&mut self) -> io::Result<Vec<RawFd>> {
        for heart in self.0.iter_mut().filter(|heart| heart.is_lent) {
            *heart = Heart::open(std::mem::take(&mut heart.name), heart.is_flow)?;
        }
        Ok(self.0.iter().map(|heart| number(&heart.region)).collect())
    }

    /// From now on the heartbeats are watched.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.0.iter_mut().for_each(|heart| heart.begin(now_ns));
    }

    /// When to look: when a heartbeat is overdue, otherwise after half of the limit. A hang may be
    /// seen later by that much.
    pub(super) fn due_ns(&self, now_ns: u64, limit_ns: u64) -> u64 {
        let overdue_ns = self.0.iter().map(|heart| heart.heard_ns + limit_ns).min();
        overdue_ns.unwrap_or(u64::MAX).min(now_ns + limit_ns / 2)
    }

    /// What is wrong, in words, if a node has shown no sign of life for `limit_ns`.
    pub(super) fn silence(&mut self, now_ns: u64, limit_ns: u64) -> Option<String> {
        let hearts = self.0.iter_mut();
        let silent: Vec<&str> =
            hearts.filter_map(|heart| heart.is_silent(now_ns, limit_ns)).collect();
        let limit_ms = limit_ns / 1_000_000;
        match silent.as_slice() {
            [] => None,
            [one] => Some(format!("no heartbeat of node '{one}' for {limit_ms} ms: it hangs")),
            // Nodes of flows: it is not known which of them holds its worker.
            [first, more @ ..] => Some(format!(
                "no heartbeat of node '{first}' and {} more for {limit_ms} ms: one of them hangs",
                more.len()
            )),
        }
    }

    /// The edited graph is that of the run now. Nodes that it brings share the heartbeat of the
    /// other flow nodes of the domain, because its process has no counters for them.
    pub(super) fn adopt(&mut self, policy: &ServiceDomain, plan: &Plan) {
        let lender = self.0.iter().find(|heart| heart.is_flow).cloned();
        let before = self.0.drain(..).map(|heart| (heart.name.clone(), heart));
        let mut before: BTreeMap<String, Heart> = before.collect();
        let names = policy.nodes.iter().map(|&node| &plan.nodes[node].name);
        let lend = |name: &String| {
            let (name, lender) = (name.clone(), lender.clone()?);
            Some(Heart { name, is_lent: true, ..lender })
        };
        let hearts = names.filter_map(|name| before.remove(name).or_else(|| lend(name)));
        self.0 = hearts.collect();
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|heart| heart.name == name)
    }

    pub(crate) fn counts(&self) -> impl Iterator<Item = (u64, [u64; 4])> + '_ {
        self.0.iter().map(|heart| (heart.counted.beats(), heart.counted.messages()))
    }
}

impl Heart {
    fn open(name: String, is_flow: bool) -> io::Result<Heart> {
        let region = open_counters()?;
        let counted = Rc::new(Counted::attach(region.clone())?);
        let (is_lent, beats, heard_ns, ends_before) = (false, 0, 0, 0);
        Ok(Heart { name, region, counted, is_lent, is_flow, beats, heard_ns, ends_before })
    }

    fn begin(&mut self, now_ns: u64) {
        (self.beats, self.heard_ns) = (self.counted.beats(), now_ns);
        self.ends_before = self.counted.ends();
    }

    /// Its name, if it has shown no sign of life for `limit_ns` and has not ended in order.
    fn is_silent(&mut self, now_ns: u64, limit_ns: u64) -> Option<&str> {
        let beats = self.counted.beats();
        if beats != self.beats || self.counted.ends() != self.ends_before {
            (self.beats, self.heard_ns) = (beats, now_ns);
        }
        (now_ns - self.heard_ns >= limit_ns).then_some(&*self.name)
    }
}
