//! Figures from the supervisor: domains, services, links, events, the last stop.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};
use sinew_control::status::{
    DomainState, DomainStatus, Event, FLOW_TIMES_NS, FlowStatus, HostState, HostStatus, LinkStatus,
    NodeStatus, Phase, Status,
};

use super::{Gauges, Labels, counters, gauge, gauges};

/// Name, description, and how the value is read; `None` if it cannot be known from outside.
type Row<T> = (&'static str, &'static str, fn(&T) -> Option<u64>);

const DOMAIN: &[Row<DomainStatus>] =
    &[("domain_restarts", "How often a domain was started again", |it| Some(it.restarts.into()))];

const NODE: &[Row<NodeStatus>] = &[
    ("node_heartbeats", "Heartbeats of a service's node", |it| Some(it.beats)),
    ("node_messages_received", "Messages that a service's node took", |it| Some(it.received)),
    ("node_messages_lost", "Messages that a service's node was too slow for", |it| Some(it.lost)),
    ("node_messages_sent", "Messages that a service's node sent", |it| Some(it.sent)),
    ("node_messages_dropped", "Messages of a service's node without room", |it| Some(it.dropped)),
];

const LINK: &[Row<LinkStatus>] = &[
    ("link_messages_written", "Messages written into a link", |it| it.written),
    ("link_messages_lost", "Messages that a link's reader was too slow for", |it| it.lost),
    ("link_messages_dropped", "Messages that found no room in a link", |it| it.dropped),
];

const FLOW: &[Row<FlowStatus>] = &[
    ("flow_packets", "Packets that a flow node has done with; of a source: flows", |it| {
        Some(it.packets)
    }),
    ("flow_errors", "Packets at which a flow node failed; of a source: flows that failed", |it| {
        Some(it.errors)
    }),
    ("flow_refused", "What a source of flows refused because there was no room", |it| {
        Some(it.refused)
    }),
];

const HOST: &[Row<HostStatus>] = &[
    ("host_messages_late", "Messages of another host dropped for their age", |it| Some(it.late)),
    ("host_messages_lost", "Messages of another host that did not arrive", |it| Some(it.lost)),
    ("host_messages_refused", "Messages in the name of another host refused", |it| {
        Some(it.refused)
    }),
    ("host_messages_misplaced", "Messages that came under the key of another port", |it| {
        Some(it.misplaced)
    }),
    ("host_messages_early", "Messages from before both hosts had heard each other", |it| {
        Some(it.early)
    }),
];

const GAUGES: [(&str, Option<Unit>, &str); 14] = [
    ("phase", None, "1 for the phase that the run is in, else 0"),
    ("domain_state", None, "1 for the state that a domain is in, else 0"),
    ("domain_up", None, "1 while a domain runs, else 0"),
    ("domain_resident", Some(Unit::Bytes), "Resident memory of a domain"),
    ("flow_in_flight", None, "Packets that wait in a flow node; of a source: flows under way"),
    ("flow_time_max", Some(Unit::Seconds), "The longest that a flow node had a packet"),
    ("link_fill_messages", None, "Messages in a link"),
    ("link_broken", None, "1 once an end of a link has broken its rules"),
    ("host_heard", None, "1 while another host of the graph is heard, else 0"),
    ("host_round_trip", Some(Unit::Seconds), "To another host of the graph and back"),
    ("host_clock_ahead", Some(Unit::Seconds), "The clock of day of another host less the one here"),
    ("host_clock_uncertainty", Some(Unit::Seconds), "By how much that may be wrong"),
    (
        "stop_safe_output",
        Some(Unit::Seconds),
        "The last stop of the core: from the order until all outputs were safe",
    ),
    (
        "stop_at_rest",
        Some(Unit::Seconds),
        "The last stop of the core: from the order until all was at rest",
    ),
];

/// The figures of the status.
pub(in crate::monitor) struct Standing {
    /// In the order of [`GAUGES`].
    gauges: [Gauges; GAUGES.len()],
    domain: Counts<DomainStatus>,
    node: Counts<NodeStatus>,
    link: Counts<LinkStatus>,
    flow: Counts<FlowStatus>,
    host: Counts<HostStatus>,
    flow_times: Family<Labels, FlowTimes>,
    events: Family<Labels, Counter>,
    events_missed: Family<Labels, Counter>,
}

impl Standing {
    /// Without values.
    pub(in crate::monitor) fn new(registry: &mut Registry) -> Standing {
        let doc = "Events of the run, by what they are about";
        let events = counters(registry, "events", doc);
        let flow_times = Family::<Labels, FlowTimes>::default();
        let doc = "How long a flow node had a packet; of a source: how long a flow took";
        registry.register_with_unit("flow_time", doc, Unit::Seconds, flow_times.clone());
        let doc = "Events that the run no longer kept when the monitor asked for them";
        Standing {
            events,
            events_missed: counters(registry, "events_missed", doc),
            gauges: GAUGES.map(|(name, unit, doc)| gauges(registry, name, doc, unit)),
            domain: Counts::new(registry, DOMAIN),
            node: Counts::new(registry, NODE),
            link: Counts::new(registry, LINK),
            flow: Counts::new(registry, FLOW),
            host: Counts::new(registry, HOST),
            flow_times,
        }
    }

    /// Publishes a status.
    pub(in crate::monitor) fn show(&mut self, status: &Status) {
        let [in_phase, in_state, up, resident, rest @ ..] = &self.gauges;
        let [in_flight, time_max, fill, broken, heard, round_trip, rest @ ..] = rest;
        let [clock_ahead, clock_uncertainty, safe_output, at_rest] = rest;
        for phase in Phase::ALL {
            gauge(in_phase, &labels("phase", phase.word())).set(flag(*phase == status.phase));
        }
        for domain in &status.domains {
            let of_domain = labels("domain", &domain.name);
            for state in DomainState::ALL {
                let with_state = [of_domain.clone(), labels("state", state.word())].concat();
                gauge(in_state, &with_state).set(flag(*state == domain.state));
            }
            gauge(up, &of_domain).set(flag(domain.state == DomainState::Running));
            gauge(resident, &of_domain).set(domain.resident_kib.unwrap_or(0) as f64 * 1024.0);
            self.domain.show(&of_domain, domain);
            for host in &domain.hosts {
                let of_host = labels("host", &host.name);
                gauge(heard, &of_host).set(flag(host.state == HostState::Heard));
                let us = host.round_trip_us.unwrap_or(0);
                gauge(round_trip, &of_host).set(us as f64 / 1e6);
                for (family, ns) in [
                    (clock_ahead, host.clock.map(|it| it.day_offset_ns as f64)),
                    (clock_uncertainty, host.clock.map(|it| it.uncertainty_ns as f64)),
                ] {
                    match ns {
                        Some(ns) => _ = gauge(family, &of_host).set(ns / 1e9),
                        // A host's last known value is out of date once the host is silent.
                        None => _ = family.remove(&of_host),
                    }
                }
                self.host.show(&of_host, host);
            }
            let is_service = domain.threads.is_empty();
            for node in domain.nodes.iter().filter(|_| is_service) {
                let of_node = [of_domain.clone(), labels("node", &node.name)].concat();
                match &node.flow {
                    Some(flow) => {
                        self.flow.show(&of_node, flow);
                        gauge(in_flight, &of_node).set(flow.in_flight as f64);
                        let max_ns = flow.time_ns_max.unwrap_or(0);
                        gauge(time_max, &of_node).set(max_ns as f64 / 1e9);
                        self.flow_times.get_or_create(&of_node).set(flow);
                    }
                    None => self.node.show(&of_node, node),
                }
            }
        }
        for link in &status.links {
            let of_link = labels("link", &format!("{} > {}", link.from, link.to));
            self.link.show(&of_link, link);
            if let Some(count) = link.fill {
                gauge(fill, &of_link).set(f64::from(count));
            }
            gauge(broken, &of_link).set(flag(link.broken));
        }
        if let Some(stop) = &status.stop {
            for (family, us) in [(safe_output, stop.safe_output_us), (at_rest, stop.at_rest_us)] {
                match us {
                    Some(us) => _ = gauge(family, &Labels::new()).set(us as f64 / 1e6),
                    // A value that was not observed must not be that of the stop before.
                    None => family.clear(),
                }
            }
        }
    }

    /// Counts events, and those that could not be seen.
    pub(in crate::monitor) fn events(&self, events: &[Event], missed: u64) {
        for event in events {
            self.events.get_or_create(&labels("kind", event.what.word())).inc();
        }
        self.events_missed.get_or_create(&Labels::new()).inc_by(missed);
    }
}

/// The times of a flow node, counted elsewhere: a histogram that gets all its values at once.
#[derive(Debug, Default)]
struct FlowTimes(Mutex<Lives>);

/// The figures of a node in the current life of its process, and in all lives before.
#[derive(Debug, Default)]
struct Lives {
    before: FlowStatus,
    now: FlowStatus,
}

impl FlowTimes {
    fn set(&self, status: &FlowStatus) {
        let mut lives = self.lives();
        if status.packets < lives.now.packets {
            lives.before = lives.sum();
        }
        lives.now = *status;
    }

    fn lives(&self) -> MutexGuard<'_, Lives> {
        // A panic never leaves a value half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lives {
    fn sum(&self) -> FlowStatus {
        let mut sum = self.now;
        sum.packets += self.before.packets;
        sum.time_ns_sum += self.before.time_ns_sum;
        sum.times.iter_mut().zip(self.before.times).for_each(|(sum, before)| *sum += before);
        sum
    }
}

impl EncodeMetric for FlowTimes {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let FlowStatus { packets, time_ns_sum, times, .. } = self.lives().sum();
        let ends = FLOW_TIMES_NS.iter().map(|ns| *ns as f64 / 1e9).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = ends.zip(times).collect();
        let sum_s = time_ns_sum as f64 / 1e9;
        encoder.encode_histogram::<NoLabelSet>(sum_s, packets, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

impl TypedMetric for FlowTimes {
    const TYPE: MetricType = MetricType::Histogram;
}

/// Counters that follow those of the run. Some of those begin again at 0 while the monitor runs: a
/// core that is reset has new links. A counter of Prometheus must never fall.
struct Counts<T: 'static> {
    rows: &'static [Row<T>],
    counters: Vec<Family<Labels, Counter>>,
    /// The counts of the run at the last poll, by row.
    seen: HashMap<(usize, Labels), u64>,
}

impl<T> Counts<T> {
    fn new(registry: &mut Registry, rows: &'static [Row<T>]) -> Counts<T> {
        let counters = rows.iter().map(|(name, doc, _)| counters(registry, name, doc)).collect();
        Counts { rows, counters, seen: HashMap::new() }
    }

    fn show(&mut self, labels: &Labels, it: &T) {
        for (at, (_, _, read)) in self.rows.iter().enumerate() {
            let Some(count) = read(it) else { continue };
            let before = self.seen.insert((at, labels.clone()), count).unwrap_or(0);
            let more = count.checked_sub(before).unwrap_or(count);
            self.counters[at].get_or_create(labels).inc_by(more);
        }
    }
}

fn labels(name: &'static str, value: &str) -> Labels {
    vec![(name, value.to_owned())]
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_the_run_that_begins_again_makes_none_fall() {
        let mut counts = Counts::new(&mut Registry::default(), &[("n", "", |it| Some(*it))]);
        let of = labels("link", "a.out > b.in");
        let mut shown = |count: u64| {
            counts.show(&of, &count);
            counts.counters[0].get_or_create(&of).get()
        };
        assert_eq!([7, 7, 10, 2, 5].map(&mut shown), [7, 7, 10, 12, 15]);
    }
}
