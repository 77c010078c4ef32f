//! A left and a right wheel that are driven: how fast they turn, and what that does to what stands
//! on them.

use sinew_core::Parameters;
use sinew_core::catalogue::{Parameter, number};

/// Parameter: how large a wheel is.
pub(crate) const RADIUS_M: Parameter =
    number("wheel_radius_m", "Radius of a wheel.", "m", (1e-3, 10.0), "0.05").tunable();
/// Parameter: how far apart they are.
pub(crate) const TRACK_M: Parameter =
    number("track_m", "From one wheel to the other.", "m", (1e-3, 10.0), "0.4").tunable();
/// Parameter: how fast one may turn.
pub(crate) const SPEED_MAX: Parameter =
    number("wheel_speed_rad_per_s", "Greatest speed.", "rad/s", (1e-3, 1e4), "40").tunable();
/// Parameter: how fast that may change.
pub(crate) const ACCELERATION_MAX: Parameter =
    number("wheel_acceleration_rad_per_s2", "Greatest change.", "rad/s2", (1e-3, 1e6), "100")
        .tunable();

/// How far apart the wheels are, and how large.
#[derive(Clone, Copy)]
pub(crate) struct Axle {
    pub(crate) radius_m: f64,
    pub(crate) track_m: f64,
}

impl Axle {
    /// By [`RADIUS_M`] and [`TRACK_M`].
    pub(crate) fn of(parameters: &Parameters<'_>) -> Axle {
        Axle {
            radius_m: parameters.number("wheel_radius_m"),
            track_m: parameters.number("track_m"),
        }
    }

    /// How far it goes and turns while the left and the right wheel turn by so much, m and rad; of
    /// speeds, how fast.
    pub(crate) fn motion(&self, wheels_rad: [f64; 2]) -> (f64, f64) {
        let [left, right] = wheels_rad.map(|rad| rad * self.radius_m);
        (f64::midpoint(left, right), (right - left) / self.track_m)
    }

    /// How fast the wheels turn for so many m/s and rad/s.
    pub(crate) fn wheels(&self, speed_m_per_s: f64, turn_rad_per_s: f64) -> [f64; 2] {
        let around = turn_rad_per_s * self.track_m / 2.0;
        [speed_m_per_s - around, speed_m_per_s + around].map(|speed| speed / self.radius_m)
    }
}

/// Both wheels, with what drives them.
pub(crate) struct DrivenWheels {
    pub(crate) axle: Axle,
    /// Of a wheel, rad/s.
    pub(crate) speed_max: f64,
    /// Of a wheel, rad/s2.
    acceleration_max: f64,
    /// How far the left and the right wheel have turned.
    pub(crate) turned_rad: [f64; 2],
    /// Of the wheels, rad/s.
    pub(crate) speeds: [f64; 2],
}

impl DrivenWheels {
    /// At rest.
    pub(crate) fn of(parameters: &Parameters<'_>) -> DrivenWheels {
        DrivenWheels {
            axle: Axle::of(parameters),
            speed_max: parameters.number("wheel_speed_rad_per_s"),
            acceleration_max: parameters.number("wheel_acceleration_rad_per_s2"),
            turned_rad: [0.0; 2],
            speeds: [0.0; 2],
        }
    }

    /// With other wheels, which have turned as far and turn as fast.
    pub(crate) fn tune(&mut self, parameters: &Parameters<'_>) {
        let DrivenWheels { turned_rad, speeds, .. } = *self;
        *self = DrivenWheels { turned_rad, speeds, ..DrivenWheels::of(parameters) };
    }

    /// Changes the speeds towards those that are wanted, as far as that goes in this time.
    pub(crate) fn drive(&mut self, wanted: [f64; 2], passed_s: f64) {
        let most = self.acceleration_max * passed_s;
        for (speed, wanted) in self.speeds.iter_mut().zip(wanted) {
            let wanted = wanted.clamp(-self.speed_max, self.speed_max);
            *speed += (wanted - *speed).clamp(-most, most);
        }
    }

    /// Turns them for this time; says by how much.
    pub(crate) fn turn(&mut self, passed_s: f64) -> [f64; 2] {
        let turned_rad = self.speeds.map(|speed| speed * passed_s);
        for (sum, rad) in self.turned_rad.iter_mut().zip(turned_rad) {
            *sum += rad;
        }
        turned_rad
    }
}
