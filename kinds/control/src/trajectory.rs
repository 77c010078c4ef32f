//! Kind `trajectory`: the motion of one axis, limited in velocity, acceleration and jerk.
//!
//! The profiles are Ruckig's, which are optimal in time from any state to rest (Berscheid and
//! Kröger, *Jerk-limited Real-time Trajectory Generation with Arbitrary Target States*, 2021).

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal, Unit};
use sinew_core::{
    Cycle, Fault, Flag, Fresh, Io, Message, Node, NodeEntry, Parameters, Real, fault,
};

mod motion;

use motion::{AxisLimits, AxisMotion};

const TARGET: usize = 0;
const POSITION: usize = 1;
const VELOCITY: usize = 2;
const ACCELERATION: usize = 3;
const ARRIVED: usize = 4;

const LEFT: usize = 0;
const REFUSED: usize = 1;

const PLACE: ParameterType = ParameterType::Number { min: -1e9, max: 1e9 };
const LIMIT: ParameterType = ParameterType::Number { min: 1e-6, max: 1e9 };
const PLACES: ParameterType =
    ParameterType::Numbers { count_min: 0, count_max: 64, min: -1e9, max: 1e9 };
const DAY_NS: u64 = 86_400_000_000_000;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "trajectory",
    runs_in: RunsIn::Realtime,
    doc: "Moves an axis as fast as velocity_max, acceleration_max and jerk_max allow: to 'target', \
          which may be another in any cycle, or from one of 'waypoints' to the next, at rest in \
          each for 'dwell'. It begins at 'initial', at rest, and stays there until it is told. \
          While the graph stops it brakes within its limits, but the stop does not wait for it: \
          actuators get their safe values. A lost period makes the motion longer by so much: it \
          does not jump. A target more than 1e7 times as far away as about the way in which it \
          gets fast is counted and not taken: it goes on to the one before. Limits set while it \
          runs hold from where it is: it brakes to a lower velocity_max, and where a lower \
          acceleration_max or jerk_max leaves it too little way it goes past, and returns. More \
          than ten times past them it brakes first, as hard as it did if that is more, and counts \
          as if its target were too far away. The ways are those of L. Berscheid and T. Kroeger, \
          Jerk-limited Real-time Trajectory Generation with Arbitrary Target States (2021), by \
          rsruckig.",
    ports: &[
        Port::input("target", "Position to move to; only without 'waypoints'.", Real::TYPE)
            .optional()
            .unit(Unit::As("position")),
        Port::output("position", "Where it is.", Real::TYPE).unit(Unit::Parameter("unit")),
        Port::output("velocity", "In the unit of position, per s.", Real::TYPE).optional(),
        Port::output("acceleration", "In the unit of position, per s2.", Real::TYPE).optional(),
        Port::output("arrived", "Whether it rests at its target.", Flag::TYPE).optional(),
    ],
    parameters: &[
        Parameter::new("waypoints", PLACES)
            .or("[]")
            .doc("Positions to move to, one after the other, in the unit of position."),
        Parameter::new("dwell", ParameterType::Duration { min_ns: 0, max_ns: DAY_NS })
            .or("0s")
            .doc("Rest in each waypoint, in whole periods."),
        Parameter::new("repeat", ParameterType::Bool)
            .or("false")
            .doc("Whether the first waypoint follows the last; else it stays there."),
        Parameter::new("finish", ParameterType::Bool)
            .or("false")
            .doc("Whether the run ends, in order, after the rest in the last waypoint."),
        Parameter::new("velocity_max", LIMIT)
            .such_as("2")
            .doc("In the unit of position, per s.")
            .tunable(),
        Parameter::new("acceleration_max", LIMIT)
            .such_as("20")
            .doc("In the unit of position, per s2.")
            .tunable(),
        Parameter::new("jerk_max", LIMIT)
            .such_as("400")
            .doc("In the unit of position, per s3.")
            .tunable(),
        Parameter::new("initial", PLACE).or("0").doc("Position at the start."),
        Parameter::new("unit", ParameterType::Text).or("").doc("Unit of position."),
    ],
    signals: &[
        Signal::new("left_s", "Time until it rests, if nothing changes.", "s", 1),
        Signal::new("refused", "Cycles with the target too far away, or it too fast.", "", 1),
    ],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let limits = limits(parameters);
    let AxisLimits { velocity, acceleration, jerk } = limits;
    let initial = parameters.number("initial");
    let waypoints = parameters.numbers("waypoints");
    let [repeats, finishes] = ["repeat", "finish"].map(|name| parameters.bool(name));
    let has_target = parameters.messages.iter().any(|(port, _)| *port == TARGET);
    if has_target && !waypoints.is_empty() {
        let count = waypoints.len();
        return Err(fault!(
            "port 'target' is linked, and there are {count} waypoints; leave one out"
        ));
    }
    if finishes && (repeats || waypoints.is_empty()) {
        return Err(fault!(
            "finish is true, with {} waypoints and repeat: {repeats}; give one or more, and \
             repeat: false",
            waypoints.len()
        ));
    }
    // Tries every way that the axis will go, so that none of them can fail while it runs.
    let last = waypoints.last().copied().filter(|_| repeats);
    let froms = [initial].into_iter().chain(waypoints.iter().copied());
    let ways = froms.zip(waypoints.iter().copied());
    for (from, to) in ways.chain(last.zip(waypoints.first().copied())) {
        if !AxisMotion::new(limits, from).go(to) {
            return Err(fault!(
                "no profile from {from} to {to} with {velocity}, {acceleration} and {jerk}; change \
                 velocity_max, acceleration_max or jerk_max"
            ));
        }
    }
    Ok(Box::new(Trajectory {
        motion: AxisMotion::new(limits, initial),
        tour: Tour {
            waypoints: waypoints.to_vec(),
            at: 0,
            dwell_ns: parameters.duration("dwell").as_nanos() as u64,
            rested_ns: 0,
            repeats,
            finishes,
        },
        refused: 0,
    }))
}

fn limits(parameters: &Parameters<'_>) -> AxisLimits {
    let [velocity, acceleration, jerk] =
        ["velocity_max", "acceleration_max", "jerk_max"].map(|name| parameters.number(name));
    AxisLimits { velocity, acceleration, jerk }
}

struct Trajectory {
    motion: AxisMotion,
    tour: Tour,
    refused: u64,
}

impl Node for Trajectory {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let is_found = match self.goal(io, cycle) {
            _ if cycle.stopping => self.motion.brake(),
            Some(goal) => self.motion.go(goal),
            None => true,
        };
        self.refused += u64::from(!is_found);
        self.motion.advance(cycle.period_s());
        let [position, velocity, acceleration] = self.motion.state();
        io.write::<Real>(POSITION).value = position;
        io.write::<Real>(VELOCITY).value = velocity;
        io.write::<Real>(ACCELERATION).value = acceleration;
        io.write::<Flag>(ARRIVED).value = (is_found && self.motion.is_there()).into();
        io.signal(LEFT)[0] = self.motion.left_s();
        io.signal(REFUSED)[0] = self.refused as f64;
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        let AxisLimits { velocity, acceleration, jerk } = limits(parameters);
        match self.motion.limit(AxisLimits { velocity, acceleration, jerk }) {
            true => Ok(()),
            false => Err(fault!(
                "no profile from where it is with {velocity}, {acceleration} and {jerk}; change \
                 velocity_max, acceleration_max or jerk_max less"
            )),
        }
    }
}

impl Trajectory {
    /// The place where the axis shall rest, if one was given.
    fn goal(&mut self, io: &Io<'_>, cycle: &Cycle) -> Option<f64> {
        if self.tour.waypoints.is_empty() {
            return (io.fresh(TARGET) != Fresh::None).then(|| io.read::<Real>(TARGET).value);
        }
        if self.motion.is_there() && !cycle.stopping {
            self.tour.rest(cycle);
        }
        Some(self.tour.waypoints[self.tour.at])
    }
}

/// The tour of the waypoints.
struct Tour {
    waypoints: Vec<f64>,
    /// Index of the waypoint to which it goes, or in which it rests.
    at: usize,
    dwell_ns: u64,
    /// Time spent in this waypoint so far.
    rested_ns: u64,
    repeats: bool,
    finishes: bool,
}

impl Tour {
    /// Counts a cycle in a waypoint. After the dwell time it goes on to the next one.
    fn rest(&mut self, cycle: &Cycle) {
        if self.rested_ns < self.dwell_ns {
            self.rested_ns += cycle.period_ns;
        } else if self.at + 1 < self.waypoints.len() {
            (self.at, self.rested_ns) = (self.at + 1, 0);
        } else if self.repeats {
            (self.at, self.rested_ns) = (0, 0);
        } else if self.finishes {
            cycle.finish();
        }
    }
}

#[cfg(test)]
mod tests;
