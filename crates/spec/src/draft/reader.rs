//! Reads nodes and blocks, each with everything inside it.

use std::collections::HashMap;

use sinew_plan::catalogue::{Direction, Kind, RunsIn};
use sinew_plan::{Item, Span};

use super::block::{self, Block, gates};
use super::node::{Known, Node, actuators, links, may_stand, texts, values};
use crate::diagnostic::Report;
use crate::fields::{Fields, Named, list};
use crate::form;
use crate::keys::{self, NODES_MAX};
use crate::messages::Messages;
use crate::nearest::suggest;
use crate::ports;
use crate::value::scalar;

/// The surroundings of the nodes that are read.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    /// The scope of their names.
    pub(super) scope: usize,
    /// The domain of flow nodes that name none.
    pub(super) domain: Option<Named<'a>>,
}

/// Reads nodes and blocks.
pub(super) struct Reader<'a> {
    catalogue: Vec<&'static str>,
    kinds: HashMap<&'static str, Known>,
    /// Whether all kinds are known; `false` if some are missing for a reason that is reported
    /// already.
    complete: bool,
    messages: Messages<'a>,
    report: &'a Report,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) blocks: Vec<Block<'a>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        catalogue: &[&'static Kind],
        complete: bool,
        messages: Messages<'a>,
        report: &'a Report,
    ) -> Reader<'a> {
        let written = || catalogue.iter().filter(|kind| kind.runs_in != RunsIn::Hosts);
        let names = written().map(|kind| kind.name).chain([keys::BLOCK_KIND]);
        Reader {
            catalogue: names.collect(),
            kinds: written().map(|kind| (kind.name, Known::new(kind))).collect(),
            complete,
            messages,
            report,
            nodes: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Reads a list of nodes. `None` if they are too many for a graph.
    pub(super) fn all(&mut self, items: &'a [Item], site: &Site<'a>) -> Option<()> {
        let (read, all) = (self.nodes.len(), self.nodes.len() + items.len());
        if all > NODES_MAX {
            let message = format!("{all} nodes in one graph");
            let help = format!("at most {NODES_MAX}; split the graph");
            self.report.error(items[NODES_MAX - read].span, message, help);
            return None;
        }
        for item in items {
            let kind = item.get("kind").and_then(|kind| {
                let text = scalar(kind, "kind", &Report::default())?;
                Some(Named { text, span: kind.span })
            });
            match kind {
                Some(Named { text: keys::BLOCK_KIND, span }) => self.block(item, span, site)?,
                kind => self.nodes.extend(self.node(item, kind, site)),
            }
        }
        Some(())
    }

    fn node(&self, item: &'a Item, named: Option<Named<'a>>, site: &Site<'a>) -> Option<Node<'a>> {
        let report = self.report;
        let known = named.and_then(|named| self.kinds.get(named.text));
        let kind = known.map(|known| known.kind);
        let at = named.map_or(item.span, |named| named.span);
        let fields = match kind {
            Some(kind) => Fields::new(item, &keys::NODE, kind.parameters, at, report),
            None => self.of_unknown_kind(item, named),
        };
        let name = match fields.get("name") {
            Some(_) => fields.name("name"),
            None => named,
        }?;
        let values = known.map_or(Vec::new(), |known| values(known, &fields, name));
        let kind = kind.filter(|kind| may_stand(kind, name, site.scope, report));
        let kind = kind.and_then(|kind| form::of_node(kind, &values, &fields, &self.messages));
        let elsewhere = "write the link at the node that writes to it";
        let output = |port| ports::find(kind?, name.text, port, Direction::Out, elsewhere, report);
        let (links, links_complete) = links(&fields, output);
        let given = site.domain.filter(|_| kind.is_none_or(|kind| kind.runs_in.is_flow()));
        let rows = kind.map_or(&[][..], |kind| kind.parameters).iter();
        let spans = rows.clone().map(|row| fields.get(row.name).map_or(name.span, |it| it.span));
        let written = rows.clone().map(|row| report.written(fields.get(row.name)?));
        let entries = rows.map(|row| texts(row, fields.get(row.name)));
        Some(Node {
            name,
            scope: site.scope,
            kind,
            spans: spans.collect(),
            entries: entries.collect(),
            written: written.collect(),
            domain: fields.text("domain").or(given),
            is_whole: !report.lacks(item),
            values,
            actuators: kind.map_or(Vec::new(), |kind| actuators(kind, &fields, name)),
            links,
            links_complete,
            span: item.span,
        })
    }

    /// The fields of a node of unknown kind. Its other keys may be parameters of the kind that was
    /// meant, so only the kind is reported.
    fn of_unknown_kind(&self, item: &'a Item, named: Option<Named<'a>>) -> Fields<'a> {
        match named {
            // An image that could not be read may bring it.
            Some(_) if !self.complete => {}
            Some(Named { text, span }) => self.report.error_with(span, || {
                let help = suggest(text, self.catalogue.iter().copied());
                (format!("there is no kind of node '{text}'"), help)
            }),
            None => drop(Fields::of(item, &keys::NODE, self.report).name("kind")),
        }
        Fields::peek(item, &keys::NODE, self.report)
    }

    /// Reads a block, whose kind is written at `at`, and everything inside it. `None` if the graph
    /// gets too large.
    fn block(&mut self, item: &'a Item, at: Span, site: &Site<'a>) -> Option<()> {
        let report = self.report;
        let fields = Fields::new(item, &keys::BLOCK, &[], at, report);
        let unnamed = Named { text: keys::BLOCK_KIND, span: at };
        let name = fields.get("name").and_then(|_| fields.name("name")).unwrap_or(unnamed);
        let domain = fields.text("domain").or(site.domain);
        let (inputs, inputs_complete) = gates("inputs", &fields);
        let (outputs, outputs_complete) = gates("outputs", &fields);
        let find = |port| block::output(&outputs, name.text, port, report);
        let (links, links_complete) = links(&fields, find);
        let complete = inputs_complete && outputs_complete && links_complete;
        let (scope, span) = (site.scope, item.span);
        self.blocks.push(Block { name, scope, inputs, outputs, links, complete, span });
        let inside = Site { scope: self.blocks.len(), domain };
        let Some(nodes) = fields.get("nodes") else { return Some(()) };
        if nodes.is_empty_list() {
            let message = format!("block '{}' has no nodes", name.text);
            report.error(nodes.span, message, "add '- kind: ...' to it");
        }
        self.all(list(nodes, "nodes", report), &inside)
    }
}
