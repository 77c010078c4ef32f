//! A mapping of the spec, read by its table of keys: what is unknown, missing or out of limits is
//! reported, and what is absent takes the table's default.

use sinew_plan::catalogue::Parameter;
use sinew_plan::{Data, Entry, Item, Span};

use crate::diagnostic::Report;
use crate::keys::{Key, NAME_LEN_MAX, Shape, Table};
use crate::nearest::suggest;
use crate::value::{duration_within, percent, scalar, size_within, word};

/// A name and where it stands.
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
    /// Where it is best pointed to.
    pub(crate) span: Span,
}

/// The entries of a mapping; reports anything else.
pub(crate) fn mapping<'a>(item: &'a Item, what: &str, report: &mut Report) -> &'a [Entry] {
    match &item.data {
        Data::Map(entries) => entries,
        _ => {
            let message = format!("{what} is a mapping, found {}", item.sort());
            report.error(item.span, message, "write 'key: value' lines, or {key: value}");
            &[]
        }
    }
}

/// The entries of a list; reports anything else.
pub(crate) fn list<'a>(item: &'a Item, what: &str, report: &mut Report) -> &'a [Item] {
    match &item.data {
        Data::List(items) => items,
        _ => {
            let message = format!("{what} is a list, found {}", item.sort());
            report.error(item.span, message, "write '- ' before each entry, or [a, b]");
            &[]
        }
    }
}

impl<'a> Fields<'a> {
    /// Reads a mapping. Keys of `parameters` are known too; others are reported, and so are missing
    /// ones. `at` is where a missing key is best pointed to.
    pub(crate) fn new(
        item: &'a Item,
        table: &'static Table,
        parameters: &'static [Parameter],
        at: Span,
        report: &mut Report,
    ) -> Fields<'a> {
        let is_map = matches!(item.data, Data::Map(_));
        let fields = Fields { table, entries: mapping(item, table.what, report), span: at };
        let own = table.keys.iter().map(|key| key.name);
        let known = own.chain(parameters.iter().map(|parameter| parameter.name));
        for entry in fields.entries {
            if !known.clone().any(|name| name == entry.key) {
                report.error_with(entry.span, || {
                    let message = format!("unknown key '{}' in {}", entry.key, table.what);
                    let help = match table.inner_of(&entry.key) {
                        Some(inner) => format!("write it under '{}:'", inner.name),
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

    /// The same without a check of keys, for a mapping that is read in two steps.
    pub(crate) fn peek(item: &'a Item, table: &'static Table) -> Fields<'a> {
        let entries: &[Entry] = if let Data::Map(entries) = &item.data { entries } else { &[] };
        Fields { table, entries, span: item.span }
    }

    /// The value of a key.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Item> {
        self.entry(name).map(|entry| &entry.value)
    }

    /// The key and its value.
    pub(crate) fn entry(&self, name: &str) -> Option<&'a Entry> {
        self.entries.iter().find(|entry| entry.key == name)
    }

    /// All that was written, known or not.
    pub(crate) fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    /// Where the value of a key stands; the mapping's own place if it is not given.
    pub(crate) fn at(&self, name: &str) -> Span {
        self.get(name).map_or(self.span, |item| item.span)
    }

    fn key(&self, name: &str) -> &'static Key {
        let key = self.table.keys.iter().find(|key| key.name == name);
        key.unwrap_or_else(|| panic!("{} has no key '{name}' in its table", self.table.what))
    }

    /// The text of a key and its place; the default has the place of the mapping.
    fn text(&self, name: &str, report: &mut Report) -> Option<Named<'a>> {
        let default = || self.key(name).default.map(|text| Named { text, span: self.span });
        match self.get(name) {
            Some(item) => {
                scalar(item, name, report).map(|text| Named { text, span: item.span }).or(default())
            }
            None => default(),
        }
    }

    /// A name; what is more than letters, digits, `_` and `-` is reported.
    pub(crate) fn name(&self, name: &str, report: &mut Report) -> Option<Named<'a>> {
        let named = self.text(name, report)?;
        check_name(named, name, report);
        Some(named)
    }

    /// A reference to a name that stands elsewhere, of any form.
    pub(crate) fn reference(&self, name: &str, report: &mut Report) -> Option<Named<'a>> {
        self.text(name, report)
    }

    /// A whole number in the table's limits.
    pub(crate) fn integer(&self, name: &str, report: &mut Report) -> Option<i64> {
        let Shape::Integer { min, max } = self.key(name).shape else {
            panic!("'{name}' is no whole number in the table");
        };
        let Named { text, span } = self.text(name, report)?;
        let value = text.parse().ok().filter(|value| (min..=max).contains(value));
        if value.is_none() {
            let message = format!("{name} cannot be '{text}'");
            report.error(span, message, format!("write a whole number from {min} to {max}"));
        }
        value
    }

    /// Whether something is so.
    pub(crate) fn truth(&self, name: &str, report: &mut Report) -> Option<bool> {
        let Named { text, span } = self.text(name, report)?;
        let value = text.parse().ok();
        if value.is_none() {
            report.error(span, format!("{name} cannot be '{text}'"), "write true or false");
        }
        value
    }

    /// A power of two in the table's limits.
    pub(crate) fn power_of_two(&self, name: &str, report: &mut Report) -> Option<u32> {
        let Shape::PowerOfTwo { max } = self.key(name).shape else {
            panic!("'{name}' is no power of two in the table");
        };
        let Named { text, span } = self.text(name, report)?;
        let value = text.parse::<i64>().ok();
        let fits = |value: &u32| *value <= max && value.is_power_of_two();
        let good = value.and_then(|value| u32::try_from(value).ok()).filter(fits);
        if good.is_none() {
            let help = match value {
                Some(value) if (1..i64::from(max)).contains(&value) => {
                    let above = (value as u32).next_power_of_two();
                    format!("it must be a power of two: write {} or {above}", above / 2)
                }
                _ => format!("it must be a power of two from 1 to {max}"),
            };
            report.error(span, format!("{name} cannot be '{text}'"), help);
        }
        good
    }

    /// A duration in the table's limits, in ns.
    pub(crate) fn duration_ns(&self, name: &str, report: &mut Report) -> Option<u64> {
        let Shape::Duration { min_ns, max_ns } = self.key(name).shape else {
            panic!("'{name}' is no duration in the table");
        };
        let Named { text, span } = self.text(name, report)?;
        match duration_within(text, min_ns, max_ns) {
            Ok(value) => Some(value),
            Err(help) => {
                report.error(span, format!("{name} cannot be '{text}'"), help);
                None
            }
        }
    }

    /// A size in the table's limits, in bytes.
    pub(crate) fn size_bytes(&self, name: &str, report: &mut Report) -> Option<u64> {
        let Shape::Size { min_bytes, max_bytes } = self.key(name).shape else {
            panic!("'{name}' is no size in the table");
        };
        let Named { text, span } = self.text(name, report)?;
        match size_within(text, min_bytes, max_bytes) {
            Ok(value) => Some(value),
            Err(help) => {
                report.error(span, format!("{name} cannot be '{text}'"), help);
                None
            }
        }
    }

    /// A number of hundredths in the table's limits.
    pub(crate) fn percent(&self, name: &str, report: &mut Report) -> Option<u32> {
        let Shape::Percent { min, max } = self.key(name).shape else {
            panic!("'{name}' is no percentage in the table");
        };
        let Named { text, span } = self.text(name, report)?;
        let value = percent(text).filter(|value| (min..=max).contains(value));
        if value.is_none() {
            let help = format!("write a whole number from {min} to {max} and %, such as 50%");
            report.error(span, format!("{name} cannot be '{text}'"), help);
        }
        value
    }

    /// One of an option's words.
    pub(crate) fn word<T: Copy>(
        &self,
        name: &str,
        all: &[(T, &'static str)],
        report: &mut Report,
    ) -> Option<T> {
        let Named { text, span } = self.text(name, report)?;
        word(text, span, name, all, report)
    }

    /// The same without its default: `None` if the key is not given.
    pub(crate) fn given_word<T: Copy>(
        &self,
        name: &str,
        all: &[(T, &'static str)],
        report: &mut Report,
    ) -> Option<T> {
        self.get(name)?;
        self.word(name, all, report)
    }

    /// The entries of a mapping from names.
    pub(crate) fn map(&self, name: &str, report: &mut Report) -> &'a [Entry] {
        self.get(name).map_or(&[], |item| mapping(item, name, report))
    }

    /// The entries of a list.
    pub(crate) fn list(&self, name: &str, report: &mut Report) -> &'a [Item] {
        self.get(name).map_or(&[], |item| list(item, name, report))
    }
}

/// What to do about a missing key: its name, and the first sentence of what is said of it.
pub(crate) fn how_to_add(key: &str, doc: &str) -> String {
    let sentence = doc.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let mut rest = sentence.chars();
    let first = rest.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default();
    format!("add '{key}: ...' ({first}{})", rest.as_str())
}

/// Whether a name may have this sign.
pub(crate) fn is_name_sign(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_' || sign == '-'
}

/// Reports a text that may not be a name.
pub(crate) fn check_name(named: Named<'_>, what: &str, report: &mut Report) {
    let Named { text, span } = named;
    if !text.is_empty() && text.len() <= NAME_LEN_MAX && text.chars().all(is_name_sign) {
        return;
    }
    let shown: String = text.chars().take(NAME_LEN_MAX).collect();
    let help = format!("use 1 to {NAME_LEN_MAX} of a-z, A-Z, 0-9, _ and -");
    report.error(span, format!("{what} cannot be '{shown}'"), help);
}
