//! Graphs of flow nodes in tests and benchmarks: text in, reply out.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use sinew_core::transport::{LinkShape, Receiver, Sender, row};
use sinew_core::{Fault, Refusal};
use sinew_spec::catalogue::{Kind, MessageType};
use sinew_spec::plan::{Delivery, Plan, Sync, TargetMachine, Transport, Wait};
use sinew_spec::{SpecSource as Text, compile, render};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::across::called::Called;
use crate::across::caller::{Caller, Callers, stand_in};
use crate::tell::Teller;
use crate::{FLOW, FlowEntry, FlowFixture, Make, Opened, Source, output, spans};

/// A kind whose flows a test begins.
pub const BEGIN: FlowEntry = FlowEntry { kind: &INFO, make: Make::Source(|_| Ok(Box::new(Begin))) };

static INFO: Kind = Kind {
    name: "begin",
    doc: "Begins flows by the hand of a test.",
    ports: &[output("out", "The packet.")],
    ..FLOW
};

struct Begin;

impl Source for Begin {
    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        Ok(Vec::new())
    }
}

/// The plan of a graph of these kinds.
///
/// # Errors
/// The compiler's errors, as text.
pub fn try_plan(text: &str, kinds: &[&'static Kind]) -> Result<Arc<Plan>, String> {
    let source = Text::of("test.yaml", text);
    let plan = compile(&source, kinds, &TargetMachine::of(vec![0, 1]));
    plan.map(Arc::new).map_err(|errors| render(&errors, text, false))
}

/// The nodes of a graph of these kinds. If the first node takes packets, a node `begin` that sends
/// them to its input `in` is added at the end.
///
/// # Errors
/// All that is wrong with their parameters.
///
/// # Panics
/// If the graph does not compile.
pub fn try_fixture(text: &str, table: &[FlowEntry]) -> Result<FlowFixture, Vec<Refusal>> {
    let word = |key| text.split_once(key).and_then(|(_, rest)| rest.split([',', '}', '\n']).next());
    let first = table.iter().find(|row| word("kind: ") == Some(row.kind.name));
    let mut text = text.trim_end().to_owned();
    if let (Some(Make::Node(_)), Some(first)) = (first.map(|row| row.make), word("name: ")) {
        let indent = text.split('-').next().and_then(|it| it.lines().last()).unwrap_or_default();
        let ports = format!("{{out: [{{name: {first}, port: in}}]}}");
        text += &format!("\n{indent}- {{kind: begin, name: begin, ports: {ports}}}\n");
    }
    let table = [&[BEGIN], table].concat();
    let kinds: Vec<_> = table.iter().map(|row| row.kind).collect();
    let plan = try_plan(&text, &kinds).unwrap_or_else(|errors| panic!("{errors}"));
    FlowFixture::new(&plan, &table, Path::new("."))
}

/// The nodes of a graph, as [`try_fixture`] makes them.
///
/// # Panics
/// If the graph does not compile or its nodes cannot be made.
pub fn fixture(text: &str, table: &[FlowEntry]) -> FlowFixture {
    try_fixture(text, table).unwrap_or_else(|refusals| panic!("{refusals:?}\n{text}"))
}

/// The flow nodes of each domain of a plan, by the domain's index there. They are joined as their
/// processes would be, but within this process, and all are connected. As long as they call each
/// other, a `LocalSet` must run.
///
/// # Errors
/// Why a node cannot be made.
///
/// # Panics
/// As for [`FlowFixture::new`], if a domain has no flow nodes, or the kernel refuses sockets;
/// outside of a `LocalSet`.
pub async fn apart(
    plan: &Arc<Plan>,
    table: &[FlowEntry],
    folder: &Path,
) -> Result<Vec<FlowFixture>, Vec<Refusal>> {
    let mut callers = vec![Callers::new(); plan.domains.len()];
    let mut doors = Vec::new();
    for (from, to) in plan.doors() {
        let (out, into) = UnixDatagram::pair().expect("sockets");
        let caller = Caller::new(&plan.domains[to].name, out.into(), Teller::direct());
        callers[from].insert(to, Rc::new(caller));
        doors.push((to, into));
    }
    let of = |(domain, callers): (usize, &Callers)| {
        let is_here = |&node: &usize| plan.is_flow(node) && plan.nodes[node].domain == domain;
        let nodes: Vec<_> = (0..plan.nodes.len()).filter(is_here).collect();
        let mut base = FlowFixture::base();
        base.stand_in = stand_in(callers);
        FlowFixture::of(plan, &nodes, table, folder, &base, |_, _| {})
    };
    let fixtures: Vec<_> = callers.iter().enumerate().map(of).collect::<Result<_, _>>()?;
    for (to, door) in doors {
        Called::new(Rc::clone(&fixtures[to].program), Teller::direct()).begin(door.into());
    }
    for caller in callers.iter().flat_map(Callers::values) {
        caller.begin();
        caller.connected().await;
    }
    Ok(fixtures)
}

/// Both ends of a link within this process, for `capacity` messages of a type.
///
/// # Panics
/// If the memory for it is refused.
pub fn link(
    message: &MessageType,
    delivery: Delivery,
    capacity: u32,
) -> (Box<dyn Sender>, Box<dyn Receiver>) {
    let shape = LinkShape {
        message_size: message.size,
        type_hash: message.hash,
        capacity,
        sync: Sync::LockFree,
        delivery,
        wait: Wait::Yield,
        tuning: None,
    };
    let row = row(Transport::InProcess);
    let (writer, reader) = (row.open)(&shape).expect("memory");
    let receiver = (row.receiver)(reader, &shape).expect("the same shape");
    ((row.sender)(writer, &shape).expect("the same shape"), receiver)
}

/// Sends the spans of flows that begin in programs made from now on, as these environment variables
/// would ask for. To be called once in a process.
///
/// # Panics
/// If the variables are malformed.
pub fn send_spans(variables: &[(&str, &str)]) {
    spans::begin_with(variables).expect("good variables");
}

/// Runs a future as a worker would.
///
/// # Panics
/// If the kernel refuses a timer or a poll.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, future)
}
