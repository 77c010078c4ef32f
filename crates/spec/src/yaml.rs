//! YAML text to a tree in which every piece knows its place. Hostile text is bounded here: its
//! size, its depth, the number of its items and what its aliases may expand to.

mod origin;

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::Value as Json;
use sinew_plan::{Data, Entry, Item, Span};

use crate::diagnostic::Report;

/// Longest text of a spec, in bytes; 100 000 nodes fit. A longer one is refused without reading it.
pub const TEXT_LEN_MAX: usize = 16 << 20;
/// Deepest nesting; a spec needs eight levels.
pub const DEPTH_MAX: usize = 32;
/// Most items (scalars, lists, mappings) in one spec; bounds memory to some 200 MB.
pub const ITEMS_MAX: usize = 4_000_000;
/// Most items that anchors and aliases may copy, so that no short text grows without bound.
pub const COPIES_MAX: usize = 100_000;

/// With up to this many keys a linear search is cheaper than a set.
const KEYS_FEW: usize = 16;

/// The tree as JSON: a text without quotes may be a number, a boolean or null, as in YAML's core
/// schema; a number that is not finite stays a text.
pub fn item_json(item: &Item) -> Json {
    match &item.data {
        Data::Scalar { text, plain: true } => plain_json(text),
        Data::Scalar { text, .. } => Json::from(text.as_str()),
        Data::List(items) => items.iter().map(item_json).collect(),
        Data::Map(entries) => {
            entries.iter().map(|entry| (entry.key.clone(), item_json(&entry.value))).collect()
        }
    }
}

fn plain_json(text: &str) -> Json {
    let number = || text.parse().ok().filter(|value: &f64| value.is_finite()).map(Json::from);
    match text {
        "" | "~" | "null" => Json::Null,
        "true" => Json::Bool(true),
        "false" => Json::Bool(false),
        _ => text.parse::<i64>().map(Json::from).ok().or_else(number).unwrap_or(text.into()),
    }
}

/// Reads one document. `None` if the text is not YAML or exceeds a limit; the reason is then in
/// `report`. Keys that occur twice are reported too, and the first one stays.
pub(crate) fn parse(text: &str, source: u32, report: &Report) -> Option<Item> {
    let mut builder = Builder::default();
    for next in Parser::new_from_str(text) {
        let (event, span) = match next {
            Ok(pair) => pair,
            Err(error) => {
                let start = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
                let message = format!("not YAML: {}", error.kind());
                let (start, help) = advise(text, start, &message);
                report.error(Span { source, start: start as u32, len: 1 }, message, help);
                return None;
            }
        };
        let range = span.byte_range().unwrap_or_default();
        let len =
            if matches!(event, Event::Scalar(..) | Event::Alias(_)) { range.len() } else { 1 };
        let at = Span { source, start: range.start as u32, len: len as u32 };
        let raw = text.get(range).unwrap_or_default();
        if let Err((message, help)) = builder.take(event, at, raw, report) {
            report.error(at, message, help);
            return None;
        }
    }
    if builder.root.is_none() {
        let at = Span { source, start: 0, len: 1 };
        let help = "start with 'name:', 'domains:' and 'nodes:', or list nodes: '- kind: ...'";
        report.error(at, "the file holds no graph", help);
    }
    builder.root
}

/// Where to point for an error that the parser reports at `start`, and what to change there.
fn advise(text: &str, start: usize, message: &str) -> (usize, &'static str) {
    if message.contains("tab") {
        // The parser names the start of the value that the tab ends.
        let tab = text.as_bytes()[start..].iter().position(|&byte| byte == b'\t').unwrap_or(0);
        return (start + tab, "indent with spaces; YAML forbids tabs there");
    }
    if message.contains("recursion limit") {
        return (start, "a spec needs eight levels of nesting; check the brackets");
    }
    if message.contains("anchor") {
        return (start, "write '&name' before a value first, then '*name' stands for it");
    }
    if in_braces(&text[..start]) && text[start..].starts_with('[') {
        let help = "between { and } a name with brackets stands in quotes, such as \"out[0]\"";
        return (start, help);
    }
    (start, "check indentation, quotes, brackets and colons here and on the line above")
}

/// Whether a line that ends here is within braces, directly after a name.
fn in_braces(text: &str) -> bool {
    let line = text.rsplit('\n').next().unwrap_or(text);
    line.contains('{') && line.ends_with(|end: char| end.is_ascii_alphanumeric() || end == '_')
}

/// How many items a copy of this one adds.
fn count(item: &Item) -> usize {
    1 + match &item.data {
        Data::Scalar { .. } => 0,
        Data::List(items) => items.iter().map(count).sum(),
        Data::Map(entries) => entries.iter().map(|entry| 1 + count(&entry.value)).sum(),
    }
}

/// A collection that is still open.
struct Frame {
    item: Item,
    anchor: usize,
    /// Key that waits for its value, and whether the same key occurred before.
    key: Option<(String, Span, bool)>,
    /// The keys so far, used once there are many.
    seen: HashSet<String>,
}

/// Whether a mapping has this key already.
fn stands_already(map: &Data, seen: &mut HashSet<String>, key: &str) -> bool {
    let Data::Map(entries) = map else { return false };
    if entries.len() < KEYS_FEW {
        return entries.iter().any(|entry| entry.key == key);
    }
    if seen.is_empty() {
        seen.extend(entries.iter().map(|entry| entry.key.clone()));
    }
    !seen.insert(key.to_owned())
}

#[derive(Default)]
struct Builder {
    open: Vec<Frame>,
    anchors: HashMap<usize, Item>,
    root: Option<Item>,
    documents: usize,
    items: usize,
    copies: usize,
}

type Refusal = (String, &'static str);

impl Builder {
    /// Takes the next event, which is at `at` and written as `raw`.
    fn take(
        &mut self,
        event: Event<'_>,
        at: Span,
        raw: &str,
        report: &Report,
    ) -> Result<(), Refusal> {
        let open = |data, anchor| {
            let item = Item::new(at, data);
            Frame { item, anchor, key: None, seen: HashSet::new() }
        };
        match event {
            Event::Scalar(.., Some(_))
            | Event::SequenceStart(.., Some(_))
            | Event::MappingStart(.., Some(_)) => {
                return refuse("YAML tags mean nothing here", "remove the word with '!'");
            }
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return refuse("a second document begins here", "keep one graph in a file");
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                // A value that was left out is an empty plain scalar; '~' and 'null' mean the same.
                let empty = plain && matches!(&*text, "~" | "null");
                let text = if empty { String::new() } else { text.into_owned() };
                let lines = origin::lines(style, &text, raw, at.start as usize);
                self.put(Item::scalar(at, text, plain, lines), anchor, report)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.push(open(Data::List(Vec::new()), anchor))?
            }
            Event::MappingStart(_, anchor, _) => self.push(open(Data::Map(Vec::new()), anchor))?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(frame) = self.open.pop() {
                    self.put(frame.item, frame.anchor, report)?;
                }
            }
            Event::Alias(id) => {
                let Some(target) = self.anchors.get(&id) else {
                    return refuse("this alias stands inside its own anchor", "write it out");
                };
                let mut copy = target.clone();
                copy.span = at;
                self.copied(count(&copy))?;
                self.put(copy, 0, report)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, frame: Frame) -> Result<(), Refusal> {
        if self.open.len() == DEPTH_MAX {
            let message = format!("nested deeper than {DEPTH_MAX} levels");
            return refuse(&message, "a spec needs eight; check the brackets");
        }
        self.open.push(frame);
        Ok(())
    }

    fn put(&mut self, item: Item, anchor: usize, report: &Report) -> Result<(), Refusal> {
        self.items += 1;
        if self.items > ITEMS_MAX {
            let message = format!("more than {ITEMS_MAX} values in one spec");
            return refuse(&message, "split the machine into several graphs");
        }
        if anchor != 0 {
            self.copied(count(&item))?;
            self.anchors.insert(anchor, item.clone());
        }
        let Some(frame) = self.open.last_mut() else {
            self.root = Some(item);
            return Ok(());
        };
        match (&mut frame.item.data, frame.key.take()) {
            (Data::List(items), _) => items.push(item),
            (Data::Map(entries), Some((key, span, false))) => {
                entries.push(Entry { key, span, value: item });
            }
            (Data::Map(_), Some(_)) => {}
            (_, None) => {
                let Data::Scalar { text, .. } = item.data else {
                    let help =
                        "write 'key: value'; braces such as '{{ env.NAME }}' stand in quotes";
                    return refuse("a key must be a single word", help);
                };
                let twice = stands_already(&frame.item.data, &mut frame.seen, &text);
                if twice {
                    let message = format!("key '{text}' appears twice in this mapping");
                    report.error(item.span, message, "keep one of the two");
                }
                frame.key = Some((text, item.span, twice));
            }
            (Data::Scalar { .. }, _) => unreachable!("only lists and mappings are opened"),
        }
        Ok(())
    }

    fn copied(&mut self, count: usize) -> Result<(), Refusal> {
        self.copies += count;
        if self.copies <= COPIES_MAX {
            return Ok(());
        }
        let message = format!("anchors and aliases copy more than {COPIES_MAX} values");
        refuse(&message, "write out what the aliases stand for, or nest them less")
    }
}

fn refuse(message: &str, help: &'static str) -> Result<(), Refusal> {
    Err((message.to_owned(), help))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of `a:`.
    fn value(spec: &str) -> Item {
        let root = parse(spec, 0, &Report::default()).expect("good YAML");
        let Data::Map(mut entries) = root.data else { panic!("a mapping") };
        entries.remove(0).value
    }

    #[test]
    fn a_place_in_a_text_is_a_place_in_the_spec() {
        for spec in [
            "a: one + two",
            "a: 'one + two'",
            "a: \"one + two\"\nb: c",
            "a: |\n  one\n\n    two\n  three\nb: c",
            "a: |-\n  one\n  two\n",
            "a: |+  # why\n  one\n\n\nb: c",
            "a: |2\n    one\n  two\n",
            "a: |\n\n\n  late\n   two",
            "a: |\r\n  one\r\n  two\r\n",
            "a: |\n  tab\there\n  µs",
        ] {
            let value = value(spec);
            let Data::Scalar { text, .. } = &value.data else { panic!("a single value") };
            for (offset, byte) in text.bytes().enumerate().filter(|&(_, byte)| byte != b'\n') {
                let span = value.span_at(offset);
                let found = (spec.as_bytes()[span.start as usize], span.len);
                assert_eq!(found, (byte, 1), "{spec} at {offset}");
            }
        }
    }

    #[test]
    fn a_text_that_is_written_otherwise_is_pointed_to_as_a_whole() {
        for spec in ["a: 'it''s'", "a: \"a\\tb\"", "a: >\n  one\n  two\n", "a: one\n  two"] {
            let value = value(spec);
            assert_eq!(value.span_at(2), value.span, "{spec}");
        }
    }
}
