//! Kind `path_planner`: where the tool shall be, cycle by cycle, and whether it is there.

use std::f64::consts::FRAC_PI_2;

use rs_opw_kinematics::glam::DVec3;
use rs_opw_kinematics::kinematic_traits::Pose;
use sinew_runtime::catalogue::{Direction, Kind, Parameter, ParameterType, Port, RunsIn, Signal};
use sinew_runtime::{Cycle, Fault, Fresh, Io, Make, Message, Node, NodeEntry, Parameters, fault};

use super::arm;
use super::kinematics::{Joints, Solver};
use super::messages::{
    AxisFeedback, CartesianTarget, FEEDBACK_OPERATIONAL, FEEDBACK_VALID, TARGET_MOVING,
};
use super::path;
use super::path::profile::{Bounds, Motion};

const FEEDBACK: usize = 0;
const OUT: usize = 1;

const TRACKING_ERROR: usize = 0;
const PATH_POSITION: usize = 1;
const PATH_SPEED: usize = 2;
const LAP: usize = 3;
const TARGET: usize = 4;
const ACTUAL: usize = 5;

/// Targets that are kept until the feedback answers them; what is older is a fault.
const HISTORY: usize = 256;

/// Most poses that are tried on the arm before the first cycle. A path that takes longer is tried
/// in wider steps, so that checking a graph stays quick; `ik` still looks at every target.
const TRIED_MAX: f64 = 20_000.0;

/// Widest of these steps: in this time no joint turns so far that another branch becomes nearer.
const TRIED_STEP_S_MAX: f64 = 0.1;

/// Longest way from home and once around. A path that takes longer is a mistake of units.
const DURATION_S_MAX: f64 = 24.0 * 3600.0;

/// Periods in a row without feedback that do not matter: a frame may be late. After more the path
/// waits, so that the target does not run away from an arm that does not hear it.
const SILENT_MAX: u64 = 2;

/// Time in which a path that had to wait comes back to its speed.
const RESUME_S: f64 = 0.05;

/// Joints slower than this stand still: well above the noise of a drive that holds its place.
const STILL_RAD_PER_S: f64 = 0.005;

const fn number(
    name: &'static str,
    doc: &'static str,
    unit: &'static str,
    (min, max): (f64, f64),
    default: &'static str,
) -> Parameter {
    Parameter { name, doc, unit, ty: ParameterType::Number { min, max }, default: Some(default) }
}

const fn signal(name: &'static str, doc: &'static str, unit: &'static str, count: usize) -> Signal {
    Signal { name, doc, unit, count, labels: &[] }
}

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "path_planner",
    runs_in: RunsIn::Realtime,
    doc: "Moves the tool along a path from a file, limited in speed, acceleration and jerk. Waits \
          at home until the drives are enabled, goes straight to the first waypoint, then around. \
          Stops at corners; passes where direction, curvature and rate of turn agree. Lost cycles \
          make no jump; while there is no feedback the path waits. Stops the graph when the arm is \
          further from its target than allowed, and when all laps are done. The whole path is \
          tried on the arm before the first cycle.",
    ports: &[
        Port {
            name: "feedback",
            doc: "What the drives report, to watch them by.",
            direction: Direction::In,
            message: AxisFeedback::TYPE,
            optional: false,
            safe: &[],
        },
        Port {
            name: "out",
            doc: "Pose of the flange in the arm's base frame, one per cycle.",
            direction: Direction::Out,
            message: CartesianTarget::TYPE,
            optional: false,
            safe: &[],
        },
    ],
    parameters: &[
        Parameter {
            name: "path",
            doc: "Waypoints: .csv, or G-code in .gcode, .nc or .ngc.",
            unit: "",
            ty: ParameterType::Path,
            default: None,
        },
        arm::ARM,
        arm::HOME_DEG,
        arm::SINGULARITY_DEG,
        arm::SHOULDER_M,
        Parameter {
            name: "laps",
            doc: "How often to go around; 0 means until stopped. With more than one lap the tool \
                  goes back from the last waypoint to the first.",
            unit: "",
            ty: ParameterType::Integer { min: 0, max: 1_000_000_000 },
            default: Some("1"),
        },
        Parameter {
            name: "work_origin_mm",
            doc: "Where the zero of a G-code program lies in the arm's base frame.",
            unit: "mm",
            ty: ParameterType::Numbers { count: 3, min: -10_000.0, max: 10_000.0 },
            default: Some("[0, 0, 0]"),
        },
        number("speed_mm_per_s", "Greatest speed along the path.", "mm/s", (0.1, 10_000.0), "250"),
        number("acceleration_mm_per_s2", "Greatest acceleration.", "mm/s2", (1.0, 1e5), "2000"),
        number("jerk_mm_per_s3", "Greatest jerk.", "mm/s3", (10.0, 1e7), "20000"),
        number("turn_speed_deg_per_s", "Greatest speed of turn.", "deg/s", (0.1, 1000.0), "90"),
        number(
            "turn_acceleration_deg_per_s2",
            "Greatest acceleration of turn.",
            "deg/s2",
            (1.0, 1e5),
            "500",
        ),
        number("turn_jerk_deg_per_s3", "Greatest jerk of turn.", "deg/s3", (10.0, 1e7), "5000"),
        number(
            "following_mm",
            "Stop when the flange is further than this from its target.",
            "mm",
            (0.001, 1000.0),
            "2",
        ),
        number(
            "following_deg",
            "Stop when the flange is turned further than this from its target.",
            "deg",
            (0.001, 180.0),
            "1",
        ),
    ],
    signals: &[
        signal(
            "tracking_error_m",
            "From the flange to the target before the frame that came back; lost frames show here.",
            "m",
            1,
        ),
        signal("path_position_m", "Way since the start of the lap.", "m", 1),
        signal("path_speed_m_per_s", "Speed along the path.", "m/s", 1),
        signal("lap", "The lap under way; 0 before the first.", "", 1),
        signal("target_m", "Place of the flange as told: x, y, z.", "m", 3),
        signal("actual_m", "Place of the flange by the encoders: x, y, z.", "m", 3),
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make: Make::Cyclic(make), safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let solver = arm::solver(parameters)?;
    let joints = arm::home(parameters, &solver)?;
    let home = solver.forward(&joints);
    let origin = DVec3::from_slice(parameters.numbers("work_origin_mm")) * 1e-3;
    let name = parameters.text("path");
    let moves = path::read(&parameters.path("path"), name, &home, origin)?;
    let laps = parameters.integer("laps") as u64;
    let mut motion = Motion::new(home, &moves, laps, &bounds(parameters))
        .map_err(|error| fault!("{name}: {error}"))?;
    try_out(&mut motion, &solver, &joints, parameters.period_ns as f64 * 1e-9)
        .map_err(|error| fault!("{name}:{error}"))?;
    motion.rewind();
    Ok(Box::new(Planner {
        solver,
        motion,
        phase: Phase::Waiting,
        following_m: parameters.number("following_mm") * 1e-3,
        following_rad: parameters.number("following_deg").to_radians(),
        silent: 0,
        pace: 1.0,
        sequence: 0,
        history: [home; HISTORY],
    }))
}

fn bounds(parameters: &Parameters<'_>) -> Bounds {
    let metres = |name| parameters.number(name) * 1e-3;
    let radians = |name| parameters.number(name).to_radians();
    Bounds {
        speed_m_per_s: metres("speed_mm_per_s"),
        acceleration_m_per_s2: metres("acceleration_mm_per_s2"),
        jerk_m_per_s3: metres("jerk_mm_per_s3"),
        turn_speed_rad_per_s: radians("turn_speed_deg_per_s"),
        turn_acceleration_rad_per_s2: radians("turn_acceleration_deg_per_s2"),
        turn_jerk_rad_per_s3: radians("turn_jerk_deg_per_s3"),
    }
}

/// Goes from home once around with the solver that `ik` uses. The error begins with the line.
fn try_out(
    motion: &mut Motion,
    solver: &Solver,
    home: &Joints,
    period_s: f64,
) -> Result<(), Fault> {
    let duration_s = motion.duration_s();
    if duration_s > DURATION_S_MAX {
        let line = motion.place().line;
        let hours = duration_s / 3600.0;
        return Err(fault!("{line}: the path takes {hours:.0} h; at most 24; raise its speeds"));
    }
    let step_s = (duration_s / TRIED_MAX).min(TRIED_STEP_S_MAX).max(period_s);
    let mut joints = *home;
    // The first lap is enough: the others pass the same places.
    while !motion.is_done() && motion.lap() < 2 {
        motion.advance(step_s);
        let place = motion.place();
        joints = solver.follow(&place.pose, &joints, step_s).map_err(|trouble| {
            let [x, y, z] = (place.pose.translation * 1e3).to_array();
            fault!("{}: at x {x:.1} y {y:.1} z {z:.1} mm: {trouble}", place.line)
        })?;
    }
    Ok(())
}

/// What the planner is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// For the drives, at home.
    Waiting,
    Moving,
    /// For the arm, at the end.
    Settling,
}

struct Planner {
    solver: Solver,
    motion: Motion,
    phase: Phase,
    following_m: f64,
    following_rad: f64,
    /// Cycles in a row without feedback.
    silent: u64,
    /// Share of its speed that the path has, 0 to 1.
    pace: f64,
    /// Of the last target.
    sequence: u64,
    /// Poses of the last targets, by sequence.
    history: [Pose; HISTORY],
}

impl Node for Planner {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let feedback = *io.read::<AxisFeedback>(FEEDBACK);
        let heard = io.fresh(FEEDBACK) == Fresh::New && feedback.flags & FEEDBACK_VALID != 0;
        if heard && !cycle.stopping {
            self.watch(io, &feedback)?;
        }
        if !cycle.stopping {
            self.proceed(&feedback, heard, cycle);
        }
        self.send(io);
        Ok(())
    }
}

impl Planner {
    /// Compares the arm with the target that it had been told to reach by then.
    fn watch(&self, io: &mut Io<'_>, feedback: &AxisFeedback) -> Result<(), Fault> {
        let actual = self.solver.forward(&feedback.position_rad);
        io.signal(ACTUAL).copy_from_slice(&actual.translation.to_array());
        if feedback.flags & FEEDBACK_OPERATIONAL == 0 || feedback.sequence == 0 {
            return Ok(()); // the drives had no target yet
        }
        let behind = self.sequence.saturating_sub(feedback.sequence);
        if behind >= HISTORY as u64 {
            return Err(fault!(
                "the feedback answers a target of {behind} cycles ago, at most \
                 {HISTORY} are kept; look at the links to and from the drives"
            ));
        }
        let target = self.history[feedback.sequence as usize % HISTORY];
        let error_m = (actual.translation - target.translation).length();
        let error_rad = angle_between(&actual, &target);
        io.signal(TRACKING_ERROR)[0] = error_m;
        if error_m > self.following_m {
            return Err(fault!(
                "following error {:.3} mm exceeds following_mm {:.3}; lower the \
                 path speed or raise following_mm",
                error_m * 1e3,
                self.following_m * 1e3
            ));
        }
        if error_rad > self.following_rad {
            return Err(fault!(
                "following error {:.3} deg exceeds following_deg {:.3}; lower the \
                 turn speed or raise following_deg",
                error_rad.to_degrees(),
                self.following_rad.to_degrees()
            ));
        }
        Ok(())
    }

    fn proceed(&mut self, feedback: &AxisFeedback, heard: bool, cycle: &Cycle) {
        match self.phase {
            Phase::Waiting => {
                if heard && feedback.flags & FEEDBACK_OPERATIONAL != 0 {
                    self.phase = Phase::Moving;
                }
            }
            Phase::Moving => {
                self.silent = if heard { 0 } else { self.silent + 1 };
                let waits = self.silent.max(cycle.skipped) > SILENT_MAX;
                let more = cycle.period_s() / RESUME_S;
                self.pace = if waits { 0.0 } else { (self.pace + more).min(1.0) };
                self.motion.advance(cycle.period_s() * self.pace);
                if self.motion.is_done() {
                    self.phase = Phase::Settling;
                }
            }
            Phase::Settling => {
                let still = |speed: &f64| speed.abs() < STILL_RAD_PER_S;
                if heard && feedback.velocity_rad_per_s.iter().all(still) {
                    cycle.finish();
                }
            }
        }
    }

    fn send(&mut self, io: &mut Io<'_>) {
        let place = self.motion.place();
        self.sequence += 1;
        self.history[self.sequence as usize % HISTORY] = place.pose;
        let speed_m_per_s = place.speed_m_per_s * self.pace;
        let target = io.write::<CartesianTarget>(OUT);
        target.set_pose(&place.pose);
        target.path_speed_m_per_s = speed_m_per_s;
        target.sequence = self.sequence;
        target.flags = if self.phase == Phase::Moving { TARGET_MOVING } else { 0 };
        io.signal(PATH_POSITION)[0] = place.position_m;
        io.signal(PATH_SPEED)[0] = speed_m_per_s;
        io.signal(LAP)[0] = self.motion.lap() as f64;
        io.signal(TARGET).copy_from_slice(&place.pose.translation.to_array());
    }
}

/// Angle between two orientations; exact for small ones, where the cosine says little.
fn angle_between(a: &Pose, b: &Pose) -> f64 {
    let turn = a.rotation.inverse() * b.rotation;
    let half = turn.xyz().length().atan2(turn.w.abs());
    2.0 * half.min(FRAC_PI_2)
}

#[cfg(test)]
mod tests;
