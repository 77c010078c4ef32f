//! Every link of the scenario carries messages in both directions between threads; for links
//! between processes see `tests/scenarios/far.rs`.

use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_figures::Interval;
use sinew_spec::plan::{Transport, Wait};

use super::super::case::{all, copied};
use super::*;
use crate::harness::{Delayed, round_trips, stream, time};

#[test]
fn every_link_between_threads_carries_messages_to_and_fro() {
    let clock = Clock::calibrate();
    let threads = |case: &Case| {
        case.placement == Placement::Threads
            && (case.wait != Wait::Spin || Cpus::of_this_process().are_two())
            // Messages larger than a kernel's buffer leave in parts, however a side waits.
            && ([8, 8192].contains(&case.bytes) || case.bytes == 1 << 20 && case.wait == Wait::Park)
    };
    for case in all().into_iter().filter(threads) {
        for &what in case.measures() {
            let found = with_link(&case, what, Cpus::of_this_process(), |ends| {
                if what == What::PerMessage {
                    stream(ends, clock, 5)?;
                }
                let mut trips = 0;
                round_trips(ends, clock, 3, |_| trips += 1)?;
                Ok(trips)
            });
            assert_eq!(found, Ok(3), "{}", case.row().id());
        }
    }
}

/// The ratio of the medians of two contenders, in rounds that run in one order or the other.
fn ratio(delay: Duration, swapped: bool) -> Interval {
    let case = Case { wait: Wait::Park, ..copied(Transport::InProcess) };
    let median = |delay| {
        let measure = |ends: &mut Ends| {
            let mut side = Delayed { side: ends, delay };
            time(&mut side, What::RoundTrip, 1, Clock::calibrate(), Duration::from_millis(2))
        };
        let found =
            with_link(&case, What::RoundTrip, Cpus::of_this_process(), measure).expect("both live");
        found.median_ns
    };
    let round = |_| match swapped {
        false => {
            let first = median(Duration::ZERO);
            median(delay) / first
        }
        true => median(delay) / median(Duration::ZERO),
    };
    let ratios: Vec<_> = (0..8).map(round).collect();
    Interval::of(&ratios).expect("eight")
}

#[test]
fn the_order_of_contenders_does_not_change_the_verdict() {
    for swapped in [false, true] {
        // Two equal contenders: at most a twentieth apart, whatever else the machine does.
        let same = ratio(Duration::ZERO, swapped);
        assert!(same.low < 1.05 && same.high > 0.95, "{same:?}, swapped: {swapped}");
        let slower = ratio(Duration::from_millis(1), swapped);
        assert!(slower.differs_from_one() && slower.low > 1.0, "{slower:?}, swapped: {swapped}");
    }
}
