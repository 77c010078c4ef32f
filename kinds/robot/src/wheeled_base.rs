//! Kind `wheeled_base`: a simulated base on a left and a right wheel. It turns by the difference of
//! the two.

use rs_opw_kinematics::glam::DVec2;
use sinew_core::catalogue::{Kind, Port, RunsIn, SafeValue, Signal};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters};

use super::messages::{BaseState, TwistTarget};
use super::planar::PlanarPlace;
use super::wheels::{self, DrivenWheels};

const IN: usize = 0;
const OUT: usize = 1;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "wheeled_base",
    runs_in: RunsIn::Realtime,
    doc: "A simulated base with a left and a right wheel: the machine. It obeys the x and the turn \
          around z of a twist, and ignores its other numbers. Each wheel has a greatest speed and \
          a greatest acceleration. Says where it is by the turns of its wheels, which do not slip. \
          Where numbers are set while it runs it stays where it is, and its wheels turn as fast as \
          they did.",
    ports: &[
        Port {
            safe: &[SafeValue { name: "stand", doc: "At rest: the wheels brake." }],
            ..Port::input("in", "Target speeds of the movement and the turn.", TwistTarget::TYPE)
        },
        Port::output("out", "Where it is, and how fast it moves and turns.", BaseState::TYPE)
            .optional(),
    ],
    parameters: &[wheels::RADIUS_M, wheels::TRACK_M, wheels::SPEED_MAX, wheels::ACCELERATION_MAX],
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
    let place = PlanarPlace { position_m: DVec2::ZERO, turn_rad: 0.0 };
    Ok(Box::new(WheeledBase { wheels: DrivenWheels::of(parameters), place }))
}

/// The safe value is a zeroed message, so nothing is to be written.
fn safe(_port: usize, _safe: usize, _message: &mut [u8]) {}

struct WheeledBase {
    wheels: DrivenWheels,
    place: PlanarPlace,
}

impl Node for WheeledBase {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let target = io.read::<TwistTarget>(IN);
        let passed_s = cycle.passed_s();
        let axle = self.wheels.axle;
        let wanted = axle.wheels(target.linear_m_per_s[0], target.angular_rad_per_s[2]);
        self.wheels.drive(wanted, passed_s);
        let (way_m, turn_rad) = axle.motion(self.wheels.turn(passed_s));
        self.place = self.place.after(way_m, turn_rad);
        self.show(io);
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.wheels.tune(parameters);
        Ok(())
    }

    fn at_rest(&self) -> bool {
        self.wheels.speeds == [0.0; 2]
    }
}

impl WheeledBase {
    fn show(&self, io: &mut Io<'_>) {
        let (speed_m_per_s, turn_rad_per_s) = self.wheels.axle.motion(self.wheels.speeds);
        let state = io.write::<BaseState>(OUT);
        self.place.show(state);
        state.linear_m_per_s = [speed_m_per_s, 0.0, 0.0];
        state.angular_rad_per_s = [0.0, 0.0, turn_rad_per_s];
        state.wheel_position_rad = self.wheels.turned_rad;
        state.wheel_velocity_rad_per_s = self.wheels.speeds;
        io.signal(0).copy_from_slice(&self.place.position_m.to_array());
        io.signal(1)[0] = self.place.turn_rad;
        io.signal(2)[0] = speed_m_per_s;
        io.signal(3)[0] = turn_rad_per_s;
    }
}

#[cfg(test)]
mod tests;
