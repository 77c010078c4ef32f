//! The power drive system state machine of CiA 402-2 (IEC 61800-7-201).
//!
//! What the standard leaves to the drive: a quick stop ends in `switch on disabled` (object 605Ah:
//! 2), so transition 16 does not exist; a fault reaction is the quick stop ramp (605Eh: 2);
//! shutdown and disable operation take the torque off at once (605Bh, 605Ch: 0).

/// Mode of operation 8: cyclic synchronous position.
pub const CYCLIC_SYNCHRONOUS_POSITION: i8 = 8;

/// Status word bit 4: power is on.
pub const STATUS_VOLTAGE: u16 = 1 << 4;
/// Status word bit 9: the control word is obeyed.
pub const STATUS_REMOTE: u16 = 1 << 9;
/// Status word bit 12 in mode 8: the drive follows the target.
pub const STATUS_FOLLOWS: u16 = 1 << 12;

/// Control words that the master sends.
pub mod control {
    /// No voltage: to `switch on disabled`.
    pub const DISABLE_VOLTAGE: u16 = 0x0000;
    /// Brake along the quick stop ramp.
    pub const QUICK_STOP: u16 = 0x0002;
    /// To `ready to switch on`.
    pub const SHUTDOWN: u16 = 0x0006;
    /// To `switched on`.
    pub const SWITCH_ON: u16 = 0x0007;
    /// To `operation enabled`.
    pub const ENABLE_OPERATION: u16 = 0x000F;
    /// Its rising edge leaves `fault`.
    pub const FAULT_RESET: u16 = 0x0080;
}

/// A state, numbered as in [`DriveState::LABELS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveState {
    /// Booting.
    NotReadyToSwitchOn,
    /// No voltage allowed.
    SwitchOnDisabled,
    /// Voltage allowed.
    ReadyToSwitchOn,
    /// Power stage on, no torque.
    SwitchedOn,
    /// Follows targets.
    OperationEnabled,
    /// Brakes along a ramp because of a command.
    QuickStopActive,
    /// Brakes along a ramp because of a fault.
    FaultReactionActive,
    /// No torque until reset.
    Fault,
}

/// An event in the drive itself, without a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveEvent {
    /// Its self-test is done.
    Booted,
    /// It found a fault.
    Faulted,
    /// The ramp of a quick stop or of a fault reaction has ended.
    Stopped,
}

impl DriveState {
    /// Every state.
    pub const ALL: [DriveState; 8] = [
        DriveState::NotReadyToSwitchOn,
        DriveState::SwitchOnDisabled,
        DriveState::ReadyToSwitchOn,
        DriveState::SwitchedOn,
        DriveState::OperationEnabled,
        DriveState::QuickStopActive,
        DriveState::FaultReactionActive,
        DriveState::Fault,
    ];

    /// Their names in the standard.
    pub const LABELS: &'static [&'static str] = &[
        "not ready to switch on",
        "switch on disabled",
        "ready to switch on",
        "switched on",
        "operation enabled",
        "quick stop active",
        "fault reaction active",
        "fault",
    ];

    /// The name.
    pub fn label(self) -> &'static str {
        DriveState::LABELS[self as usize]
    }

    /// The status word's bits 0 to 3, 5 and 6.
    pub fn status(self) -> u16 {
        match self {
            DriveState::NotReadyToSwitchOn => 0x00,
            DriveState::SwitchOnDisabled => 0x40,
            DriveState::ReadyToSwitchOn => 0x21,
            DriveState::SwitchedOn => 0x23,
            DriveState::OperationEnabled => 0x27,
            DriveState::QuickStopActive => 0x07,
            DriveState::FaultReactionActive => 0x0F,
            DriveState::Fault => 0x08,
        }
    }

    /// The state in a status word, if the word has one.
    pub fn from_status(status: u16) -> Option<DriveState> {
        // Bit 5 (quick stop) has no meaning in these four states, so the standard's table masks it.
        DriveState::ALL.into_iter().find(|state| {
            let mask = match state {
                DriveState::NotReadyToSwitchOn
                | DriveState::SwitchOnDisabled
                | DriveState::FaultReactionActive
                | DriveState::Fault => 0x4F,
                _ => 0x6F,
            };
            status & mask == state.status() & mask
        })
    }

    /// Whether the motor makes torque and the brake is open.
    pub fn is_energised(self) -> bool {
        matches!(
            self,
            DriveState::OperationEnabled
                | DriveState::QuickStopActive
                | DriveState::FaultReactionActive
        )
    }

    /// The state after a control word (transitions 2 to 12 and 15). `before` is the word before it:
    /// fault reset works on a rising edge.
    pub fn commanded(self, control: u16, before: u16) -> DriveState {
        let shutdown = control & 0x87 == 0x06;
        // In `operation enabled` this is the command to disable operation.
        let switch_on = control & 0x8F == 0x07;
        let enable = control & 0x8F == 0x0F;
        let disable_voltage = control & 0x82 == 0x00;
        let quick_stop = control & 0x86 == 0x02;
        let reset = control & !before & control::FAULT_RESET != 0;
        match self {
            DriveState::Fault if reset => DriveState::SwitchOnDisabled,
            DriveState::NotReadyToSwitchOn
            | DriveState::Fault
            | DriveState::FaultReactionActive => self,
            _ if disable_voltage => DriveState::SwitchOnDisabled,
            DriveState::SwitchOnDisabled if shutdown => DriveState::ReadyToSwitchOn,
            DriveState::ReadyToSwitchOn | DriveState::SwitchedOn if quick_stop => {
                DriveState::SwitchOnDisabled
            }
            DriveState::ReadyToSwitchOn if switch_on => DriveState::SwitchedOn,
            // Transition 3, then 4: the power stage needs no time to switch on.
            DriveState::ReadyToSwitchOn | DriveState::SwitchedOn if enable => {
                DriveState::OperationEnabled
            }
            DriveState::SwitchedOn | DriveState::OperationEnabled if shutdown => {
                DriveState::ReadyToSwitchOn
            }
            DriveState::OperationEnabled if switch_on => DriveState::SwitchedOn,
            DriveState::OperationEnabled if quick_stop => DriveState::QuickStopActive,
            _ => self,
        }
    }

    /// The state after an event without a command (transitions 1 and 12 to 14).
    pub fn after(self, event: DriveEvent) -> DriveState {
        match (self, event) {
            (DriveState::NotReadyToSwitchOn, DriveEvent::Booted) => DriveState::SwitchOnDisabled,
            (DriveState::QuickStopActive, DriveEvent::Stopped) => DriveState::SwitchOnDisabled,
            (DriveState::FaultReactionActive, DriveEvent::Stopped) => DriveState::Fault,
            (DriveState::Fault, DriveEvent::Faulted) => DriveState::Fault,
            (_, DriveEvent::Faulted) => DriveState::FaultReactionActive,
            _ => self,
        }
    }

    /// The control word that leads a step towards `operation enabled`. `before` is the last word
    /// sent: a fault reset needs an edge.
    pub fn step_up(self, before: u16) -> u16 {
        match self {
            DriveState::NotReadyToSwitchOn
            | DriveState::QuickStopActive
            | DriveState::FaultReactionActive => control::DISABLE_VOLTAGE,
            DriveState::Fault if before == control::FAULT_RESET => control::DISABLE_VOLTAGE,
            DriveState::Fault => control::FAULT_RESET,
            DriveState::SwitchOnDisabled => control::SHUTDOWN,
            DriveState::ReadyToSwitchOn => control::SWITCH_ON,
            DriveState::SwitchedOn | DriveState::OperationEnabled => control::ENABLE_OPERATION,
        }
    }
}

#[cfg(test)]
mod tests;
