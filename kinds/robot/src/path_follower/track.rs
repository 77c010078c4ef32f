//! The path: straight lines between points. A place on it is given by the way that leads there.

use rs_opw_kinematics::glam::DVec2;
use sinew_core::{Fault, Parameters, fault};

use crate::messages::{POINTS_MAX, PathPoints};
use crate::planar::rows;

/// Shortest line between two points, m.
const LINE_M_MIN: f64 = 1e-3;

struct Line {
    from_m: DVec2,
    /// Direction, of length 1.
    ahead: DVec2,
    /// Way along the path to the begin of the line.
    begin_m: f64,
    length_m: f64,
}

/// The whole path.
pub(super) struct Track {
    lines: Box<[Line]>,
    pub(super) length_m: f64,
    /// Whether it ends at its begin and continues.
    pub(super) repeats: bool,
}

impl Track {
    pub(super) fn of(parameters: &Parameters<'_>) -> Result<Track, Fault> {
        let points = rows::<2>(parameters, "points", (2, POINTS_MAX))?;
        let points: Vec<DVec2> = points.into_iter().map(DVec2::from_array).collect();
        let repeats = parameters.bool("repeat");
        let count = if repeats { points.len() } else { points.len() - 1 };
        let mut length_m = 0.0;
        let mut lines = Vec::with_capacity(count);
        for at in 0..count {
            let (from_m, to_m) = (points[at], points[(at + 1) % points.len()]);
            let line_m = from_m.distance(to_m);
            if line_m < LINE_M_MIN {
                let (one, other) = (at + 1, (at + 1) % points.len() + 1);
                let text = fault!(
                    "points {one} and {other} are {line_m} m apart, expected {LINE_M_MIN} or more; \
                     leave one out"
                );
                return Err(text.at(parameters.span("points")));
            }
            let ahead = (to_m - from_m) / line_m;
            lines.push(Line { from_m, ahead, begin_m: length_m, length_m: line_m });
            length_m += line_m;
        }
        Ok(Track { lines: lines.into(), length_m, repeats })
    }

    /// The points of the path for a display.
    pub(super) fn points(&self) -> PathPoints {
        let repeats = u32::from(self.repeats);
        let mut points = PathPoints { repeats, ..PathPoints::default() };
        let last = (!self.repeats).then(|| self.at(self.length_m));
        let all = self.lines.iter().map(|line| line.from_m).chain(last);
        for (place, point) in points.points_m.chunks_exact_mut(2).zip(all) {
            place.copy_from_slice(&point.to_array());
            points.count += 1;
        }
        points
    }

    /// The place after `way_m` of the path. Past the end it is the end, or if the path repeats a
    /// place in the next round.
    pub(super) fn at(&self, way_m: f64) -> DVec2 {
        let way_m = if self.repeats { way_m.rem_euclid(self.length_m) } else { way_m };
        let after = self.lines.partition_point(|line| line.begin_m <= way_m);
        let line = &self.lines[after.max(1) - 1];
        line.from_m + line.ahead * (way_m - line.begin_m).clamp(0.0, line.length_m)
    }

    /// The place nearest to `at_m` between `from_m` along the path and `window_m` farther on.
    /// Returns how far along the path it is, past the end of a round with that round, and how far
    /// away.
    pub(super) fn nearest(&self, at_m: DVec2, from_m: f64, window_m: f64) -> (f64, f64) {
        let mut nearest = (from_m, at_m.distance(self.at(from_m)));
        let until_m = from_m + window_m.min(self.length_m);
        let rounds = if self.repeats { [0.0, self.length_m] } else { [0.0, f64::INFINITY] };
        for (round_m, line) in
            rounds.iter().flat_map(|round_m| self.lines.iter().map(move |line| (round_m, line)))
        {
            let begin_m = line.begin_m + round_m;
            let (least, most) = (begin_m.max(from_m), (begin_m + line.length_m).min(until_m));
            if least > most {
                continue;
            }
            let way_m = begin_m + (at_m - line.from_m).dot(line.ahead);
            let way_m = way_m.clamp(least, most);
            let distance_m = at_m.distance(line.from_m + line.ahead * (way_m - begin_m));
            if distance_m < nearest.1 {
                nearest = (way_m, distance_m);
            }
        }
        nearest
    }
}
