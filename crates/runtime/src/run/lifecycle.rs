//! The stages of a run: its core starts, runs, stops; then the services stop too, or they stay, and
//! the core can be started again.

use std::mem;

use super::core::domain::{Charge, Domain};
use super::services::supervised::Supervised;
use super::stop::StopCause;
use super::{Frame, Run, START_NS_MAX};
use crate::board::State;
use crate::clock::now_ns;
use crate::launch::Pace;
use crate::status::{EventKind, Phase};
use crate::sys::let_go_of_code;

/// From the order to run to the first release: so long may a waiting thread take to wake up.
const FIRST_RELEASE_NS: u64 = 3_000_000;

/// How far the core is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its domains make ready, until this time.
    Starting { until_ns: u64 },
    /// It runs.
    Running,
    /// Domain `at` of the plan stops, since `since_ns`. Past the core that is a service.
    Stopping { at: usize, since_ns: u64 },
    /// It has stopped, and can be started again.
    Held,
}

impl Run {
    /// How far the run is.
    pub fn phase(&self) -> Phase {
        match self.stage {
            Stage::Starting { .. } => Phase::Starting,
            Stage::Running => Phase::Running,
            Stage::Stopping { .. } => Phase::Stopping,
            Stage::Held => Phase::Held,
        }
    }

    /// Whether the whole run stops, not only its core.
    pub fn is_ending(&self) -> bool {
        self.ending
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
        if self.ending {
            return;
        }
        if let Some(next) = self.services.iter_mut().rev().find(|service| !service.was_tried()) {
            next.begin();
            if let Stage::Starting { until_ns } = &mut self.stage {
                // The realtime domains wait for it, and it has a deadline of its own.
                *until_ns = now_ns() + START_NS_MAX;
            }
            return;
        }
        let Stage::Starting { until_ns } = self.stage else { return };
        let is_ready = |domain: &Domain| domain.board.state() == State::Ready;
        if self.domains.iter().all(is_ready) {
            self.stage = Stage::Running;
            let start_ns = now_ns() + FIRST_RELEASE_NS;
            self.started_ns = self.started_ns.min(start_ns);
            self.domains.iter_mut().for_each(|domain| domain.order_run(start_ns));
            // What follows is the same few functions over and over.
            let_go_of_code();
        } else if now_ns() >= until_ns {
            for domain in self.domains.iter_mut().filter(|domain| !is_ready(domain)) {
                domain.charge.get_or_insert(Charge::Unready);
            }
        }
    }

    /// Makes events of what the realtime domains have come to.
    pub(super) fn tell(&mut self) {
        let is_stopping = matches!(self.stage, Stage::Stopping { .. } | Stage::Held);
        for (at, domain) in self.domains.iter_mut().enumerate() {
            let name = Some(&*self.request.plan.domains[at].name);
            let state = domain.board.state();
            if state != mem::replace(&mut domain.told, state) {
                match state {
                    State::Ready => self.events.add(EventKind::Ready, name, "waits for the others"),
                    State::Running => self.events.add(EventKind::Ready, name, "runs"),
                    State::Finished => self.events.add(EventKind::Ended, name, "the job is done"),
                    State::Starting | State::Faulted => {}
                }
            }
            // What an end means is known once the core stops: it may have come too early.
            let fault = domain.fault();
            let has_ended = fault.is_some() || domain.has_ended() && is_stopping;
            if has_ended && !mem::replace(&mut domain.told_end, true) {
                match fault {
                    Some(at) => self.events.add(EventKind::Faulted, name, at.fault.to_string()),
                    None => self.events.add(EventKind::Note, name, "has stopped in order"),
                }
            }
        }
    }

    /// The job is done when a node of the core says so; without a core, when no service is left.
    fn has_finished(&self) -> bool {
        match self.domains.is_empty() {
            false => self.domains.iter().any(|domain| domain.board.state() == State::Finished),
            true => !self.ending && self.services.iter().all(Supervised::is_over),
        }
    }

    /// Somebody wants the core to stop. Who says so first is the cause.
    pub(super) fn want_stop(&mut self, reason: &str) {
        self.cause.get_or_insert_with(|| StopCause::now(reason));
    }

    /// The run ends with the core: services that end do not come back.
    pub(super) fn end(&mut self) {
        if !mem::replace(&mut self.ending, true) {
            self.services.iter_mut().for_each(Supervised::leave);
        }
        if self.stage == Stage::Held {
            self.stage = Stage::Stopping { at: self.domains.len(), since_ns: now_ns() };
        }
    }

    /// The core stops once somebody wants it, or it cannot go on.
    pub(super) fn begin_stopping(&mut self) {
        if !matches!(self.stage, Stage::Starting { .. } | Stage::Running) {
            return;
        }
        self.finished |= self.has_finished();
        let wanted = self.cause.is_some() || self.finished;
        if !wanted && !self.domains.iter().any(Domain::is_broken) {
            return;
        }
        let deserted = !wanted && self.faults().is_empty();
        for domain in self.domains.iter_mut().filter(|domain| deserted && domain.has_ended()) {
            domain.charge = Some(Charge::Deserted);
        }
        let reason = self.reason();
        self.want_stop(&reason);
        self.stage = Stage::Stopping { at: 0, since_ns: now_ns() };
        if !self.holds() {
            self.end();
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

    /// The domains of the core stop one after the other, in the order of the plan: who commands
    /// before who obeys.
    pub(super) fn stop_core(&mut self) {
        let Stage::Stopping { mut at, mut since_ns } = self.stage else { return };
        while self.domains.get(at).is_some_and(Domain::has_ended) {
            (at, since_ns) = (at + 1, now_ns());
        }
        self.stage = Stage::Stopping { at, since_ns };
        let Some(domain) = self.domains.get_mut(at) else { return };
        domain.board.order_stop();
        let limit_ns = domain.stop_ns_max();
        if now_ns() - since_ns >= limit_ns {
            domain.charge.get_or_insert(Charge::Killed { limit_ms: limit_ns / 1_000_000 });
            domain.process.kill();
        }
    }

    /// Then, if the run ends, the services do, also one by one.
    pub(super) fn stop_services(&mut self) {
        let Stage::Stopping { at, since_ns } = self.stage else { return };
        let Some(mut place) = at.checked_sub(self.domains.len()).filter(|_| self.ending) else {
            return;
        };
        while self.services.get(place).is_some_and(Supervised::is_over) {
            place += 1;
        }
        self.stage = Stage::Stopping { at: self.domains.len() + place, since_ns };
        if let Some(service) = self.services.get_mut(place) {
            service.stop(&mut self.events);
        }
    }

    /// When the core is to be looked at although nobody wakes us: before its traces overflow, when
    /// one of its threads is taken for one that hangs, when a domain that is to be ready or to stop
    /// has had its time. Nobody reads the traces of a free run meanwhile: they hold all of it.
    pub(super) fn core_due_ns(&self) -> u64 {
        let alive = self.domains.iter().filter(|domain| !domain.has_ended());
        let watched = alive.filter(|_| self.request.pace == Pace::AsPlanned);
        let watched_ns = watched.map(|domain| [domain.due_ns(), domain.silent_ns()]);
        let stage_ns = match self.stage {
            Stage::Starting { until_ns } => until_ns,
            Stage::Stopping { at, since_ns } => {
                let domain = self.domains.get(at);
                domain.map_or(u64::MAX, |domain| since_ns.saturating_add(domain.stop_ns_max()))
            }
            Stage::Running | Stage::Held => u64::MAX,
        };
        // What was due at the last look was acted upon; what comes of it wakes us. What has become
        // due since then was not: that ends the wait at once.
        let due_ns = watched_ns.flatten().chain([stage_ns]).filter(|&ns| ns > self.looked_ns);
        due_ns.min().unwrap_or(u64::MAX)
    }

    /// Whether nothing is left of the run.
    pub(super) fn is_over(&self) -> bool {
        self.ending
            && self.domains.iter().all(Domain::has_ended)
            && self.services.iter().all(Supervised::is_over)
    }

    /// The core has stopped: says how, and keeps the services if the graph wants it. To be called
    /// when the last records were read.
    pub(super) fn hold(&mut self) {
        let is_stopping = matches!(self.stage, Stage::Stopping { .. });
        if !is_stopping || self.domains.is_empty() || !self.domains.iter().all(Domain::has_ended) {
            return;
        }
        if let Some(stop) = self.stop_to_tell() {
            self.events.add_stop(stop);
        }
        if !self.ending {
            self.stage = Stage::Held;
            self.carriers.close_mailboxes(&self.request.plan);
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
                "this graph does not hold, the end of its core is the end of the run; write \
                        'hold: true' at its top"
                    .into(),
            );
        }
        if self.stage != Stage::Held {
            let phase = self.phase();
            return Err(format!(
                "the graph is {phase}, expected held; 'sinew halt' stops the core, then reset it"
            ));
        }
        let life = self.resets + 1;
        let faults = self.faults().into_iter().map(|(domain, at)| (life, domain, at)).collect();
        self.start_again().map_err(|error| format!("the core cannot be started: {error}"))?;
        self.earlier_faults.extend::<Vec<_>>(faults);
        Ok(())
    }

    fn start_again(&mut self) -> std::io::Result<()> {
        let last_stop = self.stop_status();
        self.carriers.renew(&self.request.plan)?;
        let Run { request, clock, name, carriers, bell, observed, secret, .. } = self;
        let (clock, profile, life) = (*clock, None, self.resets + 1);
        let frame = Frame { request, clock, name, carriers, bell, observed, secret, profile, life };
        // All of them, before anything of the last life is forgotten.
        let lives = self.domains.iter().enumerate().map(|(at, domain)| domain.spawn(at, &frame));
        let lives = lives.collect::<std::io::Result<Vec<_>>>();
        self.carriers.keep_regions();
        for (at, (domain, life)) in self.domains.iter_mut().zip(lives?).enumerate() {
            let text = format!("process {}", life.process.id());
            self.events.add(EventKind::Started, Some(&self.request.plan.domains[at].name), text);
            domain.begin_again(life);
        }
        (self.last_stop, self.cause, self.finished) = (last_stop, None, false);
        self.born = super::names(&self.request.plan);
        self.resets += 1;
        self.stage = Stage::Starting { until_ns: now_ns() + START_NS_MAX };
        Ok(())
    }
}
