//! What links between nodes do in whole graphs, beyond carrying messages.

use sinew_core::Cause;
use sinew_core::trace::Record;
use sinew_runtime::run::Outcome;

use crate::{assert_stopped, run, run_past};

fn signals(record: &Record) -> Vec<f64> {
    record.signals().collect()
}

pub(crate) fn each_fused_motor_has_its_own_safe_value() {
    let text = "name: test
domains: {control: {realtime: {period: 2ms, overrun: {policy: count}}}}
nodes:
  - kind: source
    fail_at: 50
    failure: silent
    ports: {out: [{name: one, port: in}, {name: two, port: in}]}
  - {kind: motor, name: one, safe: {in: {value: halt, after: 2}}}
  - {kind: motor, name: two, safe: {in: {value: hold, after: 1000000}}}
";
    let seen = run_past(text, 100);
    assert_eq!(seen.outcome, Outcome::Stopped, "{:?}", seen.faults);
    let rows: Vec<_> = seen.of(0, 0).iter().filter(|record| !record.is_stopping()).collect();
    let first = rows.iter().position(|record| signals(record)[2] == 1.0).expect("one is safe");
    for record in &rows[first..] {
        let signals = signals(record);
        assert_eq!((signals[1], signals[2]), (0.0, 1.0), "the first motor obeys an old command");
        assert_eq!((signals[4], signals[5]), (1.0, 0.0), "the second got the first one's value");
    }
    let last = signals(seen.of(0, 0).last().expect("records"));
    assert!(last[1].is_sign_positive() && last[4].is_sign_negative(), "{last:?}");
}

pub(crate) fn each_motor_of_a_broadcast_has_its_own_safe_value() {
    let text = "name: test
domains:
  control: {realtime: {period: 2ms, overrun: {policy: count}}}
  left: {realtime: {trigger: input, overrun: {policy: count}}}
  right: {realtime: {trigger: input, overrun: {policy: count}}}
nodes:
  - kind: source
    domain: control
    fail_at: 50
    ports:
      out:
        - {name: one, port: in, delivery: broadcast, wait: park}
        - {name: two, port: in, delivery: broadcast, wait: park}
  - {kind: motor, name: one, domain: left, safe: {in: {value: halt, after: 10}}}
  - {kind: motor, name: two, domain: right, safe: {in: {value: hold, after: 10}}}
";
    let seen = run(text);
    assert_eq!(seen.fault().fault.text(), "told to fail in cycle 50", "{:?}", seen.faults);
    for (domain, negative) in [(1, false), (2, true)] {
        let motor = seen.motor(domain);
        assert_stopped(&motor);
        let ran = motor.iter().position(|row| row.0 == 1.0).expect("it ran");
        let still = motor[ran..].iter().filter(|row| row.0 == 0.0);
        let own = |row: &(f64, bool, u64)| row.1 && row.0.is_sign_negative() == negative;
        assert!(still.clone().all(own), "domain {domain} got another's safe value: {motor:?}");
    }
}

pub(crate) fn readers_of_a_broadcast_may_share_domains() {
    let link = "transport: shared_memory, delivery: broadcast, wait: park";
    let text = format!(
        "name: test
domains:
  control:
    realtime: {{period: 2ms, overrun: {{policy: count}}}}
    threads: [{{nodes: [source]}}, {{nodes: [near]}}]
  plant: {{realtime: {{trigger: input, overrun: {{policy: count}}}}}}
nodes:
  - kind: source
    domain: control
    finish_at: 100
    ports:
      out:
        - {{name: near, port: in, {link}}}
        - {{name: one, port: in, {link}}}
        - {{name: two, port: in, {link}}}
  - {{kind: motor, name: near, domain: control, safe: {{in: {{value: halt, after: 10}}}}}}
  - {{kind: motor, name: one, domain: plant, safe: {{in: {{value: halt, after: 10}}}}}}
  - {{kind: motor, name: two, domain: plant, safe: {{in: {{value: halt, after: 10}}}}}}
"
    );
    let seen = run(&text);
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
    // The two motors of the plant share a thread: three signals each.
    let reached = |domain, thread, number: usize| {
        seen.of(domain, thread).iter().map(|record| signals(record)[number]).fold(0.0, f64::max)
    };
    for (domain, thread, number) in [(0, 1, 2), (1, 0, 2), (1, 0, 5)] {
        assert!(reached(domain, thread, number) > 90.0, "domain {domain}, signal {number}");
    }
}

pub(crate) fn a_fused_delay_is_one_cycle() {
    let text = "name: test
domains: {control: {realtime: {period: 2ms, overrun: {policy: count}}}}
nodes:
  - {kind: source, finish_at: 50, ports: {out: [{name: motor, port: in}]}}
  - kind: motor
    safe: {in: {value: halt, after: 10}}
    ports: {out: [{name: source, port: feedback, delay: 1}]}
";
    let seen = run(text);
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
    for record in seen.of(0, 0).iter().skip(1).filter(|record| !record.is_stopping()) {
        assert_eq!(signals(record)[0], (record.number() - 1) as f64, "cycle {}", record.number());
    }
}

pub(crate) fn a_full_queue_does_what_its_link_says() {
    for (full, cause) in [("fault", Some(Cause::Full)), ("wait", Some(Cause::Full)), ("drop", None)]
    {
        // The reader takes one message while the writer sends three.
        let text = format!(
            "name: test
domains:
  control: {{realtime: {{period: 2ms, overrun: {{policy: count}}}}}}
  plant: {{realtime: {{period: 6ms, overrun: {{policy: count}}}}}}
nodes:
  - kind: source
    domain: control
    finish_at: 100
    ports:
      out: [{{name: motor, port: in, delivery: queue, capacity: 4, full: {full}}}]
  - {{kind: motor, domain: plant, safe: {{in: {{value: halt, after: 10}}}}}}
"
        );
        let seen = run(&text);
        assert_eq!(seen.faults.first().map(|(_, at)| at.fault.cause), cause, "{full}");
        if cause.is_some() {
            assert!(seen.fault().fault.text().contains("queue to node 'motor' is full"), "{full}");
        } else {
            assert!(seen.of(0, 0).last().expect("records").totals().messages_dropped > 0);
        }
        assert_stopped(&seen.motor(1));
    }
}
