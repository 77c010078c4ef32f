//! What all plots share: title, axes, and a line of text below for each curve.

use super::super::scale::Scale;
use super::super::svg::{Anchor, Canvas, Plot, Point, text_width};

/// Width of a plot, px.
pub(crate) const WIDTH: f64 = 760.0;
/// Distance from the rim to what is drawn.
pub(crate) const MARGIN: f64 = 16.0;
/// Distance between two lines of text.
const LINE: f64 = 18.0;
/// Height for the figures and the name of a horizontal axis.
const BELOW: f64 = 44.0;
/// Distance from the start of a curve's swatch to its name.
const SWATCH: f64 = 30.0;

/// A plot that is being drawn, from its top downwards.
pub(crate) struct Frame {
    pub(crate) canvas: Canvas,
    title: String,
    /// Where the next element is placed.
    pub(crate) y: f64,
}

impl Frame {
    /// Draws the title, and what holds for all items.
    pub(crate) fn new(title: &str, subtitle: &str) -> Frame {
        let mut canvas = Canvas::default();
        let mut y = MARGIN + 14.0;
        canvas.text("title", (MARGIN, y), Anchor::Start, title);
        for line in broken(subtitle, WIDTH - 2.0 * MARGIN) {
            y += LINE;
            canvas.text("muted", (MARGIN, y), Anchor::Start, &line);
        }
        Frame { canvas, title: title.into(), y: y + LINE }
    }

    /// The place of a plane of this height with figures to its left: from left to right, and from
    /// top to bottom.
    pub(crate) fn plane(&self, height: f64) -> ((f64, f64), (f64, f64)) {
        /// Room for the figures, px.
        const LEFT: f64 = 66.0;
        ((MARGIN + LEFT, WIDTH - MARGIN - 8.0), (self.y, self.y + height))
    }

    /// The grid lines of a horizontal axis from `top` to `bottom`, and its figures below.
    pub(crate) fn across(
        &mut self,
        scale: &Scale,
        (top, bottom): (f64, f64),
        name: &str,
        figure: &dyn Fn(f64) -> String,
    ) {
        self.across_at(&scale.marks(), scale, (top, bottom), name, figure);
    }

    /// The same with given marks, in ascending order.
    pub(crate) fn across_at(
        &mut self,
        marks: &[f64],
        scale: &Scale,
        (top, bottom): (f64, f64),
        name: &str,
        figure: &dyn Fn(f64) -> String,
    ) {
        let mut free = f64::NEG_INFINITY;
        for &mark in marks {
            let (x, text) = (scale.px(mark), figure(mark));
            self.canvas.line("rule", (x, top), (x, bottom));
            let half = text_width(&text) / 2.0;
            // A figure that would touch the one before it is left out.
            if x - half > free {
                self.canvas.text("muted", (x, bottom + 17.0), Anchor::Middle, &text);
                free = x + half + 4.0;
            }
        }
        let (left, right) = scale.ends_px();
        self.canvas.line("rim", (left, bottom), (right, bottom));
        self.canvas.text("muted", (right, bottom + 35.0), Anchor::End, name);
        self.y = self.y.max(bottom + BELOW);
    }

    /// The grid lines of a vertical axis from `left` to `right`, and its figures to the left.
    pub(crate) fn upwards(
        &mut self,
        scale: &Scale,
        (left, right): (f64, f64),
        figure: &dyn Fn(f64) -> String,
    ) {
        for mark in scale.marks() {
            let y = scale.px(mark);
            self.canvas.line("rule", (left, y), (right, y));
            self.canvas.text("muted", (left - 8.0, y + 4.0), Anchor::End, &figure(mark));
        }
    }

    /// A line of text for each curve, in columns if they fit.
    pub(crate) fn legend(&mut self, names: &[(String, String)]) {
        let widest = names.iter().map(|(_, name)| text_width(name)).fold(0.0, f64::max);
        let room = WIDTH - 2.0 * MARGIN;
        let columns = (room / (SWATCH + widest + MARGIN)).floor().clamp(1.0, 3.0) as usize;
        let lines = names.len().div_ceil(columns);
        for (at, (class, name)) in names.iter().enumerate() {
            let x = MARGIN + (at / lines) as f64 * room / columns as f64;
            let y = self.y + (at % lines) as f64 * LINE + 6.0;
            self.canvas.path(&format!("curve {class}"), &[(x, y), (x + SWATCH - 8.0, y)]);
            self.canvas.text("", (x + SWATCH, y + 4.0), Anchor::Start, name);
        }
        self.y += lines as f64 * LINE;
    }

    /// A remark of a line or two.
    pub(crate) fn remark(&mut self, text: &str) {
        for line in broken(text, WIDTH - 2.0 * MARGIN) {
            self.y += LINE;
            self.canvas.text("muted", (MARGIN, self.y), Anchor::Start, &line);
        }
    }

    pub(crate) fn finish(self, name: &str) -> Plot {
        let Frame { canvas: marks, title, y } = self;
        Plot { name: name.into(), title, width: WIDTH, height: y + MARGIN, marks }
    }
}

/// The points without those that are as good as at the place of the one before.
pub(crate) fn thinned(points: impl IntoIterator<Item = Point>) -> Vec<Point> {
    const NEAR: f64 = 0.8;
    let mut kept: Vec<Point> = vec![];
    let mut last = None;
    for (x, y) in points {
        let is_near = |&(a, b): &Point| (a - x).abs() < NEAR && (b - y).abs() < NEAR;
        last = Some((x, y));
        if !kept.last().is_some_and(is_near) {
            kept.push((x, y));
        }
    }
    // The line must end at its last point.
    if let (Some(end), Some(kept)) = (last, kept.last_mut()) {
        *kept = end;
    }
    kept
}

fn broken(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(word) < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}
