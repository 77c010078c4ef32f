//! A cycle allocates nothing, makes no system call and finds all memory where it was; each proof is
//! shown to be able to fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use sinew_core::Cycle;
use sinew_core::cycle::executor::Executor;
use sinew_core::privileges;
use sinew_core::sys;
use sinew_core::trace::COUNTS_ALLOCATIONS;
use sinew_runtime::run::Outcome;

use crate::{fused, kinds, request, run, run_with, two_domains};

/// Set for a second start of this program, below strace: how the source is to fail.
pub(crate) const TRACED: &str = "SINEW_TEST_TRACED";

const FUSED: &str = "name: test
domains: {control: {realtime: {period: 1ms}}}
nodes:
  - kind: source
    fail_at: FAIL_AT
    ports: {out: [{name: relay, port: in}]}
  - {kind: relay, ports: {out: [{name: motor, port: in}]}}
  - kind: motor
    safe: {in: {value: halt, after: 10}}
    ports: {out: [{name: source, port: feedback, delay: 1}]}
";

pub(crate) fn a_cycle_allocates_nothing() {
    assert_eq!(allocations("0"), 0);
    assert_eq!(allocations("1\n    failure: log_flood"), 0, "lines");
    let noticed = allocations("1\n    failure: allocate");
    assert_eq!(noticed, 999, "the proof does not notice an allocation");
}

/// Allocations in 1000 cycles whose source fails in this way, which does not end the run.
fn allocations(fail_at: &str) -> u64 {
    let text = FUSED.replace("FAIL_AT", fail_at);
    let plan = request(&text).plan;
    let executor = Executor::fused(&plan, kinds::NODES, Path::new("."));
    let mut executor = executor.expect("the nodes are good");
    let (mut cycle, _lines) = Cycle::heard(0, 1_000_000).expect("memory");
    let before = sys::allocations();
    while cycle.number < 1000 {
        executor.cycle(&cycle, u64::MAX).expect("nothing fails");
        cycle.number += 1;
    }
    sys::allocations() - before
}

/// Only in a debug build; where allocations are not counted, none are reported.
pub(crate) fn an_allocation_in_a_cycle_is_counted_for_its_node() {
    for (failure, least) in [("allocate", 50), ("allocate_in_at_rest", 1)] {
        let source = format!("finish_at: 100, fail_at: 50, failure: {failure},");
        let seen = run(&two_domains(&source, "delivery: latest"));
        let last = |domain| seen.of(domain, 0).last().expect("records").allocations(0);
        let counted = |count| COUNTS_ALLOCATIONS.then_some(count);
        assert!(last(0) >= counted(least), "{failure}: {:?}", last(0));
        assert_eq!(last(1), counted(0), "the motor allocates nothing");
    }
}

pub(crate) fn a_cycle_makes_no_system_call() {
    let cpus = privileges::cpus().expect("affinity").len();
    let strace = Command::new("strace").arg("--version").output();
    if cpus < 2 || strace.is_err() {
        let missing = if cpus < 2 { "two CPUs" } else { "strace (package 'strace')" };
        assert!(env::var("CI").is_err(), "CI must have {missing}");
        println!("skipped: it needs {missing}");
        return;
    }
    for failure in ["none", "log_flood"] {
        for (thread, calls) in traced_calls(failure) {
            assert!(calls.is_empty(), "{failure}: thread {thread} calls the kernel: {calls:?}");
        }
    }
    let noticed = traced_calls("yield");
    let yields = noticed.values().flatten().filter(|call| call.contains("sched_yield"));
    assert!(yields.count() > 100, "the proof does not notice a system call: {noticed:?}");
}

/// By the kernel's count for each thread, from its first records on until shortly before its end.
/// The count does not cover the cycles before those, nor code that only other programs have.
pub(crate) fn a_cycle_finds_its_memory() {
    let source = |failure| format!("finish_at: 300, {failure}");
    let faults = |failure| page_faults(&two_domains(&source(failure), "delivery: latest"));
    let Some(none) = faults("") else {
        assert!(env::var("CI").is_err(), "CI must allow to lock memory");
        println!("skipped: it needs the right to lock memory");
        return;
    };
    assert_eq!(none, [0, 0], "page faults in the cycles of each domain");
    let logs = faults("fail_at: 100, failure: log,");
    assert_eq!(logs, Some(vec![0, 0]), "page faults of a node that logs for the first time");
    let noticed = faults("fail_at: 1, failure: let_go_of_code,").expect("it may be locked");
    assert!(noticed[0] > 100, "the proof does not notice page faults: {noticed:?}");
    let falls_back =
        fused("count", "fail_at: 100,").replace("coast_cycles: 5", "coast_cycles: 250");
    assert_eq!(page_faults(&falls_back), Some(vec![0]), "page faults on the way out of an error");
}

/// Page faults of the one thread of each domain in some 250 cycles; `None` if memory cannot be
/// locked here.
fn page_faults(text: &str) -> Option<Vec<u64>> {
    let text = text.replace("{policy: stop, consecutive_max: 200}", "{policy: count}");
    let (mut first, mut last, mut is_locked) = (None, Vec::new(), false);
    run_with(&text, |run, cycles| {
        if !(20..280).contains(&cycles) {
            return;
        }
        is_locked = run.privileges().iter().all(|(.., obtained)| obtained.locked_kib > 0);
        let counts = run.threads().into_iter().map(|(_, process, thread)| {
            let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat"));
            faults_of(&stat.expect("a thread that runs"))
        });
        last = counts.collect();
        first.get_or_insert_with(|| last.clone());
    });
    let first = first.expect("it was looked at");
    is_locked.then(|| last.iter().zip(first).map(|(last, first)| last - first).collect())
}

/// Minor and major page faults by /proc/PID/task/TID/stat. The name, in parentheses, may hold
/// anything.
fn faults_of(stat: &str) -> u64 {
    let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace();
    let counts: Vec<u64> = fields.skip(7).step_by(2).take(2).flat_map(str::parse).collect();
    assert_eq!(counts.len(), 2, "{stat}");
    counts.iter().sum()
}

/// The graph that is traced: links that poll, a policy that tolerates the slowness of strace.
pub(crate) fn run_to_be_traced(failure: &str) {
    let fail =
        if failure == "none" { String::new() } else { format!("fail_at: 1, failure: {failure},") };
    let source = format!("finish_at: 300, {fail}");
    let text = two_domains(&source, "delivery: latest, wait: spin");
    let text = text.replace("{policy: stop, consecutive_max: 200}", "{policy: count}");
    let seen = run(&text);
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
}

/// What each realtime thread called between its first and its last sleep, without the sleeps.
fn traced_calls(failure: &str) -> BTreeMap<String, Vec<String>> {
    let log = env::temp_dir().join(format!("sinew-strace-{}", std::process::id()));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&log).arg(env::current_exe().expect("this program"));
    let status = strace.env(TRACED, failure).status().expect("strace starts");
    assert!(status.success(), "the traced run fails: {status}");
    let text = fs::read_to_string(&log).expect("strace wrote its log");
    fs::remove_file(&log).expect("the log can go");
    let mut threads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let (thread, call) = line.split_once(' ').unwrap_or((line, ""));
        threads.entry(thread.into()).or_default().push(call.trim().into());
    }
    let is_sleep = |call: &String| call.contains("clock_nanosleep");
    threads.retain(|_, calls| {
        let realtime = calls.iter().any(|call| call.starts_with("sched_setscheduler"));
        realtime && calls.iter().filter(|call| is_sleep(call)).count() > 100
    });
    assert_eq!(threads.len(), 2, "two realtime threads sleep between cycles");
    for calls in threads.values_mut() {
        let first = calls.iter().position(is_sleep).unwrap_or(0);
        let last = calls.iter().rposition(is_sleep).unwrap_or(0);
        *calls = calls[first..last].iter().filter(|call| !is_sleep(call)).cloned().collect();
    }
    threads
}
