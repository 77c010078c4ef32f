//! A tree of YAML in which every piece knows its place in the spec.

use crate::Span;

/// A piece of YAML.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its place in the spec.
    pub span: Span,
    /// What it is.
    pub data: Data,
    /// The places of the lines of a block scalar.
    lines: Option<LinePlaces>,
}

/// What a piece is.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A single value.
    Scalar {
        /// Its text, without quotes.
        text: String,
        /// Whether it is written without quotes: then it may be a number, a boolean or null.
        plain: bool,
    },
    /// A list.
    List(Vec<Item>),
    /// A mapping, in the order of the text; each key occurs once.
    Map(Vec<Entry>),
}

/// A key of a mapping and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Place of the key.
    pub span: Span,
    /// Its value.
    pub value: Item,
}

/// For each line of a block scalar, ascending: the byte where it begins in the text of the value,
/// and the byte in the spec. Empty for a folded scalar, whose lines are not those of the spec.
pub type LinePlaces = Box<[(u32, u32)]>;

impl Item {
    /// A piece at this place.
    pub fn new(span: Span, data: Data) -> Item {
        Item { span, data, lines: None }
    }

    /// A single value; the bytes of a block scalar are where `lines` says, not side by side.
    pub fn scalar(span: Span, text: String, plain: bool, lines: Option<LinePlaces>) -> Item {
        Item { span, data: Data::Scalar { text, plain }, lines }
    }

    /// The place in the spec of byte `offset` of a single value's text, to point into a script or a
    /// template. If the text is not written byte by byte (with escapes, or folded over several
    /// lines), this is the place of the whole value.
    pub fn span_at(&self, offset: usize) -> Span {
        let Data::Scalar { text, plain } = &self.data else { return self.span };
        let quote = u32::from(!plain);
        let offset = offset.min(text.len()) as u32;
        let start = match &self.lines {
            Some(lines) => place(lines, offset),
            None if text.len() as u32 + 2 * quote != self.span.len => None,
            None => Some(self.span.start + quote + offset),
        };
        start.map_or(self.span, |start| Span { start, len: 1, ..self.span })
    }

    /// The value of a key, if this is a mapping with that key.
    pub fn get(&self, key: &str) -> Option<&Item> {
        let Data::Map(entries) = &self.data else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The text of a single value.
    pub fn text(&self) -> Option<&str> {
        if let Data::Scalar { text, .. } = &self.data { Some(text) } else { None }
    }

    /// Whether this is a list without entries.
    pub fn is_empty_list(&self) -> bool {
        matches!(&self.data, Data::List(items) if items.is_empty())
    }

    /// What a user would call this piece.
    pub fn sort(&self) -> &'static str {
        match &self.data {
            Data::Scalar { text, plain: true } if text.is_empty() => "nothing",
            Data::Scalar { .. } => "a single value",
            Data::List(_) => "a list",
            Data::Map(_) => "a mapping",
        }
    }
}

/// The place of byte `offset` of the text, found by the lines.
fn place(lines: &[(u32, u32)], offset: u32) -> Option<u32> {
    let line = lines.partition_point(|&(text_start, _)| text_start <= offset).checked_sub(1)?;
    let (text_start, start) = lines[line];
    Some(start + (offset - text_start))
}

/// The starts of the lines of a text.
#[derive(Clone, Debug, Default)]
pub struct LineStarts {
    starts: Vec<usize>,
}

impl LineStarts {
    /// The line starts of this text.
    pub fn new(text: &str) -> LineStarts {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        LineStarts { starts: std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect() }
    }

    /// Line of the byte at `offset`, from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset)
    }

    /// The first byte of a line, counted from 1.
    ///
    /// # Panics
    /// If the text has no such line.
    pub fn start(&self, line: usize) -> usize {
        self.starts[line - 1]
    }
}
