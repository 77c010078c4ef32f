//! Kind `twist_limiter`: drives by commands of an untrusted source, such as another host or a node
//! of ROS, within its limits.

use rs_opw_kinematics::glam::DVec3;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters};

use super::limited::{Limited, Limits};
use super::messages::TwistTarget;

const IN: usize = 0;
const OUT: usize = 1;

const BEHIND: usize = 0;
const TURN_BEHIND: usize = 1;
const BRAKES: usize = 2;
const REFUSED: usize = 3;

/// How far rounding may take a velocity past its limit, as a part of the limit.
const ROUNDING: f64 = 1e-9;
/// At this distance from its target, as a part of its limit, a velocity counts as equal to it, so
/// that all numbers are zero at rest.
const THERE: f64 = 1e-12;

const fn number(
    name: &'static str,
    doc: &'static str,
    unit: &'static str,
    default: &'static str,
) -> Parameter {
    let ty = ParameterType::Number { min: 1e-3, max: 1e6 };
    Parameter::new(name, ty).or(default).unit(unit).doc(doc).tunable()
}

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "twist_limiter",
    runs_in: RunsIn::Realtime,
    doc: "Limits how fast a machine moves and turns: in every cycle it gives the last target, \
          limited in speed, acceleration and jerk. Movement and turn have limits of their own, for \
          the length of the vector along or around x, y and z, seen from the machine itself. A \
          faster target keeps its direction and loses its speed. Movement and turn change \
          independently. Without a new target for 'brake_after', and while the graph stops, it \
          brakes within these limits until it stands. A target with a number that is not finite, \
          or so great that its square is not, is counted and ignored. Limits set while it runs \
          cause no jump: past a new one it slows down within the others. For targets that come \
          from ROS, from another host, or from a service.",
    ports: &[
        Port::input("in", "Target speeds of the movement and the turn.", TwistTarget::TYPE),
        Port::output("out", "Limited speeds for this cycle.", TwistTarget::TYPE),
    ],
    parameters: &[
        number("speed_m_per_s", "Greatest speed.", "m/s", "0.5"),
        number("acceleration_m_per_s2", "Greatest acceleration.", "m/s2", "1"),
        number("jerk_m_per_s3", "Greatest change of the acceleration.", "m/s3", "10"),
        number("turn_speed_rad_per_s", "Greatest speed of turn.", "rad/s", "1"),
        number("turn_acceleration_rad_per_s2", "Greatest acceleration of turn.", "rad/s2", "2"),
        number(
            "turn_jerk_rad_per_s3",
            "Greatest change of the acceleration of turn.",
            "rad/s3",
            "20",
        ),
        Parameter::new(
            "brake_after",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 10_000_000_000 },
        )
        .or("200ms")
        .doc("Without a new target for this long it brakes."),
    ],
    signals: &[
        Signal::new("behind_m_per_s", "Difference of its speed to the target.", "m/s", 1),
        Signal::new(
            "turn_behind_rad_per_s",
            "Difference of its speed of turn to the target.",
            "rad/s",
            1,
        ),
        Signal {
            labels: &["no", "yes"],
            ..Signal::new("brakes", "Whether it has no target, and brakes or stands.", "", 1)
        },
        Signal::new("refused", "Targets with numbers that are not finite, or too great.", "", 1),
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let [movement, turn] = paces(parameters);
    Ok(Box::new(TwistLimiter {
        movement,
        turn,
        brake_after_ns: parameters.duration("brake_after").as_nanos() as u64,
        target: None,
        silent_ns: 0,
        refused: 0,
    }))
}

/// The paces of movement and turn, at rest.
fn paces(parameters: &Parameters<'_>) -> [Pace; 2] {
    let pace = |speed, acceleration, jerk| Pace {
        speed_max: parameters.number(speed),
        speed: DVec3::ZERO,
        change: Limited {
            limits: Limits {
                speed: parameters.number(acceleration),
                acceleration: parameters.number(jerk),
            },
            speed: DVec3::ZERO,
        },
    };
    [
        pace("speed_m_per_s", "acceleration_m_per_s2", "jerk_m_per_s3"),
        pace("turn_speed_rad_per_s", "turn_acceleration_rad_per_s2", "turn_jerk_rad_per_s3"),
    ]
}

struct TwistLimiter {
    movement: Pace,
    turn: Pace,
    brake_after_ns: u64,
    /// The last target: movement and turn.
    target: Option<(DVec3, DVec3)>,
    /// Time since the last good target.
    silent_ns: u64,
    refused: u64,
}

impl Node for TwistLimiter {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        self.silent_ns = self.silent_ns.saturating_add(cycle.passed_ns());
        if io.fresh(IN) == Fresh::New {
            self.hear(io.read::<TwistTarget>(IN));
        }
        if self.silent_ns > self.brake_after_ns || cycle.stopping {
            self.target = None;
        }
        let (movement, turn) = self.target.unwrap_or_default();
        self.movement.follow(movement, cycle.period_s());
        self.turn.follow(turn, cycle.period_s());
        *io.write::<TwistTarget>(OUT) = TwistTarget {
            linear_m_per_s: self.movement.speed.to_array(),
            angular_rad_per_s: self.turn.speed.to_array(),
        };
        io.signal(BEHIND)[0] = movement.distance(self.movement.speed);
        io.signal(TURN_BEHIND)[0] = turn.distance(self.turn.speed);
        io.signal(BRAKES)[0] = f64::from(u8::from(self.target.is_none()));
        io.signal(REFUSED)[0] = self.refused as f64;
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        for (pace, tuned) in [&mut self.movement, &mut self.turn].into_iter().zip(paces(parameters))
        {
            pace.speed_max = tuned.speed_max;
            pace.change.limits = tuned.change.limits;
        }
        Ok(())
    }
}

impl TwistLimiter {
    fn hear(&mut self, target: &TwistTarget) {
        let movement = DVec3::from_array(target.linear_m_per_s);
        let turn = DVec3::from_array(target.angular_rad_per_s);
        // If the square is finite, so are its numbers.
        if movement.length_squared().is_finite() && turn.length_squared().is_finite() {
            self.target = Some((movement, turn));
            self.silent_ns = 0;
        } else {
            self.refused += 1;
        }
    }
}

/// A speed that follows its target.
struct Pace {
    speed_max: f64,
    /// In units per s.
    speed: DVec3,
    /// The motion of the speed: its own speed is the acceleration, its acceleration is the jerk.
    change: Limited,
}

impl Pace {
    /// Moves the speed towards the target for a period.
    ///
    /// While the acceleration turns from one direction to another, the speed moves on a curve and
    /// could leave its limits. Wherever it could not get back in time, the acceleration first goes
    /// down. Then the speed ends where it would have ended in the period before, which is within
    /// the limits.
    fn follow(&mut self, target: DVec3, period_s: f64) {
        let target = target.clamp_length_max(self.speed_max);
        let way = target - self.speed;
        let mut change = self.change;
        let mut speed = self.speed + change.step(Some(way), period_s);
        let end = speed + change.way_to_rest(period_s);
        if !self.is_allowed(speed) || !self.is_allowed(end) {
            change = self.change;
            speed = self.speed + change.step(None, period_s);
        }
        let is_there = speed.distance(target) <= self.speed_max * THERE;
        (self.change, self.speed) = (change, if is_there { target } else { speed });
    }

    /// If a lower limit was set while it moved, any lower speed is allowed too.
    fn is_allowed(&self, speed: DVec3) -> bool {
        let length = speed.length();
        length <= self.speed_max * (1.0 + ROUNDING) || length < self.speed.length()
    }
}

#[cfg(test)]
mod tests;
