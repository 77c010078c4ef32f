//! Where each piece of a spec begins and ends, to the byte, and which pieces are repeated by
//! aliases.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle, options};

/// A piece of the text.
pub(super) struct Mark {
    /// For a block scalar, the start of its lines, after the header.
    pub(super) start: usize,
    /// The byte after its last one that is not blank; comments do not count.
    pub(super) end: usize,
    /// Its anchor; 0 without one.
    pub(super) anchor: usize,
    pub(super) form: Form,
}

/// How a piece is written.
pub(super) enum Form {
    /// It was left out: `key:`. Its place is after the colon, or after the key if there is no
    /// colon.
    Empty,
    /// In its place, with or without quotes.
    Scalar,
    /// The lines after `|` or `>`.
    Lines,
    /// `*name`, an alias of the anchor with this number.
    Alias(usize),
    List {
        is_flow: bool,
        parts: Vec<Mark>,
    },
    /// Keys and values in turn.
    Map {
        is_flow: bool,
        parts: Vec<Mark>,
    },
}

/// The pieces of a text.
pub(super) struct Marks {
    pub(super) root: Mark,
    /// Place of `&name`.
    pub(super) anchors: HashMap<usize, Range<usize>>,
    /// Place of the last alias of an anchor.
    pub(super) aliases: HashMap<usize, Range<usize>>,
}

impl Mark {
    fn open(form: Form, anchor: usize, start: usize) -> Mark {
        Mark { start, end: start, anchor, form }
    }

    /// Whether it is a list or mapping in block style.
    pub(super) fn is_block(&self) -> bool {
        matches!(self.form, Form::List { is_flow: false, .. } | Form::Map { is_flow: false, .. })
    }

    fn parts(&mut self) -> Option<&mut Vec<Mark>> {
        match &mut self.form {
            Form::List { parts, .. } | Form::Map { parts, .. } => Some(parts),
            _ => None,
        }
    }
}

impl Marks {
    /// Reads a text that the compiler accepts; otherwise `None`.
    pub(super) fn of(text: &str) -> Option<Marks> {
        let (mut anchors, mut aliases) = (HashMap::new(), HashMap::new());
        let all = Form::List { is_flow: true, parts: Vec::new() };
        let mut open = vec![Mark::open(all, 0, 0)];
        for next in Parser::new_from_str_with_options(text, options! { emit_anchor_events: true }) {
            let (event, span) = next.ok()?;
            let at = span.byte_range()?;
            match event {
                Event::Scalar(value, style, anchor, _) => {
                    let mark = scalar(text, &value, style, at);
                    put(text, &mut open, Mark { anchor, ..mark });
                }
                Event::Alias(id) => {
                    aliases.insert(id, at.clone());
                    let form = Form::Alias(id);
                    put(text, &mut open, Mark { start: at.start, end: at.end, anchor: 0, form });
                }
                Event::Anchor(id, _) => {
                    if let Some(mark) = open.last_mut()?.parts().and_then(|parts| parts.last_mut())
                        && mark.anchor == id
                        && matches!(mark.form, Form::Empty)
                    {
                        (mark.start, mark.end) = (at.end, at.end);
                    }
                    anchors.insert(id, at);
                }
                Event::SequenceStart(style, anchor, _) => {
                    let is_flow = style == StructureStyle::Flow;
                    let form = Form::List { is_flow, parts: Vec::new() };
                    open.push(Mark::open(form, anchor, at.start));
                }
                Event::MappingStart(style, anchor, _) => {
                    let is_flow = style == StructureStyle::Flow;
                    let form = Form::Map { is_flow, parts: Vec::new() };
                    open.push(Mark::open(form, anchor, at.start));
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let mut mark = open.pop()?;
                    let is_block = mark.is_block();
                    let last = mark.parts()?.last().filter(|_| is_block);
                    mark.end = last.map_or(at.end, |last| last.end);
                    put(text, &mut open, mark);
                }
                _ => {}
            }
        }
        let root = open.first_mut()?.parts()?.pop()?;
        Some(Marks { root, anchors, aliases })
    }

    /// Where a piece begins, including its anchor.
    pub(super) fn start(&self, mark: &Mark) -> usize {
        self.anchors.get(&mark.anchor).map_or(mark.start, |anchor| anchor.start.min(mark.start))
    }
}

fn scalar(text: &str, value: &str, style: ScalarStyle, at: Range<usize>) -> Mark {
    let (start, end, form) = match style {
        // The value was left out; a `~` would be written.
        ScalarStyle::Plain if at.is_empty() => {
            let end = text[..at.start].trim_end_matches(BLANKS).len();
            (end, end, Form::Empty)
        }
        ScalarStyle::Literal | ScalarStyle::Folded => {
            let kept =
                value.ends_with("\n\n") || (value.ends_with('\n') && value.trim().is_empty());
            let written = &text[..at.end];
            let end = match kept {
                true => {
                    // The parser's range goes up to the next token, which may be indented.
                    let lines = written.trim_end_matches([' ', '\t']);
                    let line = lines.strip_suffix('\n').unwrap_or(lines);
                    line.strip_suffix('\r').unwrap_or(line)
                }
                false => written.trim_end_matches(BLANKS),
            };
            (at.start, end.len(), Form::Lines)
        }
        _ => (at.start, at.end, Form::Scalar),
    };
    Mark { start, end, anchor: 0, form }
}

/// What may stand between two pieces, apart from comments.
pub(super) const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Puts a piece into the one that is open. A value that was left out is placed after the colon of
/// its key.
fn put(text: &str, open: &mut [Mark], mut mark: Mark) {
    let Some(frame) = open.last_mut() else { return };
    if let (Form::Map { parts, .. }, Form::Empty) = (&frame.form, &mark.form)
        && parts.len() % 2 == 1
    {
        let key_end = parts[parts.len() - 1].end;
        let end = colon(text, key_end).unwrap_or(key_end);
        (mark.start, mark.end) = (end, end);
    }
    if let Some(parts) = frame.parts() {
        parts.push(mark);
    }
}

/// The place after the colon of a key that ends here.
pub(super) fn colon(text: &str, key_end: usize) -> Option<usize> {
    let rest = text[key_end..].trim_start_matches(BLANKS).strip_prefix(':')?;
    Some(text.len() - rest.len())
}
