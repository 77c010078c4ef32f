//! Segments: moves laid out in space, along a path coordinate.
//!
//! The coordinate is the way of the tool in m. Where the tool only turns it is the angle in rad, so
//! that such a segment has a length too. Orientation turns about one fixed axis (slerp), in
//! proportion to the coordinate, by the shorter of the two ways around.

use std::f64::consts::{PI, TAU};

use rs_opw_kinematics::glam::{DQuat, DVec3};
use rs_opw_kinematics::kinematic_traits::Pose;

use super::{Move, MoveShape};

/// Ways shorter than this (m) and turns smaller than this (rad) count as zero.
const NOTHING: f64 = 1e-9;

/// Two segments join smoothly if directions, curvatures and rates of turn differ by less.
const SMOOTH: f64 = 1e-6;

/// A move between two poses.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    from: Pose,
    to: Pose,
    shape: MoveShape,
    /// Length of the path coordinate: m, or rad if the tool only turns.
    pub span: f64,
    /// Whether the tool moves. If not, it only turns.
    pub travels: bool,
    /// Axis of the turn in the base frame, times rad per path coordinate.
    turn: DVec3,
    /// Curvature of the way, 1/m.
    pub curvature_per_m: f64,
    /// Programmed speed.
    pub speed_m_per_s: f64,
    /// Line of the file.
    pub line: usize,
}

impl Segment {
    /// Lays out a move; `None` if it neither goes anywhere nor turns.
    pub fn new(from: Pose, step: &Move) -> Option<Segment> {
        let to = step.to;
        let way = to.translation - from.translation;
        let (way_m, curvature_per_m) = match step.shape {
            MoveShape::Line => (way.length(), 0.0),
            MoveShape::Arc { centre, normal, angle_rad } => {
                let radius = (from.translation - centre).length();
                let around = radius * angle_rad.abs();
                let length = around.hypot(way.dot(normal));
                (length, radius * angle_rad * angle_rad / (length * length))
            }
        };
        let (axis, angle) = turn_between(from.rotation, to.rotation);
        let travels = way_m > NOTHING;
        let span = if travels { way_m } else { angle };
        (span > NOTHING).then(|| Segment {
            from,
            to,
            shape: step.shape,
            span,
            travels,
            turn: axis * (angle / span),
            curvature_per_m,
            speed_m_per_s: step.speed_m_per_s,
            line: step.line,
        })
    }

    /// Rate of turn, rad per path coordinate.
    pub fn turn_rate(&self) -> f64 {
        self.turn.length()
    }

    /// Where the tool is at coordinate `s` from 0 to [`Segment::span`].
    pub fn pose(&self, s: f64) -> Pose {
        let part = (s / self.span).clamp(0.0, 1.0);
        let rotation = DQuat::from_scaled_axis(self.turn * (part * self.span));
        let way = self.to.translation - self.from.translation;
        let translation = match self.shape {
            MoveShape::Line => self.from.translation + way * part,
            MoveShape::Arc { centre, normal, angle_rad } => {
                let radius = self.from.translation - centre;
                let around = |part: f64| DQuat::from_axis_angle(normal, angle_rad * part) * radius;
                // The gap that rounding leaves at the end is spread over the whole way.
                let open = self.to.translation - centre - around(1.0);
                centre + around(part) + open * part
            }
        };
        Pose { translation, rotation: (rotation * self.from.rotation).normalize() }
    }

    /// Coordinates at which the tool is furthest along x, y or z, in either direction: the ends,
    /// and the extremes of an arc.
    pub fn extremes(&self) -> Vec<f64> {
        let mut parts = vec![0.0, 1.0];
        if let MoveShape::Arc { centre, normal, angle_rad } = self.shape {
            let radius = self.from.translation - centre;
            let across = normal.cross(radius);
            let turned = DQuat::from_axis_angle(normal, angle_rad) * radius;
            let rise = (self.to.translation - centre - turned) / angle_rad;
            for axis in 0..3 {
                // Along this axis the tool moves as r cos(angle - phase) + rise * angle.
                let phase = across[axis].atan2(radius[axis]);
                let lean = (rise[axis] / across[axis].hypot(radius[axis])).asin();
                for first in [phase + lean, phase + PI - lean] {
                    let mut angle = (first * angle_rad.signum()).rem_euclid(TAU);
                    // NaN (the arc has no extreme) fails this comparison too.
                    while angle < angle_rad.abs() {
                        parts.push(angle / angle_rad.abs());
                        angle += TAU;
                    }
                }
            }
        }
        parts.iter().map(|part| part * self.span).collect()
    }

    /// Whether the tool can pass from this segment to `next` without a jump in its speed (position
    /// and turn) or its acceleration.
    pub fn joins(&self, next: &Segment) -> bool {
        let near = |a: DVec3, b: DVec3| (a - b).length() < SMOOTH * (1.0 + a.length());
        let (leave, enter) = (self.course(1.0), next.course(0.0));
        self.travels
            && next.travels
            && near(leave.0, enter.0)
            && near(leave.1, enter.1)
            && near(self.turn, next.turn)
    }

    /// Direction and curvature vector at a part of the way.
    fn course(&self, part: f64) -> (DVec3, DVec3) {
        let way = self.to.translation - self.from.translation;
        match self.shape {
            MoveShape::Line => (way.normalize_or_zero(), DVec3::ZERO),
            MoveShape::Arc { centre, normal, angle_rad } => {
                let turned = DQuat::from_axis_angle(normal, angle_rad * part);
                let radius = turned * (self.from.translation - centre);
                let along = normal.cross(radius) * angle_rad + normal * way.dot(normal);
                (along.normalize_or_zero(), -radius.normalize_or_zero() * self.curvature_per_m)
            }
        }
    }
}

/// Axis (base frame) and angle, 0 to π, of the turn from `a` to `b`.
fn turn_between(a: DQuat, b: DQuat) -> (DVec3, f64) {
    let turn = b * a.inverse();
    let turn = if turn.w < 0.0 { -turn } else { turn };
    (turn.xyz().normalize_or_zero(), 2.0 * turn.xyz().length().atan2(turn.w))
}
