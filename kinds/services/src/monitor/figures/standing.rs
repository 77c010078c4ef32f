//! What the supervisor tells: domains, services, links, events, the last stop.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use sinew_control::status::{DomainState, DomainStatus, Event, LinkStatus, Phase, Status};

use super::{Labels, counters_of, gauge};

type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

const PHASES: [Phase; 4] = [Phase::Starting, Phase::Running, Phase::Held, Phase::Stopping];
const STATES: [DomainState; 10] = [
    DomainState::Waiting,
    DomainState::Starting,
    DomainState::Ready,
    DomainState::Running,
    DomainState::Stopping,
    DomainState::Backoff,
    DomainState::Finished,
    DomainState::Ended,
    DomainState::GivenUp,
    DomainState::Faulted,
];

/// The figures of the status.
pub(in crate::monitor) struct Standing {
    phase: Gauges,
    state: Gauges,
    up: Gauges,
    resident: Gauges,
    restarts: Followed,
    heartbeats: Followed,
    received: Followed,
    node_lost: Followed,
    sent: Followed,
    node_dropped: Followed,
    written: Followed,
    lost: Followed,
    dropped: Followed,
    fill: Gauges,
    broken: Gauges,
    events: Family<Labels, Counter>,
    events_missed: Family<Labels, Counter>,
    stop_safe_output: Gauges,
    stop_at_rest: Gauges,
}

impl Standing {
    /// Empty.
    pub(in crate::monitor) fn new(registry: &mut Registry) -> Standing {
        let mut counters = |name, doc| Followed::new(counters_of(registry, name, doc));
        let restarts = counters("domain_restarts", "How often a domain was started again");
        let heartbeats = counters("node_heartbeats", "Heartbeats of a service's node");
        let received = counters("node_messages_received", "Messages that a service's node took");
        let node_lost =
            counters("node_messages_lost", "Messages that a service's node was too slow for");
        let sent = counters("node_messages_sent", "Messages that a service's node sent");
        let node_dropped =
            counters("node_messages_dropped", "Messages of a service's node without room");
        let written = counters("link_messages_written", "Messages written into a link");
        let lost = counters("link_messages_lost", "Messages that a link's reader was too slow for");
        let dropped = counters("link_messages_dropped", "Messages that found no room in a link");
        let events = counters_of(registry, "events", "Events of the run, by what they are about");
        let doc = "Events that the run kept no more when they were asked for";
        let events_missed = counters_of(registry, "events_missed", doc);
        let mut gauges = |name, doc| gauges_of(registry, name, doc, None);
        let phase = gauges("phase", "1 for the phase that the run is in, else 0");
        let state = gauges("domain_state", "1 for the state that a domain is in, else 0");
        let up = gauges("domain_up", "1 while a domain runs, else 0");
        let fill = gauges("link_fill_messages", "Messages in a link");
        let broken = gauges("link_broken", "1 once an end of a link has broken its rules");
        let mut gauges = |name, doc, unit| gauges_of(registry, name, doc, Some(unit));
        Standing {
            phase,
            state,
            up,
            resident: gauges("domain_resident", "Resident memory of a domain", Unit::Bytes),
            restarts,
            heartbeats,
            received,
            node_lost,
            sent,
            node_dropped,
            written,
            lost,
            dropped,
            fill,
            broken,
            events,
            events_missed,
            stop_safe_output: gauges(
                "stop_safe_output",
                "The last stop of the core: from the order until all outputs were safe",
                Unit::Seconds,
            ),
            stop_at_rest: gauges(
                "stop_at_rest",
                "The last stop of the core: from the order until all was at rest",
                Unit::Seconds,
            ),
        }
    }

    /// Shows a status.
    pub(in crate::monitor) fn show(&mut self, status: &Status) {
        for phase in PHASES {
            let labels = vec![("phase", phase.word().to_owned())];
            gauge(&self.phase, &labels).set(flag(phase == status.phase));
        }
        status.domains.iter().for_each(|domain| self.domain(domain));
        status.links.iter().for_each(|link| self.link(link));
        if let Some(stop) = &status.stop {
            let times = [
                (&self.stop_safe_output, stop.safe_output_us),
                (&self.stop_at_rest, stop.at_rest_us),
            ];
            for (family, us) in times {
                match us {
                    Some(us) => {
                        gauge(family, &Labels::new()).set(us as f64 / 1e6);
                    }
                    // What was not seen is not that of the stop before.
                    None => family.clear(),
                }
            }
        }
    }

    /// Counts events, and how many could not be seen.
    pub(in crate::monitor) fn events(&self, events: &[Event], missed: u64) {
        for event in events {
            self.events.get_or_create(&vec![("kind", event.what.word().to_owned())]).inc();
        }
        self.events_missed.get_or_create(&Labels::new()).inc_by(missed);
    }

    fn domain(&mut self, domain: &DomainStatus) {
        let labels = vec![("domain", domain.name.clone())];
        for state in STATES {
            let with_state = [labels.clone(), vec![("state", state.word().to_owned())]].concat();
            gauge(&self.state, &with_state).set(flag(state == domain.state));
        }
        gauge(&self.up, &labels).set(flag(domain.state == DomainState::Running));
        gauge(&self.resident, &labels).set(domain.resident_kib.unwrap_or(0) as f64 * 1024.0);
        self.restarts.follow(&labels, u64::from(domain.restarts));
        let is_service = domain.threads.is_empty();
        for node in domain.nodes.iter().filter(|_| is_service) {
            let labels = [labels.clone(), vec![("node", node.name.clone())]].concat();
            let counted = [
                (&mut self.heartbeats, node.beats),
                (&mut self.received, node.received),
                (&mut self.node_lost, node.lost),
                (&mut self.sent, node.sent),
                (&mut self.node_dropped, node.dropped),
            ];
            counted.into_iter().for_each(|(followed, count)| followed.follow(&labels, count));
        }
    }

    fn link(&mut self, link: &LinkStatus) {
        let labels = vec![("link", format!("{} > {}", link.from, link.to))];
        let counted = [
            (&mut self.written, link.written),
            (&mut self.lost, link.lost),
            (&mut self.dropped, link.dropped),
        ];
        for (followed, count) in counted {
            if let Some(count) = count {
                followed.follow(&labels, count);
            }
        }
        if let Some(fill) = link.fill {
            gauge(&self.fill, &labels).set(f64::from(fill));
        }
        gauge(&self.broken, &labels).set(flag(link.broken));
    }
}

/// Counters that follow those of the run. Some of these begin again at 0 while the monitor goes on:
/// a core that is reset has new links. A counter of Prometheus must not fall.
struct Followed {
    counters: Family<Labels, Counter>,
    /// What the run had counted when it was looked at last.
    seen: HashMap<Labels, u64>,
}

impl Followed {
    fn new(counters: Family<Labels, Counter>) -> Followed {
        Followed { counters, seen: HashMap::new() }
    }

    fn follow(&mut self, labels: &Labels, count: u64) {
        let before = self.seen.insert(labels.clone(), count).unwrap_or(0);
        let more = count.checked_sub(before).unwrap_or(count);
        self.counters.get_or_create(labels).inc_by(more);
    }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn gauges_of(registry: &mut Registry, name: &str, doc: &str, unit: Option<Unit>) -> Gauges {
    let family = Gauges::default();
    match unit {
        Some(unit) => registry.register_with_unit(name, doc, unit, family.clone()),
        None => registry.register(name, doc, family.clone()),
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_the_run_that_begins_again_makes_none_fall() {
        let mut followed = Followed::new(Family::default());
        let labels = vec![("link", "a.out > b.in".to_owned())];
        let mut shown = |count| {
            followed.follow(&labels, count);
            followed.counters.get_or_create(&labels).get()
        };
        assert_eq!([7, 7, 10, 2, 5].map(&mut shown), [7, 7, 10, 12, 15]);
    }
}
