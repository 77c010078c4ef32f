//! What the graphs of these tests are made of beside the real kinds: `begin` sends the packet of a
//! test, `step` does what a test tells it to.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, RunsIn};
use sinew_core::{Fault, Made, Parameters};
use sinew_flow::FlowEntry;
use sinew_flow::Make;
use sinew_flow::{At, Error, Fixture, FlowNode, Opened, Reply, Source as FlowSource};
use sinew_flow::{Step, Value, error, input, output};
use sinew_flows::FLOWS;
use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile, render};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Longest that a flow in a test may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

static BEGIN: Kind = Kind {
    name: "begin",
    runs_in: RunsIn::Flow,
    doc: "Begins flows by the hand of a test.",
    ports: &[output("out", "The packet.")],
    parameters: &[],
    signals: &[],
};

struct Begin;

fn make_begin(_parameters: &Parameters<'_>) -> Made<dyn FlowSource> {
    Ok(Box::new(Begin))
}

impl FlowSource for Begin {
    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        Ok(Vec::new())
    }
}

static STEP: Kind = Kind {
    name: "step",
    runs_in: RunsIn::Flow,
    doc: "Passes on [its name, the packet], replies nothing, fails with 418, or panics.",
    ports: &[input("in", "The packet."), error(), output("out", "What it makes of it.")],
    parameters: &[
        Parameter {
            name: "does",
            doc: "Which of these.",
            unit: "",
            ty: ParameterType::Choice(&["pass", "nothing", "fail", "panic"]),
            default: Some("pass"),
        },
        Parameter {
            name: "says",
            doc: "What it calls itself.",
            unit: "",
            ty: ParameterType::Text,
            default: Some("x"),
        },
    ],
    signals: &[],
};

struct Doer {
    does: String,
    says: String,
}

fn make_step(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let text = |name| parameters.text(name).to_owned();
    Ok(Box::new(Doer { does: text("does"), says: text("says") }))
}

impl FlowNode for Doer {
    fn handle<'a>(&'a self, _at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match self.does.as_str() {
            "pass" => Step::Pass(2, Value::list([Value::text(self.says.clone()), packet])),
            "nothing" => Step::Reply(None),
            "fail" => Step::Fail(Error::new("failed").with_status(418)),
            _ => panic!("on purpose"),
        }
    }
}

/// The nodes of a graph, made.
pub(crate) fn fixture(text: &str) -> Fixture {
    let entry = |kind, make| FlowEntry { kind, make };
    let own = [entry(&BEGIN, Make::Source(make_begin)), entry(&STEP, Make::Node(make_step))];
    let table = [&own, FLOWS].concat();
    let kinds: Vec<_> = table.iter().map(|row| row.kind).collect();
    let source = Source { file: "test.yaml", text, overrides: &[] };
    let plan = compile(&source, &kinds, &Machine { cpus: vec![0, 1] });
    let plan = plan.unwrap_or_else(|errors| panic!("{}", render(&errors, text, false)));
    Fixture::new(&Arc::new(plan), &table, Path::new("."))
        .unwrap_or_else(|refusals| panic!("{refusals:?}\n{text}"))
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
