//! Kind `path_planner`: the place where the tool shall be in each cycle, and a check that it is
//! there.

mod pacing;
mod wishes;

use std::f64::consts::FRAC_PI_2;
use std::fmt::Display;
use std::iter::once;

use pacing::Pacing;
use rs_opw_kinematics::glam::DVec3;
use rs_opw_kinematics::kinematic_traits::Pose;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal, number};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters, fault};
use wishes::Wishes;

use super::arm;
use super::kinematics::{Joints, Solver, Trouble};
use super::messages::{
    AxisFeedback, CartesianTarget, FEEDBACK_OPERATIONAL, FEEDBACK_VALID, PlannerCommand,
    TARGET_MOVING,
};
use super::path;
use super::path::profile::{Motion, ToolLimits};
use super::workspace::{self, Workspace};

const FEEDBACK: usize = 0;
const OUT: usize = 1;
const COMMAND: usize = 2;

const TRACKING_ERROR: usize = 0;
const PATH_POSITION: usize = 1;
const PATH_SPEED: usize = 2;
const LAP: usize = 3;
const TARGET: usize = 4;
const ACTUAL: usize = 5;
const PATH: usize = 6;
const PATH_CHOSEN: usize = 7;
const PAUSED: usize = 8;
const COMMANDS_IGNORED: usize = 9;

/// Count of targets that are kept until the feedback answers them. Feedback of an older one is a
/// fault.
const HISTORY: usize = 256;

/// How many targets ago the target may be that the feedback answers. Feedback of an older one still
/// says where the arm is, but not that it receives targets. On one machine an answer takes some 4
/// cycles.
const ANSWER_MAX: u64 = 64;

/// Most poses of a path that are tried on the arm before the first cycle. A path that takes longer
/// is tried in wider steps, so that checking a graph stays quick. `ik` still checks every target.
const TRIED_MAX: f64 = 20_000.0;

/// Widest of these steps: within it no joint turns so far that another branch becomes nearer.
const TRIED_STEP_S_MAX: f64 = 0.1;

/// Longest time from home and once around. A path that takes longer is a mistake of units.
const DURATION_S_MAX: f64 = 24.0 * 3600.0;

/// Periods in a row that may be lost, or without an answer of the arm: a frame may be late. After
/// more periods without an answer the path slows down as for a pause, so that the target does not
/// move far from an arm that may not receive it, or that is not near to it. After more lost periods
/// the path begins anew at a standstill, since drives without commands stop.
const SILENT_MAX: u64 = 2;

/// Most other paths to choose from. Each is tried on the arm before the first cycle.
const OTHER_PATHS_MAX: usize = 8;

/// The tool has left a path if its joints are at home again, within this, rad.
const HOME_TOLERANCE_RAD: f64 = 1e-6;

/// Joints slower than this count as still. It is well above the noise of a drive that holds its
/// place.
const STILL_RAD_PER_S: f64 = 0.005;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "path_planner",
    runs_in: RunsIn::Realtime,
    doc: "Moves the tool along a path from a file, limited in speed, acceleration and jerk. Waits \
          at home until the drives are enabled and answer its targets, goes straight to the first \
          waypoint, then around. Stops at corners; passes where direction, curvature and rate of \
          turn agree. Lost cycles make no jump: from one cycle to the next the target moves as \
          the limits allow in one period. While there is no feedback, or it answers none of the \
          last targets (sequence 0, as the arm is not near one), the path slows down as for a \
          pause. After lost cycles, in which the drives have come to a stop, it begins at a \
          standstill, as after a pause. Stops the graph when the arm is further from its target \
          than allowed, and when all laps are done. Every path is tried on the arm before the \
          first cycle. Users may choose another path, pause and go on, if 'command' is linked.",
    ports: &[
        Port::input("feedback", "What the drives report, to watch them by.", AxisFeedback::TYPE),
        Port::output(
            "out",
            "Pose of the flange in the arm's base frame, one per cycle.",
            CartesianTarget::TYPE,
        ),
        Port {
            optional: true,
            ..Port::input(
                "command",
                "Commands of users: another path, pause, go on. A command that cannot be carried \
                 out is counted and ignored.",
                PlannerCommand::TYPE,
            )
        },
    ],
    parameters: &[
        Parameter::new("path", ParameterType::Path)
            .doc("Waypoints: .csv, or G-code in .gcode, .nc or .ngc."),
        Parameter::new("other_paths", ParameterType::Paths { max: OTHER_PATHS_MAX }).or("[]").doc(
            "Paths that users may choose: after the lap under way the tool goes home and takes the \
             other path. 'path' has number 0, these begin at 1.",
        ),
        arm::ARM,
        arm::HOME_DEG,
        arm::SINGULARITY_DEG,
        arm::SHOULDER_M,
        workspace::FLOOR_MM,
        workspace::BOX_MIN_MM,
        workspace::BOX_MAX_MM,
        Parameter::new("laps", ParameterType::Integer { min: 0, max: 1_000_000_000 }).or("1").doc(
            "How often to go around, on whichever path; 0 means until stopped. With more than one \
             lap, or with other paths, the tool goes back from the last waypoint to the first.",
        ),
        Parameter::new(
            "work_origin_mm",
            ParameterType::Numbers { count_min: 3, count_max: 3, min: -10_000.0, max: 10_000.0 },
        )
        .or("[0, 0, 0]")
        .unit("mm")
        .doc("Where the zero of the G-code programs lies in the arm's base frame."),
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
        Signal::new(
            "tracking_error_m",
            "From the flange to the target before the frame that came back; lost frames show here.",
            "m",
            1,
        ),
        Signal::new("path_position_m", "Way since the start of the lap.", "m", 1),
        Signal::new("path_speed_m_per_s", "Speed along the path.", "m/s", 1),
        Signal::new("lap", "The lap under way; 0 on the ways from and to home.", "", 1),
        Signal::new("target_m", "Place of the flange as told: x, y, z.", "m", 3),
        Signal::new("actual_m", "Place of the flange by the encoders: x, y, z.", "m", 3),
        Signal::new("path", "Number of the path under way.", "", 1),
        Signal::new("path_chosen", "Number of the path that comes next, or is under way.", "", 1),
        Signal {
            labels: &["no", "yes"],
            ..Signal::new(
                "paused",
                "Whether a pause is asked for; the speed shows when the tool stands still.",
                "",
                1,
            )
        },
        Signal::new("commands_ignored", "Commands that could not be carried out.", "", 1),
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let solver = arm::solver(parameters)?;
    let joints = arm::home(parameters, &solver)?;
    let home = solver.forward(&joints);
    let workspace = Workspace::new(parameters, home.translation)?;
    let others = parameters.texts("other_paths").iter().map(String::as_str);
    let names = once(parameters.text("path")).chain(others);
    let paths = names.map(|name| read_path(name, parameters, (&solver, &workspace), &joints));
    Ok(Box::new(Planner {
        paths: paths.collect::<Result<_, _>>()?,
        current: 0,
        wishes: Wishes::default(),
        solver,
        phase: Phase::Waiting,
        following_m: parameters.number("following_mm") * 1e-3,
        following_rad: parameters.number("following_deg").to_radians(),
        silent: 0,
        lost: 0,
        pacing: Pacing::new(&bounds(parameters)),
        pace: 1.0,
        sequence: 0,
        history: [home; HISTORY],
    }))
}

/// Reads a path, times it, and tries it on the arm.
fn read_path(
    name: &str,
    parameters: &Parameters<'_>,
    (solver, workspace): (&Solver, &Workspace),
    joints: &Joints,
) -> Result<Motion, Fault> {
    let home = solver.forward(joints);
    let origin = DVec3::from_slice(parameters.numbers("work_origin_mm")) * 1e-3;
    let moves = path::read(&parameters.base.join(name), name, &home, origin)?;
    let laps = parameters.integer("laps") as u64;
    let can_leave = !parameters.texts("other_paths").is_empty();
    let bounds = pacing::reserved(&bounds(parameters));
    let mut motion = Motion::new(home, &moves, laps, can_leave, &bounds)
        .map_err(|error| fault!("{name}: {error}"))?;
    let period_s = parameters.period_ns as f64 * 1e-9;
    try_out(&mut motion, can_leave, (solver, workspace), joints, period_s)
        .map_err(|error| fault!("{name}:{error}"))?;
    motion.rewind();
    Ok(motion)
}

fn bounds(parameters: &Parameters<'_>) -> ToolLimits {
    let metres = |name| parameters.number(name) * 1e-3;
    let radians = |name| parameters.number(name).to_radians();
    ToolLimits {
        speed_m_per_s: metres("speed_mm_per_s"),
        acceleration_m_per_s2: metres("acceleration_mm_per_s2"),
        jerk_m_per_s3: metres("jerk_mm_per_s3"),
        turn_speed_rad_per_s: radians("turn_speed_deg_per_s"),
        turn_acceleration_rad_per_s2: radians("turn_acceleration_deg_per_s2"),
        turn_jerk_rad_per_s3: radians("turn_jerk_deg_per_s3"),
    }
}

/// Goes from home once around, and home again from a path that can be left, with the solver that
/// `ik` uses. The error begins with the line. If there are several errors, it is the most basic
/// one: first that the flange cannot be there, then that the arm cannot, then that a joint turns
/// too fast.
fn try_out(
    motion: &mut Motion,
    can_leave: bool,
    (solver, workspace): (&Solver, &Workspace),
    home: &Joints,
    period_s: f64,
) -> Result<(), Fault> {
    let duration_s = motion.duration_s();
    if duration_s > DURATION_S_MAX {
        let line = motion.place().line;
        let hours = duration_s / 3600.0;
        return Err(fault!("{line}: the path takes {hours:.0} h; at most 24; raise its speeds"));
    }
    for (line, pose) in motion.extremes() {
        workspace.check(pose.translation).map_err(|outside| at(line, &pose, &outside))?;
        solver.reach(&pose).map_err(|trouble| at(line, &pose, &trouble))?;
    }
    let step_s = (duration_s / TRIED_MAX).min(TRIED_STEP_S_MAX).max(period_s);
    let mut joints = *home;
    let (mut cannot_stand, mut too_fast) = (None, None);
    // The first lap is enough, as the others pass the same places.
    while !motion.is_done() && !motion.is_home() && motion.lap() < 2 {
        motion.leave(can_leave && motion.lap() == 1);
        motion.advance(step_s);
        let place = motion.place();
        let said = |trouble: Trouble| at(place.line, &place.pose, &trouble);
        if cannot_stand.is_some() {
            solver.reach(&place.pose).map_err(said)?;
            continue;
        }
        match solver.stand(&place.pose, &joints) {
            Ok(next) => {
                let speed = solver.check_speed(&next, &joints, step_s);
                too_fast = too_fast.or(speed.err().map(said));
                joints = next;
            }
            Err(trouble @ Trouble::Unreachable { .. }) => return Err(said(trouble)),
            Err(trouble) => cannot_stand = Some(said(trouble)),
        }
    }
    if let Some(fault) = cannot_stand.or(too_fast) {
        return Err(fault);
    }
    let turned = |joint: &usize| (joints[*joint] - home[*joint]).abs() > HOME_TOLERANCE_RAD;
    if motion.is_home()
        && let Some(joint) = (0..joints.len()).find(turned)
    {
        return Err(fault!(
            "{}: after a lap and the way home joint {} stands at {:.1} deg, it began at {:.1}; \
             where paths follow each other the tool must turn back as far as it turned",
            motion.place().line,
            joint + 1,
            joints[joint].to_degrees(),
            home[joint].to_degrees()
        ));
    }
    Ok(())
}

/// The error for a pose of the path, with its place.
fn at(line: usize, pose: &Pose, trouble: &dyn Display) -> Fault {
    let [x, y, z] = (pose.translation * 1e3).to_array();
    fault!("{line}: at x {x:.1} y {y:.1} z {z:.1} mm: {trouble}")
}

/// What the planner is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waiting at home until the drives follow its targets.
    Waiting,
    Moving,
    /// Waiting at the end until the arm is still.
    Settling,
}

struct Planner {
    /// The paths, indexed by their numbers.
    paths: Vec<Motion>,
    /// Number of the path under way.
    current: usize,
    wishes: Wishes,
    solver: Solver,
    phase: Phase,
    following_m: f64,
    following_rad: f64,
    /// Cycles in a row without an answer.
    silent: u64,
    /// Periods lost before this cycle, and before the cycles directly before it in which periods
    /// were lost.
    lost: u64,
    pacing: Pacing,
    /// The share of full speed at which the path is followed, 0 to 1.
    pace: f64,
    /// Number of the last target.
    sequence: u64,
    /// Poses of the last targets, by sequence.
    history: [Pose; HISTORY],
}

impl Node for Planner {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let feedback = *io.read::<AxisFeedback>(FEEDBACK);
        let heard = io.fresh(FEEDBACK) == Fresh::New && feedback.flags & FEEDBACK_VALID != 0;
        if !cycle.stopping {
            let answered = heard && self.watch(io, &feedback)?;
            if io.fresh(COMMAND) == Fresh::New {
                let obeys = self.phase != Phase::Settling;
                self.wishes.hear(io.read::<PlannerCommand>(COMMAND), self.paths.len(), obeys);
            }
            self.proceed(&feedback, answered, cycle);
        }
        self.send(io);
        Ok(())
    }
}

impl Planner {
    /// Compares the arm with the target that it had been told to reach by then. Returns whether the
    /// feedback answers one of the last targets.
    fn watch(&self, io: &mut Io<'_>, feedback: &AxisFeedback) -> Result<bool, Fault> {
        let actual = self.solver.forward(&feedback.position_rad);
        io.signal(ACTUAL).copy_from_slice(&actual.translation.to_array());
        let is_operational = feedback.flags & FEEDBACK_OPERATIONAL != 0;
        if !is_operational || feedback.sequence == 0 || feedback.sequence > self.sequence {
            return Ok(false); // no target of ours yet, or the arm is not near any
        }
        let behind = self.sequence - feedback.sequence;
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
        Ok(behind <= ANSWER_MAX)
    }

    fn proceed(&mut self, feedback: &AxisFeedback, answered: bool, cycle: &Cycle) {
        match self.phase {
            Phase::Waiting => {
                self.current = self.wishes.chosen;
                if answered {
                    self.phase = Phase::Moving;
                }
            }
            Phase::Moving => {
                self.silent = if answered { 0 } else { self.silent + 1 };
                self.lost =
                    if cycle.skipped == 0 { 0 } else { self.lost.saturating_add(cycle.skipped) };
                if self.lost > SILENT_MAX {
                    self.pacing.stand();
                }
                let waits = self.wishes.paused || self.silent > SILENT_MAX;
                self.pace = self.pacing.advance(cycle.period_s(), waits);
                self.go_on(cycle.period_s() * self.pace);
            }
            Phase::Settling => {
                let still = |speed: &f64| speed.abs() < STILL_RAD_PER_S;
                if answered && feedback.velocity_rad_per_s.iter().all(still) {
                    cycle.finish();
                }
            }
        }
    }

    /// Advances along the path, and from one path to the next.
    fn go_on(&mut self, time_s: f64) {
        let motion = &mut self.paths[self.current];
        motion.leave(self.wishes.chosen != self.current);
        motion.advance(time_s);
        if motion.is_done() {
            self.phase = Phase::Settling;
        } else if motion.is_home() {
            motion.rewind();
            self.current = self.wishes.chosen;
        }
    }

    fn send(&mut self, io: &mut Io<'_>) {
        let motion = &self.paths[self.current];
        let place = motion.place();
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
        io.signal(LAP)[0] = motion.lap() as f64;
        io.signal(TARGET).copy_from_slice(&place.pose.translation.to_array());
        io.signal(PATH)[0] = self.current as f64;
        io.signal(PATH_CHOSEN)[0] = self.wishes.chosen as f64;
        io.signal(PAUSED)[0] = f64::from(u8::from(self.wishes.paused));
        io.signal(COMMANDS_IGNORED)[0] = self.wishes.ignored as f64;
    }
}

/// Angle between two orientations. It is exact for small angles, where the cosine is not.
fn angle_between(a: &Pose, b: &Pose) -> f64 {
    let turn = a.rotation.inverse() * b.rotation;
    let half = turn.xyz().length().atan2(turn.w.abs());
    2.0 * half.min(FRAC_PI_2)
}

#[cfg(test)]
mod tests;
