//! A mapping of the spec, read by its table of keys: unknown, missing and bad values are reported,
//! and the table's default replaces an absent value.

use std::collections::BTreeSet;

use sinew_plan::catalogue::{Parameter, ParameterType, ParameterValue};
use sinew_plan::{Data, Entry, Item, Span};

use crate::diagnostic::Report;
use crate::keys::{AUTO, Key, NAME_LEN_MAX, Shape, Table};
use crate::nearest::suggest;
use crate::value::{percent, read, scalar, taken};

/// Help for a key that begins with a digit: it was part of a number with a decimal comma.
const AFTER_COMMA: &str =
    "between { and } a comma begins a new key: write a number with a decimal point, such as 3.5";

/// A name and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) text: &'a str,
    pub(crate) span: Span,
}

/// A mapping and its table.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    table: &'static Table,
    entries: &'a [Entry],
    /// The place that an error about the mapping points to.
    pub(crate) span: Span,
    pub(crate) report: &'a Report,
}

/// The entries of a mapping; reports anything else.
fn mapping<'a>(item: &'a Item, what: &str, keys: &[Key], report: &Report) -> &'a [Entry] {
    match &item.data {
        Data::Map(entries) => entries,
        _ => {
            let message = format!("{what} is a mapping, found {}", item.sort());
            let required = keys.iter().filter(|key| key.required);
            let required: Vec<_> = required.map(|key| format!("{}: ...", key.name)).collect();
            let help = match required.is_empty() {
                true => "write 'key: value' lines, or {key: value}".to_owned(),
                false => format!("write {{{}}}", required.join(", ")),
            };
            report.error(item.span, message, help);
            &[]
        }
    }
}

/// The entries of a list; reports anything else.
pub(crate) fn list<'a>(item: &'a Item, what: &str, report: &Report) -> &'a [Item] {
    match &item.data {
        Data::List(items) => items,
        _ => {
            let message = format!("{what} is a list, found {}", item.sort());
            report.error(item.span, message, "write '- ' before each entry, or [a, b]");
            &[]
        }
    }
}

/// A number, or how one is found by measurement.
pub(crate) enum NumberOrAuto<'a> {
    Number(u64),
    Auto(Fields<'a>),
}

impl<'a> Fields<'a> {
    /// Reads a mapping. Unknown and missing keys are reported.
    pub(crate) fn of(item: &'a Item, table: &'static Table, report: &'a Report) -> Fields<'a> {
        Fields::new(item, table, &[], item.span, report)
    }

    /// The same, but keys of `parameters` are known too; errors about a missing key point to `at`.
    pub(crate) fn new(
        item: &'a Item,
        table: &'static Table,
        parameters: &'static [Parameter],
        at: Span,
        report: &'a Report,
    ) -> Fields<'a> {
        let is_map = matches!(item.data, Data::Map(_));
        let fields = Fields {
            table,
            entries: mapping(item, table.what, table.keys, report),
            span: at,
            report,
        };
        let own = table.keys.iter().map(|key| key.name);
        let known = own.chain(parameters.iter().map(|parameter| parameter.name));
        for entry in fields.entries {
            if !known.clone().any(|name| name == entry.key) {
                report.error_with(entry.span, || {
                    let message = format!("unknown key '{}' in {}", entry.key, table.what);
                    let help = match table.inner_of(&entry.key) {
                        Some(inner) => format!("write it under '{}:'", inner.name),
                        None if entry.key.starts_with(|c: char| c.is_ascii_digit()) => {
                            AFTER_COMMA.into()
                        }
                        None => suggest(&entry.key, known.clone()),
                    };
                    (message, help)
                });
            }
        }
        for key in table.keys.iter().filter(|key| is_map && key.required) {
            if fields.get(key.name).is_none() {
                let message = format!("{} lacks '{}'", table.what, key.name);
                report.error(at, message, how_to_add(key.name, key.doc));
            }
        }
        fields
    }

    /// The same without a check of keys, for a mapping whose table is not known.
    pub(crate) fn peek(item: &'a Item, table: &'static Table, report: &'a Report) -> Fields<'a> {
        let entries: &[Entry] = if let Data::Map(entries) = &item.data { entries } else { &[] };
        Fields { table, entries, span: item.span, report }
    }

    /// A mapping without entries.
    pub(crate) fn empty(table: &'static Table, span: Span, report: &'a Report) -> Fields<'a> {
        Fields { table, entries: &[], span, report }
    }

    /// The mapping that is the value of a key; empty if the key is not given.
    pub(crate) fn inner(&self, name: &str) -> Fields<'a> {
        let Shape::Fields(table) = self.key(name).shape else {
            panic!("'{name}' is not a mapping in the table");
        };
        match self.get(name) {
            Some(item) => Fields::of(item, table, self.report),
            None => Fields::empty(table, self.span, self.report),
        }
    }

    /// The value of a key.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Item> {
        self.entry(name).map(|entry| &entry.value)
    }

    /// The key and its value.
    pub(crate) fn entry(&self, name: &str) -> Option<&'a Entry> {
        self.entries.iter().find(|entry| entry.key == name)
    }

    /// All entries as written, whether the key is known or not.
    pub(crate) fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    /// The place of a key's value; the mapping's own place if the key is not given.
    pub(crate) fn at(&self, name: &str) -> Span {
        self.get(name).map_or(self.span, |item| item.span)
    }

    fn key(&self, name: &str) -> &'static Key {
        let key = self.table.keys.iter().find(|key| key.name == name);
        key.unwrap_or_else(|| panic!("{} has no key '{name}' in its table", self.table.what))
    }

    /// The text of a key and its place; a default has the place of the mapping.
    pub(crate) fn text(&self, name: &str) -> Option<Named<'a>> {
        let given = self.get(name).and_then(|item| {
            scalar(item, name, self.report).map(|text| Named { text, span: item.span })
        });
        given.or_else(|| self.key(name).default.map(|text| Named { text, span: self.span }))
    }

    /// A name; a text with other characters than letters, digits, `_` and `-` is reported.
    pub(crate) fn name(&self, name: &str) -> Option<Named<'a>> {
        let named = self.text(name)?;
        check_name(named, name, self.report);
        Some(named)
    }

    /// The number of a key, within the table's limits: a time in ns, a size in bytes, a share in
    /// hundredths, and 1 for true.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let Named { text, span } = self.text(name)?;
        let message = || format!("{name} cannot be '{text}'");
        let read = number(&self.key(name).shape, text);
        read.map_err(|help| self.report.error(span, message(), help)).ok()
    }

    /// The same without the default: `None` if the key is not given.
    pub(crate) fn number_if_given(&self, name: &str) -> Option<u64> {
        self.get(name)?;
        self.number(name)
    }

    /// The number of a key, or the fields for a number that is found by measurement. With the word
    /// `auto` none of these fields is given.
    pub(crate) fn number_or_auto(&self, name: &str) -> Option<NumberOrAuto<'a>> {
        let Shape::AutoOr { table, .. } = self.key(name).shape else {
            panic!("'{name}' is not a number that may be found, by the table");
        };
        if let Some(item) = self.get(name).filter(|item| matches!(item.data, Data::Map(_))) {
            return Some(NumberOrAuto::Auto(Fields::of(item, table, self.report)));
        }
        let Named { text, span } = self.text(name)?;
        match text {
            AUTO => Some(NumberOrAuto::Auto(Fields::empty(table, span, self.report))),
            _ => self.number(name).map(NumberOrAuto::Number),
        }
    }

    /// The whole numbers in the list of a key, each with its place; `None` if the key is not given.
    /// An empty list is reported, and so is a number that is refused or occurs twice.
    pub(crate) fn integers(&self, name: &str) -> Option<Vec<(u64, Span)>> {
        let item = self.get(name)?;
        let items = list(item, name, self.report);
        if items.is_empty() && matches!(item.data, Data::List(_)) {
            let message = format!("{name} is an empty list");
            self.report.error(item.span, message, format!("write {name}: [0], or remove it"));
        }
        let mut known = BTreeSet::new();
        let read = |item: &Item| {
            let text = scalar(item, name, self.report)?;
            let message = || format!("{name} cannot hold '{text}'");
            let read = number(&self.key(name).shape, text);
            let value = read.map_err(|help| self.report.error(item.span, message(), help)).ok()?;
            if !known.insert(value) {
                let message = format!("{name} has {value} twice");
                self.report.error(item.span, message, "write it once");
                return None;
            }
            Some((value, item.span))
        };
        Some(items.iter().filter_map(read).collect())
    }

    /// One of the words of an option.
    pub(crate) fn word<T: Copy>(&self, name: &str, all: &[(T, &'static str)]) -> Option<T> {
        let Named { text, span } = self.text(name)?;
        let found = all.iter().find(|(_, word)| *word == text).map(|&(value, _)| value);
        if found.is_none() {
            let help = suggest(text, all.iter().map(|(_, word)| *word));
            self.report.error(span, format!("{name} cannot be '{text}'"), help);
        }
        found
    }

    /// The same without the default: `None` if the key is not given.
    pub(crate) fn given_word<T: Copy>(&self, name: &str, all: &[(T, &'static str)]) -> Option<T> {
        self.get(name)?;
        self.word(name, all)
    }

    /// The entries of a mapping whose keys are names.
    pub(crate) fn map(&self, name: &str) -> &'a [Entry] {
        self.get(name).map_or(&[], |item| mapping(item, name, &[], self.report))
    }

    /// The entries of a list.
    pub(crate) fn list(&self, name: &str) -> &'a [Item] {
        self.get(name).map_or(&[], |item| list(item, name, self.report))
    }
}

/// The number in a text. The error says what to write instead.
fn number(shape: &Shape, text: &str) -> Result<u64, String> {
    match *shape {
        Shape::Value(ty) => match read(ty, text) {
            Ok(ParameterValue::Bool(value)) => Ok(value.into()),
            Ok(ParameterValue::Integer(value)) => Ok(value as u64),
            Ok(ParameterValue::Duration(value) | ParameterValue::Size(value)) => Ok(value),
            Ok(value) => panic!("{value:?} is not a number"),
            Err(help) => Err(help.unwrap_or_else(|| format!("write {}", taken(ty)))),
        },
        Shape::Integers { min, max } => {
            number(&Shape::Value(ParameterType::Integer { min, max }), text)
        }
        Shape::Percent { min, max } => {
            let value = percent(text).filter(|value| (min..=max).contains(value)).map(u64::from);
            let help = || format!("write a whole number from {min} to {max} and %, such as 50%");
            value.ok_or_else(help)
        }
        Shape::AutoOr { min, max, .. } => {
            let whole = number(&Shape::Value(ParameterType::Integer { min, max }), text);
            whole.map_err(|help| format!("{help}, or {AUTO}, or {{min: ..., max: ...}}"))
        }
        Shape::PowerOfTwo { max } => match text.parse::<i64>().unwrap_or_default() {
            value @ 1.. if value <= max.into() && value.count_ones() == 1 => Ok(value as u64),
            value @ 1.. if value < max.into() => {
                let above = (value as u32).next_power_of_two();
                Err(format!("it must be a power of two: write {} or {above}", above / 2))
            }
            _ => Err(format!("it must be a power of two from 1 to {max}")),
        },
        _ => panic!("no number stands there by the table"),
    }
}

/// What to do about a missing key: its name, and the first sentence of its doc.
pub(crate) fn how_to_add(key: &str, doc: &str) -> String {
    let sentence = doc.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let mut rest = sentence.chars();
    let first = rest.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default();
    format!("add '{key}: ...' ({first}{})", rest.as_str())
}

/// Whether a name may contain this character.
pub(crate) fn is_name_sign(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_' || sign == '-'
}

/// Reports a text that is not allowed as a name.
pub(crate) fn check_name(named: Named<'_>, what: &str, report: &Report) {
    let Named { text, span } = named;
    if !text.is_empty() && text.len() <= NAME_LEN_MAX && text.chars().all(is_name_sign) {
        return;
    }
    let shown: String = text.chars().take(NAME_LEN_MAX).collect();
    let help = format!("use 1 to {NAME_LEN_MAX} of a-z, A-Z, 0-9, _ and -");
    report.error(span, format!("{what} cannot be '{shown}'"), help);
}
