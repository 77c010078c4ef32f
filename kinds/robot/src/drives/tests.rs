//! The drives on their bus: frames, watchdog, rest.

use std::path::Path;

use sinew_core::NodeFixture;

use super::*;
use crate::testing::fixture;

fn drives(given: &[(&str, &str)]) -> NodeFixture {
    fixture(&NODE, Path::new("."), given).expect("makes")
}

fn frame(index: u8, control: u16, target_counts: &[i32; DRIVES]) -> Frame {
    let commands = target_counts.map(|target_counts| Command { control, mode: 8, target_counts });
    let mut frame = Frame { length: FRAME_BYTES as u32, ..Frame::default() };
    frame::encode(&mut frame.bytes, index, &commands);
    frame
}

/// Positions of the drives at home.
fn home_counts() -> [i32; DRIVES] {
    [0, 0, 0, 0, 104_857_600 / 4, 0]
}

fn enabled(given: &[(&str, &str)]) -> NodeFixture {
    let mut drives = drives(given);
    for control in [0, control::SHUTDOWN, control::SWITCH_ON, control::ENABLE_OPERATION] {
        drives.put(IN, &frame(0, control, &home_counts()));
        drives.update().expect("takes a frame");
    }
    assert_eq!(drives.signal(STATE), [f64::from(DriveState::OperationEnabled as u8); DRIVES]);
    assert_eq!(drives.signal(BRAKE), [0.0; DRIVES]);
    assert!(!drives.at_rest());
    drives
}

/// A cycle in which each axis is told to move on by `step`.
fn go_on(drives: &mut NodeFixture, index: u8, targets: &mut [i32; DRIVES], step: i32) {
    targets.iter_mut().for_each(|target| *target += step);
    drives.put(IN, &frame(index, control::ENABLE_OPERATION, targets));
    drives.update().expect("runs");
}

#[test]
fn a_frame_comes_back_with_all_reports_and_the_full_counter() {
    let mut drives = enabled(&[]);
    drives.put(IN, &frame(77, control::ENABLE_OPERATION, &home_counts()));
    drives.update().expect("runs");
    let mut returned = drives.get::<Frame>(OUT).expect("sends it on");
    let view = CheckedFrame::new(returned.payload_mut()).expect("ours");
    assert_eq!((view.index(), view.working_counter()), (77, 18));
    assert_eq!(view.report(4).position_counts, 104_857_600 / 4);
    assert_eq!(DriveState::from_status(view.report(4).status), Some(DriveState::OperationEnabled));
}

#[test]
fn a_frame_that_is_not_ours_passes_unchanged_and_is_counted() {
    let mut drives = drives(&[]);
    let mut foreign = frame(1, control::SHUTDOWN, &home_counts());
    foreign.bytes[12] = 0x08;
    drives.put(IN, &foreign);
    drives.update().expect("runs");
    assert_eq!(drives.get::<Frame>(OUT), Some(foreign));
    assert_eq!(drives.signal(IGNORED), [1.0]);
    assert_eq!(drives.signal(WATCHDOG), [0.0], "it feeds no watchdog");
}

#[test]
fn without_frames_the_watchdog_closes_the_brakes() {
    let mut drives = enabled(&[("watchdog_ms", "20")]);
    for _ in 0..20 {
        drives.update().expect("runs");
    }
    assert_eq!(drives.signal(WATCHDOG), [1.0]);
    assert_eq!(drives.signal(BRAKE), [0.0; DRIVES]);
    drives.update().expect("runs");
    assert_eq!(drives.signal(WATCHDOG), [2.0]);
    assert_eq!(drives.signal(BRAKE), [1.0; DRIVES]);
    assert_eq!(drives.signal(STATE), [f64::from(DriveState::SwitchOnDisabled as u8); DRIVES]);
    assert!(drives.at_rest());
}

#[test]
fn lost_periods_count_for_the_watchdog() {
    let mut drives = enabled(&[]);
    drives.cycle.skipped = 1_000_000;
    drives.update().expect("runs");
    assert_eq!(drives.signal(WATCHDOG), [2.0]);
    assert!(drives.at_rest());
}

/// Moves all axes by the same step each cycle, and lets the drives miss some of the cycles.
fn worst_error_beside_frames_unseen(unseen: u8, lost: u64) -> f64 {
    let mut drives = enabled(&[]);
    let mut targets = home_counts();
    let mut worst: f64 = 0.0;
    for index in 1..=240u8 {
        let before = targets;
        let speed = (i32::from(index) * 50).min(5_000);
        targets.iter_mut().for_each(|target| *target += speed);
        if (120..120 + unseen).contains(&index) {
            continue;
        }
        drives.cycle.skipped = if index == 120 + unseen { lost } else { 0 };
        drives.put(IN, &frame(index, control::ENABLE_OPERATION, &targets));
        drives.update().expect("runs");
        let mut returned = drives.get::<Frame>(OUT).expect("answers");
        let view = CheckedFrame::new(returned.payload_mut()).expect("ours");
        for (drive, before) in before.iter().enumerate() {
            worst = worst.max(f64::from(view.report(drive).position_counts - before).abs());
        }
        assert_eq!(drives.signal(STATE), [f64::from(DriveState::OperationEnabled as u8); DRIVES]);
    }
    worst
}

#[test]
fn frames_that_were_sent_while_the_drives_did_not_run_are_made_up_for() {
    let always = worst_error_beside_frames_unseen(0, 0);
    for unseen in [1, 2, 6, 30, 100] {
        // The runtime may or may not have counted the periods as lost.
        for lost in [0, u64::from(unseen) / 2, u64::from(unseen)] {
            let worst = worst_error_beside_frames_unseen(unseen, lost);
            assert!(worst < always + 50.0, "{unseen} {lost}: {worst} counts, without {always}");
        }
    }
}

/// A datagram's index wraps around. If an index is behind the last one, no frame is missing before
/// it.
#[test]
fn a_frame_of_an_earlier_index_makes_no_time_pass() {
    let mut drives = enabled(&[]);
    let mut targets = home_counts();
    for index in 1..=100 {
        go_on(&mut drives, index, &mut targets, 5_000);
    }
    let before = drives.signal(POSITION)[0];
    go_on(&mut drives, 99, &mut targets, 5_000);
    let counts = (drives.signal(POSITION)[0] - before) * f64::from(104_857_600) / TAU;
    assert!((counts - 5_000.0).abs() < 500.0, "{counts} counts in one period");
    let speed = drives.signal(VELOCITY)[0] * f64::from(104_857_600) / TAU * 1e-3;
    assert!((speed - 5_000.0).abs() < 500.0, "{speed} counts a period");
}

#[test]
fn targets_that_were_never_sent_are_not_made_up() {
    let mut drives = enabled(&[]);
    let mut targets = home_counts();
    for index in 1..=200 {
        go_on(&mut drives, index, &mut targets, 2_000);
    }
    // The controller is gone for a while: the axes continue for one period, and then hold that
    // target.
    (0..40).for_each(|_| drives.update().expect("runs"));
    let held = drives.signal(POSITION)[0] * f64::from(104_857_600) / TAU;
    let last = f64::from(targets[0] + 2_000);
    assert!((held - last).abs() < 50.0, "{held} counts, told {}", targets[0]);
    assert_eq!(drives.signal(BRAKE), [0.0; DRIVES]);
}

#[test]
fn safe_values_do_not_feed_the_watchdog() {
    let mut drives = enabled(&[("watchdog_ms", "5")]);
    for _ in 0..6 {
        drives.put_safe(IN, &frame(0, control::ENABLE_OPERATION, &home_counts()));
        drives.update().expect("runs");
        assert_eq!(drives.get::<Frame>(OUT), None, "no frame was on the wire");
    }
    assert_eq!(drives.signal(WATCHDOG), [2.0]);
}

#[test]
fn a_frame_after_the_watchdog_is_obeyed_again() {
    let mut drives = enabled(&[("watchdog_ms", "5")]);
    (0..10).for_each(|_| drives.update().expect("runs"));
    drives.put(IN, &frame(0, control::SHUTDOWN, &home_counts()));
    drives.update().expect("runs");
    assert_eq!(drives.signal(WATCHDOG), [1.0]);
    assert_eq!(drives.signal(STATE)[0], f64::from(DriveState::ReadyToSwitchOn as u8));
}

#[test]
fn the_safe_values_are_frames_with_their_control_words() {
    let ports = &INFO.ports[IN];
    assert_eq!(ports.safe.len(), SAFE.len());
    for (index, control) in [(0, 0x0002), (1, 0x0000)] {
        let mut bytes = vec![0; size_of::<Frame>()];
        (NODE.safe.expect("an actuator"))(IN, index, &mut bytes);
        let mut frame: Frame = zerocopy::FromBytes::read_from_bytes(&bytes).expect("a frame");
        let view = CheckedFrame::new(frame.payload_mut()).expect("ours");
        for drive in 0..DRIVES {
            assert_eq!(view.command(drive).control, control);
        }
    }
    assert_eq!((ports.safe[0].name, ports.safe[1].name), ("quick_stop", "disable"));
}

#[test]
fn the_safe_value_quick_stop_brings_the_machine_to_rest() {
    let mut drives = enabled(&[]);
    let mut targets = home_counts();
    for _ in 0..200 {
        go_on(&mut drives, 0, &mut targets, 5_000);
    }
    assert!(drives.signal(VELOCITY).iter().all(|speed| *speed > 0.2), "under way");
    let mut bytes = vec![0; size_of::<Frame>()];
    safe(IN, 0, &mut bytes);
    let stop: Frame = zerocopy::FromBytes::read_from_bytes(&bytes).expect("a frame");
    for _ in 0..100 {
        drives.put_safe(IN, &stop);
        drives.update().expect("runs");
    }
    assert!(drives.at_rest(), "{:?}", drives.signal(VELOCITY));
    assert_eq!(drives.signal(BRAKE), [1.0; DRIVES]);
}
