//! Cycles that nobody read, and stops that nobody saw begin.

use std::thread::sleep;
use std::time::{Duration, Instant};

use sinew_runtime::privileges::cpus;
use sinew_runtime::run::{Outcome, Run, ThreadId};
use sinew_runtime::trace::Totals;

use crate::{HANGS_AFTER, request, signal, two_domains};

/// Longer than any trace holds, and than a thread may be silent.
const SELDOM: Duration = Duration::from_secs(15);

fn start(source: &str) -> Run {
    let text = two_domains(source, "delivery: latest").replace("after: 10", "after: 2");
    let text = text.replace("{policy: stop, consecutive_max: 200}", "{policy: count}");
    Run::start(request(&text, &cpus().expect("affinity"))).expect("the run starts")
}

/// Looks until the core has run so many cycles.
fn until(run: &mut Run, cycles: u64) {
    let begun = Instant::now();
    while run.status().domains[0].threads[0].cycles < cycles {
        run.poll(Duration::from_millis(5), &mut |_, _| ());
        assert!(begun.elapsed() < HANGS_AFTER, "the core does not run");
    }
}

/// To its end; how many looks that took.
fn end(run: &mut Run) -> u32 {
    let (begun, mut looks) = (Instant::now(), 1);
    while run.poll(SELDOM, &mut |_, _| ()) {
        looks += 1;
        assert!(begun.elapsed() < 2 * HANGS_AFTER, "the run does not end");
    }
    looks
}

/// Whoever polls need not know how long a trace holds: half a second of 2 ms each.
pub(crate) fn a_run_that_is_looked_at_seldom_loses_no_record() {
    let mut run = start("finish_at: 1200,");
    end(&mut run);
    assert_eq!((run.outcome(), run.records_lost()), (Outcome::Finished, 0), "{:?}", run.faults());
}

pub(crate) fn cycles_are_counted_though_their_records_are_lost() {
    let mut run = start("finish_at: 1200,");
    until(&mut run, 1);
    // More than the trace holds.
    sleep(Duration::from_secs(4));
    let (mut read, mut totals) = (0, Totals::default());
    let control = ThreadId { domain: 0, thread: 0 };
    let mut each = |id, record: &sinew_runtime::trace::Record| {
        if id == control {
            (read, totals) = (read + 1, record.totals());
        }
    };
    while run.poll(Duration::from_millis(50), &mut each) {}
    let lost = run.records_lost_of(control);
    assert!(lost > 100, "only {lost} records are lost");
    assert_eq!(totals.cycles, 1201, "cycles 0 to 1200");
    assert!(read + lost <= totals.cycles + totals.stopping_cycles, "{read} {lost} {totals:?}");
    let status = run.status();
    let thread = &status.domains[0].threads[0];
    assert_eq!((thread.cycles, thread.records_lost), (1201, lost));
}

/// The motor's own guard acts long before anybody knows that its controller hangs.
pub(crate) fn outputs_that_were_safe_before_say_so() {
    let mut run = start("");
    until(&mut run, 50);
    signal("STOP", run.processes()[0]);
    end(&mut run);
    let stop = run.stop_status().expect("it has stopped");
    assert!(stop.reason.contains("ran no cycle for 2000 ms"), "{stop}");
    let (safe_us, rest_us) = (stop.safe_output_us.expect("seen"), stop.at_rest_us.expect("seen"));
    assert!(safe_us < -1_000_000, "they were safe soon after the controller stood: {stop:?}");
    assert!(safe_us < rest_us && rest_us < -1_000_000, "and so was the motor at rest: {stop:?}");
    assert!(stop.times().starts_with("safe outputs already "), "{stop}");
    let domains: Vec<_> = stop.domains.iter().map(|domain| &*domain.domain).collect();
    assert_eq!(domains, ["plant"], "the controller holds no actuator");
}

/// By the time that is said, though nothing else wakes who waits for it.
pub(crate) fn a_frozen_controller_is_killed_in_time() {
    let mut run = start("");
    until(&mut run, 50);
    signal("STOP", run.processes()[0]);
    let begun = Instant::now();
    end(&mut run);
    assert_eq!(run.outcome(), Outcome::Faulted);
    // Two seconds until that is known, three until it is killed; a look that nobody asked for would
    // come after 15.
    assert!(begun.elapsed() < SELDOM, "nobody looked when its time was over");
}
