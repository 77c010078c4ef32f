//! The services of a run: each is supervised on its own, and they start and stop one after the
//! other.

mod hearts;
mod life;
mod restarts;
mod supervised;

use std::io;

use rustix::event::PollFd;
use sinew_control::Server;
use sinew_control::status::Events;
use sinew_spec::plan::Plan;

pub(super) use self::supervised::Supervised;
use super::process::Spawner;
use crate::confine::Confinement;

/// The service domains.
pub(super) struct Services {
    /// The last ones of the plan.
    pub(super) all: Vec<Supervised>,
}

impl Services {
    /// Those of the plan, not started yet, with the last ones of all bounds.
    pub(super) fn new(
        bounds: &mut dyn Iterator<Item = Confinement>,
        plan: &Plan,
    ) -> io::Result<Services> {
        let domains = plan.domains.iter().enumerate();
        let planned = domains.filter_map(|(at, domain)| Some((at, domain.service()?)));
        let all = planned
            .zip(bounds)
            .map(|((at, policy), bounds)| Supervised::new(at, policy, bounds, plan));
        Ok(Services { all: all.collect::<io::Result<_>>()? })
    }

    /// Adds what there is to wait for.
    pub(super) fn wait_for<'a>(&'a self, waits: &mut Vec<PollFd<'a>>) {
        self.all.iter().for_each(|service| service.wait_for(waits));
    }

    /// When to look at them at the latest, monotonic ns.
    pub(super) fn due_ns(&self) -> u64 {
        self.all.iter().map(Supervised::due_ns).min().unwrap_or(u64::MAX)
    }

    /// To be called whenever something may have happened.
    pub(super) fn go_on(
        &mut self,
        spawner: &Spawner<'_>,
        server: &mut Server,
        events: &mut Events,
    ) {
        for service in &mut self.all {
            service.go_on(spawner, events);
            if let Some(stream) = service.connection() {
                server.adopt(stream, service.at);
            }
        }
    }

    /// Has the next one start, the last of the plan first, if those before it were tried; `false`
    /// once all were.
    pub(super) fn begin_next(&mut self) -> bool {
        let next = self.all.iter_mut().rev().find(|service| !service.was_tried());
        next.map(Supervised::begin).is_some()
    }

    /// The run ends: whatever ends from now on does not come back.
    pub(super) fn leave(&mut self) {
        self.all.iter_mut().for_each(Supervised::leave);
    }

    /// Tells the first one from `place` on that is left to stop for good; its place, or past all.
    pub(super) fn stop_from(&mut self, mut place: usize, events: &mut Events) -> usize {
        while self.all.get(place).is_some_and(Supervised::is_over) {
            place += 1;
        }
        if let Some(service) = self.all.get_mut(place) {
            service.stop(events);
        }
        place
    }

    /// Whether none is left.
    pub(super) fn are_over(&self) -> bool {
        self.all.iter().all(Supervised::is_over)
    }

    /// Whether one is on its way to run or to end.
    pub(super) fn are_changing(&self) -> bool {
        self.all.iter().any(Supervised::is_changing)
    }
}
