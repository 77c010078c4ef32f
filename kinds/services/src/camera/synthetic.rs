//! The camera that needs none: a picture of the arm as its drives say that it stands.
//!
//! The arm is drawn with four looks at each point and shaded once where they agree; the room around
//! it was painted before. Rows are put together one by one, on their way out.

mod chain;
mod colour;
mod light;
mod mesh;
mod model;
mod overlay;
mod raster;
mod studio;
mod surface;
mod trace;
mod view;

use std::path::Path;

use glam::{Affine3A, Vec2, Vec3};
use sinew_robot::kinematics::Joints;
use sinew_runtime::Fault;

use self::chain::{Chain, Frames};
use self::colour::Colour;
use self::light::Light;
use self::model::Part;
use self::overlay::Label;
use self::raster::{Canvas, Cell, Corner};
use self::studio::Studio;
use self::trace::Trace;
use self::view::{Spot, View};
use super::image::{HEIGHT, Row, WIDTH};
use super::source::{Shot, Source};

/// Looks at each point, each way.
const FINE: usize = 2;

/// Where the camera stands, what it looks at (m), and what it sees from top to bottom (degrees).
const EYE: Vec3 = Vec3::new(1.16, -1.22, 0.78);
const TARGET: Vec3 = Vec3::new(0.13, 0.0, 0.315);
const ANGLE_DEG: f32 = 31.0;

/// Towards the lamp.
const LAMP: Vec3 = Vec3::new(0.35, -0.75, 1.15);

/// Surfaces at one point that are farther apart than this part of their distance are two.
const APART: f32 = 0.01;

/// The flange's path, words, and words that warn.
const TRACE: [u8; 3] = [96, 224, 255];
const WORDS: [u8; 3] = [226, 233, 242];
const WARNING: [u8; 3] = [255, 196, 84];

/// A pose is missed once there was none for so long, ns.
const MISSED_NS: u64 = 1_000_000_000;

/// The picture's maker.
pub struct Synthetic {
    chain: Chain,
    parts: Vec<Part>,
    view: View,
    studio: Studio,
    light: Light,
    canvas: Canvas,
    trace: Trace,
    /// A part's corners as the camera and as the lamp see them; kept to save allocating them.
    seen: Vec<Corner<3>>,
    lit: Vec<Corner<0>>,
    joints: Joints,
    shot: Shot,
}

impl Synthetic {
    /// A picture of the arm in this file, which stands at `joints` until something else is heard.
    ///
    /// # Errors
    /// If the file cannot be read or describes no arm that fits.
    pub fn new(arm: &Path, joints: Joints) -> Result<Synthetic, Fault> {
        let chain = Chain::read(arm)?;
        let view = View::new(EYE, TARGET, ANGLE_DEG.to_radians());
        Ok(Synthetic {
            parts: model::parts(&chain),
            chain,
            studio: Studio::empty(),
            view,
            light: Light::new(LAMP),
            canvas: Canvas::new(WIDTH * FINE, HEIGHT * FINE),
            trace: Trace::new(),
            seen: Vec::new(),
            lit: Vec::new(),
            joints,
            shot: Shot::default(),
        })
    }

    fn flange(&self, frames: &Frames) -> Vec3 {
        frames.flange.translation.into()
    }

    /// Draws the arm as the camera and as the lamp see it, its shadow and its trace.
    fn draw(&mut self) {
        let frames = self.chain.frames(&self.joints);
        self.canvas.clear();
        self.light.clear();
        for part in &self.parts {
            let frame = part.link.checked_sub(1).map_or(Affine3A::IDENTITY, |at| frames.links[at]);
            self.seen.clear();
            self.lit.clear();
            for vertex in &part.mesh.vertices {
                let place = frame.transform_point3(vertex.position);
                let normal = frame.transform_vector3(vertex.normal);
                let Spot { at, near } = self.view.spot(place);
                self.seen.push(Corner {
                    at: at * FINE as f32,
                    near,
                    values: surface::scaled(normal),
                });
                self.lit.push(self.light.corner(place));
            }
            let material = part.mesh.material;
            for triangle in &part.mesh.triangles {
                let [a, b, c] = triangle.map(|corner| corner as usize);
                let paint = |normal| surface::packed(normal, material);
                self.canvas.draw([&self.seen[a], &self.seen[b], &self.seen[c]], paint);
                self.light.draw([&self.lit[a], &self.lit[b], &self.lit[c]]);
            }
        }
        self.light.soften();
        let flange = self.flange(&frames);
        self.trace.draw(self.shot.time_ns, flange, &self.view, &self.canvas, FINE);
    }

    /// Darkens the floor where the arm stands in the light.
    fn darken(&self, y: usize, points: &mut [[u8; 3]; WIDTH]) {
        let floor = |x: usize| studio::floor(&self.view, Vec2::new(x as f32, y as f32) + 0.5);
        let (Some(from), Some(to)) = (floor(0), floor(WIDTH)) else { return };
        // The camera is level: along a row the floor runs evenly.
        let step = (to - from) / WIDTH as f32;
        let [lit, lit_to] = [from, to].map(|place| self.light.cell(place));
        let lit_step = (lit_to - lit) / WIDTH as f32;
        for x in self.light.dark_steps(lit, lit_step, WIDTH) {
            let dark = self.light.darkens(lit + lit_step * x as f32);
            if dark > 0.0 {
                points[x] = studio::darkened(points[x], from + step * x as f32, dark);
            }
        }
    }

    /// Puts the arm before what is there.
    fn cover(&self, y: usize, points: &mut [[u8; 3]]) {
        let rows: [_; FINE] = std::array::from_fn(|at| y * FINE + at);
        let spans = rows.map(|row| self.canvas.span(row)).into_iter().filter(|it| !it.is_empty());
        let Some(span) = spans.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)) else {
            return;
        };
        let rows = rows.map(|row| self.canvas.row(row).as_chunks::<FINE>().0);
        for x in span.start / FINE..span.end.div_ceil(FINE) {
            let cells = rows.map(|row| row[x]);
            let cells = cells.as_flattened();
            if cells.iter().any(|cell| cell.near > 0.0) {
                let at = Vec2::new(x as f32, y as f32) + 0.5;
                points[x] = colour::coded(self.seen(at, cells, points[x]));
            }
        }
    }

    /// What is seen at a point of which these are the cells: one surface, shaded once, or some.
    fn seen(&self, at: Vec2, cells: &[Cell], behind: [u8; 3]) -> Colour {
        let first = cells[0];
        let material = surface::material(first.surface);
        let is_one = cells.iter().all(|cell| {
            let apart = (cell.near - first.near).abs();
            apart < first.near * APART && surface::material(cell.surface) == material
        });
        if is_one {
            let normal = surface::normals(cells.iter().map(|cell| cell.surface));
            return self.shade(material, at, first.near, normal);
        }
        let behind = colour::light(behind);
        let seen = cells.iter().map(|cell| match cell.near {
            0.0 => behind,
            near => {
                let material = surface::material(cell.surface);
                self.shade(material, at, near, surface::normals([cell.surface].into_iter()))
            }
        });
        seen.sum::<Colour>() / cells.len() as f32
    }

    fn shade(&self, material: usize, at: Vec2, near: f32, normal: Vec3) -> Colour {
        let place = self.view.place(Spot { at, near });
        surface::colour(material, place, normal, self.view.eye, &self.light)
    }

    /// What is written on the picture.
    fn labels(&self) -> Vec<Label> {
        let Shot { time_ns, number, pose_ns, .. } = self.shot;
        let (seconds, millis) = (time_ns / 1_000_000_000, time_ns / 1_000_000 % 1000);
        let words = format!("frame {number:06}  {seconds}.{millis:03} s");
        let mut labels = vec![Label::at(10, HEIGHT - 32, words, WORDS)];
        let age_ns = time_ns.saturating_sub(pose_ns);
        if age_ns >= MISSED_NS {
            let words = format!("no pose since {} s", age_ns / 1_000_000_000);
            labels.push(Label::amid(WIDTH, 14, words, WARNING));
        }
        labels
    }
}

impl Source for Synthetic {
    fn start(&mut self) -> Result<(), Fault> {
        self.studio = Studio::painted(&self.view);
        Ok(())
    }

    fn moved(&mut self, time_ns: u64, joints: &Joints) {
        self.joints = *joints;
        let flange = self.flange(&self.chain.frames(joints));
        self.trace.add(time_ns, flange);
    }

    fn frame(&mut self, shot: &Shot, put: &mut dyn FnMut(usize, &Row)) -> Result<(), Fault> {
        self.shot = *shot;
        self.draw();
        let labels = self.labels();
        let ink = colour::light(TRACE);
        for y in 0..HEIGHT {
            let mut points = *self.studio.row(y);
            self.darken(y, &mut points);
            self.cover(y, &mut points);
            if let Some((columns, parts)) = self.trace.row(y) {
                for (point, &part) in points[columns].iter_mut().zip(parts).filter(|it| *it.1 > 0) {
                    let under = colour::light(*point);
                    *point = colour::coded(under.lerp(ink, f32::from(part) / 255.0));
                }
            }
            labels.iter().for_each(|label| label.draw(y, &mut points));
            put(y, points.as_flattened().try_into().expect("as many points as a row has"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
