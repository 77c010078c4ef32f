//! Cycles that nobody read, and stops that nobody saw begin.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sinew_control::status::Phase;
use sinew_core::trace::ThreadId;
use sinew_core::trace::Totals;
use sinew_runtime::run::{Outcome, Run};

use crate::{HANGS_AFTER, request, signal, two_domains};

/// Far longer than any run here takes: a caller that waits this long was not woken.
const SELDOM: Duration = Duration::from_secs(60);
/// A little less than the traces of these runs hold: 512 records of 2 ms.
const HELD: Duration = Duration::from_millis(1000);

fn start(source: &str) -> Run {
    Run::start(request(&text(source))).expect("the run starts")
}

fn text(source: &str) -> String {
    let text = two_domains(source, "delivery: latest").replace("after: 10", "after: 2");
    text.replace("{policy: stop, consecutive_max: 200}", "{policy: count}")
}

/// Looks until the core has run this many cycles.
fn until(run: &mut Run, cycles: u64) {
    let begun = Instant::now();
    while run.status().domains[0].threads[0].cycles < cycles {
        run.poll(Duration::from_millis(5), &mut |_, _| ());
        assert!(begun.elapsed() < HANGS_AFTER, "the core does not run");
    }
}

/// Looks until the run ends. Returns how many looks that took while the core ran, and the longest
/// time between two.
fn end(run: &mut Run) -> (u32, Duration) {
    let begun = Instant::now();
    let (mut looks, mut last, mut longest) = (0, begun, Duration::ZERO);
    while run.poll(SELDOM, &mut |_, _| ()) {
        looks += u32::from(run.phase() == Phase::Running);
        (longest, last) = (longest.max(last.elapsed()), Instant::now());
        assert!(begun.elapsed() < SELDOM, "nothing wakes who waits for the run");
    }
    (looks, longest)
}

/// The caller of `poll` need not know how long a trace holds: here it holds one second, of six
/// seconds of cycles.
pub(crate) fn a_run_that_is_looked_at_seldom_loses_no_record() {
    let mut run = start("finish_at: 3000,");
    let (looks, longest) = end(&mut run);
    assert_eq!(run.outcome(), Outcome::Finished, "{:?}", run.faults());
    assert!(looks >= 6, "only {looks} looks");
    let lost = run.records_lost();
    assert!(lost == 0 || longest > HELD, "{lost} records lost, looked every {longest:?}");
}

pub(crate) fn cycles_are_counted_though_their_records_are_lost() {
    let mut run = start("finish_at: 1200,");
    until(&mut run, 1);
    // More than the trace holds.
    sleep(Duration::from_secs(4));
    let (mut read, mut totals) = (0, Totals::default());
    let control = ThreadId { domain: 0, thread: 0 };
    let mut each = |id, record: &sinew_core::trace::Record| {
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
    signal(Signal::STOP, run.processes()[0]);
    // Only the time limit wakes the supervisor here.
    end(&mut run);
    assert_eq!(run.outcome(), Outcome::Faulted);
    let stop = run.stop_status().expect("it has stopped");
    assert!(stop.reason.contains("ran no cycle for 2000 ms"), "{stop}");
    let (safe_us, rest_us) = (stop.safe_output_us.expect("seen"), stop.at_rest_us.expect("seen"));
    assert!(safe_us < rest_us && rest_us < 0, "{stop:?}");
    assert!(stop.times().starts_with("safe outputs already "), "{stop}");
    let domains: Vec<_> = stop.domains.iter().map(|domain| &*domain.domain).collect();
    assert_eq!(domains, ["plant"], "the controller holds no actuator");
}

/// Its last record obeys a command; nobody knows what the machine has done since then.
pub(crate) fn a_plant_that_is_gone_shows_no_safe_outputs() {
    // However late the controller is, it is obeyed.
    let killed = text("").replace("after: 2", "after: 1000");
    let exits = killed.replace("coast_cycles: 5", "exit_at: 50");
    for (how, text) in [("is killed", killed), ("exits", exits)] {
        let mut run = Run::start(request(&text)).expect("the run starts");
        if how == "is killed" {
            until(&mut run, 50);
            signal(Signal::KILL, run.processes()[1]);
        }
        end(&mut run);
        let stop = run.stop_status().expect("it has stopped");
        assert_eq!((stop.safe_output_us, stop.at_rest_us), (None, None), "it {how}: {stop:?}");
    }
}
