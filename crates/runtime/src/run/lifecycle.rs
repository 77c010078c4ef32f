//! The stages of a run: its core starts, runs, stops; then the services stop too, or they stay, and
//! the core can be started again.

use std::{io, mem};

use sinew_control::status::{EventKind, Phase, StopStatus};
use sinew_core::board::{BoardState, FaultAt};
use sinew_core::clock::now_ns;
use sinew_core::fault::{Cause, Fault};
use sinew_core::pace::Pace;
use sinew_core::sys::let_go_of_code;

use super::core::{Domain, START_NS_MAX};
use super::process::Spawner;
use super::services::Supervised;
use super::stop::Stop;
use super::{Outcome, Run};

/// From the order to run to the first release: a waiting thread may take this long to wake up.
const FIRST_RELEASE_NS: u64 = 3_000_000;

/// How far the core is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its domains make ready, until this time.
    Starting { until_ns: u64 },
    /// It runs.
    Running,
    /// Domain `at` of the plan stops, since `since_ns`. After those of the core it is a service.
    Stopping { at: usize, since_ns: u64 },
    /// It has stopped, and can be started again.
    Held,
}

/// How far the run is, and why it stops.
pub(super) struct Lifecycle {
    pub(super) stage: Stage,
    /// Set once somebody or something wants a stop.
    pub(super) stop: Option<Stop>,
    /// The stop of the core's life before this one.
    pub(super) last_stop: Option<StopStatus>,
}

impl Lifecycle {
    /// The core begins a life.
    pub(super) fn begin(last_stop: Option<StopStatus>) -> Lifecycle {
        let stage = Stage::Starting { until_ns: now_ns() + START_NS_MAX };
        Lifecycle { stage, stop: None, last_stop }
    }
}

impl Run {
    /// How far the run is.
    pub fn phase(&self) -> Phase {
        match self.lifecycle.stage {
            Stage::Starting { .. } => Phase::Starting,
            Stage::Running => Phase::Running,
            Stage::Stopping { .. } => Phase::Stopping,
            Stage::Held => Phase::Held,
        }
    }

    /// Whether the whole run stops, not only its core.
    pub fn is_ending(&self) -> bool {
        self.lifecycle.stop.as_ref().is_some_and(|stop| stop.ends_run)
    }

    /// How the run ended, or would if it ended now: what counts is the last life of the core.
    pub fn outcome(&self) -> Outcome {
        match &self.lifecycle.stop {
            _ if !self.faults().is_empty() => Outcome::Faulted,
            Some(stop) if stop.finished => Outcome::Finished,
            _ => Outcome::Stopped,
        }
    }

    /// Whether the services outlive the core. A free run and one with injected faults are measured,
    /// and end with it whatever the graph says.
    pub(super) fn holds(&self) -> bool {
        let request = &self.request;
        request.plan.hold && request.pace == Pace::AsPlanned && request.injections.is_empty()
    }

    /// Services start one after the other, the last of the plan first; when all were tried and the
    /// realtime domains are ready, these get the order to run.
    pub(super) fn go_on_starting(&mut self) {
        if self.is_ending() {
            return;
        }
        // The last of the plan first.
        let next = self.services.iter_mut().rev().find(|service| !service.was_tried());
        if let Some(next) = next {
            next.begin();
            if let Stage::Starting { until_ns } = &mut self.lifecycle.stage {
                // The realtime domains wait for this service, and it has a deadline of its own.
                *until_ns = now_ns() + START_NS_MAX;
            }
            return;
        }
        let Stage::Starting { until_ns } = self.lifecycle.stage else { return };
        if self.core.domains.iter().all(|domain| domain.state() == BoardState::Ready) {
            self.lifecycle.stage = Stage::Running;
            self.core.order_run(now_ns() + FIRST_RELEASE_NS);
            // From here on only a few functions run, over and over.
            let_go_of_code();
        } else if now_ns() >= until_ns {
            let limit_ms = START_NS_MAX / 1_000_000;
            let unready = self.core.domains.iter_mut();
            for domain in unready.filter(|domain| domain.state() != BoardState::Ready) {
                domain.charge(format!("was not ready within {limit_ms} ms"));
            }
        }
    }

    /// Makes events of how far the realtime domains have come.
    pub(super) fn tell(&mut self) {
        let is_stopping = matches!(self.lifecycle.stage, Stage::Stopping { .. } | Stage::Held);
        for (domain, planned) in self.core.domains.iter_mut().zip(&self.request.plan.domains) {
            domain.tell(&planned.name, is_stopping, &mut self.events);
        }
    }

    /// The job is done when a node of the core says so; without a core, when no service is left.
    fn has_finished(&self) -> bool {
        match self.core.domains.is_empty() {
            false => self.core.domains.iter().any(|domain| domain.state() == BoardState::Finished),
            true => !self.is_ending() && self.services.iter().all(Supervised::is_over),
        }
    }

    /// Somebody wants the core to stop. The first one to say so is the cause.
    pub(super) fn want_stop(&mut self, reason: &str) -> &mut Stop {
        self.lifecycle.stop.get_or_insert_with(|| Stop::now(reason))
    }

    /// Somebody wants the run to stop: it ends with the core, and services that end do not come
    /// back.
    pub(super) fn want_end(&mut self, reason: &str) {
        if !mem::replace(&mut self.want_stop(reason).ends_run, true) {
            // Whatever ends from now on does not come back.
            self.services.iter_mut().for_each(Supervised::leave);
        }
        if self.lifecycle.stage == Stage::Held {
            let at = self.core.domains.len();
            self.lifecycle.stage = Stage::Stopping { at, since_ns: now_ns() };
        }
    }

    /// A service says that the job of the run is done, or why it has failed: the run ends with that
    /// outcome. If somebody has asked for the end before, the job does not count as done.
    pub(super) fn end_job(&mut self, service: usize, error: Option<&str>) {
        let Supervised { at, name, .. } = &self.services[service];
        let (what, text, reason) = match error {
            None => (EventKind::Stopping, "the job is done".into(), "the job is done".into()),
            Some(error) => (
                EventKind::Faulted,
                format!("the job has failed: {error}"),
                format!("{name}: {error}"),
            ),
        };
        self.events.add(what, Some(name), text);
        let failure = error.map(|error| {
            let fault = Fault::new(Cause::Error, format_args!("{error}"));
            (*at, FaultAt { fault, node: None, cycle: None })
        });
        let is_first = self.lifecycle.stop.is_none();
        self.want_end(&reason);
        let stop = self.want_stop(&reason);
        stop.finished |= is_first && failure.is_none();
        stop.failure = stop.failure.take().or(failure);
    }

    /// The core stops once somebody wants that, or it cannot go on.
    pub(super) fn begin_stopping(&mut self) {
        if !matches!(self.lifecycle.stage, Stage::Starting { .. } | Stage::Running) {
            return;
        }
        let finished = self.has_finished();
        let wanted = self.lifecycle.stop.is_some() || finished;
        if !wanted && !self.core.domains.iter().any(Domain::is_broken) {
            return;
        }
        if !wanted && self.faults().is_empty() {
            let deserted = self.core.domains.iter_mut().filter(|domain| domain.has_ended());
            deserted.for_each(|domain| domain.charge("ended without being told to".into()));
        }
        let reason = self.reason();
        self.want_stop(&reason).finished |= finished;
        self.lifecycle.stage = Stage::Stopping { at: 0, since_ns: now_ns() };
        if !self.holds() {
            self.want_end(&reason);
        }
    }

    /// Why the core stops although nobody has asked for it.
    fn reason(&self) -> String {
        match self.faults().first() {
            Some((domain, at)) => {
                format!("{}: {}", self.request.plan.domains[*domain].name, at.fault)
            }
            None => "the job is done".into(),
        }
    }

    /// The domains of the core stop one after the other, in the order of the plan: those that
    /// command before those that obey.
    pub(super) fn stop_core(&mut self) {
        let Stage::Stopping { at, since_ns } = &mut self.lifecycle.stage else { return };
        while self.core.domains.get(*at).is_some_and(|domain| domain.has_ended()) {
            (*at, *since_ns) = (*at + 1, now_ns());
        }
        if let Some(domain) = self.core.domains.get_mut(*at) {
            domain.stop(*since_ns);
        }
    }

    /// After the core, if the run ends, the services stop too, also one by one.
    pub(super) fn stop_services(&mut self) {
        let (first, is_ending) = (self.core.domains.len(), self.is_ending());
        let Stage::Stopping { at, .. } = &mut self.lifecycle.stage else { return };
        let Some(mut place) = at.checked_sub(first).filter(|_| is_ending) else { return };
        while self.services.get(place).is_some_and(Supervised::is_over) {
            place += 1;
        }
        if let Some(service) = self.services.get_mut(place) {
            service.stop(&mut self.events);
        }
        *at = first + place;
    }

    /// When the core must be looked at although nobody wakes us: before its traces overflow, when
    /// one of its threads counts as hanging, when the time of a domain to be ready or to stop is
    /// over. The traces of a free run need not be read meanwhile: they hold all of it.
    pub(super) fn core_due_ns(&self) -> u64 {
        let alive = self.core.domains.iter().filter(|domain| !domain.has_ended());
        let watched = alive.filter(|_| self.request.pace == Pace::AsPlanned);
        let watched_ns = watched.map(|domain| [domain.due_ns(), domain.silent_ns()]);
        let stage_ns = match self.lifecycle.stage {
            Stage::Starting { until_ns } => until_ns,
            Stage::Stopping { at, since_ns } => {
                let domain = self.core.domains.get(at);
                domain.map_or(u64::MAX, |domain| since_ns.saturating_add(domain.stop_ns_max()))
            }
            Stage::Running | Stage::Held => u64::MAX,
        };
        // What was due at the last look has been acted upon, and its effects wake us. What has
        // become due since then has not: that ends the wait at once.
        let due_ns = watched_ns.flatten().chain([stage_ns]).filter(|&ns| ns > self.looked_ns);
        due_ns.min().unwrap_or(u64::MAX)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_ending() && self.core.has_ended() && self.services.iter().all(Supervised::is_over)
    }

    /// The core has stopped: says how, and keeps the services if the graph wants it. Call it when
    /// the last records have been read.
    pub(super) fn hold(&mut self) {
        let is_stopping = matches!(self.lifecycle.stage, Stage::Stopping { .. });
        if !is_stopping || self.core.domains.is_empty() || !self.core.has_ended() {
            return;
        }
        if let Some(stop) = self.stop_to_tell() {
            self.events.add_stop(stop);
        }
        if !self.is_ending() {
            self.lifecycle.stage = Stage::Held;
            self.links.close_mailboxes(&self.request.plan);
            self.events.add(EventKind::Note, None, "held; 'sinew reset' starts the core again");
        }
    }

    /// Starts the core again after it has stopped, in a graph that holds: all realtime domains, in
    /// new processes, with the same traces and the same links to services. [`Run::poll`] gives the
    /// order to run.
    ///
    /// # Errors
    /// The graph does not hold, the core has not stopped, or the kernel refuses a process: then the
    /// core is held as before.
    pub fn reset(&mut self) -> Result<(), String> {
        if !self.holds() {
            return Err(
                "this graph has no 'hold: true', so its run ends with its core; write 'hold: true' \
                 at its top"
                    .into(),
            );
        }
        if self.lifecycle.stage != Stage::Held {
            let phase = self.phase();
            return Err(format!(
                "the graph is {phase}, expected held; 'sinew halt' stops the core, then reset it"
            ));
        }
        self.start_again().map_err(|error| format!("the core cannot be started: {error}"))
    }

    fn start_again(&mut self) -> io::Result<()> {
        let last_stop = self.stop_status();
        self.links.renew(&self.request.plan)?;
        let spawner = Spawner {
            request: &self.request,
            origin: &self.origin,
            links: &self.links,
            life: self.core.resets + 1,
            observed: &[],
        };
        let started = self.core.start_again(&spawner, &mut self.events);
        self.links.keep_regions();
        started?;
        self.lifecycle = Lifecycle::begin(last_stop);
        Ok(())
    }
}
