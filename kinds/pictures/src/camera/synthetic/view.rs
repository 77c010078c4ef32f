//! The place of the camera, and how places become points of the picture.

use glam::{Vec2, Vec3};

use crate::camera::image::{HEIGHT, WIDTH};

/// The place of the camera, the place it looks at (m), and its vertical angle of view (degrees).
const EYE: Vec3 = Vec3::new(1.16, -1.22, 0.78);
const TARGET: Vec3 = Vec3::new(0.13, 0.0, 0.315);
const ANGLE_DEG: f32 = 31.0;

/// Nothing that is drawn comes nearer to the camera than this, m.
const NEAREST_M: f32 = 0.05;

/// A pinhole camera.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pinhole {
    pub(super) eye: Vec3,
    right: Vec3,
    down: Vec3,
    ahead: Vec3,
    /// Points from the middle of the picture for a slope of 1.
    focal: f32,
}

impl Pinhole {
    /// The camera in front of the arm.
    pub(super) fn of_the_arm() -> Pinhole {
        let ahead = (TARGET - EYE).normalize();
        let right = ahead.cross(Vec3::Z).normalize();
        let focal = HEIGHT as f32 / 2.0 / (ANGLE_DEG.to_radians() / 2.0).tan();
        Pinhole { eye: EYE, right, down: ahead.cross(right), ahead, focal }
    }

    /// The point at which a place is seen: points from the left and from the top.
    pub(super) fn spot(&self, place: Vec3) -> Vec2 {
        let seen = place - self.eye;
        let offset = Vec2::new(seen.dot(self.right), seen.dot(self.down));
        let scale = self.focal / seen.dot(self.ahead).max(NEAREST_M);
        offset * scale + Vec2::new(WIDTH as f32, HEIGHT as f32) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_in_the_middle_and_a_place_lies_where_a_pinhole_shows_it() {
        let view = Pinhole::of_the_arm();
        assert!(view.spot(TARGET).distance(Vec2::new(320.0, 240.0)) < 1e-3);
        assert!(view.spot(Vec3::Z).y < view.spot(Vec3::ZERO).y, "up is up");
        // 31 degrees from top to bottom: half of it below the line of sight is the lowest row.
        let half = (ANGLE_DEG / 2.0).to_radians().tan();
        let lowest = EYE + view.ahead * 2.0 + view.down * (2.0 * half);
        assert!(view.spot(lowest).distance(Vec2::new(320.0, 480.0)) < 1e-2);
    }
}
