//! Kind `wheeled_base`: a base on a left and a right wheel, simulated. It turns by the difference
//! of the two.

use rs_opw_kinematics::glam::{DQuat, DVec2};
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, SafeValue, Signal};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters};
use std::f64::consts::TAU;

use super::limited::passed_ns;
use super::messages::{BaseState, TwistTarget};

const IN: usize = 0;
const OUT: usize = 1;

const fn number(
    name: &'static str,
    doc: &'static str,
    unit: &'static str,
    (min, max): (f64, f64),
    default: &'static str,
) -> Parameter {
    Parameter::new(name, ParameterType::Number { min, max }).or(default).unit(unit).doc(doc)
}

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "wheeled_base",
    runs_in: RunsIn::Realtime,
    doc: "A simulated base on a left and a right wheel: the machine. Moves along its x and turns \
          around its z as it is told; the other numbers of a twist mean nothing to it. Each wheel \
          has a greatest speed and a greatest acceleration. Says where it is by the turns of its \
          wheels, which do not slip.",
    ports: &[
        Port {
            safe: &[SafeValue { name: "stand", doc: "At rest: the wheels brake." }],
            ..Port::input("in", "How fast it shall move and turn.", TwistTarget::TYPE)
        },
        Port::output("out", "Where it is, and how fast it moves and turns.", BaseState::TYPE)
            .optional(),
    ],
    parameters: &[
        number("wheel_radius_m", "Radius of a wheel.", "m", (1e-3, 10.0), "0.05"),
        number("track_m", "From one wheel to the other.", "m", (1e-3, 10.0), "0.4"),
        number("wheel_speed_rad_per_s", "Greatest speed.", "rad/s", (1e-3, 1e4), "40"),
        number("wheel_acceleration_rad_per_s2", "Greatest change.", "rad/s2", (1e-3, 1e6), "100"),
    ],
    signals: &[
        Signal::new("position_m", "Where it is: x and y.", "m", 2),
        Signal::new("turn_rad", "How it is turned.", "rad", 1),
        Signal::new("speed_m_per_s", "How fast it moves.", "m/s", 1),
        Signal::new("turn_speed_rad_per_s", "How fast it turns.", "rad/s", 1),
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: Some(safe) };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(WheeledBase {
        radius_m: parameters.number("wheel_radius_m"),
        track_m: parameters.number("track_m"),
        speed_max: parameters.number("wheel_speed_rad_per_s"),
        acceleration_max: parameters.number("wheel_acceleration_rad_per_s2"),
        wheels_rad: [0.0; 2],
        speeds: [0.0; 2],
        position_m: DVec2::ZERO,
        turn_rad: 0.0,
    }))
}

/// A zeroed message is the one safe value.
fn safe(_port: usize, _safe: usize, _message: &mut [u8]) {}

struct WheeledBase {
    radius_m: f64,
    track_m: f64,
    /// Of a wheel, rad/s.
    speed_max: f64,
    /// Of a wheel, rad/s2.
    acceleration_max: f64,
    /// How far the left and the right wheel have turned.
    wheels_rad: [f64; 2],
    /// Of the wheels, rad/s.
    speeds: [f64; 2],
    position_m: DVec2,
    turn_rad: f64,
}

impl Node for WheeledBase {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let target = io.read::<TwistTarget>(IN);
        self.advance(target.linear_m_per_s[0], target.angular_rad_per_s[2], cycle);
        self.show(io);
        Ok(())
    }

    fn at_rest(&self) -> bool {
        self.speeds == [0.0; 2]
    }
}

impl WheeledBase {
    /// How fast it moves and turns: m/s and rad/s.
    fn twist(&self) -> (f64, f64) {
        let [left, right] = self.speeds.map(|speed| speed * self.radius_m);
        (f64::midpoint(left, right), (right - left) / self.track_m)
    }

    /// Goes on by the time since the cycle before.
    fn advance(&mut self, speed_m_per_s: f64, turn_rad_per_s: f64, cycle: &Cycle) {
        let passed_s = passed_ns(cycle) as f64 * 1e-9;
        let around = turn_rad_per_s * self.track_m / 2.0;
        let wanted = [speed_m_per_s - around, speed_m_per_s + around];
        let most = self.acceleration_max * passed_s;
        for ((speed, rad), wanted) in self.speeds.iter_mut().zip(&mut self.wheels_rad).zip(wanted) {
            let wanted = (wanted / self.radius_m).clamp(-self.speed_max, self.speed_max);
            *speed += (wanted - *speed).clamp(-most, most);
            *rad += *speed * passed_s;
        }
        let (speed_m_per_s, turn_rad_per_s) = self.twist();
        let (way_m, turn_rad) = (speed_m_per_s * passed_s, turn_rad_per_s * passed_s);
        // Along an arc: its chord points half of the turn further, and is shorter by sin(x) / x.
        let half = turn_rad / 2.0;
        let shorter = if half.abs() < 1e-6 { 1.0 } else { half.sin() / half };
        self.position_m += DVec2::from_angle(self.turn_rad + half) * (way_m * shorter);
        self.turn_rad = (self.turn_rad + turn_rad).rem_euclid(TAU);
    }

    fn show(&self, io: &mut Io<'_>) {
        let (speed_m_per_s, turn_rad_per_s) = self.twist();
        let DVec2 { x, y } = self.position_m;
        *io.write::<BaseState>(OUT) = BaseState {
            position_m: [x, y, 0.0],
            orientation_xyzw: DQuat::from_rotation_z(self.turn_rad).to_array(),
            linear_m_per_s: [speed_m_per_s, 0.0, 0.0],
            angular_rad_per_s: [0.0, 0.0, turn_rad_per_s],
            wheel_position_rad: self.wheels_rad,
            wheel_velocity_rad_per_s: self.speeds,
        };
        io.signal(0).copy_from_slice(&[x, y]);
        io.signal(1)[0] = self.turn_rad;
        io.signal(2)[0] = speed_m_per_s;
        io.signal(3)[0] = turn_rad_per_s;
    }
}

#[cfg(test)]
mod tests;
