//! The frame against bytes that were written by hand from the standard.

use std::string::ToString;

use super::*;

fn frame(index: u8, commands: &[Command; DRIVES]) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    encode(&mut frame, index, commands);
    frame
}

/// Six drives: 1 enabled with target 0x01020304, 2 with target -2, 3 to 6 at shutdown.
fn commands() -> [Command; DRIVES] {
    let shutdown = Command { control: 0x0006, mode: 8, target_counts: 0 };
    let mut commands = [shutdown; DRIVES];
    commands[0] = Command { control: 0x000F, mode: 8, target_counts: 0x0102_0304 };
    commands[1] = Command { control: 0x000F, mode: 8, target_counts: -2 };
    commands
}

#[rustfmt::skip]
const BY_HAND: [u8; 136] = [
    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, // destination: broadcast
    0x10, 0x10, 0x10, 0x10, 0x10, 0x10, // source: the master
    0x88, 0xA4,                         // EtherType, the only big-endian field
    0x78, 0x10,                         // length 120 = 0x078, reserved 0, type 1
    0x0C,                               // command 12: LRW
    0x2A,                               // index 42
    0x00, 0x00, 0x01, 0x00,             // logical address 0x00010000
    0x6C, 0x00,                         // data length 108 = 0x06C, not circulating, no more
    0x00, 0x00,                         // interrupt
    0x0F, 0x00, 0x08, 0x04, 0x03, 0x02, 0x01, // drive 1: control 000Fh, mode 8, target 0x01020304
    0x0F, 0x00, 0x08, 0xFE, 0xFF, 0xFF, 0xFF, // drive 2: control 000Fh, mode 8, target -2
    0x06, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, // drive 3: control 0006h, mode 8, target 0
    0x06, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, // drive 4
    0x06, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, // drive 5
    0x06, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, // drive 6
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    // drive 1: status, mode, position, velocity
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    // drive 2
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    // drive 3
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    // drive 4
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    // drive 5
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    // drive 6
    0x00, 0x00,                         // working counter
];

#[test]
fn the_masters_frame_is_as_written_by_hand() {
    assert_eq!(frame(42, &commands()), BY_HAND);
}

#[test]
fn an_answered_frame_is_as_written_by_hand() {
    let mut frame = frame(42, &commands());
    let report = DriveFeedback {
        status: 0x1637,
        mode: 8,
        position_counts: 0x0A0B_0C0D,
        velocity_counts_per_s: -1,
    };
    CheckedFrame::new(&mut frame).expect("ours").answer(1, &report);
    let mut expected = BY_HAND;
    expected[6] = 0x12; // the source's locally administered bit
    #[rustfmt::skip]
    expected[26 + 42 + 11..][..11].copy_from_slice(&[
        0x37, 0x16,             // status word 1637h
        0x08,                   // mode of operation display
        0x0D, 0x0C, 0x0B, 0x0A, // position actual value
        0xFF, 0xFF, 0xFF, 0xFF, // velocity actual value -1
    ]);
    expected[134] = 3; // one slave wrote (2) and read (1)
    assert_eq!(frame, expected);
    let view = CheckedFrame::new(&mut frame).expect("still ours");
    assert_eq!(view.report(1), report);
    assert_eq!(view.command(0), commands()[0]);
    assert_eq!((view.index(), view.working_counter()), (42, 3));
}

#[test]
fn frames_that_are_not_ours_say_why() {
    let check = |at: usize, byte: u8, expected: BadFrame, words: &str| {
        let mut frame = frame(0, &commands());
        frame[at] = byte;
        let bad = CheckedFrame::new(&mut frame).expect_err("changed");
        assert_eq!(bad, expected);
        assert_eq!(bad.to_string(), words);
    };
    check(12, 0x08, BadFrame::EtherType([8, 0xA4]), "EtherType 08a4, expected 88a4");
    check(15, 0x20, BadFrame::Header(0x2078), "header 0x2078, expected 0x1078");
    check(16, 10, BadFrame::Command(10), "command 10, expected 12 (LRW)");
    let address = "logical address 0x00010001, expected 0x00010000";
    check(18, 1, BadFrame::Address(0x0001_0001), address);
    check(22, 0x6B, BadFrame::DataLength(0x6B), "data length 107, expected 108");
    let mut longer = [0; 184];
    longer[..FRAME_BYTES].copy_from_slice(&frame(0, &commands()));
    for length in [0, 60, 135, 137, 184] {
        let bad = CheckedFrame::new(&mut longer[..length]).expect_err("another length");
        assert_eq!(bad, BadFrame::Length(length));
    }
}
