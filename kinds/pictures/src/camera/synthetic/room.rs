//! The room around the arm: a floor with a grid that fades into the dark. It is painted once.

use glam::{Vec2, Vec3};
use tiny_skia::{GradientStop, Pixmap, Point, RadialGradient, Shader, SpreadMode, Transform};

use super::brush::{blend, colour, fill, line, shapes, stroke};
use super::view::Pinhole;
use crate::camera::image::{HEIGHT, WIDTH};

/// Colours from the top of the picture to its bottom, each with its part of the height.
const FLOOR: [(f32, [u8; 3]); 3] =
    [(0.0, [66, 74, 86]), (0.4, [82, 92, 105]), (1.0, [90, 100, 113])];
const LINE: [u8; 3] = [160, 178, 196];
/// Lines of the grid: how far apart (in steps of 0.1 m), how wide (points), how bright.
const GRID: [(i32, f32, f32); 2] = [(1, 0.9, 0.3), (5, 1.7, 0.5)];
/// The part of the floor with lines, in steps of 0.1 m: towards the camera and away from it.
const STEPS: (i32, i32) = (10, 24);

/// Paints the room.
pub(super) fn paint(picture: &mut Pixmap, view: &Pinhole) {
    let (wide, high) = (WIDTH as f32, HEIGHT as f32);
    let all = || shapes([[(0.0, 0.0), (wide, 0.0), (wide, high), (0.0, high)].map(Vec2::from)]);
    let floor = FLOOR.map(|(at, code)| (at, colour(code, 1.0)));
    fill(picture, all(), blend([Vec2::ZERO, Vec2::new(0.0, high)], &floor));
    let foot = view.spot(Vec3::ZERO);
    // Light that falls on the floor around the arm.
    fill(picture, all(), around(foot, 330.0, [([255; 3], 0.2), ([255; 3], 0.0)]));
    for (step, width, part) in GRID {
        let shader = || around(foot, 480.0, [(LINE, part), (LINE, 0.0)]);
        for at in (-STEPS.1..=STEPS.1).filter(|at| at % step == 0) {
            let place = |x: i32, y: i32| view.spot(Vec3::new(x as f32, y as f32, 0.0) / 10.0);
            if at <= STEPS.0 {
                let along = line([place(at, -STEPS.0), place(at, STEPS.1)]);
                stroke(picture, along.as_ref(), width, shader());
            }
            if at >= -STEPS.0 {
                let along = line([place(-STEPS.1, at), place(STEPS.0, at)]);
                stroke(picture, along.as_ref(), width, shader());
            }
        }
    }
    let middle = Vec2::new(wide, high) / 2.0;
    fill(picture, all(), around(middle, 460.0, [([0; 3], 0.0), ([0; 3], 0.3)]));
}

/// A gradient from one colour at a point to another one at a distance, in points.
fn around(middle: Vec2, radius: f32, colours: [([u8; 3], f32); 2]) -> Shader<'static> {
    let [near, far] = colours.map(|(code, part)| colour(code, part));
    let stops = vec![GradientStop::new(0.0, near), GradientStop::new(1.0, far)];
    let middle = Point::from_xy(middle.x, middle.y);
    let (mode, turn) = (SpreadMode::Pad, Transform::identity());
    let shader = RadialGradient::new(middle, 0.0, middle, radius, stops, mode, turn);
    shader.unwrap_or(Shader::SolidColor(near))
}
