//! What a surface looks like in the light.

use glam::Vec3;

use super::colour::Colour;
use super::light::Light;
use super::mesh::Material;
use super::raster::ONES;

/// Light of the lamp, of the sky above and of the floor below.
const LAMP: Colour = Colour::new(1.34, 1.27, 1.18);
const SKY: Colour = Colour::new(0.27, 0.32, 0.39);
const GROUND: Colour = Colour::new(0.10, 0.10, 0.11);
/// A weak light from the other side, so that no side is flat.
const BACK: Colour = Colour::new(0.20, 0.28, 0.38);
const BACK_TOWARD: Vec3 = Vec3::new(0.62, 0.67, 0.41);
/// Close to the floor less of the sky is seen: down to this part of it, up to this height, m.
const CLOSE: (f32, f32) = (0.55, 0.16);

/// How a material gives light back.
struct Look {
    colour: Colour,
    /// Part of the light that it mirrors, and how sharply: the exponent of Blinn (1977), as a
    /// power of two.
    gloss: f32,
    sharp: u32,
}

const LOOKS: [Look; 3] = [
    Look { colour: Colour::new(0.86, 0.195, 0.028), gloss: 0.32, sharp: 5 },
    Look { colour: Colour::new(0.042, 0.046, 0.054), gloss: 0.22, sharp: 4 },
    Look { colour: Colour::new(0.50, 0.52, 0.54), gloss: 0.9, sharp: 6 },
];

/// Bits of each part of a normal in a packed surface; the material stands above them.
const BITS: u32 = 10;
const HALF: f32 = 511.0;

/// A normal as [`packed`] wants it.
pub(super) fn scaled(normal: Vec3) -> [f32; 3] {
    (normal * HALF + HALF).to_array()
}

/// Normal and material in a word.
#[inline(always)]
pub(super) fn packed(scaled: [f32; 3], material: Material) -> u32 {
    let [x, y, z] = scaled.map(|part| (part + ONES).to_bits() & ((1 << BITS) - 1));
    x | y << BITS | z << (2 * BITS) | (material as u32) << (3 * BITS)
}

/// The normals in packed surfaces, four at most, added up; a single one is some [`HALF`] long.
pub(super) fn normals(surfaces: impl Iterator<Item = u32>) -> Vec3 {
    const PART: u32 = (1 << BITS) - 1;
    /// The outer parts of a normal: each has room above it for the sum of four.
    const OUTER: u32 = PART | (PART << (2 * BITS));
    let (mut outer, mut inner, mut count) = (0, 0, 0.0);
    for surface in surfaces {
        outer += surface & OUTER;
        inner += (surface >> BITS) & PART;
        count += 1.0;
    }
    let parts = [outer & ((1 << (2 * BITS)) - 1), inner, outer >> (2 * BITS)];
    Vec3::from_array(parts.map(|part| part as i32 as f32)) - count * HALF
}

/// A number for the material in a packed surface.
pub(super) fn material(surface: u32) -> usize {
    (surface >> (3 * BITS)) as usize
}

/// The colour of a surface at a place, seen from `eye`.
pub(super) fn colour(
    material: usize,
    place: Vec3,
    normal: Vec3,
    eye: Vec3,
    light: &Light,
) -> Colour {
    let look = &LOOKS[material.min(LOOKS.len() - 1)];
    let normal = normal.normalize_or(Vec3::Z);
    let view = (eye - place).normalize();
    let facing = normal.dot(light.toward);
    let reaches = if facing > 0.0 { light.reaches(place) } else { 0.0 };
    let lamp = LAMP * (facing.max(0.0) * reaches);
    let open = CLOSE.0 + (1.0 - CLOSE.0) * (place.z / CLOSE.1).clamp(0.0, 1.0);
    let around = GROUND.lerp(SKY, 0.5 + 0.5 * normal.z) * open;
    let back = BACK * normal.dot(BACK_TOWARD).max(0.0);
    // Schlick (1994): at a grazing angle everything mirrors.
    let seen = normal.dot(view);
    let grazing = (1.0 - seen.max(0.0)).powi(5);
    // The cosine to the direction halfway between lamp and eye, both of length 1.
    let halves = (2.0 + 2.0 * light.toward.dot(view)).sqrt();
    let mut shine = ((facing + seen) / halves).max(0.0);
    (0..look.sharp).for_each(|_| shine *= shine);
    let mirrored = LAMP * (shine * look.gloss * reaches) + around * (grazing * (0.25 + look.gloss));
    look.colour * (lamp + around + back) + mirrored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normals_of_four_surfaces_are_added_up() {
        let all = [Vec3::X, Vec3::Y, Vec3::Z, -Vec3::Z];
        let words = all.map(|at| packed(scaled(at), Material::Steel));
        let sum = normals(words.into_iter()) / HALF;
        assert!(sum.distance(Vec3::new(1.0, 1.0, 0.0)) < 0.01, "{sum}");
        let all = normals([packed(scaled(Vec3::ONE), Material::Steel); 4].into_iter()) / HALF;
        assert!(all.distance(Vec3::splat(4.0)) < 0.01, "{all}");
    }

    #[test]
    fn a_packed_surface_keeps_its_normal_and_material() {
        for at in [Vec3::X, -Vec3::Y, Vec3::Z, Vec3::new(0.6, -0.64, 0.48)] {
            for kind in [Material::Paint, Material::Graphite, Material::Steel] {
                let word = packed(scaled(at), kind);
                let kept = normals([word].into_iter()) / HALF;
                assert!(kept.distance(at) < 0.005, "{at}: {kept}");
                assert_eq!(material(word), kind as usize);
            }
        }
    }
}
