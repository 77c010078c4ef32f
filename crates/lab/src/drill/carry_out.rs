//! One drill: a run of its own, watched from its start to its end, with a fault injected meanwhile
//! and proof that the fault occurred.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sinew_control::status::{DomainState, Event, EventKind, HostState, Phase};
use sinew_core::board::FaultAt;
use sinew_core::clock::now_ns;
use sinew_core::trace::ThreadId;
use sinew_runtime::inject::Injection;
use sinew_runtime::run::{Outcome, Run, RunRequest};
use sinew_spec::plan::Plan;

use super::fault::DrilledFault;
use super::freeze::Freeze;
use super::left::{self, Left};
use super::network::{Network, Others};
use super::outside::{Outside, SeenOutside};
use super::recording::Recording;
use super::table::{Drill, Expected, Subject};
use crate::graph::leader;

/// Part of the message of every injected fault.
const INJECTED: &str = "injected by a drill";
/// How often the run is looked at; the end of one of its processes wakes us at once.
const LOOK: Duration = Duration::from_millis(10);
/// Least time from the first cycle to the fault: by then a machine is switched on and moves.
const WARM_UP_NS: u64 = 400_000_000;
/// The fault comes at most this much later; the exact time is random.
const SPREAD_NS: u64 = 500_000_000;
/// Heartbeats of a service before its fault, and how many more at most, at random.
const WARM_UP_BEATS: u64 = 40;
const SPREAD_BEATS: u64 = 20;
/// How long a graph that goes on is watched after the fault.
const AFTER_NS: u64 = 700_000_000;
/// A run that has not ended by then is told to stop: longer than any limit of the supervisor.
const LIMIT_NS: u64 = 20_000_000_000;
/// The same while something happens to another host: its programs start twice meanwhile.
const LIMIT_OF_HOSTS_NS: u64 = 90_000_000_000;
/// If it has still not ended this much later, it is given up.
const GIVE_UP_NS: u64 = 15_000_000_000;

/// A drill that was carried out.
pub(super) struct Carried {
    pub(super) recording: Recording,
    /// When the fault occurred, as far as that is known.
    pub(super) struck_ns: Option<u64>,
    /// When a signal from outside had certainly arrived: cycles count from then on.
    pub(super) sent_ns: Option<u64>,
    /// What proves that the fault occurred.
    pub(super) proof: Option<String>,
    /// When everything that has actuators was at rest.
    pub(super) rest_ns: Option<u64>,
    /// When the graph was told to stop by us, if it was.
    pub(super) told_ns: Option<u64>,
    pub(super) outcome: Outcome,
    pub(super) faults: Vec<(usize, FaultAt)>,
    pub(super) events: Vec<Event>,
    /// What was left behind.
    pub(super) left: Vec<String>,
    /// For how long a process was frozen.
    pub(super) frozen_ns: Option<u64>,
    /// What was seen of a fault that lasts.
    pub(super) outside: Option<SeenOutside>,
    /// Records that were overwritten before they were read.
    pub(super) unread: u64,
    /// Whether the run ended by itself or by our order, in time.
    pub(super) ended: bool,
}

/// When a fault comes, and how long a graph that goes on is watched.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    /// The cycle of the fault; `None` leaves it to chance.
    pub(super) cycle: Option<u64>,
    pub(super) chance: u64,
    pub(super) after_ns: u64,
    /// The drill may end when an axis of the machine has left these limits.
    pub(super) limits_rad: Vec<(f64, f64)>,
}

impl Timing {
    /// By chance.
    pub(super) fn by(chance: u64) -> Timing {
        Timing { cycle: None, chance, after_ns: AFTER_NS, limits_rad: vec![] }
    }
}

/// Carries out a drill.
pub(super) fn carry_out(
    (graph, network): (&RunRequest, Option<&Network>),
    drill: &Drill,
    timing: &Timing,
) -> Result<Carried, String> {
    let before = Left::look();
    let others = network.map(Network::start).transpose()?;
    let mut at = Due::of(&graph.plan, drill, timing.chance);
    at.cycle = timing.cycle.unwrap_or(at.cycle);
    let injected =
        drill.injected.map(|(target, what)| Injection { target, at_cycle: at.cycle, what });
    let injections = injected.into_iter().collect();
    let run = Run::start(RunRequest { injections, ..graph.clone() });
    let run = run.map_err(|error| format!("the graph cannot be started: {error}"))?;
    let seen = Carried {
        recording: Recording::new(&graph.plan, run.clock()),
        struck_ns: None,
        sent_ns: None,
        proof: None,
        rest_ns: None,
        told_ns: None,
        outcome: run.outcome(),
        faults: vec![],
        events: vec![],
        left: vec![],
        frozen_ns: None,
        outside: None,
        unread: 0,
        ended: false,
    };
    let (freeze, outside) = (None, None);
    let mut watch =
        Watch { run, others: others.as_ref(), drill, timing, at, seen, freeze, outside };
    watch.seen.ended = watch.watch_over();
    watch.seen.frozen_ns = watch.freeze.take().and_then(Freeze::end);
    watch.seen.outside = watch.outside.take().map(Outside::end);
    if let Some(outside) = &watch.seen.outside {
        watch.seen.proof = outside.proof.clone();
        watch.seen.told_ns = outside.told_ns.or(watch.seen.told_ns);
    }
    watch.look_for_proof();
    let Watch { run, mut seen, .. } = watch;
    (seen.outcome, seen.faults, seen.unread) = (run.outcome(), run.faults(), run.records_lost());
    seen.events = run.events().after(0).cloned().collect();
    seen.rest_ns = run
        .stop_status()
        .and_then(|stop| Some(stop.asked_ns.saturating_add_signed(stop.at_rest_us? * 1000)));
    drop((run, others));
    seen.left = before.since();
    Ok(seen)
}

/// When a fault is to come.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// The thread whose cycles count; `None` for a service.
    thread: Option<ThreadId>,
    period_ns: u64,
    /// Number of the cycle or the heartbeat.
    cycle: u64,
}

impl Due {
    fn of(plan: &Plan, drill: &Drill, chance: u64) -> Due {
        let node = &plan.nodes[drill.subject.node(plan)];
        // A fault from outside hits a service when the core has reached this cycle.
        let thread = match plan.domains[node.domain].realtime() {
            Some(_) => Some(ThreadId::of(node)),
            None if drill.injected.is_none() => leader(plan),
            None => None,
        };
        let after = |warm_up_ns: u64, period_ns: u64| {
            warm_up_ns / period_ns + chance % (SPREAD_NS / period_ns).max(1)
        };
        let Some(id) = thread else {
            // A guest's cycles are its heartbeats; they begin while the core is still being made.
            let cycle = match plan.domains[node.domain].guest() {
                Some(guest) => after(2 * WARM_UP_NS, guest.period_ns),
                None => WARM_UP_BEATS + chance % SPREAD_BEATS,
            };
            return Due { thread, period_ns: 0, cycle };
        };
        let period_ns = plan.domains[id.domain].realtime().map_or(1, |domain| domain.period_ns);
        Due { thread, period_ns, cycle: after(WARM_UP_NS, period_ns) }
    }
}

/// A drill under way.
struct Watch<'a> {
    run: Run,
    /// The other hosts of its graph.
    others: Option<&'a Others<'a>>,
    drill: &'a Drill,
    timing: &'a Timing,
    at: Due,
    seen: Carried,
    freeze: Option<Freeze>,
    outside: Option<Outside>,
}

impl Watch<'_> {
    /// Whether the run ended within the limits.
    fn watch_over(&mut self) -> bool {
        let begun_ns = now_ns();
        let limit_ns = match self.drill.subject {
            Subject::Host(_) => LIMIT_OF_HOSTS_NS,
            _ => LIMIT_NS,
        };
        loop {
            let recording = &mut self.seen.recording;
            if !self.run.poll(LOOK, &mut |id, record| recording.take(id, record)) {
                return true;
            }
            let elapsed_ns = now_ns() - begun_ns;
            if elapsed_ns > limit_ns + GIVE_UP_NS {
                return false;
            }
            self.notice();
            self.look_for_stop();
            if let Some(outside) = &self.outside {
                let pid = self.process(self.drill.subject.domain(self.run.plan()));
                outside.process.store(pid.unwrap_or_default(), Relaxed);
            }
            // In phase `Held` a run does not end when its core has ended.
            let is_held = self.run.phase() == Phase::Held;
            if elapsed_ns > limit_ns || is_held || self.has_seen_enough() {
                self.seen.told_ns.get_or_insert_with(now_ns);
                self.run.stop();
            }
        }
    }

    /// Triggers a fault from outside when it is due, and notes when the fault came.
    fn notice(&mut self) {
        if self.seen.struck_ns.is_some() {
            return;
        }
        let Some(id) = self.at.thread else {
            self.seen.struck_ns = self.event_of_service().map(|event| event.time_ns);
            return;
        };
        let last = self.seen.recording.cycles(id).last();
        if last.is_none_or(|seen| seen.number < self.at.cycle) {
            // A domain that died within its cycle left no record of that cycle.
            let over = self.drill.injected.is_some() && !self.run.faults().is_empty();
            if !over {
                return;
            }
        }
        self.seen.struck_ns = match (self.drill.injected, self.drill.subject) {
            (None, Subject::Host(host)) => self.begin_at(host),
            (None, Subject::Domain(domain)) if self.drill.fault.lasts() => self.begin(domain),
            (None, Subject::Domain(domain)) => {
                let struck_ns = self.signal(domain);
                // This thread may be held up between reading the clock and sending the signal.
                self.seen.sent_ns = struck_ns.map(|_| now_ns());
                struck_ns
            }
            (None, Subject::Link(link)) => self.run.spoil(link).then(now_ns),
            _ => self.seen.recording.start_ns(id, self.at.cycle, self.at.period_ns),
        };
    }

    /// Sends SIGKILL or SIGSTOP to the process of a domain, or freezes it for a while; returns
    /// when.
    fn signal(&mut self, domain: usize) -> Option<u64> {
        let pid = Pid::from_raw(i32::try_from(self.process(domain)?).ok()?)?;
        let now_ns = now_ns();
        if let Some(frozen_ns) = self.drill.fault.frozen_ns() {
            self.freeze = Freeze::begin(pid, Duration::from_nanos(frozen_ns));
            return Some(now_ns);
        }
        let signal =
            if self.drill.fault == DrilledFault::Stop { Signal::STOP } else { Signal::KILL };
        if signal == Signal::STOP {
            // With the processes that it has started, such as the emulator of a guest.
            kill_process_group(pid, signal).ok()?;
        } else {
            kill_process(pid, signal).ok()?;
        }
        Some(now_ns)
    }

    /// Begins a fault that lasts; returns when.
    fn begin(&mut self, domain: usize) -> Option<u64> {
        let process = self.process(domain)?;
        let status = self.run.status();
        let address = status.domains.get(domain)?.address.as_deref();
        self.outside = Some(match self.drill.fault {
            DrilledFault::Flood => Outside::flood(address),
            _ => Outside::full_disk(process, address),
        });
        Some(now_ns())
    }

    /// Begins what happens to another host, as soon as that host is heard; returns when.
    fn begin_at(&mut self, host: usize) -> Option<u64> {
        let name = &self.run.plan().hosts.all[host].name;
        let status = self.run.status();
        let mut seen = status.domains.iter().flat_map(|domain| &domain.hosts);
        let is_heard = seen.any(|seen| seen.name == *name && seen.state == HostState::Heard);
        if is_heard {
            self.outside = self.others?.strike(name, self.drill.fault);
        }
        self.outside.as_ref().map(|_| now_ns())
    }

    /// The process of a domain.
    fn process(&self, domain: usize) -> Option<u32> {
        match self.run.processes().get(domain) {
            Some(&pid) => Some(pid),
            None => self.run.status().domains.get(domain)?.pid,
        }
    }

    /// The first event of this run that tells of a fault or an end of the struck service.
    fn event_of_service(&self) -> Option<&Event> {
        let plan = self.run.plan();
        let name = &plan.domains[self.drill.subject.domain(plan)].name;
        let of_it = |event: &&Event| event.domain.as_ref() == Some(name);
        let ends = |event: &&Event| match event.what {
            EventKind::Faulted | EventKind::Ended => true,
            // A guest reports it before it happens; its end may be seen later.
            EventKind::Output => event.text.contains(INJECTED),
            _ => false,
        };
        self.run.events().after(0).filter(of_it).find(ends)
    }

    /// A stopped process can only be seen while it is stopped.
    fn look_for_stop(&mut self) {
        if self.drill.fault != DrilledFault::Stop || self.seen.proof.is_some() {
            return;
        }
        let domain = self.drill.subject.domain(self.run.plan());
        if let Some(pid) = self.process(domain)
            && left::state(pid) == Some('T')
        {
            self.seen.proof = Some(format!("/proc/{pid}/stat shows state T"));
        }
    }

    /// Whether a graph that should go on has gone on for long enough.
    fn has_seen_enough(&self) -> bool {
        let comes_back = match self.drill.expected {
            Expected::GoesOn { comes_back } => comes_back,
            Expected::Either => false,
            Expected::Faulted(_) => return false,
        };
        let Some(struck_ns) = self.seen.struck_ns else { return false };
        if let Some(outside) = &self.outside {
            return outside.is_over();
        }
        let since_ns = match (self.drill.fault, comes_back) {
            // It never comes back for long, so the core is watched for as long as in other drills.
            (DrilledFault::FailStart, _) => Some(self.run.started_ns().saturating_add(WARM_UP_NS)),
            (_, true) => self.back_ns(struck_ns),
            (_, false) => Some(struck_ns),
        };
        let after_ns = self.timing.after_ns + self.drill.fault.frozen_ns().unwrap_or_default();
        let over = |ns: u64| now_ns().saturating_sub(ns) > after_ns;
        since_ns.is_some_and(over) || self.is_out()
    }

    /// When the struck service was ready again, if it runs.
    fn back_ns(&self, struck_ns: u64) -> Option<u64> {
        let plan = self.run.plan();
        let at = self.drill.subject.domain(plan);
        let runs = self.run.status().domains.get(at)?.state == DomainState::Running;
        let is_ready = |event: &&Event| {
            event.domain.as_ref() == Some(&plan.domains[at].name)
                && event.what == EventKind::Ready
                && event.time_ns > struck_ns
        };
        let ready = self.run.events().after(0).filter(is_ready).last()?;
        runs.then_some(ready.time_ns)
    }

    /// Whether an axis has left its limits.
    fn is_out(&self) -> bool {
        let machines = self.seen.recording.machines.iter();
        let last = machines.filter_map(|(_, moments)| moments.last());
        last.flat_map(|moment| moment.position_rad.iter().zip(&self.timing.limits_rad))
            .any(|(position, (low, high))| position < low || position > high)
    }

    /// Looks, when all is over, for what proves that the fault occurred.
    fn look_for_proof(&mut self) {
        if self.seen.proof.is_none() {
            self.seen.proof = self.proof();
        }
        if self.seen.struck_ns.is_none() && self.seen.proof.is_some() {
            let start = |id| self.seen.recording.start_ns(id, self.at.cycle, self.at.period_ns);
            self.seen.struck_ns = self.at.thread.and_then(start);
        }
    }

    fn proof(&self) -> Option<String> {
        let plan = self.run.plan();
        let domain = self.drill.subject.domain(plan);
        let name = &plan.domains[domain].name;
        let said = || {
            let faults = self.run.faults().into_iter().filter(|(at, _)| *at == domain);
            let texts = faults.map(|(_, at)| format!("{}: {}", at.fault.cause.word(), at.fault));
            let events = self.run.events().after(0);
            let events = events.filter(|event| event.domain.as_ref() == Some(name));
            texts.chain(events.map(|event| event.text.clone())).collect::<Vec<_>>()
        };
        let says = |word: &str| said().into_iter().find(|text| text.contains(word));
        match self.drill.fault {
            DrilledFault::Panic | DrilledFault::Error | DrilledFault::FailStart => says(INJECTED),
            DrilledFault::NotFinite => says("not_finite").or_else(|| self.seen_from_core()),
            DrilledFault::Segv => says("signal 11").or_else(|| says("data abort")),
            DrilledFault::Undefined => says("undefined instruction"),
            DrilledFault::Kill => says("signal 9").or_else(|| says("signal: 9")),
            // The guest reports it before it hangs; before a stop, the agent reports it.
            DrilledFault::Stop | DrilledFault::Hang if self.drill.is_in_guest => says(INJECTED),
            DrilledFault::Freeze30
            | DrilledFault::Freeze50
            | DrilledFault::Freeze80
            | DrilledFault::Freeze1000 => {
                let frozen_ms = self.seen.frozen_ns? as f64 / 1e6;
                Some(format!("it stood for {frozen_ms:.1} ms, in state T"))
            }
            DrilledFault::Hostile if self.drill.injected.is_none() => self.broken(),
            DrilledFault::Hang => self.silence().or_else(|| says("heartbeat")),
            DrilledFault::LateBorne | DrilledFault::Late => self.lateness(),
            DrilledFault::PeerGone | DrilledFault::Stalled | DrilledFault::Hostile => self.passed(),
            // A stop was seen while it lasted; the thread that makes a lasting fault has seen it
            // itself.
            _ => None,
        }
    }

    /// The thread left no record of the cycle in which it hangs, nor of any later one.
    fn silence(&self) -> Option<String> {
        let last = self.seen.recording.cycles(self.at.thread?).last()?;
        (last.number + 1 == self.at.cycle).then(|| format!("no record after cycle {}", last.number))
    }

    /// The cycle took as long as the injected delay.
    fn lateness(&self) -> Option<String> {
        let mut cycles = self.seen.recording.cycles(self.at.thread?).iter();
        let seen = cycles.find(|seen| seen.number == self.at.cycle)?;
        let took = seen.latency_ns / self.at.period_ns;
        (took >= 1).then(|| format!("cycle {} took {took} periods", seen.number))
    }

    /// The writer reached the cycle in which its link is struck.
    fn passed(&self) -> Option<String> {
        let Some(id) = self.at.thread else { return self.seen_from_core() };
        let last = self.seen.recording.cycles(id).last()?;
        (last.number >= self.at.cycle).then(|| format!("its writer passed cycle {}", self.at.cycle))
    }

    /// The core, or the supervisor, found the link broken.
    fn broken(&self) -> Option<String> {
        let Subject::Link(link) = self.drill.subject else { return None };
        let status = self.run.status();
        let is_broken = status.links.get(link).is_some_and(|link| link.broken);
        let seen = is_broken.then(|| "garbage stands in its region".into());
        seen.or_else(|| self.seen_from_core())
    }

    /// The core lost something, or found a link broken.
    fn seen_from_core(&self) -> Option<String> {
        let last = self.seen.recording.threads.values().filter_map(|cycles| cycles.last());
        let (mut lost, mut broken) = (0, false);
        for seen in last {
            lost += seen.lost;
            broken |= seen.broken;
        }
        (lost > 0 || broken).then(|| format!("the core refused {lost} messages"))
    }
}
