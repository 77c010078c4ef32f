//! Words on the picture.

use std::ops::Range;

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::colour;

/// The letters.
const WEIGHT: FontWeight = FontWeight::Regular;
const SIZE: RasterHeight = RasterHeight::Size16;
/// Around the words, points: beside them, above and below.
const MARGIN: (usize, usize) = (8, 3);
/// How much of the picture is left behind the words.
const BEHIND: f32 = 0.42;

/// A line of words on a darkened ground.
pub(super) struct Label {
    words: String,
    left: usize,
    top: usize,
    colour: [u8; 3],
}

impl Label {
    /// Words whose ground begins at this point.
    pub(super) fn at(left: usize, top: usize, words: String, colour: [u8; 3]) -> Label {
        Label { words, left, top, colour }
    }

    /// Words in the middle of a picture of so many columns.
    pub(super) fn amid(width: usize, top: usize, words: String, colour: [u8; 3]) -> Label {
        let left = width.saturating_sub(Label::width(&words)) / 2;
        Label { words, left, top, colour }
    }

    /// What it says.
    #[cfg(test)]
    pub(super) fn words(&self) -> &str {
        &self.words
    }

    /// Rows that it covers.
    fn rows(&self) -> Range<usize> {
        self.top..self.top + SIZE.val() + 2 * MARGIN.1
    }

    /// Draws what it has in a row of the picture.
    pub(super) fn draw(&self, row: usize, points: &mut [[u8; 3]]) {
        if !self.rows().contains(&row) {
            return;
        }
        let ground = self.left..(self.left + Label::width(&self.words)).min(points.len());
        for point in &mut points[ground] {
            *point = colour::coded(colour::light(*point) * BEHIND);
        }
        let Some(row) = (row - self.top).checked_sub(MARGIN.1) else { return };
        let ink = colour::light(self.colour);
        let mut left = self.left + MARGIN.0;
        for letter in self.words.chars() {
            let shape = get_raster(letter, WEIGHT, SIZE);
            let covers = shape.and_then(|shape| shape.raster().get(row).copied());
            let place = points.get_mut(left..).unwrap_or_default();
            for (point, &part) in place.iter_mut().zip(covers.unwrap_or_default()) {
                let under = colour::light(*point);
                *point = colour::coded(under.lerp(ink, f32::from(part) / 255.0));
            }
            left += get_raster_width(WEIGHT, SIZE);
        }
    }

    /// Columns that these words take.
    fn width(words: &str) -> usize {
        words.chars().count() * get_raster_width(WEIGHT, SIZE) + 2 * MARGIN.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(label: &Label) -> Vec<[u8; 3]> {
        (0..40)
            .flat_map(|row| {
                let mut points = [[100; 3]; 60];
                label.draw(row, &mut points);
                points
            })
            .collect()
    }

    #[test]
    fn a_label_has_ground_and_letters_and_leaves_the_rest_alone() {
        let points = drawn(&Label::at(4, 5, "12".into(), [255; 3]));
        let count = |test: fn(&[u8; 3]) -> bool| points.iter().filter(|point| test(point)).count();
        assert!(count(|point| point[0] > 200) > 20, "letters");
        assert!(count(|point| point[0] < 80) > 300, "ground");
        assert_eq!((points[3 * 60], points[5 * 60 + 3]), ([100; 3], [100; 3]));
    }

    #[test]
    fn words_too_long_for_the_picture_are_cut() {
        drawn(&Label::amid(60, 30, "no room for all of this".into(), [255; 3]));
        drawn(&Label::at(59, 39, "ünknown ✗".into(), [255; 3]));
    }
}
