//! Kind `drives`: the simulated machine: six drives on a bus, each with motor, encoder and brake.

mod axis;

use std::f64::consts::TAU;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, SafeValue, Signal};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters};
use sinew_ethercat::DRIVES;
use sinew_ethercat::cia402::{CYCLIC_SYNCHRONOUS_POSITION, DriveState, control};
use sinew_ethercat::frame::{self, CheckedFrame, Command, FRAME_BYTES};
use zerocopy::{FromZeros, IntoBytes};

use self::axis::{Axis, Physics};
use super::arm;
use super::ethercat_master::COUNTS_PER_TURN;
use super::messages::Frame;

const IN: usize = 0;
const OUT: usize = 1;

const STATE: usize = 0;
const BRAKE: usize = 1;
const POSITION: usize = 2;
const VELOCITY: usize = 3;
const TORQUE: usize = 4;
const WATCHDOG: usize = 5;
const IGNORED: usize = 6;

/// Most periods that are made up for after a pause. A longer pause ends with closed brakes anyway,
/// and the work of a cycle stays bounded.
const MADE_UP_MAX: u64 = 1000;

/// An index that is ahead by more than half of all 256 counts as behind, as it does for the master:
/// no frame is missing before it.
const INDEX_AHEAD_MAX: u64 = 127;

/// Control words of the safe values, in the order of the port's table.
const SAFE: [u16; 2] = [control::QUICK_STOP, control::DISABLE_VOLTAGE];

const fn per_axis(
    name: &'static str,
    doc: &'static str,
    unit: &'static str,
    min: f64,
    default: &'static str,
) -> Parameter {
    let ty = ParameterType::Numbers { count_min: DRIVES, count_max: DRIVES, min, max: 1e6 };
    Parameter::new(name, ty).or(default).unit(unit).doc(doc)
}

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "drives",
    runs_in: RunsIn::Realtime,
    doc: "Six simulated servo drives with motors, encoders and brakes: the machine. Reads and \
          answers EtherCAT frames as slaves do, runs the CiA 402 state machine, follows targets in \
          cyclic synchronous position with limited torque, and closes the brakes whenever a motor \
          is not energised, above all when no frame came for watchdog_ms. Inertia, friction and \
          torque are assumptions (makers do not publish them); gravity and coupling between the \
          axes are not modelled.",
    ports: &[
        Port {
            safe: &[
                SafeValue {
                    name: "quick_stop",
                    doc: "Control word 0002h: down a ramp to standstill, then the brakes close.",
                },
                SafeValue {
                    name: "disable",
                    doc: "Control word 0000h: torque off, brakes close at once.",
                },
            ],
            ..Port::input("in", "The master's frame.", Frame::TYPE)
        },
        Port {
            optional: true,
            ..Port::output("out", "The frame, with what the drives filled in.", Frame::TYPE)
        },
    ],
    parameters: &[
        arm::HOME_DEG,
        COUNTS_PER_TURN,
        Parameter::new("watchdog_ms", ParameterType::Number { min: 1.0, max: 6553.5 })
            .or("100")
            .unit("ms")
            .doc(
                "Sync manager watchdog: time without a frame after which all drives are disabled.",
            ),
        per_axis(
            "inertia_kg_m2",
            "Inertia at each joint.",
            "kg m2",
            1e-6,
            "[1.2, 1.2, 0.5, 0.05, 0.05, 0.01]",
        ),
        per_axis(
            "friction_n_m_s_per_rad",
            "Viscous friction at each joint.",
            "N m s/rad",
            0.0,
            "[4, 4, 2, 0.4, 0.4, 0.1]",
        ),
        per_axis(
            "torque_max_n_m",
            "Greatest torque at each joint.",
            "N m",
            1e-3,
            "[90, 90, 50, 12, 12, 6]",
        ),
        per_axis(
            "brake_torque_n_m",
            "Torque of each brake at its joint.",
            "N m",
            1e-3,
            "[60, 60, 30, 8, 8, 4]",
        ),
        Parameter::new("quick_stop_rad_per_s2", ParameterType::Number { min: 0.1, max: 1e4 })
            .or("20")
            .unit("rad/s2")
            .doc("Deceleration of the quick stop ramp (object 6085h)."),
        Parameter::new("following_deg", ParameterType::Number { min: 0.001, max: 360.0 })
            .or("2")
            .unit("deg")
            .doc("A drive faults when its axis is further from its target (object 6065h)."),
    ],
    signals: &[
        Signal {
            labels: DriveState::LABELS,
            ..Signal::new("state", "CiA 402 state of each drive.", "", DRIVES)
        },
        Signal {
            labels: &["open", "closed"],
            ..Signal::new("brake", "Brake of each axis.", "", DRIVES)
        },
        Signal::new("position_rad", "Position of each joint.", "rad", DRIVES),
        Signal::new("velocity_rad_per_s", "Speed of each joint.", "rad/s", DRIVES),
        Signal::new("torque_n_m", "Torque of each motor at its joint.", "N m", DRIVES),
        Signal {
            labels: &["waiting", "running", "expired"],
            ..Signal::new("watchdog", "Sync manager watchdog.", "", 1)
        },
        Signal::new("frames_ignored", "Frames that were not valid, in all.", "frames", 1),
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: Some(safe) };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let home = arm::joints_rad(parameters.numbers("home_deg"));
    let axes = std::array::from_fn(|i| {
        let of = |name: &str| parameters.numbers(name)[i];
        let physics = Physics {
            inertia_kg_m2: of("inertia_kg_m2"),
            friction_n_m_s_per_rad: of("friction_n_m_s_per_rad"),
            torque_max_n_m: of("torque_max_n_m"),
            brake_torque_n_m: of("brake_torque_n_m"),
            quick_stop_rad_per_s2: parameters.number("quick_stop_rad_per_s2"),
            following_rad: parameters.number("following_deg").to_radians(),
            counts_per_rad: parameters.integer("counts_per_turn") as f64 / TAU,
        };
        Axis::new(physics, home[i])
    });
    let watchdog_ns = (parameters.number("watchdog_ms") * 1e6) as u64;
    let (watchdog, last_index, passed) = (Watchdog::Waiting, None, 0);
    Ok(Box::new(Drives { axes, watchdog_ns, watchdog, last_index, passed, ignored: 0 }))
}

fn safe(_port: usize, safe: usize, message: &mut [u8]) {
    let command =
        Command { control: SAFE[safe], mode: CYCLIC_SYNCHRONOUS_POSITION, target_counts: 0 };
    let mut frame = Frame::new_zeroed();
    frame.length = FRAME_BYTES as u32;
    frame::encode(&mut frame.bytes, 0, &[command; DRIVES]);
    message.copy_from_slice(frame.as_bytes());
}

/// The sync manager's watchdog (ETG.1000.4): runs from the first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watchdog {
    Waiting,
    /// Time since the last frame.
    Running(u64),
    Expired,
}

struct Drives {
    axes: [Axis; DRIVES],
    watchdog_ns: u64,
    watchdog: Watchdog,
    /// Index of the last datagram.
    last_index: Option<u8>,
    /// Periods since the last datagram, up to the update before.
    passed: u64,
    ignored: u64,
}

impl Node for Drives {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let fresh = io.fresh(IN);
        let mut frame = *io.read::<Frame>(IN);
        let genuine = fresh == Fresh::New;
        let unseen = if genuine { self.unseen(&mut frame) } else { 0 };
        self.pass_time(1 + cycle.skipped.saturating_sub(unseen), cycle);
        if genuine || fresh == Fresh::Safe {
            self.process(&mut frame, genuine, unseen, cycle);
        }
        if genuine {
            *io.write::<Frame>(OUT) = frame;
        }
        self.show(io);
        Ok(())
    }

    fn at_rest(&self) -> bool {
        self.axes.iter().all(Axis::at_rest)
    }
}

impl Drives {
    /// Lets periods pass in which no frame came: the axes move, the watchdog runs.
    fn pass_time(&mut self, periods: u64, cycle: &Cycle) {
        self.passed = self.passed.saturating_add(periods);
        let made_up = periods.min(MADE_UP_MAX);
        for _ in 0..made_up {
            self.watch(cycle.period_ns);
            self.axes.iter_mut().for_each(|axis| axis.pass(cycle.period_s()));
        }
        self.watch(cycle.period_ns.saturating_mul(periods - made_up));
    }

    fn watch(&mut self, passed_ns: u64) {
        if let Watchdog::Running(since_ns) = &mut self.watchdog {
            *since_ns = since_ns.saturating_add(passed_ns);
            if *since_ns > self.watchdog_ns {
                self.watchdog = Watchdog::Expired;
                self.axes.iter_mut().for_each(Axis::disable);
            }
        }
    }

    /// The number of frames before this one that this process missed because it was held up, by the
    /// datagrams' indices. They were on the wire, and a real machine would have obeyed them
    /// meanwhile.
    fn unseen(&mut self, frame: &mut Frame) -> u64 {
        let Ok(view) = CheckedFrame::new(frame.payload_mut()) else { return 0 };
        let sent = self.last_index.map_or(1, |last| u64::from(view.index().wrapping_sub(last)));
        self.last_index = Some(view.index());
        if sent > INDEX_AHEAD_MAX {
            return 0;
        }
        sent.saturating_sub(self.passed.saturating_add(1))
    }

    /// Passes a frame through the drives: each takes its command and leaves its report. A frame
    /// that the master never sent (the port's safe value) is obeyed, but does not feed the
    /// watchdog.
    fn process(&mut self, frame: &mut Frame, genuine: bool, unseen: u64, cycle: &Cycle) {
        let Ok(mut view) = CheckedFrame::new(frame.payload_mut()) else {
            self.ignored += 1;
            return;
        };
        if genuine {
            (self.watchdog, self.passed) = (Watchdog::Running(0), 0);
        }
        for (drive, axis) in self.axes.iter_mut().enumerate() {
            let command = view.command(drive);
            axis.make_up(&command, unseen, cycle.period_s());
            view.answer(drive, &axis.report());
            axis.command(&command);
        }
    }

    fn show(&self, io: &mut Io<'_>) {
        for (i, axis) in self.axes.iter().enumerate() {
            io.signal(STATE)[i] = f64::from(axis.state as u8);
            io.signal(BRAKE)[i] = f64::from(u8::from(axis.brake_closed()));
            io.signal(POSITION)[i] = axis.position_rad;
            io.signal(VELOCITY)[i] = axis.velocity_rad_per_s;
            io.signal(TORQUE)[i] = axis.torque_n_m;
        }
        io.signal(WATCHDOG)[0] = match self.watchdog {
            Watchdog::Waiting => 0.0,
            Watchdog::Running(_) => 1.0,
            Watchdog::Expired => 2.0,
        };
        io.signal(IGNORED)[0] = self.ignored as f64;
    }
}

#[cfg(test)]
mod tests;
