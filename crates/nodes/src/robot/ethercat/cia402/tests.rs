//! The state machine against the tables of CiA 402-2.

use super::State::{
    Fault, FaultReactionActive, NotReadyToSwitchOn, OperationEnabled, QuickStopActive,
    ReadyToSwitchOn, SwitchOnDisabled, SwitchedOn,
};
use super::*;

#[test]
fn transitions_are_those_of_the_standard() {
    let table = [
        // (transition, from, control word, to)
        (2, SwitchOnDisabled, 0x06, ReadyToSwitchOn),
        (3, ReadyToSwitchOn, 0x07, SwitchedOn),
        (4, SwitchedOn, 0x0F, OperationEnabled),
        (5, OperationEnabled, 0x07, SwitchedOn),
        (6, SwitchedOn, 0x06, ReadyToSwitchOn),
        (7, ReadyToSwitchOn, 0x00, SwitchOnDisabled),
        (7, ReadyToSwitchOn, 0x02, SwitchOnDisabled),
        (8, OperationEnabled, 0x06, ReadyToSwitchOn),
        (9, OperationEnabled, 0x00, SwitchOnDisabled),
        (10, SwitchedOn, 0x00, SwitchOnDisabled),
        (10, SwitchedOn, 0x02, SwitchOnDisabled),
        (11, OperationEnabled, 0x02, QuickStopActive),
        (12, QuickStopActive, 0x00, SwitchOnDisabled),
        (15, Fault, 0x80, SwitchOnDisabled),
        (16, QuickStopActive, 0x0F, OperationEnabled),
    ];
    for (number, from, control, to) in table {
        assert_eq!(from.commanded(control, 0), to, "transition {number}");
        let manufacturer = control | 0xFF00;
        assert_eq!(from.commanded(manufacturer, 0), to, "bits 8 to 15 mean nothing");
    }
}

#[test]
fn other_words_change_nothing() {
    let table = [
        (SwitchOnDisabled, 0x07),
        (SwitchOnDisabled, 0x0F),
        (SwitchOnDisabled, 0x02),
        (ReadyToSwitchOn, 0x06),
        (SwitchedOn, 0x07),
        (OperationEnabled, 0x0F),
        (OperationEnabled, 0x80),
        (QuickStopActive, 0x02),
        (QuickStopActive, 0x06),
        (FaultReactionActive, 0x00),
        (FaultReactionActive, 0x80),
        (Fault, 0x00),
        (Fault, 0x0F),
    ];
    for (state, control) in table {
        assert_eq!(state.commanded(control, 0), state, "{state:?} {control:#06x}");
    }
}

#[test]
fn a_fault_is_reset_by_an_edge_only() {
    assert_eq!(Fault.commanded(0x80, 0x80), Fault);
    assert_eq!(Fault.commanded(0x80, 0x0F), SwitchOnDisabled);
}

#[test]
fn status_words_tell_the_state() {
    for state in State::ALL {
        let others = STATUS_VOLTAGE | STATUS_REMOTE | STATUS_FOLLOWS;
        assert_eq!(State::from_status(state.status() | others), Some(state));
        assert_eq!(State::LABELS[state as usize], state.label());
    }
    // Bit 5 may be anything where the standard says so.
    assert_eq!(State::from_status(0x28), Some(Fault));
    assert_eq!(State::from_status(0x60), Some(SwitchOnDisabled));
    assert_eq!(State::from_status(0x01), None);
}

#[test]
fn every_state_leads_up_to_operation_enabled() {
    for start in State::ALL {
        let (mut state, mut before) = (start, 0x80);
        let mut words = 0;
        while state != OperationEnabled {
            let control = state.step_up(before);
            state = match state {
                FaultReactionActive => Fault, // the drive goes on by itself
                _ => state.commanded(control, before),
            };
            before = control;
            words += 1;
            assert!(words < 10, "{start:?} hangs in {state:?}");
        }
    }
    assert_eq!(NotReadyToSwitchOn.commanded(0, 0), SwitchOnDisabled);
}
