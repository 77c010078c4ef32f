//! A run, seen from its supervisor, the parent of all domains: opens the links, starts a process
//! for each domain, watches them, restarts services, stops all in order, and reads what the cycles
//! leave behind. The supervisor is no part of the control loop; if it dies, the domains stop by
//! themselves.
//!
//! This module holds the one loop around poll(2). The other modules: `core`, the realtime domains,
//! and `services`, each a state machine of its own; `lifecycle`, the stages of the whole run;
//! `answers` to requests through the control socket; `edits` of the graph; `tuning` of the core's
//! parameters; `snapshot`, the status of the run.

mod answers;
mod core;
mod doors;
mod edits;
mod lifecycle;
mod links;
mod output;
mod process;
mod quota;
mod request;
mod services;
mod snapshot;
mod stop;
mod tuning;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::rand::GetRandomFlags;
use sinew_control::Server;
use sinew_control::status::{EventKind, Events};
use sinew_core::clock::{Clock, now_ns, timespec};
pub use sinew_core::pace::Pace;
use sinew_core::trace::Record;
use sinew_core::trace::ThreadId;
use sinew_spec::plan::Plan;

use self::core::Core;
use self::edits::Edits;
use self::lifecycle::Lifecycle;
use self::links::Links;
use self::process::Spawner;
pub use self::request::{Outcome, RunRequest};
use self::services::Supervised;
pub use self::snapshot::{NodeState, ServiceState};
pub use self::tuning::TryValues;
use crate::confine::{self, Confinement};
use crate::profile::Profile;

/// The hidden command with which the parent starts this program again, followed by the number of a
/// descriptor; see [`domain::main`](crate::domain::main).
pub const DOMAIN_COMMAND: &str = "__domain";

/// A running graph. Dropping it kills what still runs.
pub struct Run {
    /// What was asked for. An edit changes its text and plan.
    request: RunRequest,
    origin: Origin,
    links: Links,
    core: Core,
    /// The service domains, which are the last ones of the plan.
    services: Vec<Supervised>,
    lifecycle: Lifecycle,
    edits: Edits,
    events: Events,
    server: Server,
    /// Ends a wait, for the caller.
    waker: Option<OwnedFd>,
    /// When [`Run::poll`] last began to look.
    looked_ns: u64,
}

struct Origin {
    /// Unique among all runs of this machine.
    name: String,
    /// A user that knows it may command the run through a service.
    secret: String,
    clock: Clock,
    begun_ns: u64,
    /// The profile to take of all processes with flows.
    profile: Option<Profile>,
}

impl Origin {
    fn of(plan: &Plan) -> io::Result<Origin> {
        let (clock, begun_ns) = (Clock::calibrate(), now_ns());
        let name = format!("{}-{}-{begun_ns}", plan.name, std::process::id());
        Ok(Origin { name, secret: secret()?, clock, begun_ns, profile: None })
    }
}

impl Run {
    /// Starts all domains; [`Run::poll`] gives the order to run once all are ready, or ends the run
    /// with a fault if a realtime one is not. The kernel ties the domains to the calling thread:
    /// they stop when it ends.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(mut request: RunRequest) -> io::Result<Run> {
        request.plan.leave_out_tests();
        request.check().map_err(io::Error::other)?;
        process::keep_endings()?;
        confine::sweep_stale();
        let plan = &request.plan;
        let (origin, mut links) = (Origin::of(plan)?, Links::open(plan)?);
        let (server, mut events) = (Server::open()?, Events::new());
        // All bounds are made before the first process exists.
        let bounds = plan.domains.iter().map(|planned| Confinement::prepare(planned, &origin.name));
        let mut bounds = bounds.collect::<io::Result<Vec<_>>>()?.into_iter();
        let spawner =
            Spawner { request: &request, origin: &origin, links: &links, life: 0, observed: &[] };
        let core = Core::start(&mut bounds, &spawner, &mut events)?;
        let services = services::of(&mut bounds, plan)?;
        links.keep_regions();
        Ok(Run {
            looked_ns: origin.begun_ns,
            request,
            origin,
            links,
            core,
            services,
            lifecycle: Lifecycle::begin(None),
            edits: Edits::default(),
            events,
            server,
            waker: None,
        })
    }

    /// Waits for something to happen, `timeout` at most, then hands every new record to `each`.
    /// Returns whether the graph still runs.
    pub fn poll(&mut self, timeout: Duration, each: &mut dyn FnMut(ThreadId, &Record)) -> bool {
        self.wait(timeout);
        self.looked_ns = now_ns();
        self.core.bell.hush();
        // Orders come first: a stop does not wait until everything else has been looked at.
        let questions = self.take_orders();
        for domain in &mut self.core.domains {
            domain.process.reap();
        }
        self.begin_stopping();
        self.stop_core();
        self.go_on_with_services();
        self.go_on_starting();
        self.go_on_editing();
        self.core.read(&self.request.plan, self.origin.clock, &mut self.events, each);
        self.begin_stopping();
        self.tell();
        self.tell_broken();
        self.tell_saved();
        self.stop_core();
        self.hold();
        self.stop_services();
        self.answer(&questions);
        let is_over = self.is_over();
        if is_over {
            // Processes that a killed supervisor had started may still have been ending when this
            // run started.
            confine::sweep_stale();
        }
        !is_over
    }

    /// Waits until a process ends, a bell rings, a service speaks, a service is due, or the time is
    /// over.
    fn wait(&self, timeout: Duration) {
        let services_ns = self.services.iter().map(Supervised::due_ns);
        let due_ns = services_ns.chain(self.server.until_ns()).fold(self.core_due_ns(), u64::min);
        let due_ns = due_ns.min(self.edits.due_ns());
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let timeout = timespec(timeout_ns.min(due_ns.saturating_sub(now_ns())));
        let mut waits = Vec::new();
        waits.extend(self.waker.as_ref().map(|waker| PollFd::new(waker, PollFlags::IN)));
        self.core.wait_for(&mut waits);
        self.services.iter().for_each(|service| service.wait_for(&mut waits));
        self.server.wait_for(&mut waits);
        // A signal ends the wait early, as it should.
        let _ = poll(&mut waits, Some(&timeout));
    }

    fn go_on_with_services(&mut self) {
        let spawner = Spawner {
            request: &self.request,
            origin: &self.origin,
            links: &self.links,
            life: self.core.resets,
            observed: &self.core.observed(),
        };
        for service in &mut self.services {
            service.go_on(&spawner, &mut self.events);
            if let Some(stream) = service.connection() {
                self.server.adopt(stream, service.at);
            }
        }
    }

    /// Has [`Run::poll`] end its wait also once `waker` can be read; the caller reads it.
    pub fn wake_by(&mut self, waker: OwnedFd) {
        self.waker = Some(waker);
    }

    /// Has CPU profiles taken of all processes with flows; call it before [`Run::poll`], which
    /// starts them.
    pub fn profile(&mut self, profile: Profile) {
        self.origin.profile = Some(profile);
    }

    /// Asks all domains to stop, in order. [`Run::poll`] carries it out.
    pub fn stop(&mut self) {
        self.stop_for("told to stop");
    }

    /// The same, and says why.
    pub fn stop_for(&mut self, reason: &str) {
        if !self.is_ending() {
            self.events.add(EventKind::Stopping, None, "the graph was told to stop");
        }
        self.want_end(reason);
    }

    /// Asks the core to stop: the services of a graph that holds go on, any other graph ends.
    /// [`Run::poll`] carries it out.
    pub fn halt(&mut self, reason: &str) {
        match self.holds() {
            true => drop(self.want_stop(reason)),
            false => self.stop_for(reason),
        }
    }

    /// Stops a service domain and starts it again. [`Run::poll`] carries it out.
    ///
    /// # Errors
    /// There is no such domain, it is a realtime one, or the graph stops.
    pub fn restart(&mut self, domain: &str) -> Result<(), String> {
        let plan = &self.request.plan;
        let Some(at) = plan.domains.iter().position(|planned| planned.name == domain) else {
            let names: Vec<_> = plan.domains.iter().map(|planned| &*planned.name).collect();
            return Err(format!("there is no domain '{domain}'; there are: {}", names.join(", ")));
        };
        let Some(service) = at.checked_sub(self.core.domains.len()) else {
            let how = match self.holds() {
                true => "'sinew halt' it, then 'sinew reset' starts it again",
                false => "stop the graph and run it again",
            };
            return Err(format!(
                "domain '{domain}' is realtime: the core starts as a whole; {how}"
            ));
        };
        if self.is_ending() {
            return Err("the graph is stopping".into());
        }
        self.services[service].restart(&mut self.events);
        Ok(())
    }
}

/// 128 bits from the kernel, in hexadecimal digits.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    // So few bytes are never cut short.
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
