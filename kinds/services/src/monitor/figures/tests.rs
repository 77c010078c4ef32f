//! What Prometheus gets, read by its own schema, whose types are made from the official file.

use std::collections::BTreeMap;

use prometheus_client::encoding::prometheus_protobuf::encode;
use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model as model;
use prometheus_client::encoding::text;
use sinew_control::status::{DomainStatus, FLOW_TIMES_NS, FlowStatus, NodeStatus, Status};
use sinew_core::trace::Past;

use super::*;
use crate::monitor::robot;

#[test]
fn a_cycle_is_counted_once_in_each_figure_of_its_thread() {
    let plan = robot();
    let mut registry = Registry::with_prefix("sinew");
    let mut cycles = CycleFigures::new(&mut registry, &plan, true);
    let domain = plan.domains.iter().position(|it| it.name == "control").expect("control");
    let record = Record::of(&plan, &plan.domains[domain].threads()[0].nodes);
    let thread = ThreadId { domain, thread: 0 };
    for _ in 0..3 {
        cycles.observe(thread, &Cycle::new(&record, None, Clock::from_rate(1.0)));
    }
    // More cycles have run than had a record here.
    cycles.totals(thread, 0, Totals { cycles: 9, ..Totals::default() });
    cycles.totals(thread, 1, Totals { cycles: 1, overruns: 2, ..Totals::default() });
    cycles.lost(thread, 7);
    let mut text = String::new();
    text::encode(&mut text, &registry).expect("text");
    for line in [
        "sinew_cycles_total{domain=\"control\",thread=\"0\"} 10",
        "sinew_overruns_total{domain=\"control\",thread=\"0\"} 2",
        "sinew_cycles_total{domain=\"plant\",thread=\"0\"} 0",
        "sinew_records_lost_total{domain=\"control\",thread=\"0\"} 7",
        "sinew_cycle_latency_seconds_count{domain=\"control\",thread=\"0\"} 3",
        "sinew_execution_time_seconds_count{domain=\"control\",node=\"ik\"} 3",
        "sinew_execution_time_max_seconds{domain=\"plant\",node=\"drives\"} 0.0",
        "sinew_signal{domain=\"plant\",node=\"drives\",signal=\"brake\",element=\"5\"} 0.0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    for name in ["activation_jitter_seconds_count", "release_to_end_max_seconds"] {
        let of = |domain| text.contains(&format!("sinew_{name}{{domain=\"{domain}\""));
        assert!(of("control") && !of("plant"), "an input has no planned start: {name}\n{text}");
    }
}

#[test]
fn a_rule_counts_what_the_thread_has_counted_since_the_record_before() {
    let plan = robot();
    let mut record = Record::of(&plan, &plan.domains[0].threads()[0].nodes);
    let (nodes, signals) = (record.nodes(), record.signals().len());
    record.restore(&Past {
        skipped: 3,
        execution_ticks: vec![0; nodes],
        signals: vec![0.0; signals],
        ..Past::default()
    });
    let skipped = |before| Cycle::new(&record, before, Clock::from_rate(1.0)).since.skipped;
    assert_eq!(skipped(None), 3, "nothing was counted before it");
    // A restored record has counted nothing: not in this life, and not since another record.
    assert_eq!(skipped(Some(Totals::default())), 0);
    assert_eq!(skipped(Some(Totals { skipped: 7, ..Totals::default() })), 0);
}

#[test]
fn a_native_histogram_holds_every_value_in_its_bucket() {
    let mut registry = Registry::with_prefix("sinew");
    let mut times = TimesFamily::new(&mut registry, "time", "Time").times(&Labels::new());
    let values_ns: Vec<u64> = (0..5000).map(|at| at * at * 7 + 300).chain([0, 0]).collect();
    values_ns.iter().for_each(|&ns| times.observe(ns));
    let families = encode(&registry).expect("it is encoded");
    let of = |name: &str| families.iter().find(|it| it.name == name).expect("a family");
    let longest = of("sinew_time_max_seconds").metric[0].gauge.expect("a gauge").value;
    assert_eq!(longest, *values_ns.iter().max().expect("some") as f64 / 1e9);
    let histogram = of("sinew_time_seconds").metric[0].histogram.clone().expect("a histogram");
    assert_eq!(histogram.zero_count, 2);
    assert_eq!(histogram.bucket.last().map(|it| it.cumulative_count), Some(5002));
    assert_eq!(histogram.bucket.len(), BUCKETS_S.len() + 1, "classic ones beside");
    // By the definition of the format, bucket i ends at 2^(i / 2^schema).
    let index = |ns: u64| {
        let scale = f64::from(2_i32.pow(histogram.schema as u32));
        ((ns as f64 / 1e9).log2() * scale).ceil() as i32
    };
    let mut expected = BTreeMap::<i32, i64>::new();
    values_ns
        .iter()
        .filter(|ns| **ns > 0)
        .for_each(|&ns| *expected.entry(index(ns)).or_default() += 1);
    assert_eq!(native(&histogram), expected);
}

/// The buckets of a native histogram that are not empty, by their index.
fn native(histogram: &model::Histogram) -> BTreeMap<i32, i64> {
    let mut buckets = BTreeMap::new();
    let (mut index, mut count) = (0, 0);
    let mut deltas = histogram.positive_delta.iter();
    for span in &histogram.positive_span {
        index += span.offset;
        for _ in 0..span.length {
            count += deltas.next().expect("a delta for each bucket");
            buckets.extend((count > 0).then_some((index, count)));
            index += 1;
        }
    }
    assert!(deltas.next().is_none(), "a bucket for each delta");
    buckets
}

#[test]
fn a_flow_node_has_its_packets_and_their_times_also_after_a_restart() {
    let mut registry = Registry::with_prefix("sinew");
    let mut standing = Standing::new(&mut registry);
    let mut times = [0; FLOW_TIMES_NS.len() + 1];
    (times[0], times[16]) = (4, 1);
    let flow = FlowStatus {
        packets: 5,
        errors: 2,
        time_ns_sum: 3_000_000_000,
        times,
        ..FlowStatus::default()
    };
    let status = |flow| {
        let node = NodeStatus { name: "score".into(), flow: Some(flow), ..NodeStatus::default() };
        let domain =
            DomainStatus { name: "web".into(), nodes: vec![node], ..DomainStatus::default() };
        Status { domains: vec![domain], ..Status::default() }
    };
    standing.show(&status(flow));
    // Another process begins again at zero.
    standing.show(&status(FlowStatus::default()));
    standing.show(&status(FlowStatus { in_flight: 1, ..flow }));
    let mut text = String::new();
    text::encode(&mut text, &registry).expect("text");
    for line in [
        "sinew_flow_packets_total{NODE} 10",
        "sinew_flow_errors_total{NODE} 4",
        "sinew_flow_in_flight{NODE} 1.0",
        "sinew_flow_time_seconds_count{NODE} 10",
        "sinew_flow_time_seconds_sum{NODE} 6.0",
        "sinew_flow_time_seconds_bucket{le=\"0.000001\",NODE} 8",
        "sinew_flow_time_seconds_bucket{le=\"10.0\",NODE} 8",
        "sinew_flow_time_seconds_bucket{le=\"+Inf\",NODE} 10",
    ] {
        let line = line.replace("NODE", "domain=\"web\",node=\"score\"");
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("node_heartbeats_total{"), "flow nodes have figures of their own");
}
