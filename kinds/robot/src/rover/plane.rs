//! The obstacles of the plane: a rectangle around everything, and circles in it.

use std::fmt;

use rs_opw_kinematics::glam::DVec2;
use sinew_core::catalogue::{Parameter, ParameterType};
use sinew_core::{Fault, Parameters, fault};

use crate::messages::{OBSTACLES_MAX, PlaneMap};
use crate::planar::rows;

/// Parameter: the rectangle.
pub(super) const FENCE_M: Parameter = Parameter::new(
    "fence_m",
    ParameterType::Numbers { count_min: 4, count_max: 4, min: -1e4, max: 1e4 },
)
.or("[-4, -3, 4, 3]")
.unit("m")
.doc("The fence around all: least x and y, greatest x and y.");

/// Parameter: the circles.
pub(super) const OBSTACLES: Parameter = Parameter::new("obstacles", ParameterType::Yaml)
    .or("[]")
    .unit("m")
    .doc("Round obstacles, 64 at most: a list of [x, y, radius].");

struct Obstacle {
    centre_m: DVec2,
    radius_m: f64,
}

/// The fence and the obstacles.
pub(super) struct Plane {
    min_m: DVec2,
    max_m: DVec2,
    obstacles: Box<[Obstacle]>,
}

impl Plane {
    pub(super) fn of(parameters: &Parameters<'_>) -> Result<Plane, Fault> {
        let fence = parameters.numbers("fence_m");
        let (min_m, max_m) = (DVec2::from_slice(fence), DVec2::from_slice(&fence[2..]));
        if min_m.cmpge(max_m).any() {
            let text = fault!(
                "fence_m {fence:?} has nothing in it; write least x and y, then greatest x and y"
            );
            return Err(text.at(parameters.span("fence_m")));
        }
        let rows = rows::<3>(parameters, "obstacles", (0, OBSTACLES_MAX))?;
        if let Some(at) = rows.iter().position(|row| row[2] <= 0.0) {
            let (row, radius) = (at + 1, rows[at][2]);
            let text = fault!("row {row} of obstacles has radius {radius}, expected more than 0");
            return Err(text.at(parameters.span("obstacles")));
        }
        let obstacle =
            |&[x, y, radius_m]: &[f64; 3]| Obstacle { centre_m: DVec2::new(x, y), radius_m };
        Ok(Plane { min_m, max_m, obstacles: rows.iter().map(obstacle).collect() })
    }

    /// The map of the plane for a display, with a base of this radius.
    pub(super) fn map(&self, base_radius_m: f64) -> PlaneMap {
        let [[x_min, y_min], [x_max, y_max]] = [self.min_m.to_array(), self.max_m.to_array()];
        let mut map = PlaneMap {
            fence_m: [x_min, y_min, x_max, y_max],
            count: self.obstacles.len() as u64,
            base_radius_m,
            ..PlaneMap::default()
        };
        for (row, obstacle) in map.obstacles_m.chunks_exact_mut(3).zip(&self.obstacles) {
            let DVec2 { x, y } = obstacle.centre_m;
            row.copy_from_slice(&[x, y, obstacle.radius_m]);
        }
        map
    }

    fn to_fence_m(&self, at_m: DVec2) -> f64 {
        (at_m - self.min_m).min(self.max_m - at_m).min_element()
    }

    /// Distance from the rim of a disc to the nearest obstacle. Below zero the disc is inside
    /// something.
    pub(super) fn gap_m(&self, at_m: DVec2, radius_m: f64) -> f64 {
        let gap = |it: &Obstacle| at_m.distance(it.centre_m) - it.radius_m;
        let nearest_m = self.obstacles.iter().map(gap).fold(self.to_fence_m(at_m), f64::min);
        nearest_m - radius_m
    }

    /// Distance along this ray (of length 1) to the first obstacle, from a free place.
    pub(super) fn range_m(&self, from_m: DVec2, ray: DVec2) -> f64 {
        // Each axis has two sides of the fence; only the one ahead counts.
        let side = |at: f64, ray: f64, min: f64, max: f64| match ray {
            0.0 => f64::INFINITY,
            ray => (if ray > 0.0 { max } else { min } - at) / ray,
        };
        let fence_m = side(from_m.x, ray.x, self.min_m.x, self.max_m.x).min(side(
            from_m.y,
            ray.y,
            self.min_m.y,
            self.max_m.y,
        ));
        let meets = |obstacle: &Obstacle| {
            let to = obstacle.centre_m - from_m;
            let (ahead, beside) = (to.dot(ray), to.perp_dot(ray));
            let half_chord2 = obstacle.radius_m.powi(2) - beside * beside;
            let is_met = ahead > 0.0 && half_chord2 >= 0.0;
            is_met.then(|| ahead - half_chord2.sqrt())
        };
        self.obstacles.iter().filter_map(meets).fold(fence_m, f64::min)
    }

    /// The obstacle nearest to a place.
    pub(super) fn nearest(&self, at_m: DVec2) -> impl fmt::Display + use<> {
        let gaps = self.obstacles.iter().map(|it| at_m.distance(it.centre_m) - it.radius_m);
        let mut nearest = (self.to_fence_m(at_m), None);
        for (row, gap_m) in gaps.enumerate() {
            if gap_m < nearest.0 {
                nearest = (gap_m, Some(row + 1));
            }
        }
        match nearest.1 {
            None => "fence_m".to_owned(),
            Some(row) => format!("row {row} of obstacles"),
        }
    }
}
