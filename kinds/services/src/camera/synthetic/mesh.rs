//! Solids of triangles, made once: lofts through hulls of discs, which is what castings look like.

use std::collections::HashMap;

use glam::{Affine3A, Vec2, Vec3};

/// Points of an outline: 15 degrees from one to the next look round.
const OUTLINE: usize = 24;

/// Faces that meet at less than this (cosine) are one smooth surface.
const SMOOTH: f32 = 0.85;

/// Cuts through the curve of a rim.
const RIM_CUTS: usize = 2;

/// A corner of triangles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vertex {
    pub(super) position: Vec3,
    pub(super) normal: Vec3,
}

/// What a surface is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Material {
    Paint,
    Graphite,
    Steel,
}

/// A solid.
pub(super) struct Mesh {
    pub(super) material: Material,
    pub(super) vertices: Vec<Vertex>,
    /// Corners counter-clockwise, seen from outside.
    pub(super) triangles: Vec<[u32; 3]>,
}

/// A disc across an axis: the hull of some is an outline.
pub(super) type Disc = (Vec3, f32);

/// A cut through a solid.
pub(super) struct Section<'a> {
    /// Where along the axis, m from the origin.
    pub(super) at: f32,
    /// What the outline encloses; only their places across the axis count.
    pub(super) discs: &'a [Disc],
    /// How far inside the hull the outline lies, m.
    pub(super) inset: f32,
}

impl Mesh {
    /// The solid through these cuts, which lie in the order of `axis`, with flat ends.
    pub(super) fn loft(material: Material, axis: Vec3, sections: &[Section<'_>]) -> Mesh {
        let across = axis.any_orthonormal_vector();
        let up = axis.cross(across);
        let mut points = Vec::new();
        for section in sections {
            let flat = |place: Vec3| Vec2::new(place.dot(across), place.dot(up));
            points.extend((0..OUTLINE).map(|at| {
                let turn = at as f32 / OUTLINE as f32 * std::f32::consts::TAU;
                let place = farthest(section, Vec2::from_angle(turn), flat);
                across * place.x + up * place.y + axis * section.at
            }));
        }
        let mut triangles = Vec::new();
        let corner = |cut: usize, point: usize| (cut * OUTLINE + point % OUTLINE) as u32;
        for cut in 1..sections.len() {
            for point in 0..OUTLINE {
                let low = [corner(cut - 1, point), corner(cut - 1, point + 1)];
                let high = [corner(cut, point), corner(cut, point + 1)];
                triangles.extend([[low[0], low[1], high[0]], [low[1], high[1], high[0]]]);
            }
        }
        let last = sections.len() - 1;
        for point in 2..OUTLINE {
            triangles.push([corner(0, 0), corner(0, point), corner(0, point - 1)]);
            triangles.push([corner(last, 0), corner(last, point - 1), corner(last, point)]);
        }
        smoothed(material, &points, &triangles)
    }

    /// A plate across `axis` from `ends.0` to `ends.1` (m along it), in outline the hull of discs,
    /// with rounded rims.
    pub(super) fn plate(
        material: Material,
        axis: Vec3,
        discs: &[Disc],
        ends: (f32, f32),
        rim: f32,
    ) -> Mesh {
        let cut = |at, inset| Section { at, discs, inset };
        // How far from the end and from the outline the rim's quarter of a circle runs.
        let rims = || {
            (0..=RIM_CUTS).map(|step| {
                let angle = step as f32 / RIM_CUTS as f32 * std::f32::consts::FRAC_PI_2;
                (rim * (1.0 - angle.cos()), rim * (1.0 - angle.sin()))
            })
        };
        let begin = rims().map(|(depth, inset)| cut(ends.0 + depth, inset));
        let end = rims().map(|(depth, inset)| cut(ends.1 - depth, inset));
        let mut end: Vec<_> = end.collect();
        end.reverse();
        Mesh::loft(material, axis, &begin.chain(end).collect::<Vec<_>>())
    }

    /// A body of revolution about `axis` through `origin`: places along it (m from the origin) and
    /// radii there.
    pub(super) fn turned(
        material: Material,
        origin: Vec3,
        axis: Vec3,
        profile: &[(f32, f32)],
    ) -> Mesh {
        let along = origin.dot(axis);
        let discs: Vec<[Disc; 1]> = profile.iter().map(|&(_, radius)| [(origin, radius)]).collect();
        let cuts = profile.iter().zip(&discs);
        let sections = cuts.map(|(&(at, _), discs)| Section { at: along + at, discs, inset: 0.0 });
        Mesh::loft(material, axis, &sections.collect::<Vec<_>>())
    }

    /// The same solid elsewhere.
    pub(super) fn moved(mut self, by: &Affine3A) -> Mesh {
        for vertex in &mut self.vertices {
            vertex.position = by.transform_point3(vertex.position);
            vertex.normal = by.transform_vector3(vertex.normal);
        }
        self
    }
}

/// The point of a cut's outline that lies farthest in a direction.
fn farthest(section: &Section<'_>, direction: Vec2, flat: impl Fn(Vec3) -> Vec2) -> Vec2 {
    let points = section
        .discs
        .iter()
        .map(|&(centre, radius)| flat(centre) + direction * (radius - section.inset).max(0.0));
    let far = |a: &Vec2, b: &Vec2| a.dot(direction).total_cmp(&b.dot(direction));
    points.max_by(far).unwrap_or(Vec2::ZERO)
}

/// Gives each corner the normal of the smooth surface that it belongs to.
fn smoothed(material: Material, points: &[Vec3], triangles: &[[u32; 3]]) -> Mesh {
    // As long as the area, so that a large face bends less than the small ones beside it.
    let area = |triangle: &[u32; 3]| {
        let [a, b, c] = triangle.map(|corner| points[corner as usize]);
        (b - a).cross(c - a)
    };
    let areas: Vec<Vec3> = triangles.iter().map(area).collect();
    let mut faces = vec![Vec::new(); points.len()];
    for (face, triangle) in triangles.iter().enumerate() {
        triangle.iter().for_each(|&corner| faces[corner as usize].push(face));
    }
    let mut mesh = Mesh { material, vertices: Vec::new(), triangles: Vec::new() };
    let mut known = HashMap::new();
    // Ends of a cut with fewer points than others are triangles without an area.
    for (face, triangle) in triangles.iter().enumerate().filter(|it| areas[it.0].length() > 1e-9) {
        let own = areas[face].normalize();
        mesh.triangles.push(triangle.map(|corner| {
            let near = faces[corner as usize].iter().map(|&face| areas[face]);
            let near = near.filter(|area| area.normalize_or_zero().dot(own) > SMOOTH);
            let normal = near.sum::<Vec3>().normalize_or(own);
            let key = (corner, (normal * 500.0).round().as_ivec3());
            *known.entry(key).or_insert_with(|| {
                mesh.vertices.push(Vertex { position: points[corner as usize], normal });
                mesh.vertices.len() as u32 - 1
            })
        }));
    }
    mesh
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ball_of_cuts_looks_outwards_everywhere() {
        let profile = [(-1.0, 0.2), (-0.7, 0.7), (0.0, 1.0), (0.7, 0.7), (1.0, 0.2)];
        let ball = Mesh::turned(Material::Paint, Vec3::ZERO, Vec3::Y, &profile);
        assert!(!ball.triangles.is_empty());
        for triangle in &ball.triangles {
            let [a, b, c] = triangle.map(|corner| ball.vertices[corner as usize]);
            let outwards = (b.position - a.position).cross(c.position - a.position);
            assert!(outwards.dot(a.position + b.position + c.position) > 0.0);
            for vertex in [a, b, c] {
                assert!(vertex.normal.dot(outwards.normalize()) > SMOOTH / 2.0);
                assert!((vertex.normal.length() - 1.0).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn a_plate_has_the_outline_of_its_discs() {
        let discs = [(Vec3::ZERO, 0.5), (Vec3::X * 3.0, 0.25)];
        let plate = Mesh::plate(Material::Steel, Vec3::Z, &discs, (0.0, 0.2), 0.05);
        let far = |direction: Vec3| {
            let along = plate.vertices.iter().map(|vertex| vertex.position.dot(direction));
            along.fold(f32::MIN, f32::max)
        };
        for (direction, expected) in
            [(Vec3::X, 3.25), (-Vec3::X, 0.5), (Vec3::Y, 0.5), (Vec3::Z, 0.2), (-Vec3::Z, 0.0)]
        {
            assert!((far(direction) - expected).abs() < 0.005, "{direction}: {}", far(direction));
        }
    }
}
