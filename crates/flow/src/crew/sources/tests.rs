//! Swaps with a flow in flight.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use sinew_control::Spec;
use sinew_core::bell::Bell;
use sinew_core::board::Board;
use sinew_core::clock::Clock;
use sinew_core::halt::Halt;
use sinew_core::{Made, Parameters};
use sinew_spec::catalogue::{Kind, Parameter, ParameterType};
use sinew_spec::plan::{PoolSize, TargetMachine};
use tokio::task::{spawn_local, yield_now};

use super::*;
use crate::at_work::AtWork;
use crate::crew::shared::Setup;
use crate::path::program::Base;
use crate::resource::Resources;
use crate::tell::Teller;
use crate::testing::{BEGIN, run, try_plan};
use crate::{
    At, FLOW, FlowEntry, FlowNode, Local, Make, NodeContext, Opened, Pool, Step, Value, input, make,
};

/// Longest that a flow may take; past it the flow hangs.
const LIMIT: Duration = Duration::from_secs(20);

static GATE: Kind = Kind {
    name: "gate",
    doc: "",
    ports: &[input("in", "")],
    parameters: &[Parameter::new("value", ParameterType::Integer { min: 0, max: 1000 })],
    ..FLOW
};

thread_local! {
    /// Gates that were made and not dropped.
    static LIVING: Cell<usize> = const { Cell::new(0) };
    /// Where the source begins its flows.
    static OUTLET: RefCell<Option<Outlet>> = const { RefCell::new(None) };
    /// Whether gates are open.
    static OPEN: Cell<bool> = const { Cell::new(false) };
}

/// Answers with its value once it is opened.
struct Gate(i64);

impl Drop for Gate {
    fn drop(&mut self) {
        LIVING.set(LIVING.get() - 1);
    }
}

impl FlowNode for Gate {
    fn handle<'a>(&'a self, _at: At<'a>, _input: usize, _packet: Value) -> Step<'a> {
        Step::wait(async {
            while !OPEN.get() {
                yield_now().await;
            }
            Step::Reply(Some(Value::Integer(self.0)))
        })
    }
}

struct Begin;

impl Opened for Begin {
    fn serve(
        self: Box<Self>,
        outlet: Outlet,
        mut stop: StopSignal,
    ) -> Local<'static, Result<(), Fault>> {
        OUTLET.set(Some(outlet));
        Box::pin(async move {
            stop.wait().await;
            Ok(())
        })
    }
}

fn make_gate(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    LIVING.set(LIVING.get() + 1);
    Ok(Box::new(Gate(parameters.integer("value"))))
}

const TABLE: &[FlowEntry] = &[BEGIN, FlowEntry { kind: &GATE, make: Make::Node(make_gate) }];

fn graph(value: i64) -> Graph {
    let text = format!(
        "- {{kind: begin, name: begin, ports: {{out: [{{name: gate, port: in}}]}}}}\n\
         - {{kind: gate, name: gate, value: {value}}}\n"
    );
    let plan = try_plan(&text, &[BEGIN.kind, &GATE]).unwrap_or_else(|errors| panic!("{errors}"));
    Graph { plan, nodes: Arc::new([0, 1]), opened: Arc::default() }
}

fn shared() -> Arc<Shared> {
    let (board, bell) = (Board::create().expect("memfd"), Bell::create().expect("eventfd"));
    let (file, text, base) = ("test.yaml".into(), String::new(), ".".into());
    let setup = Setup {
        plan: graph(0).plan,
        spec: Spec { file, text, base, machine: TargetMachine::of(vec![0]), ..Spec::default() },
        domain: 0,
        nodes: vec![0, 1],
        table: TABLE.to_vec(),
        kinds: vec![BEGIN.kind, &GATE],
        workers: 1,
        blocking: PoolSize::fixed(1),
        inputs: BTreeMap::new(),
        outputs: BTreeMap::new(),
        calls: BTreeMap::new(),
        called: Vec::new(),
        supervisor: None,
        lens: None,
        halt: Arc::new(Halt::new(board, bell)),
        stop_deadline: LIMIT,
    };
    let (pool, clock) = (Pool::start(1).expect("a thread"), Clock::calibrate());
    let resources = Resources::default();
    Arc::new(Shared { graph: graph(0), setup, pool, clock, resources, taps: Arc::default() })
}

fn program(shared: &Shared, base: &Base, value: i64) -> Rc<Program> {
    let graph = graph(value);
    let open = (&shared.resources, &graph.opened);
    let site = |node| NodeContext::alone(node, &graph.plan, &shared.pool, open);
    let folder = &shared.setup.spec.base;
    let made = make::program(&graph.plan, &graph.nodes, TABLE, folder, base, site);
    Rc::new(made.unwrap_or_else(|(_, refusals)| panic!("{refusals:?}")))
}

/// Swaps two hundred times with a flow in flight.
async fn swap_on_and_on() {
    let shared = shared();
    let base = Base::new((0, 1), shared.clock, Arc::default(), Teller::direct(), AtWork::new());
    let mut sources = Sources::new(program(&shared, &base, 0), Arc::clone(&shared));
    sources.begin(vec![("begin".into(), Box::new(Begin))]);
    yield_now().await;
    let outlet = OUTLET.take().expect("it serves");
    for at in 1..=200 {
        OPEN.set(false);
        let outlet = outlet.clone();
        let flow = spawn_local(async move { outlet.open(0, Value::Null, LIMIT).await });
        yield_now().await;
        let flows = sources.swap(program(&shared, &base, at), &["begin".into()], vec![]);
        assert_eq!((flows, LIVING.get()), (1, 2), "one flow ends on the old graph");
        OPEN.set(true);
        let reply = flow.await.expect("no panic").expect("no error");
        assert_eq!(reply, Some(Value::Integer(at - 1)));
        assert_eq!(LIVING.get(), 1, "the old nodes are dropped with their last flow");
    }
    drop(outlet);
    assert_eq!(sources.swap(program(&shared, &base, 201), &[], vec![]), 0);
    sources.end().await;
    assert_eq!(LIVING.get(), 1, "the source that stopped has let its graph go");
}

#[test]
fn flows_end_where_they_began_and_then_their_nodes_are_dropped() {
    run(swap_on_and_on());
    assert_eq!(LIVING.get(), 0);
}
