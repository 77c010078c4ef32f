//! Where the camera stands, and how places become points of the picture.

use glam::{Vec2, Vec3};

use crate::camera::image::{HEIGHT, WIDTH};

/// A pinhole camera.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) eye: Vec3,
    right: Vec3,
    down: Vec3,
    ahead: Vec3,
    /// Points from the middle of the picture for a slope of 1.
    focal: f32,
}

/// A place in the picture.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spot {
    /// Points from the left and from the top.
    pub(super) at: Vec2,
    /// One over the distance along the view, 1/m: straight lines of places keep it linear.
    pub(super) near: f32,
}

/// Nothing that is drawn comes nearer to the camera, m.
const NEAREST_M: f32 = 0.05;

impl View {
    /// A camera at `eye` that looks at `target`; `angle_rad` is what it sees from top to bottom.
    pub(super) fn new(eye: Vec3, target: Vec3, angle_rad: f32) -> View {
        let ahead = (target - eye).normalize();
        let right = ahead.cross(Vec3::Z).normalize();
        let focal = HEIGHT as f32 / 2.0 / (angle_rad / 2.0).tan();
        View { eye, right, down: ahead.cross(right), ahead, focal }
    }

    /// Where a place is seen.
    pub(super) fn spot(&self, place: Vec3) -> Spot {
        let seen = place - self.eye;
        let near = 1.0 / seen.dot(self.ahead).max(NEAREST_M);
        let offset = Vec2::new(seen.dot(self.right), seen.dot(self.down)) * near * self.focal;
        Spot { at: offset + Vec2::new(WIDTH as f32, HEIGHT as f32) / 2.0, near }
    }

    /// The direction in which a point is seen; as long as it is for one metre along the view.
    pub(super) fn ray(&self, at: Vec2) -> Vec3 {
        let off = (at - Vec2::new(WIDTH as f32, HEIGHT as f32) / 2.0) / self.focal;
        self.ahead + self.right * off.x + self.down * off.y
    }

    /// The place that is seen as this spot.
    pub(super) fn place(&self, spot: Spot) -> Vec3 {
        self.eye + self.ray(spot.at) / spot.near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_at_a_spot_is_the_place_that_was_drawn_there() {
        let view = View::new(Vec3::new(1.0, -1.0, 0.7), Vec3::new(0.1, 0.0, 0.3), 0.6);
        let middle = view.spot(Vec3::new(0.1, 0.0, 0.3)).at;
        assert!(middle.distance(Vec2::new(320.0, 240.0)) < 1e-3);
        for place in [Vec3::ZERO, Vec3::new(0.3, 0.2, 0.5), Vec3::new(-0.2, 0.1, 0.0)] {
            assert!(view.place(view.spot(place)).distance(place) < 1e-5);
        }
        assert!(view.spot(Vec3::Z).at.y < view.spot(Vec3::ZERO).at.y, "up is up");
    }
}
