//! A service domain, as the supervisor sees it: started, watched, restarted by its policy, and
//! never a reason to stop the graph.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags};
use sinew_control::status::{
    DomainState, EventKind, Events, FlowFigures, FlowStatus, HostState, HostStatus, PoolChange,
    PoolStatus, ROUTER, cut,
};
use sinew_core::board::{BoardState, Wish};
use sinew_core::clock::now_ns;
use sinew_spec::keys::{HOSTS_MAX, NODES_MAX};
use sinew_spec::plan::{self, Plan};

use super::hearts::Hearts;
use super::life::{Life, Progress};
use super::restarts::{History, Next};
use crate::confine::Confinement;
use crate::edition::has_flows;
use crate::profile::{Profile, WRITE_NS_MAX, is_whole};
use crate::run::process::{Process, Spawner};
use crate::run::quota::Quota;

/// How long a service that was killed may take to be gone, before the supervisor says so.
const GONE_NS_MAX: u64 = 5_000_000_000;

/// How often the lines of a service that has printed too much in this second are taken and dropped.
/// The service must not wait for us, and must not wake us with each line either.
const FLOOD_LOOK_NS: u64 = 10_000_000;

/// Names of flow nodes that are kept of a service, as many as it can have: a service that makes up
/// names cannot fill our memory.
const FLOW_NODES_MAX: usize = NODES_MAX;

/// Reasons of refusals that are kept of another host: more than there are.
const REASONS_MAX: usize = 32;

pub(crate) struct Supervised {
    pub(crate) at: usize,
    pub(crate) name: String,
    policy: plan::ServiceDomain,
    pub(crate) confinement: Confinement,
    standing: Standing,
    /// What is to become of it when it ends.
    after: After,
    pub(crate) history: History,
    pub(crate) hearts: Hearts,
    /// The lines that it prints, as events.
    lines: Quota,
    /// What it asks of the run, as events.
    pub(crate) orders: Quota,
    /// Where people find what it serves.
    pub(crate) address: Option<String>,
    /// What its flow nodes have done in this life, by name.
    pub(crate) flows: BTreeMap<String, FlowStatus>,
    /// Its threads for work that blocks, as last reported in this life.
    pub(crate) pool: Option<PoolStatus>,
    /// What it last reported about the other hosts in this life, with the counts of earlier lives.
    pub(crate) hosts: Vec<HostStatus>,
    /// The same at the end of the life before.
    hosts_before: Vec<HostStatus>,
    /// Where its last life writes its CPU profile when it stops.
    profile: Option<PathBuf>,
}

enum Standing {
    /// Others start before it.
    Waiting,
    /// To be started at this time.
    Due { at_ns: u64 },
    /// It has a process, or something that its process has left behind.
    Alive(Box<Life>),
    /// It does not come back: finished, ended or given up.
    Over(DomainState),
}

/// What is to become of a service when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// What its policy says.
    Policy,
    /// It comes back at once: somebody asked for that.
    Again,
    /// It stays away: the graph stops.
    Nothing,
}

impl Supervised {
    pub(super) fn new(
        at: usize,
        policy: &plan::ServiceDomain,
        confinement: Confinement,
        plan: &Plan,
    ) -> io::Result<Supervised> {
        Ok(Supervised {
            at,
            name: plan.domains[at].name.clone(),
            policy: policy.clone(),
            confinement,
            standing: Standing::Waiting,
            after: After::Policy,
            history: History::new(policy.restart),
            hearts: Hearts::open(policy, plan)?,
            lines: Quota::of("lines"),
            orders: Quota::of("orders"),
            address: None,
            flows: BTreeMap::new(),
            pool: None,
            hosts: Vec::new(),
            hosts_before: Vec::new(),
            profile: None,
        })
    }

    /// To be called whenever something may have happened.
    pub(crate) fn go_on(&mut self, spawner: &Spawner<'_>, events: &mut Events) {
        let now_ns = now_ns();
        if let Some(life) = self.life() {
            life.hush();
        }
        self.read_lines(now_ns, events);
        if let Standing::Alive(life) = &mut self.standing {
            life.reap(&self.confinement);
        }
        if self.life().is_some_and(Life::is_over) {
            self.ended(&spawner.request.spec.file, now_ns, events);
        }
        match &self.standing {
            Standing::Due { at_ns } if now_ns >= *at_ns => self.start(spawner, events),
            Standing::Alive(_) => self.watch(now_ns, events),
            _ => {}
        }
    }

    pub(crate) fn wait_for<'a>(&'a self, waits: &mut Vec<PollFd<'a>>) {
        let Some(life) = self.life() else { return };
        life.wait_for(waits);
        if life.printed.is_open() && !self.lines.is_over() {
            waits.push(PollFd::new(&life.printed, PollFlags::IN));
        }
    }

    pub(crate) fn due_ns(&self) -> u64 {
        let now_ns = now_ns();
        let flooded = self.lines.is_over() && self.life().is_some_and(|it| it.printed.is_open());
        let flood_ns = if flooded { now_ns + FLOOD_LOOK_NS } else { u64::MAX };
        flood_ns.min(match &self.standing {
            Standing::Due { at_ns } => *at_ns,
            Standing::Alive(life) => match life.progress {
                Progress::Starting { since_ns } => since_ns + self.policy.start_deadline_ns,
                Progress::Running => self.hearts.due_ns(now_ns, self.policy.heartbeat_ns),
                Progress::Stopping { since_ns, killed: false } => since_ns + self.stop_ns_max(),
                Progress::Stopping { since_ns, killed: true } => since_ns + GONE_NS_MAX,
                Progress::Gone(_) => u64::MAX,
            },
            Standing::Waiting | Standing::Over(_) => u64::MAX,
        })
    }

    /// Starts it now, if it has never been started.
    pub(crate) fn begin(&mut self) {
        if matches!(self.standing, Standing::Waiting) {
            self.standing = Standing::Due { at_ns: 0 };
        }
    }

    /// The graph stops: whatever happens to it from now on, it does not come back.
    pub(crate) fn leave(&mut self) {
        if self.is_over() {
            return;
        }
        self.after = After::Nothing;
        if matches!(self.standing, Standing::Waiting | Standing::Due { .. }) {
            self.standing = Standing::Over(DomainState::Ended);
        }
    }

    pub(crate) fn stop(&mut self, events: &mut Events) {
        self.leave();
        self.order_stop(events);
    }

    /// Stops it and starts it again; its earlier ends are forgotten.
    pub(crate) fn restart(&mut self, events: &mut Events) {
        self.history.forget();
        match self.standing {
            // Its turn is still to come: those before it are not ready yet.
            Standing::Waiting => {}
            Standing::Due { .. } | Standing::Over(_) => self.standing = Standing::Due { at_ns: 0 },
            Standing::Alive(_) => {
                self.after = After::Again;
                self.order_stop(events);
            }
        }
    }

    /// Orders it to stop, unless that was done before.
    fn order_stop(&mut self, events: &mut Events) {
        if let Standing::Alive(life) = &mut self.standing
            && matches!(life.progress, Progress::Starting { .. } | Progress::Running)
        {
            life.order_stop();
            events.add(EventKind::Stopping, Some(&self.name), "told to stop");
        }
    }

    fn start(&mut self, spawner: &Spawner<'_>, events: &mut Events) {
        match self.spawn(spawner) {
            Ok(life) => {
                let text = format!("process {}", life.process.id());
                events.add(EventKind::Started, Some(&self.name), text);
                self.history.started();
                self.after = After::Policy;
                self.flows.clear();
                self.pool = None;
                self.end_hosts();
                self.standing = Standing::Alive(Box::new(life));
            }
            Err(error) => {
                let reason = format!("cannot be started: {error}");
                events.add(EventKind::Faulted, Some(&self.name), reason.clone());
                self.history.reason = Some(reason);
                self.decide(now_ns(), false, events);
            }
        }
    }

    fn spawn(&mut self, spawner: &Spawner<'_>) -> io::Result<Life> {
        self.history.lives += 1;
        let counters = self.hearts.for_process()?;
        let profile = spawner.origin.profile.as_ref();
        self.profile = profile.and_then(|it| self.profile_of(it, &spawner.request.plan));
        let file = self.profile.as_deref().map(open_profile).transpose()?;
        let profile =
            file.as_ref().zip(profile).map(|(file, it)| (file.as_raw_fd(), it.frequency_hz));
        Life::start(self.at, &self.confinement, counters, profile, spawner)
    }

    /// The file of this life's CPU profile; `None` if the domain has no flows.
    fn profile_of(&self, profile: &Profile, plan: &Plan) -> Option<PathBuf> {
        let flows = |domain: &&plan::Domain| has_flows(plan, domain);
        let domains = plan.domains.iter().filter(flows).count();
        let lives = self.history.lives;
        has_flows(plan, &plan.domains[self.at]).then(|| profile.file_of(&self.name, domains, lives))
    }

    /// A text about its CPU profile, if one was asked for and its last life has not left a whole
    /// one.
    pub(crate) fn profile_lacks(&self) -> Option<String> {
        let path = self.profile.as_ref().filter(|path| !is_whole(path))?;
        Some(format!("the CPU profile '{}' is incomplete", path.display()))
    }

    /// Checks that its process does in time what it has to do.
    fn watch(&mut self, now_ns: u64, events: &mut Events) {
        let stop_ns_max = self.stop_ns_max();
        let plan::ServiceDomain { start_deadline_ns, heartbeat_ns, .. } = self.policy;
        let Standing::Alive(life) = &mut self.standing else { return };
        match (&life.progress, life.state()) {
            (&Progress::Starting { since_ns }, BoardState::Starting) => {
                if now_ns - since_ns >= start_deadline_ns {
                    let limit_ms = start_deadline_ns / 1_000_000;
                    life.kill(format!("was not ready within {limit_ms} ms"), now_ns);
                }
            }
            (Progress::Starting { .. }, BoardState::Faulted) => {
                life.progress = Progress::Stopping { since_ns: now_ns, killed: false };
            }
            (&Progress::Starting { since_ns }, _) => {
                let after_us = (now_ns - since_ns) / 1000;
                let text = format!("after {}.{:03} ms", after_us / 1000, after_us % 1000);
                events.add(EventKind::Ready, Some(&self.name), text);
                self.hearts.begin(now_ns);
                life.run(now_ns);
            }
            (Progress::Running, BoardState::Faulted) => self.order_stop(events),
            (Progress::Running, _) => {
                if let Some(charge) = self.hearts.silence(now_ns, heartbeat_ns) {
                    life.kill(charge, now_ns);
                }
            }
            (&Progress::Stopping { since_ns, killed: false }, _) => {
                if now_ns - since_ns >= stop_ns_max {
                    let limit_ms = stop_ns_max / 1_000_000;
                    life.kill(format!("did not stop within {limit_ms} ms and was killed"), now_ns);
                }
            }
            (&Progress::Stopping { since_ns, killed }, _) => {
                if now_ns - since_ns >= GONE_NS_MAX {
                    // Only a process that the kernel holds (a broken disk or driver) outlives that.
                    let text = "was killed, but the kernel has not ended it yet";
                    events.add(EventKind::Note, Some(&self.name), text);
                    life.progress = Progress::Stopping { since_ns: now_ns, killed };
                }
            }
            (Progress::Gone(_), _) => {}
        }
    }

    fn stop_ns_max(&self) -> u64 {
        self.policy.stop_deadline_ns + if self.profile.is_some() { WRITE_NS_MAX } else { 0 }
    }

    /// Kills it for a reason that its own process does not know.
    pub(crate) fn kill(&mut self, charge: String, now_ns: u64) {
        if let Standing::Alive(life) = &mut self.standing {
            life.kill(charge, now_ns);
        }
    }

    fn ended(&mut self, file: &str, now_ns: u64, events: &mut Events) {
        // Its last lines are there now.
        self.read_lines(now_ns, events);
        let Standing::Alive(life) = std::mem::replace(&mut self.standing, Standing::Waiting) else {
            return;
        };
        let (in_order, reason) = life.end(file, &self.confinement);
        let what = if in_order { EventKind::Ended } else { EventKind::Faulted };
        events.add(what, Some(&self.name), reason.clone());
        self.history.reason = Some(reason);
        match self.after {
            After::Policy => self.decide(now_ns, in_order, events),
            After::Again => self.standing = Standing::Due { at_ns: 0 },
            After::Nothing => self.standing = Standing::Over(DomainState::Ended),
        }
    }

    fn decide(&mut self, now_ns: u64, in_order: bool, events: &mut Events) {
        self.standing = match self.history.ended(now_ns, in_order) {
            Next::Restart { after_ns } => {
                let text = format!("in {} ms", after_ns / 1_000_000);
                events.add(EventKind::Restarting, Some(&self.name), text);
                Standing::Due { at_ns: now_ns + after_ns }
            }
            Next::Leave if in_order => Standing::Over(DomainState::Finished),
            Next::Leave => Standing::Over(DomainState::Ended),
            Next::GiveUp => {
                let plan::Restart { restarts_max, window_ns, .. } = self.policy.restart;
                let text = format!(
                    "{restarts_max} restarts within {} s were not enough; correct the cause, then \
                     'sinew restart {}'",
                    window_ns / 1_000_000_000,
                    self.name
                );
                events.add(EventKind::GivenUp, Some(&self.name), text);
                Standing::Over(DomainState::GivenUp)
            }
        };
    }

    fn read_lines(&mut self, now_ns: u64, events: &mut Events) {
        let (name, lines) = (&self.name, &mut self.lines);
        lines.look(now_ns, name, events);
        self.orders.look(now_ns, name, events);
        if let Standing::Alive(life) = &mut self.standing {
            life.printed.read(&mut |line| {
                lines.say(EventKind::Output, Some(name), line, events);
            });
        }
    }

    /// Tells it what to do with an edited graph.
    pub(crate) fn say_edition(&self, number: u32, wish: Wish) {
        if let Some(life) = self.life() {
            life.process.board.say_edition(number, wish);
        }
    }

    pub(crate) fn adopt(&mut self, plan: &Plan) {
        let Some(policy) = plan.domains[self.at].service() else { return };
        self.policy = policy.clone();
        self.hearts.adopt(policy, plan);
        self.flows.retain(|name, _| self.hearts.has(name));
    }

    /// Takes what it says about its flow nodes; it may say anything.
    pub(crate) fn take_figures(&mut self, figures: &[FlowFigures]) {
        for FlowFigures { name, status } in figures {
            if self.flows.len() < FLOW_NODES_MAX || self.flows.contains_key(name) {
                self.flows.insert(name.clone(), *status);
            }
        }
    }

    /// Takes what it says about its threads for work that blocks; it may say anything.
    pub(crate) fn take_pool(&mut self, pool: &PoolStatus) {
        let last_change = pool.last_change.clone();
        let last_change = last_change.map(|change| PoolChange { why: cut(change.why), ..change });
        self.pool = Some(PoolStatus { why: cut(pool.why.clone()), last_change, ..pool.clone() });
    }
}

/// The hosts of a graph.
impl Supervised {
    /// Takes what it says about other hosts (it may say anything); returns what has changed, in
    /// words.
    pub(crate) fn take_hosts(&mut self, hosts: &[HostStatus]) -> Vec<String> {
        let taken = |host: &HostStatus| {
            let reasons = host.refused_as.iter().take(REASONS_MAX);
            let refused_as = reasons.map(|(reason, count)| (cut(reason.clone()), *count)).collect();
            let name = cut(host.name.clone());
            let mut host = HostStatus { name, refused_as, ..host.clone() };
            let before = self.hosts_before.iter().find(|it| it.name == host.name);
            before.into_iter().for_each(|it| host.add_counts(it));
            host
        };
        let hosts: Vec<HostStatus> = hosts.iter().take(HOSTS_MAX).map(taken).collect();
        let before = std::mem::replace(&mut self.hosts, hosts);
        let was = |name: &str| before.iter().find(|it| it.name == name).map(|it| it.state);
        let changed = self.hosts.iter().filter(|it| was(&it.name).unwrap_or_default() != it.state);
        changed.map(said).collect()
    }

    /// A new life of it begins: what it counts is added to what was counted before.
    fn end_hosts(&mut self) {
        let hosts = std::mem::take(&mut self.hosts);
        if !hosts.is_empty() {
            self.hosts_before = hosts;
        }
    }
}

/// The text about a host whose state has changed.
fn said(host: &HostStatus) -> String {
    let name = &host.name;
    if name == ROUTER {
        return match host.state {
            HostState::Heard => "the router is connected".into(),
            _ => "the router cannot be reached; the host goes on trying".into(),
        };
    }
    match host.state {
        HostState::Unheard => format!("host '{name}' is not heard yet"),
        HostState::Heard => format!("host '{name}' is heard"),
        HostState::Silent => format!("host '{name}' is silent"),
        HostState::Two => format!(
            "two programs run as host '{name}', or as this host; the one that was there first is \
             obeyed; end the other one"
        ),
        HostState::OtherGraph => format!(
            "host '{name}' runs another graph, so its messages are refused; start both with the \
             same file"
        ),
    }
}

/// What is known of it.
impl Supervised {
    fn life(&self) -> Option<&Life> {
        match &self.standing {
            Standing::Alive(life) => Some(life),
            _ => None,
        }
    }

    /// Our end of the connection to a new life of it; given once.
    pub(crate) fn connection(&mut self) -> Option<UnixStream> {
        match &mut self.standing {
            Standing::Alive(life) => life.connection.take(),
            _ => None,
        }
    }

    pub(crate) fn process(&self) -> Option<&Process> {
        let life = self.life().filter(|life| !matches!(life.progress, Progress::Gone(_)));
        life.map(|life| &life.process)
    }

    /// Number of its process, if it runs and nothing is wrong with it.
    pub(crate) fn running(&self) -> Option<u32> {
        let life = self.life().filter(|life| matches!(life.progress, Progress::Running));
        life.map(|life| life.process.id())
    }

    /// Whether it is on its way to run or to end.
    pub(crate) fn is_changing(&self) -> bool {
        self.life().is_some_and(|life| !matches!(life.progress, Progress::Running))
    }

    /// Whether its first start is over, well or not: then the next one may start.
    pub(crate) fn was_tried(&self) -> bool {
        let has_started = match &self.standing {
            Standing::Waiting | Standing::Due { .. } => false,
            Standing::Alive(life) => match life.progress {
                Progress::Starting { .. } => false,
                Progress::Running | Progress::Stopping { .. } => true,
                Progress::Gone(_) => life.was_ready,
            },
            Standing::Over(_) => true,
        };
        has_started || self.history.reason.is_some()
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.standing, Standing::Over(_))
    }

    /// Why it has failed for good, if it has: its policy does not bring it back, or gives it up.
    pub(crate) fn loss(&self) -> Option<String> {
        let how = match (&self.standing, &self.after) {
            (Standing::Over(DomainState::GivenUp), _) => "given up",
            (Standing::Over(DomainState::Ended), After::Policy) => "not restarted, by its policy",
            _ => return None,
        };
        Some(format!("{how}: {}", self.history.reason.as_deref().unwrap_or_default()))
    }

    pub(crate) fn back_ns(&self) -> Option<u64> {
        match self.standing {
            Standing::Due { at_ns } => Some(at_ns),
            _ => None,
        }
    }

    pub(crate) fn state(&self) -> DomainState {
        match &self.standing {
            Standing::Waiting => DomainState::Waiting,
            Standing::Due { .. } if self.history.reason.is_none() => DomainState::Waiting,
            Standing::Due { .. } => DomainState::Backoff,
            Standing::Alive(life) => match life.progress {
                Progress::Starting { .. } => DomainState::Starting,
                Progress::Running => DomainState::Running,
                Progress::Stopping { .. } | Progress::Gone(_) => DomainState::Stopping,
            },
            Standing::Over(state) => *state,
        }
    }
}

fn open_profile(path: &Path) -> io::Result<File> {
    File::create(path).map_err(|error| {
        let path = path.display();
        io::Error::new(error.kind(), format!("cannot write the profile {path}: {error}"))
    })
}
