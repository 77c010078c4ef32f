//! Kind `path_follower`: drives a base on two wheels along points on a plane.
//!
//! Pure pursuit (Coulter, *Implementation of the Pure Pursuit Path Tracking Algorithm*,
//! CMU-RI-TR-92-01, 1992): it drives along the arc that leads from its present place and direction
//! to a goal on the path somewhat farther on.

use rs_opw_kinematics::glam::DVec2;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal, number};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters, fault};

use super::messages::{
    BaseState, FOLLOWER_ARRIVED, FOLLOWER_DRIVES, FOLLOWER_SLOWED, FOLLOWER_WAITS, PathPoints,
    PathProgress, Ranges, TwistTarget,
};
use super::planar::PlanarPlace;

mod track;

use track::Track;

const POSE: usize = 0;
const RANGES: usize = 1;
const OUT: usize = 2;
const PROGRESS: usize = 3;
const POINTS: usize = 4;

/// If the goal is farther to the side than this, it turns on the spot first, rad.
const TURN_FIRST_RAD: f64 = 1.0;
/// The same limit if its sensors leave it no speed: the obstacle ahead may not be on its way.
const TURN_FIRST_RAD_MIN: f64 = 0.1;
/// The share of its speed that it keeps when something is near beside its way.
const BESIDE: f64 = 0.3;
/// It searches the nearest place of the path up to this many lookaheads farther on.
const WINDOW: f64 = 2.0;
/// Once arrived it stays arrived until it is this many tolerances away from the end.
const STAYS: f64 = 2.0;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "path_follower",
    runs_in: RunsIn::Realtime,
    doc: "Drives along straight lines from point to point by pure pursuit: to a goal that is \
          'lookahead_m' farther on than the nearest place of the path, so it cuts corners by less \
          than that. It goes on where it left the path, even if another part of the path is \
          nearer. If the goal is beside or behind it, it turns on the spot. It brakes before the \
          end, and arrives within 'tolerance_m'. It stands still until the first message at \
          'pose', and at 'ranges' if that is linked. It does not avoid obstacles: it slows down if \
          its sensors see one, and stops in front of one. It does not limit its acceleration: link \
          a 'twist_limiter' behind it. Its numbers may be set while it runs; they act at once.",
    ports: &[
        Port::input("pose", "Place and speed of the base.", BaseState::TYPE),
        Port::input("ranges", "Free distances that its sensors measure.", Ranges::TYPE).optional(),
        Port::output("out", "How fast to move and turn, in every cycle.", TwistTarget::TYPE),
        Port::output("progress", "Progress on the path, in every cycle.", PathProgress::TYPE)
            .optional(),
        Port::output("points", "The path, in every cycle.", PathPoints::TYPE).optional(),
    ],
    parameters: &[
        Parameter::new("points", ParameterType::Yaml)
            .unit("m")
            .doc("The path: a list of [x, y], 2 to 64 of them."),
        Parameter::new("repeat", ParameterType::Bool)
            .or("false")
            .doc("Whether it goes on from the last point to the first."),
        number("speed_m_per_s", "Speed on the path.", "m/s", (1e-3, 100.0), "0.4").tunable(),
        number("lookahead_m", "Distance to the goal on the path.", "m", (1e-2, 100.0), "0.4")
            .tunable(),
        number(
            "deceleration_m_per_s2",
            "With which it brakes at the end.",
            "m/s2",
            (1e-3, 100.0),
            "0.3",
        )
        .tunable(),
        number("turn_speed_rad_per_s", "Greatest speed of turn.", "rad/s", (1e-3, 100.0), "1")
            .tunable(),
        number(
            "tolerance_m",
            "Distance to the end at which it has arrived.",
            "m",
            (1e-3, 10.0),
            "0.05",
        )
        .tunable(),
        number(
            "slow_m",
            "It slows down if an obstacle is nearer than this.",
            "m",
            (1e-2, 1000.0),
            "0.8",
        )
        .tunable(),
        number(
            "stop_m",
            "It stops if an obstacle ahead is nearer than this.",
            "m",
            (0.0, 1000.0),
            "0.15",
        )
        .tunable(),
    ],
    signals: &[
        Signal::new("goal_m", "The goal: x and y.", "m", 2),
        Signal::new("off_m", "Distance to the nearest place of the path.", "m", 1),
        Signal::new("left_m", "Distance along the path to its last point.", "m", 1),
        Signal {
            labels: &["waits", "drives", "slowed", "arrived"],
            ..Signal::new("state", "What it does.", "", 1)
        },
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let track = Track::of(parameters)?;
    Ok(Box::new(PathFollower {
        points: track.points(),
        track,
        pursuit: Pursuit::of(parameters)?,
        has_ranges: parameters.messages.iter().any(|(port, _)| *port == RANGES),
        way_m: 0.0,
        rounds: 0,
        has_arrived: false,
    }))
}

/// The parameters of its drive along the path.
struct Pursuit {
    speed_m_per_s: f64,
    lookahead_m: f64,
    deceleration_m_per_s2: f64,
    turn_speed_rad_per_s: f64,
    tolerance_m: f64,
    slow_m: f64,
    stop_m: f64,
}

impl Pursuit {
    fn of(parameters: &Parameters<'_>) -> Result<Pursuit, Fault> {
        let number = |name| parameters.number(name);
        let (slow_m, stop_m) = (number("slow_m"), number("stop_m"));
        if slow_m <= stop_m {
            let text = fault!("slow_m {slow_m} is not more than stop_m {stop_m}; raise slow_m");
            return Err(text.at(parameters.span("slow_m")));
        }
        let (lookahead_m, tolerance_m) = (number("lookahead_m"), number("tolerance_m"));
        if lookahead_m < tolerance_m {
            let text = fault!(
                "lookahead_m {lookahead_m} is less than tolerance_m {tolerance_m}; raise \
                 lookahead_m"
            );
            return Err(text.at(parameters.span("lookahead_m")));
        }
        Ok(Pursuit {
            speed_m_per_s: number("speed_m_per_s"),
            lookahead_m,
            deceleration_m_per_s2: number("deceleration_m_per_s2"),
            turn_speed_rad_per_s: number("turn_speed_rad_per_s"),
            tolerance_m,
            slow_m,
            stop_m,
        })
    }
}

struct PathFollower {
    track: Track,
    points: PathPoints,
    pursuit: Pursuit,
    /// Whether range sensors are linked.
    has_ranges: bool,
    /// How far along the path it is.
    way_m: f64,
    rounds: u32,
    has_arrived: bool,
}

/// Speed of movement and of turn.
type Twist = (f64, f64);

impl Node for PathFollower {
    fn update(&mut self, io: &mut Io<'_>, _cycle: &Cycle) -> Result<(), Fault> {
        let sees = match io.fresh(RANGES) {
            Fresh::None => (!self.has_ranges).then_some([f64::INFINITY; 3]),
            _ => Some(io.read::<Ranges>(RANGES).range_m),
        };
        let place = match io.fresh(POSE) {
            Fresh::None => None,
            _ => Some(PlanarPlace::of(io.read::<BaseState>(POSE))),
        };
        let mut goal_m = self.track.at(self.way_m);
        let (mut twist, mut state, mut off_m) = ((0.0, 0.0), FOLLOWER_WAITS, 0.0);
        if let (Some(place), Some(range_m)) = (place, sees) {
            off_m = self.find(place.position_m);
            goal_m = self.goal(off_m);
            (twist, state) = self.pursue(&place, goal_m, range_m);
        }
        let (speed_m_per_s, turn_rad_per_s) = twist;
        *io.write::<TwistTarget>(OUT) = TwistTarget {
            linear_m_per_s: [speed_m_per_s, 0.0, 0.0],
            angular_rad_per_s: [0.0, 0.0, turn_rad_per_s],
        };
        let left_m = self.track.length_m - self.way_m;
        *io.write::<PathProgress>(PROGRESS) = PathProgress {
            goal_m: goal_m.to_array(),
            way_m: self.way_m,
            left_m,
            rounds: self.rounds,
            state,
        };
        *io.write::<PathPoints>(POINTS) = self.points;
        io.signal(0).copy_from_slice(&goal_m.to_array());
        io.signal(1)[0] = off_m;
        io.signal(2)[0] = left_m;
        io.signal(3)[0] = f64::from(state);
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.pursuit = Pursuit::of(parameters)?;
        Ok(())
    }
}

impl PathFollower {
    /// Finds the nearest place of the path, from the last one on. Returns the distance to it.
    fn find(&mut self, at_m: DVec2) -> f64 {
        let (way_m, off_m) =
            self.track.nearest(at_m, self.way_m, WINDOW * self.pursuit.lookahead_m);
        // From farther away another place of the path may by chance be nearer.
        if off_m <= self.pursuit.lookahead_m {
            self.way_m = way_m;
            if self.track.repeats && self.way_m >= self.track.length_m {
                self.way_m -= self.track.length_m;
                self.rounds = self.rounds.saturating_add(1);
            }
        }
        at_m.distance(self.track.at(self.way_m))
    }

    /// The goal: ahead on the path, or back to the path if that is farther away than the lookahead.
    fn goal(&self, off_m: f64) -> DVec2 {
        let is_near = off_m <= self.pursuit.lookahead_m;
        self.track.at(if is_near { self.way_m + self.pursuit.lookahead_m } else { self.way_m })
    }

    fn pursue(&mut self, place: &PlanarPlace, goal_m: DVec2, range_m: [f64; 3]) -> (Twist, u32) {
        let end_m = (!self.track.repeats).then(|| self.end_m(place.position_m));
        let near_m = if self.has_arrived {
            self.pursuit.tolerance_m * STAYS
        } else {
            self.pursuit.tolerance_m
        };
        self.has_arrived = end_m.is_some_and(|end_m| end_m <= near_m);
        if self.has_arrived {
            return ((0.0, 0.0), FOLLOWER_ARRIVED);
        }
        let to_goal_m = DVec2::from_angle(-place.turn_rad).rotate(goal_m - place.position_m);
        let distance_m = to_goal_m.length();
        let free = self.free(range_m);
        if to_goal_m.to_angle().abs() > (TURN_FIRST_RAD * free).max(TURN_FIRST_RAD_MIN) {
            let turn_rad_per_s = self.pursuit.turn_speed_rad_per_s.copysign(to_goal_m.y);
            let state = if free < 1.0 { FOLLOWER_SLOWED } else { FOLLOWER_DRIVES };
            return ((0.0, turn_rad_per_s), state);
        }
        // Half a tolerance is a reserve, so that it arrives and does not come nearer for ever.
        let brakes = |end_m: f64| {
            (2.0 * self.pursuit.deceleration_m_per_s2
                * (end_m - self.pursuit.tolerance_m / 2.0).max(0.0))
            .sqrt()
        };
        let on_path = self.pursuit.speed_m_per_s.min(end_m.map_or(f64::INFINITY, brakes));
        let speed = on_path.min(self.pursuit.speed_m_per_s * free);
        let state = if speed < on_path { FOLLOWER_SLOWED } else { FOLLOWER_DRIVES };
        // The curvature of the arc through the goal: 2 y / d2.
        let curvature = 2.0 * to_goal_m.y / (distance_m * distance_m).max(f64::MIN_POSITIVE);
        let speed = speed.min(self.pursuit.turn_speed_rad_per_s / curvature.abs());
        let turn = speed * curvature;
        ((speed, turn), state)
    }

    /// Distance to the end, along the path or straight, whichever is longer.
    fn end_m(&self, at_m: DVec2) -> f64 {
        let left_m = self.track.length_m - self.way_m;
        left_m.max(at_m.distance(self.track.at(self.track.length_m)))
    }

    /// The share of its speed that the sensors leave it: 0 to 1.
    fn free(&self, [ahead_m, left_m, right_m]: [f64; 3]) -> f64 {
        let part = |m: f64| {
            ((m - self.pursuit.stop_m) / (self.pursuit.slow_m - self.pursuit.stop_m))
                .clamp(0.0, 1.0)
        };
        part(ahead_m).min(part(left_m.min(right_m)).max(BESIDE))
    }
}

#[cfg(test)]
mod tests;
