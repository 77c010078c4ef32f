//! Which bytes of a spec are replaced by which others, so that one key of a mapping changes.

use std::ops::Range;

use super::marks::{BLANKS, Form, Mark, Marks, colon};

/// Bytes of the text, and their replacement.
#[derive(Debug)]
pub(super) struct Splice {
    pub(super) at: Range<usize>,
    pub(super) with: String,
}

fn splice(at: Range<usize>, with: impl Into<String>) -> Splice {
    Splice { at, with: with.into() }
}

fn cut(at: Range<usize>) -> Splice {
    splice(at, "")
}

/// The text with `splices` applied. They must be in order of their places; `None` if they are not.
pub(super) fn put(text: &str, splices: &[Splice]) -> Option<String> {
    let (mut new, mut end) = (String::with_capacity(text.len() + 64), 0);
    for Splice { at, with } in splices {
        new.push_str(text.get(end..at.start)?);
        new.push_str(with);
        end = at.end;
    }
    Some(new + text.get(end..)?)
}

/// The place in the old text of a byte of the new text.
pub(super) fn before(splices: &[Splice], mut at: usize) -> usize {
    // Each splice is undone in turn: the text in front of it is then as it was.
    for Splice { at: old, with } in splices {
        if at >= old.start + with.len() {
            at = at - with.len() + old.len();
        } else if at >= old.start {
            return old.start;
        }
    }
    at
}

/// A mapping in the text.
pub(super) struct Mapping<'t> {
    pub(super) text: &'t str,
    pub(super) marks: &'t Marks,
    pub(super) mark: &'t Mark,
    pub(super) is_flow: bool,
    /// Keys and values in turn.
    pub(super) parts: &'t [Mark],
}

impl Mapping<'_> {
    /// Gives another value to the key number `index`. All functions of this module return splices
    /// in order of their places; `None` means a form that they cannot change.
    pub(super) fn set(&self, index: usize, value: &str) -> Option<Vec<Splice>> {
        let (key, old) = (&self.parts[2 * index], &self.parts[2 * index + 1]);
        let text = self.text;
        match old.form {
            Form::Empty => Some(match self.before_value(key, old) {
                Some(at) => vec![splice(at..at, format!(" {value}"))],
                None if self.is_flow => vec![splice(key.end..key.end, format!(": {value}"))],
                None => return None,
            }),
            Form::Lines => {
                let start = self.before_value(key, old)?;
                let start = text.len() - text[start..].trim_start_matches(BLANKS).len();
                let rest = text[start..].strip_prefix(['|', '>'])?;
                let rest = rest
                    .trim_start_matches(|sign: char| "+-".contains(sign) || sign.is_ascii_digit());
                let mut splices = vec![splice(start..text.len() - rest.len(), value)];
                let lines = line_end(text, start)..line_end(text, old.end);
                splices.extend((!lines.is_empty()).then(|| cut(lines)));
                Some(splices)
            }
            _ if old.is_block() => {
                let start = self.before_value(key, old)?;
                let lines = line_end(text, start)..line_end(text, old.end);
                let is_below = lines.start < old.start;
                is_below.then(|| vec![splice(start..start, format!(" {value}")), cut(lines)])
            }
            _ => Some(vec![splice(old.start..old.end, value)]),
        }
    }

    /// The place after the colon of a key, or after the anchor of its value.
    fn before_value(&self, key: &Mark, value: &Mark) -> Option<usize> {
        if let Some(anchor) = self.marks.anchors.get(&value.anchor) {
            return Some(anchor.end);
        }
        colon(self.text, key.end)
    }

    /// Adds a key after the others.
    pub(super) fn add(&self, key: &str, value: &str) -> Vec<Splice> {
        let text = self.text;
        let one = match (self.is_flow, self.parts.last()) {
            (true, Some(last)) => splice(last.end..last.end, format!(", {key}: {value}")),
            (true, None) => {
                let start = self.mark.start + 1;
                let inner = text[start..].find(|sign| sign != ' ').unwrap_or_default();
                let is_blank = text[start + inner..].starts_with('}');
                splice(start..start + inner * usize::from(is_blank), format!("{key}: {value}"))
            }
            (false, _) => {
                let at = line_end(text, self.mark.end);
                let rest = if at < text.len() { &text[at..] } else { text };
                let first = rest.find('\n').map_or("", |end| &rest[..end]);
                let line_break = if first.ends_with('\r') { "\r\n" } else { "\n" };
                splice(at..at, format!("{line_break}{}{key}: {value}", self.indentation()))
            }
        };
        vec![one]
    }

    /// The text in front of each key that begins a line.
    fn indentation(&self) -> String {
        let before = |key: &Mark| {
            let start = self.marks.start(key);
            &self.text[line_start(self.text, start)..start]
        };
        let mut keys = self.parts.iter().step_by(2).map(before);
        let first = keys.clone().next().unwrap_or_default();
        match keys.find(|before| is_blank(before)) {
            Some(before) => before.to_owned(),
            None => " ".repeat(first.chars().count()),
        }
    }

    /// Removes key number `index`; in a block there must be other keys.
    pub(super) fn remove(&self, index: usize) -> Option<Vec<Splice>> {
        let start = self.marks.start(&self.parts[2 * index]);
        let end = self.parts[2 * index + 1].end;
        match self.is_flow {
            true => self.remove_entry(index, start, end),
            false => Some(vec![cut(self.lines(index, start, end))]),
        }
    }

    /// The lines of a key in a block mapping.
    fn lines(&self, index: usize, start: usize, end: usize) -> Range<usize> {
        let text = self.text;
        let (line, end) = (line_start(text, start), line_end(text, end));
        if is_blank(&text[line..start]) {
            return match text[end..].find('\n') {
                Some(len) => line..end + len + 1,
                // The last line has no line break, so the line break before it is removed too.
                // Blank lines stay, as they may belong to a block scalar.
                None => {
                    let before = text[..line].trim_end_matches(['\r', '\n']).len();
                    let is_next = text[before..line].matches('\n').count() == 1;
                    if is_next { before..text.len() } else { line..text.len() }
                }
            };
        }
        // The key is written after a `- `.
        let next = self.parts.get(2 * index + 2).map(|next| self.marks.start(next));
        let is_near = |next: &usize| {
            let between = text.get(end..*next).unwrap_or_default();
            is_blank(between) && between.matches('\n').count() == 1
        };
        match next.filter(is_near) {
            Some(next) => start..next,
            None => text[..start].trim_end_matches(' ').len()..end,
        }
    }

    /// Removes an entry between braces, and one comma.
    fn remove_entry(&self, index: usize, start: usize, end: usize) -> Option<Vec<Splice>> {
        let text = self.text;
        let mut splices = Vec::new();
        let behind = comma(text, end);
        if behind.is_none() && index > 0 {
            let comma = comma(text, self.parts[2 * index - 1].end)?;
            splices.push(cut(comma..comma + 1));
        }
        let end = behind.map_or(end, |comma| comma + 1);
        let (line, line_end) = (line_start(text, start), line_end(text, end));
        let rest = text[end..line_end].trim_start_matches([' ', '\t']);
        let has_own_line =
            is_blank(&text[line..start]) && (rest.is_empty() || rest.starts_with('#'));
        splices.push(cut(match text[line_end..].find('\n') {
            Some(len) if has_own_line => line..line_end + len + 1,
            _ if behind.is_some() && !rest.is_empty() && !rest.starts_with('}') => {
                start..line_end - rest.len()
            }
            _ if is_blank(&text[line..start]) => start..end,
            _ => text[..start].trim_end_matches([' ', '\t']).len()..end,
        }));
        Some(splices)
    }
}

/// The comma after an entry between braces.
fn comma(text: &str, from: usize) -> Option<usize> {
    let mut rest = text[from..].trim_start_matches(BLANKS);
    while let Some(comment) = rest.strip_prefix('#') {
        rest = comment.split_once('\n')?.1.trim_start_matches(BLANKS);
    }
    rest.starts_with(',').then(|| text.len() - rest.len())
}

fn is_blank(text: &str) -> bool {
    text.trim_matches(BLANKS).is_empty()
}

/// Where the line of a byte ends, before its line break.
fn line_end(text: &str, at: usize) -> usize {
    let line = text[at..].split('\n').next().unwrap_or_default();
    at + line.strip_suffix('\r').unwrap_or(line).len()
}

/// Where the line of a byte begins, after a byte-order mark.
fn line_start(text: &str, at: usize) -> usize {
    match text[..at].rfind('\n') {
        Some(end) => end + 1,
        None if text[..at].starts_with('\u{feff}') => '\u{feff}'.len_utf8(),
        None => 0,
    }
}
