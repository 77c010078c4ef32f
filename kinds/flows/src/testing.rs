//! Graphs of flow nodes in tests: text in, reply out.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sinew_core::catalogue::{Kind, RunsIn};
use sinew_core::{Fault, Made, Parameters, Refusal};
use sinew_flow::FlowEntry;
use sinew_flow::Make;
use sinew_flow::{Fixture, Opened, Reply, Source as FlowSource, Value, output};
use sinew_spec::plan::{Machine, Plan};
use sinew_spec::{Source, compile, render};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::FLOWS;

/// Longest that a flow in a test may take.
const LIMIT: Duration = Duration::from_secs(20);

static BEGIN: Kind = Kind {
    name: "begin",
    runs_in: RunsIn::Flow,
    doc: "Begins flows by the hand of a test.",
    ports: &[output("out", "The packet.")],
    parameters: &[],
    signals: &[],
};

struct Begin;

fn make(_parameters: &Parameters<'_>) -> Made<dyn FlowSource> {
    Ok(Box::new(Begin))
}

impl FlowSource for Begin {
    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        Ok(Vec::new())
    }
}

/// All kinds, and `begin`.
pub(crate) fn table() -> Vec<FlowEntry> {
    let begin = FlowEntry { kind: &BEGIN, make: Make::Source(make) };
    [&[begin], FLOWS].concat()
}

/// The plan of a graph.
///
/// # Panics
/// If it does not compile.
pub(crate) fn plan(text: &str) -> Arc<Plan> {
    try_plan(text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The plan of a graph, or what the compiler says.
pub(crate) fn try_plan(text: &str) -> Result<Arc<Plan>, String> {
    let kinds: Vec<_> = table().iter().map(|row| row.kind).collect();
    let source = Source { file: "test.yaml", text, overrides: &[] };
    let plan = compile(&source, &kinds, &Machine { cpus: vec![0, 1] });
    plan.map(Arc::new).map_err(|errors| render(&errors, text, false))
}

/// The nodes of a graph, made.
///
/// # Panics
/// If they cannot be.
pub(crate) fn fixture(text: &str) -> Fixture {
    let made = Fixture::new(&plan(text), &table(), Path::new("."));
    made.unwrap_or_else(|refusals| panic!("{refusals:?}"))
}

/// Why the nodes of a graph cannot be made.
///
/// # Panics
/// If they can.
pub(crate) fn refusals(text: &str) -> Vec<Refusal> {
    Fixture::new(&plan(text), &table(), Path::new(".")).err().expect("a refusal")
}

/// Runs a future as a worker would.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, future)
}

/// The reply to a packet that the node `begin` sends.
pub(crate) fn reply(text: &str, packet: Value) -> Reply {
    let fixture = fixture(text);
    run(fixture.open("begin", 0, packet, LIMIT))
}
