//! Fills and strokes on the picture.

use glam::Vec2;
use tiny_skia::{
    Color, FillRule, GradientStop, LinearGradient, Paint, Path, PathBuilder, Pixmap, Point, Shader,
    SpreadMode, Stroke, Transform,
};

/// The convex hull of points, always in the same direction of rotation: Andrew's monotone chain.
pub(super) fn hull(mut points: Vec<Vec2>) -> Vec<Vec2> {
    points.sort_unstable_by(|one, other| one.x.total_cmp(&other.x).then(one.y.total_cmp(&other.y)));
    let mut hull: Vec<Vec2> = Vec::with_capacity(points.len());
    let there = points.iter();
    for half in [there.clone().collect::<Vec<_>>(), there.rev().collect()] {
        let kept = hull.len();
        for &point in half {
            while let [.., before, last] = hull[kept..]
                && (last - before).perp_dot(point - before) <= 0.0
            {
                hull.pop();
            }
            hull.push(point);
        }
        hull.pop();
    }
    hull
}

/// Closed shapes as one path; overlaps count once if the shapes have the same direction of
/// rotation.
pub(super) fn shapes<S>(shapes: impl IntoIterator<Item = S>) -> Option<Path>
where
    S: IntoIterator<Item = Vec2>,
{
    let mut path = PathBuilder::new();
    for shape in shapes {
        add(&mut path, shape);
        path.close();
    }
    path.finish()
}

/// A disc around a point.
pub(super) fn disc(middle: Vec2, radius: f32) -> Option<Path> {
    PathBuilder::from_circle(middle.x, middle.y, radius)
}

/// A line through points.
pub(super) fn line(points: impl IntoIterator<Item = Vec2>) -> Option<Path> {
    let mut path = PathBuilder::new();
    add(&mut path, points);
    path.finish()
}

fn add(path: &mut PathBuilder, points: impl IntoIterator<Item = Vec2>) {
    for (at, point) in points.into_iter().enumerate() {
        match at {
            0 => path.move_to(point.x, point.y),
            _ => path.line_to(point.x, point.y),
        }
    }
}

/// A colour that covers a part of what is behind it.
pub(super) fn colour([red, green, blue]: [u8; 3], part: f32) -> Color {
    Color::from_rgba8(red, green, blue, (part * 255.0) as u8)
}

/// A gradient between two points; each colour is at its part of the way. Beyond the points it has
/// the colours of the ends.
pub(super) fn blend(ends: [Vec2; 2], colours: &[(f32, Color)]) -> Shader<'static> {
    let stops = colours.iter().map(|&(part, colour)| GradientStop::new(part, colour)).collect();
    let [start, end] = ends.map(|point| Point::from_xy(point.x, point.y));
    let blend = LinearGradient::new(start, end, stops, SpreadMode::Pad, Transform::identity());
    // If both points are the same there is no direction: then one colour is used.
    blend.unwrap_or(Shader::SolidColor(colours[0].1))
}

/// Fills a path; does nothing without a path, or if it cannot be drawn.
pub(super) fn fill(picture: &mut Pixmap, path: Option<Path>, shader: Shader<'_>) {
    let paint = Paint { shader, ..Paint::default() };
    if let Some(path) = path {
        picture.fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
    }
}

/// Draws along a path, `width` points wide; does nothing if there is no path.
pub(super) fn stroke(picture: &mut Pixmap, path: Option<&Path>, width: f32, shader: Shader<'_>) {
    let paint = Paint { shader, ..Paint::default() };
    if let Some(path) = path {
        let stroke = Stroke { width, ..Stroke::default() };
        picture.stroke_path(path, &paint, &stroke, Transform::identity(), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hull_has_the_outer_points_and_always_the_same_way_round() {
        let square = [(0.0, 0.0), (2.0, 2.0), (1.0, 1.0), (2.0, 0.0), (0.5, 1.0), (0.0, 2.0)];
        let found = hull(square.map(|(x, y)| Vec2::new(x, y)).to_vec());
        assert_eq!(found, [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)].map(Vec2::from));
        assert_eq!(hull(vec![]), []);
        hull(vec![Vec2::ONE; 3]);
        hull(vec![Vec2::NAN, Vec2::ONE, Vec2::ZERO]);
    }
}
