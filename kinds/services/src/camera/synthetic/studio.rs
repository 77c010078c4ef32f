//! The room: floor with a grid, backdrop. It never changes, so it is painted once, with care.

use glam::{Vec2, Vec3};

use super::colour::{self, Colour};
use super::view::View;
use crate::camera::image::{HEIGHT, WIDTH};

/// Looks at each point, each way, when the room is painted.
const LOOKS: usize = 4;

/// Lines of the grid: their distance, their width (m), how much of [`LINE`] they are.
const GRID: [(f32, f32, f32); 2] = [(0.1, 0.0024, 0.3), (0.5, 0.005, 0.65)];

const FLOOR: Colour = Colour::new(0.085, 0.105, 0.135);
const LINE: Colour = Colour::new(0.27, 0.34, 0.42);
const BACKDROP: Colour = Colour::new(0.13, 0.165, 0.21);
const ABOVE: Colour = Colour::new(0.035, 0.046, 0.065);

/// The floor goes over into the backdrop from here to there, m from the arm.
const FADE_M: [f32; 2] = [0.7, 2.3];

/// Height at which the backdrop is as dark as it gets, m.
const DARK_M: f32 = 2.4;

/// Light that falls on the floor around the arm: how much more of it, and how far it reaches, m.
const POOL: (f32, f32) = (0.9, 0.75);

/// How much darker the floor is close to the foot, and how far that reaches, m.
const FOOT: (f32, f32) = (0.55, 0.17);

/// How much of a point's code a full shadow takes away.
const SHADOW: f32 = 0.44;

/// The room without the arm.
pub(super) struct Studio {
    points: Vec<[u8; 3]>,
}

impl Studio {
    /// A dark one, until it is painted.
    pub(super) fn empty() -> Studio {
        Studio { points: vec![[0; 3]; WIDTH * HEIGHT] }
    }

    pub(super) fn painted(view: &View) -> Studio {
        let look = |at: usize| (at as f32 + 0.5) / LOOKS as f32;
        let point = |column: usize, row: usize| {
            let mut sum = Colour::ZERO;
            for (x, y) in (0..LOOKS * LOOKS).map(|at| (look(at % LOOKS), look(at / LOOKS))) {
                sum += seen(view, Vec2::new(column as f32 + x, row as f32 + y));
            }
            colour::coded(sum / (LOOKS * LOOKS) as f32)
        };
        let points = (0..WIDTH * HEIGHT).map(|at| point(at % WIDTH, at / WIDTH));
        Studio { points: points.collect() }
    }

    /// The points of a row.
    pub(super) fn row(&self, row: usize) -> &[[u8; 3]; WIDTH] {
        &self.points.as_chunks().0[row]
    }
}

/// A point of the floor at a place that is so dark (from 0 to 1).
pub(super) fn darkened(point: [u8; 3], place: Vec3, dark: f32) -> [u8; 3] {
    // In 256ths, for casts of numbers with fractions take their time.
    let left = ((1.0 - SHADOW * dark * (1.0 - faded(place))) * 256.0) as i32;
    point.map(|code| ((i32::from(code) * left) >> 8) as u8)
}

/// The place of the floor that is seen in a direction.
pub(super) fn floor(view: &View, at: Vec2) -> Option<Vec3> {
    let ray = view.ray(at);
    (ray.z < 0.0).then(|| view.eye - ray * (view.eye.z / ray.z))
}

fn seen(view: &View, at: Vec2) -> Colour {
    let vignette = {
        let off = (at / Vec2::new(WIDTH as f32, HEIGHT as f32) - 0.5) * 2.0;
        1.0 - 0.16 * off.length_squared()
    };
    let ray = view.ray(at);
    // Of the backdrop: as high as the ray is where the floor has faded out.
    let height = view.eye.z + ray.z / ray.truncate().length() * (FADE_M[1] + 1.0);
    let backdrop = BACKDROP.lerp(ABOVE, smooth(0.0, DARK_M, height));
    let Some(place) = floor(view, at) else { return backdrop * vignette };
    floor_colour(place).lerp(backdrop, faded(place)) * vignette
}

fn faded(place: Vec3) -> f32 {
    if place.truncate().length_squared() < FADE_M[0] * FADE_M[0] {
        return 0.0;
    }
    smooth(FADE_M[0], FADE_M[1], place.truncate().length())
}

fn floor_colour(place: Vec3) -> Colour {
    let line = GRID.iter().map(|&(distance, width, part)| {
        let off = |along: f32| (along - (along / distance).round() * distance).abs();
        if off(place.x).min(off(place.y)) < width / 2.0 { part } else { 0.0 }
    });
    let base = FLOOR.lerp(LINE, line.fold(0.0, f32::max));
    let far = place.truncate().length();
    let pool = 1.0 + POOL.0 * (-(far / POOL.1).powi(2)).exp();
    let foot = 1.0 - FOOT.0 * (-(far / FOOT.1).powi(4)).exp();
    base * pool * foot
}

/// 0 up to `from`, 1 from `to` on, without a bend.
pub(super) fn smooth(from: f32, to: f32, at: f32) -> f32 {
    let part = ((at - from) / (to - from)).clamp(0.0, 1.0);
    part * part * (3.0 - 2.0 * part)
}
