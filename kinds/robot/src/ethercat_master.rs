//! Kind `ethercat_master`: sends one frame per cycle, starts the drives and supervises them.

use std::f64::consts::TAU;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters, fault};
use sinew_ethercat::DRIVES;
use sinew_ethercat::cia402::{CYCLIC_SYNCHRONOUS_POSITION, DriveState, control};
use sinew_ethercat::frame::{
    self, BadFrame, CheckedFrame, Command, DriveFeedback, FRAME_BYTES, WORKING_COUNTER_EXPECTED,
};

use super::messages::{AxisFeedback, FEEDBACK_OPERATIONAL, FEEDBACK_VALID, Frame, JointTargets};

const IN: usize = 0;
const FRAME: usize = 1;
const OUT: usize = 2;
const FEEDBACK: usize = 3;

const COUNTER: usize = 0;
const LOST: usize = 1;
const ROUND_TRIP: usize = 2;

/// Parameter: resolution of the encoders, the same for master and drives.
pub(super) const COUNTS_PER_TURN: Parameter = Parameter::new(
    "counts_per_turn",
    ParameterType::Integer { min: 1000, max: 1 << 28 },
)
.or("104857600")
.unit("counts")
.doc(
    "Encoder counts per turn of a joint; the default is 20 bit per turn of the motor behind a gear \
     of 100. The same for ethercat_master and drives.",
);

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "ethercat_master",
    runs_in: RunsIn::Realtime,
    doc: "Sends one EtherCAT frame per cycle: a logical read-write datagram over the CiA 402 \
          process images of six drives, in cyclic synchronous position mode. \
          Brings the drives to 'operation enabled', then lets them follow the targets. The frame \
          that comes back is that of a cycle before. A wrong working counter, frames that stay \
          away, and a drive that leaves 'operation enabled' stop the graph.",
    ports: &[
        Port::input(
            "in",
            "Joint targets; not followed before all drives are enabled.",
            JointTargets::TYPE,
        ),
        Port::input("frame", "The frame as the drives sent it on.", Frame::TYPE),
        Port::output("out", "The frame to the drives.", Frame::TYPE),
        Port {
            optional: true,
            ..Port::output("feedback", "What the drives reported.", AxisFeedback::TYPE)
        },
    ],
    parameters: &[
        COUNTS_PER_TURN,
        Parameter::new("lost_frames_max", ParameterType::Integer { min: 0, max: 100 })
            .or("5")
            .unit("cycles")
            .doc("Cycles in a row without a frame from the drives that are tolerated."),
        Parameter::new("startup_ms", ParameterType::Number { min: 10.0, max: 60_000.0 })
            .or("5000")
            .unit("ms")
            .doc("Time in which all drives must reach 'operation enabled'."),
        Parameter::new("handover_deg", ParameterType::Number { min: 0.001, max: 10.0 })
            .or("0.1")
            .unit("deg")
            .doc("Greatest distance between target and joint when the drives begin to follow."),
    ],
    signals: &[
        Signal::new(
            "working_counter",
            "Of the last frame; 18 when all six drives answered.",
            "",
            1,
        ),
        Signal::new("frames_lost", "Cycles without a frame from the drives, in all.", "cycles", 1),
        Signal::new(
            "round_trip_cycles",
            "Cycles from sending a frame to getting it back.",
            "cycles",
            1,
        ),
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let period_ms = parameters.period_ns as f64 * 1e-6;
    Ok(Box::new(Master {
        counts_per_rad: parameters.integer("counts_per_turn") as f64 / TAU,
        lost_max: parameters.integer("lost_frames_max") as u64,
        startup_cycles: (parameters.number("startup_ms") / period_ms).ceil() as u64,
        handover_rad: parameters.number("handover_deg").to_radians(),
        index: 0,
        answered: None,
        sequence: 0,
        sequences: [0; 256],
        lost: 0,
        lost_total: 0,
        bad: None,
        reports: [DriveFeedback::default(); DRIVES],
        states: [DriveState::NotReadyToSwitchOn; DRIVES],
        controls: [control::DISABLE_VOLTAGE; DRIVES],
        targets_counts: [0; DRIVES],
        operational: false,
    }))
}

struct Master {
    counts_per_rad: f64,
    lost_max: u64,
    startup_cycles: u64,
    handover_rad: f64,
    /// Index of the next datagram.
    index: u8,
    /// Index of the last datagram that came back.
    answered: Option<u8>,
    /// Number of the targets that the drives shall follow; 0 while they follow none.
    sequence: u64,
    /// The same number for each datagram under way.
    sequences: [u64; 256],
    /// Cycles in a row without a frame.
    lost: u64,
    lost_total: u64,
    /// What was wrong with the last frame that came, if it was not one of ours.
    bad: Option<BadFrame>,
    reports: [DriveFeedback; DRIVES],
    states: [DriveState; DRIVES],
    controls: [u16; DRIVES],
    targets_counts: [i32; DRIVES],
    /// All drives have been enabled and follow the targets.
    operational: bool,
}

impl Node for Master {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let heard = self.receive(io, cycle)?;
        if cycle.stopping {
            (self.operational, self.sequence) = (false, 0);
        } else {
            self.supervise(cycle)?;
            self.take_targets(io, heard)?;
        }
        self.report(io, heard);
        self.send(io, cycle);
        Ok(())
    }

    fn at_rest(&self) -> bool {
        self.lost > self.lost_max || !self.states.iter().any(|state| state.is_energised())
    }
}

impl Master {
    /// Takes the frame that came back. Returns true if a frame answers one of ours.
    fn receive(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<bool, Fault> {
        let mut frame = *io.read::<Frame>(FRAME);
        let checked =
            (io.fresh(FRAME) == Fresh::New).then(|| CheckedFrame::new(frame.payload_mut()));
        let answers = |view: &CheckedFrame<'_>| {
            // Indices wrap around at 256: a frame older than half of that answers nothing.
            let age = self.index.wrapping_sub(view.index());
            Some(view.index()) != self.answered && (1..128).contains(&age)
        };
        let view = match checked {
            Some(Ok(view)) if answers(&view) => view,
            missing => {
                if let Some(Err(bad)) = missing {
                    self.bad = Some(bad);
                }
                self.lost += 1;
                self.lost_total += u64::from(self.answered.is_some());
                io.signal(LOST)[0] = self.lost_total as f64;
                return Ok(false);
            }
        };
        let counter = view.working_counter();
        io.signal(COUNTER)[0] = f64::from(counter);
        io.signal(ROUND_TRIP)[0] = f64::from(self.index.wrapping_sub(view.index()));
        if counter != WORKING_COUNTER_EXPECTED && !cycle.stopping {
            return Err(fault!(
                "working counter {counter}, expected {WORKING_COUNTER_EXPECTED} (3 per drive): a \
                 drive did not answer; check bus and drives"
            ));
        }
        for drive in 0..DRIVES {
            let report = view.report(drive);
            self.states[drive] = DriveState::from_status(report.status).ok_or_else(|| {
                fault!(
                    "drive {}: status word {:#06x} is not a state of CiA 402",
                    drive + 1,
                    report.status
                )
            })?;
            self.reports[drive] = report;
        }
        self.answered = Some(view.index());
        self.bad = None;
        self.lost = 0;
        Ok(true)
    }

    /// Faults on states that must not occur while the machine runs.
    fn supervise(&self, cycle: &Cycle) -> Result<(), Fault> {
        if !self.operational {
            let late = cycle.number >= self.startup_cycles;
            let drive = self.states.iter().position(|&state| state != DriveState::OperationEnabled);
            return match drive {
                _ if !late => Ok(()),
                _ if self.answered.is_none() => Err(fault!(
                    "no frame came back from the drives within startup_ms; link \
                     the drives' frame to port 'frame' or raise startup_ms"
                )),
                Some(drive) => Err(fault!(
                    "drive {} is in '{}' after startup_ms, expected 'operation \
                     enabled'; raise startup_ms or look at the drive",
                    drive + 1,
                    self.states[drive].label()
                )),
                None => Err(fault!("no joint targets within startup_ms; link port 'in'")),
            };
        }
        if self.lost > self.lost_max {
            let (lost, max) = (self.lost, self.lost_max);
            return Err(match self.bad {
                Some(bad) => fault!(
                    "{lost} cycles without a good frame from the drives, \
                     lost_frames_max is {max}; the last bad one had {bad}"
                ),
                None => fault!(
                    "{lost} cycles without a frame from the drives, \
                     lost_frames_max is {max}; raise it or look at the drives' process"
                ),
            });
        }
        match self.states.iter().position(|&state| state != DriveState::OperationEnabled) {
            None => Ok(()),
            Some(drive) => Err(fault!(
                "drive {} left 'operation enabled' for '{}' (status word {:#06x}, \
                 control word {:#06x})",
                drive + 1,
                self.states[drive].label(),
                self.reports[drive].status,
                self.controls[drive]
            )),
        }
    }

    /// Sets what the drives shall follow: the targets once all are enabled, their present positions
    /// before that.
    fn take_targets(&mut self, io: &Io<'_>, heard: bool) -> Result<(), Fault> {
        let targets = io.read::<JointTargets>(IN);
        let enabled = self.states.iter().all(|&state| state == DriveState::OperationEnabled);
        let begins = !self.operational && heard && enabled && io.fresh(IN) == Fresh::New;
        if begins {
            for (drive, &target_rad) in targets.position_rad.iter().enumerate() {
                let actual_rad = self.position_rad(drive);
                if (target_rad - actual_rad).abs() > self.handover_rad {
                    return Err(fault!(
                        "joint {} stands at {:.3} deg, its first target is {:.3} deg, \
                         handover_deg is {:.3}; set home_deg to where the arm stands",
                        drive + 1,
                        actual_rad.to_degrees(),
                        target_rad.to_degrees(),
                        self.handover_rad.to_degrees()
                    ));
                }
            }
            self.operational = true;
        }
        if self.operational {
            self.sequence = targets.sequence;
            let counts = |rad: f64| (rad * self.counts_per_rad).round() as i32;
            self.targets_counts = targets.position_rad.map(counts);
        } else {
            self.targets_counts = self.reports.map(|report| report.position_counts);
        }
        Ok(())
    }

    fn report(&self, io: &mut Io<'_>, heard: bool) {
        let feedback = io.write::<AxisFeedback>(FEEDBACK);
        feedback.flags = if heard { FEEDBACK_VALID } else { 0 };
        feedback.flags |= if self.operational { FEEDBACK_OPERATIONAL } else { 0 };
        let Some(answered) = self.answered.filter(|_| heard) else { return };
        for (drive, report) in self.reports.iter().enumerate() {
            feedback.position_rad[drive] = self.position_rad(drive);
            feedback.velocity_rad_per_s[drive] =
                f64::from(report.velocity_counts_per_s) / self.counts_per_rad;
            feedback.status[drive] = report.status;
        }
        // A drive takes its position when a frame arrives, so the position answers the frame
        // before.
        feedback.sequence = self.sequences[usize::from(answered.wrapping_sub(1))];
    }

    fn send(&mut self, io: &mut Io<'_>, cycle: &Cycle) {
        let commands = std::array::from_fn(|drive| {
            let state = self.states[drive];
            self.controls[drive] = match state {
                DriveState::OperationEnabled | DriveState::QuickStopActive if cycle.stopping => {
                    control::QUICK_STOP
                }
                _ if cycle.stopping => control::DISABLE_VOLTAGE,
                _ => state.step_up(self.controls[drive]),
            };
            Command {
                control: self.controls[drive],
                mode: CYCLIC_SYNCHRONOUS_POSITION,
                target_counts: self.targets_counts[drive],
            }
        });
        let out = io.write::<Frame>(OUT);
        out.length = FRAME_BYTES as u32;
        frame::encode(&mut out.bytes, self.index, &commands);
        self.sequences[usize::from(self.index)] = self.sequence;
        self.index = self.index.wrapping_add(1);
    }

    fn position_rad(&self, drive: usize) -> f64 {
        f64::from(self.reports[drive].position_counts) / self.counts_per_rad
    }
}

#[cfg(test)]
mod tests;
