//! How long a stop takes: from whoever asked for it to safe outputs, and to rest. Read off the
//! records that the cycles leave behind.

use super::Run;
use super::realtime::{Domain, Rest};
use crate::clock::now_ns;
use crate::cyclic::REST_NS_MAX;
use crate::status::{StopStatus, cut};

/// Who or what has the core stop, and since when that is known here.
#[derive(Clone, Debug)]
pub(super) struct StopCause {
    reason: String,
    asked_ns: u64,
    /// Whether its end was told of.
    told: bool,
}

impl StopCause {
    /// Somebody asks, or a fault is seen, at this moment.
    pub(super) fn now(reason: &str) -> StopCause {
        StopCause { reason: cut(reason.to_owned()), asked_ns: now_ns(), told: false }
    }
}

impl Run {
    /// The last stop of the core, or the one under way.
    pub fn stop_status(&self) -> Option<StopStatus> {
        let Some(cause) = &self.cause else { return self.last_stop.clone() };
        let after_us = |ns: u64| ns.saturating_sub(cause.asked_ns) / 1000;
        let threads = self.domains.iter().flat_map(|domain| &domain.threads);
        let safe_ns = threads.filter_map(|thread| Some(thread.counts.rest?.since_ns)).min();
        Some(StopStatus {
            reason: cause.reason.clone(),
            asked_ns: cause.asked_ns,
            safe_output_us: safe_ns.map(after_us),
            at_rest_us: self.at_rest_ns().map(after_us),
        })
    }

    /// It, once after the core has stopped.
    pub(super) fn stop_to_tell(&mut self) -> Option<StopStatus> {
        let cause = self.cause.as_mut().filter(|cause| !cause.told)?;
        cause.told = true;
        self.stop_status()
    }

    /// When everything that moves came to rest: the last cycle of the threads that hold actuators,
    /// all of which have ended by themselves. A thread that goes on for as long as it may has not
    /// come to rest, and has reported so.
    fn at_rest_ns(&self) -> Option<u64> {
        let mut rest_ns = None;
        for (domain, planned) in self.domains.iter().zip(&self.request.plan.domains) {
            for (thread, planned) in domain.threads.iter().zip(planned.threads()) {
                let nodes = &self.request.plan.nodes;
                if planned.nodes.iter().all(|&node| nodes[node].actuators.is_empty()) {
                    continue;
                }
                let end_ns = |rest: Rest| rest.last_ns + self.clock.ns(rest.last_ticks);
                let rest = thread.counts.rest.filter(|_| domain.has_left())?;
                let end_ns = end_ns(rest);
                if end_ns.saturating_sub(rest.since_ns) >= REST_NS_MAX {
                    return None;
                }
                rest_ns = rest_ns.max(Some(end_ns));
            }
        }
        rest_ns
    }
}

impl Domain {
    /// Whether its process has ended by itself, not by a signal.
    fn has_left(&self) -> bool {
        self.ended().is_some_and(|status| status.code().is_some())
    }
}
