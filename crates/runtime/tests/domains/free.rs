//! Free runs: one cycle after the other, every one of them on record.

use std::time::{Duration, Instant};

use sinew_core::pace::Pace;
use sinew_core::trace::Record;
use sinew_core::{Cause, privileges};
use sinew_runtime::run::{Outcome, Run, RunRequest};

use crate::{HANGS_AFTER, Seen, assert_stopped, request, request_on, two_domains, watch};

const CYCLES: u64 = 20_000;

fn freely(request: RunRequest, cycles: u64) -> RunRequest {
    RunRequest { pace: Pace::Free { cycles }, ..request }
}

fn run_freely(request: RunRequest, cycles: u64) -> Seen {
    watch(freely(request, cycles), Duration::from_millis(5), |_, _| ())
}

/// Every cycle is there, in order, in time, and saw the feedback of the one before.
fn assert_complete(seen: &Seen, cycles: u64) {
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
    let all = seen.of(0, 0);
    let run: Vec<&Record> = all.iter().filter(|record| !record.is_stopping()).collect();
    assert_eq!(run.len() as u64, cycles);
    for (number, record) in run.iter().enumerate() {
        assert_eq!(record.number(), number as u64);
        let answered = record.signals().next().expect("a signal") as u64;
        assert_eq!(answered, record.number().saturating_sub(1), "its feedback is another cycle's");
        assert!(!record.is_overrun() && record.skipped() == 0);
    }
    assert!(all.last().expect("records").is_stopping());
}

pub(crate) fn a_free_run_has_every_cycle_on_record() {
    for link in ["delivery: queue", "delivery: queue, wait: park", "transport: pipe, wait: park"] {
        let request = freely(request(&two_domains("", link)), CYCLES);
        // The parent looks again when the controller has ended, not before.
        let seen = watch(request, Duration::from_secs(1), |_, _| ());
        assert_complete(&seen, CYCLES);
        assert_stopped(&seen.motor(1));
    }
}

pub(crate) fn threads_and_one_cpu_run_freely_too() {
    let link = "sync: mutex, wait: park, delivery: queue";
    let text = format!(
        "name: test
domains:
  control:
    realtime: {{period: 2ms}}
    threads: [{{nodes: [source]}}, {{nodes: [motor]}}]
nodes:
  - {{kind: source, ports: {{out: [{{name: motor, port: in, {link}}}]}}}}
  - kind: motor
    safe: {{in: {{value: halt, after: 10}}}}
    ports: {{out: [{{name: source, port: feedback, delay: 1, {link}}}]}}
"
    );
    let cpus = privileges::cpus().expect("affinity");
    for cpus in [&cpus[..], &cpus[..1]] {
        assert_complete(&run_freely(request_on(&text, cpus), 1000), 1000);
    }
}

pub(crate) fn a_free_run_without_feedback_is_a_fault() {
    let text = two_domains("fail_at: 50, failure: silent,", "delivery: queue");
    let seen = run_freely(request(&text), CYCLES);
    let fault = seen.fault();
    assert_eq!((fault.fault.cause, fault.cycle), (Cause::Overrun, Some(50)));
    let words = "no feedback from node 'motor' by the deadline of 1000000 us";
    assert!(fault.fault.text().starts_with(words), "{}", fault.fault.text());
    assert_stopped(&seen.motor(1));
}

pub(crate) fn a_free_run_can_be_stopped() {
    let request = freely(request(&two_domains("", "delivery: queue")), Pace::FREE_CYCLES_MAX);
    let began = Instant::now();
    let seen = watch(request, Duration::from_millis(1), |run, cycles| {
        if cycles > 50 {
            run.stop();
        }
    });
    assert!(began.elapsed() < HANGS_AFTER);
    // The run may have been done before the order came.
    assert_ne!(seen.outcome, Outcome::Faulted, "{:?}", seen.faults);
    assert_stopped(&seen.motor(1));
}

pub(crate) fn a_free_run_of_more_than_a_trace_holds_is_refused() {
    for cycles in [0, Pace::FREE_CYCLES_MAX + 1] {
        let request = freely(request(&two_domains("", "delivery: queue")), cycles);
        let Err(error) = Run::start(request) else { panic!("{cycles} cycles") };
        let expected = format!("a free run of {cycles} cycles: expected 1 to 100000");
        assert_eq!(error.to_string(), expected);
    }
}
