//! The spec as the user wrote it, read by the tables of keys and the kinds of its nodes. Other
//! nodes and domains are still referred to by name here.

mod block;
mod domain;
mod host;
mod names;
mod node;
mod reader;
mod requires;
mod service;
mod set;

use std::borrow::Cow;
use std::collections::HashMap;
use std::iter;

pub(crate) use block::{Block, Gates, Inner};
pub(crate) use domain::{Domain, Realtime, Role, late};
pub(crate) use host::{Host, place as place_of_hosts, unknown as unknown_host};
pub(crate) use names::{Member, of_file};
pub(crate) use node::{Link, Node, read_default};
pub(crate) use requires::Required;
pub(crate) use service::{Service, default_service};
pub(crate) use set::{set, visit_nodes};
use sinew_plan::catalogue::Kind;
use sinew_plan::{Data, GuestImage, Item, LineStarts};

use self::reader::{Reader, Site};
use crate::SpecSource;
use crate::diagnostic::Report;
use crate::fields::{Fields, Named, list};
use crate::images;
use crate::keys;
use crate::messages::Messages;
use crate::nearest::suggest;

/// The whole spec.
pub(crate) struct Draft<'a> {
    pub(crate) name: &'a str,
    /// Whether the services outlive the core.
    pub(crate) hold: bool,
    /// The requirements of the graph as a whole.
    pub(crate) requires: Vec<Required>,
    pub(crate) domains: Vec<Domain<'a>>,
    pub(crate) hosts: Vec<Host<'a>>,
    /// The host of domains that name none.
    pub(crate) host: Option<Named<'a>>,
    /// Names of invalid domains, which are reported already.
    pub(crate) refused: Vec<&'a str>,
    /// All nodes, in the order of the text.
    pub(crate) nodes: Vec<Node<'a>>,
    /// All blocks; a block inside another one comes after it.
    pub(crate) blocks: Vec<Block<'a>>,
    /// Whether the spec is only a list of nodes.
    pub(crate) is_bare_list: bool,
    /// All nodes and blocks by scope and name.
    members: HashMap<(usize, &'a str), Member>,
    /// The images of guests that were read.
    pub(crate) images: &'a [GuestImage],
    /// The file, as the user named it.
    pub(crate) file: &'a str,
    pub(crate) lines: &'a LineStarts,
    /// Collects all errors.
    pub(crate) report: &'a Report,
}

/// Reads the tree. `None` if it is too large to be a graph. A bare list of nodes is one service
/// domain. `name` is used for a graph that does not name itself.
pub(crate) fn read<'a>(
    root: &'a Item,
    source: &SpecSource<'a>,
    mut name: &'a str,
    catalogue: &[&'static Kind],
    lines: &'a LineStarts,
    report: &'a Report,
) -> Option<Draft<'a>> {
    let given = source.images;
    let (mut domains, mut refused) = (Vec::new(), Vec::new());
    let (mut hold, mut required) = (false, Vec::new());
    let (mut domain, mut host, mut hosts) = (None, None, Vec::new());
    let mut messages = Messages::default();
    let is_bare_list = matches!(root.data, Data::List(_));
    let nodes = if is_bare_list {
        domains.push(Domain::of_a_bare_list(root.span, report));
        Some(root)
    } else {
        let fields = Fields::of(root, &keys::GRAPH, report);
        messages = Messages::read(&fields, catalogue);
        name = fields.name("name").map_or(name, |named| named.text);
        for entry in fields.map("domains") {
            match domain::read(entry, report) {
                Some(domain) => domains.push(domain),
                None => refused.push(entry.key.as_str()),
            }
        }
        hosts.extend(fields.map("hosts").iter().map(|entry| host::read(entry, report)));
        host = fields.text("host");
        domain = fields.text("domain");
        refused.extend(domain.and_then(|named| unknown(named, &domains, &refused, report)));
        hold = fields.number("hold") == Some(1);
        required = requires::read(&fields, true);
        if hold && refused.is_empty() && domains.iter().all(Domain::is_service) {
            let help = "leave it out, or give a domain 'realtime: {period: 1ms}'";
            report.error(fields.at("hold"), "there is no core that could be held", help);
        }
        fields.get("nodes")
    };
    if let Some(item) = nodes.filter(|item| item.is_empty_list()) {
        report.error(item.span, "the graph has no nodes", "add '- kind: ...' to it");
    }
    let guests = domains.iter().filter_map(Domain::guest);
    let (catalogue, complete) = images::catalogue(catalogue, guests, given, report);
    let mut reader = Reader::new(&catalogue, complete, messages, report);
    reader
        .all(nodes.map_or(&[], |item| list(item, "nodes", report)), &Site { scope: 0, domain })?;
    let (nodes, blocks) = (reader.nodes, reader.blocks);
    let members = HashMap::with_capacity(nodes.len() + blocks.len());
    let mut draft = Draft {
        name,
        hold,
        requires: required,
        domains,
        hosts,
        host,
        refused,
        nodes,
        blocks,
        is_bare_list,
        members,
        images: given,
        file: source.file,
        lines,
        report,
    };
    draft.name_members();
    Some(draft)
}

/// A name that no domain has; it is reported.
fn unknown<'a>(
    named: Named<'a>,
    domains: &[Domain<'_>],
    refused: &[&str],
    report: &Report,
) -> Option<&'a str> {
    let names = domains.iter().map(|domain| domain.name.text);
    if names.clone().any(|name| name == named.text) || refused.contains(&named.text) {
        return None;
    }
    let message = format!("there is no domain '{}'", named.text);
    report.error(named.span, message, suggest(named.text, names));
    Some(named.text)
}

impl<'a> Draft<'a> {
    /// The name of a node after the names of the blocks that contain it: `auth/check`.
    pub(crate) fn name(&self, node: usize) -> Cow<'a, str> {
        let node = &self.nodes[node];
        self.full_name(node.scope, node.name.text)
    }

    /// The name of something in a scope, after the names of the blocks around it.
    pub(crate) fn full_name<'n>(&self, scope: usize, name: &'n str) -> Cow<'n, str> {
        let inside = |full: Cow<'n, str>, block: &Block<'_>| {
            Cow::Owned(format!("{}/{full}", block.name.text))
        };
        self.around(scope).fold(Cow::Borrowed(name), inside)
    }

    /// The blocks around a scope, from the inside out.
    fn around(&self, scope: usize) -> impl Iterator<Item = &Block<'a>> + Clone {
        let block = |scope: usize| Some(&self.blocks[scope.checked_sub(1)?]);
        iter::successors(block(scope), move |inner| block(inner.scope))
    }
}
