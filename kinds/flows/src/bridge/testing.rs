//! A core for tests: a node of the core that says and hears words, and both ends of its links.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sinew_core::catalogue::{Direction, Kind, Port, RunsIn};
use sinew_core::transport::{Receiver, Sender, Shape, row};
use sinew_core::{Message, Refusal};
use sinew_flow::{Fixture, MessageInput, MessageOutput, Reply, Site, Value};
use sinew_spec::plan::{Delivery, Machine, Plan, Sync, Transport, Wait};
use sinew_spec::{Source, compile, render};

use crate::testing::{run, table};

/// Longest that a flow in a test may take.
const LIMIT: Duration = Duration::from_secs(20);

sinew_core::message! {
    /// What the core says and hears in tests.
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

static CORE: Kind = Kind {
    name: "core",
    runs_in: RunsIn::Realtime,
    doc: "A node of the core.",
    ports: &[
        Port {
            name: "hears",
            doc: "A mailbox.",
            direction: Direction::In,
            message: Word::TYPE,
            optional: true,
            safe: &[],
        },
        Port {
            name: "says",
            doc: "Words.",
            direction: Direction::Out,
            message: Word::TYPE,
            optional: true,
            safe: &[],
        },
    ],
    parameters: &[],
    signals: &[],
};

/// The kinds of the tests, and this one.
fn kinds() -> Vec<&'static Kind> {
    [&CORE].into_iter().chain(table().iter().map(|row| row.kind)).collect()
}

/// The plan of nodes that stand in the domains `core` and `api`, or what the compiler says.
pub(super) fn try_plan(nodes: &str) -> Result<Plan, String> {
    let domains = "{core: {realtime: {period: 1ms}}, api: {}}";
    let text = format!("name: t\ndomains: {domains}\nnodes:\n{nodes}");
    let source = Source { file: "test.yaml", text: &text, overrides: &[] };
    let plan = compile(&source, &kinds(), &Machine { cpus: vec![0, 1] });
    plan.map_err(|errors| render(&errors, &text, false))
}

/// Says where a port of a node is.
type Ports<'a> = &'a dyn Fn(&str) -> usize;

/// The link from the core to a `read`.
const SAYS: &str = "says: [{name: node, port: from}]";

/// A `read` with these keys, in a spec.
fn read(keys: &str) -> String {
    format!("kind: read, {keys}")
}

/// A `send` with these keys, in a spec.
fn send(keys: &str) -> String {
    format!("kind: send, {keys}, ports: {{to: [{{name: core, port: hears}}]}}")
}

/// A graph with a core, and a node of the bridge that gets packets.
pub(super) struct Graph(Fixture);

impl Graph {
    /// A `read` with these keys.
    pub(super) fn reads(keys: &str, from: Option<MessageInput>) -> Graph {
        Graph::new(SAYS, &read(keys), |ports, site| {
            site.inputs[ports("from")] = from.clone();
        })
    }

    /// A `send` with these keys.
    pub(super) fn sends(keys: &str, to: Vec<MessageOutput>) -> Graph {
        Graph::new("", &send(keys), |ports, site| site.outputs[ports("to")] = to.clone())
    }

    /// Why there is no `read` with these keys.
    pub(super) fn refuses_read(keys: &str) -> Vec<Refusal> {
        let made = Graph::try_new(SAYS, &read(keys), |_, _| {});
        made.err().expect("a refusal")
    }

    /// Why there is no `send` with these keys.
    pub(super) fn refusals(keys: &str) -> Vec<Refusal> {
        Graph::try_new("", &send(keys), |_, _| {}).err().expect("a refusal")
    }

    fn new(core: &str, node: &str, furnish: impl Fn(Ports<'_>, &mut Site)) -> Graph {
        let made = Graph::try_new(core, node, furnish);
        made.unwrap_or_else(|refusals| panic!("{refusals:?}"))
    }

    /// `furnish` gives the node its links, by the places of its ports.
    fn try_new(
        core: &str,
        node: &str,
        furnish: impl Fn(Ports<'_>, &mut Site),
    ) -> Result<Graph, Vec<Refusal>> {
        let plan = try_plan(&format!(
            "
- {{kind: core, name: core, domain: core, ports: {{{core}}}}}
- {{kind: begin, name: begin, domain: api, ports: {{out: [{{name: node, port: in}}]}}}}
- {{name: node, domain: api, {node}}}
"
        ));
        let plan = Arc::new(plan.unwrap_or_else(|errors| panic!("{errors}")));
        let furnish_node = |at: usize, site: &mut Site| {
            let node = &plan.nodes[at];
            if node.name == "node" {
                furnish(&|port| node.kind.port_index(port).expect("a port"), site);
            }
        };
        Fixture::with_sites(&plan, &table(), Path::new("."), furnish_node).map(Graph)
    }

    /// The node's reply to a packet.
    pub(super) fn reply(&self, packet: Value) -> Reply {
        run(self.send(packet))
    }

    /// The same, among other work.
    pub(super) async fn send(&self, packet: Value) -> Reply {
        self.0.open("begin", 0, packet, LIMIT).await
    }
}

/// Both ends of a link within this process.
pub(super) fn link(delivery: Delivery) -> (Box<dyn Sender>, Box<dyn Receiver>) {
    let shape = Shape {
        message_size: Word::TYPE.size,
        type_hash: Word::TYPE.hash,
        capacity: 2,
        sync: Sync::LockFree,
        delivery,
        wait: Wait::Yield,
    };
    let row = row(Transport::InProcess);
    let (writer, reader) = (row.open)(&shape).expect("memory");
    let receiver = (row.receiver)(reader, &shape).expect("the same shape");
    ((row.sender)(writer, &shape).expect("the same shape"), receiver)
}
