//! Latencies of links, from made-up records.

use sinew_core::trace::Past;
use sinew_spec::plan::Link;

use super::*;
use crate::stats::fixture::{self, CONTROL, PLANT};

/// The plan of the fixture with a link between its nodes; the link releases the reader.
fn plan(change: impl Fn(&mut Link)) -> Plan {
    let mut plan = fixture::plan();
    plan.links.push(fixture::link(0, 1));
    change(&mut plan.links[0]);
    plan
}

/// A record whose only node ran from `begin` to `end`.
fn record(plan: &Plan, id: ThreadId, number: u64, begin: u64, end: u64) -> Record {
    let mut record = Record::of(plan, id.nodes(plan));
    let signals = vec![0.0; record.signals().len()];
    record.restore(&Past { number, execution_ticks: vec![0], signals, ..Past::default() });
    record.executed(0, begin, end);
    record
}

/// Each step of the counter is a nanosecond.
fn clock() -> Clock {
    Clock::from_rate(1.0)
}

/// The result for these cycles: thread, number, begin, end.
fn seen(plan: &Plan, cycles: &[(ThreadId, u64, u64, u64)]) -> (u64, Option<u64>) {
    let mut links = Links::new(plan);
    for &(id, number, begin, end) in cycles {
        links.take(id, &record(plan, id, number, begin, end), clock());
    }
    let times = &links.of(0).expect("both ends are in the core").latency;
    (times.n(), times.max())
}

#[test]
fn a_read_takes_the_newest_message_before_it_whoever_is_read_first() {
    let plan = plan(|_| {});
    let writer = [(CONTROL, 0, 0, 100), (CONTROL, 1, 1000, 1100), (CONTROL, 2, 2000, 2100)];
    let reader = [(PLANT, 0, 107, 150), (PLANT, 1, 1105, 1150)];
    let both = [&writer[..], &reader[..]].concat();
    assert_eq!(seen(&plan, &both), (2, Some(7)));
    let both = [&reader[..], &writer[..]].concat();
    assert_eq!(seen(&plan, &both), (2, Some(7)));
}

#[test]
fn a_message_is_taken_once_and_one_that_was_overtaken_not_at_all() {
    let plan = plan(|link| link.delivery = Delivery::Latest);
    let writer = [(CONTROL, 0, 0, 100), (CONTROL, 1, 200, 300), (CONTROL, 2, 900, 1000)];
    let reader = [(PLANT, 0, 310, 320), (PLANT, 1, 400, 410)];
    assert_eq!(seen(&plan, &[&writer[..], &reader[..]].concat()), (1, Some(10)));
}

#[test]
fn what_stands_around_a_lost_record_is_not_matched() {
    let plan = plan(|_| {});
    let cycles = [
        (CONTROL, 0, 0, 100),
        // Cycle 1 was lost: the read at 1105 must not be matched with the message of cycle 0.
        (PLANT, 1, 1105, 1150),
        (CONTROL, 2, 2000, 2100),
        (PLANT, 2, 2103, 2150),
        (CONTROL, 3, 3000, 3100),
    ];
    assert_eq!(seen(&plan, &cycles), (1, Some(3)));
}

#[test]
fn a_record_of_nonsense_is_no_panic() {
    let plan = plan(|_| {});
    let cycles = [
        (PLANT, u64::MAX, u64::MAX, 0),
        (CONTROL, u64::MAX, 5, u64::MAX),
        (CONTROL, 0, 7, 3),
        (PLANT, 0, 1, 0),
        (CONTROL, 1, 0, u64::MAX),
    ];
    seen(&plan, &cycles);
}

#[test]
fn a_queue_that_does_not_release_its_reader_may_lag() {
    let lags = |change: &dyn Fn(&mut Link), by_timer: bool| {
        let mut plan = plan(|link| change(link));
        if by_timer && let sinew_spec::plan::Role::Realtime(role) = &mut plan.domains[1].role {
            role.threads[0].release = Release::Timer;
        }
        Links::new(&plan).of(0).expect("in the core").may_lag
    };
    assert!(!lags(&|_| {}, false));
    assert!(lags(&|_| {}, true));
    assert!(!lags(&|link| link.delivery = Delivery::Latest, true));
    assert!(!lags(&|link| link.fused = true, true));
}
