//! How long a stop takes: from the request to safe outputs, and to rest. The times come from the
//! records that the cycles leave behind.

use sinew_control::status::{DomainStop, StopStatus, cut};
use sinew_core::board::FaultAt;
use sinew_core::clock::now_ns;
use sinew_core::trace::ThreadId;
use sinew_spec::plan::Plan;

use super::Run;

/// A stop of the core: who or what wants it, and since when that is known here.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    reason: String,
    asked_ns: u64,
    /// Whether the services stop too, and with them the run.
    pub(super) ends_run: bool,
    /// Whether the job was done by then.
    pub(super) finished: bool,
    /// Why the job has failed, as the service of this domain of the plan says.
    pub(super) failure: Option<(usize, FaultAt)>,
    /// Whether the end of the stop was reported.
    told: bool,
}

impl Stop {
    /// Somebody asks, or a fault is seen, at this moment.
    pub(super) fn now(reason: &str) -> Stop {
        let (reason, asked_ns) = (cut(reason.to_owned()), now_ns());
        Stop { reason, asked_ns, ends_run: false, finished: false, failure: None, told: false }
    }

    /// Time from the request to `ns`. A domain may write anything.
    fn until_us(&self, ns: u64) -> i64 {
        let us = (i128::from(ns) - i128::from(self.asked_ns)) / 1000;
        us.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

impl Run {
    /// The last stop of the core, or the one under way.
    pub fn stop_status(&self) -> Option<StopStatus> {
        let Some(stop) = &self.lifecycle.stop else { return self.lifecycle.last_stop.clone() };
        let domains = 0..self.core.domains.len();
        let domains: Vec<_> = domains.filter_map(|at| self.domain_stop(stop, at)).collect();
        // `None` for one of them is `None` for all.
        let last = |of: fn(&DomainStop) -> Option<i64>| {
            domains.iter().map(of).collect::<Option<Vec<_>>>()?.into_iter().max()
        };
        Some(StopStatus {
            reason: stop.reason.clone(),
            asked_ns: stop.asked_ns,
            safe_output_us: last(|domain| domain.safe_output_us),
            at_rest_us: last(|domain| domain.at_rest_us),
            domains,
        })
    }

    /// The status of the stop, given once after the core has stopped.
    pub(super) fn stop_to_tell(&mut self) -> Option<StopStatus> {
        let stop = self.lifecycle.stop.as_mut().filter(|stop| !stop.told)?;
        stop.told = true;
        self.stop_status()
    }

    /// `None` for a domain without actuators.
    fn domain_stop(&self, stop: &Stop, domain: usize) -> Option<DomainStop> {
        let plan = &self.request.plan;
        let ids = ThreadId::all_of(plan, domain);
        let ids: Vec<_> = ids.filter(|&id| holds_actuators(plan, id)).collect();
        let last = |of: &dyn Fn(ThreadId) -> Option<u64>| {
            ids.iter().map(|&id| of(id)).collect::<Option<Vec<_>>>()?.into_iter().max()
        };
        let at_rest_ns = last(&|id| self.core.thread(id).counts.at_rest_since_ns);
        let safe_ns = last(&|id| self.safe_ns(id));
        (!ids.is_empty()).then(|| DomainStop {
            domain: plan.domains[domain].name.clone(),
            safe_output_us: safe_ns.map(|ns| stop.until_us(ns)),
            at_rest_us: at_rest_ns.map(|ns| stop.until_us(ns)),
        })
    }

    /// Since when the outputs of a thread are safe: because it has put the safe values there and
    /// kept them, or because all threads that command it stop. A thread that has ended before it
    /// was at rest obeys nobody; and nobody controls what a failed node itself drives.
    fn safe_ns(&self, id: ThreadId) -> Option<u64> {
        let plan = &self.request.plan;
        let counts = &self.core.thread(id).counts;
        let nodes = id.nodes(plan);
        let is_actuator = |&place: &usize| {
            nodes.get(place).is_some_and(|&node| !plan.nodes[node].actuators.is_empty())
        };
        if counts.failed_place.as_ref().is_some_and(is_actuator) {
            return None;
        }
        if self.core.domains[id.domain].has_ended() && counts.at_rest_since_ns.is_none() {
            return counts.safe_since_ns;
        }
        let stopping = commanders(plan, id).map(|from| {
            // We cannot see when a guest that commands it stops.
            let is_core = plan.domains[from.domain].realtime().is_some();
            if is_core { self.core.thread(from).counts.stopping_since_ns } else { None }
        });
        let stopping: Option<Vec<u64>> = stopping.collect();
        let commanded_ns = stopping.and_then(|all| all.into_iter().max());
        [counts.safe_since_ns, commanded_ns].into_iter().flatten().min()
    }
}

fn holds_actuators(plan: &Plan, id: ThreadId) -> bool {
    id.nodes(plan).iter().any(|&node| !plan.nodes[node].actuators.is_empty())
}

/// The other threads that write to actuators of this one.
fn commanders(plan: &Plan, id: ThreadId) -> impl Iterator<Item = ThreadId> + '_ {
    let home = |node: usize| ThreadId::of(&plan.nodes[node]);
    let commands = plan.links.iter().filter(move |link| {
        let actuators = &plan.nodes[link.to.node].actuators;
        home(link.to.node) == id && actuators.iter().any(|it| it.port == link.to.port)
    });
    commands.map(move |link| home(link.from.node)).filter(move |&from| from != id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_a_domain_has_made_up_is_only_far_away() {
        let stop = Stop::now("why");
        assert!(stop.until_us(u64::MAX) > 0 && stop.until_us(0) < 0);
        let late = Stop { asked_ns: u64::MAX, ..stop };
        assert_eq!((late.until_us(u64::MAX), late.until_us(0) < 0), (0, true));
    }
}
