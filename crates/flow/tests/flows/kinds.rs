//! A kind for the tests: `act` does what its parameter says.

use std::cell::Cell;
use std::panic::{set_hook, take_hook};
use std::rc::Rc;
use std::sync::Once;
use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
pub(crate) use sinew_flow::testing::run;
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowFixture, FlowNode, Make, Step, Value, error, input, output,
    testing,
};
use tokio::time::sleep;

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

static ACT: Kind = Kind {
    name: "act",
    doc: "Does what `does` says, then passes the packet on.",
    ports: &[input("in", "The packet."), error(), output("out", "The same packet.")],
    parameters: &[Parameter::new(
        "does",
        ParameterType::Choice(&[
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
            "surround",
            "around",
        ]),
    )
    .or("pass")
    .doc("What it does.")],
    ..FLOW
};

const OUT: usize = 2;

thread_local! {
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// How many `act` nodes of this thread wait, counted by what their flows own, not by the figures.
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
            "surround" => {
                let reply = at.call_within(OUT, packet.clone(), Rc::new(packet));
                Step::wait(async move { Step::answer(reply.await) })
            }
            "around" => Step::Reply(Some(Value::list(at.around::<Value>().cloned()))),
            _ => Step::Pass(OUT, packet),
        }
    }
}

/// Waits as many milliseconds as the packet says; for ever if the packet is not a number.
async fn wait(packet: &Value) {
    let _owned = Owned::new();
    match packet {
        Value::Integer(ms) => sleep(Duration::from_millis(*ms as u64)).await,
        _ => std::future::pending().await,
    }
}

/// Hides the texts of intended panics, which would fill the output; the texts of others stay.
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

/// The nodes of a graph, with a node `begin` whose packets go to the first.
pub(crate) fn fixture(nodes: &str) -> FlowFixture {
    testing::fixture(nodes, &[FlowEntry { kind: &ACT, make: Make::Node(make) }])
}
