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
        widen(&mut self.columns, &columns);
        widen(&mut self.rows, &rows);
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

/// Makes a range, which may be empty, hold another one too.
fn widen(own: &mut Range<usize>, other: &Range<usize>) {
    *own = match Range::is_empty(own) {
        true => other.clone(),
        false => own.start.min(other.start)..own.end.max(other.end),
    };
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
    width: usize,
    cells: Vec<Cell>,
    /// Of each row: the columns outside of which there is nothing.
    spans: Vec<Range<usize>>,
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
        Canvas { width, cells: vec![Cell::default(); width * height], spans: vec![0..0; height] }
    }

    /// Takes everything away.
    pub(super) fn clear(&mut self) {
        for (cells, span) in self.cells.chunks_exact_mut(self.width).zip(&mut self.spans) {
            cells[std::mem::take(span)].fill(Cell::default());
        }
    }

    /// The columns of a row outside of which there is nothing.
    pub(super) fn span(&self, row: usize) -> Range<usize> {
        self.spans[row].clone()
    }

    /// The rectangle outside of which there is nothing.
    pub(super) fn drawn(&self) -> Area {
        let mut drawn = Area::NONE;
        for (row, span) in self.spans.iter().enumerate().filter(|(_, span)| !span.is_empty()) {
            drawn.add(span.clone(), row..row + 1);
        }
        drawn
    }

    /// The cells of a row.
    pub(super) fn row(&self, row: usize) -> &[Cell] {
        &self.cells[row * self.width..][..self.width]
    }

    /// What is at a cell.
    pub(super) fn at(&self, column: usize, row: usize) -> Cell {
        self.row(row)[column]
    }

    /// Draws a triangle whose corners run counter-clockwise, as one looks at the canvas; one that
    /// shows its back is left out. `paint` makes a surface of the values at a cell.
    pub(super) fn draw<const N: usize>(
        &mut self,
        corners: [&Corner<N>; 3],
        paint: impl Fn([f32; N]) -> u32,
    ) {
        let Some(slopes) = Slopes::of(corners) else { return };
        let [top, middle, bottom] = downwards(corners.map(|corner| corner.at));
        let long = Side::new(top, bottom);
        for short in [Side::new(top, middle), Side::new(middle, bottom)] {
            for row in cells_between(short.from.y, short.to_y, self.spans.len()) {
                let y = row as f32 + 0.5;
                let (one, other) = (long.column(y), short.column(y));
                let (from, to) = if one < other { (one, other) } else { (other, one) };
                let columns = cells_between(from, to, self.width);
                if columns.is_empty() {
                    continue;
                }
                widen(&mut self.spans[row], &columns);
                let here = slopes.at(corners, Vec2::new(columns.start as f32 + 0.5, y));
                slopes.fill(here, &mut self.cells[row * self.width..][columns], &paint);
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
        let share = 1.0 / area;
        let slope = |from: f32, to: [f32; 2]| {
            let [b, c] = to.map(|to| to - from);
            Vec2::new(c * ab.y - b * ac.y, b * ac.x - c * ab.x) * share
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

    /// Puts the triangle into cells of a row, the first of which is `here`, if nothing is nearer.
    #[inline(always)]
    fn fill(&self, mut here: Corner<N>, cells: &mut [Cell], paint: impl Fn([f32; N]) -> u32) {
        for cell in cells {
            if here.near > cell.near {
                *cell = Cell { near: here.near, surface: paint(here.values) };
            }
            here.near += self.near.x;
            for (value, slope) in here.values.iter_mut().zip(&self.values) {
                *value += slope.x;
            }
        }
    }
}

/// Three places, from the top down.
fn downwards([a, b, c]: [Vec2; 3]) -> [Vec2; 3] {
    let ordered = |a: Vec2, b: Vec2| if b.y < a.y { (b, a) } else { (a, b) };
    let (a, b) = ordered(a, b);
    let (b, c) = ordered(b, c);
    let (a, b) = ordered(a, b);
    [a, b, c]
}

/// A side of a triangle, from its upper end: for both triangles that share it the same.
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

    /// Where it crosses the middle of a row.
    #[inline(always)]
    fn column(&self, y: f32) -> f32 {
        self.from.x + (y - self.from.y) * self.slope
    }
}

/// The last bit of a number so large counts ones: adding it rounds, and takes less than a cast.
pub(super) const ONES: f32 = 8_388_608.0;

/// The cells of a line whose middles lie between these places; a middle on such a place belongs to
/// one side of it only.
#[inline(always)]
fn cells_between(from: f32, to: f32, size: usize) -> Range<usize> {
    let cell = |at: f32| {
        // Not `max` and `min`, which take care of what is not a number; here it becomes 0.
        let at = if at > 0.0 { at } else { 0.0 };
        let at = if at < size as f32 { at } else { size as f32 };
        ((at + ONES).to_bits() - ONES.to_bits()) as usize
    };
    cell(from)..cell(to)
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
    fn nothing_is_drawn_outside_of_the_spans() {
        let mut canvas = Canvas::new(12, 9);
        let [a, b, c] = [(1.2, 1.0), (2.0, 7.6), (10.9, 4.3)].map(|(x, y)| corner(x, y, 1.0));
        canvas.draw([&a, &b, &c], |_| 1);
        assert!(count(&canvas) > 20);
        for row in 0..9 {
            let is_outside = |column: &usize| !canvas.span(row).contains(column);
            assert!((0..12).filter(is_outside).all(|column| canvas.at(column, row).near == 0.0));
            assert!(canvas.span(row).len() < 12);
        }
        assert_eq!((canvas.drawn().rows, canvas.drawn().columns.end), (1..7, 10));
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
        assert_eq!((count(&canvas), canvas.drawn()), (0, Area::NONE));
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
