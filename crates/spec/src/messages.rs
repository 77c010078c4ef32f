//! Messages that a graph declares: `messages: {axis: {position_rad: f64}}`. They are laid out as C
//! lays out a struct with these fields, so that a node in Rust or C that declares the same message
//! can be linked to it.

use std::collections::HashMap;

use sinew_plan::catalogue::{Kind, MESSAGE_SIZE_MAX, MessageType, Scalar};
use sinew_plan::{Data, Entry, Item};

use crate::diagnostic::Report;
use crate::fields::{Fields, Named};
use crate::keys::{ARRAY_MAX, FIELDS_MAX, LABELS_MAX, MESSAGES_MAX, NAME_LEN_MAX};
use crate::made::{self, Row, lay_out};
use crate::nearest::suggest;
use crate::value::scalar;

/// The types of a field, by the words of the spec.
const TYPES: [(&str, Scalar); 11] = [
    ("f64", Scalar::F64),
    ("f32", Scalar::F32),
    ("bool", Scalar::Bool),
    ("u8", Scalar::U8),
    ("i8", Scalar::I8),
    ("u16", Scalar::U16),
    ("i16", Scalar::I16),
    ("u32", Scalar::U32),
    ("i32", Scalar::I32),
    ("u64", Scalar::U64),
    ("i64", Scalar::I64),
];

/// Names that no message or field may have: words that Rust, Python, C or C++ reserve, and macros
/// of C compilers or their most usual headers, which would replace the name.
const RESERVED: &str = include_str!("reserved.txt");

/// The messages that a graph declares.
#[derive(Default)]
pub(crate) struct Messages<'a> {
    all: HashMap<&'a str, &'static MessageType>,
    /// Names of messages that are reported already.
    refused: Vec<&'a str>,
}

impl<'a> Messages<'a> {
    /// Reads `messages:` of the graph.
    pub(crate) fn read(fields: &Fields<'a>, catalogue: &[&'static Kind]) -> Messages<'a> {
        let (entries, report) = (fields.map("messages"), fields.report);
        if entries.len() > MESSAGES_MAX {
            let message = format!("{} messages in one graph", entries.len());
            report.error(entries[MESSAGES_MAX].span, message, format!("at most {MESSAGES_MAX}"));
        }
        let mut messages = Messages::default();
        for (at, entry) in entries.iter().take(MESSAGES_MAX).enumerate() {
            let twin = entries[..at].iter().find(|other| are_twins(&other.key, &entry.key));
            if let Some(twin) = twin {
                let text = format!("messages '{}' and '{}' have one name", twin.key, entry.key);
                let help = "rename one of them: recordings ignore '_' and case in names of \
                            messages";
                report.error(entry.span, text, help);
            }
            match message(entry, catalogue, report) {
                Some(message) => drop(messages.all.insert(&entry.key, message)),
                None => messages.refused.push(&entry.key),
            }
        }
        messages
    }

    /// The message of this name; reports one that is not declared.
    pub(crate) fn find(&self, named: Named<'_>, report: &Report) -> Option<&'static MessageType> {
        let found = self.all.get(named.text).copied();
        if found.is_none() && !self.refused.contains(&named.text) {
            let text = format!("the graph declares no message '{}'", named.text);
            let help = match self.all.is_empty() {
                true => format!("add 'messages: {{{}: {{value: f64}}}}' to the graph", named.text),
                false => suggest(named.text, self.all.keys().copied()),
            };
            report.error(named.span, text, help);
        }
        found
    }
}

/// Whether both names become the same in recordings.
fn are_twins(one: &str, other: &str) -> bool {
    let letters = |name: &str| name.replace('_', "").to_ascii_lowercase();
    letters(one) == letters(other)
}

/// A declared message; reports what is wrong with it.
fn message(
    entry: &Entry,
    catalogue: &[&'static Kind],
    report: &Report,
) -> Option<&'static MessageType> {
    let name = Named { text: &entry.key, span: entry.span };
    let mut good = check(name, "message", report);
    let Data::Map(rows) = &entry.value.data else {
        let text = format!("message '{}' is a mapping, found {}", entry.key, entry.value.sort());
        report.error(entry.value.span, text, "write {position_rad: f64, enabled: bool}");
        return None;
    };
    if rows.is_empty() || rows.len() > FIELDS_MAX {
        let text = format!("message '{}' has {} fields", entry.key, rows.len());
        report.error(entry.span, text, format!("give it 1 to {FIELDS_MAX}"));
        return None;
    }
    let mut known = Vec::new();
    for row in rows {
        good &= check(Named { text: &row.key, span: row.span }, "field", report);
        match field(row, report) {
            Some(field) => known.push(field),
            None => good = false,
        }
    }
    let (fields, size, align) = lay_out(&known);
    if size > MESSAGE_SIZE_MAX as u64 {
        let text = format!("message '{}' has {size} bytes", entry.key);
        report.error(entry.span, text, format!("at most {MESSAGE_SIZE_MAX}"));
        return None;
    }
    let made = good.then(|| made::message(&entry.key, size as u32, align, &fields))?;
    is_alone(made, catalogue, name, report).then_some(made)
}

/// Whether no kind knows a different message by this name; reports one that does.
fn is_alone(
    made: &MessageType,
    catalogue: &[&'static Kind],
    name: Named<'_>,
    report: &Report,
) -> bool {
    let differs = |kind: &&&'static Kind| {
        let mut messages = kind.ports.iter().chain(made::tuning(kind)).map(|port| port.message);
        messages.any(|other| are_twins(other.name, made.name) && other.hash != made.hash)
    };
    let Some(kind) = catalogue.iter().find(differs) else { return true };
    let text = format!("message '{}' is declared twice", made.name);
    let help = format!(
        "kind '{}' has one of that name with other fields; give this one another name, or the \
         same fields in the same order",
        kind.name
    );
    report.error(name.span, text, help);
    false
}

/// A field: a word of [`TYPES`], `f64[6]`, or the words of an enum.
fn field<'a>(row: &'a Entry, report: &Report) -> Option<Row<'a>> {
    if let Data::List(words) = &row.value.data {
        let labels = labels(row, words, report)?;
        return Some(Row { name: &row.key, scalar: Scalar::U8, count: 1, labels });
    }
    let text = scalar(&row.value, &row.key, report)?;
    let (word, count) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((word, count)) => (word, count.parse().unwrap_or(0)),
        None => (text, 1),
    };
    let found = TYPES.iter().find(|(name, _)| *name == word);
    let good = found.filter(|_| (1..=ARRAY_MAX).contains(&count));
    if good.is_none() {
        let help = match found {
            Some((name, _)) => format!("write {name}[N] with N from 1 to {ARRAY_MAX}"),
            None => suggest(word, TYPES.iter().map(|(name, _)| *name)) + ", or f64[6] for an array",
        };
        report.error(row.value.span, format!("field '{}' cannot be '{text}'", row.key), help);
    }
    good.map(|&(_, scalar)| Row { name: &row.key, scalar, count, labels: &[] })
}

/// The words of an enum, which stand for 0, 1, 2 and so on.
fn labels(row: &Entry, words: &[Item], report: &Report) -> Option<&'static [&'static str]> {
    if words.is_empty() || words.len() > LABELS_MAX {
        let text = format!("field '{}' has {} words", row.key, words.len());
        report.error(row.value.span, text, format!("give it 1 to {LABELS_MAX}: it is a byte"));
        return None;
    }
    let (mut labels, mut good) = (Vec::<&str>::new(), true);
    for item in words {
        let Data::Scalar { text: word, .. } = &item.data else {
            let text = format!("a word of field '{}' is a text, found {}", row.key, item.sort());
            report.error(item.span, text, "write the enum's words, as in [off, heat]");
            good = false;
            continue;
        };
        let named = Named { text: word, span: item.span };
        if TYPES.iter().any(|(name, _)| name == word) {
            let text = format!("'{word}' is a type, and a list has the words of an enum");
            let help = format!("write \"{word}[N]\" for an array of N, or words: [off, on]");
            report.error(item.span, text, help);
            good = false;
        } else if labels.iter().any(|other| are_twins(other, word)) {
            let text = format!("field '{}' has the word '{word}' twice", row.key);
            let help = "rename one of them: case and '_' make no difference";
            report.error(item.span, text, help);
            good = false;
        }
        good &= is_shaped(named, "word of an enum", report);
        labels.push(word);
    }
    good.then(|| made::labels(&labels))
}

/// Whether a name is allowed in Rust, Python and C; reports one that is not.
fn check(named: Named<'_>, what: &str, report: &Report) -> bool {
    if is_reserved(named.text) {
        let help = "this word is reserved in Rust, Python or C; add the unit or another word to it";
        report.error(named.span, format!("a {what} cannot be named '{}'", named.text), help);
        return false;
    }
    is_shaped(named, what, report)
}

/// Whether Rust, Python, C or C++ reserve a word.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.lines().any(|reserved| reserved == word)
}

/// Whether a name has only characters that Rust, Python and C allow; reports other names.
fn is_shaped(named: Named<'_>, what: &str, report: &Report) -> bool {
    let Named { text, span } = named;
    let sign = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let shaped = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.len() <= NAME_LEN_MAX
        && text.chars().all(sign)
        && !text.contains("__");
    if !shaped {
        let shown: String = text.chars().take(NAME_LEN_MAX).collect();
        let help = format!(
            "use 1 to {NAME_LEN_MAX} letters, digits and single '_', a letter first: Rust, Python \
             and C take it then"
        );
        report.error(span, format!("a {what} cannot be named '{shown}'"), help);
    }
    shaped
}
