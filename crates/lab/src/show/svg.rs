//! Marks on a plane. A plot names what a mark is, and a style sheet says how that looks, so that
//! plots suit light mode, dark mode and paper. Plotters writes colours and no classes, so we have
//! our own writer.

use std::fmt::Write;

pub(crate) use sinew_spec::picture::Escaped;

/// Colours and fonts of all plots.
pub(crate) const STYLE: &str = include_str!("plots.css");

/// A point, px from the upper left corner.
pub(crate) type Point = (f64, f64);

/// A finished plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// A name for its file, without an extension: letters, digits, `-` and `_`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// px
    pub(crate) width: f64,
    /// px
    pub(crate) height: f64,
    /// What is drawn on it.
    pub(crate) marks: Canvas,
}

impl Plot {
    /// An SVG document that needs no other file.
    pub fn to_document(&self) -> String {
        let style = format!("<style>\n{STYLE}</style>\n<rect class=\"sheet\"");
        let Plot { width, height, .. } = self;
        let sheet = format!("{style} width=\"{width:.0}\" height=\"{height:.0}\"/>\n");
        self.element("xmlns=\"http://www.w3.org/2000/svg\" ", &sheet)
    }

    /// An element for a page that already has the style.
    pub(crate) fn to_element(&self) -> String {
        self.element("", "")
    }

    fn element(&self, namespace: &str, sheet: &str) -> String {
        let Plot { title, width, height, marks, .. } = self;
        format!(
            "<svg {namespace}class=\"plot\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n\
             <title>{}</title>\n{sheet}{}</svg>\n",
            Escaped(title),
            marks.0
        )
    }
}

/// Where a text is placed relative to its point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    /// It begins at the point.
    Start,
    /// Its middle is at the point.
    Middle,
    /// It ends at the point.
    End,
}

/// What has been drawn so far. Writing to a string cannot fail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Canvas(String);

impl Canvas {
    pub(crate) fn line(&mut self, class: &str, from: Point, to: Point) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.0,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// A line through points; no line through fewer than two.
    pub(crate) fn path(&mut self, class: &str, points: &[Point]) {
        if points.len() < 2 {
            return;
        }
        let _ = write!(self.0, "<polyline class=\"{class}\" points=\"");
        for (at, (x, y)) in points.iter().enumerate() {
            let _ = write!(self.0, "{}{x:.1},{y:.1}", if at > 0 { " " } else { "" });
        }
        self.0 += "\"/>\n";
    }

    pub(crate) fn rect(&mut self, class: &str, at: Point, size: (f64, f64)) {
        let ((x, y), (width, height)) = (at, size);
        let _ = writeln!(
            self.0,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>"
        );
    }

    /// A dot with a text that is shown when the pointer is above it.
    pub(crate) fn dot(&mut self, class: &str, at: Point, radius: f64, what: &str) {
        let (x, y) = at;
        let _ = writeln!(
            self.0,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">\
             <title>{}</title></circle>",
            Escaped(what)
        );
    }

    pub(crate) fn text(&mut self, class: &str, at: Point, anchor: Anchor, text: &str) {
        let (x, y) = at;
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.0,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            Escaped(text)
        );
    }
}

/// About how wide a text in small letters is, px; it is never much wider.
pub(crate) fn text_width(text: &str) -> f64 {
    const LETTER: f64 = 6.5;
    text.chars().count() as f64 * LETTER
}
