//! Faults beside, before and after the cycles of a node.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use sinew_core::Cause;
use sinew_core::trace::Record;
use sinew_runtime::inject::{InjectedFault, Injection, Target};
use sinew_runtime::run::{Outcome, Run};

use crate::{
    Seen, assert_stopped, fused, request, run, run_past, run_with, signal, two_domains, watch,
};

pub(crate) fn a_fused_motor_stops_after_a_fault_beside_it() {
    // A node that cannot say whether its machine stands still is a fault like any other, and it is
    // not asked before the stop: the motor beside it runs until then.
    for (policy, source, cause, running) in [
        ("count", "fail_at: 50,", Cause::Error, 49),
        ("count", "finish_at: 50, failure: panic_in_at_rest,", Cause::Panic, 50),
        ("stop, consecutive_max: 3", "fail_at: 50, failure: slow,", Cause::Overrun, 49),
    ] {
        let seen = run(&fused(policy, source));
        let fault = seen.fault();
        assert_eq!(fault.fault.cause, cause, "{:?}", seen.faults);
        let motor = motor(&seen);
        assert_eq!(motor[running], (1.0, 0.0), "{cause:?}: it stops too early");
        let safe = motor.iter().position(|row| row.0 == 0.0).expect("a safe value");
        assert!(cause == Cause::Overrun || safe <= running + 2, "{cause:?}: safe at {safe}");
        assert!(motor[safe..].iter().all(|&row| row == (0.0, 1.0)), "{cause:?}: {motor:?}");
        assert!(motor[safe..].len() > 5, "{cause:?}: it is not brought to rest: {motor:?}");
        if cause == Cause::Panic {
            assert!(fault.fault.text().contains("told to panic in at_rest"), "{:?}", seen.faults);
            assert_eq!((fault.node, fault.cycle), (Some(0), Some(51)));
        }
    }
}

/// Two of the motor's three signals in each cycle; the source has one before them.
fn motor(seen: &Seen) -> Vec<(f64, f64)> {
    let two = |record: &Record| {
        let signals: Vec<f64> = record.signals().collect();
        (signals[1], signals[2])
    };
    seen.of(0, 0).iter().map(two).collect()
}

/// These records show since when nothing moves by command.
pub(crate) fn records_say_what_an_actuator_holds() {
    let seen = run(&fused("count", "finish_at: 100, fail_at: 50, failure: let_go,"));
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
    let records = seen.of(0, 0);
    for record in records {
        let held = (record.is_commanded(), record.is_obeying());
        let expected: &[(bool, bool)] = match record.number() {
            0..50 => &[(true, true)],
            // The safe value, for ten cycles.
            50..60 => &[(true, false)],
            // Then nothing: periods that are lost count for the guard too.
            60..=69 => &[(true, false), (false, false)],
            _ => &[(false, false)],
        };
        assert!(expected.contains(&held), "cycle {}: {held:?}", record.number());
    }
    let safe_since_ns = records.last().expect("records").safe_since_ns();
    assert_eq!(safe_since_ns, Some(records[50].start_ns()));
}

pub(crate) fn a_failure_outside_of_a_cycle_is_reported() {
    let rows = [
        ("panic_in_make", Cause::Panic, "told to panic in make"),
        ("error_in_start", Cause::Error, "told to fail in start"),
        ("panic_in_start", Cause::Panic, "told to panic in start"),
        ("panic_in_stop", Cause::Panic, "node 'source' as it stopped: panicked at"),
    ];
    for (failure, cause, words) in rows {
        let source = format!("finish_at: 50, failure: {failure},");
        let seen = run(&two_domains(&source, "delivery: latest"));
        assert_eq!(seen.outcome, Outcome::Faulted, "{failure}");
        // The domain that waited for the order to run ends without a fault of its own.
        assert_eq!(seen.faults.len(), 1, "{failure}: {:?}", seen.faults);
        let fault = &seen.fault().fault;
        assert_eq!(fault.cause, cause, "{failure}: {fault}");
        assert!(fault.text().contains(words), "{failure}: {fault}");
        if failure == "panic_in_stop" {
            assert_stopped(&seen.motor(1));
        }
    }
}

pub(crate) fn a_fault_stops_what_other_threads_command() {
    let text = "name: test
domains:
  control:
    realtime: {period: 2ms, overrun: {policy: stop, consecutive_max: 200}}
    threads: [{nodes: [bad, idle]}, {nodes: [good, coasting]}]
  plant: {realtime: {trigger: input, overrun: {policy: count}}}
nodes:
  - {kind: source, name: bad, domain: control, fail_at: 50, ports: {out: [{name: idle, port: in}]}}
  - {kind: motor, name: idle, domain: control, safe: {in: {value: halt, after: 10}}}
  - kind: source
    name: good
    domain: control
    ports:
      out: [{name: coasting, port: in}, {name: remote, port: in, delivery: latest}]
  - kind: motor
    name: coasting
    domain: control
    coast_cycles: 500
    safe: {in: {value: halt, after: 10}}
  - {kind: motor, name: remote, domain: plant, safe: {in: {value: halt, after: 10}}}
";
    let seen = run(text);
    assert_eq!(seen.fault().fault.text(), "told to fail in cycle 50", "{:?}", seen.faults);
    let remote = seen.motor(1);
    assert_stopped(&remote);
    let moving = remote.iter().filter(|row| row.0 == 1.0).map(|row| row.2).max();
    assert!(moving < Some(250), "the other thread commanded on until {moving:?}");
    assert!(seen.of(0, 1).len() > 500, "it did not go on for its own motor");
}

/// The thread that polls for feedback sleeps now and then once a cycle was without it: otherwise
/// nobody could use its CPU, not even the process that has to find out why.
pub(crate) fn a_thread_whose_peer_is_silent_leaves_its_cpu() {
    const CYCLES: u64 = 50;
    let text = two_domains("", "delivery: latest, wait: spin");
    let text = text.replace("{policy: stop, consecutive_max: 200}", "{policy: count}");
    // The number of the cycle, and how often the thread had slept by then.
    let (mut stopped, mut slept) = (None, None);
    let seen = run_with(&text, |run, cycles| {
        let control = run.status().domains[0].threads[0].cycles;
        if cycles > 50 && stopped.is_none() {
            signal(Signal::STOP, run.processes()[1]);
            stopped = Some((control, sleeps(run)));
        }
        let Some((cycle, before)) = stopped.filter(|_| slept.is_none()) else { return };
        if control >= cycle + CYCLES {
            slept = Some(sleeps(run) - before);
            signal(Signal::CONT, run.processes()[1]);
            run.stop();
        }
    });
    assert_eq!(seen.outcome, Outcome::Stopped, "{:?}", seen.faults);
    let slept = slept.expect("the motor was stopped");
    assert!(slept > 3 * CYCLES, "{slept} sleeps in {CYCLES} cycles without feedback");
}

/// How often the first thread of the first domain has left its CPU by itself.
fn sleeps(run: &Run) -> u64 {
    let (_, process, thread) = run.threads()[0];
    let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/status"));
    let status = status.expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.expect("the kernel counts").trim().parse().expect("a number")
}

pub(crate) fn a_slow_domain_has_time_to_stop() {
    let text = fused("count", "").replace("2ms", "2s").replace("coast_cycles: 5,", "");
    let seen = run_past(&text, 0);
    assert_eq!(seen.outcome, Outcome::Stopped, "{:?}", seen.faults);
    assert!(seen.of(0, 0).last().expect("records").is_stopping());
}

/// This shows something only for users that may not lock unlimited memory.
pub(crate) fn a_limit_of_locked_memory_is_no_fault() {
    let before = getrlimit(Resource::Memlock);
    for limit in (1..=16).map(|mib| mib << 20) {
        let current = Some(before.maximum.map_or(limit, |maximum| limit.min(maximum)));
        setrlimit(Resource::Memlock, Rlimit { current, ..before }).expect("limit");
        let seen = run(&two_domains("finish_at: 10,", "delivery: latest"));
        setrlimit(Resource::Memlock, before).expect("the limit as it was");
        assert_eq!(seen.outcome, Outcome::Finished, "{limit} bytes: {:?}", seen.faults);
    }
}

pub(crate) fn a_start_that_fails_leaves_no_process() {
    let before = getrlimit(Resource::Nofile);
    let request = request(&two_domains("", "delivery: latest"));
    let mut refused = 0;
    // Descriptors run out at every step of the start. The caller looks for what is left.
    for limit in 4..64 {
        setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..before }).expect("limit");
        let started = Run::start(request.clone());
        setrlimit(Resource::Nofile, before).expect("the limit as it was");
        match started {
            Err(_) => refused += 1,
            Ok(_) => break,
        }
    }
    assert!(refused > 10, "a start was refused {refused} times only");
}

pub(crate) fn a_start_that_takes_long_can_be_stopped() {
    let text = two_domains("failure: hang_in_make,", "delivery: latest");
    let seen = run_with(&text, |run, _| run.stop());
    // The hanging domain does not see the stop, so it has to be killed; nothing ever moved.
    assert_eq!(seen.fault().fault.text(), "did not stop within 3000 ms and was killed");
    assert!(seen.of(0, 0).is_empty() && seen.of(1, 0).is_empty());
}

pub(crate) fn a_motor_whose_link_lies_comes_to_rest() {
    let text = two_domains("finish_at: 5000,", "delivery: latest");
    let mut request = request(&text);
    let command = request.plan.links.iter().position(|link| !link.delay).expect("a link");
    let target = Target::Link(command);
    request.injections = vec![Injection { target, at_cycle: 100, what: InjectedFault::Hostile }];
    let seen = watch(request, Duration::from_millis(5), |_, _| ());
    assert_eq!(seen.outcome, Outcome::Faulted);
    let motor = seen.motor(1);
    assert!(motor.iter().any(|row| row.0 != 0.0), "it never ran: {motor:?}");
    assert_stopped(&motor);
}
