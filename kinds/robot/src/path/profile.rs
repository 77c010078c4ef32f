//! When the tool is where: a jerk-limited profile for each segment, all computed before the first
//! cycle.
//!
//! The tool stops where two segments do not join smoothly. Smoothly means: same direction, same
//! curvature, same rate of turn. A straight line into an arc is a jump of acceleration, so the tool
//! stops there. Where segments join smoothly, it passes at the lower of both speeds, or slower if
//! the segments are too short for that. Computing a profile allocates, evaluating it does not.

use rs_opw_kinematics::kinematic_traits::Pose;
use rsruckig::prelude::{DataArrayOrVec, InputParameter, Ruckig, ThrowErrorHandler, Trajectory};
use sinew_core::{Fault, fault};

use super::Move;
use super::geometry::Segment;

/// What the tool may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToolLimits {
    /// m/s
    pub speed_m_per_s: f64,
    /// m/s²
    pub acceleration_m_per_s2: f64,
    /// m/s³
    pub jerk_m_per_s3: f64,
    /// rad/s
    pub turn_speed_rad_per_s: f64,
    /// rad/s²
    pub turn_acceleration_rad_per_s2: f64,
    /// rad/s³
    pub turn_jerk_rad_per_s3: f64,
}

/// Bounds of the path coordinate on one segment.
#[derive(Clone, Copy, Debug)]
struct Pace {
    speed: f64,
    acceleration: f64,
    jerk: f64,
}

impl Pace {
    fn of(segment: &Segment, bounds: &ToolLimits) -> Pace {
        let mut pace =
            Pace { speed: f64::INFINITY, acceleration: f64::INFINITY, jerk: f64::INFINITY };
        if segment.travels {
            pace = Pace::of_way(segment, bounds);
        }
        let rate = segment.turn_rate();
        if rate > 0.0 {
            pace.speed = pace.speed.min(bounds.turn_speed_rad_per_s / rate);
            pace.acceleration = pace.acceleration.min(bounds.turn_acceleration_rad_per_s2 / rate);
            pace.jerk = pace.jerk.min(bounds.turn_jerk_rad_per_s3 / rate);
        }
        pace
    }

    /// On an arc of curvature k the acceleration has components a and k v², the jerk has components
    /// j - k² v³ and 3 k v a (Frenet). The shares below keep the length of both within bounds.
    fn of_way(segment: &Segment, bounds: &ToolLimits) -> Pace {
        let mut pace = Pace {
            speed: segment.speed_m_per_s.min(bounds.speed_m_per_s),
            acceleration: bounds.acceleration_m_per_s2,
            jerk: bounds.jerk_m_per_s3,
        };
        let k = segment.curvature_per_m;
        if k > 0.0 {
            let half = std::f64::consts::FRAC_1_SQRT_2;
            pace.speed = pace
                .speed
                .min((pace.acceleration * half / k).sqrt())
                .min((pace.jerk / 3.0 / (k * k)).cbrt());
            pace.acceleration =
                (pace.acceleration * half).min(pace.jerk / 2.0 / (3.0 * k * pace.speed));
            pace.jerk /= 3.0;
        }
        pace
    }

    /// The way that a change between two speeds needs, with zero acceleration before and after it.
    fn way(&self, from: f64, to: f64) -> f64 {
        let change = (to - from).abs();
        let time = if change * self.jerk >= self.acceleration * self.acceleration {
            change / self.acceleration + self.acceleration / self.jerk
        } else {
            2.0 * (change / self.jerk).sqrt()
        };
        (from + to) / 2.0 * time
    }

    /// The greatest speed, at most `wanted`, from which `span` is enough to get to `other`.
    fn reachable(&self, span: f64, other: f64, wanted: f64) -> f64 {
        // A little less than the span, so that rounding does not make the profile impossible.
        let room = span * 0.999;
        if wanted <= other || self.way(wanted, other) <= room {
            return wanted;
        }
        let (mut low, mut high) = (other, wanted);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.way(middle, other) <= room { low = middle } else { high = middle }
        }
        low
    }
}

/// A segment with its profile.
#[derive(Clone, Debug)]
struct Stretch {
    segment: Segment,
    profile: Trajectory<1>,
    /// Way from the start of the lap.
    start_m: f64,
}

/// The state of the tool at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Pose of the flange.
    pub pose: Pose,
    /// Way since the start of the lap.
    pub position_m: f64,
    /// Speed along the way.
    pub speed_m_per_s: f64,
    /// Line of the file that leads there.
    pub line: usize,
}

/// Where on its route the tool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    /// From home to the first waypoint, then around the laps.
    Out,
    /// From the first waypoint back home: the way from home in reverse, which keeps to the same
    /// bounds and passes the same places.
    Back,
    /// All laps are done.
    Done,
    /// Home again.
    Home,
}

/// The timed path: first the way from home to the first waypoint, then the laps, and on request
/// back home.
#[derive(Clone, Debug)]
pub struct Motion {
    stretches: Vec<Stretch>,
    /// Index in `stretches` at which the lap begins: 1, or 0 if the arm's home is the first
    /// waypoint.
    lap_start: usize,
    /// Whether a lap ends where it began.
    closed: bool,
    /// Laps to go around; 0 means for ever.
    laps: u64,
    lap: u64,
    leg: Leg,
    /// Whether to go home from the first waypoint.
    leaves: bool,
    at: usize,
    /// Time since the start of the stretch, in the direction of the leg.
    time_s: f64,
}

impl Motion {
    /// Lays out and times a path. With more than one lap, or if the tool shall be able to leave it,
    /// the path is closed: it leads back to the first waypoint, at the speed of that waypoint.
    ///
    /// # Errors
    /// Nothing moves, or a profile cannot be found (which would be a bug: it names the line).
    pub fn new(
        home: Pose,
        moves: &[Move],
        laps: u64,
        can_leave: bool,
        bounds: &ToolLimits,
    ) -> Result<Motion, Fault> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut place = home;
        let closed = laps != 1 || can_leave;
        let closing = closed.then(|| moves[0]);
        let mut lead = None;
        for (index, step) in moves.iter().chain(&closing).enumerate() {
            let segment = Segment::new(place, step);
            place = step.to;
            if index == 0 { lead = segment } else { segments.extend(segment) }
        }
        if segments.is_empty() {
            return Err(fault!("line {}: all waypoints are the same pose", moves[0].line));
        }
        let mut stretches = Vec::with_capacity(segments.len() + 1);
        if let Some(lead) = lead {
            time(&[lead], bounds, &mut stretches)?;
        }
        let lap_start = stretches.len();
        time(&segments, bounds, &mut stretches)?;
        let lap = u64::from(lap_start == 0);
        let (leg, leaves, at, time_s) = (Leg::Out, false, 0, 0.0);
        Ok(Motion { stretches, lap_start, closed, laps, lap, leg, leaves, at, time_s })
    }

    /// Back to the start.
    pub fn rewind(&mut self) {
        (self.leg, self.leaves, self.at, self.time_s) = (Leg::Out, false, 0, 0.0);
        self.lap = u64::from(self.lap_start == 0);
    }

    /// Time of the way from home and of one lap, s.
    pub fn duration_s(&self) -> f64 {
        self.stretches.iter().map(|stretch| stretch.profile.duration).sum()
    }

    /// The places on each segment where the flange is furthest along x, y or z, waypoints among
    /// them, with the line of the file that leads there.
    pub fn extremes(&self) -> impl Iterator<Item = (usize, Pose)> {
        self.stretches.iter().flat_map(|stretch| {
            let segment = &stretch.segment;
            segment.extremes().into_iter().map(|s| (segment.line, segment.pose(s)))
        })
    }

    /// The present lap, from 1; 0 on the ways from home and to home.
    pub fn lap(&self) -> u64 {
        self.lap
    }

    /// Whether all laps are done.
    pub fn is_done(&self) -> bool {
        self.leg == Leg::Done
    }

    /// Whether the tool has left the path and is home again.
    pub fn is_home(&self) -> bool {
        self.leg == Leg::Home
    }

    /// Whether the tool shall go home when it comes to the first waypoint, from home or after a
    /// lap. A path that is not closed cannot be left after its lap, as that ends elsewhere.
    pub fn leave(&mut self, leaves: bool) {
        self.leaves = leaves;
    }

    /// Advances by a time. Does not allocate.
    pub fn advance(&mut self, time_s: f64) {
        self.time_s += time_s;
        while !self.is_done() && !self.is_home() {
            let duration = self.stretches[self.at].profile.duration;
            if self.time_s < duration {
                break;
            }
            self.time_s -= duration;
            self.turn_to_next();
        }
    }

    /// Goes on to the next stretch at the end of one.
    fn turn_to_next(&mut self) {
        let is_last = self.at + 1 == self.stretches.len();
        let at_first_waypoint = self.at < self.lap_start || (is_last && self.closed);
        if self.leg == Leg::Back {
            self.leg = Leg::Home;
        } else if self.leaves && at_first_waypoint {
            self.leg = if self.lap_start == 0 { Leg::Home } else { Leg::Back };
            (self.at, self.lap) = (0, 0);
        } else if !is_last {
            self.lap = self.lap.max(1);
            self.at += 1;
        } else if self.lap == self.laps {
            self.leg = Leg::Done;
        } else {
            self.lap += 1;
            self.at = self.lap_start;
        }
    }

    /// Where the tool is now. Does not allocate.
    pub fn place(&self) -> Place {
        let stretch = &self.stretches[self.at];
        let duration_s = stretch.profile.duration;
        // Home is where the first stretch begins.
        let time_s = match self.leg {
            Leg::Out => self.time_s,
            Leg::Back => duration_s - self.time_s,
            Leg::Done => duration_s,
            Leg::Home => 0.0,
        };
        let mut position = DataArrayOrVec::Stack([0.0]);
        let mut velocity = DataArrayOrVec::Stack([0.0]);
        stretch.profile.at_time(
            time_s,
            &mut Some(&mut position),
            &mut Some(&mut velocity),
            &mut None,
            &mut None,
            &mut None,
        );
        let travels = if stretch.segment.travels { 1.0 } else { 0.0 };
        Place {
            pose: stretch.segment.pose(position[0]),
            position_m: stretch.start_m + position[0] * travels,
            speed_m_per_s: velocity[0] * travels,
            line: stretch.segment.line,
        }
    }
}

/// Times segments from rest to rest and appends them.
fn time(
    segments: &[Segment],
    bounds: &ToolLimits,
    stretches: &mut Vec<Stretch>,
) -> Result<(), Fault> {
    let paces: Vec<Pace> = segments.iter().map(|segment| Pace::of(segment, bounds)).collect();
    let speeds = joint_speeds(segments, &paces);
    let mut ruckig = Ruckig::<1, ThrowErrorHandler>::new(None, 1e-3);
    let mut start_m = 0.0;
    for (i, segment) in segments.iter().enumerate() {
        let mut input = InputParameter::<1>::new(None);
        input.current_velocity[0] = speeds[i];
        input.target_velocity[0] = speeds[i + 1];
        input.target_position[0] = segment.span;
        input.max_velocity[0] = paces[i].speed;
        input.max_acceleration[0] = paces[i].acceleration;
        input.max_jerk[0] = paces[i].jerk;
        let mut profile = Trajectory::<1>::new(None);
        ruckig
            .calculate(&input, &mut profile)
            .map_err(|error| fault!("line {}: no profile: {error}", segment.line))?;
        stretches.push(Stretch { segment: *segment, profile, start_m });
        start_m += if segment.travels { segment.span } else { 0.0 };
    }
    Ok(())
}

/// Speeds at the start of each segment and at the end of the last. Computed from the end backwards,
/// then from the start forwards, so that each segment is long enough for its change of speed.
fn joint_speeds(segments: &[Segment], paces: &[Pace]) -> Vec<f64> {
    let count = segments.len();
    let mut speeds = vec![0.0; count + 1];
    for i in 1..count {
        if segments[i - 1].joins(&segments[i]) {
            speeds[i] = paces[i - 1].speed.min(paces[i].speed);
        }
    }
    for i in (0..count).rev() {
        speeds[i] = paces[i].reachable(segments[i].span, speeds[i + 1], speeds[i]);
    }
    for i in 0..count {
        speeds[i + 1] = paces[i].reachable(segments[i].span, speeds[i], speeds[i + 1]);
    }
    speeds
}
