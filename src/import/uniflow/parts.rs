//! What the rewriting of all kinds needs: renaming keys, times, expressions.

use sinew_spec::{Item, duration_text};

use super::cel::{self, About, Rewritten};
use super::sheet::{NewValue, Sheet};
use super::workflow::WorkflowNode;

/// Gives a node another kind.
pub(super) fn set_kind<'t>(node: &WorkflowNode<'t>, kind: &str, sheet: &mut Sheet<'t>) {
    if let Some(entry) = node.entry("kind").filter(|entry| entry.value.text() != Some(kind)) {
        sheet.set(&entry.value, kind);
    }
}

/// Gives a key of a node another name.
pub(super) fn rename<'t>(node: &WorkflowNode<'t>, key: &str, new: &str, sheet: &mut Sheet<'t>) {
    if let Some(entry) = node.entry(key) {
        sheet.rename(entry, new);
    }
}

/// Removes a key that a graph does not have. Adds a note unless `why` is empty.
pub(super) fn remove<'t>(node: &WorkflowNode<'t>, key: &str, why: &str, sheet: &mut Sheet<'t>) {
    let Some(entry) = node.entry(key) else { return };
    sheet.change(&node.at, key, None);
    if !why.is_empty() {
        sheet.note(entry.span, format!("'{key}' is dropped"), why);
    }
}

/// Turns a key's value into a time, under another name.
pub(super) fn duration<'t>(node: &WorkflowNode<'t>, key: &str, new: &str, sheet: &mut Sheet<'t>) {
    let Some(entry) = node.entry(key) else { return };
    sheet.rename(entry, new);
    let text = sheet.value(&entry.value).unwrap_or_default();
    if text.contains("{{") {
        return;
    }
    match go_duration_ns(&text) {
        Some(ns) => sheet.put(&entry.value, NewValue::Yaml(duration_text(ns))),
        None => {
            let help = format!("write '{new}: 500ms', or another time");
            sheet.left(entry.value.span, format!("'{text}' is not a time"), help);
        }
    }
}

/// A duration as Go writes it, such as `1h30m`. A bare number is milliseconds.
fn go_duration_ns(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse::<u64>() {
        return number.checked_mul(1_000_000);
    }
    let (mut rest, mut all) = (text, 0u64);
    while !rest.is_empty() {
        let unit = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
        let is_in = |sign: char| sign.is_ascii_digit();
        let end = rest[unit..].find(is_in).map_or(rest.len(), |len| unit + len);
        all = all.checked_add(sinew_spec::duration_ns(&rest[..end]).ok()?)?;
        rest = &rest[end..];
    }
    (!text.is_empty()).then_some(all)
}

/// Rewrites a single value that is an expression.
pub(super) fn expression<'t>(item: &'t Item, about: About, sheet: &mut Sheet<'t>) {
    let Some(code) = sheet.value(item) else { return };
    let made = cel::rewrite(&code, about);
    tell(item, &made, sheet);
    if made.code != code {
        sheet.set(item, made.code);
    }
}

/// Reports what is left to do in a script or an expression.
pub(super) fn tell<'t>(item: &'t Item, made: &Rewritten, sheet: &mut Sheet<'t>) {
    for (at, message, help) in &made.left {
        sheet.left(item.span_at(*at), message.as_str(), *help);
    }
    for (at, message, help) in &made.notes {
        sheet.note(item.span_at(*at), message.as_str(), help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_go_are_read() {
        for (text, ns) in [
            ("2000", Some(2_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5s", Some(1_500_000_000)),
            ("300ms", Some(300_000_000)),
            ("soon", None),
            ("", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(go_duration_ns(text), ns, "{text}");
        }
    }
}
