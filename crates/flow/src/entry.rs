//! How a table names the kinds of flows.

use std::path::PathBuf;

use sinew_core::{Made, Parameters, Refusal};
use sinew_spec::catalogue::Kind;
use sinew_spec::plan::Node;

use crate::{FlowNode, Held, Resource, Source};

/// A row of a table of kinds whose nodes take packets.
#[derive(Clone, Copy)]
pub struct FlowEntry {
    /// What the compiler knows of the kind.
    pub kind: &'static Kind,
    /// Makes a node: reads its files, and checks what the table of parameters cannot. `sinew check`
    /// calls it too, so it must have no side effects.
    pub make: Make,
}

/// How a flow node is made, and which trait it has.
#[derive(Clone, Copy)]
pub enum Make {
    /// A node that takes packets; its kind says [`RunsIn::Flow`](sinew_spec::catalogue::RunsIn).
    /// Each worker makes one.
    Node(fn(&Parameters<'_>) -> Made<dyn FlowNode>),
    /// A node that begins flows; its kind says [`RunsIn::Flow`](sinew_spec::catalogue::RunsIn) or
    /// [`RunsIn::Test`](sinew_spec::catalogue::RunsIn).
    Source(fn(&Parameters<'_>) -> Made<dyn Source>),
    /// A node that other nodes use by its name; its kind says
    /// [`RunsIn::Flow`](sinew_spec::catalogue::RunsIn) and has no ports. It is made once for its
    /// domain.
    Resource(fn(&Parameters<'_>) -> Made<dyn Resource>),
}

impl FlowEntry {
    /// A row for this kind.
    pub const fn new(kind: &'static Kind, make: Make) -> FlowEntry {
        FlowEntry { kind, make }
    }

    /// Makes a node and drops it again, to see whether it can be made.
    ///
    /// # Errors
    /// What the kind says.
    pub fn check(&self, parameters: &Parameters<'_>) -> Result<(), Vec<Refusal>> {
        match self.make {
            Make::Node(make) => make(parameters).map(drop),
            Make::Source(make) => make(parameters).map(drop),
            Make::Resource(make) => make(parameters).map(drop),
        }
    }

    /// The files that the node is made of, as far as its kind says: an edit of one of them is an
    /// edit of the node. Empty if the node cannot be made.
    pub fn files(&self, parameters: &Parameters<'_>) -> Vec<PathBuf> {
        match self.make {
            Make::Node(make) => make(parameters).map_or(Vec::new(), |node| node.files()),
            Make::Source(make) => make(parameters).map_or(Vec::new(), |source| source.files()),
            Make::Resource(make) => make(parameters).map_or(Vec::new(), |made| made.files()),
        }
    }

    /// Tries, before its domain is started, whether the source can get what it needs to open. The
    /// returned value holds that. `None` if the node holds nothing or cannot be made.
    ///
    /// # Errors
    /// What the source says ([`Source::try_open`]).
    pub fn try_open(&self, parameters: &Parameters<'_>) -> Result<Option<Held>, Refusal> {
        let Make::Source(make) = self.make else { return Ok(None) };
        let Ok(source) = make(parameters) else { return Ok(None) };
        source.try_open().map_err(|(parameter, fault)| {
            Refusal::new(parameters.span(parameter), fault.to_string(), "")
        })
    }
}

/// The row of a node's kind.
///
/// # Panics
/// If the plan was made from another catalogue.
pub(crate) fn entry<'a>(table: &'a [FlowEntry], node: &Node) -> &'a FlowEntry {
    let row = table.iter().find(|row| row.kind.name == node.kind.name);
    row.expect("the plan is made from the same table")
}
