//! `{{ env.NAME }}` and `{{ file.PATH }}`: values from outside of the spec. The caller of the
//! compiler reads them, and they are put in before anything else is read. Texts that a flow node
//! reads itself, such as its templates, keep the braces: the kind puts the values in.

use std::collections::BTreeSet;
use std::ops::Range;

use sinew_plan::catalogue::{Kind, ParameterType};
use sinew_plan::{Brought, Data, Entry, Item, Wanted};

use crate::SpecSource;
use crate::diagnostic::Report;
use crate::draft::visit_nodes;
use crate::keys;
use crate::yaml::parse;

/// Most values that one spec takes from outside.
pub const BROUGHT_MAX: usize = 256;

/// What to write in braces.
const FORMS: &str = "write {{ env.NAME }} or {{ file.PATH }}, with a default: \
                     {{ env.NAME or 'text' }}";

/// A place in a text that is replaced by a value from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSlot {
    /// From its first brace to the end of its last one.
    pub range: Range<usize>,
    /// The value that goes there.
    pub wanted: Wanted,
    /// Used instead if that value does not exist.
    pub default: Option<String>,
}

/// The slot that begins at a `{{`; `None` if these braces hold anything else.
pub fn slot_at(text: &str, open: usize) -> Option<TextSlot> {
    let inner = text[open..].strip_prefix("{{")?.trim_start();
    let (wanted, rest) = wanted(inner)?;
    let rest = rest.trim_start();
    let (default, rest) = match rest.strip_prefix("or").or(rest.strip_prefix(".orValue(")) {
        None => (None, rest),
        Some(after) => {
            let (text, after) = quoted(after.trim_start())?;
            let is_call = rest.starts_with('.');
            let after = if is_call { after.trim_start().strip_prefix(')')? } else { after };
            (Some(text.to_owned()), after)
        }
    };
    let rest = rest.trim_start().strip_prefix("}}")?;
    Some(TextSlot { range: open..text.len() - rest.len(), wanted, default })
}

/// The name at the beginning of a text, and the rest.
fn wanted(text: &str) -> Option<(Wanted, &str)> {
    if let Some(rest) = text.strip_prefix("env.") {
        let rest = rest.strip_prefix('?').unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let is_name = name.starts_with(|c: char| !c.is_ascii_digit());
        return is_name.then(|| (Wanted::Variable(name.to_owned()), rest));
    }
    if let Some(rest) = text.strip_prefix("file[") {
        let (path, rest) = quoted(rest)?;
        return Some((Wanted::File(path.to_owned()), rest.strip_prefix(']')?));
    }
    let rest = text.strip_prefix("file.")?;
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '}' | '{' | '\'' | '"'));
    let (path, rest) = rest.split_at(end.unwrap_or(rest.len()));
    (!path.is_empty()).then(|| (Wanted::File(path.to_owned()), rest))
}

/// The quoted text at the beginning of a text, and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// What a spec and its overrides take from outside, each once; the caller of the compiler must read
/// it first. Empty for a text that is not a spec or takes nothing. At most one value more than the
/// compiler accepts.
pub fn wanted_of(text: &str, overrides: &[(String, String)]) -> Vec<Wanted> {
    let mut all = Vec::new();
    let texts = [text].into_iter().chain(overrides.iter().map(|(_, text)| text.as_str()));
    for text in texts.filter(|text| text.contains("{{") || text.contains("file[")) {
        if let Some(root) = parse(text, 0, &Report::default()) {
            gather(&root, &mut all);
        }
    }
    all
}

fn gather(item: &Item, all: &mut Vec<Wanted>) {
    match &item.data {
        Data::List(items) => items.iter().for_each(|item| gather(item, all)),
        Data::Map(entries) => entries.iter().for_each(|entry| gather(&entry.value, all)),
        Data::Scalar { text, .. } => {
            let slots = slots(text).into_iter().map(|slot| slot.wanted);
            // In an expression a file may be anywhere.
            let files =
                text.match_indices("file[").filter_map(|(at, _)| Some(wanted(&text[at..])?.0));
            for one in slots.chain(files) {
                if !all.contains(&one) && all.len() <= BROUGHT_MAX {
                    all.push(one);
                }
            }
        }
    }
}

/// All slots of a text, in their order.
pub fn slots(text: &str) -> Vec<TextSlot> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(open) = text[from..].find("{{").map(|at| from + at) {
        from = open + 2;
        if let Some(slot) = slot_at(text, open) {
            from = slot.range.end;
            found.push(slot);
        }
    }
    found
}

/// Puts the values into the tree: into parameters that are not templates, and into the domains.
pub(crate) fn put(
    root: &mut Item,
    source: &SpecSource<'_>,
    catalogue: &[&'static Kind],
    report: &Report,
) {
    let mut texts = source.overrides.iter().map(|(_, text)| text.as_str());
    if !source.text.contains("{{") && !texts.any(|text| text.contains("{{")) {
        return;
    }
    if source.outside.len() > BROUGHT_MAX {
        let message = format!("the graph takes more than {BROUGHT_MAX} values from outside");
        report.error(root.span, message, "put several into one file, or split the graph");
        return;
    }
    let filler = Filler { brought: source.outside, report, is_elsewhere: false };
    let elsewhere = Filler { is_elsewhere: true, ..filler };
    let others = of_other_hosts(root, source.host);
    if let Data::Map(entries) = &mut root.data {
        let apart = ["domains", "hosts"];
        let apart = entries.iter_mut().filter(|entry| apart.contains(&entry.key.as_str()));
        // Images are read before the spec is.
        apart.for_each(|entry| filler.tree(&mut entry.value, &["image"]));
    }
    visit_nodes(root, &mut |name, entries| {
        let outermost = name.split('/').next().unwrap_or(name);
        let filler = if others.contains(outermost) { &elsewhere } else { &filler };
        filler.node(entries, catalogue);
    });
}

/// Nodes and blocks that run on other hosts than this one.
fn of_other_hosts(root: &Item, host: Option<&str>) -> BTreeSet<String> {
    let text = |item: &Item, key| item.get(key).and_then(Item::text).map(str::to_owned);
    let Some((own, nodes)) = host.zip(root.get("nodes")) else { return BTreeSet::new() };
    let Data::List(nodes) = &nodes.data else { return BTreeSet::new() };
    let of_domain = |name: &str| {
        let domain = root.get("domains").and_then(|domains| domains.get(name));
        domain.and_then(|domain| text(domain, "host")).or(text(root, "host"))
    };
    let is_elsewhere = |node: &&Item| {
        let domain = text(node, "domain").or(text(root, "domain"));
        domain.and_then(|domain| of_domain(&domain)).is_some_and(|host| host != own)
    };
    let name = |node: &Item| text(node, "name").or(text(node, "kind"));
    nodes.iter().filter(is_elsewhere).filter_map(name).collect()
}

#[derive(Clone, Copy)]
struct Filler<'a> {
    brought: &'a [Brought],
    report: &'a Report,
    /// Whether it fills values of another host: one that is missing here is then no error.
    is_elsewhere: bool,
}

impl Filler<'_> {
    fn node(&self, entries: &mut [Entry], catalogue: &[&'static Kind]) {
        let name = entries.iter().find(|entry| entry.key == "kind");
        let name = name.and_then(|entry| entry.value.text());
        // The nodes in a block are visited on their own.
        if name == Some(keys::BLOCK_KIND) {
            return;
        }
        let kind = name.and_then(|name| catalogue.iter().find(|kind| kind.name == name)).copied();
        let is_template = |key: &str| {
            kind.filter(|kind| kind.runs_in.is_flow()).is_some_and(|kind| {
                kind.parameters.iter().any(|row| row.name == key && row.ty == ParameterType::Yaml)
            })
        };
        for entry in entries {
            let is_of_node = keys::NODE.keys.iter().any(|key| key.name == entry.key);
            if !is_of_node && !is_template(&entry.key) {
                self.tree(&mut entry.value, &[]);
            }
        }
    }

    /// Fills the whole piece except the values of these keys.
    fn tree(&self, item: &mut Item, but: &[&str]) {
        match &mut item.data {
            Data::List(items) => items.iter_mut().for_each(|item| self.tree(item, but)),
            Data::Map(entries) => entries
                .iter_mut()
                .filter(|entry| !but.contains(&entry.key.as_str()))
                .for_each(|entry| self.tree(&mut entry.value, but)),
            Data::Scalar { text, .. } if text.contains("{{") => self.single(item),
            Data::Scalar { .. } => {}
        }
    }

    fn single(&self, item: &mut Item) {
        let Data::Scalar { text, plain } = &item.data else { return };
        let slots = slots(text);
        let filled = self.filled(item, text, &slots);
        self.report.took(item.span, text.clone(), filled.clone());
        let Some(filled) = filled else { return };
        // The value may be a number even if the braces are in quotes.
        let is_whole = slots.first().is_some_and(|slot| slot.range == (0..text.len()));
        let plain = !filled.is_empty() && (is_whole || *plain);
        *item = Item::new(item.span, Data::Scalar { text: filled, plain });
    }

    /// The text with its values; `None` if one is missing, which is reported.
    fn filled(&self, item: &Item, text: &str, slots: &[TextSlot]) -> Option<String> {
        let is_of_slot = |at: usize| slots.iter().any(|slot| slot.range.contains(&at));
        let mut opened = text.match_indices("{{").map(|(at, _)| at);
        if let Some(stray) = opened.find(|&at| !is_of_slot(at)) {
            let message = "no expression can stand here: the value is read once, at the start";
            self.report.error(item.span_at(stray), message, FORMS);
            return None;
        }
        let (mut filled, mut rest, mut is_whole) = (String::new(), 0, true);
        for slot in slots {
            filled += &text[rest..slot.range.start];
            rest = slot.range.end;
            match value(slot, |wanted| known(self.brought, wanted)) {
                Ok(value) => filled += &value,
                Err(_) if self.is_elsewhere => is_whole = false,
                Err(why) => {
                    let (message, help) = why.split_once("; ").unwrap_or((&why, ""));
                    self.report.error(item.span_at(slot.range.start), message, help);
                    is_whole = false;
                }
            }
        }
        filled += &text[rest..];
        is_whole.then_some(filled)
    }
}

/// The value of a slot. `known` gives the values that were read.
///
/// # Errors
/// There is no such value: what is wrong, then `; ` and what to do.
pub fn value(
    slot: &TextSlot,
    known: impl Fn(&Wanted) -> Option<Result<String, String>>,
) -> Result<String, String> {
    let found = known(&slot.wanted);
    let found = found.unwrap_or_else(|| Err(format!("{} was not read", slot.wanted)));
    match (found, &slot.default) {
        (Err(_), Some(default)) => Ok(default.clone()),
        (found, _) => found,
    }
}

fn known(brought: &[Brought], wanted: &Wanted) -> Option<Result<String, String>> {
    brought.iter().find(|one| one.wanted == *wanted).map(|one| one.value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_read_with_its_default() {
        let variable = |name: &str| Wanted::Variable(name.into());
        let file = |path: &str| Wanted::File(path.into());
        let table = [
            ("{{ env.A }}", variable("A"), None),
            ("{{env.A_1}}", variable("A_1"), None),
            ("{{ env.A or 'x y' }}", variable("A"), Some("x y")),
            ("{{ env.?A.orValue(\"x\") }}", variable("A"), Some("x")),
            ("{{ file./run/a-b.txt }}", file("/run/a-b.txt"), None),
            ("{{ file.a or '' }}", file("a"), Some("")),
            ("{{ file['a b'] }}", file("a b"), None),
        ];
        for (text, wanted, default) in table {
            let range = 1..text.len() + 1;
            let expected = TextSlot { range, wanted, default: default.map(str::to_owned) };
            assert_eq!(slot_at(&format!("-{text}-"), 1), Some(expected), "{text}");
        }
        for text in ["{{ env.A + 'x' }}", "{{ env }}", "{{ env.1 }}", "{{ env.A", "{{ file. }}", ""]
        {
            assert_eq!(slot_at(text, 0), None, "{text}");
        }
    }

    #[test]
    fn what_is_wanted_is_found_wherever_it_stands() {
        let text = "- {kind: a, b: ['x{{ env.A }}{{ env.B }}'], c: \"hmac('x', file['k'], y)\"}";
        let overrides = [("a.d".to_owned(), "'{{ file.f }} {{ env.A }}'".to_owned())];
        let names: Vec<_> = wanted_of(text, &overrides).iter().map(Wanted::to_string).collect();
        assert_eq!(names, ["env.A", "env.B", "file.k", "file.f"]);
        assert!(wanted_of("{{", &[]).is_empty());
    }
}
