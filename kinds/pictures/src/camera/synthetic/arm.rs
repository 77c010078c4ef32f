//! The arm as round tubes, in the style of a small six-axis arm. Their thickness depends on the
//! length of the arm; their places come from its file.

use std::f32::consts::TAU;

use glam::{Affine3A, Vec2, Vec3};
use sinew_robot::arm::KinematicChain;
use sinew_robot::kinematics::Joints;
use tiny_skia::{Color, Pixmap, Shader};

use super::brush::{blend, fill, hull, shapes};
use super::view::Pinhole;

/// Length of upper arm and forearm of the arm that the thicknesses are taken from, m.
const LENGTH_M: f32 = 0.572;
/// Longest slice of a tube, m: the resolution of what is in front of what.
const SLICE_M: f32 = 0.075;
/// Corners of a rim: more would not be visible.
const CORNERS: usize = 24;
/// A tube covers the end of another if its radius there is at least this part of the other's.
const COVERS: f32 = 0.9;
/// Distance of the brightest line of a tube from its middle, least and most, as parts of its
/// radius.
const BRIGHT: (f32, f32) = (0.35, 0.8);
/// The flat part of a tube's end, as a part of its radius: the rest is rounded.
const FLAT: f32 = 0.88;

/// The direction of the lamp.
const LAMP: Vec3 = Vec3::new(0.238, -0.511, 0.826);
/// Light from everywhere, from above, and from the lamp.
const LIGHT: [f32; 3] = [0.24, 0.22, 0.78];
/// How much of the lamp is mirrored, and how sharply.
const SHINE: (f32, i32) = (0.26, 18);

const PAINT: [f32; 3] = [0.94, 0.47, 0.13];
const GRAPHITE: [f32; 3] = [0.22, 0.23, 0.25];
const STEEL: [f32; 3] = [0.74, 0.75, 0.77];

/// A tube that may get narrower, and the link that it moves with: 0 is the base, 1 the link that
/// joint 1 turns.
#[derive(Clone)]
pub(super) struct Tube {
    pub(super) link: usize,
    ends: [Vec3; 2],
    radii: [f32; 2],
    colour: [f32; 3],
    /// Which ends are not covered by another tube.
    open: [bool; 2],
    pub(super) slices: usize,
}

/// All tubes of the arm, each in the frame of its link.
pub(super) fn tubes(chain: &KinematicChain) -> Vec<Tube> {
    let poses = chain.forward(&[0.0; 6]);
    // With all joints at zero the arm is in a plane; where a joint is along its axis does not
    // matter.
    let middle = poses[4].translation.y;
    let joint = poses.map(|pose| pose.translation.with_y(middle).as_vec3());
    let (shoulder, elbow, wrist, flange) = (joint[1], joint[2], joint[4], joint[6]);
    // The direction of an axis depends on signs; the forearm leads away from the elbow.
    let ahead = chain.axis(3).as_vec3();
    let ahead = ahead * ahead.dot(wrist - elbow).signum();
    let neck = wrist - ahead * (wrist - elbow).dot(ahead);
    let scale = (shoulder.distance(elbow) + elbow.distance(wrist)) / LENGTH_M;
    let way = |from: Vec3, to: Vec3| ((to - from).normalize_or(Vec3::Z), from.distance(to) / scale);
    let (foot, up) = (Vec3::ZERO, Vec3::Z);
    let (upper, upper_m) = way(shoulder, elbow);
    let (rise, rise_m) = way(elbow, neck);
    let (tool, tool_m) = way(wrist, flange);
    let (top_m, reach_m) = (shoulder.z / scale, neck.distance(wrist) / scale);
    // Link, origin, direction, from and to along it, radii; in figures of that arm.
    #[rustfmt::skip]
    let single = [
        (0, foot, up, [0.0, 0.022], [0.105, 0.102], GRAPHITE),
        (0, foot, up, [0.022, 0.46 * top_m], [0.09, 0.074], PAINT),
        (1, foot, up, [0.46 * top_m, 0.54 * top_m], [0.079, 0.079], GRAPHITE),
        (1, foot, up, [0.54 * top_m, 0.8 * top_m], [0.075, 0.062], PAINT),
        (2, shoulder, upper, [0.0, upper_m], [0.05, 0.042], PAINT),
        (3, elbow, rise, [0.0, rise_m - 0.02], [0.044, 0.038], PAINT),
        (3, neck, ahead, [-0.11, -0.09], [0.031, 0.037], GRAPHITE),
        (3, neck, ahead, [-0.09, 0.1], [0.046, 0.046], PAINT),
        (4, neck, ahead, [0.1, 0.116], [0.047, 0.047], GRAPHITE),
        (4, neck, ahead, [0.116, reach_m - 0.05], [0.044, 0.04], PAINT),
        (5, wrist, tool, [0.0, tool_m - 0.014], [0.027, 0.025], GRAPHITE),
        (6, wrist, tool, [tool_m - 0.014, tool_m], [0.027, 0.027], STEEL),
    ];
    // On both sides of the arm.
    #[rustfmt::skip]
    let double = [Vec3::Y, Vec3::NEG_Y].into_iter().flat_map(|side| [
        (1, shoulder, side, [0.0, 0.045], [0.061, 0.061], PAINT),
        (2, shoulder, side, [0.045, 0.076], [0.057, 0.055], PAINT),
        (2, shoulder, side, [0.076, 0.086], [0.043, 0.042], GRAPHITE),
        (3, elbow, side, [0.0, 0.04], [0.049, 0.049], PAINT),
        (2, elbow, side, [0.04, 0.066], [0.048, 0.046], PAINT),
        (2, elbow, side, [0.066, 0.075], [0.035, 0.034], GRAPHITE),
        (4, wrist + side * (0.037 * scale), ahead, [-0.075, 0.0], [0.024, 0.022], PAINT),
        (5, wrist, side, [0.0, 0.028], [0.031, 0.031], PAINT),
        (4, wrist, side, [0.028, 0.046], [0.032, 0.031], PAINT),
        (4, wrist, side, [0.046, 0.052], [0.023, 0.022], GRAPHITE),
    ]);
    let tube =
        |(link, origin, way, ends, radii, colour): (usize, Vec3, Vec3, [f32; 2], [f32; 2], _)| {
            let ends = ends.map(|along| origin + way * (along * scale));
            let slices = (ends[0].distance(ends[1]) / SLICE_M).ceil().clamp(1.0, 50.0) as usize;
            Tube {
                link,
                ends,
                radii: radii.map(|radius| radius * scale),
                colour,
                open: [true; 2],
                slices,
            }
        };
    let tubes: Vec<_> = single.into_iter().chain(double).map(tube).collect();
    let frames = frames(chain, &[0.0; 6]);
    let placed = |tube: &Tube| Tube {
        open: ends(tube).map(|end| !covered(end, &tubes)),
        ..tube.moved(&frames[tube.link].inverse())
    };
    tubes.iter().map(placed).collect()
}

/// Places and radii of a tube's ends.
fn ends(tube: &Tube) -> [(Vec3, f32); 2] {
    [0, 1].map(|end| (tube.ends[end], tube.radii[end]))
}

/// Whether another end at the same place is wide enough to cover this one.
fn covered(end: (Vec3, f32), tubes: &[Tube]) -> bool {
    let there = tubes.iter().flat_map(ends).filter(|other| other.0.distance(end.0) < 1e-4);
    there.filter(|other| other.1 > COVERS * end.1).count() > 1
}

/// The places of the base, the six links and the flange, in this order.
pub(super) fn frames(chain: &KinematicChain, joints: &Joints) -> [Affine3A; 8] {
    let poses = chain.forward(joints);
    std::array::from_fn(|at| match at.checked_sub(1) {
        None => Affine3A::IDENTITY,
        Some(at) => {
            let (turn, place) = (poses[at].rotation, poses[at].translation);
            Affine3A::from_rotation_translation(turn.as_quat(), place.as_vec3())
        }
    })
}

impl Tube {
    /// The tube moved by this frame.
    pub(super) fn moved(&self, frame: &Affine3A) -> Tube {
        Tube { ends: self.ends.map(|end| frame.transform_point3(end)), ..self.clone() }
    }

    /// The shape of its shadow on the floor.
    pub(super) fn shadow(&self, view: &Pinhole) -> Vec<Vec2> {
        let floor = |place: Vec3| place - LAMP * (place.z / LAMP.z);
        let places = [0, self.slices].map(|cut| self.rim(cut, 1.0));
        hull(places.into_iter().flatten().map(|place| view.spot(floor(place))).collect())
    }

    /// The middle of a slice.
    pub(super) fn middle(&self, slice: usize) -> Vec3 {
        (self.cut(slice).0 + self.cut(slice + 1).0) / 2.0
    }

    /// Draws a slice, and the tube's end if the slice has it.
    pub(super) fn draw(&self, slice: usize, view: &Pinhole, picture: &mut Pixmap) {
        let axis = (self.ends[1] - self.ends[0]).normalize_or(Vec3::Z);
        let middle = self.middle(slice);
        let eye = (view.eye - middle).normalize();
        let across = axis.cross(eye).normalize_or(axis.any_orthonormal_vector());
        let facing = across.cross(axis);
        // From the line with the most light to the side away from the lamp. More colours would
        // hardly be visible, and would take time.
        let (aside, before) = (across.dot(LAMP), facing.dot(LAMP).max(0.0));
        let away = -aside.signum();
        let bright = -away * (aside / aside.hypot(before).max(0.1)).abs().clamp(BRIGHT.0, BRIGHT.1);
        let cuts = [slice, slice + 1];
        let radius = cuts.map(|cut| self.cut(cut).1).into_iter().fold(0.0, f32::max);
        let spot = |side: f32| view.spot(middle + across * (side * radius));
        let lit =
            |side: f32| self.lit(across * side + facing * (1.0 - side * side).max(0.0).sqrt(), eye);
        let rim = cuts.map(|cut| self.rim(cut, 1.0)).concat();
        let shape = hull(rim.iter().map(|&place| view.spot(place)).collect());
        let colours = [(0.0, lit(bright)), (1.0, lit(away))];
        fill(picture, shapes([shape]), blend([spot(bright), spot(away)], &colours));
        let spots = |cut, part| self.rim(cut, part).map(|place| view.spot(place));
        for (cut, end, out) in [(slice, 0, -axis), (slice + 1, self.slices, axis)] {
            let is_seen = out.dot(view.eye - self.cut(cut).0) > 0.0;
            if cut == end && self.open[usize::from(end > 0)] && is_seen {
                // The border is round: its direction is between the end and the visible side.
                let border = self.lit((out + facing).normalize_or(out), eye);
                fill(picture, shapes([spots(cut, 1.0)]), Shader::SolidColor(border));
                fill(picture, shapes([spots(cut, FLAT)]), Shader::SolidColor(self.lit(out, eye)));
            }
        }
    }

    /// Place and radius at `slices` slices from the first end.
    fn cut(&self, slices: usize) -> (Vec3, f32) {
        let part = slices as f32 / self.slices as f32;
        let [from, to] = self.radii;
        (self.ends[0].lerp(self.ends[1], part), from + (to - from) * part)
    }

    /// The circle around the tube there, at this part of its radius.
    fn rim(&self, slices: usize, part: f32) -> [Vec3; CORNERS] {
        let (place, radius) = self.cut(slices);
        let axis = (self.ends[1] - self.ends[0]).normalize_or(Vec3::Z);
        let (one, other) = axis.any_orthonormal_pair();
        std::array::from_fn(|corner| {
            let (sin, cos) = (corner as f32 / CORNERS as f32 * TAU).sin_cos();
            place + (one * cos + other * sin) * (radius * part)
        })
    }

    /// Its colour where the surface faces this direction.
    fn lit(&self, normal: Vec3, eye: Vec3) -> Color {
        let [everywhere, above, lamp] = LIGHT;
        let light = everywhere + above * (normal.z + 1.0) / 2.0 + lamp * normal.dot(LAMP).max(0.0);
        let shine = SHINE.0 * normal.dot((LAMP + eye).normalize()).max(0.0).powi(SHINE.1);
        // The codes of a screen grow about as the square root of the light.
        let [red, green, blue] =
            self.colour.map(|part| (part * light.sqrt() + shine).clamp(0.0, 1.0));
        Color::from_rgba(red, green, blue, 1.0).unwrap_or(Color::BLACK)
    }
}
