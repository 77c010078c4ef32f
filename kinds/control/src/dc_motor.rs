//! Kind `dc_motor`: a motor with brushes and permanent magnets, simulated.

use sinew_core::catalogue::{Kind, Port, RunsIn, SafeValue, Signal, Unit, number};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real, fault};

use super::linear::{DenseMatrix, HeldSystem};
use super::plant::{output, passed_periods, safe};

const VOLTAGE: usize = 0;
const LOAD: usize = 1;
/// The first of three outputs, which show the state in its order. The signals have the same order,
/// from 0.
const SHOWN: usize = 2;

/// Index in the state, after the position.
const VELOCITY: usize = 1;
const CURRENT: usize = 2;

/// Below this speed the motor counts as at rest.
const REST_RAD_PER_S: f64 = 0.01;

/// With dry friction a period is halved, down to 2^-30 of it, to find the moment when the motor
/// stops.
const LEVELS: usize = 30;
/// A period, counted in the smallest parts.
const PARTS: u32 = 1 << LEVELS;
/// The most, in rad, by which the oscillation of current and rotor may go on in a step, so that the
/// motor cannot stop and start again unseen within the step.
const PHASE_MAX: f64 = 0.25;
/// Limits the above: with dry friction the longest step is at least 1/64 of a period.
const COARSEST_LEVEL_MAX: usize = 6;
/// The most stops and breakaways in a period. After them the motor sticks for the rest of the
/// period.
const CHANGES_MAX: usize = 16;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "dc_motor",
    runs_in: RunsIn::Realtime,
    doc: "A simulated motor with brushes and permanent magnets: the machine. L di/dt = v - R i - \
          k_e w and J dw/dt = k_t i - b w - load - dry friction (Franklin, Powell, Emami-Naeini, \
          Feedback Control of Dynamic Systems, 2.3). Each cycle it goes on by a period in which \
          voltage and load are held, exactly, and by lost periods too, 999 of them at most; its \
          outputs are where that ends. The voltage is limited to the supply. A positive load \
          brakes a positive turn. Dry friction acts against the turn; while the motor stands, it \
          holds against as much torque as it has, and the motor sticks. The moment at which it \
          stops or breaks loose is found within the period. The safe value 'off' is 0 V: the \
          windings are shorted and brake. It is at rest below 0.01 rad/s, whatever the load. The \
          defaults are of the size of a motor of 60 W for 24 V with an ironless rotor. Dry \
          friction and supply may be set while it runs; the motor goes on turning as it does.",
    ports: &[
        Port::input("voltage", "Voltage on the windings.", Real::TYPE)
            .unit(Unit::Of("V"))
            .safe(&[SafeValue { name: "off", doc: "0 V: the shorted windings brake." }]),
        Port::input("load", "Torque of the load, against a positive turn.", Real::TYPE)
            .unit(Unit::Of("N m"))
            .optional(),
        output("position", "Angle of the shaft, which counts turns.", "rad"),
        output("velocity", "How fast it turns.", "rad/s"),
        output("current", "Current in the windings.", "A"),
    ],
    parameters: &[
        number("resistance_ohm", "R, of the windings.", "ohm", (1e-4, 1e5), "0.6"),
        number("inductance_h", "L, of the windings.", "H", (1e-7, 100.0), "1.2e-4"),
        number("torque_constant_n_m_per_a", "k_t.", "N m/A", (1e-6, 1e3), "0.026"),
        number(
            "back_emf_v_s_per_rad",
            "k_e, voltage by speed; 0: the same number as torque_constant_n_m_per_a.",
            "V s/rad",
            (0.0, 1e3),
            "0",
        ),
        number("inertia_kg_m2", "J, with all that turns.", "kg m2", (1e-10, 1e4), "3.5e-6"),
        number("damping_n_m_s_per_rad", "b, friction by speed.", "N m s/rad", (0.0, 1e4), "4e-6"),
        number("coulomb_n_m", "Dry friction, also from standstill.", "N m", (0.0, 1e5), "0")
            .tunable(),
        number("supply_v", "The voltage is limited to this, both ways.", "V", (1e-3, 1e4), "24")
            .tunable(),
    ],
    signals: &[
        Signal::new("position_rad", "Angle of the shaft, which counts turns.", "rad", 1),
        Signal::new("velocity_rad_per_s", "How fast it turns.", "rad/s", 1),
        Signal::new("current_a", "Current in the windings.", "A", 1),
    ],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: Some(safe) };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let [resistance, inductance, torque_constant, inertia] =
        ["resistance_ohm", "inductance_h", "torque_constant_n_m_per_a", "inertia_kg_m2"]
            .map(|name| parameters.number(name));
    let back_emf = match parameters.number("back_emf_v_s_per_rad") {
        0.0 => torque_constant,
        given => given,
    };
    let damping = parameters.number("damping_n_m_s_per_rad");
    let turns = DenseMatrix::of([
        [0.0, 1.0, 0.0],
        [0.0, -damping / inertia, torque_constant / inertia],
        [0.0, -back_emf / inductance, -resistance / inductance],
    ]);
    let sticks = DenseMatrix::of([[0.0; 3], [0.0; 3], [0.0, 0.0, -resistance / inductance]]);
    let inputs = DenseMatrix::of([[0.0, 0.0], [0.0, -1.0 / inertia], [1.0 / inductance, 0.0]]);
    let stuck_inputs = DenseMatrix::of([[0.0, 0.0], [0.0, 0.0], [1.0 / inductance, 0.0]]);

    let period_s = parameters.period_ns as f64 * 1e-9;
    let halves = |a: &DenseMatrix, b: &DenseMatrix| {
        let held = |level| HeldSystem::new(a, b, period_s * 0.5_f64.powi(level));
        (0..=LEVELS as i32)
            .map(held)
            .collect::<Result<Box<[_]>, _>>()
            .map_err(|fault| fault!("inductance_h or inertia_kg_m2 is small: {}", fault.text()))
    };
    let phase = period_s * (torque_constant * back_emf / (inertia * inductance)).sqrt();
    let coarsest = (phase / PHASE_MAX).log2().ceil().max(0.0) as usize;
    Ok(Box::new(DcMotor {
        turns: halves(&turns, &inputs)?,
        sticks: halves(&sticks, &stuck_inputs)?,
        coarsest: coarsest.min(COARSEST_LEVEL_MAX),
        torque_constant,
        coulomb: parameters.number("coulomb_n_m"),
        supply: parameters.number("supply_v"),
        state: [0.0; 3],
    }))
}

/// The present action of dry friction.
#[derive(Clone, Copy, PartialEq)]
enum Friction {
    /// It balances the torque: the motor does not turn.
    Holds,
    /// It acts with its full torque against a turn of this sign.
    Brakes(f64),
}

struct DcMotor {
    /// The motor while it turns: over a period, then each time over half of the time before.
    turns: Box<[HeldSystem]>,
    /// The same while the motor sticks: only the current changes.
    sticks: Box<[HeldSystem]>,
    /// The level of the longest step with dry friction.
    coarsest: usize,
    torque_constant: f64,
    coulomb: f64,
    supply: f64,
    /// Position, velocity and current.
    state: [f64; 3],
}

impl Node for DcMotor {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let voltage = io.read::<Real>(VOLTAGE).value.clamp(-self.supply, self.supply);
        let load = io.read::<Real>(LOAD).value;
        for _ in 0..passed_periods(cycle) {
            if self.coulomb == 0.0 {
                self.state = stepped(&self.turns[0], &self.state, [voltage, load]);
            } else {
                self.rub(voltage, load);
            }
        }
        for (at, number) in self.state.iter().enumerate() {
            io.write::<Real>(SHOWN + at).value = *number;
            io.signal(at)[0] = *number;
        }
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.coulomb = parameters.number("coulomb_n_m");
        self.supply = parameters.number("supply_v");
        Ok(())
    }

    fn at_rest(&self) -> bool {
        self.state[VELOCITY].abs() < REST_RAD_PER_S
    }
}

fn stepped(held: &HeldSystem, state: &[f64; 3], inputs: [f64; 2]) -> [f64; 3] {
    let mut next = [0.0; 3];
    held.step(state, &inputs, &mut next);
    next
}

impl DcMotor {
    /// Advances by a period with dry friction.
    fn rub(&mut self, voltage: f64, load: f64) {
        let mut left = PARTS;
        for _ in 0..CHANGES_MAX {
            left = self.until_change(self.friction(load), left, voltage, load);
            if left == 0 {
                return;
            }
        }
        self.state[VELOCITY] = 0.0;
        for (level, held) in self.sticks.iter().enumerate() {
            if left & (PARTS >> level) != 0 {
                self.state = stepped(held, &self.state, [voltage, load]);
            }
        }
    }

    /// The torque that would turn the motor from standstill without dry friction.
    fn torque(&self, state: &[f64; 3], load: f64) -> f64 {
        self.torque_constant * state[CURRENT] - load
    }

    fn friction(&self, load: f64) -> Friction {
        let (velocity, torque) = (self.state[VELOCITY], self.torque(&self.state, load));
        match velocity == 0.0 {
            true if torque.abs() <= self.coulomb => Friction::Holds,
            true => Friction::Brakes(torque.signum()),
            false => Friction::Brakes(velocity.signum()),
        }
    }

    /// Advances until friction changes, at most by `parts` of a period. Returns how many parts are
    /// left.
    fn until_change(&mut self, friction: Friction, parts: u32, voltage: f64, load: f64) -> u32 {
        let (steps, against) = match friction {
            Friction::Holds => (&self.sticks, load),
            Friction::Brakes(sign) => (&self.turns, load + sign * self.coulomb),
        };
        let step = |state: &[f64; 3], level| stepped(&steps[level], state, [voltage, against]);
        let is_same = |next: &[f64; 3]| match friction {
            Friction::Holds => self.torque(next, load).abs() <= self.coulomb,
            Friction::Brakes(sign) => sign * next[VELOCITY] >= 0.0,
        };
        let (mut state, mut left) = (self.state, parts);
        for level in self.coarsest..=LEVELS {
            let size = PARTS >> level;
            while left >= size {
                let next = step(&state, level);
                if !is_same(&next) {
                    break;
                }
                (state, left) = (next, left - size);
            }
        }
        if left > 0 {
            // Friction changes within the next smallest part.
            (state, left) = (step(&state, LEVELS), left - 1);
            if friction != Friction::Holds {
                state[VELOCITY] = 0.0;
            }
        }
        self.state = state;
        left
    }
}

#[cfg(test)]
mod tests;
