//! The camera without a device: draws the arm in the pose that its drives report.
//!
//! The arm is made of round tubes, drawn in slices, the farthest first. The room around it is
//! painted once.

mod arm;
mod brush;
mod room;
mod track;
mod view;
mod words;

use std::path::Path;

use glam::Vec3;
use sinew_core::Fault;
use sinew_robot::arm::KinematicChain;
use sinew_robot::kinematics::Joints;
use tiny_skia::{Pixmap, Shader};

use self::arm::{Tube, frames};
use self::brush::{colour, disc, fill, line, shapes, stroke};
use self::track::{Piece, Track};
use self::view::Pinhole;
use self::words::Label;
use super::image::{HEIGHT, PixelRow, ROW_LEN, WIDTH};
use super::source::{FrameSource, Shot};

/// The colours of the flange's path and place, of words, and of warnings.
const TRACK: [u8; 3] = [96, 224, 255];
const WORDS: [u8; 3] = [226, 233, 242];
const WARNING: [u8; 3] = [255, 196, 84];

/// The arm's shadow, and how much it covers.
const SHADOW: ([u8; 3], f32) = ([8, 10, 14], 0.42);
/// The glow of the path and its core: width in points, and how much they cover.
const STROKES: [(f32, f32); 2] = [(7.0, 0.16), (2.4, 1.0)];
/// Radius of the mark where the flange is, points.
const MARK: f32 = 4.0;

/// The pose counts as missing if none came for this long, ns.
const MISSED_NS: u64 = 1_000_000_000;

/// Draws the pictures.
pub struct Synthetic {
    chain: KinematicChain,
    tubes: Vec<Tube>,
    view: Pinhole,
    /// The room without the arm.
    room: Pixmap,
    picture: Pixmap,
    track: Track,
    joints: Joints,
}

/// Something that can hide other things and be hidden.
enum Layer<'a> {
    Slice(&'a Tube, usize),
    Piece(&'a Piece),
    Mark(Vec3),
}

impl Synthetic {
    /// Draws the arm in this file, which is at `joints` until another pose comes.
    ///
    /// # Errors
    /// If the file cannot be read or does not describe a suitable arm.
    pub fn new(arm: &Path, joints: Joints) -> Result<Synthetic, Fault> {
        let chain = KinematicChain::read(arm)?;
        let blank = Pixmap::new(WIDTH as u32, HEIGHT as u32).expect("a frame has points");
        Ok(Synthetic {
            tubes: arm::tubes(&chain),
            chain,
            view: Pinhole::of_the_arm(),
            room: blank.clone(),
            picture: blank,
            track: Track::new(),
            joints,
        })
    }

    fn draw(&mut self, time_ns: u64) {
        let frames = frames(&self.chain, &self.joints);
        let flange = Vec3::from(frames[7].translation);
        let tubes: Vec<_> = self.tubes.iter().map(|tube| tube.moved(&frames[tube.link])).collect();
        let pieces = self.track.pieces(time_ns, flange);
        let mut layers = vec![Layer::Mark(flange)];
        layers.extend(pieces.iter().map(Layer::Piece));
        for tube in &tubes {
            layers.extend((0..tube.slices).map(|slice| Layer::Slice(tube, slice)));
        }
        layers.sort_by_cached_key(|layer| layer.order(&self.view));
        self.picture.data_mut().copy_from_slice(self.room.data());
        let shadows = tubes.iter().map(|tube| tube.shadow(&self.view));
        let shadow = colour(SHADOW.0, SHADOW.1);
        fill(&mut self.picture, shapes(shadows), Shader::SolidColor(shadow));
        layers.iter().for_each(|layer| layer.draw(&self.view, &mut self.picture));
    }

    /// What is written on the picture.
    fn labels(shot: &Shot) -> Vec<Label> {
        let &Shot { time_ns, number, pose_ns } = shot;
        let (seconds, millis) = (time_ns / 1_000_000_000, time_ns / 1_000_000 % 1000);
        let words = format!("frame {number:06}  {seconds}.{millis:03} s");
        let mut labels = vec![Label { words, left: 10, top: HEIGHT - 32, ink: WORDS }];
        let age_ns = time_ns.saturating_sub(pose_ns);
        if age_ns >= MISSED_NS {
            let words = format!("no pose since {} s", age_ns / 1_000_000_000);
            let left = WIDTH.saturating_sub(Label::width(&words)) / 2;
            labels.push(Label { words, left, top: 14, ink: WARNING });
        }
        labels
    }
}

impl Layer<'_> {
    /// A key that puts the farthest first.
    fn order(&self, view: &Pinhole) -> std::cmp::Reverse<u32> {
        let middle = match self {
            Layer::Slice(tube, slice) => tube.middle(*slice),
            Layer::Piece(piece) => piece.places[piece.places.len() / 2],
            Layer::Mark(place) => *place,
        };
        // In steps of 0.1 mm.
        std::cmp::Reverse((view.eye.distance(middle) * 1e4) as u32)
    }

    fn draw(&self, view: &Pinhole, picture: &mut Pixmap) {
        match self {
            Layer::Slice(tube, slice) => tube.draw(*slice, view, picture),
            Layer::Piece(piece) => {
                let way = line(piece.places.iter().map(|&place| view.spot(place)));
                for (width, part) in STROKES {
                    let ink = Shader::SolidColor(colour(TRACK, part * piece.fresh));
                    stroke(picture, way.as_ref(), width, ink);
                }
            }
            Layer::Mark(place) => {
                fill(
                    picture,
                    disc(view.spot(*place), MARK),
                    Shader::SolidColor(colour(TRACK, 1.0)),
                );
            }
        }
    }
}

impl FrameSource for Synthetic {
    fn start(&mut self) -> Result<(), Fault> {
        room::paint(&mut self.room, &self.view);
        Ok(())
    }

    fn moved(&mut self, time_ns: u64, joints: &Joints) {
        self.joints = *joints;
        let [.., flange] = frames(&self.chain, joints);
        self.track.add(time_ns, flange.translation.into());
    }

    fn frame(&mut self, shot: &Shot, put: &mut dyn FnMut(usize, &PixelRow)) -> Result<(), Fault> {
        self.draw(shot.time_ns);
        Synthetic::labels(shot).iter().for_each(|label| label.draw(&mut self.picture));
        let mut row = [0; ROW_LEN];
        for (y, points) in self.picture.data().chunks_exact(4 * WIDTH).enumerate() {
            let points = points.as_chunks::<4>().0;
            for (to, from) in row.as_chunks_mut::<3>().0.iter_mut().zip(points) {
                to.copy_from_slice(&from[..3]);
            }
            put(y, &row);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
