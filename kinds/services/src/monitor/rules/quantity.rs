//! The quantities that a rule may watch, in addition to the signals of nodes: one row each.

use sinew_control::status::{DomainState, DomainStatus, LinkStatus, NodeStatus};

use crate::monitor::figures::{Cycle, us};

/// How the values are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Each is compared.
    Each,
    /// They are added up over the window.
    Count,
    /// The greatest of the window is compared.
    Greatest,
}

/// Where a quantity is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Take {
    /// Each cycle of a realtime thread.
    Cycle(fn(&Cycle<'_>) -> f64),
    /// Each cycle of a realtime thread that the clock releases; other threads have no planned
    /// start.
    Planned(fn(&Cycle<'_>) -> f64),
    /// Each cycle, for each node of the thread: its execution time in us.
    Execution,
    /// Cycles that were lost because the monitor was too slow.
    RecordsLost,
    /// The status of a domain.
    Domain(fn(&DomainStatus) -> f64),
    /// The status of a node of a service domain.
    Service(fn(&NodeStatus) -> f64),
    /// The status of a link; `None` if it cannot be known from outside.
    Link(fn(&LinkStatus) -> Option<f64>),
}

impl Take {
    /// The keys of its selector.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Take::Cycle(_) | Take::Planned(_) | Take::RecordsLost => &["domain", "thread"],
            Take::Execution | Take::Service(_) => &["domain", "node"],
            Take::Domain(_) => &["domain"],
            Take::Link(_) => &["from", "to"],
        }
    }

    /// Whether it is read from the status, twice a second, and not in every cycle.
    pub(super) fn is_slow(self) -> bool {
        matches!(self, Take::Domain(_) | Take::Service(_) | Take::Link(_))
    }
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct Known {
    /// The name that rules write, with the unit last.
    pub(super) name: &'static str,
    /// One sentence.
    pub(super) doc: &'static str,
    pub(super) take: Take,
    pub(super) how: How,
}

const fn each(name: &'static str, take: Take, doc: &'static str) -> Known {
    Known { name, doc, take, how: How::Each }
}

const fn count(name: &'static str, take: Take, doc: &'static str) -> Known {
    Known { name, doc, take, how: How::Count }
}

const fn greatest(name: &'static str, take: Take, doc: &'static str) -> Known {
    Known { name, doc, take, how: How::Greatest }
}

/// All quantities.
pub(super) const QUANTITIES: &[Known] = &[
    count("overruns", Take::Cycle(|it| it.since.overruns as f64), "cycles past their deadline"),
    count("skipped", Take::Cycle(|it| it.since.skipped as f64), "whole periods lost"),
    count(
        "feedback_missing",
        Take::Cycle(|it| it.since.without_feedback as f64),
        "cycles whose feedback did not come",
    ),
    count(
        "without_input",
        Take::Cycle(|it| it.since.without_input as f64),
        "cycles that ran because their input stayed away",
    ),
    count("records_lost", Take::RecordsLost, "cycles that the monitor was too slow for"),
    each("cycle_latency_us", Take::Cycle(|it| us(it.latency_ns)), "cycle latency"),
    greatest(
        "cycle_latency_us_max",
        Take::Cycle(|it| us(it.latency_ns)),
        "greatest cycle latency of the window",
    ),
    each("activation_jitter_us", Take::Planned(|it| us(it.jitter_ns)), "activation jitter"),
    greatest(
        "activation_jitter_us_max",
        Take::Planned(|it| us(it.jitter_ns)),
        "greatest activation jitter of the window",
    ),
    each(
        "release_to_end_us",
        Take::Planned(|it| us(it.release_to_end_ns)),
        "from the planned start to the end of a cycle",
    ),
    greatest(
        "release_to_end_us_max",
        Take::Planned(|it| us(it.release_to_end_ns)),
        "greatest time from the planned start to the end of a cycle in the window",
    ),
    each("execution_time_us", Take::Execution, "execution time of a node"),
    greatest("execution_time_us_max", Take::Execution, "greatest execution time of the window"),
    count("restarts", Take::Domain(|it| f64::from(it.restarts)), "restarts of a service domain"),
    each("down", Take::Domain(down), "1 while a domain does not run, else 0"),
    each("resident_mib", Take::Domain(resident_mib), "resident memory of a domain, MiB"),
    count(
        "messages_lost",
        Take::Service(|it| it.lost as f64),
        "messages that a service was too slow for",
    ),
    count(
        "messages_dropped",
        Take::Service(|it| it.dropped as f64),
        "messages of a service that found no room",
    ),
    count(
        "link_lost",
        Take::Link(|it| Some(it.lost? as f64)),
        "messages that the reader of a link was too slow for",
    ),
    count(
        "link_dropped",
        Take::Link(|it| Some(it.dropped? as f64)),
        "messages that found no room in a link",
    ),
    each(
        "link_broken",
        Take::Link(|it| Some(f64::from(u8::from(it.broken)))),
        "0 until one end of the link breaks its rules, then 1",
    ),
];

/// A domain that has finished its job is not down.
fn down(domain: &DomainStatus) -> f64 {
    let is_up = matches!(domain.state, DomainState::Running | DomainState::Finished);
    f64::from(u8::from(!is_up))
}

fn resident_mib(domain: &DomainStatus) -> f64 {
    domain.resident_kib.unwrap_or(0) as f64 / 1024.0
}
