//! The state machine against the tables of the standard, written down here as data: IEC 61800-7-201
//! (CiA 402-2), "Power drive system", transitions 0 to 16, command coding, status word coding.

use super::DriveState::{
    Fault, FaultReactionActive, NotReadyToSwitchOn, OperationEnabled, QuickStopActive,
    ReadyToSwitchOn, SwitchOnDisabled, SwitchedOn,
};
use super::*;

/// Commands: bits 7, 3, 2, 1, 0 of the control word (`x`: any; `^`: a rising edge).
const COMMANDS: [(&str, &str); 7] = [
    ("shutdown", "0x110"),
    ("switch on", "00111"),
    ("disable voltage", "0xx0x"),
    ("quick stop", "0x01x"),
    ("disable operation", "00111"),
    ("enable operation", "01111"),
    ("fault reset", "^xxxx"),
];

/// The cause of a transition: a command, or an event in the drive itself.
#[derive(Clone, Copy, Debug)]
enum Cause {
    Command(&'static str),
    Event(DriveEvent),
}
use Cause::{Command, Event as Own};

/// The transitions. 0 leads into the first state. 12 and 16 depend on the quick stop option code
/// (605Ah): with 1 to 4 the drive goes on to `switch on disabled`, with 5 to 8 it stays and may be
/// enabled again. This drive has 2, so it has no transition 16.
const TRANSITIONS: [(u8, DriveState, Cause, DriveState); 19] = [
    (1, NotReadyToSwitchOn, Own(DriveEvent::Booted), SwitchOnDisabled),
    (2, SwitchOnDisabled, Command("shutdown"), ReadyToSwitchOn),
    (3, ReadyToSwitchOn, Command("switch on"), SwitchedOn),
    (4, SwitchedOn, Command("enable operation"), OperationEnabled),
    (5, OperationEnabled, Command("disable operation"), SwitchedOn),
    (6, SwitchedOn, Command("shutdown"), ReadyToSwitchOn),
    (7, ReadyToSwitchOn, Command("disable voltage"), SwitchOnDisabled),
    (7, ReadyToSwitchOn, Command("quick stop"), SwitchOnDisabled),
    (8, OperationEnabled, Command("shutdown"), ReadyToSwitchOn),
    (9, OperationEnabled, Command("disable voltage"), SwitchOnDisabled),
    (10, SwitchedOn, Command("disable voltage"), SwitchOnDisabled),
    (10, SwitchedOn, Command("quick stop"), SwitchOnDisabled),
    (11, OperationEnabled, Command("quick stop"), QuickStopActive),
    (12, QuickStopActive, Command("disable voltage"), SwitchOnDisabled),
    (12, QuickStopActive, Own(DriveEvent::Stopped), SwitchOnDisabled),
    (14, FaultReactionActive, Own(DriveEvent::Stopped), Fault),
    (15, Fault, Command("fault reset"), SwitchOnDisabled),
    // "Switch on" with bit 3 set: transition 3, and from there 4 by itself.
    (3, ReadyToSwitchOn, Command("enable operation"), OperationEnabled),
    // Not a transition: a drive in a fault that finds another fault stays there.
    (13, Fault, Own(DriveEvent::Faulted), Fault),
];

/// Status words, bits 6 to 0 with the mask `x`.
const STATUS: [(DriveState, &str); 8] = [
    (NotReadyToSwitchOn, "0xx0000"),
    (SwitchOnDisabled, "1xx0000"),
    (ReadyToSwitchOn, "01x0001"),
    (SwitchedOn, "01x0011"),
    (OperationEnabled, "01x0111"),
    (QuickStopActive, "00x0111"),
    (FaultReactionActive, "0xx1111"),
    (Fault, "0xx1000"),
];

/// The control words of the master, with their names in the standard.
const WORDS: [(u16, &str); 6] = [
    (control::DISABLE_VOLTAGE, "disable voltage"),
    (control::QUICK_STOP, "quick stop"),
    (control::SHUTDOWN, "shutdown"),
    (control::SWITCH_ON, "switch on"),
    (control::ENABLE_OPERATION, "enable operation"),
    (control::FAULT_RESET, "fault reset"),
];

/// Whether bits fit the pattern; `^` is a one that was zero in `before`.
fn fits(pattern: &str, bits: &[u16], word: u16, before: u16) -> bool {
    pattern.bytes().zip(bits).all(|(sign, &bit)| {
        let [now, then] = [word, before].map(|word| word >> bit & 1 == 1);
        match sign {
            b'0' => !now,
            b'1' => now,
            b'^' => now && !then,
            _ => true,
        }
    })
}

fn is_command(name: &str, word: u16, before: u16) -> bool {
    let pattern = COMMANDS.iter().find(|row| row.0 == name).expect("a command").1;
    fits(pattern, &[7, 3, 2, 1, 0], word, before)
}

fn status_fits(pattern: &str, word: u16) -> bool {
    fits(pattern, &[6, 5, 4, 3, 2, 1, 0], word, 0)
}

#[test]
fn every_control_word_in_every_state_does_what_the_table_says() {
    for state in DriveState::ALL {
        for (word, before) in (0..=u16::MAX).flat_map(|word| [(word, 0), (word, 0xFFFF)]) {
            let row = TRANSITIONS.iter().find(|(_, from, cause, _)| match cause {
                Command(name) => *from == state && is_command(name, word, before),
                Own(_) => false,
            });
            let expected = row.map_or(state, |row| row.3);
            let found = state.commanded(word, before);
            assert_eq!(found, expected, "{state:?} {word:#06x} after {before:#06x}: {row:?}");
        }
    }
}

#[test]
fn every_event_in_every_state_does_what_the_table_says() {
    for state in DriveState::ALL {
        for event in [DriveEvent::Booted, DriveEvent::Faulted, DriveEvent::Stopped] {
            let row = TRANSITIONS.iter().find(|(_, from, cause, _)| match cause {
                Own(other) => (*from, *other) == (state, event),
                Command(_) => false,
            });
            // 13 leads here from every other state.
            let otherwise = if event == DriveEvent::Faulted { FaultReactionActive } else { state };
            assert_eq!(
                state.after(event),
                row.map_or(otherwise, |row| row.3),
                "{state:?} {event:?}"
            );
        }
    }
}

#[test]
fn every_status_word_is_read_as_the_table_says() {
    for word in 0..=u16::MAX {
        let mut rows = STATUS.iter().filter(|(_, pattern)| status_fits(pattern, word));
        let (row, other) = (rows.next(), rows.next());
        assert!(other.is_none(), "{word:#06x} is two states");
        assert_eq!(DriveState::from_status(word), row.map(|row| row.0), "{word:#06x}");
    }
}

#[test]
fn a_drive_says_its_state_in_the_words_of_the_table() {
    for (state, pattern) in STATUS {
        for others in [0, STATUS_VOLTAGE | STATUS_REMOTE | STATUS_FOLLOWS] {
            assert!(status_fits(pattern, state.status() | others), "{state:?}");
        }
        assert_eq!(DriveState::LABELS[state as usize], state.label());
    }
}

#[test]
fn the_master_sends_the_commands_that_it_means() {
    for (word, name) in WORDS {
        assert!(is_command(name, word, 0), "{word:#06x} is no '{name}'");
    }
}

#[test]
fn the_master_leads_every_state_up_by_transitions_of_the_table() {
    for start in DriveState::ALL {
        // If the word before already has the reset bit, an edge is needed first.
        for first in [control::DISABLE_VOLTAGE, control::FAULT_RESET, control::ENABLE_OPERATION] {
            let (mut state, mut before, mut words) = (start, first, 0);
            while state != OperationEnabled {
                let control = state.step_up(before);
                state = match state {
                    NotReadyToSwitchOn => state.after(DriveEvent::Booted),
                    FaultReactionActive => state.after(DriveEvent::Stopped),
                    _ => state.commanded(control, before),
                };
                before = control;
                words += 1;
                assert!(words < 10, "{start:?} hangs in {state:?}");
            }
        }
    }
}
