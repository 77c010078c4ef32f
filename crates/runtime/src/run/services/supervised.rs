//! A service domain, as the supervisor sees it: started, watched, restarted by its policy, and
//! never a reason to stop the graph.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::rc::Rc;

use sinew_spec::keys::NODES_MAX;
use sinew_spec::plan::{self, Plan};

use super::super::links::number;
use super::super::output::pipe::{Lines, Talk};
use super::super::process::{Process, Strays, ending};
use super::super::{Frame, Given};
use super::restarts::{History, Next};
use crate::bell::Bell;
use crate::board::{Board, State, Wish};
use crate::clock::now_ns;
use crate::confine::{Confinement, Search};
use crate::profile::{Profile, WRITE_NS_MAX, is_whole};
use crate::service::{Counted, open_counters};
use crate::status::{DomainState, EventKind, Events, FlowFigures, FlowStatus};
use crate::sys::Region;

/// How long a service that was killed may take to be gone, before the supervisor says so.
const GONE_NS_MAX: u64 = 5_000_000_000;

/// So often the lines of a service that has said too much in this second are taken and dropped: it
/// shall not wait for us, and not wake us with each of them either.
const FLOOD_LOOK_NS: u64 = 10_000_000;

/// Names of flow nodes that are kept of a service, as many as it can have: one that makes up names
/// fills no memory of ours.
const FLOW_NODES_MAX: usize = NODES_MAX;

/// A service domain.
pub(in crate::run) struct Supervised {
    /// Its place in the plan.
    pub(in crate::run) at: usize,
    name: String,
    policy: plan::Service,
    pub(in crate::run) phase: Phase,
    pub(in crate::run) process: Option<Process>,
    gone: Option<Gone>,
    pub(in crate::run) confinement: Confinement,
    /// Processes that the kernel has killed for their memory so far.
    memory_kills: u64,
    board: Board,
    bell: Bell,
    nodes: Vec<Watched>,
    /// Its nodes when its process was started.
    born: Vec<Born>,
    /// Until it is ready: the spec's file, in which its user looks for what keeps it from that.
    unready: Option<String>,
    lines: Option<Lines>,
    talk: Talk,
    /// What it asks of the run.
    pub(in crate::run) orders: Talk,
    /// Whether it has a connection to the supervisor: a node of it observes the run, or has flows.
    talks: bool,
    /// Our end of a connection to a new life of it, until the control server takes it.
    pub(in crate::run) connection: Option<UnixStream>,
    history: History,
    pub(in crate::run) restarts: u32,
    /// Where people find what it serves.
    pub(in crate::run) address: Option<String>,
    /// What its flow nodes have done in this life, by name.
    pub(in crate::run) flows: BTreeMap<String, FlowStatus>,
    /// Why it ended last.
    pub(in crate::run) reason: Option<String>,
    /// What the supervisor holds against it, before the kill has landed.
    charge: Option<String>,
    /// Whether it is to come back at once, whatever its policy: somebody asked.
    again: bool,
    /// Whether the graph stops.
    last: bool,
    /// How often its process was started.
    lives: u32,
    /// Where this life writes its CPU profile as it stops.
    profile: Option<PathBuf>,
}

/// How far a service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Phase {
    /// Others start before it.
    Waiting,
    /// To be started at this time.
    Due { at_ns: u64 },
    /// It makes its nodes.
    Starting { since_ns: u64 },
    /// It runs.
    Running,
    /// It was told to stop, or killed.
    Stopping { since_ns: u64, killed: bool },
    /// It does not come back.
    Over(Over),
}

/// Why it does not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Over {
    /// It said that its job is done.
    Finished,
    /// Its policy, or the stop of the graph.
    Ended,
    /// It ended too often.
    GivenUp,
}

/// A node when its process was started.
struct Born {
    /// Index in the plan of that time.
    index: usize,
    name: String,
    /// Of the spec.
    line: u32,
}

/// A process that has ended, and the search for what it has started.
struct Gone {
    status: ExitStatus,
    strays: Strays,
}

/// A node and its heartbeat.
#[derive(Clone)]
struct Watched {
    name: String,
    region: Region,
    counted: Rc<Counted>,
    /// Whether the region is that of another flow node of this life of the domain: an edit brought
    /// the node. The heart of all flow nodes of a domain is one.
    is_lent: bool,
    is_flow: bool,
    beats: u64,
    heard_ns: u64,
    /// Ends in earlier lives of its domain.
    ends_before: u64,
}

impl Supervised {
    /// A service that is not started yet.
    pub(in crate::run) fn new(
        at: usize,
        policy: &plan::Service,
        confinement: Confinement,
        plan: &Plan,
    ) -> io::Result<Supervised> {
        let nodes = policy
            .nodes
            .iter()
            .map(|&node| Watched::new(plan.nodes[node].name.clone(), plan.is_flow(node)));
        Ok(Supervised {
            at,
            name: plan.domains[at].name.clone(),
            policy: policy.clone(),
            phase: Phase::Waiting,
            process: None,
            gone: None,
            confinement,
            memory_kills: 0,
            board: Board::create()?,
            bell: Bell::create()?,
            nodes: nodes.collect::<io::Result<_>>()?,
            born: Vec::new(),
            unready: None,
            lines: None,
            talk: Talk::of("lines"),
            orders: Talk::of("orders"),
            talks: policy.nodes.iter().any(|&node| plan.observes(node) || plan.is_flow(node)),
            connection: None,
            history: History::new(policy.restart),
            restarts: 0,
            address: None,
            flows: BTreeMap::new(),
            reason: None,
            charge: None,
            again: false,
            last: false,
            lives: 0,
            profile: None,
        })
    }

    /// Whether its first start is over, well or not: then the next one may start.
    pub(in crate::run) fn was_tried(&self) -> bool {
        !matches!(self.phase, Phase::Waiting | Phase::Due { .. } | Phase::Starting { .. })
            || self.reason.is_some()
    }

    pub(in crate::run) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over(_)) && self.gone.is_none()
    }

    /// To be called whenever something may have happened.
    pub(in crate::run) fn go_on(&mut self, frame: &Frame<'_>, events: &mut Events) {
        let now_ns = now_ns();
        if let Some(bell) = self.bell() {
            bell.hush();
        }
        self.read_lines(now_ns, events);
        if self.process.as_mut().is_some_and(Process::reap) {
            self.sweep();
        }
        if let Some(gone) = self.gone.take_if(|gone| gone.strays.are_gone()) {
            self.ended(gone, now_ns, events);
        }
        match self.phase {
            _ if self.gone.is_some() => {}
            Phase::Due { at_ns } if now_ns >= at_ns => self.start(frame, events),
            Phase::Starting { since_ns } => self.watch_start(since_ns, now_ns, events),
            Phase::Running => self.listen(now_ns, events),
            Phase::Stopping { since_ns, killed } => {
                self.watch_stop(since_ns, killed, now_ns, events)
            }
            Phase::Waiting | Phase::Due { .. } | Phase::Over(_) => {}
        }
    }

    /// When it must be looked at, if nothing happens before.
    pub(in crate::run) fn due_ns(&self) -> u64 {
        let flood_ns = match &self.lines {
            Some(lines) if lines.is_open() && self.talk.is_over() => now_ns() + FLOOD_LOOK_NS,
            _ => u64::MAX,
        };
        flood_ns.min(match self.phase {
            _ if self.gone.is_some() => u64::MAX,
            Phase::Due { at_ns } => at_ns,
            Phase::Starting { since_ns } => since_ns + self.policy.start_deadline_ns,
            Phase::Running => self.listen_ns(),
            Phase::Stopping { since_ns, killed: false } => since_ns + self.stop_ns_max(),
            Phase::Stopping { since_ns, killed: true } => since_ns + GONE_NS_MAX,
            Phase::Waiting | Phase::Over(_) => u64::MAX,
        })
    }

    /// When to look for heartbeats: when one is overdue, and else after half of the limit. So much
    /// later than that a hang may be seen.
    fn listen_ns(&self) -> u64 {
        let limit_ns = self.policy.heartbeat_ns;
        let overdue_ns = self.nodes.iter().map(|node| node.heard_ns + limit_ns).min();
        overdue_ns.unwrap_or(u64::MAX).min(now_ns() + limit_ns / 2)
    }

    /// Starts it now, if it has never been started.
    pub(in crate::run) fn begin(&mut self) {
        if self.phase == Phase::Waiting {
            self.phase = Phase::Due { at_ns: 0 };
        }
    }

    /// The graph stops: whatever happens to it from now on, it does not come back.
    pub(in crate::run) fn leave(&mut self) {
        (self.again, self.last) = (false, true);
        if matches!(self.phase, Phase::Waiting | Phase::Due { .. }) {
            self.phase = Phase::Over(Over::Ended);
        }
    }

    /// Tells it to stop for good.
    pub(in crate::run) fn stop(&mut self, events: &mut Events) {
        self.leave();
        if matches!(self.phase, Phase::Starting { .. } | Phase::Running) {
            self.order_stop(events);
        }
    }

    /// Stops it and starts it again; its earlier ends are forgotten.
    pub(in crate::run) fn restart(&mut self, events: &mut Events) {
        self.history.forget();
        match self.phase {
            // Its turn comes: those before it are not ready yet.
            Phase::Waiting => {}
            Phase::Due { .. } | Phase::Over(_) => self.phase = Phase::Due { at_ns: 0 },
            Phase::Starting { .. } | Phase::Running => {
                self.again = true;
                self.order_stop(events);
            }
            Phase::Stopping { .. } => self.again = true,
        }
    }

    fn order_stop(&mut self, events: &mut Events) {
        self.board.order_stop();
        self.phase = Phase::Stopping { since_ns: now_ns(), killed: false };
        events.add(EventKind::Stopping, Some(&self.name), "told to stop");
    }

    fn start(&mut self, frame: &Frame<'_>, events: &mut Events) {
        match self.spawn(frame) {
            Ok(process) => {
                let text = format!("process {}", process.id());
                events.add(EventKind::Started, Some(&self.name), text);
                self.restarts += u32::from(self.reason.is_some() || self.again);
                self.again = false;
                self.process = Some(process);
                self.phase = Phase::Starting { since_ns: now_ns() };
            }
            Err(error) => {
                let reason = format!("cannot be started: {error}");
                events.add(EventKind::Faulted, Some(&self.name), reason.clone());
                self.reason = Some(reason);
                self.decide(now_ns(), false, events);
            }
        }
    }

    fn spawn(&mut self, frame: &Frame<'_>) -> io::Result<Process> {
        // A page and a bell of its own for each life: what is left of the last one is not heard.
        self.lives += 1;
        self.board = Board::create()?;
        self.bell = Bell::create()?;
        let (lines, out, error) = Lines::open()?;
        for node in self.nodes.iter_mut().filter(|node| node.is_lent) {
            *node = Watched::new(std::mem::take(&mut node.name), node.is_flow)?;
        }
        let names = self.nodes.iter().map(|node| node.name.clone());
        let born = self.policy.nodes.iter().copied().zip(names).map(|(index, name)| {
            let line = frame.request.plan.nodes[index].line;
            Born { index, name, line }
        });
        self.born = born.collect();
        self.unready = Some(frame.request.file.clone());
        let counters = self.nodes.iter().map(|node| number(&node.region)).collect();
        let (board, bell) = (&self.board, &self.bell);
        let (ours, theirs) = if self.talks { UnixStream::pair().map(Some)? } else { None }.unzip();
        self.profile = frame.profile.and_then(|profile| self.profile_of(profile, frame));
        let profile = self.profile.as_deref().map(open_profile).transpose()?;
        let given = Given {
            board,
            bell,
            traces: vec![],
            counters,
            supervisor: theirs.as_ref(),
            profile: profile.as_ref(),
            output: [out, error],
        };
        let process = frame.spawn(self.at, &self.confinement, given)?;
        self.connection = ours;
        self.lines = Some(lines);
        self.flows.clear();
        Ok(process)
    }

    /// The file of this life's CPU profile; `None` if the domain has no flows.
    fn profile_of(&self, profile: &Profile, frame: &Frame<'_>) -> Option<PathBuf> {
        let plan = &frame.request.plan;
        let flows = |domain: &plan::Domain| {
            domain.service().is_some_and(|it| it.nodes.iter().any(|&node| plan.is_flow(node)))
        };
        let domains = plan.domains.iter().filter(|domain| flows(domain)).count();
        flows(&plan.domains[self.at]).then(|| profile.file_of(&self.name, domains, self.lives))
    }

    /// Its CPU profile, if that was asked for and its last life has left none that is whole.
    pub(in crate::run) fn profile_lacks(&self) -> Option<String> {
        let path = self.profile.as_ref().filter(|path| !is_whole(path))?;
        Some(format!("the CPU profile '{}' is incomplete", path.display()))
    }

    fn watch_start(&mut self, since_ns: u64, now_ns: u64, events: &mut Events) {
        match self.board.state() {
            State::Starting => {
                let limit_ms = self.policy.start_deadline_ns / 1_000_000;
                if now_ns - since_ns >= self.policy.start_deadline_ns {
                    self.kill(format!("was not ready within {limit_ms} ms"), now_ns);
                }
            }
            State::Faulted => self.phase = Phase::Stopping { since_ns: now_ns, killed: false },
            State::Ready | State::Running | State::Finished => {
                let after_us = (now_ns - since_ns) / 1000;
                let text = format!("after {}.{:03} ms", after_us / 1000, after_us % 1000);
                events.add(EventKind::Ready, Some(&self.name), text);
                self.nodes.iter_mut().for_each(|node| node.begin(now_ns));
                self.board.order_run(now_ns);
                self.phase = Phase::Running;
                self.unready = None;
            }
        }
    }

    /// Looks for heartbeats.
    fn listen(&mut self, now_ns: u64, events: &mut Events) {
        if self.board.state() == State::Faulted {
            self.order_stop(events);
            return;
        }
        let limit_ns = self.policy.heartbeat_ns;
        let nodes = self.nodes.iter_mut();
        let silent: Vec<&str> = nodes.filter_map(|node| node.is_silent(now_ns, limit_ns)).collect();
        let limit_ms = limit_ns / 1_000_000;
        let charge = match silent.as_slice() {
            [] => return,
            [one] => format!("no heartbeat of node '{one}' for {limit_ms} ms: it hangs"),
            // Nodes of flows, of which it is not known which one keeps its worker.
            [first, more @ ..] => format!(
                "no heartbeat of node '{first}' and {} more for {limit_ms} ms: one of them hangs",
                more.len()
            ),
        };
        self.kill(charge, now_ns);
    }

    fn watch_stop(&mut self, since_ns: u64, killed: bool, now_ns: u64, events: &mut Events) {
        let limit_ns = self.stop_ns_max();
        if !killed && now_ns - since_ns >= limit_ns {
            let limit_ms = limit_ns / 1_000_000;
            self.kill(format!("did not stop within {limit_ms} ms and was killed"), now_ns);
        } else if killed && now_ns - since_ns >= GONE_NS_MAX {
            // Only a process that the kernel holds (a broken disk or driver) outlives that.
            let text = "was killed, but the kernel does not let it go";
            events.add(EventKind::Note, Some(&self.name), text);
            self.phase = Phase::Stopping { since_ns: now_ns, killed };
        }
    }

    /// How long it may take to stop.
    fn stop_ns_max(&self) -> u64 {
        self.policy.stop_deadline_ns + if self.profile.is_some() { WRITE_NS_MAX } else { 0 }
    }

    /// Kills it for a reason that its own process does not know.
    pub(in crate::run) fn kill(&mut self, charge: String, now_ns: u64) {
        self.charge.get_or_insert(charge);
        if let Some(process) = &mut self.process {
            process.kill();
        }
        self.phase = Phase::Stopping { since_ns: now_ns, killed: true };
    }

    /// Its process is gone: what it has started goes too, before anything else. To look through all
    /// processes may take a while, and the others must be watched meanwhile.
    fn sweep(&mut self) {
        let Some(process) = self.process.take() else { return };
        // Either way: what a cgroup knows it kills at once, the others are looked for.
        let _ = self.confinement.kill();
        let status = process.ended().unwrap_or_default();
        self.gone = Some(Gone { status, strays: process.seek_strays() });
    }

    /// Nothing is left of it.
    fn ended(&mut self, gone: Gone, now_ns: u64, events: &mut Events) {
        let Gone { status, strays } = gone;
        let strays = strays.count();
        // What it said last is there now.
        self.read_lines(now_ns, events);
        self.lines = None;
        let fault = self.board.fault().map(|at| match at.node.and_then(|node| self.node(node)) {
            Some(Born { name, line, .. }) => {
                let place = self.unready.as_ref().map(|file| format!(" ({file}:{line})"));
                format!("in node '{name}': {}{}", at.fault, place.unwrap_or_default())
            }
            None => at.fault.to_string(),
        });
        let in_order = status.success() && self.charge.is_none() && fault.is_none();
        let mut reason = match (fault, self.charge.take()) {
            (Some(fault), _) => fault,
            (None, Some(charge)) => charge,
            (None, None) if status.success() => "has ended in order".into(),
            (None, None) => ending(status),
        };
        let memory_kills = self.confinement.toll().memory_kills;
        if std::mem::replace(&mut self.memory_kills, memory_kills) < memory_kills {
            reason = format!("{reason}; its memory was full: see 'memory' in its limits");
        }
        if strays > 0 {
            reason = format!("{reason}; {strays} processes that it had started were killed");
        }
        let what = if in_order { EventKind::Ended } else { EventKind::Faulted };
        events.add(what, Some(&self.name), reason.clone());
        self.reason = Some(reason);
        if self.again {
            self.phase = Phase::Due { at_ns: 0 };
        } else if self.last {
            self.phase = Phase::Over(Over::Ended);
        } else {
            self.decide(now_ns, in_order, events);
        }
    }

    /// By its policy.
    fn decide(&mut self, now_ns: u64, in_order: bool, events: &mut Events) {
        self.phase = match self.history.ended(now_ns, in_order) {
            Next::Restart { after_ns } => {
                let text = format!("in {} ms", after_ns / 1_000_000);
                events.add(EventKind::Restarting, Some(&self.name), text);
                Phase::Due { at_ns: now_ns + after_ns }
            }
            Next::Leave if in_order => Phase::Over(Over::Finished),
            Next::Leave => Phase::Over(Over::Ended),
            Next::GiveUp => {
                let plan::Restart { restarts_max, window_ns, .. } = self.policy.restart;
                let text = format!(
                    "{restarts_max} restarts within {} s were not enough; mend it, then 'sinew \
                     restart {}'",
                    window_ns / 1_000_000_000,
                    self.name
                );
                events.add(EventKind::GivenUp, Some(&self.name), text);
                Phase::Over(Over::GivenUp)
            }
        };
    }

    fn read_lines(&mut self, now_ns: u64, events: &mut Events) {
        let (name, talk) = (&self.name, &mut self.talk);
        talk.look(now_ns, name, events);
        self.orders.look(now_ns, name, events);
        if let Some(lines) = &mut self.lines {
            lines.read(&mut |line| {
                talk.say(EventKind::Output, Some(name), line, events);
            });
        }
    }

    /// The node with this index in the plan that its process was started with. What a service
    /// writes may be anything.
    fn node(&self, index: usize) -> Option<&Born> {
        self.born.iter().find(|born| born.index == index)
    }

    /// Its process, if it runs and nothing is wrong with it.
    pub(in crate::run) fn running(&self) -> Option<u32> {
        self.process.as_ref().filter(|_| self.phase == Phase::Running).map(Process::id)
    }

    /// Whether it is on its way to run or to end.
    pub(in crate::run) fn is_changing(&self) -> bool {
        self.gone.is_some() || matches!(self.phase, Phase::Starting { .. } | Phase::Stopping { .. })
    }

    /// Tells it what to do with an edited graph.
    pub(in crate::run) fn say_edition(&self, number: u32, wish: Wish) {
        self.board.say_edition(number, wish);
    }

    /// An edited graph is that of the run now. Nodes that it brings live with the other flow nodes
    /// of the domain, whose process has no counters for them.
    pub(in crate::run) fn adopt(&mut self, plan: &Plan) {
        let Some(policy) = plan.domains[self.at].service() else { return };
        self.policy = policy.clone();
        let lender = self.nodes.iter().find(|node| node.is_flow).cloned();
        let before = self.nodes.drain(..).map(|node| (node.name.clone(), node));
        let mut before: BTreeMap<String, Watched> = before.collect();
        let names = policy.nodes.iter().map(|&node| &plan.nodes[node].name);
        let lend = |name: &String| lender.as_ref().map(|lender| lender.lend(name));
        let nodes = names.filter_map(|name| before.remove(name).or_else(|| lend(name)));
        self.nodes = nodes.collect();
        let names: BTreeSet<&str> = self.nodes.iter().map(|node| &*node.name).collect();
        self.flows.retain(|name, _| names.contains(&**name));
    }

    /// What wakes the supervisor once what it has started is gone.
    pub(in crate::run) fn search(&self) -> Option<&Search> {
        self.gone.as_ref().and_then(|gone| gone.strays.search())
    }

    /// What wakes the supervisor beside the process's end: that it is ready. Afterwards its bell is
    /// not heard; who rings without end disturbs nobody.
    pub(in crate::run) fn bell(&self) -> Option<&Bell> {
        matches!(self.phase, Phase::Starting { .. }).then_some(&self.bell)
    }

    /// And what it says.
    pub(in crate::run) fn lines(&self) -> Option<&Lines> {
        self.lines.as_ref().filter(|lines| lines.is_open() && !self.talk.is_over())
    }

    /// Takes what it says of its flow nodes; what it says may be anything.
    pub(in crate::run) fn take_figures(&mut self, figures: &[FlowFigures]) {
        for FlowFigures { name, status } in figures {
            if self.flows.len() < FLOW_NODES_MAX || self.flows.contains_key(name) {
                self.flows.insert(name.clone(), *status);
            }
        }
    }

    /// Heartbeats and messages of each node.
    pub(in crate::run) fn counts(&self) -> impl Iterator<Item = (u64, [u64; 4])> + '_ {
        self.nodes.iter().map(|node| (node.counted.beats(), node.counted.messages()))
    }

    /// In the words of the status.
    pub(in crate::run) fn state(&self) -> DomainState {
        match self.phase {
            Phase::Waiting => DomainState::Waiting,
            Phase::Due { .. } if self.reason.is_none() => DomainState::Waiting,
            Phase::Due { .. } => DomainState::Backoff,
            Phase::Starting { .. } => DomainState::Starting,
            Phase::Running => DomainState::Running,
            Phase::Stopping { .. } => DomainState::Stopping,
            Phase::Over(Over::Finished) => DomainState::Finished,
            Phase::Over(Over::Ended) => DomainState::Ended,
            Phase::Over(Over::GivenUp) => DomainState::GivenUp,
        }
    }
}

impl Watched {
    fn new(name: String, is_flow: bool) -> io::Result<Watched> {
        let region = open_counters()?;
        let counted = Rc::new(Counted::attach(region.clone())?);
        let (is_lent, beats, heard_ns, ends_before) = (false, 0, 0, 0);
        Ok(Watched { name, region, counted, is_lent, is_flow, beats, heard_ns, ends_before })
    }

    /// Another node that lives with this one.
    fn lend(&self, name: &str) -> Watched {
        Watched { name: name.to_owned(), is_lent: true, ..self.clone() }
    }

    /// A new life begins.
    fn begin(&mut self, now_ns: u64) {
        (self.beats, self.heard_ns) = (self.counted.beats(), now_ns);
        self.ends_before = self.counted.ends();
    }

    /// Its name, if it has shown no sign of life for so long and has not ended in order.
    fn is_silent(&mut self, now_ns: u64, limit_ns: u64) -> Option<&str> {
        let beats = self.counted.beats();
        if beats != self.beats || self.counted.ends() != self.ends_before {
            (self.beats, self.heard_ns) = (beats, now_ns);
        }
        (now_ns - self.heard_ns >= limit_ns).then_some(&*self.name)
    }
}

fn open_profile(path: &Path) -> io::Result<File> {
    File::create(path).map_err(|error| {
        let path = path.display();
        io::Error::new(error.kind(), format!("cannot write the profile {path}: {error}"))
    })
}
