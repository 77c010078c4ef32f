//! The figures that follow from a recording, and that a gate that must fail does fail.

use super::*;

const MS: u64 = 1_000_000;

/// A machine with one axis that turns at 1 rad/s. From `safe` ms on it does not follow commands,
/// and from `still` ms on it stands behind its brake.
fn moments(safe: u64, still: u64, end: u64) -> Vec<Moment> {
    let moment = |ms: u64| Moment {
        start_ns: ms * MS,
        skipped: 0,
        is_commanded: ms < safe,
        follows: ms < safe,
        braked: vec![ms >= still],
        position_rad: vec![1e-3 * ms.min(still) as f64],
        velocity_rad_per_s: vec![if ms < still { 1.0 } else { 0.0 }],
    };
    (0..end).map(moment).collect()
}

#[test]
fn a_stop_is_measured_from_the_fault() {
    let stop = Stop::of(&moments(13, 40, 50), 10 * MS, false);
    assert_eq!((stop.safe_ns, stop.safe_cycles), (Some(3 * MS), Some(3)));
    assert_eq!(stop.still_ns, Some(30 * MS));
    assert!((stop.moved_rad[0] - 0.030).abs() < 1e-9, "{stop:?}");
    assert!(stop.failures(Rule::Guard(1)).is_empty());
}

#[test]
fn a_safe_output_after_the_bar_fails_and_says_both_figures() {
    let failures = Stop::of(&moments(13, 40, 50), 10 * MS, false).failures(Rule::AtOnce);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("after 3 cycles"), "{failures:?}");
    assert!(failures[0].contains("the bar is 2"), "{failures:?}");
}

#[test]
fn a_machine_that_never_stops_fails() {
    let failures = Stop::of(&moments(100, 100, 50), 10 * MS, false).failures(Rule::Guard(50));
    assert!(failures.iter().any(|why| why.contains("never got its safe output")), "{failures:?}");
    assert!(failures.iter().any(|why| why.contains("still moved")), "{failures:?}");
}

#[test]
fn a_machine_that_held_no_command_proves_nothing() {
    assert!(!Stop::of(&moments(5, 8, 50), 10 * MS, false).followed);
    assert!(Stop::of(&moments(12, 18, 50), 10 * MS, false).followed);
}

#[test]
fn a_command_that_comes_back_is_not_safe() {
    let mut moments = moments(13, 40, 50);
    moments[20].follows = true;
    assert_eq!(Stop::of(&moments, 10 * MS, false).safe_ns, Some(11 * MS));
    assert_eq!(Stop::of(&moments, 10 * MS, true).safe_ns, Some(3 * MS));
    moments[49].follows = true;
    assert_eq!(Stop::of(&moments, 10 * MS, true).safe_ns, None);
    let failures = Stop::of(&moments, 10 * MS, false).failures(Rule::Guard(50));
    assert!(failures.iter().any(|why| why.contains("never got its safe output")), "{failures:?}");
}

#[test]
fn periods_that_the_kernel_lost_are_no_cycles_of_the_machine() {
    let mut moments = moments(13, 40, 50);
    moments[12].skipped = 20;
    let stop = Stop::of(&moments, 10 * MS, false);
    assert_eq!((stop.safe_cycles, stop.held_up_periods), (Some(3), 20));
}

#[test]
fn a_brake_that_opens_again_is_not_still() {
    let mut moments = moments(13, 40, 50);
    moments[45].braked = vec![false];
    assert_eq!(Stop::of(&moments, 10 * MS, false).still_ns, Some(36 * MS));
    moments[49].braked = vec![false];
    assert_eq!(Stop::of(&moments, 10 * MS, false).still_ns, None);
}
