//! Kind `two_mass`: a motor and a load on an elastic shaft or belt, simulated.

use sinew_core::catalogue::{Kind, Port, RunsIn, SafeValue, Signal, Unit, number};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real};

use super::linear::{DenseMatrix, HeldSystem};
use super::plant::{output, passed_periods, safe};

const TORQUE: usize = 0;
const LOAD: usize = 1;
/// The first of four outputs. The signals have the same order, from 0.
const SHOWN: usize = 2;

/// The machine counts as at rest if both sides are slower than this, and the shaft holds too little
/// energy to make either faster.
const REST_RAD_PER_S: f64 = 0.01;

const INERTIA: (f64, f64) = (1e-9, 1e6);
const FRICTION: (f64, f64) = (0.0, 1e6);

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "two_mass",
    runs_in: RunsIn::Realtime,
    doc: "A simulated motor that turns a load through an elastic shaft or belt: the machine, for \
          controllers that must not make it ring. The shaft brings k (q_m - q_l) + d (w_m - w_l) \
          from the motor to the load; both have an inertia and a friction by speed (Ellis, Control \
          System Design Guide, 4th ed., 16). It rings at sqrt(k (1 / J_m + 1 / J_l)) rad/s; with \
          the defaults, 40 Hz. Each cycle it goes on by a period in which both torques are held, \
          exactly, and by lost periods too, 999 of them at most; its outputs are where that ends. \
          A positive load brakes a positive turn. The safe value 'off' is not a torque: it runs \
          out by its friction. At rest both sides are slower than 0.01 rad/s, and so they would \
          stay if all that is in the shaft made them ring.",
    ports: &[
        Port::input("torque", "Torque of the motor.", Real::TYPE)
            .unit(Unit::Of("N m"))
            .safe(&[SafeValue { name: "off", doc: "No torque: it runs out." }]),
        Port::input("load", "Torque on the load, against a positive turn.", Real::TYPE)
            .unit(Unit::Of("N m"))
            .optional(),
        output("motor_position", "Angle of the motor, which counts turns.", "rad"),
        output("motor_velocity", "How fast the motor turns.", "rad/s"),
        output("load_position", "Angle of the load, which counts turns.", "rad"),
        output("load_velocity", "How fast the load turns.", "rad/s"),
    ],
    parameters: &[
        number("motor_inertia_kg_m2", "J_m.", "kg m2", INERTIA, "2e-4"),
        number("load_inertia_kg_m2", "J_l.", "kg m2", INERTIA, "8e-4"),
        number("stiffness_n_m_per_rad", "k, of the shaft.", "N m/rad", (1e-6, 1e9), "10"),
        number("damping_n_m_s_per_rad", "d, of the shaft.", "N m s/rad", FRICTION, "0.004"),
        number("motor_friction_n_m_s_per_rad", "By speed.", "N m s/rad", FRICTION, "1e-3"),
        number("load_friction_n_m_s_per_rad", "By speed.", "N m s/rad", FRICTION, "1e-3"),
    ],
    signals: &[
        Signal::new("motor_position_rad", "Angle of the motor.", "rad", 1),
        Signal::new("motor_velocity_rad_per_s", "How fast the motor turns.", "rad/s", 1),
        Signal::new("load_position_rad", "Angle of the load.", "rad", 1),
        Signal::new("load_velocity_rad_per_s", "How fast the load turns.", "rad/s", 1),
    ],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: Some(safe) };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let [motor, load, stiffness, damping] = [
        "motor_inertia_kg_m2",
        "load_inertia_kg_m2",
        "stiffness_n_m_per_rad",
        "damping_n_m_s_per_rad",
    ]
    .map(|name| parameters.number(name));
    let [motor_friction, load_friction] =
        ["motor_friction_n_m_s_per_rad", "load_friction_n_m_s_per_rad"]
            .map(|name| parameters.number(name));
    let a = DenseMatrix::of([
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 1.0, -1.0],
        [0.0, -stiffness / motor, -(damping + motor_friction) / motor, damping / motor],
        [0.0, stiffness / load, damping / load, -(damping + load_friction) / load],
    ]);
    let b = DenseMatrix::of([[0.0, 0.0], [0.0, 0.0], [1.0 / motor, 0.0], [0.0, -1.0 / load]]);
    Ok(Box::new(TwoMass {
        step: HeldSystem::new(&a, &b, parameters.period_ns as f64 * 1e-9)?,
        rings_rad_per_s: (stiffness * (1.0 / motor + 1.0 / load)).sqrt(),
        state: [0.0; 4],
    }))
}

struct TwoMass {
    step: HeldSystem,
    /// Frequency of the free oscillation, without friction.
    rings_rad_per_s: f64,
    /// Position of the motor, how far it is ahead of the load, velocities of motor and load. The
    /// twist has its own place, so that it keeps its digits however far both turn.
    state: [f64; 4],
}

impl Node for TwoMass {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let inputs = [TORQUE, LOAD].map(|port| io.read::<Real>(port).value);
        for _ in 0..passed_periods(cycle) {
            let mut next = [0.0; 4];
            self.step.step(&self.state, &inputs, &mut next);
            self.state = next;
        }
        let [position, twist, motor, load] = self.state;
        for (at, number) in [position, motor, position - twist, load].into_iter().enumerate() {
            io.write::<Real>(SHOWN + at).value = number;
            io.signal(at)[0] = number;
        }
        Ok(())
    }

    fn at_rest(&self) -> bool {
        let [_, twist, motor, load] = self.state;
        let speeds = [motor, load, twist * self.rings_rad_per_s];
        speeds.iter().all(|speed| speed.abs() < REST_RAD_PER_S)
    }
}

#[cfg(test)]
mod tests;
