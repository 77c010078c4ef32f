//! A driven left and right wheel: how fast they turn, and how that moves the base on them.

use sinew_core::Parameters;
use sinew_core::catalogue::{Parameter, number};

/// Parameter: radius of a wheel.
pub(crate) const RADIUS_M: Parameter =
    number("wheel_radius_m", "Radius of a wheel.", "m", (1e-3, 10.0), "0.05").tunable();
/// Parameter: distance between the wheels.
pub(crate) const TRACK_M: Parameter =
    number("track_m", "From one wheel to the other.", "m", (1e-3, 10.0), "0.4").tunable();
/// Parameter: greatest speed of a wheel.
pub(crate) const SPEED_MAX: Parameter =
    number("wheel_speed_rad_per_s", "Greatest speed.", "rad/s", (1e-3, 1e4), "40").tunable();
/// Parameter: greatest acceleration of a wheel.
pub(crate) const ACCELERATION_MAX: Parameter =
    number("wheel_acceleration_rad_per_s2", "Greatest change.", "rad/s2", (1e-3, 1e6), "100")
        .tunable();

/// Distance between the wheels, and their radius.
#[derive(Clone, Copy)]
pub(crate) struct Axle {
    pub(crate) radius_m: f64,
    pub(crate) track_m: f64,
}

impl Axle {
    /// From [`RADIUS_M`] and [`TRACK_M`].
    pub(crate) fn of(parameters: &Parameters<'_>) -> Axle {
        Axle {
            radius_m: parameters.number("wheel_radius_m"),
            track_m: parameters.number("track_m"),
        }
    }

    /// How far the base moves and turns while the left and the right wheel turn by these angles, m
    /// and rad. For wheel speeds, how fast.
    pub(crate) fn motion(&self, wheels_rad: [f64; 2]) -> (f64, f64) {
        let [left, right] = wheels_rad.map(|rad| rad * self.radius_m);
        (f64::midpoint(left, right), (right - left) / self.track_m)
    }

    /// How fast the wheels turn at this speed of the base, m/s and rad/s.
    pub(crate) fn wheels(&self, speed_m_per_s: f64, turn_rad_per_s: f64) -> [f64; 2] {
        let around = turn_rad_per_s * self.track_m / 2.0;
        [speed_m_per_s - around, speed_m_per_s + around].map(|speed| speed / self.radius_m)
    }
}

/// Both wheels, with what drives them.
pub(crate) struct DrivenWheels {
    pub(crate) axle: Axle,
    /// Greatest speed of a wheel, rad/s.
    pub(crate) speed_max: f64,
    /// Greatest acceleration of a wheel, rad/s2.
    acceleration_max: f64,
    /// How far the left and the right wheel have turned.
    pub(crate) turned_rad: [f64; 2],
    /// Speeds of the wheels, rad/s.
    pub(crate) speeds: [f64; 2],
}

impl DrivenWheels {
    /// Wheels at rest.
    pub(crate) fn of(parameters: &Parameters<'_>) -> DrivenWheels {
        DrivenWheels {
            axle: Axle::of(parameters),
            speed_max: parameters.number("wheel_speed_rad_per_s"),
            acceleration_max: parameters.number("wheel_acceleration_rad_per_s2"),
            turned_rad: [0.0; 2],
            speeds: [0.0; 2],
        }
    }

    /// Takes other wheels, which have turned as far and turn as fast.
    pub(crate) fn tune(&mut self, parameters: &Parameters<'_>) {
        let DrivenWheels { turned_rad, speeds, .. } = *self;
        *self = DrivenWheels { turned_rad, speeds, ..DrivenWheels::of(parameters) };
    }

    /// Changes the speeds towards the wanted speeds, as far as possible in this time.
    pub(crate) fn drive(&mut self, wanted: [f64; 2], passed_s: f64) {
        let most = self.acceleration_max * passed_s;
        for (speed, wanted) in self.speeds.iter_mut().zip(wanted) {
            let wanted = wanted.clamp(-self.speed_max, self.speed_max);
            *speed += (wanted - *speed).clamp(-most, most);
        }
    }

    /// Turns the wheels for this time. Returns by how much.
    pub(crate) fn turn(&mut self, passed_s: f64) -> [f64; 2] {
        let turned_rad = self.speeds.map(|speed| speed * passed_s);
        for (sum, rad) in self.turned_rad.iter_mut().zip(turned_rad) {
            *sum += rad;
        }
        turned_rad
    }
}
