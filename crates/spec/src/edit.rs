//! Changes single values in the text of a spec. Comments, order, quotes, line breaks and everything
//! else stay as they are, byte for byte.
//!
//! A wrong edit of YAML goes unnoticed, so each one is checked: the new text is read again, and
//! must give the old tree with that one change. Otherwise the edit is refused, and the user is told
//! what to write.

mod marks;
mod places;
mod splice;
#[cfg(test)]
mod tests;

pub use places::Places;

use std::fmt;

use sinew_plan::{Data, Entry, Item, LineStarts, Span};

use self::marks::{Form, Mark, Marks};
use self::splice::{Mapping, Splice};
use crate::SpecSource;
use crate::diagnostic::Report;
use crate::yaml;

/// A step into a tree of YAML.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// To the value of this key.
    Key(String),
    /// To the entry of a list, from 0.
    Index(usize),
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// From the root to the mapping that holds the key.
    pub to: Vec<PathStep>,
    /// The key as it is written.
    pub key: String,
    /// YAML on one line, inserted as it is; it replaces an existing value. `None`: the key is
    /// removed, if it exists.
    pub value: Option<String>,
}

/// Why a text cannot be changed by program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotEdit {
    /// Line of the text before all changes, from 1.
    pub line: usize,
    /// What is wrong and what to do by hand.
    pub why: String,
}

impl fmt::Display for CannotEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for CannotEdit {}

/// The text with all changes, made one after the other: each sees the result of those before it.
/// Reads the text twice for each change.
///
/// # Errors
/// The first change that cannot be made; then no change is made.
pub fn edit(text: &str, changes: &[Change]) -> Result<String, CannotEdit> {
    let (now, lines) = (text.to_owned(), LineStarts::new(text));
    let mut sheet = Sheet { now, lines, tree: tree(text)?, past: Vec::new() };
    for change in changes {
        let refused = sheet.make(change);
        refused.map_err(|(at, why)| CannotEdit { line: sheet.line(at), why })?;
    }
    Ok(sheet.now)
}

/// The tree of a good text.
fn tree(text: &str) -> Result<Item, CannotEdit> {
    if text.len() > yaml::TEXT_LEN_MAX {
        let why =
            format!("the spec has {} bytes, at most {} are read", text.len(), yaml::TEXT_LEN_MAX);
        return Err(CannotEdit { line: 1, why });
    }
    let report = Report::default();
    let root = yaml::parse(text, 0, &report);
    let source = SpecSource::of("", text);
    match (root, report.diagnostics(&source, []).into_iter().next()) {
        (Some(root), None) => Ok(root),
        (_, wrong) => {
            let wrong = wrong.unwrap_or_default();
            let why = format!("{}; {}", wrong.message, wrong.help);
            Err(CannotEdit { line: wrong.line.max(1), why })
        }
    }
}

/// A place in the current text, and what is wrong there.
type Refusal = (usize, String);

/// A text on which changes are made.
struct Sheet {
    now: String,
    /// LineStarts of the text before all changes.
    lines: LineStarts,
    tree: Item,
    /// The splices of the changes so far, the first change first.
    past: Vec<Vec<Splice>>,
}

impl Sheet {
    fn make(&mut self, change: &Change) -> Result<(), Refusal> {
        let Change { to, key, value } = change;
        let marks = Marks::of(&self.now).ok_or_else(|| (0, by_hand(change)))?;
        let (mark, item) = self.find(&marks, to)?;
        let at = mark.start;
        let new = value.as_deref().map(|value| read_value(key, value)).transpose();
        let new = new.map_err(|why| (at, why))?;
        let (Data::Map(entries), Form::Map { is_flow, parts }) = (&item.data, &mark.form) else {
            let why =
                format!("'{key}' belongs in a mapping, found {}; write it as one", item.sort());
            return Err((at, why));
        };
        let (text, is_flow) = (self.now.as_str(), *is_flow);
        let mapping = Mapping { text, marks: &marks, mark, is_flow, parts };
        let index = entries.iter().position(|entry| entry.key == *key);
        if let Some(index) = index {
            let first = 2 * index + usize::from(value.is_some());
            for part in &parts[first..2 * index + 2] {
                self.is_free(&marks, part, parts[2 * index + 1].end)?;
            }
        }
        let splices = match (index, value) {
            (None, None) => return Ok(()),
            (Some(_), None) if !is_flow && entries.len() == 1 => {
                let why = format!("'{key}' is the only key here; remove the mapping by hand");
                return Err((at, why));
            }
            (Some(index), None) => mapping.remove(index),
            (Some(index), Some(value)) => mapping.set(index, value),
            (None, Some(value)) => Some(mapping.add(key, value)),
        };
        let made = splices.and_then(|splices| {
            let text = splice::put(text, &splices)?;
            change_tree(&mut self.tree, change, new)?;
            let read = tree(&text).ok().filter(|read| same(read, &self.tree))?;
            Some((text, read, splices))
        });
        let (text, read, splices) = made.ok_or_else(|| (at, by_hand(change)))?;
        (self.now, self.tree) = (text, read);
        self.past.push(splices);
        Ok(())
    }

    /// The piece at the end of a path; refused if an alias repeats it elsewhere.
    fn find<'s, 'm>(
        &'s self,
        marks: &'m Marks,
        to: &[PathStep],
    ) -> Result<(&'m Mark, &'s Item), Refusal> {
        let (mut mark, mut item) = (&marks.root, &self.tree);
        for step in to {
            self.is_single(marks, mark)?;
            let next = match (step, &mark.form, &item.data) {
                (PathStep::Key(key), Form::Map { parts, .. }, Data::Map(entries)) => {
                    let index = entries.iter().position(|entry| entry.key == *key);
                    index.map(|index| (&parts[2 * index + 1], &entries[index].value))
                }
                (PathStep::Index(index), Form::List { parts, .. }, Data::List(items)) => {
                    parts.get(*index).zip(items.get(*index))
                }
                _ => None,
            };
            (mark, item) = next.ok_or_else(|| {
                let what = match step {
                    PathStep::Key(key) => format!("'{key}'"),
                    PathStep::Index(index) => format!("entry {index}"),
                };
                (mark.start, format!("there is no {what} here, found {}", item.sort()))
            })?;
        }
        self.is_single(marks, mark)?;
        Ok((mark, item))
    }

    /// Refuses a piece that is an alias, or that an alias repeats.
    fn is_single(&self, marks: &Marks, mark: &Mark) -> Result<(), Refusal> {
        let id = if let Form::Alias(id) = mark.form { id } else { mark.anchor };
        let Some((alias, anchor)) = marks.aliases.get(&id).zip(marks.anchors.get(&id)) else {
            return Ok(());
        };
        let (name, anchor_line) = (&self.now[anchor.clone()], self.line(anchor.start));
        let why = match mark.form {
            Form::Alias(_) => format!(
                "'{}' repeats the value of '{name}' on line {anchor_line}, which would change too; \
                 write the value out here by hand",
                &self.now[mark.start..mark.end]
            ),
            _ => format!(
                "the value of '{name}' on line {anchor_line} is repeated on line {} by '{}', and \
                 would change there too; write it out there by hand",
                self.line(alias.start),
                &self.now[alias.clone()]
            ),
        };
        Err((mark.start, why))
    }

    /// Refuses to remove a piece whose anchors are used after `end`.
    fn is_free(&self, marks: &Marks, mark: &Mark, end: usize) -> Result<(), Refusal> {
        if marks.aliases.get(&mark.anchor).is_some_and(|alias| alias.start >= end) {
            self.is_single(marks, mark)?;
        }
        if let Form::List { parts, .. } | Form::Map { parts, .. } = &mark.form {
            for part in parts {
                self.is_free(marks, part, end)?;
            }
        }
        Ok(())
    }

    /// Line of a byte in the text before all changes.
    fn line(&self, at: usize) -> usize {
        let back = |at, splices: &Vec<Splice>| splice::before(splices, at);
        self.lines.line(self.past.iter().rev().fold(at, back))
    }
}

/// The value of a change.
fn read_value(key: &str, text: &str) -> Result<Item, String> {
    if text.contains(['\n', '\r']) {
        return Err(format!("the value of '{key}' has several lines; write it on one, as [a, b]"));
    }
    let wrong = |wrong: CannotEdit| format!("'{key}' cannot be '{text}': {}", wrong.why);
    tree(text).map_err(wrong)
}

fn by_hand(Change { key, value, .. }: &Change) -> String {
    let what = match value {
        Some(value) => format!("write '{key}: {value}'"),
        None => format!("remove '{key}'"),
    };
    format!("this mapping cannot be edited by a program; {what} there by hand")
}

/// Makes a change in the tree; `None` if there is no such mapping.
fn change_tree(root: &mut Item, change: &Change, value: Option<Item>) -> Option<()> {
    let mut item = root;
    for step in &change.to {
        item = match (step, &mut item.data) {
            (PathStep::Key(key), Data::Map(entries)) => {
                entries.iter_mut().find(|entry| entry.key == *key).map(|entry| &mut entry.value)?
            }
            (PathStep::Index(index), Data::List(items)) => items.get_mut(*index)?,
            _ => return None,
        };
    }
    let Data::Map(entries) = &mut item.data else { return None };
    let key = &change.key;
    let index = entries.iter().position(|entry| entry.key == *key);
    match (index, value) {
        (Some(index), Some(value)) => entries[index].value = value,
        (Some(index), None) => drop(entries.remove(index)),
        (None, Some(value)) => {
            entries.push(Entry { key: key.clone(), span: Span::default(), value })
        }
        (None, None) => {}
    }
    Some(())
}

/// Whether two trees have the same content, regardless of places.
fn same(one: &Item, other: &Item) -> bool {
    match (&one.data, &other.data) {
        (Data::List(ones), Data::List(others)) => {
            ones.len() == others.len()
                && ones.iter().zip(others).all(|(one, other)| same(one, other))
        }
        (Data::Map(ones), Data::Map(others)) => {
            let entry = |(one, other): (&Entry, &Entry)| {
                one.key == other.key && same(&one.value, &other.value)
            };
            ones.len() == others.len() && ones.iter().zip(others).all(entry)
        }
        (one @ Data::Scalar { .. }, other) => one == other,
        _ => false,
    }
}
