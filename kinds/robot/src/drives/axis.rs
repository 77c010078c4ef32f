//! One simulated axis: state machine, servo loop, rotor, encoder, brake.
//!
//! The rotor obeys J dω/dt = τ - b ω. The drive interpolates between targets, feeds speed and
//! acceleration forward and closes a critically damped position loop; its torque is limited. Not
//! modelled: gravity, coupling between axes, Coulomb friction, elasticity, the current loop.

use std::f64::consts::TAU;

use sinew_ethercat::cia402::{
    CYCLIC_SYNCHRONOUS_POSITION, DriveEvent, DriveState, STATUS_FOLLOWS, STATUS_REMOTE,
    STATUS_VOLTAGE, control,
};
use sinew_ethercat::frame::{Command, DriveFeedback};

/// Longest step of the servo loop: 8 kHz, as in usual drives.
const SERVO_S: f64 = 125e-6;

/// Undamped frequency of the position loop, rad/s.
const LOOP_RAD_PER_S: f64 = TAU * 40.0;

/// Periods without a command in which the target moves on as before, as one frame may be lost.
/// After them the axis holds the target.
const EXTRAPOLATED_MAX: u64 = 1;

/// Below this speed a ramp that has ended counts as standstill.
const STILL_RAD_PER_S: f64 = 1e-3;

/// The constant properties of an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Physics {
    pub(super) inertia_kg_m2: f64,
    pub(super) friction_n_m_s_per_rad: f64,
    pub(super) torque_max_n_m: f64,
    pub(super) brake_torque_n_m: f64,
    pub(super) quick_stop_rad_per_s2: f64,
    pub(super) following_rad: f64,
    pub(super) counts_per_rad: f64,
}

/// An axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    physics: Physics,
    pub(super) state: DriveState,
    control: u16,
    mode: i8,
    pub(super) position_rad: f64,
    pub(super) velocity_rad_per_s: f64,
    pub(super) torque_n_m: f64,
    /// Within one period the servo loop moves from this position ...
    reference_rad: f64,
    /// ... to this one.
    target_rad: f64,
    /// Speed of the reference in the period before; the ramp's speed while stopping.
    feed_rad_per_s: f64,
    /// Periods since the last command.
    unheard: u64,
}

impl Axis {
    pub(super) fn new(physics: Physics, position_rad: f64) -> Axis {
        Axis {
            physics,
            state: DriveState::NotReadyToSwitchOn,
            control: 0,
            mode: 0,
            position_rad,
            velocity_rad_per_s: 0.0,
            torque_n_m: 0.0,
            reference_rad: position_rad,
            target_rad: position_rad,
            feed_rad_per_s: 0.0,
            unheard: 0,
        }
    }

    /// The brake is open only while the motor can hold the axis.
    pub(super) fn brake_closed(&self) -> bool {
        !self.state.is_energised()
    }

    /// Whether the axis stands still with its brake closed.
    pub(super) fn at_rest(&self) -> bool {
        self.brake_closed() && self.velocity_rad_per_s == 0.0
    }

    /// Takes a command.
    pub(super) fn command(&mut self, command: &Command) {
        self.unheard = 0;
        let next = self.state.commanded(command.control, self.control);
        self.control = command.control;
        self.mode = if command.mode == CYCLIC_SYNCHRONOUS_POSITION { command.mode } else { 0 };
        self.enter(next);
        if self.state == DriveState::OperationEnabled && self.mode != 0 {
            self.target_rad = self.rad(command.target_counts);
        }
    }

    /// Lets periods pass whose commands were not seen. Their targets are taken to lead evenly to
    /// the target of `command`, the next command.
    pub(super) fn make_up(&mut self, command: &Command, periods: u64, period_s: f64) {
        let follows = self.state == DriveState::OperationEnabled
            && self.state.commanded(command.control, self.control) == self.state
            && command.mode == CYCLIC_SYNCHRONOUS_POSITION;
        let from = self.target_rad;
        let way = self.rad(command.target_counts) - from;
        for period in 1..=periods {
            if follows {
                self.target_rad = from + way * period as f64 / (periods + 1) as f64;
            }
            self.advance(period_s);
        }
    }

    fn rad(&self, counts: i32) -> f64 {
        f64::from(counts) / self.physics.counts_per_rad
    }

    /// No voltage (object 6007h: 2): the brake closes. A fault remains visible.
    pub(super) fn disable(&mut self) {
        self.enter(match self.state {
            DriveState::FaultReactionActive => self.state.after(DriveEvent::Stopped),
            state => state.commanded(control::DISABLE_VOLTAGE, self.control),
        });
    }

    fn enter(&mut self, next: DriveState) {
        if next == self.state {
            return;
        }
        match next {
            DriveState::QuickStopActive | DriveState::FaultReactionActive => {
                self.feed_rad_per_s = self.velocity_rad_per_s;
                self.reference_rad = self.position_rad;
            }
            _ => {
                self.feed_rad_per_s = 0.0;
                self.reference_rad = self.position_rad;
                self.target_rad = self.position_rad;
            }
        }
        self.state = next;
    }

    /// Lets one period pass, after a command or without one.
    pub(super) fn pass(&mut self, period_s: f64) {
        if (1..=EXTRAPOLATED_MAX).contains(&self.unheard) {
            self.target_rad += self.feed_rad_per_s * period_s;
        }
        self.unheard = self.unheard.saturating_add(1);
        self.advance(period_s);
    }

    /// Moves towards the target, or as the state demands.
    fn advance(&mut self, period_s: f64) {
        let steps = (period_s / SERVO_S).ceil().max(1.0);
        let step_s = period_s / steps;
        if self.state == DriveState::OperationEnabled {
            return self.follow(period_s, steps as u32, step_s);
        }
        for _ in 0..steps as u32 {
            // A ramp, and with it the state, may end in the middle of a period.
            match self.state {
                DriveState::QuickStopActive | DriveState::FaultReactionActive => self.ramp(step_s),
                _ => self.brake(step_s),
            }
        }
        self.enter(self.state.after(DriveEvent::Booted));
    }

    fn follow(&mut self, period_s: f64, steps: u32, step_s: f64) {
        let from = self.reference_rad;
        let feed = (self.target_rad - from) / period_s;
        let acceleration = (feed - self.feed_rad_per_s) / period_s;
        self.feed_rad_per_s = feed;
        for step in 0..steps {
            self.reference_rad = from + feed * step_s * f64::from(step);
            self.servo(acceleration, step_s);
        }
        self.reference_rad = self.target_rad;
        if (self.reference_rad - self.position_rad).abs() > self.physics.following_rad {
            self.enter(self.state.after(DriveEvent::Faulted));
        }
    }

    /// Brings the speed of the reference to zero, then leaves the state.
    fn ramp(&mut self, step_s: f64) {
        let less = self.physics.quick_stop_rad_per_s2 * step_s;
        let feed = self.feed_rad_per_s - self.feed_rad_per_s.clamp(-less, less);
        let acceleration = (feed - self.feed_rad_per_s) / step_s;
        self.servo(acceleration, step_s);
        self.reference_rad += feed * step_s;
        self.feed_rad_per_s = feed;
        if feed == 0.0 && self.velocity_rad_per_s.abs() < STILL_RAD_PER_S {
            self.enter(self.state.after(DriveEvent::Stopped));
        }
    }

    /// One step of the position loop and of the rotor (semi-implicit Euler).
    fn servo(&mut self, acceleration: f64, step_s: f64) {
        let p = self.physics;
        if self.brake_closed() {
            return self.brake(step_s);
        }
        let seen_rad = f64::from(self.counts()) / p.counts_per_rad;
        let pull = LOOP_RAD_PER_S * LOOP_RAD_PER_S * (self.reference_rad - seen_rad)
            + 2.0 * LOOP_RAD_PER_S * (self.feed_rad_per_s - self.velocity_rad_per_s);
        let torque = p.inertia_kg_m2 * (acceleration + pull)
            + p.friction_n_m_s_per_rad * self.feed_rad_per_s;
        self.torque_n_m = torque.clamp(-p.torque_max_n_m, p.torque_max_n_m);
        let drag = p.friction_n_m_s_per_rad * self.velocity_rad_per_s;
        self.velocity_rad_per_s += (self.torque_n_m - drag) / p.inertia_kg_m2 * step_s;
        self.position_rad += self.velocity_rad_per_s * step_s;
    }

    /// One step with the brake closed: dry friction, which can stop the rotor but never turn it.
    fn brake(&mut self, step_s: f64) {
        let less = self.physics.brake_torque_n_m / self.physics.inertia_kg_m2 * step_s;
        self.torque_n_m = 0.0;
        self.velocity_rad_per_s -= self.velocity_rad_per_s.clamp(-less, less);
        self.position_rad += self.velocity_rad_per_s * step_s;
        self.reference_rad = self.position_rad;
        self.target_rad = self.position_rad;
    }

    /// The position that the encoder shows.
    fn counts(&self) -> i32 {
        (self.position_rad * self.physics.counts_per_rad).round() as i32
    }

    /// The report of the axis when a frame passes.
    pub(super) fn report(&self) -> DriveFeedback {
        let follows = self.state == DriveState::OperationEnabled && self.mode != 0;
        DriveFeedback {
            status: self.state.status()
                | STATUS_VOLTAGE
                | STATUS_REMOTE
                | if follows { STATUS_FOLLOWS } else { 0 },
            mode: self.mode,
            position_counts: self.counts(),
            velocity_counts_per_s: (self.velocity_rad_per_s * self.physics.counts_per_rad).round()
                as i32,
        }
    }
}

#[cfg(test)]
mod tests;
