//! `--set node.key=value` and `--set hosts.name.key=value`: puts values of the command line into
//! the tree.

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
        let of_host = key.split_once('.').filter(|_| node == "hosts");
        let (name, key) = of_host.unwrap_or((node, key));
        let (mut names, mut value) = (Vec::new(), Some(value));
        let mut put = |found: &str, entries: &mut Vec<Entry>| {
            names.push(found.to_owned());
            let Some(value) = value.take_if(|_| found == name) else { return };
            match entries.iter_mut().find(|entry| entry.key == key) {
                Some(entry) => entry.value = value,
                None => entries.push(Entry { key: key.to_owned(), span, value }),
            }
        };
        let what = match of_host {
            Some(_) => {
                visit_hosts(root, &mut put);
                "host"
            }
            None => {
                visit_nodes(root, &mut put);
                "node"
            }
        };
        if value.is_some() {
            let help = suggest(name, names.iter().map(String::as_str));
            report.error(span, format!("there is no {what} '{name}'"), help);
        }
    }
}

/// Visits all hosts of a graph by their names.
fn visit_hosts(root: &mut Item, visit: &mut impl FnMut(&str, &mut Vec<Entry>)) {
    let Data::Map(entries) = &mut root.data else { return };
    let hosts = entries.iter_mut().find(|entry| entry.key == "hosts");
    let Some(Data::Map(hosts)) = hosts.map(|entry| &mut entry.value.data) else { return };
    for host in hosts {
        if let Data::Map(entries) = &mut host.value.data {
            visit(&host.key, entries);
        }
    }
}

/// Visits all nodes by their names, each after the names of its blocks: `auth/check`.
pub(crate) fn visit_nodes(root: &mut Item, visit: &mut impl FnMut(&str, &mut Vec<Entry>)) {
    walk(root, "", visit);
}

fn walk(holder: &mut Item, prefix: &str, visit: &mut impl FnMut(&str, &mut Vec<Entry>)) {
    for node in nodes_mut(holder) {
        let Some(name) = ["name", "kind"].into_iter().find_map(|key| node.get(key)?.text()) else {
            continue;
        };
        // A longer text is not a name, and would be repeated in front of very many nodes.
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
