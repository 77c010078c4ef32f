//! Values: a node of uniflow takes a value from its `env`, as `{{ .NAME }}`. A graph takes it from
//! the environment, as `{{ env.NAME }}`.

use std::collections::BTreeMap;

use sinew_spec::{Data, Entry, Item, Span};

use super::sheet::{NewValue, Sheet, quoted};

/// Keys of a node whose texts are not templates.
const PLAIN: [&str; 9] =
    ["id", "kind", "namespace", "name", "annotations", "env", "ports", "links", "specs"];

/// The path in `{{ . }}`, which means the whole value.
const ALL: &str = ".";

/// A value that a node names.
struct Given<'t> {
    /// The value's content. `None` if it is not a single value.
    data: Option<&'t Item>,
    /// The values of uniflow from which this one is taken. `None` means the environment.
    named: Option<&'t str>,
}

/// Rewrites all templates of a node. `holders` are the node and the blocks that hold it.
pub(super) fn rewrite<'t>(holders: impl Iterator<Item = &'t Item>, sheet: &mut Sheet<'t>) {
    let mut holders = holders.peekable();
    let Some(&node) = holders.peek() else { return };
    let Data::Map(entries) = &node.data else { return };
    let mut given = BTreeMap::new();
    for holder in holders {
        let Some(Data::Map(env)) = holder.get("env").map(|env| &env.data) else { continue };
        for (name, value) in env.iter().map(one) {
            given.entry(name).or_insert(value);
        }
    }
    let is_template = |entry: &&Entry| !PLAIN.contains(&entry.key.as_str());
    for entry in entries.iter().filter(is_template) {
        // Texts in these languages are templates here, and so are all other keys except scripts.
        let is_script = entry.key == "code"
            && !matches!(node.get("language").and_then(Item::text), Some("text" | "json" | "yaml"));
        fill(&entry.value, &given, is_script, sheet);
    }
}

/// An entry of `env`.
fn one(entry: &Entry) -> (&str, Given<'_>) {
    // In earlier versions this was a list.
    let value = match &entry.value.data {
        Data::List(items) if !items.is_empty() => &items[0],
        _ => &entry.value,
    };
    let named = value.get("name").or(value.get("id")).and_then(Item::text);
    let data = match value.data {
        Data::Map(_) => value.get("data").or(value.get("value")),
        _ => Some(value),
    };
    (entry.key.as_str(), Given { data: data.filter(|data| data.text().is_some()), named })
}

fn fill<'t>(
    item: &'t Item,
    given: &BTreeMap<&str, Given<'_>>,
    is_script: bool,
    sheet: &mut Sheet<'t>,
) {
    match &item.data {
        Data::List(items) => items.iter().for_each(|item| fill(item, given, is_script, sheet)),
        Data::Map(entries) => {
            entries.iter().for_each(|entry| fill(&entry.value, given, is_script, sheet))
        }
        Data::Scalar { text, .. } => {
            if let Some(new) = filled(item, text, given, is_script, sheet) {
                sheet.put(item, new);
            }
        }
    }
}

/// The replacement of a text with templates. `None` if it has none.
fn filled(
    item: &Item,
    text: &str,
    given: &BTreeMap<&str, Given<'_>>,
    is_script: bool,
    sheet: &mut Sheet<'_>,
) -> Option<NewValue> {
    let (mut new, mut end) = (String::new(), 0);
    while let Some(open) = text[end..].find("{{").map(|at| at + end) {
        let Some(len) = text[open..].find("}}") else { break };
        let close = open + len + 2;
        let inner = text[open + 2..close - 2].trim_matches('-').trim();
        let span = item.span_at(open);
        new += &text[end..open];
        end = close;
        let Some(path) = inner.strip_prefix('.').filter(|path| is_path(path)) else {
            if !is_script {
                let message = format!("the template '{}' is more than a name", &text[open..close]);
                let help = "write {{ env.NAME }}, or an expression such as {{ packet.name }}";
                sheet.left(span, message, help);
            }
            new += &text[open..close];
            continue;
        };
        let (name, rest) =
            path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        match value(name, rest, given.get(name), span, sheet) {
            // The template is the whole text, so the value keeps its type, such as a number.
            (Some(data), None) if text.len() == close - open && is_constant(data) => {
                let written = data.text().unwrap_or_default();
                let is_plain = matches!(data.data, Data::Scalar { plain: true, .. });
                let yaml = if is_plain { written.to_owned() } else { quoted(written) };
                return Some(NewValue::Yaml(yaml));
            }
            (Some(data), _) => new += &outside(data.text().unwrap_or_default(), span, sheet),
            (None, Some(name)) => new += &format!("{{{{ env.{name} }}}}"),
            (None, None) => new += &text[open..close],
        }
    }
    new += &text[end..];
    (new != text).then_some(NewValue::Text(new))
}

/// The value of a name: from the node's `env`, or else the name of an environment variable.
fn value<'g>(
    name: &str,
    rest: Option<&str>,
    given: Option<&Given<'g>>,
    span: Span,
    sheet: &mut Sheet<'_>,
) -> (Option<&'g Item>, Option<String>) {
    match (given, rest) {
        (None, None) => (None, Some(name.to_owned())),
        (Some(Given { data: Some(data), named }), None) if data.text() != Some("{{ . }}") => {
            if let Some(named) = named {
                let message = format!("'{name}' is of the values '{named}' of uniflow");
                let help = "give it in the environment, or write {{ file.PATH }} in its place";
                sheet.note(span, message, help);
            }
            (Some(*data), None)
        }
        (_, Some(rest)) => {
            let variable = format!("{name}_{}", rest.replace('.', "_")).to_uppercase();
            let message = format!("'.{name}.{rest}' is a part of a value");
            let help = format!("give that part in the environment as {variable}");
            sheet.left(span, message, help);
            (None, Some(variable))
        }
        _ => {
            let help = "name each value by itself, such as data: '{{ .PASSWORD }}'";
            sheet.left(span, format!("'{name}' is more than a single value"), help);
            (None, None)
        }
    }
}

fn is_constant(data: &Item) -> bool {
    data.text().is_some_and(|text| !text.contains("{{"))
}

/// A value from `env`, with the templates in it rewritten.
fn outside(data: &str, span: Span, sheet: &mut Sheet<'_>) -> String {
    let (mut new, mut end) = (String::new(), 0);
    while let Some(open) = data[end..].find("{{").map(|at| at + end) {
        let Some(len) = data[open..].find("}}") else { break };
        let close = open + len + 2;
        let inner = data[open + 2..close - 2].trim_matches('-').trim();
        new += &data[end..open];
        end = close;
        match inner.strip_prefix('.').filter(|path| is_path(path) && inner != ALL) {
            Some(path) => new += &format!("{{{{ env.{} }}}}", path.replace('.', "_")),
            None => {
                let message = format!("the template '{}' is more than a name", &data[open..close]);
                sheet.left(span, message, "write {{ env.NAME }} there");
                new += &data[open..close];
            }
        }
    }
    new + &data[end..]
}

/// Whether the text is names with dots between them.
fn is_path(path: &str) -> bool {
    let is_in = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let is_name = |name: &str| {
        name.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_')
            && name.chars().all(is_in)
    };
    !path.is_empty() && path.split('.').all(is_name)
}
