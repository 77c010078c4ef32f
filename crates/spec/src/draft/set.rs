//! `--set node.key=value`: values of the command line take their places in the tree.

use sinew_plan::{Data, Entry, Item, Span};

use crate::diagnostic::Report;
use crate::keys::{self, NAME_LEN_MAX};
use crate::nearest::suggest;
use crate::yaml::parse;

/// Puts the values into the tree.
pub(crate) fn set(root: &mut Item, overrides: &[(String, String)], report: &Report) {
    for (at, (path, text)) in overrides.iter().enumerate() {
        let source = at as u32 + 1;
        let span = Span { source, start: 0, len: 1 };
        if text.trim().is_empty() {
            report.error(span, format!("'{path}' gets no value"), "write it after the '='");
            continue;
        }
        let Some(value) = parse(text, source, report) else { continue };
        let Some((node, key)) = path.split_once('.') else {
            let help = "write node.parameter=value";
            report.error(span, format!("'{path}' names no parameter"), help);
            continue;
        };
        let (mut names, mut value) = (Vec::new(), Some(value));
        visit_nodes(root, &mut |name, entries| {
            names.push(name.to_owned());
            let Some(value) = value.take_if(|_| name == node) else { return };
            match entries.iter_mut().find(|entry| entry.key == key) {
                Some(entry) => entry.value = value,
                None => entries.push(Entry { key: key.to_owned(), span, value }),
            }
        });
        if value.is_some() {
            let help = suggest(node, names.iter().map(String::as_str));
            report.error(span, format!("there is no node '{node}'"), help);
        }
    }
}

/// Visits all nodes by their names, each behind those of its blocks: `auth/check`.
pub(crate) fn visit_nodes(root: &mut Item, visit: &mut impl FnMut(&str, &mut Vec<Entry>)) {
    walk(root, "", visit);
}

fn walk(holder: &mut Item, prefix: &str, visit: &mut impl FnMut(&str, &mut Vec<Entry>)) {
    for node in nodes_mut(holder) {
        let Some(name) = ["name", "kind"].into_iter().find_map(|key| node.get(key)?.text()) else {
            continue;
        };
        // A longer one is no name, and could be put before very many.
        if name.len() > NAME_LEN_MAX {
            continue;
        }
        let name = format!("{prefix}{name}");
        let is_block = node.get("kind").and_then(Item::text) == Some(keys::BLOCK_KIND);
        if let Data::Map(entries) = &mut node.data {
            visit(&name, entries);
        }
        if is_block {
            walk(node, &format!("{name}/"), visit);
        }
    }
}

/// The nodes of a graph, or of a block.
fn nodes_mut(holder: &mut Item) -> &mut [Item] {
    match &mut holder.data {
        Data::List(items) => items,
        Data::Map(entries) => {
            let nodes = entries.iter_mut().find(|entry| entry.key == "nodes");
            match nodes.map(|entry| &mut entry.value.data) {
                Some(Data::List(items)) => items,
                _ => &mut [],
            }
        }
        Data::Scalar { .. } => &mut [],
    }
}
