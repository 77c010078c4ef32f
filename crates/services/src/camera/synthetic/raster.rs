//! Triangles to points: which surface is nearest at each.
//!
//! A cell of the canvas belongs to a triangle if its middle lies inside; sides that two triangles
//! share give each cell to one of them. Every value runs linearly over a triangle.

use std::ops::Range;

use glam::Vec2;

/// A rectangle of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) columns: Range<usize>,
    pub(super) rows: Range<usize>,
}

impl Area {
    /// Without a cell.
    pub(super) const NONE: Area = Area { columns: 0..0, rows: 0..0 };

    /// Grows so that these cells lie inside.
    pub(super) fn add(&mut self, columns: Range<usize>, rows: Range<usize>) {
        if self.rows.is_empty() {
            *self = Area { columns, rows };
            return;
        }
        let grown = |own: &Range<usize>, other: Range<usize>| {
            own.start.min(other.start)..own.end.max(other.end)
        };
        self.columns = grown(&self.columns, columns);
        self.rows = grown(&self.rows, rows);
    }

    /// The same with so many cells more on each side, within a canvas of `width` and `height`.
    pub(super) fn wider(&self, by: usize, width: usize, height: usize) -> Area {
        if self.rows.is_empty() {
            return Area::NONE;
        }
        let wider = |own: &Range<usize>, size: usize| {
            own.start.saturating_sub(by)..(own.end + by).min(size)
        };
        Area { columns: wider(&self.columns, width), rows: wider(&self.rows, height) }
    }
}

/// What a cell shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// Greater is nearer; 0: nothing.
    pub(super) near: f32,
    /// What the painter calls the surface.
    pub(super) surface: u32,
}

/// Cells in rows, and the nearest surface in each.
pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) cells: Vec<Cell>,
    /// Where there is anything.
    pub(super) drawn: Area,
}

/// A corner: its place on the canvas, how near it is, and values for the painter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Corner<const N: usize> {
    pub(super) at: Vec2,
    pub(super) near: f32,
    pub(super) values: [f32; N],
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, cells: vec![Cell::default(); width * height], drawn: Area::NONE }
    }

    /// Takes everything away.
    pub(super) fn clear(&mut self) {
        for row in self.drawn.rows.clone() {
            let columns = self.drawn.columns.clone();
            self.cells[row * self.width..][columns].fill(Cell::default());
        }
        self.drawn = Area::NONE;
    }

    /// What is at a cell.
    pub(super) fn at(&self, column: usize, row: usize) -> Cell {
        self.cells[row * self.width + column]
    }

    /// Draws a triangle whose corners run counter-clockwise, as one looks at the canvas; one that
    /// shows its back is left out. `paint` makes a surface of the values at a cell.
    pub(super) fn draw<const N: usize>(
        &mut self,
        corners: [&Corner<N>; 3],
        paint: impl Fn([f32; N]) -> u32,
    ) {
        let Some(slopes) = Slopes::of(corners) else { return };
        let (ys, xs) = (corners.map(|corner| corner.at.y), corners.map(|corner| corner.at.x));
        let rows = cells_between(least(ys), greatest(ys), self.height);
        let columns = cells_between(least(xs), greatest(xs), self.width);
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        self.drawn.add(columns, rows.clone());
        let [a, b, c] = corners.map(|corner| corner.at);
        // The ends of a side in the same order for both triangles that share it.
        let side = |a: Vec2, b: Vec2| if a.y <= b.y { Side::new(a, b) } else { Side::new(b, a) };
        let sides = [side(a, b), side(b, c), side(c, a)];
        for row in rows {
            let y = row as f32 + 0.5;
            let columns = crossed(&sides, y, self.width);
            if columns.is_empty() {
                continue;
            }
            let mut here = slopes.at(corners, Vec2::new(columns.start as f32 + 0.5, y));
            for cell in &mut self.cells[row * self.width..][columns] {
                if here.near > cell.near {
                    *cell = Cell { near: here.near, surface: paint(here.values) };
                }
                here.near += slopes.near.x;
                for (value, slope) in here.values.iter_mut().zip(&slopes.values) {
                    *value += slope.x;
                }
            }
        }
    }
}

/// How the values of a triangle change from cell to cell.
struct Slopes<const N: usize> {
    near: Vec2,
    values: [Vec2; N],
}

impl<const N: usize> Slopes<N> {
    /// `None`: it shows its back, or a mere line.
    #[inline(always)]
    fn of(corners: [&Corner<N>; 3]) -> Option<Slopes<N>> {
        let [a, b, c] = corners;
        let (ab, ac) = (b.at - a.at, c.at - a.at);
        let area = ac.perp_dot(ab);
        // Nor is what is not a number seen.
        if area.is_nan() || area <= 0.0 {
            return None;
        }
        let slope = |from: f32, to: [f32; 2]| {
            let [b, c] = to.map(|to| to - from);
            Vec2::new(c * ab.y - b * ac.y, b * ac.x - c * ab.x) / area
        };
        Some(Slopes {
            near: slope(a.near, [b.near, c.near]),
            values: std::array::from_fn(|n| slope(a.values[n], [b.values[n], c.values[n]])),
        })
    }

    #[inline(always)]
    fn at(&self, corners: [&Corner<N>; 3], at: Vec2) -> Corner<N> {
        let from = corners[0];
        let way = at - from.at;
        Corner {
            at,
            near: from.near + self.near.dot(way),
            values: std::array::from_fn(|n| from.values[n] + self.values[n].dot(way)),
        }
    }
}

/// A side of a triangle.
#[derive(Clone, Copy)]
struct Side {
    from: Vec2,
    to_y: f32,
    /// Columns for each row.
    slope: f32,
}

impl Side {
    fn new(from: Vec2, to: Vec2) -> Side {
        Side { from, to_y: to.y, slope: (to.x - from.x) / (to.y - from.y) }
    }
}

/// The cells of a row whose middles lie between the sides.
#[inline(always)]
fn crossed(sides: &[Side; 3], y: f32, width: usize) -> Range<usize> {
    let (mut from, mut to) = (f32::INFINITY, f32::NEG_INFINITY);
    for side in sides {
        // Half-open, so that a row through a corner meets one of its two sides.
        if (side.from.y < y) != (side.to_y < y) {
            let x = side.from.x + (y - side.from.y) * side.slope;
            (from, to) = (from.min(x), to.max(x));
        }
    }
    if from <= to { cells_between(from, to, width) } else { 0..0 }
}

/// The cells of a line whose middles lie after `from`, up to `to`.
fn cells_between(from: f32, to: f32, size: usize) -> Range<usize> {
    // Casts round towards 0, saturate, and make 0 of what is not a number.
    let cell = |at: f32| ((at + 0.5) as usize).min(size);
    cell(from)..cell(to)
}

fn least([a, b, c]: [f32; 3]) -> f32 {
    a.min(b).min(c)
}

fn greatest([a, b, c]: [f32; 3]) -> f32 {
    a.max(b).max(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corner(x: f32, y: f32, near: f32) -> Corner<1> {
        Corner { at: Vec2::new(x, y), near, values: [near] }
    }

    fn count(canvas: &Canvas) -> usize {
        canvas.cells.iter().filter(|cell| cell.near > 0.0).count()
    }

    #[test]
    fn two_triangles_cover_their_square_without_gap_or_overlap() {
        let [a, b, c, d] =
            [(1.5, 1.5), (7.5, 1.5), (7.5, 5.5), (1.5, 5.5)].map(|(x, y)| corner(x, y, 1.0));
        let (mut first, mut second) = (Canvas::new(10, 8), Canvas::new(10, 8));
        first.draw([&a, &d, &c], |_| 1);
        first.draw([&a, &c, &d], |_| 1);
        second.draw([&a, &c, &b], |_| 1);
        assert_eq!(count(&first) + count(&second), 6 * 4);
        second.draw([&a, &d, &c], |_| 1);
        assert_eq!(count(&second), 6 * 4);
    }

    #[test]
    fn the_nearest_surface_is_seen_whichever_is_drawn_first() {
        let triangle =
            |near| [corner(0.0, 0.0, near), corner(0.0, 9.0, near), corner(9.0, 0.0, near)];
        let mut canvas = Canvas::new(10, 10);
        for near in [2.0, 3.0, 1.0] {
            canvas.draw(triangle(near).each_ref(), |[value]| value as u32);
        }
        assert_eq!(canvas.at(1, 1), Cell { near: 3.0, surface: 3 });
        canvas.clear();
        assert_eq!((count(&canvas), &canvas.drawn), (0, &Area::NONE));
    }

    #[test]
    fn what_lies_outside_or_is_no_number_draws_nothing_there() {
        let mut canvas = Canvas::new(4, 4);
        let far = [corner(-1e6, -1e6, 1.0), corner(-1e6, 4e6, 1.0), corner(4e6, -1e6, 1.0)];
        canvas.draw(far.each_ref(), |_| 1);
        assert_eq!(count(&canvas), 16);
        canvas.clear();
        let wild = [corner(f32::NAN, 0.0, 1.0), corner(3.0, 0.0, 1.0), corner(0.0, 3.0, 1.0)];
        canvas.draw(wild.each_ref(), |_| 1);
        canvas.draw([9.0, 12.0, 10.0].map(|x| corner(x, x * x, 1.0)).each_ref(), |_| 1);
        assert_eq!(count(&canvas), 0);
    }
}
