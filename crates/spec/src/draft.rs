//! The spec as the user wrote it, read by the tables of keys and by the kinds of its nodes. Names
//! of other nodes and domains are still only names here.

mod block;
mod domain;
mod node;
mod reader;
mod service;
mod set;

use std::borrow::Cow;

pub(crate) use block::{Block, Gate, Inner};
pub(crate) use domain::{Domain, Realtime, Role, late};
pub(crate) use node::{Link, Node, read_default};
pub(crate) use set::set;
use sinew_plan::catalogue::Kind;
use sinew_plan::{Data, Item};

use self::reader::{Reader, Site};
use crate::diagnostic::Report;
use crate::fields::{Fields, list};
use crate::keys;

/// The whole spec.
pub(crate) struct Draft<'a> {
    pub(crate) name: &'a str,
    /// Whether the services outlive the core.
    pub(crate) hold: bool,
    pub(crate) domains: Vec<Domain<'a>>,
    /// Names of domains that are reported already and stand for nothing.
    pub(crate) refused: Vec<&'a str>,
    /// All nodes, in the order of the text.
    pub(crate) nodes: Vec<Node<'a>>,
    /// All blocks; who stands inside another one comes after it.
    pub(crate) blocks: Vec<Block<'a>>,
    /// Whether it is only a list of nodes.
    pub(crate) is_bare_list: bool,
}

/// Reads the tree. `None` if it is too large to be a graph. A bare list of nodes is one service
/// domain. `name` is that of a graph that does not say its own.
pub(crate) fn read<'a>(
    root: &'a Item,
    mut name: &'a str,
    catalogue: &[&'static Kind],
    report: &mut Report,
) -> Option<Draft<'a>> {
    let (mut domains, mut refused) = (Vec::new(), Vec::new());
    let mut hold = false;
    let is_bare_list = matches!(root.data, Data::List(_));
    let nodes = if is_bare_list {
        domains.push(Domain::of_a_bare_list(root.span));
        Some(root)
    } else {
        let fields = Fields::new(root, &keys::GRAPH, &[], root.span, report);
        name = fields.name("name", report).map_or(name, |named| named.text);
        for entry in fields.map("domains", report) {
            match domain::read(entry, report) {
                Some(domain) => domains.push(domain),
                None => refused.push(entry.key.as_str()),
            }
        }
        hold = fields.truth("hold", report).unwrap_or(false);
        if hold && refused.is_empty() && domains.iter().all(Domain::is_service) {
            let help = "leave it out, or give a domain 'realtime: {period: 1ms}'";
            report.error(fields.at("hold"), "there is no core that could be held", help);
        }
        fields.get("nodes")
    };
    let items = nodes.map_or(&[][..], |item| list(item, "nodes", report));
    if let Some(item) = nodes.filter(|item| matches!(&item.data, Data::List(all) if all.is_empty()))
    {
        report.error(item.span, "the graph has no nodes", "add '- kind: ...' to it");
    }
    let mut reader = Reader::new(catalogue);
    reader.all(items, &Site::OUTSIDE, report)?;
    let (nodes, blocks) = (reader.nodes, reader.blocks);
    Some(Draft { name, hold, domains, refused, nodes, blocks, is_bare_list })
}

impl<'a> Draft<'a> {
    /// The name of a node, with those of the blocks it stands in: `auth/check`.
    pub(crate) fn name(&self, node: usize) -> Cow<'a, str> {
        let node = &self.nodes[node];
        self.full_name(node.scope, node.name.text)
    }

    /// The name of something in a scope, with those of the blocks around it.
    pub(crate) fn full_name(&self, mut scope: usize, name: &'a str) -> Cow<'a, str> {
        let mut full = Cow::Borrowed(name);
        while let Some(block) = scope.checked_sub(1).map(|block| &self.blocks[block]) {
            full = Cow::Owned(format!("{}/{full}", block.name.text));
            scope = block.scope;
        }
        full
    }
}
