//! Kind `pose_limiter`: goes to poses of an untrusted source, such as another host, within the
//! limits of the arm.

use rs_opw_kinematics::glam::{DQuat, DVec3};
use rs_opw_kinematics::kinematic_traits::Pose;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal, number};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters};

use super::arm;
use super::kinematics::Solver;
use super::limited::{Limited, Limits};
use super::messages::{CartesianTarget, TARGET_MOVING};
use super::workspace::{self, Workspace};

const IN: usize = 0;
const OUT: usize = 1;

const BEHIND: usize = 0;
const HOLDS: usize = 1;
const REFUSED: usize = 2;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "pose_limiter",
    runs_in: RunsIn::Realtime,
    doc: "Moves straight to the last pose that it got, limited in speed and acceleration, and \
          gives the target of the flange in every cycle. Until the first pose it stays at home. \
          Without a new pose for 'hold_after' it brakes and holds its place. A pose that is \
          outside the floor and the box, or out of the arm's reach, is counted and ignored. Speeds \
          may be set while it runs; if it is faster than a new one, it brakes. Accelerations may \
          not: with a lower one it could no longer stop in front of the floor. For targets that \
          come from another host, or from a service.",
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
            "The feedback says that a pose is reached once the target is this near to it.",
            "mm",
            (0.001, 10_000.0),
            "30",
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
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let solver = arm::solver(parameters)?;
    let home = solver.forward(&arm::home(parameters, &solver)?);
    let workspace = Workspace::new(parameters, home.translation)?;
    let [of_place, of_turn] = limits(parameters);
    Ok(Box::new(PoseLimiter {
        solver,
        workspace,
        place: Limited { limits: of_place, speed: DVec3::ZERO },
        turn: Limited { limits: of_turn, speed: DVec3::ZERO },
        near_m: parameters.number("near_mm") * 1e-3,
        hold_after_ns: parameters.duration("hold_after").as_nanos() as u64,
        pose: home,
        goal: None,
        silent_ns: 0,
        refused: 0,
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

struct PoseLimiter {
    solver: Solver,
    workspace: Workspace,
    place: Limited,
    turn: Limited,
    near_m: f64,
    hold_after_ns: u64,
    /// The present target of the flange.
    pose: Pose,
    /// The pose to which it goes, and the sequence number of that target.
    goal: Option<(Pose, u64)>,
    /// Time since the last good pose.
    silent_ns: u64,
    refused: u64,
}

impl Node for PoseLimiter {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        self.silent_ns = self.silent_ns.saturating_add(cycle.passed_ns());
        if io.fresh(IN) == Fresh::New {
            self.hear(io.read::<CartesianTarget>(IN));
        }
        if self.silent_ns > self.hold_after_ns || cycle.stopping {
            self.goal = None;
        }
        self.advance(cycle.period_s());
        self.send(io);
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        [self.place.limits, self.turn.limits] = limits(parameters);
        self.near_m = parameters.number("near_mm") * 1e-3;
        Ok(())
    }
}

impl PoseLimiter {
    fn hear(&mut self, target: &CartesianTarget) {
        let pose = target.pose();
        let may = self.workspace.check(pose.translation).is_ok();
        if may && self.solver.reach(&pose).is_ok() {
            self.goal = Some((pose, target.sequence));
            self.silent_ns = 0;
        } else {
            self.refused += 1;
        }
    }

    fn advance(&mut self, period_s: f64) {
        let goal = self.goal.map(|(goal, _)| goal);
        let way = goal.map(|goal| goal.translation - self.pose.translation);
        self.pose.translation += self.place.step(way, period_s);
        let way = goal.map(|goal| turn_between(self.pose.rotation, goal.rotation));
        let turned = DQuat::from_scaled_axis(self.turn.step(way, period_s));
        self.pose.rotation = (turned * self.pose.rotation).normalize();
    }

    fn send(&self, io: &mut Io<'_>) {
        let behind_m =
            self.goal.map(|(goal, _)| (goal.translation - self.pose.translation).length());
        let is_near = behind_m.is_some_and(|behind_m| behind_m <= self.near_m);
        let target = io.write::<CartesianTarget>(OUT);
        target.set_pose(&self.pose);
        target.path_speed_m_per_s = self.place.speed.length();
        target.sequence = self.goal.filter(|_| is_near).map_or(0, |(_, sequence)| sequence);
        target.flags = if self.place.speed == DVec3::ZERO { 0 } else { TARGET_MOVING };
        io.signal(BEHIND)[0] = behind_m.unwrap_or(0.0);
        io.signal(HOLDS)[0] = f64::from(u8::from(self.goal.is_none()));
        io.signal(REFUSED)[0] = self.refused as f64;
    }
}

/// The shorter turn from one orientation to another: axis times angle, rad.
fn turn_between(from: DQuat, to: DQuat) -> DVec3 {
    let turn = to * from.inverse();
    let turn = if turn.w < 0.0 { -turn } else { turn };
    turn.to_scaled_axis()
}

#[cfg(test)]
mod tests;
