//! The master against drives that obey, and some that do not.

use std::path::Path;

use sinew_core::NodeFixture;

use super::*;
use crate::testing::fixture;

const COUNTS_PER_TURN: f64 = 104_857_600.0;

/// A master, and a bus that gives the answers that the test sets.
struct Bus {
    master: NodeFixture,
    states: [DriveState; DRIVES],
    controls: [u16; DRIVES],
    returned: Option<Frame>,
    target_rad: f64,
    sequence: u64,
}

impl Bus {
    fn new(given: &[(&str, &str)]) -> Bus {
        Bus {
            master: fixture(&NODE, Path::new("."), given).expect("makes"),
            states: [DriveState::SwitchOnDisabled; DRIVES],
            controls: [0; DRIVES],
            returned: None,
            target_rad: 0.0,
            sequence: 0,
        }
    }

    /// One cycle. The drives stand at 0 counts and obey.
    fn cycle(&mut self) -> Result<Frame, Fault> {
        self.sequence += 1;
        let targets = JointTargets {
            position_rad: [self.target_rad; DRIVES],
            sequence: self.sequence,
            ..JointTargets::default()
        };
        self.master.put(IN, &targets);
        if let Some(frame) = self.returned.take() {
            self.master.put(FRAME, &frame);
        }
        self.master.update()?;
        let sent = self.master.get::<Frame>(OUT).expect("sends every cycle");
        let mut frame = sent;
        let mut view = CheckedFrame::new(frame.payload_mut()).expect("ours");
        for drive in 0..DRIVES {
            let status = self.states[drive].status() | 0x0210;
            view.answer(drive, &DriveFeedback { status, mode: 8, ..DriveFeedback::default() });
            let control = view.command(drive).control;
            self.states[drive] = self.states[drive].commanded(control, self.controls[drive]);
            self.controls[drive] = control;
        }
        self.returned = Some(frame);
        Ok(sent)
    }

    /// Changes a byte of the frame that is on its way back, if one is.
    fn spoil(&mut self, at: usize, byte: u8) {
        self.returned.iter_mut().for_each(|frame| frame.bytes[at] = byte);
    }

    fn feedback(&self) -> AxisFeedback {
        self.master.get::<AxisFeedback>(FEEDBACK).expect("reports every cycle")
    }

    fn operational() -> Bus {
        let mut bus = Bus::new(&[]);
        for _ in 0..10 {
            bus.cycle().expect("comes up");
        }
        let flags = FEEDBACK_VALID | FEEDBACK_OPERATIONAL;
        assert_eq!(bus.feedback().flags, flags);
        bus
    }

    fn fault(&mut self) -> String {
        self.cycle().expect_err("must fault").text().to_owned()
    }
}

fn command(mut frame: Frame, drive: usize) -> Command {
    CheckedFrame::new(frame.payload_mut()).expect("ours").command(drive)
}

#[test]
fn drives_are_led_up_state_by_state() {
    let mut bus = Bus::new(&[]);
    let mut controls = Vec::new();
    for _ in 0..8 {
        let control = command(bus.cycle().expect("runs"), 3).control;
        if controls.last() != Some(&control) {
            controls.push(control);
        }
    }
    assert_eq!(controls, [0x00, 0x06, 0x07, 0x0F]);
    assert_eq!(bus.states, [DriveState::OperationEnabled; DRIVES]);
}

#[test]
fn a_drive_in_fault_is_reset_on_the_way_up() {
    let mut bus = Bus::new(&[]);
    bus.states[2] = DriveState::Fault;
    for _ in 0..15 {
        bus.cycle().expect("comes up");
    }
    assert_eq!(bus.states, [DriveState::OperationEnabled; DRIVES]);
}

#[test]
fn targets_are_followed_in_counts_once_all_drives_are_enabled() {
    let mut bus = Bus::new(&[]);
    bus.target_rad = 0.001;
    let mut followed = false;
    for _ in 0..10 {
        let frame = bus.cycle().expect("runs");
        let operational = bus.feedback().flags & FEEDBACK_OPERATIONAL != 0;
        let expected = if operational { (0.001 / TAU * COUNTS_PER_TURN).round() as i32 } else { 0 };
        assert_eq!(command(frame, 0).target_counts, expected);
        followed |= operational;
    }
    assert!(followed);
}

#[test]
fn feedback_names_the_target_that_it_answers() {
    let mut bus = Bus::operational();
    // Sent in cycle n, on the bus in n, back in n + 1: it answers the frame of n - 1.
    bus.cycle().expect("runs");
    assert_eq!(bus.feedback().sequence, bus.sequence - 2);
}

#[test]
fn while_the_graph_stops_feedback_names_no_target_of_long_ago() {
    let mut bus = Bus::operational();
    for _ in 0..400 {
        bus.cycle().expect("runs");
    }
    bus.master.cycle.stopping = true;
    let last = bus.sequence;
    for cycle in 0..600 {
        bus.cycle().expect("goes on");
        let feedback = bus.feedback();
        assert_eq!(feedback.flags, FEEDBACK_VALID, "the drives follow nothing any more");
        // The first two frames that come back are from before the stop.
        let expected = if cycle < 2 { last - 1 + cycle } else { 0 };
        assert_eq!(feedback.sequence, expected, "cycle {cycle}");
    }
}

#[test]
fn a_first_target_far_from_the_joint_is_a_fault() {
    let mut bus = Bus::new(&[]);
    bus.target_rad = 0.1;
    let fault = (0..10).find_map(|_| bus.cycle().err()).expect("must fault");
    assert_eq!(
        fault.text(),
        "joint 1 stands at 0.000 deg, its first target is 5.730 deg, handover_deg is \
         0.100; set home_deg to where the arm stands"
    );
}

#[test]
fn a_wrong_working_counter_is_a_fault_with_both_figures() {
    let mut bus = Bus::operational();
    bus.spoil(134, 15);
    assert_eq!(
        bus.fault(),
        "working counter 15, expected 18 (3 per drive): a drive did not answer; check bus and \
         drives"
    );
}

#[test]
fn frames_that_stay_away_are_borne_and_then_a_fault() {
    let mut bus = Bus::operational();
    for _ in 0..5 {
        bus.returned = None;
        bus.cycle().expect("is borne");
        assert_eq!(bus.feedback().flags, FEEDBACK_OPERATIONAL, "nothing was heard");
    }
    bus.returned = None;
    assert_eq!(
        bus.fault(),
        "6 cycles without a frame from the drives, lost_frames_max is 5; raise it or \
         look at the drives' process"
    );
}

#[test]
fn frames_that_are_not_ours_are_a_fault_in_the_end_that_says_why() {
    let mut bus = Bus::operational();
    let fault = (0..10).find_map(|_| {
        bus.spoil(12, 0x08);
        bus.cycle().err()
    });
    assert_eq!(
        fault.expect("must fault").text(),
        "6 cycles without a good frame from the drives, lost_frames_max is 5; the last \
         bad one had EtherType 08a4, expected 88a4"
    );
}

#[test]
fn a_frame_with_a_strange_index_counts_as_lost() {
    let mut bus = Bus::operational();
    let lost = bus.master.signal(LOST)[0];
    if let Some(frame) = &mut bus.returned {
        frame.bytes[17] = frame.bytes[17].wrapping_add(1);
    }
    bus.cycle().expect("is borne");
    assert_eq!(bus.master.signal(LOST)[0], lost + 1.0);
    bus.spoil(12, 0);
    bus.cycle().expect("is borne");
    assert_eq!(bus.master.signal(LOST)[0], lost + 2.0);
}

#[test]
fn a_drive_that_leaves_operation_is_named() {
    for (state, words) in [
        (DriveState::Fault, "drive 4 left 'operation enabled' for 'fault'"),
        (DriveState::SwitchOnDisabled, "drive 4 left 'operation enabled' for 'switch on dis"),
    ] {
        let mut bus = Bus::operational();
        bus.states[3] = state;
        bus.cycle().expect("is not known yet");
        let fault = bus.fault();
        assert!(fault.starts_with(words), "{fault}");
        assert!(fault.contains("control word 0x000f"), "{fault}");
    }
}

#[test]
fn a_status_word_without_meaning_is_a_fault() {
    let mut bus = Bus::operational();
    bus.spoil(26 + 42, 0x01);
    assert_eq!(bus.fault(), "drive 1: status word 0x0201 is not a state of CiA 402");
}

#[test]
fn drives_that_do_not_come_up_are_named() {
    let mut bus = Bus::new(&[("startup_ms", "20")]);
    let fault = (0..30)
        .find_map(|_| {
            bus.states[1] = DriveState::SwitchOnDisabled;
            bus.cycle().err()
        })
        .expect("must fault");
    assert!(fault.text().starts_with("drive 2 is in 'switch on disabled'"), "{fault}");
    let mut silent = Bus::new(&[("startup_ms", "20")]);
    let fault = (0..30).find_map(|_| {
        silent.returned = None;
        silent.cycle().err()
    });
    let fault = fault.expect("must fault");
    assert!(fault.text().starts_with("no frame came back"), "{fault}");
}

#[test]
fn on_the_way_down_drives_are_stopped_and_nothing_faults() {
    let mut bus = Bus::operational();
    bus.master.cycle.stopping = true;
    assert!(!bus.master.at_rest());
    let frame = bus.cycle().expect("goes on");
    assert_eq!(command(frame, 0).control, 0x0002);
    bus.states = [DriveState::SwitchOnDisabled; DRIVES];
    bus.cycle().expect("goes on");
    let frame = bus.cycle().expect("goes on");
    assert_eq!(command(frame, 0).control, 0x0000);
    assert!(bus.master.at_rest());
    for _ in 0..20 {
        bus.returned = None;
        bus.cycle().expect("nobody needs to answer any more");
    }
}
