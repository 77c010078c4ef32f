//! Kind `cart_pendulum`: a trolley on a track with a load on a rope, or a pendulum on a cart,
//! simulated.

use sinew_core::catalogue::{Kind, Port, RunsIn, SafeValue, Signal, Unit, number};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters, Real, fault};

use super::plant::{output, passed_periods, safe};

const FORCE: usize = 0;
const DISTURBANCE: usize = 1;
/// The first of four outputs, which show the state in its order. The signals have the same order,
/// from 0.
const SHOWN: usize = 2;
/// The signal which says that the cart is at an end of the track.
const AT_END: usize = 4;

/// Indices in the state.
const POSITION: usize = 0;
const VELOCITY: usize = 1;
const RATE: usize = 3;

/// Position, velocity, angle and angular velocity.
type State = [f64; 4];

/// Below this speed cart and load count as at rest.
const REST_M_PER_S: f64 = 0.01;

/// A step is at most this part of the time constant of the system. The error over one time constant
/// is this part to the power of 4, with a factor of 1 / 120: less than 1e-12.
const STEP_MAX: f64 = 2e-3;
/// Most steps in a period: a step takes some 0.2 us.
const STEPS_MAX: f64 = 256.0;
/// Most steps in a cycle that catches up.
const CAUGHT_UP_MAX: u64 = 4096;
/// The most times that the cart may come to an end of its track, or leave it, in a step. The rest
/// of the step is then dropped.
const CHANGES_MAX: usize = 8;
/// Count of bisections of a step to find the moment of such a change.
const HALVES: usize = 40;

const DAMPING: (f64, f64) = (0.0, 1e6);
const BRAKE: (f64, f64) = (0.0, 1e9);

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "cart_pendulum",
    runs_in: RunsIn::Realtime,
    doc: "A simulated trolley with a load on a rope, as of a crane: the machine. The rope is stiff \
          and has no mass, so that with 'initial_angle_deg: 180' it is the pendulum that stands \
          upright on a cart (Astrom, Murray, Feedback Systems, 2nd ed., 3.2). Angle 0 hangs \
          straight down, a positive one is on the side of positive positions; it counts turns. \
          Each cycle the full equations go on by a period in which force and disturbance are held \
          (Runge-Kutta of order 4 in fixed steps, some 1e-9 of a number wrong after some seconds), \
          and by lost periods too, 999 or 4096 steps of them at most; its outputs are where that \
          ends. The track goes from -track_m / 2 to track_m / 2. At an end the cart stops at once, \
          the load swings on, and the cart stays there until something pulls it away. The safe \
          value 'off' is not a force, and the brake closes: it rubs with brake_n, and holds a cart \
          that stands against as much. Without one the cart rolls out. At rest the brake holds the \
          cart, though the load may swing on; or the cart is slower than 0.01 m/s, and so would \
          the load be at its lowest point. Masses, rope, frictions and brake may be set while it \
          runs; places, angle and both speeds are then what they were.",
    ports: &[
        Port::input("force", "Force of the drive on the cart.", Real::TYPE)
            .unit(Unit::Of("N"))
            .safe(&[SafeValue { name: "off", doc: "No force, and the brake closes." }]),
        Port::input("disturbance", "Horizontal force on the load, such as wind.", Real::TYPE)
            .unit(Unit::Of("N"))
            .optional(),
        output("position", "Where the cart is; 0 is the middle of the track.", "m"),
        output("velocity", "How fast the cart moves.", "m/s"),
        output("angle", "Angle of the rope; 0 hangs straight down.", "rad"),
        output("angular_velocity", "How fast the angle changes.", "rad/s"),
    ],
    parameters: &[
        number("cart_kg", "Mass of the cart.", "kg", (1e-3, 1e6), "10").tunable(),
        number("load_kg", "Mass of the load.", "kg", (1e-3, 1e6), "20").tunable(),
        number("rope_m", "From the cart to the middle of the load.", "m", (1e-2, 1e3), "1.5")
            .tunable(),
        number("cart_damping_n_s_per_m", "Friction by speed.", "N s/m", DAMPING, "20").tunable(),
        number("brake_n", "Force of the brake, closed while 'off'; 0: none.", "N", BRAKE, "0")
            .tunable(),
        number("swing_damping_n_m_s_per_rad", "Friction by speed.", "N m s/rad", DAMPING, "0.5")
            .tunable(),
        number("gravity_m_per_s2", "Acceleration of gravity.", "m/s2", (0.0, 100.0), "9.81"),
        number("track_m", "From one end of the track to the other.", "m", (1e-2, 1e5), "6"),
        number(
            "initial_angle_deg",
            "Angle at the start. At 180 it stands upright; rounding lets it fall after seconds.",
            "deg",
            (-360.0, 360.0),
            "0",
        ),
    ],
    signals: &[
        Signal::new("position_m", "Where the cart is.", "m", 1),
        Signal::new("velocity_m_per_s", "How fast the cart moves.", "m/s", 1),
        Signal::new("angle_rad", "Angle of the rope; 0 hangs straight down.", "rad", 1),
        Signal::new("angular_velocity_rad_per_s", "How fast the angle changes.", "rad/s", 1),
        Signal {
            labels: &["no", "at the lower end", "at the upper end"],
            ..Signal::new("at_end", "Whether the cart stands at an end of its track.", "", 1)
        },
    ],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: Some(safe) };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(CartPendulum::of(parameters)?))
}

impl CartPendulum {
    /// The plant in its initial state.
    fn of(parameters: &Parameters<'_>) -> Result<CartPendulum, Fault> {
        let plant = CartPendulum {
            cart_kg: parameters.number("cart_kg"),
            load_kg: parameters.number("load_kg"),
            rope_m: parameters.number("rope_m"),
            cart_damping: parameters.number("cart_damping_n_s_per_m"),
            swing_damping: parameters.number("swing_damping_n_m_s_per_rad"),
            gravity: parameters.number("gravity_m_per_s2"),
            end_m: parameters.number("track_m") / 2.0,
            brake: parameters.number("brake_n"),
            forces: Forces { cart: 0.0, load: 0.0, brake: 0.0 },
            steps: 1,
            step_s: 0.0,
            state: [0.0, 0.0, parameters.number("initial_angle_deg").to_radians(), 0.0],
        };
        let (period_s, pace) = (parameters.period_ns as f64 * 1e-9, plant.pace());
        let steps = (period_s * pace / STEP_MAX).ceil().max(1.0);
        if steps > STEPS_MAX {
            let most = STEPS_MAX * STEP_MAX / pace;
            return Err(fault!(
                "cart and load are too fast for the period: they change within {:.1e} s, so it \
                 must be at most {most:.1e} s and is {period_s:.1e} s; shorten it, lengthen \
                 rope_m, make cart and load heavier, or lower the damping",
                1.0 / pace
            ));
        }
        Ok(CartPendulum { steps: steps as u64, step_s: period_s / steps, ..plant })
    }
}

struct CartPendulum {
    cart_kg: f64,
    load_kg: f64,
    rope_m: f64,
    /// N s/m
    cart_damping: f64,
    /// N m s/rad
    swing_damping: f64,
    /// m/s2
    gravity: f64,
    /// Distance from the middle of the track to an end.
    end_m: f64,
    /// Friction force of the closed brake, N.
    brake: f64,
    forces: Forces,
    /// Count of steps in a period.
    steps: u64,
    step_s: f64,
    state: State,
}

/// The forces that are held over a period, N.
#[derive(Clone, Copy)]
struct Forces {
    cart: f64,
    load: f64,
    /// Friction force of the brake; 0 while it is open.
    brake: f64,
}

/// The motion of the cart until its next change.
#[derive(Clone, Copy, PartialEq)]
enum CartMotion {
    /// The cart stands still, at an end of its track or held by its brake.
    Held,
    /// The cart moves. The brake pushes with this force, N, against the motion.
    Rolls { brake: f64 },
}

impl Node for CartPendulum {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let [cart, load] = [FORCE, DISTURBANCE].map(|port| io.read::<Real>(port).value);
        let brake = if io.fresh(FORCE) == Fresh::Safe { self.brake } else { 0.0 };
        self.forces = Forces { cart, load, brake };
        let steps = passed_periods(cycle).min((CAUGHT_UP_MAX / self.steps).max(1)) * self.steps;
        for _ in 0..steps {
            self.step(self.forces);
        }
        for (at, number) in self.state.iter().enumerate() {
            io.write::<Real>(SHOWN + at).value = *number;
            io.signal(at)[0] = *number;
        }
        io.signal(AT_END)[0] = match self.state[POSITION] {
            lower if lower <= -self.end_m => 1.0,
            upper if upper >= self.end_m => 2.0,
            _ => 0.0,
        };
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        let (forces, state) = (self.forces, self.state);
        *self = CartPendulum { forces, state, ..CartPendulum::of(parameters)? };
        Ok(())
    }

    fn at_rest(&self) -> bool {
        let [_, velocity, angle, angular_velocity] = self.state;
        // The square of the speed that the load will have at its lowest point.
        let fall = 2.0 * self.gravity * self.rope_m * (1.0 - angle.cos());
        let swing = (self.rope_m * angular_velocity).powi(2) + fall;
        let hangs = velocity.abs() < REST_M_PER_S && swing < REST_M_PER_S * REST_M_PER_S;
        hangs || self.forces.brake > 0.0 && self.motion(self.forces) == CartMotion::Held
    }
}

impl CartPendulum {
    /// The fastest rate at which the state changes by itself, 1/s: from the swing and both
    /// frictions.
    fn pace(&self) -> f64 {
        let both = 1.0 + self.load_kg / self.cart_kg;
        let swing = self.swing_damping / (self.load_kg * self.rope_m * self.rope_m);
        (self.gravity / self.rope_m * both).sqrt() + self.cart_damping / self.cart_kg + swing * both
    }

    fn step(&mut self, forces: Forces) {
        let mut left_s = self.step_s;
        for _ in 0..CHANGES_MAX {
            left_s -= self.until_change(left_s, forces);
            if left_s <= 0.0 {
                return;
            }
        }
    }

    /// Advances until the cart comes to an end of its track, stops in its brake or leaves either,
    /// or until the given time is over. Returns how long that was.
    fn until_change(&mut self, time_s: f64, forces: Forces) -> f64 {
        let motion = self.motion(forces);
        let after = |time_s| self.after(time_s, forces, motion);
        let is_same = |state: &State| match motion {
            CartMotion::Held => self.is_held(state, forces),
            CartMotion::Rolls { brake } => {
                state[POSITION].abs() <= self.end_m && state[VELOCITY] * brake <= 0.0
            }
        };
        let all = after(time_s);
        if is_same(&all) {
            self.state = all;
            return time_s;
        }
        let (mut same_s, mut changed_s) = (0.0, time_s);
        for _ in 0..HALVES {
            let half_s = f64::midpoint(same_s, changed_s);
            let is_before = is_same(&after(half_s));
            *if is_before { &mut same_s } else { &mut changed_s } = half_s;
        }
        self.state = after(changed_s);
        if self.state[POSITION].abs() > self.end_m {
            self.stop();
        } else if motion != CartMotion::Held {
            self.state[VELOCITY] = 0.0;
        }
        changed_s
    }

    fn motion(&self, forces: Forces) -> CartMotion {
        if self.is_held(&self.state, forces) {
            return CartMotion::Held;
        }
        let velocity = self.state[VELOCITY];
        let ahead = if velocity == 0.0 { self.push(&self.state, forces) } else { velocity };
        let brake = if forces.brake > 0.0 { -forces.brake.copysign(ahead) } else { 0.0 };
        CartMotion::Rolls { brake }
    }

    /// Whether the cart stands still, pressed against an end of its track or held by its brake.
    fn is_held(&self, state: &State, forces: Forces) -> bool {
        let [position, velocity, ..] = *state;
        if velocity != 0.0 {
            return false;
        }
        let push = self.push(state, forces);
        let is_pressed = position.abs() >= self.end_m && push * position.signum() >= 0.0;
        is_pressed || forces.brake > 0.0 && push.abs() <= forces.brake
    }

    /// The end of the track takes all speed from the cart. It acts on the load only through the
    /// rope, so the load keeps its speed across the rope.
    fn stop(&mut self) {
        let [position, velocity, angle, angular_velocity] = &mut self.state;
        *angular_velocity += *velocity * angle.cos() / self.rope_m;
        *velocity = 0.0;
        *position = self.end_m.copysign(*position);
    }

    /// The force that friction of the swing puts across the rope, N.
    fn rub(&self, state: &State) -> f64 {
        self.swing_damping * state[RATE] / self.rope_m
    }

    /// The force on the cart without its brake, N. As great a force would hold the cart.
    fn push(&self, state: &State, forces: Forces) -> f64 {
        let [_, velocity, angle, angular_velocity] = *state;
        let (sin, cos) = angle.sin_cos();
        let across = self.load_kg * self.gravity * sin + self.rub(state) - forces.load * cos;
        let along = self.load_kg * self.rope_m * angular_velocity * angular_velocity * sin;
        let ahead = forces.cart + forces.load - self.cart_damping * velocity;
        ahead + along + across * cos
    }

    /// The change of the state per second.
    fn rates(&self, state: &State, forces: Forces, motion: CartMotion) -> State {
        let [_, velocity, angle, angular_velocity] = *state;
        let (sin, cos) = angle.sin_cos();
        let (load_kg, rope_m) = (self.load_kg, self.rope_m);
        let acceleration = match motion {
            CartMotion::Held => 0.0,
            CartMotion::Rolls { brake } => {
                (self.push(state, forces) + brake) / (self.cart_kg + load_kg * sin * sin)
            }
        };
        let wind = (forces.load * cos - self.rub(state)) / load_kg;
        let swing = wind - self.gravity * sin - acceleration * cos;
        [velocity, acceleration, angular_velocity, swing / rope_m]
    }

    /// The state after some time: a step of the classic method of Runge and Kutta.
    fn after(&self, time_s: f64, forces: Forces, motion: CartMotion) -> State {
        let rates = |state: &State| self.rates(state, forces, motion);
        let half_s = time_s / 2.0;
        let one = rates(&self.state);
        let two = rates(&moved(&self.state, &one, half_s));
        let three = rates(&moved(&self.state, &two, half_s));
        let four = rates(&moved(&self.state, &three, time_s));
        let sum = std::array::from_fn(|at| one[at] + 2.0 * (two[at] + three[at]) + four[at]);
        moved(&self.state, &sum, time_s / 6.0)
    }
}

fn moved(state: &State, rates: &State, time_s: f64) -> State {
    std::array::from_fn(|at| state[at] + rates[at] * time_s)
}

#[cfg(test)]
mod tests;
