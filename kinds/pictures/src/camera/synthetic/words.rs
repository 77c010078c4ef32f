//! Words on the picture.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use tiny_skia::{Paint, Pixmap, Rect, Shader, Transform};

use super::brush::colour;

/// The letters.
const WEIGHT: FontWeight = FontWeight::Regular;
const SIZE: RasterHeight = RasterHeight::Size16;
/// Margin around the words, points: beside them, and above and below.
const MARGIN: (usize, usize) = (8, 3);
/// The colour behind them, and how much it covers.
const GROUND: ([u8; 3], f32) = ([10, 13, 18], 0.5);

/// A line of words on a darkened ground.
pub(super) struct Label {
    pub(super) words: String,
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) ink: [u8; 3],
}

impl Label {
    /// Draws it; parts outside the picture are cut off.
    pub(super) fn draw(&self, picture: &mut Pixmap) {
        let high = SIZE.val() + 2 * MARGIN.1;
        let [left, top, wide, high] =
            [self.left, self.top, Label::width(&self.words), high].map(|size| size as f32);
        let shader = Shader::SolidColor(colour(GROUND.0, GROUND.1));
        let paint = Paint { shader, anti_alias: false, ..Paint::default() };
        if let Some(ground) = Rect::from_xywh(left, top, wide, high) {
            picture.fill_rect(ground, &paint, Transform::identity(), None);
        }
        let columns = picture.width() as usize;
        let rows = picture.data_mut().chunks_exact_mut(4 * columns).skip(self.top + MARGIN.1);
        for (at, row) in rows.take(SIZE.val()).enumerate() {
            let mut points = row.as_chunks_mut::<4>().0.iter_mut().skip(self.left + MARGIN.0);
            for letter in self.words.chars() {
                let shape = get_raster(letter, WEIGHT, SIZE);
                let covers = shape.as_ref().map_or(&[][..], |shape| shape.raster()[at]);
                for (column, point) in
                    points.by_ref().take(get_raster_width(WEIGHT, SIZE)).enumerate()
                {
                    let cover = covers.get(column).copied().map_or(0, i32::from);
                    for (part, ink) in point.iter_mut().zip(self.ink) {
                        let more = (i32::from(ink) - i32::from(*part)) * cover / 255;
                        *part = (i32::from(*part) + more) as u8;
                    }
                }
            }
        }
    }

    /// Columns that these words need.
    pub(super) fn width(words: &str) -> usize {
        words.chars().count() * get_raster_width(WEIGHT, SIZE) + 2 * MARGIN.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(label: &Label) -> Vec<u8> {
        let mut picture = Pixmap::new(60, 40).expect("it has points");
        picture.fill(tiny_skia::Color::from_rgba8(100, 100, 100, 255));
        label.draw(&mut picture);
        picture.data().chunks_exact(4).map(|point| point[0]).collect()
    }

    #[test]
    fn a_label_has_ground_and_letters_and_leaves_the_rest_alone() {
        let points = drawn(&Label { words: "12".into(), left: 4, top: 5, ink: [255; 3] });
        let count = |test: fn(&u8) -> bool| points.iter().filter(|&point| test(point)).count();
        assert!(count(|&point| point > 150) > 20, "letters");
        assert!(count(|&point| point < 80) > 300, "ground");
        assert_eq!((points[3 * 60], points[5 * 60 + 3]), (100, 100));
    }

    #[test]
    fn words_too_long_for_the_picture_are_cut() {
        for (left, top, words) in
            [(0, 30, "no room for all of this"), (59, 39, "ünknown ✗"), (70, 50, "x")]
        {
            drawn(&Label { words: words.into(), left, top, ink: [255; 3] });
        }
    }
}
