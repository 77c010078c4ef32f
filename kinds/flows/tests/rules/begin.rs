//! The kinds of these tests' graphs beside the real ones: `begin` sends the packet of a test,
//! `step` does what a test tells it to.

use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
pub(crate) use sinew_flow::testing::run;
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowFixture, FlowNode, Make, Reply, Step, Value, error, input,
    output, testing,
};
use sinew_flows::FLOWS;

/// Longest that a flow in a test may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

static STEP: Kind = Kind {
    name: "step",
    doc: "Passes on [its name, the packet], replies nothing, fails with 418, or panics.",
    ports: &[input("in", "The packet."), error(), output("out", "What it makes of it.")],
    parameters: &[
        Parameter::new("does", ParameterType::Choice(&["pass", "nothing", "fail", "panic"]))
            .or("pass")
            .doc("Which of these."),
        Parameter::new("says", ParameterType::Text).or("x").doc("What it calls itself."),
    ],
    ..FLOW
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

/// Makes the nodes of a graph; `begin` is added.
pub(crate) fn fixture(text: &str) -> FlowFixture {
    let step = FlowEntry { kind: &STEP, make: Make::Node(make_step) };
    testing::fixture(text, &[&[step], FLOWS].concat())
}

/// The reply to a packet that the node `begin` sends.
pub(crate) fn reply(text: &str, packet: Value) -> Reply {
    let fixture = fixture(text);
    run(fixture.open("begin", 0, packet, LIMIT))
}
