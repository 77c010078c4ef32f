//! The light, and what it does not reach: the arm seen from the light, which also gives the soft
//! shadow on the floor.

use std::ops::Range;

use glam::{Vec2, Vec3};

use super::raster::{Area, Canvas, Cell, Corner};

/// Cells of the light's picture, each way.
const CELLS: usize = 320;
/// What it shows, m each way: the arm stretched out in any direction fits in from its middle.
const WIDTH_M: f32 = 1.5;
const CELLS_PER_M: f32 = CELLS as f32 / WIDTH_M;
/// Its middle.
const MIDDLE: Vec3 = Vec3::new(0.1, 0.0, 0.3);
/// How much nearer to the light a surface must be to lie before another, m: what a cell's slope
/// hides, and a little more.
const BIAS_M: f32 = 0.014;
/// Added to distances, so that all are above 0, m.
const OFFSET_M: f32 = 4.0;
/// A part of the arm so far above its shadow casts the softest one, m.
const SOFTEST_M: f32 = 0.7;
/// Cells over which the hardest and the softest shadow are smoothed, each way.
const RADII: [usize; 2] = [1, 5];

/// A lamp far away.
pub(super) struct Light {
    /// Towards it.
    pub(super) toward: Vec3,
    right: Vec3,
    down: Vec3,
    canvas: Canvas,
    /// Of each cell: how dark the floor is there, from 0 to 1.
    soft: Vec<f32>,
    /// The same before it is put together, by [`RADII`]; and what it was before it is smoothed.
    parts: [Vec<f32>; 2],
    kept: Vec<f32>,
    /// Where `soft` is not 0.
    area: Area,
}

impl Light {
    pub(super) fn new(toward: Vec3) -> Light {
        let toward = toward.normalize();
        let right = (-toward).cross(Vec3::Z).normalize();
        let empty = || vec![0.0; CELLS * CELLS];
        Light {
            toward,
            right,
            down: (-toward).cross(right),
            canvas: Canvas::new(CELLS, CELLS),
            soft: empty(),
            parts: [empty(), empty()],
            kept: empty(),
            area: Area::NONE,
        }
    }

    /// How the light sees a place.
    pub(super) fn corner(&self, place: Vec3) -> Corner<0> {
        let near = (place - MIDDLE).dot(self.toward) + OFFSET_M;
        Corner { at: self.cell(place), near, values: [] }
    }

    /// Where on its picture the light sees a place.
    pub(super) fn cell(&self, place: Vec3) -> Vec2 {
        let off = place - MIDDLE;
        let across = Vec2::new(off.dot(self.right), off.dot(self.down));
        across * CELLS_PER_M + Vec2::splat(CELLS as f32 / 2.0)
    }

    /// Takes all shadows away.
    pub(super) fn clear(&mut self) {
        self.canvas.clear();
        for row in self.area.rows.clone() {
            let columns = self.area.columns.clone();
            self.soft[row * CELLS..][columns.clone()].fill(0.0);
            for part in &mut self.parts {
                part[row * CELLS..][columns.clone()].fill(0.0);
            }
        }
        self.area = Area::NONE;
    }

    /// A triangle casts its shadow.
    pub(super) fn draw(&mut self, corners: [&Corner<0>; 3]) {
        self.canvas.draw(corners, |[]| 0);
    }

    /// How much of the light reaches a place of the arm, from 0 to 1.
    pub(super) fn reaches(&self, place: Vec3) -> f32 {
        let corner = self.corner(place);
        let Some((cell, part)) = between(corner.at) else { return 1.0 };
        let free = |row: usize| {
            let cells = &self.canvas.row(cell.1 + row)[cell.0..][..2];
            let free = |cell: &Cell| if cell.near <= corner.near + BIAS_M { 1.0 } else { 0.0 };
            [free(&cells[0]), free(&cells[1])]
        };
        mixed([free(0), free(1)], part)
    }

    /// How dark the floor is that the light sees there, from 0 to 1.
    pub(super) fn darkens(&self, at: Vec2) -> f32 {
        let Some((cell, part)) = between(at) else { return 0.0 };
        let dark = |row: usize| {
            let cells = &self.soft[(cell.1 + row) * CELLS + cell.0..][..2];
            [cells[0], cells[1]]
        };
        mixed([dark(0), dark(1)], part)
    }

    /// Of so many steps over its picture those at which the floor may be dark.
    pub(super) fn dark_steps(&self, from: Vec2, step: Vec2, count: usize) -> Range<usize> {
        let Area { columns, rows } = &self.area;
        let low = Vec2::new(columns.start as f32, rows.start as f32);
        let high = Vec2::new(columns.end as f32, rows.end as f32);
        let (one, other) = ((low - from) / step, (high - from) / step);
        let (enters, leaves) = (one.min(other).max_element(), one.max(other).min_element());
        // Casts saturate, and make 0 of what is not a number.
        enters as usize..(leaves as usize).saturating_add(1).min(count)
    }

    /// The place of the floor that the light sees there.
    fn floor(&self, column: f32, row: f32) -> Vec3 {
        let across = (Vec2::new(column, row) - Vec2::splat(CELLS as f32 / 2.0)) / CELLS_PER_M;
        let place = MIDDLE + self.right * across.x + self.down * across.y;
        place - self.toward * (place.z / self.toward.z)
    }

    /// Makes the shadow on the floor of what was drawn: the farther from what casts it, the softer.
    pub(super) fn soften(&mut self) {
        let drawn = self.canvas.drawn();
        // Two passes each spread a cell over twice the radius.
        self.area = drawn.wider(2 * RADII[1] + 1, CELLS, CELLS);
        for row in drawn.rows {
            for column in self.canvas.span(row) {
                let near = self.canvas.at(column, row).near;
                if near > 0.0 {
                    let floor = self.floor(column as f32 + 0.5, row as f32 + 0.5);
                    let above = near - self.corner(floor).near;
                    let softness = (above / SOFTEST_M).clamp(0.0, 1.0);
                    self.parts[0][row * CELLS + column] = 1.0 - softness;
                    self.parts[1][row * CELLS + column] = softness;
                }
            }
        }
        for (part, radius) in self.parts.iter_mut().zip(RADII) {
            for _ in 0..2 {
                smooth(part, &self.area, radius, &mut self.kept);
            }
        }
        for row in self.area.rows.clone() {
            for at in self.area.columns.clone().map(|column| row * CELLS + column) {
                self.soft[at] = self.parts[0][at] + self.parts[1][at];
            }
        }
    }
}

/// The cell up and left of a place, and how far the place is on the way to the next ones.
fn between(at: Vec2) -> Option<((usize, usize), Vec2)> {
    let corner = at - Vec2::splat(0.5);
    let inside = 0.0..(CELLS - 1) as f32;
    (inside.contains(&corner.x) && inside.contains(&corner.y)).then(|| {
        let (column, row) = (corner.x as i32, corner.y as i32);
        let part = corner - Vec2::new(column as f32, row as f32);
        ((column as usize, row as usize), part)
    })
}

fn mixed([[a, b], [c, d]]: [[f32; 2]; 2], part: Vec2) -> f32 {
    let (up, down) = (a + (b - a) * part.x, c + (d - c) * part.x);
    up + (down - up) * part.y
}

/// Gives each cell the mean of those around it, first along the rows, then along the columns;
/// `kept` has room for all of them.
fn smooth(cells: &mut [f32], area: &Area, radius: usize, kept: &mut [f32]) {
    let share = 1.0 / (2 * radius + 1) as f32;
    let columns = area.columns.clone();
    for row in area.rows.clone() {
        mean(&mut cells[row * CELLS..][columns.clone()], radius, kept);
    }
    let (first, count) = (area.rows.start, area.rows.len());
    let kept = &mut kept[..count * columns.len()];
    for (row, kept) in kept.chunks_exact_mut(columns.len().max(1)).enumerate() {
        kept.copy_from_slice(&cells[(first + row) * CELLS..][columns.clone()]);
    }
    // All columns at once, so that what lies side by side in memory is added side by side.
    let line = |row: usize| kept[row * columns.len()..][..columns.len()].iter();
    let mut sums = [0.0; CELLS];
    for row in 0..count + radius {
        if row < count {
            sums.iter_mut().zip(line(row)).for_each(|(sum, cell)| *sum += cell);
        }
        if let Some(gone) = row.checked_sub(2 * radius + 1) {
            sums.iter_mut().zip(line(gone)).for_each(|(sum, cell)| *sum -= cell);
        }
        if let Some(row) = row.checked_sub(radius) {
            let means = sums.iter().map(|sum| (sum * share).max(0.0));
            let cells = &mut cells[(first + row) * CELLS..][columns.clone()];
            cells.iter_mut().zip(means).for_each(|(cell, mean)| *cell = mean);
        }
    }
}

/// Gives each cell of a line the mean of those up to `radius` away; there is nothing beyond the
/// ends.
fn mean(cells: &mut [f32], radius: usize, kept: &mut [f32]) {
    let line = &mut kept[..cells.len()];
    line.copy_from_slice(cells);
    let share = 1.0 / (2 * radius + 1) as f32;
    let mut sum: f32 = line.iter().take(radius).sum();
    for (at, cell) in cells.iter_mut().enumerate() {
        sum += line.get(at + radius).unwrap_or(&0.0);
        *cell = (sum * share).max(0.0);
        sum -= at.checked_sub(radius).map_or(0.0, |gone| line[gone]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lit() -> Light {
        let mut light = Light::new(Vec3::new(0.3, -0.4, 1.0));
        // A square, 20 cm wide, half a metre above the floor.
        let [a, b, c, d] = [(0.0, 0.0), (0.2, 0.0), (0.2, 0.2), (0.0, 0.2)]
            .map(|(x, y)| light.corner(Vec3::new(x, y, 0.5)));
        light.draw([&a, &b, &c]);
        light.draw([&a, &c, &d]);
        light.soften();
        light
    }

    #[test]
    fn what_lies_behind_another_surface_gets_no_light() {
        let light = lit();
        let middle = Vec3::new(0.1, 0.1, 0.5);
        assert_eq!(light.reaches(middle), 1.0);
        assert_eq!(light.reaches(middle + light.toward * 0.1), 1.0);
        assert_eq!(light.reaches(middle - light.toward * 0.1), 0.0);
        assert_eq!(light.reaches(Vec3::new(0.4, 0.4, 0.5)), 1.0);
        assert_eq!(light.reaches(Vec3::splat(100.0)), 1.0, "where nothing is looked at");
    }

    #[test]
    fn the_floor_is_dark_under_it_softly_and_nowhere_else() {
        let mut light = lit();
        let under = |light: &Light, x: f32| {
            let above = Vec3::new(x, 0.1, 0.5);
            light.darkens(light.cell(above - light.toward * (above.z / light.toward.z)))
        };
        assert!(under(&light, 0.1) > 0.9);
        let half = under(&light, 0.2);
        assert!((0.3..0.7).contains(&half), "at its rim: {half}");
        assert_eq!(under(&light, 0.4), 0.0);
        // From one end of the picture to the other, and along its rim.
        let dark = |y: f32| {
            let is_dark = |at: &usize| light.darkens(Vec2::new(*at as f32, y)) > 0.0;
            let steps = light.dark_steps(Vec2::new(0.0, y), Vec2::new(1.0, 1e-9), CELLS);
            assert!((0..CELLS).filter(is_dark).all(|at| steps.contains(&at)), "{y}: {steps:?}");
            steps.len()
        };
        let middle = light.cell(Vec3::new(0.1, 0.1, 0.5)).y;
        assert!((40..120).contains(&dark(middle)), "{}", dark(middle));
        assert_eq!(dark(1.0), 0);
        light.clear();
        assert_eq!(under(&light, 0.1), 0.0);
    }
}
