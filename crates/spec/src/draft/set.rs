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
        match find(root, node) {
            Some(entries) => match entries.iter_mut().find(|entry| entry.key == key) {
                Some(entry) => entry.value = value,
                None => entries.push(Entry { key: key.to_owned(), span, value }),
            },
            None => {
                let names = names(root, "");
                let help = suggest(node, names.iter().map(String::as_str));
                report.error(span, format!("there is no node '{node}'"), help);
            }
        }
    }
}

/// The keys of a node by its name, which for one in a block begins with the block's: `auth/check`.
fn find<'i>(holder: &'i mut Item, path: &str) -> Option<&'i mut Vec<Entry>> {
    let inside = |node: &Item| {
        let rest = path.strip_prefix(name(node)?)?;
        let inner = rest.strip_prefix('/').filter(|_| is_block(node));
        inner.map(Some).or(rest.is_empty().then_some(None))
    };
    let node = nodes_mut(holder).iter_mut().find(|node| inside(node).is_some())?;
    match inside(node)? {
        Some(inner) => find(node, inner),
        None => match &mut node.data {
            Data::Map(entries) => Some(entries),
            _ => None,
        },
    }
}

/// The names of all nodes, each behind those of its blocks.
fn names(holder: &Item, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for node in nodes(holder) {
        let Some(name) = name(node) else { continue };
        // A longer one is no name, and could be put before very many.
        if name.len() <= NAME_LEN_MAX {
            let name = format!("{prefix}{name}");
            let inner =
                if is_block(node) { self::names(node, &format!("{name}/")) } else { vec![] };
            names.push(name);
            names.extend(inner);
        }
    }
    names
}

/// The nodes of a graph, or of a block.
fn nodes(holder: &Item) -> &[Item] {
    let nodes = holder.get("nodes").unwrap_or(holder);
    if let Data::List(items) = &nodes.data { items } else { &[] }
}

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

fn is_block(node: &Item) -> bool {
    node.get("kind").and_then(Item::text) == Some(keys::BLOCK_KIND)
}

/// What a node is called: by its name, or by its kind.
fn name(node: &Item) -> Option<&str> {
    ["name", "kind"].into_iter().find_map(|key| node.get(key)?.text())
}
