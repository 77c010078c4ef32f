//! `yaml`: a tree of YAML whose texts may be templates, as part of the spec or as a text of its
//! own. A text is read first, so that a value that is put in can never become syntax.

use granit_parser::{Event, Parser, ScalarStyle};
use sinew_core::{Made, Refusal};
use sinew_spec::plan::SpecText;
use sinew_spec::{Data, Entry, Item, Span};

use super::{Limits, Script};
use crate::script::template::Template;

/// Deepest nesting of a text.
const DEPTH_MAX: usize = 32;

pub(super) fn compile(item: &Item, _: &Limits, _: Option<&SpecText>) -> Made<dyn Script> {
    let template = match &item.data {
        Data::Scalar { text, .. } => Template::compile(&read(text, item)?)?,
        _ => Template::compile(item)?,
    };
    Ok(Box::new(template))
}

/// What is open while a text is read: a list or mapping, and the key that waits for its value.
struct Open {
    item: Item,
    key: Option<(String, Span)>,
}

/// Reads a text of YAML: plain values, lists and mappings.
fn read(text: &str, code: &Item) -> Result<Item, Vec<Refusal>> {
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| {
            let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
            refuse(code.span_at(at), format!("not YAML: {}", error.kind()))
        })?;
        let range = span.byte_range().unwrap_or_default();
        let at = Span { len: range.len() as u32, ..code.span_at(range.start) };
        let done = match event {
            Event::Scalar(text, style, 0, None) => {
                let plain = style == ScalarStyle::Plain;
                Some(Item::new(at, Data::Scalar { text: text.into_owned(), plain }))
            }
            Event::SequenceStart(_, 0, None) => {
                open.push(Open { item: Item::new(at, Data::List(Vec::new())), key: None });
                None
            }
            Event::MappingStart(_, 0, None) => {
                open.push(Open { item: Item::new(at, Data::Map(Vec::new())), key: None });
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|open| open.item),
            Event::Scalar(..)
            | Event::SequenceStart(..)
            | Event::MappingStart(..)
            | Event::Alias(_) => {
                return Err(refuse(at, "anchors, aliases and tags have no place here"));
            }
            Event::DocumentStart(..) if root.is_some() => {
                return Err(refuse(at, "a second document begins here"));
            }
            _ => None,
        };
        if open.len() > DEPTH_MAX {
            return Err(refuse(at, format!("nested deeper than {DEPTH_MAX} levels")));
        }
        if let Some(item) = done {
            match open.last_mut() {
                Some(outer) => outer.take(item)?,
                None => root = Some(item),
            }
        }
    }
    root.ok_or_else(|| refuse(code.span, "the code is empty"))
}

impl Open {
    fn take(&mut self, item: Item) -> Result<(), Vec<Refusal>> {
        match (&mut self.item.data, self.key.take()) {
            (Data::List(items), _) => items.push(item),
            (Data::Map(entries), Some((key, span))) => {
                entries.push(Entry { key, span, value: item })
            }
            (Data::Map(entries), None) => {
                let Data::Scalar { text, .. } = item.data else {
                    return Err(refuse(item.span, "a key is a single word"));
                };
                if entries.iter().any(|entry| entry.key == text) {
                    return Err(refuse(item.span, format!("key '{text}' stands twice")));
                }
                self.key = Some((text, item.span));
            }
            (Data::Scalar { .. }, _) => unreachable!("only lists and mappings are opened"),
        }
        Ok(())
    }
}

fn refuse(span: Span, message: impl Into<String>) -> Vec<Refusal> {
    vec![Refusal::new(span, message, "write plain YAML, templates in quotes: '{{ packet.name }}'")]
}
