//! The text of a workflow while it becomes a graph: values and keys change in their places, keys
//! are added and removed, nodes are removed and added. Comments, order and everything else stay.

use std::collections::BTreeMap;
use std::ops::Range;

use sinew_spec::edit::{Change, PathStep, edit};
use sinew_spec::{Data, Entry, Item, Span};

/// Most bytes that are parsed for the changes of a text that is not a list of lines. Such a text
/// cannot be changed node by node and could take very long. More changes are left for the user.
const READ_MAX: usize = 256 << 20;

/// The replacement of a single value.
#[derive(Clone, PartialEq)]
pub(super) enum NewValue {
    /// A text.
    Text(String),
    /// YAML on one line, as it is.
    Yaml(String),
}

/// What becomes of a node that is not in the graph.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Away {
    /// Other nodes do its work.
    Gone,
    /// It stays as a comment.
    Comment,
}

/// A message: where, what it is, what to do, and whether it is left to do by hand.
pub(super) struct Finding {
    pub(super) span: Span,
    pub(super) message: String,
    pub(super) help: String,
    pub(super) is_left: bool,
}

/// The text and its changes.
pub(super) struct Sheet<'t> {
    text: &'t str,
    /// New values, by the position of the old ones.
    values: BTreeMap<u32, (&'t Item, NewValue)>,
    /// New names of keys, by position.
    keys: BTreeMap<u32, (Span, String)>,
    /// Changes, by the number of the node in the list.
    changes: BTreeMap<usize, Vec<Change>>,
    away: BTreeMap<usize, Away>,
    added: Vec<String>,
    pub(super) findings: Vec<Finding>,
}

/// Bytes of the text, and their replacement.
type Patch = (Range<usize>, String);

impl<'t> Sheet<'t> {
    pub(super) fn new(text: &'t str) -> Sheet<'t> {
        Sheet {
            text,
            values: BTreeMap::new(),
            keys: BTreeMap::new(),
            changes: BTreeMap::new(),
            away: BTreeMap::new(),
            added: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// The current text of a single value.
    pub(super) fn value(&self, item: &Item) -> Option<String> {
        match self.values.get(&item.span.start) {
            Some((_, NewValue::Text(text))) => Some(text.clone()),
            Some((_, NewValue::Yaml(_))) => None,
            None => item.text().map(str::to_owned),
        }
    }

    /// Gives a single value a new text.
    pub(super) fn set(&mut self, item: &'t Item, text: impl Into<String>) {
        self.put(item, NewValue::Text(text.into()));
    }

    /// Gives a single value a new value.
    pub(super) fn put(&mut self, item: &'t Item, value: NewValue) {
        let is_old = matches!(&value, NewValue::Text(text) if item.text() == Some(text));
        match is_old {
            true => drop(self.values.remove(&item.span.start)),
            false => drop(self.values.insert(item.span.start, (item, value))),
        }
    }

    /// Gives a key another name.
    pub(super) fn rename(&mut self, entry: &Entry, name: &str) {
        if entry.key != name {
            self.keys.insert(entry.span.start, (entry.span, name.to_owned()));
        }
    }

    /// Sets or removes a key of the mapping at the end of a path. The path begins with the number
    /// of a node, and names keys as the graph has them.
    pub(super) fn change(&mut self, at: &[PathStep], key: &str, value: Option<String>) {
        let Some(PathStep::Index(node)) = at.first() else { return };
        let change = Change { to: at.to_vec(), key: key.to_owned(), value };
        self.changes.entry(*node).or_default().push(change);
    }

    /// Takes a node out of the list.
    pub(super) fn leave_out(&mut self, node: usize, away: Away) {
        self.away.insert(node, away);
    }

    pub(super) fn is_away(&self, node: usize) -> bool {
        self.away.contains_key(&node)
    }

    /// Adds a node, a mapping in braces, to the end of the list.
    pub(super) fn add(&mut self, node: String) {
        self.added.push(node);
    }

    /// Notes what has another meaning now, or is gone, and needs no work.
    pub(super) fn note(&mut self, span: Span, message: impl Into<String>, help: &str) {
        let (message, help) = (message.into(), help.to_owned());
        self.findings.push(Finding { span, message, help, is_left: false });
    }

    /// Reports what is left to do by hand.
    pub(super) fn left(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        let (message, help) = (message.into(), help.into());
        self.findings.push(Finding { span, message, help, is_left: true });
    }

    /// Writes the graph, given the list of nodes. Changes that could not be made are reported as
    /// left.
    pub(super) fn write(&mut self, list: &Item) -> String {
        let items = if let Data::List(items) = &list.data { items.as_slice() } else { &[] };
        let patches = self.patches();
        let Some(pieces) = pieces(self.text, items) else {
            return self.write_whole(items, &patches);
        };
        let mut graph = String::with_capacity(self.text.len());
        let mut rest = patches.as_slice();
        for (node, piece) in pieces.iter().enumerate() {
            let count = rest.partition_point(|(at, _)| at.start < piece.end);
            let (here, behind) = rest.split_at(count);
            rest = behind;
            match self.away.get(&node).copied() {
                // Text in front of the first node stays.
                Some(Away::Gone) if node == 0 => {
                    let dash = dash(self.text, &items[0]).unwrap_or(0);
                    graph += &self.text[..line_start(self.text, dash)];
                }
                Some(Away::Gone) => {}
                Some(Away::Comment) => {
                    for line in self.text[piece.clone()].split_inclusive('\n') {
                        let is_bare = line.trim().is_empty() || line.starts_with('#');
                        graph += if is_bare { "" } else { "# " };
                        graph += line;
                    }
                }
                None => {
                    let text = patched(self.text, piece.clone(), here);
                    let mut changes = self.changes.remove(&node).unwrap_or_default();
                    for change in &mut changes {
                        change.to[0] = PathStep::Index(0);
                    }
                    graph += &self.changed(text, &changes, items[node].span);
                }
            }
        }
        let dash = dash(self.text, &items[0]).unwrap_or(0);
        let indent = dash - line_start(self.text, dash);
        for node in &self.added {
            if !graph.ends_with('\n') {
                graph.push('\n');
            }
            graph += &format!("\n{:indent$}- {node}\n", "");
        }
        graph
    }

    /// Writes a graph whose nodes are not on lines of their own.
    fn write_whole(&mut self, items: &[Item], patches: &[Patch]) -> String {
        let mut text = patched(self.text, 0..self.text.len(), patches);
        let changes: Vec<Change> =
            std::mem::take(&mut self.changes).into_values().flatten().collect();
        let at = items.first().map(|item| item.span).unwrap_or_default();
        if text.len().saturating_mul(3 * changes.len()) > READ_MAX {
            let count = changes.len();
            let message = format!("{count} keys of a text of {} bytes are not changed", text.len());
            self.left(
                at,
                message,
                "write the nodes as a list of lines, '- kind: ...', and import again",
            );
        } else {
            text = self.changed(text, &changes, at);
        }
        for node in self.away.clone().into_keys() {
            self.left(items[node].span, "this node has no part in the graph", "remove it");
        }
        let end = text.trim_end().len();
        if text[..end].ends_with(']') {
            let more: String = self.added.iter().map(|node| format!(", {node}")).collect();
            text.insert_str(end - 1, &more);
        } else {
            self.added.iter().for_each(|node| text += &format!("\n- {node}\n"));
        }
        text
    }

    /// A text with these changes. A change that is refused is reported as left, at the start of its
    /// node.
    fn changed(&mut self, text: String, changes: &[Change], node: Span) -> String {
        if changes.is_empty() {
            return text;
        }
        if let Ok(text) = edit(&text, changes) {
            return text;
        }
        let mut text = text;
        for change in changes {
            match edit(&text, std::slice::from_ref(change)) {
                Ok(now) => text = now,
                Err(refused) => {
                    let what = match &change.value {
                        Some(value) => format!("'{}: {value}' is not written", change.key),
                        None => format!("'{}' is not removed", change.key),
                    };
                    self.left(node, what, refused.why);
                }
            }
        }
        text
    }

    /// The changes of values and keys, in the order of the text.
    fn patches(&self) -> Vec<Patch> {
        let keys = self.keys.values().map(|(span, name)| {
            let start = span.start as usize;
            let at = start..start + span.len as usize;
            let is_quoted = self.text[at.clone()].starts_with(['"', '\'']);
            (at, if is_quoted { double_quoted(name) } else { name.clone() })
        });
        let values = self.values.values().flat_map(|(item, new)| placed(self.text, item, new));
        let mut all: Vec<Patch> = keys.chain(values).collect();
        all.sort_by_key(|(at, _)| (at.start, at.end));
        // An alias repeats a value. The value is changed once, where it is written.
        all.dedup();
        all
    }
}

fn patched(text: &str, piece: Range<usize>, patches: &[Patch]) -> String {
    let (mut new, mut end) = (String::with_capacity(piece.len() + 64), piece.start);
    for (at, with) in patches.iter().filter(|(at, _)| at.end <= piece.end) {
        if at.start >= end {
            new += &text[end..at.start];
            new += with;
            end = at.end;
        }
    }
    new + &text[end..piece.end]
}

/// The start of the line that holds a byte.
fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Where the `-` of a list's entry is, if it is the first sign of its line.
fn dash(text: &str, item: &Item) -> Option<usize> {
    let before = text.get(..item.span.start as usize)?.trim_end();
    let dash = before.len().checked_sub(1).filter(|_| before.ends_with('-'))?;
    let line = line_start(text, dash);
    text[line..dash].chars().all(|sign| sign == ' ').then_some(dash)
}

/// The text of each node, with the comments above it. `None` if two nodes share a line.
fn pieces(text: &str, items: &[Item]) -> Option<Vec<Range<usize>>> {
    let mut starts = Vec::with_capacity(items.len());
    for item in items {
        let dash = dash(text, item)?;
        let mut start = line_start(text, dash);
        let column = dash - start;
        // A comment that is not indented deeper than the list belongs to the node after it.
        while start > 0 {
            let above = line_start(text, start - 1);
            let line = &text[above..start - 1];
            let said = line.trim_start();
            let is_near = said.starts_with('#') && line.len() - said.len() <= column;
            if !(said.is_empty() || is_near) {
                break;
            }
            start = above;
        }
        starts.push(start);
    }
    *starts.first_mut()? = 0;
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let pieces: Vec<_> = starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
    pieces.iter().all(|piece| piece.start < piece.end).then_some(pieces)
}

/// Where a single value is, and how the new one is written there.
fn placed(text: &str, item: &Item, new: &NewValue) -> Vec<Patch> {
    let start = item.span.start as usize;
    let raw = &text[start..(start + item.span.len as usize).min(text.len())];
    let Some(header) = header(text, start) else {
        let written = match new {
            NewValue::Yaml(yaml) => yaml.clone(),
            NewValue::Text(new) => written(new, raw),
        };
        return vec![(start..start + raw.len(), padded(text, start, raw, written))];
    };
    let first = line_start(text, start);
    let end = start + raw.trim_end().len();
    let new = match new {
        NewValue::Yaml(yaml) => return vec![(header..end, yaml.clone())],
        NewValue::Text(new) => new,
    };
    let old = item.text().unwrap_or_default();
    let own = |text: &str| text.len() - text.trim_start_matches(' ').len();
    let line = &text[first..];
    let indent = &line[..own(line).saturating_sub(own(old.trim_start_matches('\n')))];
    let line_break = if raw.contains("\r\n") { "\r\n" } else { "\n" };
    let lines = new.trim_matches('\n').split('\n').map(|line| match line.is_empty() {
        true => String::new(),
        false => format!("{indent}{line}"),
    });
    let lines = lines.collect::<Vec<_>>().join(line_break);
    vec![(header..header + 1, "|".to_owned()), (first..end, lines)]
}

/// A value that was empty follows a colon, so it needs a blank.
fn padded(text: &str, start: usize, raw: &str, written: String) -> String {
    let is_bare = raw.is_empty() && text[..start].ends_with(':');
    if is_bare { format!(" {written}") } else { written }
}

/// Where the `|` or `>` is, if a block of lines begins here.
fn header(text: &str, start: usize) -> Option<usize> {
    let before = text[..start].trim_end_matches([' ', '\t', '\r', '\n']);
    if !text[before.len()..start].contains('\n') {
        return None;
    }
    let line = line_start(text, before.len());
    let said = before[line..].split(" #").next().unwrap_or_default().trim_end();
    let bare = said.trim_end_matches(|sign: char| "+-".contains(sign) || sign.is_ascii_digit());
    bare.ends_with(['|', '>']).then(|| line + bare.len() - 1)
}

/// A text written on one line, in the style of the old one.
fn written(new: &str, old: &str) -> String {
    let is_plain = !old.starts_with(['\'', '"']);
    match is_plain && is_bare(new) {
        true => new.to_owned(),
        false if old.starts_with('"') => double_quoted(new),
        false => quoted(new),
    }
}

/// A text as a value on one line, in quotes if it needs them.
pub(super) fn shown(text: &str) -> String {
    if is_bare(text) { text.to_owned() } else { quoted(text) }
}

/// A text in quotes, on one line.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = !text.contains(['"', '\\']);
    match text.chars().any(char::is_control) || text.contains('\'') && is_plain {
        true => double_quoted(text),
        false => format!("'{}'", text.replace('\'', "''")),
    }
}

fn double_quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Whether a text needs no quotes, also in braces, to stay a text.
fn is_bare(text: &str) -> bool {
    let begins = text.starts_with(|sign: char| sign.is_ascii_alphabetic() || "_/(!".contains(sign));
    let signs = |sign: char| sign.is_ascii_graphic() && !"{}[],#:'\"`%@\\".contains(sign);
    let is_word = ["true", "false", "null", "yes", "no", "on", "off"].contains(&text);
    let is_tag = text.starts_with('!');
    begins
        && !is_word
        && !is_tag
        && text.chars().all(|sign| sign == ' ' || signs(sign))
        && !text.ends_with(' ')
}

/// A name of a port or node as it is written in braces.
pub(super) fn in_braces(name: &str) -> String {
    let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    let is_bare = name.starts_with(|sign: char| sign.is_ascii_alphabetic());
    if is_bare && name.chars().all(is_name) { name.to_owned() } else { double_quoted(name) }
}
