//! Kind `rover`: a simulated round base on two wheels, on a plane with a fence and obstacles.

use rs_opw_kinematics::glam::DVec2;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, SafeValue, Signal};
use sinew_core::{
    Bool, Cycle, Fault, Flag, Io, Level, Message, Node, NodeEntry, Parameters, fault,
};

use super::messages::{BaseState, PlaneMap, Ranges, TwistTarget};
use super::planar::{self, PlanarPlace};
use super::wheels::{self, DrivenWheels};

mod plane;

use plane::Plane;

const IN: usize = 0;
const OUT: usize = 1;
const RANGES: usize = 2;
const BUMPED: usize = 3;
const PLANE: usize = 4;

/// Directions of the sensors: ahead, to the left and to the right, rad.
const LOOKS_RAD: [f64; 3] = [0.0, std::f64::consts::FRAC_PI_6, -std::f64::consts::FRAC_PI_6];
/// Way of the bumper, m: anything nearer than this touches it.
const BUMPER_M: f64 = 1e-3;
/// The most time by which the rover advances in a cycle. The rest of a longer gap is dropped, so
/// that catching up takes no longer than a cycle may.
const PASSED_S_MAX: f64 = 1.0;
/// Greatest length of a step, in radii of the rover: a way this short between two free places
/// cannot lead through an obstacle.
const STEP_RADII: f64 = 0.25;
/// The most radii that the rover may travel in a second.
const RADII_PER_S_MAX: f64 = 100.0;
/// Count of bisections of a step to find a contact: from 1 m to 1e-12 m.
const HALVINGS: u32 = 40;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "rover",
    runs_in: RunsIn::Realtime,
    doc: "A simulated round base with a left and a right wheel, on a plane with a fence and round \
          obstacles: the machine. As a 'wheeled_base' it obeys the x and the turn around z of a \
          twist, and each wheel has a greatest speed and acceleration. It never enters an \
          obstacle: at contact it stands, and can turn. Three sensors on its rim look ahead, and \
          30 degrees to the left and to the right of that. Slip shortens its way, not the turns of \
          its wheels. Where numbers are set while it runs it stays where it is, and its wheels \
          turn as fast as they did. 'out' has its true place; a node that must not know it uses \
          the wheels alone, as 'odometry' does.",
    ports: &[
        Port {
            safe: &[SafeValue { name: "stand", doc: "At rest: the wheels brake." }],
            ..Port::input("in", "Target speeds of the movement and the turn.", TwistTarget::TYPE)
        },
        Port::output("out", "Its place, and the turns of its wheels.", BaseState::TYPE).optional(),
        Port::output("ranges", "What the three sensors see, from its rim.", Ranges::TYPE)
            .optional(),
        Port::output("bumped", "Whether something touches it.", Flag::TYPE).optional(),
        Port::output("plane", "What stands on the plane.", PlaneMap::TYPE).optional(),
    ],
    parameters: &[
        // Not tunable: a larger wheel at the same wheel speed could be faster than the steps allow.
        Parameter { tunable: false, ..wheels::RADIUS_M },
        wheels::TRACK_M,
        wheels::SPEED_MAX,
        wheels::ACCELERATION_MAX,
        Parameter::new("radius_m", ParameterType::Number { min: 0.01, max: 100.0 })
            .or("0.22")
            .unit("m")
            .doc("Radius of the base."),
        planar::START_M,
        planar::START_TURN_RAD,
        plane::FENCE_M,
        plane::OBSTACLES,
        Parameter::new("range_max_m", ParameterType::Number { min: 0.01, max: 1000.0 })
            .or("3")
            .unit("m")
            .doc("Range of the sensors: for everything farther away they report this.")
            .tunable(),
        Parameter::new(
            "slip",
            ParameterType::Numbers { count_min: 2, count_max: 2, min: -0.5, max: 0.5 },
        )
        .or("[0, 0]")
        .doc("Slip of the left and the right wheel: 0.01 is 1 %."),
    ],
    signals: &[
        Signal::new("position_m", "Where it is: x and y.", "m", 2),
        Signal::new("turn_rad", "How it is turned.", "rad", 1),
        Signal::new("speed_m_per_s", "How fast it moves.", "m/s", 1),
        Signal::new("turn_speed_rad_per_s", "How fast it turns.", "rad/s", 1),
        Signal::new("range_m", "What it sees ahead, left and right.", "m", 3),
        Signal::new("gap_m", "From its rim to what is nearest, in any direction.", "m", 1),
        Signal { labels: &["no", "yes"], ..Signal::new("bumped", "Whether it is touched.", "", 1) },
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: Some(safe) };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let (wheels, radius_m) = (DrivenWheels::of(parameters), parameters.number("radius_m"));
    check_speed(&wheels, radius_m)?;
    let plane = Plane::of(parameters)?;
    let place = PlanarPlace::start(parameters);
    let gap_m = plane.gap_m(place.position_m, radius_m);
    if gap_m < 0.0 {
        let DVec2 { x, y } = place.position_m;
        let what = plane.nearest(place.position_m);
        let text = fault!(
            "start_m [{x}, {y}] with radius_m {radius_m} is {:.3} m inside {what}; move one of \
             them",
            -gap_m
        );
        return Err(text.at(parameters.span("start_m")));
    }
    let [left, right] = [0, 1].map(|wheel| 1.0 - parameters.numbers("slip")[wheel]);
    Ok(Box::new(Rover {
        wheels,
        grip: [left, right],
        radius_m,
        range_max_m: parameters.number("range_max_m"),
        map: plane.map(radius_m),
        plane,
        place,
        is_touched: false,
    }))
}

fn check_speed(wheels: &DrivenWheels, radius_m: f64) -> Result<(), Fault> {
    let (speed, most) = (wheels.axle.radius_m * wheels.speed_max, RADII_PER_S_MAX * radius_m);
    if speed > most {
        return Err(fault!(
            "wheels make {speed} m/s, more than {RADII_PER_S_MAX} times radius_m {radius_m} in a \
             second; lower wheel_speed_rad_per_s to {}",
            most / wheels.axle.radius_m
        ));
    }
    Ok(())
}

/// The safe value is a zeroed message, so nothing is to be written.
fn safe(_port: usize, _safe: usize, _message: &mut [u8]) {}

struct Rover {
    wheels: DrivenWheels,
    /// The part of the turn of the left and the right wheel that moves the rover; the rest is slip.
    grip: [f64; 2],
    radius_m: f64,
    range_max_m: f64,
    plane: Plane,
    map: PlaneMap,
    place: PlanarPlace,
    /// Whether the bumper was touched in the cycle before.
    is_touched: bool,
}

impl Node for Rover {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let target = io.read::<TwistTarget>(IN);
        let wanted = self.wheels.axle.wheels(target.linear_m_per_s[0], target.angular_rad_per_s[2]);
        let passed_s = cycle.passed_s().min(PASSED_S_MAX);
        self.wheels.drive(wanted, passed_s);
        self.advance(wanted, passed_s);
        self.show(io, cycle);
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.wheels.tune(parameters);
        self.range_max_m = parameters.number("range_max_m");
        check_speed(&self.wheels, self.radius_m)
    }

    fn at_rest(&self) -> bool {
        self.wheels.speeds == [0.0; 2]
    }
}

impl Rover {
    /// How far it moves and turns for these turns of its wheels; for wheel speeds, how fast.
    fn motion(&self, wheels: [f64; 2]) -> (f64, f64) {
        self.wheels.axle.motion([wheels[0] * self.grip[0], wheels[1] * self.grip[1]])
    }

    /// Advances by this time. The wheels shall turn at the speeds `wanted`.
    fn advance(&mut self, wanted: [f64; 2], mut left_s: f64) {
        let (speed_m_per_s, _) = self.motion(self.wheels.speeds);
        let steps = (speed_m_per_s.abs() * left_s / (self.radius_m * STEP_RADII)).ceil().max(1.0);
        let step_s = left_s / steps;
        for _ in 0..steps as u32 {
            let step_s = step_s.min(left_s);
            let done_s = self.free_s(step_s);
            self.go(done_s);
            left_s -= done_s;
            if done_s < step_s {
                self.lose_way(wanted, left_s);
                break;
            }
        }
    }

    /// Its place after this time.
    fn after(&self, passed_s: f64) -> PlanarPlace {
        let (way_m, turn_rad) = self.motion(self.wheels.speeds.map(|speed| speed * passed_s));
        self.place.after(way_m, turn_rad)
    }

    fn is_free(&self, place: &PlanarPlace) -> bool {
        self.plane.gap_m(place.position_m, self.radius_m) >= 0.0
    }

    /// The part of a step during which its way is free.
    fn free_s(&self, step_s: f64) -> f64 {
        if self.is_free(&self.after(step_s)) {
            return step_s;
        }
        let (mut free_s, mut blocked_s) = (0.0, step_s);
        for _ in 0..HALVINGS {
            let half_s = f64::midpoint(free_s, blocked_s);
            if self.is_free(&self.after(half_s)) {
                free_s = half_s;
            } else {
                blocked_s = half_s;
            }
        }
        free_s
    }

    /// Advances by a time in which the way is free.
    fn go(&mut self, passed_s: f64) {
        self.place = self.after(passed_s);
        self.wheels.turn(passed_s);
    }

    /// Something is in its way: it stops moving ahead or back, but it goes on turning for the rest
    /// of the time.
    fn lose_way(&mut self, wanted: [f64; 2], left_s: f64) {
        let around = |[left, right]: [f64; 2]| [(left - right) / 2.0, (right - left) / 2.0];
        self.wheels.speeds = around(self.wheels.speeds);
        self.wheels.drive(around(wanted), left_s);
        let turned_rad = self.wheels.turn(left_s);
        let (_, turn_rad) = self.motion(turned_rad);
        self.place = self.place.after(0.0, turn_rad);
    }

    fn show(&mut self, io: &mut Io<'_>, cycle: &Cycle) {
        let (speed_m_per_s, turn_rad_per_s) = self.motion(self.wheels.speeds);
        let state = io.write::<BaseState>(OUT);
        self.place.show(state);
        state.linear_m_per_s = [speed_m_per_s, 0.0, 0.0];
        state.angular_rad_per_s = [0.0, 0.0, turn_rad_per_s];
        state.wheel_position_rad = self.wheels.turned_rad;
        state.wheel_velocity_rad_per_s = self.wheels.speeds;

        let PlanarPlace { position_m, turn_rad } = self.place;
        let range_m = LOOKS_RAD.map(|look_rad| {
            let ray = DVec2::from_angle(turn_rad + look_rad);
            let away_m = self.plane.range_m(position_m, ray) - self.radius_m;
            away_m.clamp(0.0, self.range_max_m)
        });
        let gap_m = self.plane.gap_m(position_m, self.radius_m);
        let is_bumped = gap_m <= BUMPER_M;
        if is_bumped && !self.is_touched {
            let text = "touches something at x {:.2} m, y {:.2} m; see 'obstacles', 'fence_m'";
            cycle.log(Level::Warning, text, &position_m.to_array());
        }
        self.is_touched = is_bumped;
        io.write::<Ranges>(RANGES).range_m = range_m;
        *io.write::<Flag>(BUMPED) = Flag { value: Bool::from(is_bumped) };
        *io.write::<PlaneMap>(PLANE) = self.map;

        io.signal(0).copy_from_slice(&position_m.to_array());
        io.signal(1)[0] = turn_rad;
        io.signal(2)[0] = speed_m_per_s;
        io.signal(3)[0] = turn_rad_per_s;
        io.signal(4).copy_from_slice(&range_m);
        io.signal(5)[0] = gap_m;
        io.signal(6)[0] = f64::from(u8::from(is_bumped));
    }
}

#[cfg(test)]
mod tests;
