//! The path that the flange has taken: a line in space that fades with age.

use std::collections::VecDeque;
use std::ops::Range;

use glam::{Vec2, Vec3};

use super::raster::{Area, Canvas};
use super::view::{Spot, View};
use crate::camera::image::{HEIGHT, WIDTH};

/// A place is kept so long, ns.
const KEPT_NS: u64 = 8_000_000_000;
/// From one place that is kept to the next, m at least.
const STEP_M: f32 = 0.003;
/// Most places: a flange in full haste would leave more of them, and a shorter line.
const PLACES_MAX: usize = 1500;
/// Half the width of the line's core and of its glow, points.
const CORE: f32 = 1.1;
const GLOW: f32 = 5.0;
/// How bright the glow is where it meets the core.
const GLOW_PART: f32 = 0.28;
/// A surface hides the line if it is nearer by this part of its distance.
const HIDES: f32 = 1.004;

/// The line, and how it covers the picture.
pub(super) struct Trace {
    places: VecDeque<(u64, Vec3)>,
    /// Of each point of the picture, how much of it is line: 0 to 255.
    cover: Vec<u8>,
    area: Area,
}

impl Trace {
    pub(super) fn new() -> Trace {
        Trace {
            places: VecDeque::with_capacity(PLACES_MAX),
            cover: vec![0; WIDTH * HEIGHT],
            area: Area::NONE,
        }
    }

    /// The flange is here.
    pub(super) fn add(&mut self, time_ns: u64, place: Vec3) {
        if self.places.back().is_none_or(|(_, last)| last.distance(place) >= STEP_M) {
            if self.places.len() == PLACES_MAX {
                self.places.pop_front();
            }
            self.places.push_back((time_ns, place));
        }
    }

    /// Draws what is left of it, and on to where the flange is now; surfaces that are nearer hide
    /// it. `canvas` has `fine` cells for each point, each way.
    pub(super) fn draw(
        &mut self,
        time_ns: u64,
        flange: Vec3,
        view: &View,
        canvas: &Canvas,
        fine: usize,
    ) {
        self.clear();
        let old = |time_ns: &u64, now_ns: u64| now_ns.saturating_sub(*time_ns);
        while self.places.front().is_some_and(|(at_ns, _)| old(at_ns, time_ns) > KEPT_NS) {
            self.places.pop_front();
        }
        let hides = |column: usize, row: usize, near: f32| {
            canvas.at(column * fine + fine / 2, row * fine + fine / 2).near > near * HIDES
        };
        let now = (time_ns, flange);
        let places = self.places.iter().chain([&now]);
        let ends = places.clone().zip(places.skip(1));
        for ((at_ns, from), (_, to)) in ends {
            let age = old(at_ns, time_ns) as f32 / KEPT_NS as f32;
            let line = Line { from: view.spot(*from), to: view.spot(*to), bright: 1.0 - age };
            line.draw(&mut self.cover, &mut self.area, hides);
        }
    }

    /// How much of each point of a row is line; `None`: no point of it.
    pub(super) fn row(&self, row: usize) -> Option<(Range<usize>, &[u8])> {
        let columns = self.area.columns.clone();
        let cover = || &self.cover[row * WIDTH..][columns.clone()];
        self.area.rows.contains(&row).then(|| (columns.clone(), cover()))
    }

    fn clear(&mut self) {
        for row in self.area.rows.clone() {
            self.cover[row * WIDTH..][self.area.columns.clone()].fill(0);
        }
        self.area = Area::NONE;
    }
}

/// A piece of the line as it is seen.
struct Line {
    from: Spot,
    to: Spot,
    bright: f32,
}

impl Line {
    fn draw(&self, cover: &mut [u8], area: &mut Area, hides: impl Fn(usize, usize, f32) -> bool) {
        let (low, high) = (self.from.at.min(self.to.at), self.from.at.max(self.to.at));
        // Casts saturate: what lies outside has no points.
        let span = |low: f32, high: f32, size: usize| {
            ((low - GLOW).max(0.0) as usize).min(size)..((high + GLOW + 1.0) as usize).min(size)
        };
        let (columns, rows) = (span(low.x, high.x, WIDTH), span(low.y, high.y, HEIGHT));
        if columns.is_empty() || rows.is_empty() {
            return;
        }
        area.add(columns.clone(), rows.clone());
        for row in rows {
            for column in columns.clone() {
                let at = Vec2::new(column as f32, row as f32) + 0.5;
                let (far, near) = self.distance(at);
                if far >= GLOW {
                    continue;
                }
                let bright = brightness(far) * self.bright * 255.0;
                let point = &mut cover[row * WIDTH + column];
                if bright as u8 > *point && !hides(column, row, near) {
                    *point = bright as u8;
                }
            }
        }
    }

    /// How far a point is from the line, and how near the line is to the camera there.
    fn distance(&self, at: Vec2) -> (f32, f32) {
        let way = self.to.at - self.from.at;
        let part = (at - self.from.at).dot(way) / way.length_squared().max(1e-6);
        let part = part.clamp(0.0, 1.0);
        let near = self.from.near + (self.to.near - self.from.near) * part;
        (at.distance(self.from.at + way * part), near)
    }
}

/// How bright the line is so many points from its middle.
fn brightness(far: f32) -> f32 {
    let core = (CORE + 0.5 - far).clamp(0.0, 1.0);
    let glow = (1.0 - far / GLOW).max(0.0);
    core.max(glow * glow * GLOW_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn drawn(trace: &mut Trace, time_ns: u64, flange: Vec3) -> u32 {
        let view = View::new(Vec3::new(0.0, -1.0, 0.0), Vec3::ZERO, 1.0);
        trace.draw(time_ns, flange, &view, &Canvas::new(WIDTH, HEIGHT), 1);
        trace.cover.iter().map(|&part| u32::from(part)).sum()
    }

    #[test]
    fn a_line_fades_and_is_gone() {
        let mut trace = Trace::new();
        for step in 0..100_u64 {
            trace.add(step, Vec3::X * (step as f32 * 0.0016));
        }
        assert_eq!(trace.places.len(), 50, "every second one");
        let end = Vec3::X * 0.16;
        let young = drawn(&mut trace, SECOND_NS, end);
        let older = drawn(&mut trace, 6 * SECOND_NS, end);
        assert!(young > 2 * older && older > 0, "{young}, {older}");
        let gone = drawn(&mut trace, 9 * SECOND_NS, end);
        assert!(gone < older / 4 && trace.places.is_empty(), "{gone}");
    }

    #[test]
    fn it_never_holds_more_places_than_it_may() {
        let mut trace = Trace::new();
        for step in 0..3 * PLACES_MAX as u64 {
            trace.add(0, Vec3::X * step as f32);
        }
        assert_eq!(trace.places.len(), PLACES_MAX);
        // Lines far outside the picture, and through the camera, are no trouble.
        drawn(&mut trace, 0, Vec3::new(0.0, -1.0, 0.0));
    }
}
