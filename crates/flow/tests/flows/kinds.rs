//! Kinds for the tests: `begin` begins flows by hand, `act` does what its parameter says.

use std::cell::Cell;
use std::panic::{set_hook, take_hook};
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, RunsIn};
use sinew_core::{Fault, Made, Parameters};
use sinew_flow::FlowEntry;
use sinew_flow::Make;
use sinew_flow::{
    At, Error, Fixture, FlowNode, Opened, Source as FlowSource, Step, Value, error, input, output,
};
use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile};
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::sleep;

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

static BEGIN: Kind = Kind {
    name: "begin",
    runs_in: RunsIn::Flow,
    doc: "Begins flows by the hand of a test.",
    ports: &[output("out", "The packet.")],
    parameters: &[],
    signals: &[],
};

static ACT: Kind = Kind {
    name: "act",
    runs_in: RunsIn::Flow,
    doc: "Does what `does` says, then passes the packet on.",
    ports: &[input("in", "The packet."), error(), output("out", "The same packet.")],
    parameters: &[Parameter {
        name: "does",
        doc: "What it does.",
        unit: "",
        ty: ParameterType::Choice(&[
            "pass",
            "reply",
            "fail",
            "panic",
            "wait",
            "wait_panic",
            "keep",
            "show",
            "fork",
            "deadline",
        ]),
        default: Some("pass"),
    }],
    signals: &[],
};

const OUT: usize = 2;

thread_local! {
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// How many `act` nodes of this thread wait: by what lies on their way, not by what is counted.
pub(crate) fn waiting() -> usize {
    WAITING.get()
}

/// Something that a flow owns while it waits.
struct Owned;

impl Owned {
    fn new() -> Owned {
        WAITING.set(WAITING.get() + 1);
        Owned
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        WAITING.set(WAITING.get() - 1);
    }
}

struct Begin;

impl FlowSource for Begin {
    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        Ok(Vec::new())
    }
}

struct Act(&'static str);

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let does = parameters.text("does").to_owned();
    Ok(Box::new(Act(String::leak(does))))
}

impl FlowNode for Act {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match self.0 {
            "reply" => Step::Reply(Some(packet)),
            "fail" => Step::Fail(Error::new("it was to fail").with_status(418)),
            "panic" => panic!("boom"),
            "wait" => Step::wait(async move {
                wait(&packet).await;
                Step::Pass(OUT, packet)
            }),
            "wait_panic" => Step::wait(async move {
                wait(&packet).await;
                panic!("boom after a while")
            }),
            "keep" => {
                at.flow().set("kept".into(), packet.clone());
                Step::Pass(OUT, packet)
            }
            "show" => Step::Reply(Some(at.flow().get("kept").unwrap_or_default())),
            "fork" => match at.fork(OUT, packet, LONG) {
                Ok(()) => Step::Reply(None),
                Err(error) => Step::Fail(error),
            },
            "deadline" => {
                let left = at.flow().deadline().expect("one that a clock can say");
                let left = left.saturating_duration_since(std::time::Instant::now());
                Step::Reply(Some(Value::Bool(left <= LONG && !left.is_zero())))
            }
            _ => Step::Pass(OUT, packet),
        }
    }
}

/// As many milliseconds as the packet says; for ever if it is no number.
async fn wait(packet: &Value) {
    let _owned = Owned::new();
    match packet {
        Value::Integer(ms) => sleep(Duration::from_millis(*ms as u64)).await,
        _ => std::future::pending().await,
    }
}

/// Panics on purpose would fill the output; the texts of others stay.
pub(crate) fn expect_booms() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !info.payload_as_str().is_some_and(|text| text.starts_with("boom")) {
                before(info);
            }
        }));
    });
}

/// The nodes of a graph, behind `begin` whose packets go to the node `a`.
pub(crate) fn fixture(nodes: &str) -> Fixture {
    let begin = FlowEntry { kind: &BEGIN, make: Make::Source(|_| Ok(Box::new(Begin))) };
    let table = [begin, FlowEntry { kind: &ACT, make: Make::Node(make) }];
    let text =
        format!("- {{kind: begin, name: begin, ports: {{out: [{{name: a, port: in}}]}}}}\n{nodes}");
    let source = Source { file: "test.yaml", text: &text, overrides: &[] };
    let plan = compile(&source, &[&BEGIN, &ACT], &Machine { cpus: vec![0] });
    let plan =
        plan.unwrap_or_else(|errors| panic!("{}", sinew_spec::render(&errors, &text, false)));
    Fixture::new(&Arc::new(plan), &table, Path::new(".")).expect("the nodes are good")
}

/// Runs a future as a worker would.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, future)
}
