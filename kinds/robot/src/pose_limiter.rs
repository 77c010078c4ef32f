//! Kind `pose_limiter`: goes to poses of an untrusted source, such as another host, within the
//! limits of the arm.

mod motion;
mod outlook;

use motion::FlangeMotion;
use outlook::{Hindrance, Load, Outlook};
use rs_opw_kinematics::glam::DVec3;
use rs_opw_kinematics::kinematic_traits::Pose;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal, number};
use sinew_core::{Cycle, Fault, Fresh, Io, Level, Message, Node, NodeEntry, Parameters};

use super::arm;
use super::kinematics::{Joints, Solver, Trouble};
use super::limited::Limits;
use super::messages::{CartesianTarget, TARGET_MOVING};
use super::workspace::{self, Workspace};

const IN: usize = 0;
const OUT: usize = 1;

const BEHIND: usize = 0;
const HOLDS: usize = 1;
const REFUSED: usize = 2;
const TURN_BEHIND: usize = 3;
const LIMITED_BY: usize = 4;
const CUT_SHORT: usize = 5;

/// What may slow it down or hold it.
const LIMITS: &[&str] = &[
    "nothing",
    "joint 1",
    "joint 2",
    "joint 3",
    "joint 4",
    "joint 5",
    "joint 6",
    "wrist",
    "elbow",
    "shoulder",
    "reach",
    "floor or box",
];

/// The share of its greatest speed that the fastest joint is regulated to. It is a little less than
/// what the look ahead lets pass, so that joints seldom make it brake.
const LOAD: f64 = 0.85;
/// By this factor a cycle changes the pace for a load that is wrong by 1. With a load that rises by
/// a hundredth per cycle, as the default accelerations can make it, it stays within 0.05 of
/// [`LOAD`].
const GAIN: f64 = 0.2;
/// Least pace. If not even this one passes, it stands until the target changes.
const PACE_MIN: f64 = 1e-3;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "pose_limiter",
    runs_in: RunsIn::Realtime,
    doc: "Moves straight to the last pose that it got, limited in speed and acceleration, and \
          gives the target of the flange in every cycle. Until the first pose it stays at home. \
          Without a new pose for 'hold_after' it brakes and holds its place. A pose that is \
          outside the floor and the box, out of the arm's reach, or no pose as its quaternion is \
          no rotation, is counted and ignored. On the way no joint turns faster than nine tenths \
          of its limit or leaves its range: it slows down, and it brakes and holds before what \
          the arm cannot pass, such as a singularity. An 'ik' with the same parameters, in the \
          same domain, takes each of its targets. Speeds may be set while it runs; if it is \
          faster than a new one, it brakes. Accelerations may not: with a lower one it could no \
          longer stop in front of the floor. For targets that come from another host, or from a \
          service.",
    ports: &[
        Port::input("in", "Target pose of the flange.", CartesianTarget::TYPE),
        Port::output("out", "Where it shall be at the end of this cycle.", CartesianTarget::TYPE),
    ],
    parameters: &[
        arm::ARM,
        arm::HOME_DEG,
        arm::SINGULARITY_DEG,
        arm::SHOULDER_M,
        workspace::FLOOR_MM,
        workspace::BOX_MIN_MM,
        workspace::BOX_MAX_MM,
        number("speed_mm_per_s", "Greatest speed.", "mm/s", (0.1, 10_000.0), "500").tunable(),
        number("acceleration_mm_per_s2", "Greatest acceleration.", "mm/s2", (1.0, 1e5), "5000"),
        number("turn_speed_deg_per_s", "Greatest speed of turn.", "deg/s", (0.1, 1000.0), "120")
            .tunable(),
        number(
            "turn_acceleration_deg_per_s2",
            "Greatest acceleration of turn.",
            "deg/s2",
            (1.0, 1e5),
            "1000",
        ),
        number(
            "near_mm",
            "The feedback answers a pose once the target is this near to it, and turned as near \
             as 'near_deg' says. Less than the planner's following_mm.",
            "mm",
            (0.001, 10_000.0),
            "30",
        )
        .tunable(),
        number(
            "near_deg",
            "The same for the turn. Less than the planner's following_deg. A planner with default \
             speeds takes as long for it as for 'near_mm'.",
            "deg",
            (0.001, 180.0),
            "10",
        )
        .tunable(),
        Parameter::new(
            "hold_after",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 10_000_000_000 },
        )
        .or("100ms")
        .doc("Without a new pose for this long it brakes and holds its place."),
    ],
    signals: &[
        Signal::new("behind_m", "Distance from the target to the last pose that it got.", "m", 1),
        Signal {
            labels: &["no", "yes"],
            ..Signal::new("holds", "Whether it has no pose to go to.", "", 1)
        },
        Signal::new("refused", "Poses that the arm must not or cannot take.", "", 1),
        Signal::new("turn_behind_rad", "Turn from the target to that pose.", "rad", 1),
        Signal {
            labels: LIMITS,
            ..Signal::new("limited_by", "What slows it down on its way, or holds it.", "", 1)
        },
        Signal::new(
            "cut_short",
            "Times that it stopped at once, as it could not brake: a mistake of the limiter.",
            "",
            1,
        ),
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let solver = arm::solver(parameters)?;
    let joints = arm::home(parameters, &solver)?;
    let home = solver.forward(&joints);
    let workspace = Workspace::new(parameters, home.translation)?;
    let motion = FlangeMotion::new(home, limits(parameters));
    let period_s = parameters.period_ns as f64 * 1e-9;
    Ok(Box::new(PoseLimiter {
        outlook: Outlook::new(&solver, &workspace, (&motion, &joints), period_s)?,
        solver,
        workspace: workspace.reserved(),
        near: near(parameters),
        hold_after_ns: parameters.duration("hold_after").as_nanos() as u64,
        motion,
        joints,
        pace: 1.0,
        hindrance: None,
        told: false,
        held: None,
        goal: None,
        silent_ns: 0,
        refused: 0,
        cut_short: 0,
    }))
}

/// The limits of the place, m, and of the turn, rad.
fn limits(parameters: &Parameters<'_>) -> [Limits; 2] {
    let limits = |speed, acceleration| Limits {
        speed: parameters.number(speed),
        acceleration: parameters.number(acceleration),
    };
    [
        limits("speed_mm_per_s", "acceleration_mm_per_s2").scaled(1e-3),
        limits("turn_speed_deg_per_s", "turn_acceleration_deg_per_s2").scaled(1f64.to_radians()),
    ]
}

/// What counts as near: m and rad.
fn near(parameters: &Parameters<'_>) -> [f64; 2] {
    [parameters.number("near_mm") * 1e-3, parameters.number("near_deg").to_radians()]
}

struct PoseLimiter {
    outlook: Outlook,
    solver: Solver,
    workspace: Workspace,
    near: [f64; 2],
    hold_after_ns: u64,
    /// The present target of the flange.
    motion: FlangeMotion,
    /// The joints that `ik` computes for it.
    joints: Joints,
    /// The share of the greatest speeds that the joints allow at present.
    pace: f64,
    /// What keeps the pace below 1.
    hindrance: Option<Hindrance>,
    /// Whether a line has said so.
    told: bool,
    /// The pose on the way to which it stands, as the next step does not pass.
    held: Option<Pose>,
    /// The pose to which it goes, and the sequence number of that target.
    goal: Option<(Pose, u64)>,
    /// Time since the last good pose.
    silent_ns: u64,
    refused: u64,
    cut_short: u64,
}

impl Node for PoseLimiter {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        self.silent_ns = self.silent_ns.saturating_add(cycle.passed_ns());
        if io.fresh(IN) == Fresh::New {
            self.hear(io.read::<CartesianTarget>(IN), cycle);
        }
        if self.silent_ns > self.hold_after_ns || cycle.stopping {
            self.goal = None;
        }
        self.advance(cycle);
        self.send(io);
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        [self.motion.place.limits, self.motion.turn.limits] = limits(parameters);
        self.near = near(parameters);
        self.held = None;
        Ok(())
    }
}

impl PoseLimiter {
    fn hear(&mut self, target: &CartesianTarget, cycle: &Cycle) {
        match self.may_go_to(target) {
            Ok(pose) => {
                self.goal = Some((pose, target.sequence));
                self.silent_ns = 0;
            }
            Err(why) => {
                // The first one is told; a sender that errs would fill the log.
                if self.refused == 0 {
                    cycle.log(Level::Warning, why, &target.position_m);
                }
                self.refused += 1;
            }
        }
    }

    /// The pose of a target, if the arm may be there and reaches it; otherwise why not, as a text
    /// with room for the place.
    fn may_go_to(&self, target: &CartesianTarget) -> Result<Pose, &'static str> {
        let pose = target.pose().ok_or(
            "ignores a pose at {:.3} {:.3} {:.3} m: the length of its quaternion is not 1",
        )?;
        self.workspace.check(pose.translation).map_err(
            |_| "ignores a pose at {:.3} {:.3} {:.3} m: it is outside the floor and the box",
        )?;
        let reached = self.solver.reach(&pose);
        reached.map_err(|_| "ignores a pose at {:.3} {:.3} {:.3} m: it is out of reach")?;
        Ok(pose)
    }

    /// Takes a step towards the goal if it can brake after it; otherwise it brakes now.
    fn advance(&mut self, cycle: &Cycle) {
        let goal = self.goal.map(|(goal, _)| goal);
        self.held = self.held.filter(|held| goal == Some(*held));
        let Some(goal) = goal else {
            self.free();
            return self.brake(cycle);
        };
        if self.held.is_some() {
            return;
        }
        let next = self.motion.after(Some(&goal), self.pace, cycle.period_s());
        if next.stands() {
            self.motion = next;
            return self.free();
        }
        match self.outlook.pass(&next, &self.joints) {
            Ok((joints, load)) => {
                (self.motion, self.joints) = (next, joints);
                self.regulate(load);
            }
            Err(hindrance) => self.shrink_from(hindrance, &goal, cycle),
        }
    }

    /// Brakes, and holds before what does not let the slowest step pass.
    fn shrink_from(&mut self, hindrance: Hindrance, goal: &Pose, cycle: &Cycle) {
        if self.motion.stands() && self.pace <= PACE_MIN {
            self.held = Some(*goal);
            if !self.told {
                report(&hindrance, cycle);
            }
            self.told = true;
        }
        self.hindrance = Some(hindrance);
        self.brake(cycle);
        self.pace = self.motion.share_of_speed().clamp(PACE_MIN, 1.0);
    }

    /// Brakes. It can, as it was made sure of before; if it cannot, it stands at once.
    fn brake(&mut self, cycle: &Cycle) {
        if self.motion.stands() {
            return;
        }
        let next = self.motion.after(None, 1.0, cycle.period_s());
        match self.outlook.step(&next, &self.joints) {
            Ok(joints) => (self.motion, self.joints) = (next, joints),
            Err(hindrance) => {
                self.motion = self.motion.stopped();
                self.cut_short += 1;
                cycle.log(Level::Warning, "stops at once, as braking would not pass", &[]);
                report(&hindrance, cycle);
            }
        }
    }

    /// Slows down before a joint would be too fast, and up again.
    fn regulate(&mut self, load: Load) {
        self.pace = (self.pace * (1.0 + GAIN * (LOAD - load.share))).clamp(PACE_MIN, 1.0);
        if load.share > LOAD {
            let (joint, limits) = (load.joint, self.solver.limits()[load.joint]);
            let speed_rad_per_s = load.share * limits.speed_max_rad_per_s;
            let trouble = Trouble::Speed { joint, speed_rad_per_s, limits };
            self.hindrance = Some(Hindrance::Arm(trouble));
        } else if self.pace == 1.0 {
            self.free();
        }
    }

    /// Nothing slows it down.
    fn free(&mut self) {
        (self.pace, self.hindrance, self.told) = (1.0, None, false);
    }

    fn send(&self, io: &mut Io<'_>) {
        let motion = &self.motion;
        let behind = self.goal.map(|(goal, _)| motion.ways_to(&goal).map(DVec3::length));
        let is_near = behind.is_some_and(|[m, rad]| m <= self.near[0] && rad <= self.near[1]);
        let target = io.write::<CartesianTarget>(OUT);
        target.set_pose(&motion.pose);
        target.path_speed_m_per_s = motion.place.speed.length();
        target.sequence = self.goal.filter(|_| is_near).map_or(0, |(_, sequence)| sequence);
        target.flags = if motion.place.speed == DVec3::ZERO { 0 } else { TARGET_MOVING };
        let [behind_m, behind_rad] = behind.unwrap_or_default();
        io.signal(BEHIND)[0] = behind_m;
        io.signal(HOLDS)[0] = f64::from(u8::from(self.goal.is_none()));
        io.signal(REFUSED)[0] = self.refused as f64;
        io.signal(TURN_BEHIND)[0] = behind_rad;
        io.signal(LIMITED_BY)[0] = self.hindrance.as_ref().map_or(0, label) as f64;
        io.signal(CUT_SHORT)[0] = self.cut_short as f64;
    }
}

/// Index in [`LIMITS`].
fn label(hindrance: &Hindrance) -> usize {
    match hindrance {
        Hindrance::Arm(Trouble::Limit { joint, .. } | Trouble::Speed { joint, .. }) => joint + 1,
        Hindrance::Arm(Trouble::Wrist { .. }) => 7,
        Hindrance::Arm(Trouble::Elbow { .. }) => 8,
        Hindrance::Arm(Trouble::Shoulder { .. }) => 9,
        Hindrance::Arm(Trouble::Unreachable { .. }) => 10,
        Hindrance::Outside => 11,
    }
}

/// Logs before what it stands.
fn report(hindrance: &Hindrance, cycle: &Cycle) {
    let (text, numbers) = match *hindrance {
        Hindrance::Outside => ("holds before the floor or the box", [0.0; 3]),
        Hindrance::Arm(Trouble::Limit { joint, limits, .. }) => (
            "holds: joint {} would leave {:.1} to {:.1} deg; move the target or turn the tool",
            [(joint + 1) as f64, limits.min_rad.to_degrees(), limits.max_rad.to_degrees()],
        ),
        Hindrance::Arm(Trouble::Speed { joint, speed_rad_per_s, limits }) => (
            "holds: joint {} would turn at {:.1} deg/s, its limit is {:.1}; move the target",
            [
                (joint + 1) as f64,
                speed_rad_per_s.to_degrees(),
                limits.speed_max_rad_per_s.to_degrees(),
            ],
        ),
        Hindrance::Arm(Trouble::Wrist { angle_rad, margin_rad }) => (
            "holds before a wrist singularity: joint 5 would be {:.2} deg from it, not {:.2}",
            [angle_rad.to_degrees(), margin_rad.to_degrees(), 0.0],
        ),
        Hindrance::Arm(Trouble::Elbow { angle_rad, margin_rad }) => (
            "holds before an elbow singularity: joint 3 would be {:.2} deg from it, not {:.2}",
            [angle_rad.to_degrees(), margin_rad.to_degrees(), 0.0],
        ),
        Hindrance::Arm(Trouble::Shoulder { distance_m, margin_m }) => (
            "holds: the wrist centre would be {:.4} m from axis 1, not {:.4}; go around it",
            [distance_m, margin_m, 0.0],
        ),
        Hindrance::Arm(Trouble::Unreachable { distance_m, min_m, max_m }) => (
            "holds: wrist centre {:.3} m from joint 2, the arm reaches {:.3} to {:.3} m",
            [distance_m, min_m, max_m],
        ),
    };
    cycle.log(Level::Warning, text, &numbers);
}

#[cfg(test)]
mod tests;
