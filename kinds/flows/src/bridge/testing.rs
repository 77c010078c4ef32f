//! A core for tests: a node of the core that sends and receives `Word`s.

use std::path::Path;
use std::sync::Arc;

use sinew_core::catalogue::{Kind, Port, RunsIn};
use sinew_core::{Message, Refusal};
use sinew_flow::{FlowFixture, MessageInput, MessageOutput, NodeContext, Reply, Value, testing};
use sinew_spec::plan::Plan;

use crate::testing::{LIMIT, run, table};

sinew_core::message! {
    /// What the core sends and receives in tests.
    pub struct Word {
        /// Counts.
        pub sequence: u64,
        /// Numbers.
        pub speed_m_per_s: [f64; 2],
        /// What to do.
        pub what: u32,
        /// Nothing.
        pub reserved: u32,
    }
}

/// A node of the core.
static CORE: Kind = Kind::new(
    "core",
    RunsIn::Realtime,
    &[
        Port::input("hears", "A mailbox.", Word::TYPE).optional(),
        Port::output("says", "Words.", Word::TYPE).optional(),
    ],
);

/// The plan of nodes in the domains `core` and `api`, or the compiler's errors.
pub(super) fn try_plan(nodes: &str) -> Result<Arc<Plan>, String> {
    let kinds: Vec<_> = [&CORE].into_iter().chain(table().iter().map(|row| row.kind)).collect();
    let domains = "{core: {realtime: {period: 1ms}}, api: {}}";
    testing::try_plan(&format!("name: t\ndomains: {domains}\nnodes:\n{nodes}"), &kinds)
}

/// A graph with a core, and a node of the bridge that gets packets.
pub(super) struct Graph(FlowFixture);

impl Graph {
    /// A `read` with these keys, or why it cannot be made.
    pub(super) fn reads(keys: &str, from: Option<MessageInput>) -> Result<Graph, Vec<Refusal>> {
        let says = "says: [{name: node, port: from}]";
        Graph::new(says, &format!("kind: read, {keys}"), |kind, site| {
            site.inputs[kind.port_index("from").expect("a port")] = from.clone();
        })
    }

    /// A `send` with these keys, or why it cannot be made.
    pub(super) fn sends(keys: &str, to: Vec<MessageOutput>) -> Result<Graph, Vec<Refusal>> {
        let node = format!("kind: send, {keys}, ports: {{to: [{{name: core, port: hears}}]}}");
        Graph::new("", &node, |kind, site| {
            site.outputs[kind.port_index("to").expect("a port")] = to.clone();
        })
    }

    /// A `set_parameters` with these keys, or why it cannot be made.
    pub(super) fn sets(keys: &str) -> Result<Graph, Vec<Refusal>> {
        Graph::new("", &format!("kind: set_parameters, {keys}"), |_, _| {})
    }

    /// `furnish` gives the node its links.
    fn new(
        core: &str,
        node: &str,
        furnish: impl Fn(&Kind, &mut NodeContext),
    ) -> Result<Graph, Vec<Refusal>> {
        let plan = try_plan(&format!(
            "
- {{kind: core, name: core, domain: core, ports: {{{core}}}}}
- {{kind: begin, name: begin, domain: api, ports: {{out: [{{name: node, port: in}}]}}}}
- {{name: node, domain: api, {node}}}
"
        ));
        let plan = plan.unwrap_or_else(|errors| panic!("{errors}"));
        let furnish_node = |at: usize, site: &mut NodeContext| {
            if plan.nodes[at].name == "node" {
                furnish(plan.nodes[at].kind, site);
            }
        };
        FlowFixture::with_sites(&plan, &table(), Path::new("."), furnish_node).map(Graph)
    }

    /// The node's reply to a packet.
    pub(super) fn reply(&self, packet: Value) -> Reply {
        run(self.send(packet))
    }

    /// The same inside a runtime that has other work.
    pub(super) async fn send(&self, packet: Value) -> Reply {
        self.0.open("begin", 0, packet, LIMIT).await
    }
}
